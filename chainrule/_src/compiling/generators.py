"""Python's and NumPy's own generators of random numbers, from which code may draw unseen.

Their numbers are plain, so a recording would have them as constants.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

import numpy as np


class Generators:
    """The states of these generators before a recording. All threads of the process share the generators."""

    def __init__(self) -> None:
        self._alone = one_thread()
        self._python = random.getstate()
        self._numpy = _numpy_state()

    def drawn(self, unwatched: bool, promised: bool) -> bool:
        """Return whether this thread has drawn numbers since, and not only another one.

        Args:
            unwatched: whether it has run code whose calls are not seen. It may have drawn, as another thread may.
            promised: whether nothing was watched, on the caller's word that it does not draw. While another thread draws, that counts.
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
    """Return whether no other thread of Python's is alive."""
    return len(sys._current_frames()) == 1


def _numpy_state() -> Any:
    return np.random.get_state(legacy=False) if "numpy.random" in sys.modules else None


def _same(x: object, y: Any) -> bool:
    if isinstance(x, dict):
        return all(_same(x[key], y[key]) for key in x)
    return bool(np.array_equal(x, y)) if isinstance(x, np.ndarray) else bool(x == y)
