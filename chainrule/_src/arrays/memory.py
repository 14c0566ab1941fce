"""Keep freed array memory in the process, and pause the cycle collector while objects are made.

``chainrule/__init__.py`` calls ``keep_freed_memory`` and ``paused_collector`` at import.

glibc returns large freed blocks to the kernel, so every large temporary causes page faults again. For arrays of 10,000
elements and more, page faults take more time than the arithmetic. Raising two of malloc's thresholds keeps the pages. The
thresholds apply to the whole process. They stay unchanged with ``CHAINRULE_KEEP_MEMORY=0`` in the environment, and if glibc's
own variables are set, as Dask does for its workers: it restarts workers that hold too much memory.

Blocks above the largest possible threshold come from the kernel every time. ``zeros`` keeps the last such block for the next
array.

Importing the package creates tens of thousands of long-lived objects. The cycle collector would scan them repeatedly during
the import, for an eighth of the import's time, and once more at its end, for another eighth.
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
    """Raise glibc's trim and mmap thresholds; return False if that is impossible (another C library) or set by the environment."""
    if not sys.platform.startswith("linux") or _GLIBC & os.environ.keys():
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD) and mallopt(_M_TRIM_THRESHOLD, _KEPT))


@contextlib.contextmanager
def paused_collector(staying: bool = False) -> Iterator[None]:
    """Pause the cycle collector in a block. With ``staying``, move the objects made in the block to the oldest generation."""
    working = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if staying and hasattr(gc, "freeze") and not gc.get_freeze_count():  # keep objects frozen that the user froze
            gc.freeze()
            gc.unfreeze()  # moves them to the oldest generation
        if working:
            gc.enable()


_MOST_KEPT = 256 * 1024 * 1024
_last: list[NumpyArray] = []


def zeros(shape: tuple[int, ...], dtype: NumpyDType) -> NumpyArray:
    """Return ``np.zeros``. A large array may reuse the memory of an earlier one that has no references left."""
    size = math.prod(shape) * dtype.itemsize
    if not config.KEEP_MEMORY or not _LARGEST_MMAP_THRESHOLD <= size <= _MOST_KEPT:
        return np.zeros(shape, dtype)
    return np.ndarray(shape, dtype, _zeroed_memory(size))


def _zeroed_memory(size: int) -> NumpyArray:
    holder = [_last.pop()] if _last else [np.empty(0, np.uint8)]
    if _references(holder) == _ALONE and size <= holder[0].size <= 2 * size:
        holder[0][:size] = 0
    else:
        holder[0] = np.zeros(size, np.uint8)
    _last[:] = holder
    return holder[0]


def _references(holder: list[Any]) -> int:
    return sys.getrefcount(holder[0])


_ALONE = _references([np.empty(0, np.uint8)])  # the count if only a list refers to it; it depends on Python's version
