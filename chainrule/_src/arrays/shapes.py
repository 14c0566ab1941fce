"""Shapes, axes and dtypes of anything, cheaply."""

from __future__ import annotations

from typing import Any


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of an array-like; ``()`` for a number."""
    shape: tuple[int, ...] = getattr(getattr(x, "_raw", x), "shape", ())  # a tensor's own shape is dressed as a Size
    return shape


def dtype_of(x: Any) -> Any:
    """NumPy's dtype of an array-like; a tensor's own is dressed as well."""
    return getattr(x, "_raw", x).dtype


def from_end(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """Axes counted from the end (so that extra leading axes change nothing): ``None`` is all of them."""
    if axis is None:
        return tuple(range(-ndim, 0))
    if not isinstance(axis, tuple):
        axis = (axis,)
    return tuple(a if a < 0 else a - ndim for a in axis)
