"""Sliding windows along an axis: a view in which elements may occur several times. The transpose adds them.

``ops.shaping`` and ``nn.pooling`` apply them.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, ShapeLike, TensorLike
from chainrule._src.rules.kinds import call, linear
from chainrule._src.table.shape import functional_scatter
from chainrule._src.tape.versions import strided_view

ndarray = np.ndarray


@linear(
    transpose=lambda g, x_shape, *, axis, size, step: fold_windows(
        g, axis=axis, size=size, step=step, length=x_shape[axis]
    ),
    view=True,
    moves=True,
    samples=[
        call((5,), axis=-1, size=2, step=1),
        call((2, 5, 2), axis=-2, size=3, step=2),
        call((3, 4), axis=-1, size=2, step=2),
        call((4, 2), axis=-2, size=4, step=5),
    ],
)
def unfold(x: AnyArray, *, axis: int, size: int, step: int) -> AnyArray:
    """Return windows of ``size`` along an axis, one every ``step``, as a new last axis."""
    count = (shape_of(x)[axis] - size) // step + 1
    if type(x) is not ndarray:
        positions = np.arange(count)[:, None] * step + np.arange(size)
        return np.moveaxis(np.take(x, positions, axis=axis), axis, -1)
    shape, strides = list(x.shape), list(x.strides)
    shape[axis] = count
    width = strides[axis]
    strides[axis] *= step
    return strided_view(x, (*shape, size), (*strides, width))


@linear(
    transpose=lambda g, *, length, **params: unfold(g, **params),
    naming="UnfoldBackwardBackward0",
    samples=[call((4, 2), axis=-1, size=2, step=1, length=5), call((2, 2, 2, 3), axis=-2, size=3, step=2, length=6)],
    structure="scatter",
)
def fold_windows(x: Any, *, axis: SupportsIndex, size: ShapeLike, step: TensorLike, length: int) -> AnyArray:
    """Apply the transpose of ``unfold``: add every window at its position to zeros of ``length`` along the axis."""
    windows = np.moveaxis(x, axis - 1, -2)
    if not is_array(x):
        positions = np.arange(windows.shape[-2])[:, None] * step + np.arange(size)
        return np.moveaxis(
            functional_scatter().scatter_sum(windows, (*windows.shape[:-2], length), (Ellipsis, positions)), -1, axis
        )
    out = np.zeros((*windows.shape[:-2], length), x.dtype)
    count = windows.shape[-2]
    for k in range(size):
        out[..., k : k + step * count : step][..., :count] += windows[..., k]
    return np.moveaxis(out, -1, axis)
