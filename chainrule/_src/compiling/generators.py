"""Python's and NumPy's own generators of random numbers, from which code may draw unseen.

Their numbers are plain, so a recording would have them as constants.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np


class Generators:
    """The states of these generators when it was looked at."""

    def __init__(self) -> None:
        self._python = random.getstate()
        self._numpy = _numpy_state()

    def changed(self) -> bool:
        """Whether one of them was drawn from since."""
        drawn = self._numpy is not None and not _same(_numpy_state(), self._numpy)
        return drawn or random.getstate() != self._python

    def rewind(self) -> None:
        random.setstate(self._python)
        if self._numpy is not None:
            np.random.set_state(self._numpy)


def _numpy_state() -> Any:
    return np.random.get_state(legacy=False) if "numpy.random" in sys.modules else None


def _same(x: object, y: Any) -> bool:
    if isinstance(x, dict):
        return all(_same(x[key], y[key]) for key in x)
    return bool(np.array_equal(x, y)) if isinstance(x, np.ndarray) else bool(x == y)
