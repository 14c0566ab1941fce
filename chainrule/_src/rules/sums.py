"""Sums with small rounding errors, at about the cost of plain sums.

The rules in ``table`` and ``rules.unbroadcast`` call these functions.

NumPy sums pairwise along an axis that is contiguous in memory. Along any other axis it adds row after row, and cumulative
sums add one element at a time. Single precision then loses digits. So long sums over rows are computed in blocks, and
cumulative sums and products in double precision, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import is_array, is_recorded
from chainrule._src.arrays.types import AnyArray, AnyFunction

ndarray = np.ndarray
_MANY_ROWS, _BLOCK = 2048, 128
WIDER = {"e": np.float32, "f": np.float64, "F": np.complex128}


def accurate_sum(x: Any, axis: tuple[int, ...], keepdims: bool = False) -> AnyArray:
    """Compute ``np.add.reduce``, in blocks where single precision would lose digits."""
    if (
        (type(x) is ndarray or is_recorded(x))
        and x.dtype.char in "fF" and x.ndim > 1 and not (len(axis) == x.ndim and x.flags.forc)
    ):  # fmt: skip
        for a in axis:
            if x.shape[a] >= _MANY_ROWS and abs(x.strides[a]) != x.itemsize:
                x = _sum_in_blocks(x, a % x.ndim)
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


def _sum_in_blocks(x: Any, axis: int) -> AnyArray:
    """Sum along an axis, which is kept with length 1."""
    lead, shape = (slice(None),) * axis, x.shape
    blocks = shape[axis] // _BLOCK
    blocked_length = blocks * _BLOCK
    part = x[(*lead, slice(blocked_length))].reshape(*shape[:axis], blocks, _BLOCK, *shape[axis + 1 :])  # a view
    sums = np.add.reduce(part, axis=axis + 1)
    total = _sum_in_blocks(sums, axis) if blocks >= _MANY_ROWS else np.add.reduce(sums, axis=axis, keepdims=True)
    if blocked_length < shape[axis]:
        total += np.add.reduce(x[(*lead, slice(blocked_length, None))], axis=axis, keepdims=True)
    return total


def accurate_scan(function: AnyFunction, x: AnyArray, axis: int) -> AnyArray:
    """Compute ``np.cumsum`` or ``np.cumprod``, and return it in the dtype of x."""
    if not is_array(x):
        return function(x, axis=axis)
    return function(x, axis=axis, dtype=WIDER.get(x.dtype.char, x.dtype)).astype(x.dtype, copy=False)
