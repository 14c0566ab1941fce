"""Locks that a forked process finds free, and that Ctrl-C leaves free."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Any

_RLock: Any = type(threading.RLock())


class _Lock(_RLock):  # type: ignore[misc]
    """A reentrant lock that is let go if a signal handler raises between its acquiring and the body of ``with``.

    From Python 3.14 on ``with`` looks for signals there. (It does not where a function of Python's returns.)
    """

    def __enter__(self) -> bool:
        try:
            return self.acquire()
        except BaseException:
            with suppress(RuntimeError):  # it came while waiting
                self.release()
            raise


def new_lock() -> Any:
    """A reentrant lock, free in a forked process: whichever thread held it is not there to let it go."""
    lock: Any = _Lock() if sys.version_info >= (3, 14) else threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock
