"""How arrays lie in memory, as far as NumPy's functions show it: ``order=``, and what is a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.core.protocol import strides_of
from chainrule.table import shape as rows
from chainrule.types.arrays import close_strides, room
from chainrule.types.shapes import dtype_of, shape_of


def contiguous(a: Any) -> str:
    """ "C" or "F" where the elements lie together in memory, the last or the first axis fastest ("C" if both); else ""."""
    shape, dtype = shape_of(a), dtype_of(a)
    strides = close_strides(shape, strides_of(a), dtype.itemsize)
    flags = None if strides is None else room(shape, dtype, strides).flags
    return "" if flags is None else "C" if flags.c_contiguous else "F" if flags.f_contiguous else ""


def settled_order(a: Any, order: str | None) -> str:
    """``order`` as "C", "F" or "K": "A" is F for what lies in memory like that."""
    if order is None or order == "A":
        return "F" if order and contiguous(a) == "F" else "C"
    if order not in ("C", "F", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order


def laid(a: Any, order: str | None) -> Any:
    """The array, or a copy where it does not lie in memory as ``order`` asks."""
    order = settled_order(a, order)
    if order == "K" or len(shape_of(a)) < 2 or contiguous(a) == order:
        return a
    return rows.laid(a, order=order, ndim=len(shape_of(a)))


def copied(a: Any, order: str | None) -> Any:
    """A copy that lies in memory as ``order`` asks."""
    order = settled_order(a, order)
    if order == "K" or len(shape_of(a)) < 2 or contiguous(a) == order:
        return rows.clone(a)
    return rows.laid(a, order=order, ndim=len(shape_of(a)))


def in_memory_order(a: Any) -> Any:
    """The array with its axes as they lie in memory, the fastest last (``order="K"``)."""
    steps = strides_of(a)
    return np.transpose(a, sorted(range(len(steps)), key=lambda k: -abs(steps[k])))
