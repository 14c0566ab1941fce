"""Scatter without writing into memory, for read-only arrays of other libraries.

The primitives that scatter call these functions where they cannot write. They consist of pads, concatenations, and reads
along an axis at constant indices, so a lazy, GPU or sparse operand gives a result of the same kind.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Index, NumpyArray
from chainrule._src.rules.rules import call_rule

ndarray = np.ndarray


# -- at a basic index --------------------------------------------------------------------------------------------------


def embed_by_padding(x: AnyArray, shape: tuple[int, ...], index: tuple[object, ...]) -> Any:
    """Return zeros of a shape, with x at a basic index."""
    spans = [_index_range(item, n) for item, n in zip(_for_every_axis(index, len(shape)), shape, strict=True)]
    sizes = tuple(map(len, spans))
    if not math.prod(sizes):
        return np.zeros_like(x, shape=tuple(shape))
    x = np.reshape(x, sizes)
    for axis, span in enumerate(spans):
        if span.step < 0:
            x, spans[axis] = np.flip(x, axis=axis), span[::-1]
        if spans[axis].step > 1:
            x = _insert_zeros(x, axis, spans[axis].step)
    margins = [(span[0], n - 1 - span[-1]) for span, n in zip(spans, shape, strict=True)]
    return np.pad(x, margins) if any(map(any, margins)) else x


def _for_every_axis(index: tuple[Any, ...], ndim: int) -> list[Any]:
    """Return the integers and slices of an index, one for every axis that it indexes."""
    items = [item for item in index if item is not None]
    at = next((k for k, item in enumerate(items) if item is Ellipsis), len(items))
    rest = items[at + 1 :]
    return [*items[:at], *[slice(None)] * (ndim - at - len(rest)), *rest]


def _index_range(item: AnyArray, n: int) -> range:
    if isinstance(item, slice):
        return range(n)[item]
    index = range(n)[item]
    return range(index, index + 1)


def _insert_zeros(x: AnyArray, axis: int, step: int) -> Any:
    """Insert zeros between the elements of x along an axis, so that they are ``step`` apart."""
    shape = shape_of(x)
    n = shape[axis]
    gaps = [(0, 0)] * (len(shape) + 1)
    gaps[axis + 1] = (0, step - 1)
    spaced = np.reshape(np.pad(np.expand_dims(x, axis + 1), gaps), (*shape[:axis], n * step, *shape[axis + 1 :]))
    return spaced[(slice(None),) * axis + (slice((n - 1) * step + 1),)]


def replace_region(base: AnyArray, part: AnyArray, steps: AnyArray) -> Any:
    """Return the base with the region of a view replaced by ``part``; ``steps`` (primitives, parameters) take the view."""
    mask = _put_back(np.ones_like(part, dtype=bool), shape_of(base), steps)
    return np.where(mask, _put_back(part, shape_of(base), steps), base)


def _put_back(part: AnyArray, shape: tuple[int, ...], steps: Any) -> Any:
    """Return zeros of a shape, with ``part`` in the region that ``steps`` select: apply the steps' transposes."""
    viewed: Any = np.broadcast_to(False, shape)  # an array without memory, used for its shapes
    inverse_steps = []
    for prim, params in steps:
        inverse_steps.append((prim, params, viewed))
        viewed = prim.value(viewed, **params)
    part = np.broadcast_to(part, viewed.shape)
    for prim, params, before in reversed(inverse_steps):
        part = call_rule(prim, prim.vjps["x"], {"g": part, "x": before, **params})
    return part


# -- at arrays of integers ---------------------------------------------------------------------------------------------


def add_along(x: AnyArray, indices: NumpyArray, length: int, axis: int) -> AnyArray:
    """Return zeros of ``length`` along an axis, with the entries of x added at their indices; duplicates are summed pairwise."""
    axis %= len(shape_of(x))
    order = np.argsort(indices, kind="stable")
    indices = indices[order]
    x = np.take(x, order, axis=axis) if indices.size and np.any(np.diff(order) != 1) else x
    while np.any(indices[1:] == indices[:-1]):
        first, second = _pairs(indices)
        x = np.take(x, first, axis=axis) + np.take(_append_zero(x, axis), second, axis=axis)
        indices = indices[first]
    source = np.full(length, indices.size)
    source[indices] = np.arange(indices.size)
    return np.take(_append_zero(x, axis), source, axis=axis)


def _pairs(indices: NumpyArray) -> tuple[Any, Any]:
    """Pair up equal neighbours: return every other index of each run, and its neighbour (or the length if it has none)."""
    starts = np.flatnonzero(np.r_[True, indices[1:] != indices[:-1]])
    rank = np.arange(indices.size) - np.repeat(starts, np.diff(np.r_[starts, indices.size]))
    first = np.flatnonzero(rank % 2 == 0)
    second = np.minimum(first + 1, indices.size - 1)
    return first, np.where((indices[second] == indices[first]) & (second != first), second, indices.size)


def _append_zero(x: AnyArray, axis: int) -> AnyArray:
    shape = list(shape_of(x))
    shape[axis] = 1
    return np.concatenate([x, np.zeros_like(x, shape=tuple(shape))], axis=axis)


