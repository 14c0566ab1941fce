"""The memory layout of arrays, as far as NumPy's functions expose it: ``order=``, and whether a result is a copy.

``ops.array`` and the ``numpy_*`` modules call these functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import compact_strides, empty_with_strides
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray
from chainrule._src.messages import errors
from chainrule._src.table import shape as primitives
from chainrule._src.tape.protocol import ArrayLike, strides_of


def layout_of(a: AnyArray) -> Any:
    """Return an uninitialized array with the memory layout of a; in a vmap, with that of a single example by itself."""
    shape, dtype, steps = shape_of(a), dtype_of(a), strides_of(a)
    return empty_with_strides(shape, dtype, compact_strides(shape, steps, dtype.itemsize) or steps)


def contiguous(a: Any) -> str:
    """Return "C" or "F" if the array is contiguous in this order ("C" if in both), else ""."""
    return next((order for order in "CF" if has_order(a, order)), "")


def has_order(a: Any, order: str | None) -> bool:
    """Return whether the memory layout satisfies ``order``."""
    order = resolved_order(a, order)
    if order == "K":
        return True
    if compact_strides(shape_of(a), strides_of(a), dtype_of(a).itemsize) is None:
        return False
    flags = layout_of(a).flags
    return bool(flags.c_contiguous if order == "C" else flags.f_contiguous)


def resolved_order(a: AnyArray, order: str | None) -> str:
    """Resolve ``order`` to "C", "F" or "K": "A" means F for F-contiguous arrays, else C."""
    if order is None or order == "A":
        columns = order == "A" and contiguous(a) == "F"
        if columns and _is_interleaved(a):
            raise errors.order_in_vmap(order)
        return "F" if columns else "C"
    if order not in ("C", "F", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order


def _is_interleaved(a: AnyArray) -> bool:
    """Return whether elements of other examples of a vmap are interleaved with an array's."""
    data = getattr(a, "_raw", a)
    if not isinstance(data, ArrayLike):
        return False
    return any([n > 1 and x != y for n, x, y in zip(data.shape, data.strides, data.own_strides, strict=True)])


def to_order(a: Any, order: str | None) -> Any:
    """Return the array, or a copy if its memory layout does not satisfy ``order``."""
    order = resolved_order(a, order)
    if has_order(a, order):
        return a
    return primitives.laid(a, order=order, ndim=len(shape_of(a)))


def to_numpy_layout(result: AnyArray, a: AnyArray) -> AnyArray:
    """Lay out a result as NumPy's functions do in a new array: in F order if ``a`` is F-contiguous, else in C order."""
    order = contiguous(a)
    if order == "F" and _is_interleaved(a):  # the axis of examples is among the columns, as in ``a``
        return primitives.laid(result, order=order, ndim=len(shape_of(result)) + 1)
    return to_order(result, order or "C")


def copy_in_order(a: Any, order: str | None) -> Any:
    """Return a copy with the memory layout ``order``."""
    order = resolved_order(a, order)
    if len(shape_of(a)) < 2 or (order == contiguous(a)):
        return primitives.clone(a)
    if order == "K":
        return with_axis_order_of(primitives.clone(a), layout_of(a).copy("K"))
    return primitives.laid(a, order=order, ndim=len(shape_of(a)))


def with_axis_order_of(a: AnyArray, like: AnyArray) -> AnyArray:
    """Return the array, or a copy if its axes do not have the memory order of ``like``'s, which has the same shape."""
    return primitives.with_memory_order(a, primitives.memory_order(like))


def in_memory_order(a: AnyArray) -> AnyArray:
    """Return the array with its axes in memory order (fastest last), as NumPy iterates for ``order="K"``.

    Axes of stride 0 keep their position among the others, as in ``np.nditer``.
    """
    shape, steps = shape_of(a), strides_of(a)
    order: list[int] = []  # fastest first
    for axis in reversed(range(len(steps))):
        position = len(order)
        for k in reversed(range(len(order))):
            step, other = (0 if shape[x] == 1 else abs(steps[x]) for x in (axis, order[k]))
            if step and other:
                if other <= step:
                    break
                position = k
        order.insert(position, axis)
    order.reverse()
    along = [k for k in order if shape[k] != 1]
    if along != sorted(along) and _is_interleaved(a):
        raise errors.order_in_vmap("K")
    return np.transpose(a, order)
