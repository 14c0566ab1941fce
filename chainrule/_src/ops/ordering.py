"""Sorting and functions of sorted elements, and cumulative functions along an axis.

``op`` makes these functions public: ``chainrule.argsort``, ``chainrule.sort`` …
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays import return_types
from chainrule._src.arrays.types import DTypeLike, NumpyArray, TensorLike
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import axis_of, constant_on_device_of, tensor_of, to_float, to_sum_dtype
from chainrule._src.ops.reductions import any as any_
from chainrule._src.ops.reductions import argmax, nonempty, of_0d, select_values
from chainrule._src.table import reduction, statistics
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.protocol import on_numbers
from chainrule._src.tape.tensor import Tensor, wrap

# -- sorting ---------------------------------------------------------------------------------------------------------


@op(method=True)
def argsort(input: TensorLike, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """Return the indices that sort along ``dim``; equal elements keep their order, and NaN sorts as the largest."""
    x = tensor_of("argsort", input, "biuf")
    axis = axis_of("argsort", dim, x.ndim)
    if axis is None:
        return x.new_zeros((), dtype=np.int64)
    return bind(reduction.argsort, (x,), {"axis": axis, "descending": descending})


@op(method=True, out=True)
def sort(input: TensorLike, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    """Return the sorted values along ``dim`` and their indices; equal elements keep their order."""
    x = tensor_of("sort", input, "biuf")
    axis = axis_of("sort", dim, x.ndim)
    if axis is None:
        return return_types.sort(*of_0d(x))
    return return_types.sort(*select_values("sort", x, argsort(x, axis, descending), axis, True))


@op(method=True, out=True)
def msort(input: TensorLike) -> Tensor:
    """Return the sorted values along the first dimension."""
    return sort(input, 0).values


@op(method=True, out=True)
def topk(input: TensorLike, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Return the k largest (or smallest) elements along ``dim``, and their indices."""
    x = tensor_of("topk", input, "iuf")
    axis = axis_of("topk", dim, x.ndim)
    n = 1 if axis is None else x._raw.shape[axis]
    if not 0 <= k <= n:
        raise RuntimeError(f"selected index k out of range: topk of {k} along a dimension of length {n}")
    if axis is None:
        return return_types.topk(*of_0d(x))
    indices = argsort(x, axis, largest).narrow(axis, 0, k).clone()
    return return_types.topk(*select_values("topk", x, indices, axis, True))