def scatter_sum(x: AnyArray, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    """Return zeros of a shape, with x added at an index of arrays."""
    along = _one_array(index, shape)
    if along is not None:
        axis, indices = along
        index_shape = (*shape[:axis], *indices.shape, *shape[axis + 1 :])
        flat = (*shape[:axis], indices.size, *shape[axis + 1 :])
        return add_along(np.reshape(np.broadcast_to(x, index_shape), flat), indices.ravel(), shape[axis], axis)
    at = _positions(shape, index)
    flat_x = np.reshape(np.broadcast_to(x, at.shape), (at.size,))
    return np.reshape(add_along(flat_x, at.ravel(), math.prod(shape), 0), tuple(shape))


def scatter_write(x: AnyArray, values: AnyArray, index: tuple[object, ...]) -> Any:
    """Return x with values written at an index of arrays; of several values for one element the last is kept."""
    shape = shape_of(x)
    along = _one_array(index, shape)
    if along is not None and along[1].ndim == 1:
        axis, indices = along
        values = np.broadcast_to(values, (*shape[:axis], indices.size, *shape[axis + 1 :]))
        is_written, source = _last_writers(indices, shape[axis])
        is_written = is_written.reshape((-1,) + (1,) * (len(shape) - axis - 1))
        return np.where(is_written, np.take(values, source, axis=axis), x) if indices.size else x
    at = _positions(shape, index)
    is_written, source = _last_writers(at.ravel(), math.prod(shape))
    if not at.size:
        return x
    written = np.take(np.reshape(np.broadcast_to(values, at.shape), (at.size,)), source, axis=0)
    return np.where(is_written.reshape(shape), np.reshape(written, shape), x)


def _last_writers(indices: NumpyArray, n: int) -> tuple[Any, Any]:
    """Return which of n elements are written, and the position of the value for each (an arbitrary one if not written)."""
    source = np.full(n, -1)
    source[indices] = np.arange(indices.size)
    return source >= 0, np.maximum(source, 0)


def _positions(shape: tuple[int, ...], index: object) -> NumpyArray:
    """Return the flat indices of the elements at an index."""
    return np.asarray(np.arange(math.prod(shape)).reshape(shape)[index])


def _one_array(index: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, NumpyArray] | None:
    """Return (axis, indices along it) for an index of one integer array and full slices; None for any other index."""
    arrays = [item for item in index if isinstance(item, ndarray)]
    if len(arrays) != 1 or arrays[0].dtype == bool or any(item is None for item in index):
        return None
    full = slice(None)
    items = _for_every_axis(tuple([0 if item is arrays[0] else item for item in index]), len(shape))
    if (
        any(type(item) is slice and item != full for item in items)
        or sum(type(item) is not slice for item in items) > 1
    ):
        return None
    axis = next(k for k, item in enumerate(items) if type(item) is not slice)
    return axis, arrays[0] % max(shape[axis], 1)


# -- at index arrays of another library ----------------------------------------------------------------------------------


def take_foreign(x: Any, index: Index, axis: int) -> Any:
    """Compute ``np.take`` with an index of another library, as a sum over all entries of x, masked by the index.

    Whether an index is out of range is unknown before it is computed: the result there is NaN.
    """
    ndim = len(shape_of(x))
    axis %= ndim
    n = shape_of(x)[axis]
    own = len(shape_of(index))
    last = np.moveaxis(x, axis, -1)
    last = np.reshape(last, (*shape_of(last)[:axis], *(1,) * own, *shape_of(last)[axis:]))
    selected = np.reshape(_one_hot(index, n), (*shape_of(index), *(1,) * (ndim - 1 - axis), n))
    return _nan_where_not(np.sum(np.where(selected, last, np.zeros((), x.dtype)), axis=-1), np.any(selected, axis=-1))


def take_along_foreign(x: Any, index: Any, axis: int) -> Any:
    """Compute ``np.take_along_axis`` with an index of another library."""
    n = shape_of(x)[axis]
    selected = _one_hot(np.moveaxis(index, axis, -1), n)
    parts = np.sum(np.where(selected, np.moveaxis(x, axis, -1)[..., None, :], np.zeros((), x.dtype)), axis=-1)
    return np.moveaxis(_nan_where_not(parts, np.any(selected, axis=-1)), -1, axis)


def take_foreign_transpose(x: Any, index: Index, axis: int, length: int) -> Any:
    """Apply the transpose of ``take_foreign``."""
    ndim, own = len(shape_of(x)), len(shape_of(index))
    first = ndim + axis - own + 1
    selected = np.moveaxis(_one_hot(index, length), -1, 0)
    selected = np.reshape(selected, (length, *shape_of(index), *(1,) * (ndim - first - own)))
    parts = np.where(selected, np.expand_dims(x, first), np.zeros((), x.dtype))
    return np.sum(parts, axis=tuple(range(first + 1, first + 1 + own))) if own else parts


def take_along_foreign_transpose(x: Any, index: Any, axis: int, length: int) -> Any:
    """Apply the transpose of ``take_along_foreign``."""
    selected = _one_hot(np.moveaxis(index, axis, -1), length)
    parts = np.where(selected, np.moveaxis(x, axis, -1)[..., None], np.zeros((), x.dtype))
    return np.moveaxis(np.sum(parts, axis=-2), -1, axis)


def _one_hot(index: AnyArray, n: int) -> Any:
    """Return [..., k]: whether the index is k, counted from the front or from the end."""
    numbers = np.arange(n)
    index = np.expand_dims(index, -1)
    return (index == numbers) | (index == numbers - n)


def _nan_where_not(x: AnyArray, found: AnyArray) -> Any:
    return np.where(found, x, np.nan) if x.dtype.kind in "fc" else x
