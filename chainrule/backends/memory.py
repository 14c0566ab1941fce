"""Keeping freed array memory in the process.

glibc gives large freed blocks back to the kernel, so every large temporary costs page faults anew: for arrays of
10,000 elements and more that, not arithmetic, is most of the time. Raising two of malloc's thresholds keeps the pages.
They are settings of the whole process; ``CHAINRULE_KEEP_MEMORY=0`` in the environment leaves them alone.
"""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_MMAP_THRESHOLD = 32 * 1024 * 1024  # glibc's own upper limit
_KEPT = 1024 * 1024 * 1024


def keep_freed_memory() -> bool:
    """Raise glibc's trim and mmap thresholds; False where that is not possible (another C library)."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD) and mallopt(_M_TRIM_THRESHOLD, _KEPT))