@op(method=True, out=True)
def kthvalue(input: TensorLike, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the k-th smallest element along ``dim`` (counted from 1), and its index."""
    x = tensor_of("kthvalue", input, "iuf")
    axis = axis_of("kthvalue", dim, x.ndim)
    if axis is not None:
        nonempty("kthvalue", x, (axis,))
    n = 1 if axis is None else x._raw.shape[axis]
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}: {k} of {n}")
    if axis is None:
        return return_types.kthvalue(*of_0d(x))
    indices = argsort(x, axis).narrow(axis, k - 1, 1).clone()
    return return_types.kthvalue(*select_values("kthvalue", x, indices, axis, keepdim))


@op(method=True, out=True)
def median(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the (lower) median of all elements, or along ``dim`` with its index; NaN if an element is NaN."""
    x = tensor_of("median", input, "iuf")
    if dim is None:
        if not x.numel():
            return x.new_full((), np.nan if x.dtype.kind == "f" else np.iinfo(x.dtype).min)
        return bind(statistics.median, (x,), {"axis": tuple(range(-x.ndim, 0)), "keepdims": False})
    axis = axis_of("median", dim, x.ndim)
    if axis is None:
        return return_types.median(*of_0d(x))
    nonempty("median", x, (axis,))
    indices = argsort(x, axis).narrow(axis, (x._raw.shape[axis] - 1) // 2, 1)
    if x.dtype.kind == "f":
        nan = ew.isnan(x.detach())
        first = argmax(nan, axis, keepdim=True)
        indices = ew.where(any_(nan, axis, keepdim=True), first, indices)
    return return_types.median(*select_values("median", x, indices, axis, keepdim, overload=1))


@op(method=True, out=True)
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the most frequent value along ``dim`` (the smallest of several), and its last index."""
    x = tensor_of("mode", input, "biuf")
    axis = axis_of("mode", dim, x.ndim)
    if axis is None:
        return return_types.mode(*of_0d(x))
    nonempty("mode", x, (axis,))
    indices = on_numbers(x, functools.partial(_last_mode_index, axis))
    return return_types.mode(*select_values("mode", x, constant_on_device_of(x, indices), axis, keepdim))


def _last_mode_index(axis: int, array: Any) -> NumpyArray:
    """Return the last index of the most frequent value along an axis (counted from the end); the axis is kept."""
    array = np.moveaxis(array, axis, -1)
    flat = array.reshape(-1, array.shape[-1])
    picks = np.empty(flat.shape[0], np.int64)
    for row, values in enumerate(flat):
        _, number, counts = np.unique(values, return_inverse=True, return_counts=True)  # all NaNs count as equal
        picks[row] = np.flatnonzero(number == np.argmax(counts))[-1]
    return np.expand_dims(picks.reshape(array.shape[:-1]), axis)


#: the weight of the higher neighbour in an interpolation, at a position between two
BLENDS = {
    "linear": lambda position, low, high: position - low,
    "lower": lambda position, low, high: 0 * position,
    "higher": lambda position, low, high: high > low,
    "midpoint": lambda position, low, high: 0.5 * (high > low),
    "nearest": lambda position, low, high: position.round() - low,
}


def checked_levels(name: str, x: Tensor, q: Any, interpolation: str) -> NumpyArray:
    """Check the levels of a quantile; return them as a vector or number."""
    if interpolation not in BLENDS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if isinstance(q, Tensor) and q.dtype != x.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor, but got {q.dtype}, {x.dtype}")
    levels = np.asarray(q._array() if isinstance(q, Tensor) else q, dtype=float)
    if levels.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor, but got shape {list(levels.shape)}")
    if ((levels < 0) | (levels > 1)).any():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1], but got {levels}")
    if not x.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    return levels


@op(method=True, out=True)
def quantile(
    input: TensorLike, q: object, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the q-quantile along ``dim`` (q between 0 and 1, a number or a 1-D tensor); NaN if an element is NaN."""
    x = tensor_of("quantile", input, "f")
    levels = checked_levels("quantile", x, q, interpolation)
    flat = x.reshape(-1) if dim is None or not x.ndim else x
    axis = axis_of("quantile", -1 if dim is None else dim, flat.ndim) or -1
    n = flat._raw.shape[axis]
    position = levels * (n - 1)
    low, high = np.floor(position).astype(int), np.ceil(position).astype(int)
    ordered = sort(flat, axis).values.movedim(axis, 0)
    if interpolation == "linear" and isinstance(q, Tensor):
        weight = ew.sub(ew.mul(q, n - 1), wrap(low.astype(x.dtype)))  # carries the gradient of q
    else:
        weight = wrap(np.asarray(BLENDS[interpolation](position, low, high), x.dtype))
    weight = weight.reshape((*levels.shape, *(1,) * (ordered.ndim - 1)))
    result = ew.lerp(ordered[low], ordered[high], weight)
    result = ew.where(ew.isnan(ordered[-1]), ordered[-1], result)  # NaN sorts last
    return with_reduced(result, x.ndim, None if dim is None else axis, levels.ndim) if keepdim and x.ndim else result


def with_reduced(result: Tensor, ndim: int, axis: int | None, levels: int) -> Tensor:
    """Insert the reduced axis (None: all ``ndim`` axes) with length 1 after the axes of the levels."""
    if axis is None:
        return result.reshape((*result.shape[:levels], *(1,) * ndim))
    return result.unsqueeze(axis % ndim + levels)


# -- cumulative functions --------------------------------------------------------------------------------------------


def _scan(name: str, row: Any, x: Any, dim: Any) -> Tensor:
    axis = axis_of(name, dim, x.ndim)
    return x.clone() if axis is None else bind(row, (x,), {"axis": axis})


@op(method=True, in_place=True, out=True, cached=True)
def cumsum(input: TensorLike, dim: int, *, dtype: DTypeLike = None) -> Tensor:
    """Return the running sum along ``dim``."""
    return _scan("cumsum", reduction.cumsum, to_sum_dtype(tensor_of("cumsum", input), dtype), dim)


@op(method=True, in_place=True, out=True, cached=True)
def cumprod(input: TensorLike, dim: int, *, dtype: DTypeLike = None) -> Tensor:
    """Return the running product along ``dim``. The gradient is correct for elements that are zero, too."""
    return _scan("cumprod", reduction.cumprod, to_sum_dtype(tensor_of("cumprod", input), dtype), dim)


@op(method=True, out=True, cached=True)
def logcumsumexp(input: TensorLike, dim: int) -> Tensor:
    """Return the running log Σ exp along ``dim``, computed without overflow."""
    return _scan("logcumsumexp", reduction.logcumsumexp, to_float(tensor_of("logcumsumexp", input, "biuf")), dim)


@op(method=True, out=True)
def cummax(input: TensorLike, dim: int) -> Any:
    """Return the running maximum along ``dim``, and its index (the last of equal ones)."""
    return return_types.cummax(*_cumulative_best("cummax", np.maximum, input, dim))


@op(method=True, out=True)
def cummin(input: TensorLike, dim: int) -> Any:
    """Return the running minimum along ``dim``, and its index (the last of equal ones)."""
    return return_types.cummin(*_cumulative_best("cummin", np.minimum, input, dim))


def _cumulative_best(name: str, better: np.ufunc, input: TensorLike, dim: int) -> tuple[Tensor, Tensor]:
    x = tensor_of(name, input, "biuf")
    axis = axis_of(name, dim, x.ndim)
    if axis is None:
        return of_0d(x)
    indices = on_numbers(x, functools.partial(_last_best, better, axis))
    return select_values(name, x, constant_on_device_of(x, indices), axis, True)


def _last_best(better: np.ufunc, axis: int, array: Any) -> NumpyArray:
    """Return for every element the index of the best element up to it, along an axis (counted from the end)."""
    array = np.moveaxis(array, axis, -1)
    best = better.accumulate(array, axis=-1)
    is_best = array == best
    if array.dtype.kind == "f":
        is_best |= np.isnan(array)
    where = np.where(is_best, np.arange(array.shape[-1]), 0)
    return np.moveaxis(np.maximum.accumulate(where, axis=-1), -1, axis).astype(np.int64)
