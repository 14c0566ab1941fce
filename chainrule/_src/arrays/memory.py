"""Keeping freed array memory in the process.

glibc gives large freed blocks back to the kernel, so every large temporary costs page faults anew: for arrays of
10,000 elements and more that, not arithmetic, is most of the time. Raising two of malloc's thresholds keeps the pages.
They are settings of the whole process; ``CHAINRULE_KEEP_MEMORY=0`` in the environment leaves them alone, and so do glibc's own
variables, which Dask sets for its workers: they count what a process holds, and give up one that holds too much.

What is larger than the second threshold can be, malloc takes from the kernel every time. ``zeros`` keeps the last such array's
memory for the next.

Importing the package makes tens of thousands of objects that stay. The cycle collector would look at them again and again
meanwhile, and find nothing, for an eighth of the import's time; and once more at its end, for another.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule._src import config
from chainrule._src.arrays.types import NumpyArray, NumpyDType

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_GLIBC = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"}
_LARGEST_MMAP_THRESHOLD = 32 * 1024 * 1024  # glibc's own upper limit
_KEPT = 1024 * 1024 * 1024


def keep_freed_memory() -> bool:
    """Raise glibc's trim and mmap thresholds; False where that is not possible (another C library) or settled by the environment."""
    if not sys.platform.startswith("linux") or _GLIBC & os.environ.keys():
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD) and mallopt(_M_TRIM_THRESHOLD, _KEPT))


@contextlib.contextmanager
def collector_at_rest(staying: bool = False) -> Iterator[None]:
    """Have no cycles looked for while objects are made; ``staying``: nor soon in them, as the collector takes them for old."""
    working = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if staying and hasattr(gc, "freeze") and not gc.get_freeze_count():  # what the user froze stays so
            gc.freeze()
            gc.unfreeze()  # they are in the oldest generation
        if working:
            gc.enable()


_MOST_KEPT = 256 * 1024 * 1024
_last: list[NumpyArray] = []


def zeros(shape: tuple[int, ...], dtype: NumpyDType) -> NumpyArray:
    """``np.zeros``. A large array may lie in the memory of an earlier one, if nothing refers to that any more."""
    size = math.prod(shape) * dtype.itemsize
    if not config.KEEP_MEMORY or not _LARGEST_MMAP_THRESHOLD <= size <= _MOST_KEPT:
        return np.zeros(shape, dtype)
    return np.ndarray(shape, dtype, _zeroed(size))


def _zeroed(size: int) -> NumpyArray:
    holder = [_last.pop()] if _last else [np.empty(0, np.uint8)]
    if _references(holder) == _ALONE and size <= holder[0].size <= 2 * size:
        holder[0][:size] = 0
    else:
        holder[0] = np.zeros(size, np.uint8)
    _last[:] = holder
    return holder[0]


def _references(holder: list[Any]) -> int:
    return sys.getrefcount(holder[0])


_ALONE = _references([np.empty(0, np.uint8)])  # of what only a list refers to; Python's versions count differently
