"""Reductions and scans as users call them: ``dim`` and ``keepdim`` (NumPy's ``axis`` and ``keepdims`` work, too)."""

from __future__ import annotations

import builtins
from collections import namedtuple
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core import dtypes
from chainrule.core.dispatch import bind, cast
from chainrule.core.faces import operand
from chainrule.core.dtypes import as_dtype, get_default_dtype
from chainrule.core.tensor import Tensor
from chainrule.ops import elementwise as ew
from chainrule.table import indexing, reduction

max_result = namedtuple("max", ["values", "indices"])
min_result = namedtuple("min", ["values", "indices"])
sort_result = namedtuple("sort", ["values", "indices"])
topk_result = namedtuple("topk", ["values", "indices"])
median_result = namedtuple("median", ["values", "indices"])
kthvalue_result = namedtuple("kthvalue", ["values", "indices"])
cummax_result = namedtuple("cummax", ["values", "indices"])
cummin_result = namedtuple("cummin", ["values", "indices"])
mode_result = namedtuple("mode", ["values", "indices"])
aminmax_result = namedtuple("aminmax", ["min", "max"])
var_mean_result = namedtuple("var_mean", ["var", "mean"])
std_mean_result = namedtuple("std_mean", ["std", "mean"])


def _input(name: str, x: Any) -> Any:
    if not isinstance(x, Tensor):
        x = operand(name, 0, x)
        if not hasattr(x, "dtype"):
            raise errors.wrong_operand(name, 0, x)
    return x


def axes_of(name: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """``dim`` as axes counted from the end; None is all of them."""
    if dim is None:
        return tuple(range(-ndim, 0))
    if isinstance(dim, (tuple, list)):
        if not dim:
            return tuple(range(-ndim, 0))
        found = [errors.check_dim(name, d, ndim) for d in dim]
        if len(set(found)) != len(found):
            raise RuntimeError(f"{name}: dim {found[-1]} appears multiple times in the list of dims")
        return tuple(f - ndim for f in found) if ndim else ()
    index = errors.check_dim(name, dim, ndim)
    return (index - ndim,) if ndim else ()


def _named(dim: Any, keepdim: bool, axis: Any, keepdims: Any) -> tuple[Any, bool]:
    return (axis if dim is None else dim), (keepdim if keepdims is None else builtins.bool(keepdims))


def _floating(x: Any, dtype: Any) -> Any:
    if dtype is not None:
        return cast(x, as_dtype(dtype))
    return cast(x, get_default_dtype()) if x.dtype.kind in "iub" else x


def sum(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None, keepdims: Any = None,
    out: Any = None,
) -> Tensor:
    """Sum over ``dim`` (an int, a tuple, or None for everything). Booleans and integers are summed as int64.

    >>> import chainrule as cr
    >>> cr.sum(cr.tensor([[1., 2.], [3., 4.]]), dim=0)
    tensor([4., 6.])
    """
    x = _input("sum", input)
    dim, keepdim = _named(dim, keepdim, axis, keepdims)
    axes = axes_of("sum", dim, x.ndim)
    if dtype is not None:
        x = cast(x, as_dtype(dtype))
    elif x.dtype.kind in "iub":
        x = cast(x, np.dtype(np.int64))
    params: dict[str, Any] = {"axis": axes, "keepdims": keepdim}
    return _done(reduction.sum, x, params, out)


def _done(row: Any, x: Any, params: dict[str, Any], out: Any) -> Tensor:
    result: Tensor = bind(row, (x,), params)
    return result if out is None else out.copy_(result)


def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum over ``dim``, with nan counted as 0."""
    x = _input("nansum", input)
    return sum(ew.where(ew.isnan(x), 0.0, x) if x.dtype.kind in "fc" else x, dim, keepdim, dtype=dtype)


def mean(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None, keepdims: Any = None,
    out: Any = None,
) -> Tensor:
    """Mean over ``dim``.

    Raises:
        RuntimeError: the tensor is of an integer dtype and no floating ``dtype`` was given.
    """
    x = _input("mean", input)
    dim, keepdim = _named(dim, keepdim, axis, keepdims)
    if dtype is not None:
        x = cast(x, as_dtype(dtype))
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{x.dtype}. Use .float().mean(), or mean(dtype=float32)."
        )
    return _done(reduction.mean, x, {"axis": axes_of("mean", dim, x.ndim), "keepdims": keepdim}, out)


def nanmean(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Mean over ``dim`` of the elements that are not nan."""
    x = _input("nanmean", input)
    return nansum(x, dim, keepdim) / sum(ew.logical_not(ew.isnan(x)), dim, keepdim)


def prod(
    input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None,
    keepdims: Any = None,
) -> Tensor:
    """Product of all elements, or along ``dim``. The gradient is right where elements are zero, too."""
    x = _input("prod", input)
    dim, keepdim = _named(dim, keepdim, axis, keepdims)
    if dtype is not None:
        x = cast(x, as_dtype(dtype))
    elif x.dtype.kind in "iub":
        x = cast(x, np.dtype(np.int64))
    return bind(reduction.prod, (x,), {"axis": axes_of("prod", dim, x.ndim), "keepdims": keepdim})


def _nonempty(name: str, x: Any, axes: tuple[int, ...]) -> None:
    for a in axes:
        if x._data.shape[a] == 0:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                "the 'dim' argument."
                if len(axes) == x.ndim
                else f"{name}(): Expected reduction dim {a % x.ndim} to have non-zero size."
            )


def amax(input: Any, dim: Any = (), keepdim: bool = False, *, axis: Any = None, keepdims: Any = None) -> Tensor:
    """Maximum over ``dim``; elements that tie share the gradient evenly."""
    return _extremum("amax", reduction.amax, input, axis if axis is not None else dim, keepdims or keepdim)


def amin(input: Any, dim: Any = (), keepdim: bool = False, *, axis: Any = None, keepdims: Any = None) -> Tensor:
    """Minimum over ``dim``; elements that tie share the gradient evenly."""
    return _extremum("amin", reduction.amin, input, axis if axis is not None else dim, keepdims or keepdim)


def _extremum(name: str, row: Any, input: Any, dim: Any, keepdim: Any) -> Tensor:
    x = _input(name, input)
    axes = axes_of(name, dim, x.ndim)
    _nonempty(name, x, axes)
    return bind(row, (x,), {"axis": axes, "keepdims": builtins.bool(keepdim)})


def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    """Minimum and maximum."""
    return aminmax_result(amin(input, dim, keepdim), amax(input, dim, keepdim))


def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, axis: Any = None) -> Any:
    """Maximum of all elements; with ``dim`` a pair (values, indices); with another tensor the elementwise maximum."""
    return _max_min("max", ew.maximum, amax, reduction.argmax, max_result, input, dim, keepdim, other, axis)


def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, axis: Any = None) -> Any:
    """Minimum of all elements; with ``dim`` a pair (values, indices); with another tensor the elementwise minimum."""
    return _max_min("min", ew.minimum, amin, reduction.argmin, min_result, input, dim, keepdim, other, axis)


def _max_min(
    name: str, pair: Any, whole: Any, where: Any, result: Any, input: Any, dim: Any, keepdim: bool, other: Any, axis: Any
) -> Any:
    if isinstance(dim, Tensor) or other is not None:
        return pair(input, dim if other is None else other)
    dim = axis if dim is None else dim
    x = _input(name, input)
    if dim is None:
        if x.numel() == 0:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                "the 'dim' argument."
            )
        return whole(x)
    axes = axes_of(name, dim, x.ndim)
    _nonempty(name, x, axes)
    if not axes:
        return result(x.clone(), x.new_zeros((), dtype=np.int64))
    indices = bind(where, (x.detach(),), {"axis": axes[0], "keepdims": True})
    return result(*_picked(x, indices, axes[0], keepdim))


def _picked(x: Any, indices: Any, axis: int, keepdim: bool) -> tuple[Any, Any]:
    """Values at indices along an axis, and the indices, with that axis dropped unless kept."""
    values = indexing.gather(x, indices, axis=axis)
    if keepdim:
        return values, indices
    return values.squeeze(axis), indices.squeeze(axis)


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Index of the maximum, of everything (flattened) or along ``dim``. Integers: no gradient."""
    return _arg("argmax", reduction.argmax, input, dim, keepdim)


def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Index of the minimum, of everything (flattened) or along ``dim``. Integers: no gradient."""
    return _arg("argmin", reduction.argmin, input, dim, keepdim)


def _arg(name: str, row: Any, input: Any, dim: int | None, keepdim: bool) -> Tensor:
    x = _input(name, input)
    if x.numel() == 0 and (dim is None or x.shape[dim] == 0):
        raise IndexError(f"{name}(): Expected reduction dim {dim or 0} to have non-zero size.")
    if dim is None:
        flat = bind(row, (x.reshape(-1),), {"axis": -1, "keepdims": False})
        return flat.reshape((1,) * x.ndim) if keepdim else flat
    axes = axes_of(name, dim, x.ndim)
    if not axes:
        return x.new_zeros((), dtype=np.int64)
    return bind(row, (x,), {"axis": axes[0], "keepdims": keepdim})


def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Indices that sort along ``dim``."""
    x = _input("argsort", input)
    axes = axes_of("argsort", dim, x.ndim)
    if not axes:
        return x.new_zeros((), dtype=np.int64)
    return bind(reduction.argsort, (x,), {"axis": axes[0], "descending": descending})


def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Sorted values along ``dim``, and where they came from."""
    x = _input("sort", input)
    axes = axes_of("sort", dim, x.ndim)
    if not axes:
        return sort_result(x.clone(), x.new_zeros((), dtype=np.int64))
    indices = argsort(x.detach(), axes[0], descending)
    return sort_result(indexing.gather(x, indices, axis=axes[0]), indices)


def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) elements along ``dim``, and their indices."""
    x = _input("topk", input)
    axis = axes_of("topk", dim, x.ndim)
    n = x.shape[axis[0]] if axis else 1
    if not 0 <= k <= n:
        raise RuntimeError(f"selected index k out of range: topk of {k} along a dimension of length {n}")
    if not axis:
        return topk_result(x.clone(), x.new_zeros((), dtype=np.int64))
    indices = argsort(x.detach(), axis[0], descending=largest).narrow(axis[0], 0, k)
    return topk_result(indexing.gather(x, indices, axis=axis[0]), indices)


def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element along ``dim`` (counted from 1), and its index."""
    x = _input("kthvalue", input)
    axis = axes_of("kthvalue", dim, x.ndim)[0]
    if not 1 <= k <= x.shape[axis]:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    indices = argsort(x.detach(), axis).narrow(axis, k - 1, 1)
    return kthvalue_result(*_picked(x, indices, axis, keepdim))


def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The (lower) median of everything, or along ``dim`` with its index."""
    x = _input("median", input)
    if dim is None:
        flat = x.reshape(-1)
        return median(flat, 0).values
    axis = axes_of("median", dim, x.ndim)
    if not axis:
        return median_result(x.clone(), x.new_zeros((), dtype=np.int64))
    k = (x.shape[axis[0]] - 1) // 2
    indices = argsort(x.detach(), axis[0]).narrow(axis[0], k, 1)
    nan = ew.isnan(x.detach()) if x.dtype.kind == "f" else None
    if nan is not None and builtins.bool(nan.any()):
        first_nan = argmax(cast(nan, np.dtype(np.int64)), axis[0], keepdim=True)
        indices = ew.where(any(nan, axis[0], keepdim=True), first_nan, indices)
    return median_result(*_picked(x, indices, axis[0], keepdim))


def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent value along ``dim`` (the smallest of those), and an index of it."""
    x = _input("mode", input)
    axis = axes_of("mode", dim, x.ndim)[0]
    array = np.moveaxis(x._array(), axis, -1)
    flat = array.reshape(-1, array.shape[-1])
    picks = np.empty(flat.shape[0], np.int64)
    for row, values in enumerate(flat):
        found, counts = np.unique(values, return_counts=True)
        picks[row] = np.flatnonzero(values == found[np.argmax(counts)])[-1]
    indices = np.expand_dims(picks.reshape(array.shape[:-1]), axis)
    return mode_result(*_picked(x, Tensor.new_tensor(x, indices, dtype=np.int64), axis, keepdim))


def var(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None, axis: Any = None,
    keepdims: Any = None,
) -> Tensor:
    """Variance over ``dim``, divided by n − correction (1 by default; 0 with ``unbiased=False``)."""
    return _var("var", input, dim, unbiased, keepdim, correction, axis, keepdims)[0]


def _var(
    name: str, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any, axis: Any, keepdims: Any
) -> tuple[Tensor, Tensor]:
    x = _input(name, input)
    if isinstance(dim, builtins.bool):
        dim, unbiased = None, dim
    dim, keepdim = _named(dim, keepdim, axis, keepdims)
    if x.dtype.kind not in "fc":
        raise RuntimeError(f"{name}: only support floating point and complex dtypes, got {x.dtype}: call .float() first")
    axes = axes_of(name, dim, x.ndim)
    n = 1
    for a in axes:
        n *= x._data.shape[a]
    less = correction if correction is not None else 0 if unbiased is False else 1
    center = bind(reduction.mean, (x,), {"axis": axes, "keepdims": True})
    away = ew.sub(x, center)
    squares = ew.square(ew.abs(away)) if x.dtype.kind == "c" else ew.square(away)
    total = bind(reduction.sum, (squares,), {"axis": axes, "keepdims": keepdim})
    divisor = builtins.max(n - less, 0)
    out = ew.true_divide(total, divisor) if divisor else ew.mul(total, np.nan)
    return out, center if keepdim else _dropped(center, axes)


def _dropped(x: Any, axes: tuple[int, ...]) -> Any:
    return x.squeeze(axes) if axes else x


def std(
    input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None, axis: Any = None,
    keepdims: Any = None,
) -> Tensor:
    """Standard deviation over ``dim``: the square root of :func:`var`; its gradient where it is 0 is 0."""
    return _root(_var("std", input, dim, unbiased, keepdim, correction, axis, keepdims)[0])


def _root(variance: Tensor) -> Tensor:
    zero = ew.eq(variance, 0)
    if type(zero._data) is np.ndarray and not zero._data.any():
        return ew.sqrt(variance)
    return ew.where(zero, 0.0, ew.sqrt(ew.where(zero, 1.0, variance)))


def var_mean(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """Variance and mean."""
    return var_mean_result(*_var("var_mean", input, dim, unbiased, keepdim, correction, None, None))


def std_mean(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """Standard deviation and mean."""
    variance, center = _var("std_mean", input, dim, unbiased, keepdim, correction, None, None)
    return std_mean_result(_root(variance), center)


def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Tensor:
    """log Σ exp(x) over ``dim``, without overflow."""
    x = _floating(_input("logsumexp", input), None)
    return bind(reduction.logsumexp, (x,), {"axis": axes_of("logsumexp", dim, x.ndim), "keepdims": keepdim})


def softmax(input: Any, dim: int | None = None, dtype: Any = None, *, axis: Any = None) -> Tensor:
    """exp(x) / Σ exp(x) along ``dim``: positive, and 1 in sum."""
    return _soft("softmax", reduction.softmax, input, axis if dim is None else dim, dtype)


def log_softmax(input: Any, dim: int | None = None, dtype: Any = None, *, axis: Any = None) -> Tensor:
    """The logarithm of the softmax along ``dim``, without overflow."""
    return _soft("log_softmax", reduction.log_softmax, input, axis if dim is None else dim, dtype)


def _soft(name: str, row: Any, input: Any, dim: int | None, dtype: Any) -> Tensor:
    x = _floating(_input(name, input), dtype)
    if dim is None:
        raise TypeError(f"{name}() missing 1 required positional argument: 'dim' (the axis whose elements sum to 1)")
    axes = axes_of(name, dim, x.ndim)
    if not axes:
        return bind(row, (x.reshape(1),), {"axis": -1}).reshape(())
    return bind(row, (x,), {"axis": axes[0]})


def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The p-norm over ``dim`` (everything by default). Its gradient where it is 0 is 0."""
    x = _floating(_input("norm", input), dtype)
    order = 2.0 if p in ("fro", None) else float(p)
    return bind(
        reduction.vector_norm, (x,), {"ord": order, "axis": axes_of("norm", dim, x.ndim), "keepdims": keepdim}
    )


def dist(input: Any, other: Any, p: float = 2) -> Tensor:
    """The p-norm of input − other."""
    return norm(ew.sub(input, other), p)


def _scan(name: str, row: Any, input: Any, dim: Any, dtype: Any) -> Tensor:
    x = _input(name, input)
    if dtype is not None:
        x = cast(x, as_dtype(dtype))
    elif x.dtype.kind in "iub":
        x = cast(x, np.dtype(np.int64))
    axes = axes_of(name, dim, x.ndim)
    return bind(row, (x,), {"axis": axes[0]}) if axes else x.clone()


def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Tensor:
    """Running sum along ``dim``."""
    return _scan("cumsum", reduction.cumsum, input, dim, dtype)


def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Tensor:
    """Running product along ``dim``. The gradient is right where elements are zero, too."""
    return _scan("cumprod", reduction.cumprod, input, dim, dtype)


def logcumsumexp(input: Any, dim: int) -> Tensor:
    """Running log Σ exp along ``dim``, without overflow."""
    return _scan("logcumsumexp", reduction.logcumsumexp, _floating(_input("logcumsumexp", input), None), dim, None)


def _running(name: str, better: Any, result: Any, input: Any, dim: int) -> Any:
    x = _input(name, input)
    axes = axes_of(name, dim, x.ndim)
    if not axes:
        return result(x.clone(), x.new_zeros((), dtype=np.int64))
    array = np.moveaxis(x._array(), axes[0], -1)
    steps = np.arange(array.shape[-1])
    best = better.accumulate(array, axis=-1)
    where = np.where((array == best) | np.isnan(array), steps, 0)  # the last of equals, as PyTorch has it
    indices = np.moveaxis(np.maximum.accumulate(where, axis=-1), -1, axes[0])
    picks = x.new_tensor(indices, dtype=np.int64)
    return result(indexing.gather(x, picks, axis=axes[0]), picks)


def cummax(input: Any, dim: int) -> Any:
    """Running maximum along ``dim``, and the index of it."""
    return _running("cummax", np.maximum, cummax_result, input, dim)


def cummin(input: Any, dim: int) -> Any:
    """Running minimum along ``dim``, and the index of it."""
    return _running("cummin", np.minimum, cummin_result, input, dim)


def any(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether any element is nonzero."""
    x = _input("any", input)
    return bind(reduction.any, (x,), {"axis": axes_of("any", dim, x.ndim), "keepdims": keepdim})


def all(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are nonzero."""
    x = _input("all", input)
    return bind(reduction.all, (x,), {"axis": axes_of("all", dim, x.ndim), "keepdims": keepdim})


def count_nonzero(input: Any, dim: Any = None) -> Tensor:
    """How many elements are not zero."""
    return sum(ew.ne(input, 0), dim)


def quantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The q-quantile along ``dim`` (q between 0 and 1, a number or a 1-D tensor)."""
    x = _input("quantile", input)
    flat = x.reshape(-1) if dim is None else x
    axis = axes_of("quantile", -1 if dim is None else dim, flat.ndim)[0]
    ordered = sort(flat, axis).values
    n = flat.shape[axis]
    levels = np.asarray(q._array() if isinstance(q, Tensor) else q, dtype=float)
    if ((levels < 0) | (levels > 1)).any():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    position = levels * (n - 1)
    low, high = np.floor(position).astype(int), np.ceil(position).astype(int)
    weight = position - low
    if interpolation == "lower":
        weight = 0 * weight
    elif interpolation == "higher":
        weight = (high > low).astype(float)
    elif interpolation == "nearest":
        weight = np.round(position) - low
    elif interpolation == "midpoint":
        weight = np.where(high > low, 0.5, 0.0)
    elif interpolation != "linear":
        raise RuntimeError(
            f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    moved = ordered.movedim(axis, 0)
    shape = (*levels.shape, *(1,) * (moved.ndim - 1))
    blend = moved.new_tensor(weight.reshape(shape), dtype=moved.dtype)
    result = ew.lerp(moved[low], moved[high], blend)
    if keepdim:
        where = (axis % flat.ndim) + levels.ndim
        result = result.unsqueeze(where) if dim is not None else result.reshape((*levels.shape, *(1,) * x.ndim))
    return result


_ = dtypes
