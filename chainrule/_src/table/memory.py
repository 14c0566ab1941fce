"""Views of the same memory: arbitrary strides, and complex numbers as pairs of real numbers.

``ops.memory`` applies them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Params, TensorLike
from chainrule._src.rules.kinds import call, linear
from chainrule._src.rules.primitive import Primitive
from chainrule._src.table.indexing import take, take_add
from chainrule._src.tape.versions import strided_view

ndarray = np.ndarray


def memory_offsets(size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Any:
    """Return the offsets of a strided view's elements from the start of the memory."""
    steps = [np.arange(n) * s for n, s in zip(size, stride, strict=True)]
    grid = np.ix_(*steps) if steps else ()
    return np.asarray(offset + sum(grid, np.zeros(size, np.int64)), np.int64)


def element_indices(x_shape: tuple[int, ...], x_stride: tuple[int, ...], offsets: TensorLike) -> AnyArray:
    """Return the indices, in element order, of the elements at memory offsets from the first element; −1 where none is."""
    element_offsets = memory_offsets(x_shape, x_stride, 0).reshape(-1)
    order = np.argsort(element_offsets, kind="stable")
    found = order[np.searchsorted(element_offsets, offsets, sorter=order).clip(max=element_offsets.size - 1)]
    return np.where(element_offsets[found] == offsets, found, -1)


def _elements(
    x_shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    x_stride: tuple[int, ...] | None,
) -> AnyArray:
    """Return which elements of x a strided view contains."""
    offsets = memory_offsets(size, stride, offset)
    return offsets if x_stride is None else element_indices(x_shape, x_stride, offsets)


def _strided_vjp(
    g: AnyArray,
    x_shape: tuple[int, ...],
    *,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    x_stride: tuple[int, ...] | None,
) -> AnyArray:
    n = int(np.prod(x_shape, dtype=np.int64))
    viewed = _elements(x_shape, size, stride, offset, x_stride)
    flat = take_add(np.reshape(g, (-1,)), viewed.reshape(-1), axis=-1, length=n)
    return np.reshape(flat, x_shape)


def _strided_batch(
    prim: Primitive, payloads: list[AnyArray], batched: list[bool], size: int, params: Params
) -> AnyArray:
    (x,) = payloads
    shape, step = shape_of(x)[1:], params["x_stride"]
    one = int(np.prod(shape, dtype=np.int64))
    if step is not None:
        viewed = _elements(shape, params["size"], params["stride"], params["offset"], step)
        return take(np.reshape(x, (size, one)), viewed, axis=-1)
    return prim(
        x, size=(size, *params["size"]), stride=(one, *params["stride"]), offset=params["offset"], x_stride=None
    )


@linear(
    transpose=_strided_vjp,
    formula="_strided_vjp(g, x_shape, size=size, stride=stride, offset=offset, x_stride=x_stride)",
    batch=_strided_batch,
    view=True,
    moves=True,
    samples=[
        call((2, 3), size=(2, 2), stride=(1, 2), offset=1, x_stride=None),
        call((6,), size=(3, 2), stride=(1, 1), offset=0, x_stride=None),
        call((4,), size=(), stride=(), offset=2, x_stride=None),
        call((3, 2), size=(0, 2), stride=(2, 1), offset=0, x_stride=None),
        call((3, 2), size=(5,), stride=(1,), offset=1, x_stride=(1, 3)),
    ],
)
def as_strided(x: Any, *, size: Any, stride: Any, offset: int, x_stride: Any) -> AnyArray:
    """Return the elements at memory offsets offset + Σ index·stride from x's first; ``x_stride`` is None if x is contiguous."""
    if is_array(x) and x.flags.c_contiguous and all(size) and x_stride is None:
        start = x.reshape(-1)[offset:]
        return strided_view(start, size, tuple(s * x.itemsize for s in stride))
    if is_array(x) and x_stride is not None and x.strides == tuple(s * x.itemsize for s in x_stride) and all(size):
        at = np.unravel_index(int(element_indices(x.shape, x_stride, offset)), x.shape)  # the first element of the view
        return strided_view(x[(*at, ...)], size, tuple(s * x.itemsize for s in stride))
    return take(np.reshape(x, (-1,)), _elements(shape_of(x), size, stride, offset, x_stride), axis=-1)


@linear(
    transpose=lambda g, x_dtype: view_as_complex(g) if x_dtype.kind == "c" else g[..., 0],
    view=True,
    domain="complex",
    samples=[call((2, 3)), call(())],
    structure=":r",
)
def view_as_real(x: Any) -> AnyArray:
    """Return complex numbers as pairs of real ones along a new last axis. Real numbers are paired with zeros."""
    if not is_array(x) or x.dtype.kind != "c":
        return np.stack([np.real(x), np.imag(x)], axis=-1)
    return x[..., None].view(np.float32 if x.dtype == np.complex64 else np.float64)


@linear(
    transpose=lambda g: view_as_real(g),
    view=True,
    accepts="f",
    samples=[call((3, 2)), call((2,))],
    structure="r:",
)
def view_as_complex(x: Any) -> AnyArray:
    """Return pairs of real numbers along the last axis as complex numbers."""
    if not is_array(x) or x.strides[-1] != x.itemsize:
        return x[..., 0] + 1j * x[..., 1]
    return x.view(np.complex64 if x.dtype == np.float32 else np.complex128)[..., 0]
