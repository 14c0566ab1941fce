"""Locks that a forked process finds free."""

from __future__ import annotations

import os
import threading
from typing import Any


def new_lock() -> Any:
    """A reentrant lock, free in a forked process: whichever thread held it is not there to let it go."""
    lock: Any = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock
