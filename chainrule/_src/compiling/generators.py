"""Detect draws from the global random number generators of Python and NumPy during a trace.

Their numbers are plain values, which a trace would contain as constants. ``function_trace`` refuses such a trace.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

import numpy as np


class Generators:
    """The states of the global generators before a trace. All threads of the process share the generators."""

    def __init__(self) -> None:
        self._alone = one_thread()
        self._python = random.getstate()
        self._numpy = _numpy_state()

    def has_drawn(self, unwatched: bool, promised: bool) -> bool:
        """Return whether this thread, rather than another one, has drawn numbers since the trace began.

        Args:
            unwatched: whether it has run code whose calls are not watched, and which may have drawn.
            promised: whether the caller promised (``pure=True``) that it does not draw. The promise counts while another thread draws.
        """
        if unwatched or (self._alone and one_thread()):
            return self._changed()
        return promised and self._changed() and not _changing()

    def _changed(self) -> bool:
        drawn = self._numpy is not None and not _same(_numpy_state(), self._numpy)
        return drawn or random.getstate() != self._python

    def rewind(self) -> None:
        random.setstate(self._python)
        if self._numpy is not None:
            np.random.set_state(self._numpy)


def _changing() -> bool:
    """Return whether another thread draws numbers now."""
    now = Generators()
    time.sleep(0.001)
    return now._changed()


def one_thread() -> bool:
    """Return whether no other Python thread is alive."""
    return len(sys._current_frames()) == 1


def _numpy_state() -> Any:
    return np.random.get_state(legacy=False) if "numpy.random" in sys.modules else None


def _same(x: object, y: Any) -> bool:
    if isinstance(x, dict):
        return all(_same(x[key], y[key]) for key in x)
    return bool(np.array_equal(x, y)) if isinstance(x, np.ndarray) else bool(x == y)
