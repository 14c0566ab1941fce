"""NumPy's statistics of samples for tensors: covariances, quantiles without NaN, histograms, and set operations.

NumPy calls them through ``__array_function__`` (``tape.protocol``).

The bin of a sample, and which samples are distinct, have no derivative. Weights and the values themselves have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, Dims, DTypeLike, IntoArray, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.numpy_calculus import (
    as_arraylike,
    cast_safely,
    plain_values,
    read_values,
    take,
    to_inexact,
    wrap_result,
)
from chainrule._src.ops.numpy_reductions import NOTHING, checked_axes, is_keepdims, is_weak, neighbours, sorted_first
from chainrule._src.table import indexing
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.protocol import ArrayLike, implements
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.view import copy_scalar_view

ndarray = np.ndarray
_FLOAT = np.dtype(np.float64)


def concrete_values(x: Any, what: str) -> Any:
    """Return the values as a plain array, where the result depends on them; raise inside ``vmap``."""
    if isinstance(x, Tensor):
        return x._concrete(what)
    values = read_values(x)
    if values is None:
        raise errors.escaped_to_numpy(type(x).__name__)
    return values


def _is_ours(x: AnyArray) -> bool:
    return isinstance(x, (Tensor, ArrayLike))


def concrete_or_same(x: Any, what: str) -> Any:
    """Return the values of tensors; anything else, such as an index, is returned unchanged."""
    return concrete_values(x, what) if _is_ours(x) else x


# -- covariances -----------------------------------------------------------------------------------------------------


@implements(np.cov)
def _cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: TensorLike = False,
    ddof: float | None = None,
    fweights: Sequence[TensorLike] | None = None,
    aweights: AnyArray | None = None,
    *,
    dtype: Any = None,
) -> AnyArray:
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    x = _variables(m, y, rowvar, dtype)
    n = shape_of(x)[1]
    if ddof is None:
        ddof = 0 if bias else 1
    w = None if fweights is None else _weights("fweights", fweights, n)
    if aweights is not None:
        aweights = _weights("aweights", aweights, n)
        w = aweights if w is None else w * aweights
    total = n if w is None else np.sum(w)
    mean = np.mean(x, axis=1, keepdims=True) if w is None else np.sum(x * w, axis=1, keepdims=True) / total
    if aweights is None or not ddof:
        freedom = total - ddof if ddof else total
    else:
        freedom = total - ddof * np.sum(w * aweights) / total
    count = plain_values(freedom)
    if count is not None and count <= 0:
        errors.warn("Degrees of freedom <= 0 for slice", RuntimeWarning)
        freedom = 0.0
    deviation = x - mean
    others = np.conjugate(deviation if w is None else deviation * w)
    with np.errstate(divide="ignore"):
        factor = np.true_divide(1, freedom)
    return np.squeeze(np.matmul(deviation, np.swapaxes(others, 0, 1)) * factor)


def _variables(m: AnyArray, y: AnyArray, rowvar: bool, dtype: DTypeLike) -> AnyArray:
    """Return a matrix with a row for every variable and a column for every observation."""
    parts = [as_arraylike(a) for a in (m, y) if a is not None]
    for name, part in zip("my", parts, strict=False):
        if len(shape_of(part)) > 2:
            raise ValueError(f"{name} has more than 2 dimensions")
    kind = np.dtype(dtype) if dtype is not None else np.result_type(np.float64, *[p.dtype for p in parts])
    rows = []
    for part in parts:
        matrix = np.atleast_2d(cast(part, kind))
        transposed = not rowvar and (len(shape_of(part)) != 1 if part is parts[0] else shape_of(matrix)[0] != 1)
        rows.append(np.swapaxes(matrix, 0, 1) if transposed else matrix)
    return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=0)


def _weights(name: str, w: IntoArray, n: int) -> Any:
    w = cast(as_arraylike(w), _FLOAT)
    if len(shape_of(w)) > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if shape_of(w)[0] != n:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    values = plain_values(w)
    if values is not None and name == "fweights" and not (values == np.around(values)).all():
        raise TypeError("fweights must be integer")
    if values is not None and (values < 0).any():
        raise ValueError(f"{name} cannot be negative")
    return w


@implements(np.corrcoef)
def _corrcoef(x: AnyArray, y: AnyArray | None = None, rowvar: bool = True, *, dtype: DTypeLike = None) -> AnyArray:
    c = _cov(x, y, rowvar, dtype=dtype)
    if not shape_of(c):
        return c / c
    deviation = np.sqrt(np.real(np.diagonal(c)))
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind != "c":
        return np.clip(c, -1, 1)
    return np.clip(np.real(c), -1, 1) + 1j * np.clip(np.imag(c), -1, 1)


# -- quantiles without NaN -------------------------------------------------------------------------------------------


@implements(np.nanquantile)
def _nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: object = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = NOTHING,
    *,
    weights: object = None,
) -> AnyArray:
    if method != "linear" or weights is not None:
        raise errors.numpy_keyword("nanquantile", "weights" if weights is not None else f"method={method!r}")
    if _is_ours(q):
        raise errors.numpy_keyword("nanquantile", "q as a tensor")
    if a.dtype.kind == "c":
        raise errors.complex_quantiles()
    if a.dtype.kind in "iub":  # has no NaN
        return np.quantile(a, q, axis, keepdims=keepdims)
    if not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 1)):
        raise errors.quantile_range()
    return _at_ranks(a, q, axis, keepdims)


def _at_ranks(a: AnyArray, q: IntoArray | None, axis: Dims, keepdims: bool) -> AnyArray:
    """Return quantiles of the elements that are not NaN, by linear interpolation; None: the median."""
    a = to_inexact(a)
    shape = shape_of(a)
    axes = checked_axes(axis, len(shape))
    ordered, rest = sorted_first(a, axes)
    if is_keepdims(keepdims):
        rest = tuple([1 if k in axes else n for k, n in zip(range(-len(shape), 0), shape, strict=True)])
    final = (*np.shape(q), *rest) if q is not None else rest
    if 0 in shape_of(ordered):
        return wrap_result(np.full(final, np.nan, a.dtype))
    last = np.maximum(np.count_nonzero(~np.isnan(ordered), axis=0) - 1, 0)

    def at(ranks: AnyArray) -> AnyArray:
        return np.take_along_axis(ordered, cast(ranks, np.dtype(np.int64)), axis=0)

    if q is None:
        middle = last[None] / 2
        return copy_scalar_view(
            np.reshape(np.mean(np.stack([at(np.floor(middle)), at(np.ceil(middle))]), axis=0), final)
        )
    weak, q = is_weak(q), np.asarray(q)
    q = np.reshape(q, (-1, *(1,) * len(shape_of(last))))
    position = q * cast(last, q.dtype)
    if q.dtype.kind in "iu":
        return copy_scalar_view(np.reshape(at(position), final))
    low, high, near, share = neighbours(position, cast(last, q.dtype))
    return copy_scalar_view(
        np.reshape(at(near) + (cast(share, a.dtype) if weak else share) * (at(high) - at(low)), final)
    )


@implements(np.nanpercentile)
def _nanpercentile(
    a: AnyArray, q: AnyArray, axis: int | None = None, out: Any = None, *options: object, **named: object
) -> AnyArray:
    if not _is_ours(q):
        q = q / 100 if is_weak(q) else np.true_divide(q, 100)
    return _nanquantile(a, q, axis, out, *options, **named)


@implements(np.nanmedian)
def _nanmedian(
    a: AnyArray, axis: Dims = None, out: object = None, overwrite_input: bool = False, keepdims: bool = NOTHING
) -> AnyArray:
    return _at_ranks(a, None, axis, keepdims)


# -- counts ----------------------------------------------------------------------------------------------------------


@implements(np.bincount)
def _bincount(x: AnyArray, /, weights: AnyArray | None = None, minlength: int = 0) -> AnyArray:
    places = concrete_values(x, "np.bincount()")
    if weights is None:
        return wrap(np.bincount(places, minlength=minlength))
    length = np.bincount(places, minlength=minlength).size  # raises NumPy's errors
    weights = cast_safely(as_arraylike(weights), _FLOAT)
    if shape_of(weights) != places.shape:
        raise ValueError("The weights and list don't have the same length.")
    return bind(indexing.take_add, (weights, places.astype(np.int64)), {"axis": -1, "length": length})


@implements(np.histogram_bin_edges)
def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    samples, counted = concrete_values(a, "np.histogram()"), concrete_or_same(bins, "np.histogram()")
    weighted = None if weights is None else plain_values(weights)  # NumPy only checks whether there are any
    edges = np.histogram_bin_edges(samples, counted, range, weighted)
    if np.ndim(counted):
        return wrap_result(bins) if _is_ours(bins) else wrap(edges)
    if range is not None or not samples.size or samples.min() == samples.max():
        return wrap(edges)
    return cast(wrap_result(np.linspace(np.min(a), np.max(a), edges.size)), edges.dtype)


@implements(np.histogram)
def _histogram(
    a: AnyArray,
    bins: IntoArray = 10,
    range: tuple[int, ...] | None = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[AnyArray, AnyArray]:
    """Compute ``np.histogram``. Weights have a derivative, and so have edges computed from the samples' extremes."""
    if weights is not None and tuple(np.shape(weights)) != tuple(np.shape(a)):
        raise ValueError("weights should have the same shape as a.")
    edges = _histogram_bin_edges(a, bins, range, weights)
    samples, limits = np.ravel(concrete_values(a, "np.histogram()")), concrete_values(edges, "np.histogram()")
    if _is_ours(weights):
        bin_index = np.searchsorted(limits, samples, side="right") - 1
        bin_index[samples == limits[-1]] = limits.size - 2
        inside = np.flatnonzero((samples >= limits[0]) & (samples <= limits[-1]))
        inside_weights = take(np.reshape(weights, (-1,)), inside)
        count = bind(indexing.take_add, (inside_weights, bin_index[inside]), {"axis": -1, "length": limits.size - 1})
    else:
        count = wrap(np.histogram(samples, limits, weights=None if weights is None else np.ravel(weights))[0])
    return (count / cast(np.diff(edges), _FLOAT) / np.sum(count) if density else count), edges


# -- sets ------------------------------------------------------------------------------------------------------------


@implements(np.unique)
def _unique(
    ar: AnyArray,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    **sorted: bool,
) -> Any:
    options: Any = {"return_inverse": return_inverse, "return_counts": return_counts, "equal_nan": equal_nan}
    _, first, *more = np.unique(concrete_values(ar, "unique()"), return_index=True, axis=axis, **options)
    found = _select(ar, first, axis)
    parts = [found, *([wrap(first)] if return_index else []), *map(wrap, more)]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _select(x: AnyArray, index: AnyArray, axis: int | None = None) -> AnyArray:
    """Return elements of the raveled x, or entries along an axis."""
    if axis is None:
        return take(np.reshape(as_arraylike(x), (-1,)), index)
    return take(x, index, checked_axes(axis, len(shape_of(x)))[0])


implements(np.unique_values)(lambda x, /: _unique(x, equal_nan=False))


def _unique_parts(function: AnyFunction) -> None:
    """Implement the Array API's functions, which return named tuples."""

    def call(x: AnyArray, /) -> Any:
        data = concrete_values(x, "unique()")
        parts = [wrap(part) for part in function(data)]
        parts[0] = _select(x, np.unique(data, return_index=True, equal_nan=False)[1])
        return type(function(data))(*parts)

    implements(function)(call)


for _function in (np.unique_all, np.unique_counts, np.unique_inverse):
    _unique_parts(_function)


@implements(np.union1d)
def _union1d(ar1: AnyArray, ar2: AnyArray) -> AnyArray:
    return np.unique(np.concatenate([as_arraylike(ar1), as_arraylike(ar2)], axis=None))


@implements(np.intersect1d)
def _intersect1d(ar1: AnyArray, ar2: IntoArray, assume_unique: bool = False, return_indices: bool = False) -> Any:
    one, two = concrete_values(ar1, "np.intersect1d()"), concrete_values(ar2, "np.intersect1d()")
    _, first, second = np.intersect1d(one, two, assume_unique=assume_unique, return_indices=True)
    found = cast(wrap_result(_select(ar1, first)), np.result_type(one, two))
    return (found, wrap(first), wrap(second)) if return_indices else found


@implements(np.setdiff1d)
def _setdiff1d(ar1: AnyArray, ar2: IntoArray, assume_unique: bool = False) -> AnyArray:
    first = np.reshape(as_arraylike(ar1), (-1,)) if assume_unique else np.unique(ar1)
    is_missing = np.isin(concrete_values(first, "np.setdiff1d()"), concrete_values(ar2, "np.setdiff1d()"), invert=True)
    return take(wrap_result(first), np.flatnonzero(is_missing))


