"""Locks that are free in a forked process, and that Ctrl-C does not leave locked.

``versions``, ``accumulate`` and other modules with global state call ``new_lock``.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Any

_RLock: Any = type(threading.RLock())


class _Lock(_RLock):  # type: ignore[misc]
    """A reentrant lock that is released if a signal handler raises between ``acquire`` and the body of ``with``.

    Python 3.14 and later run signal handlers there after a C function returns, but not after a Python function returns.
    """

    def __enter__(self) -> bool:
        try:
            return self.acquire()
        except BaseException:
            with suppress(RuntimeError):  # not acquired yet: the signal arrived while waiting
                self.release()
            raise


def new_lock() -> Any:
    """Return a reentrant lock that is free in a forked process, where the thread that held it does not exist."""
    lock: Any = _Lock() if sys.version_info >= (3, 14) else threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock
