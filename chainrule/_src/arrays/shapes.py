"""Shapes, dtypes and axes of array-likes, without the overhead of tensor attributes.

Rules, operations and interpreters call these functions with any array-like.
"""

from __future__ import annotations

from typing import Any


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of an array-like; ``()`` for a number."""
    shape: tuple[int, ...] = getattr(getattr(x, "_raw", x), "shape", ())  # a tensor's own ``shape`` is a Size
    return shape


def dtype_of(x: Any) -> Any:
    """Return NumPy's dtype of an array-like; a tensor's own ``dtype`` is a public dtype."""
    return getattr(x, "_raw", x).dtype


def from_end(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """Count axes from the end (so that extra leading axes change nothing); ``None`` means all axes."""
    if axis is None:
        return tuple(range(-ndim, 0))
    if not isinstance(axis, tuple):
        axis = (axis,)
    return tuple(a if a < 0 else a - ndim for a in axis)