@implements(np.setxor1d)
def _setxor1d(ar1: AnyArray, ar2: IntoArray, assume_unique: bool = False) -> AnyArray:
    parts = [as_arraylike(a) if assume_unique else np.unique(a) for a in (ar1, ar2)]
    joined = np.concatenate(parts, axis=None)
    values = concrete_values(joined, "np.setxor1d()")
    order = np.argsort(values, kind="stable")
    change = values[order][1:] != values[order][:-1]
    is_unique = np.concatenate([[True], change])[: values.size] & np.concatenate([change, [True]])[: values.size]
    return take(joined, order[is_unique])


@implements(np.isin)
def _isin(
    element: IntoArray, test_elements: IntoArray, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> AnyArray:
    values, test = plain_values(element), plain_values(test_elements)
    if values is not None and test is not None:
        return wrap(np.isin(values, test, assume_unique, invert, kind=kind))
    found = np.any(np.expand_dims(as_arraylike(element), -1) == np.reshape(as_arraylike(test_elements), (-1,)), axis=-1)
    return ~found if invert else found


def _nanarg(function: AnyFunction, search: Any, aside: float) -> None:
    def call(a: AnyArray, axis: Any = None, out: object = None, *, keepdims: bool = NOTHING) -> AnyArray:
        missing = np.isnan(a)
        all_missing = plain_values(np.all(missing, axis=axis))
        if all_missing is not None and all_missing.any():
            raise ValueError("All-NaN slice encountered")
        return search(np.where(missing, aside, a), axis=axis, keepdims=is_keepdims(keepdims))

    implements(function)(call)


_nanarg(np.nanargmax, np.argmax, -np.inf)
_nanarg(np.nanargmin, np.argmin, np.inf)


def _without_derivative(function: AnyFunction) -> None:
    """Implement a function with integer, boolean or plain results that depends on the values only."""
    name = f"np.{function.__name__}()"

    def plain(x: AnyArray) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)(map(plain, x))
        return concrete_or_same(x, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*map(plain, args), **{key: plain(value) for key, value in kwargs.items()})
        if isinstance(result, tuple):
            return tuple(wrap(np.asarray(part)) for part in result)
        return result if isinstance(result, bool) else wrap(result)

    implements(function)(call)


for _plain_function in (np.lexsort, np.array_equiv, np.isreal, np.iscomplex, np.unravel_index, np.ravel_multi_index):
    _without_derivative(_plain_function)
