"""NumPy's reductions, scans and sorts for tensors and other array-likes, and the reducing methods of ufuncs.

NumPy calls them through ``__array_function__`` (``tape.protocol``).
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from chainrule._src.arrays.shapes import dtype_of, from_end, shape_of
from chainrule._src.arrays.types import (
    AnyArray,
    AnyFunction,
    Dims,
    DTypeLike,
    IntoArray,
    NumpyArray,
    Params,
    TensorLike,
)
from chainrule._src.messages import errors
from chainrule._src.ops.numpy_layout import to_order
from chainrule._src.ops.numpy_lists import asarray_or_tensor
from chainrule._src.ops.shaping import layout
from chainrule._src.rules.primitive import Primitive
from chainrule._src.table import indexing, reduction, statistics
from chainrule._src.table import shape as primitives
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.protocol import UFUNC_METHODS, UFUNCS, call_ufunc, implements, on_numbers, predicate_holds
from chainrule._src.tape.tensor import Tensor, wrap

NOTHING: Any = np._NoValue


def _is_set(option: TensorLike | None) -> bool:
    return option is not NOTHING and option is not None


def checked_axes(axis: Dims, ndim: int) -> tuple[int, ...]:
    """Return NumPy's ``axis`` as axes counted from the end."""
    if axis is None:
        return tuple(range(-ndim, 0))
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if not -ndim <= a < ndim:
            raise np.exceptions.AxisError(a, ndim)
    return from_end(axes, ndim)


def flattened(a: Any, axis: Any) -> tuple[AnyArray, int]:
    """Return (array, axis counted from the end); without an axis, or for a 0-d array, flatten the array."""
    if axis is None or (not shape_of(a) and axis in (0, -1)):
        return np.reshape(a, (-1,)), -1
    return a, checked_axes(operator.index(axis), len(shape_of(a)))[0]


def sliced(a: AnyArray, start: TensorLike, stop: TensorLike | None, axis: int) -> AnyArray:
    """Return ``a[start:stop]`` along an axis."""
    tail = (slice(None),) * (-checked_axes(axis, len(shape_of(a)))[0] - 1)
    return a[(..., slice(start, stop), *tail)]


def _reduce(row: Primitive, a: AnyArray, axis: Dims, keepdims: bool, **params: object) -> AnyArray:
    keep = is_keepdims(keepdims)
    if not shape_of(a) and axis in (0, -1) and row is not reduction.mean and not params:
        axis = ()  # NumPy's ufuncs accept axis 0 and -1 for 0-d arrays; its mean and std do not
    return bind(row, (a,), {"axis": checked_axes(axis, len(shape_of(a))), "keepdims": keep, **params})


def refuse_booleans(a: AnyArray) -> None:
    """Raise NumPy's error for differences of booleans."""
    if a.dtype.kind == "b":
        np.subtract(np.True_, np.True_)


def in_dtype(a: Any, dtype: Any) -> AnyArray:
    return a if dtype is None or a.dtype == dtype else primitives.cast(a, dtype=np.dtype(dtype))


def to_mean_dtype(a: AnyArray, dtype: DTypeLike = None) -> AnyArray:
    """Cast to the dtype in which NumPy averages: the given one; by default float64 for integers and booleans."""
    return in_dtype(a, np.float64 if dtype is None and a.dtype.kind in "iub" else dtype)


# -- sums and products -----------------------------------------------------------------------------------------------


def _total(row: Primitive, pair: np.ufunc, neutral: float) -> AnyFunction:
    def reduce(
        a: AnyArray,
        axis: Dims = None,
        dtype: DTypeLike = None,
        out: object = None,
        keepdims: bool = False,
        initial: TensorLike | None = NOTHING,
        where: TensorLike = True,
    ) -> AnyArray:
        if where is not True:
            a = np.where(where, a, neutral)
        return _with_initial(pair, in_dtype(_reduce(row, in_dtype(a, dtype), axis, keepdims), dtype), initial)

    return reduce


def _with_initial(pair: np.ufunc, result: AnyArray, initial: TensorLike | None) -> AnyArray:
    """Combine a reduction with its ``initial`` value, in the dtype of the reduction."""
    return pair(result, _in_dtype_of(result, initial)) if _is_set(initial) else result


def _in_dtype_of(a: AnyArray, number: Any) -> AnyArray:
    """Cast an initial value to the dtype of a reduction."""
    return in_dtype(number, a.dtype) if hasattr(number, "dtype") else np.array(number, a.dtype)


_sum = implements(np.sum, by_shape=True)(_total(reduction.sum, np.add, 0))
_prod = implements(np.prod, by_shape=True)(_total(reduction.prod, np.multiply, 1))
_of_floats = _total(reduction.logsumexp, np.logaddexp, -np.inf)


def _logaddexp(a: AnyArray, axis: Dims = 0, dtype: DTypeLike = None, keepdims: bool = False, **options: object) -> Any:
    return _of_floats(_in_loop(a, dtype), axis, dtype, keepdims=keepdims, **options)


def _in_loop(a: AnyArray, dtype: DTypeLike) -> AnyArray:
    """Cast the operand of ``np.logaddexp.reduce`` to the dtype of its inner loop."""
    return in_dtype(
        a, np.logaddexp.resolve_dtypes((None, dtype_of(a), None), reduction=True)[1] if dtype is None else dtype
    )


@implements(np.mean, by_shape=True)
def _mean(
    a: AnyArray,
    axis: Dims = None,
    dtype: DTypeLike = None,
    out: object = None,
    keepdims: bool = False,
    *,
    where: TensorLike = True,
) -> AnyArray:
    a = to_mean_dtype(a, dtype)
    if where is True:
        return in_dtype(_reduce(reduction.mean, a, axis, keepdims), dtype)
    within = np.float32 if a.dtype == np.float16 and dtype is None else None
    total = _sum(a, axis, within, keepdims=keepdims, where=where)
    return in_dtype(_divided_by_count(total, _counted(where, a, axis, keepdims)), a.dtype)


def _divided_by_count(total: AnyArray, n: AnyArray) -> AnyArray:
    """Divide a sum by a count, in the sum's dtype; like NumPy, divide float16 and complex64 in double precision."""
    if total.dtype.char not in "eF":
        return total / n
    return in_dtype(in_dtype(total, np.result_type(total.dtype, np.float64)) / n, total.dtype)


def _counted(where: TensorLike, a: AnyArray, axis: Dims, keepdims: bool) -> AnyArray:
    """Return the number of elements selected by ``where``, as plain numbers or as an array-like."""
    return np.sum(np.broadcast_to(where, shape_of(a)), axis=axis, keepdims=is_keepdims(keepdims))


def _spread(formula: AnyFunction) -> Any:
    """Give a formula NumPy's signature of a variance or deviation; the formula gets the degrees of freedom to subtract."""

    def reduce(
        a: AnyArray,
        axis: Dims = None,
        dtype: DTypeLike = None,
        out: object = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: TensorLike = True,
        mean: TensorLike = NOTHING,
        correction: int = NOTHING,
    ) -> AnyArray:
        found = formula(a, axis, dtype, ddof if correction is NOTHING else correction, keepdims, where, mean)
        return in_dtype(found, dtype) if dtype is not None and np.dtype(dtype).kind == "c" else found

    return reduce


def _spread_of_all(row: Primitive) -> Any:
    def formula(
        a: AnyArray, axis: Any, dtype: DTypeLike, ddof: float, keepdims: Any, where: Any, mean: TensorLike
    ) -> AnyArray:
        a = _wide_squares(a, dtype)
        if where is not True:
            a = np.where(where, a, 0)
        if not _is_set(mean) and (where is not True or a.dtype == np.float16):  # NumPy uses no wider dtype here
            mean = _divided_by_count(np.sum(a, axis=axis, keepdims=True), _counted(where, a, axis, True))
        if _is_set(mean):
            deviation = a - mean
            squares = (
                np.square(np.real(deviation)) + np.square(np.imag(deviation))
                if a.dtype.kind == "c"
                else deviation * deviation
            )
            total = np.sum(squares, axis=axis, keepdims=is_keepdims(keepdims), where=where)
            variance = _divided_by_count(total, np.maximum(_counted(where, a, axis, keepdims) - ddof, 0))
            return _root(variance) if row is statistics.std else variance
        return _reduce(row, a, axis, keepdims, correction=ddof)

    return _spread(formula)


def _wide_squares(a: AnyArray, dtype: DTypeLike) -> AnyArray:
    kind = "f" if dtype is None else np.dtype(dtype).kind
    if kind not in "fc" or (dtype is not None and kind != "c" and a.dtype.kind == "c"):
        raise errors.numpy_keyword("var", f"dtype={np.dtype(dtype)} of {a.dtype}")
    return to_mean_dtype(a, dtype)


def _root(variance: AnyArray) -> AnyArray:
    """Return the root of a variance; where it is 0, its derivative is 0, as in the primitive ``std``."""
    none = variance == 0
    return np.where(none, variance, np.sqrt(np.where(none, 1, variance)))


_var = implements(np.var, by_shape=True)(_spread_of_all(statistics.var))
_std = implements(np.std, by_shape=True)(_spread_of_all(statistics.std))


@implements(np.average)
def _average(
    a: AnyArray, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    a = a if hasattr(a, "dtype") else np.asarray(a)
    least, a = [np.float64] if a.dtype.kind in "iub" else [], to_mean_dtype(a)
    shape = shape_of(a)
    if weights is None:
        mean = _mean(a, axis, keepdims=keepdims)
        n = math.prod(shape) / math.prod(shape_of(mean))
        return (mean, np.full(shape_of(mean), n, mean.dtype)) if returned else mean
    weights = asarray_or_tensor(weights)
    if shape_of(weights) != shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        axes = normalize_axis_tuple(axis, len(shape))
        if shape_of(weights) != tuple(shape[k] for k in axes):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        sizes = tuple(n if k in axes else 1 for k, n in enumerate(shape))
        weights = np.reshape(np.transpose(weights, np.argsort(axes)), sizes)
    keep = is_keepdims(keepdims)
    weights = in_dtype(weights, np.result_type(a.dtype, dtype_of(weights), *least))
    scale = np.sum(np.broadcast_to(weights, shape), axis=axis, keepdims=keep)
    if not predicate_holds(asarray_or_tensor(scale), _has_no_zero):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    mean = np.sum(np.multiply(a, weights), axis=axis, keepdims=keep) / scale
    return (mean, scale) if returned else mean


def _has_no_zero(x: AnyArray) -> NumpyArray:
    return np.asarray(np.all(x))


@implements(np.count_nonzero)
def _count_nonzero(a: AnyArray, axis: Dims = None, *, keepdims: bool = False) -> AnyArray:
    return _reduce(reduction.sum, primitives.cast(a != 0, dtype=np.dtype(np.int64)), axis, keepdims)


# -- extrema and truth -----------------------------------------------------------------------------------------------


def _extremum(row: Primitive, pair: np.ufunc) -> Any:
    def reduce(
        a: Any, axis: Dims = None, out: object = None, keepdims: bool = False, initial: Any = NOTHING, where: Any = True
    ) -> AnyArray:
        if where is not True:
            if not _is_set(initial):
                raise ValueError(
                    f"reduction operation '{pair.__name__}' does not have an identity, so to use a where mask one has to "
                    "specify 'initial'"
                )
            a = np.where(where, a, _in_dtype_of(a, initial))
        if _is_set(initial) and not math.prod(shape_of(a)):
            return in_dtype(np.sum(a, axis=axis, keepdims=is_keepdims(keepdims)) + initial, a.dtype)
        return _with_initial(pair, _reduce(row, a, axis, keepdims), initial)

    return reduce


_max = implements(np.max, np.amax, by_shape=True)(_extremum(reduction.amax, np.maximum))
_min = implements(np.min, np.amin, by_shape=True)(_extremum(reduction.amin, np.minimum))


@implements(np.ptp, by_shape=True)
def _ptp(a: AnyArray, axis: Dims = None, out: object = None, keepdims: bool = False) -> AnyArray:
    return _max(a, axis, keepdims=keepdims) - _min(a, axis, keepdims=keepdims)


def _truth(row: Primitive, neutral: bool) -> AnyFunction:
    def reduce(
        a: AnyArray, axis: Dims = None, out: object = None, keepdims: bool = False, *, where: TensorLike = True
    ) -> AnyArray:
        return _reduce(row, a if where is True else np.where(where, a, neutral), axis, keepdims)

    return reduce


_any = implements(np.any)(_truth(reduction.any, False))
_all = implements(np.all)(_truth(reduction.all, True))


def _arg_reduction(row: Primitive) -> AnyFunction:
    def search(a: AnyArray, axis: int | None = None, out: object = None, *, keepdims: bool = False) -> AnyArray:
        keep = is_keepdims(keepdims)
        flat, along = flattened(a, axis)
        found = bind(row, (flat,), {"axis": along, "keepdims": keep and axis is not None})
        return np.reshape(found, (1,) * len(shape_of(a))) if keep and axis is None else found

    return search


implements(np.argmax)(_arg_reduction(reduction.argmax))
implements(np.argmin)(_arg_reduction(reduction.argmin))


# -- ignoring NaN ----------------------------------------------------------------------------------------------------


def without_nan(a: AnyArray, neutral: float) -> AnyArray:
    """Replace every NaN by a number."""
    return np.where(np.isnan(a), neutral, a) if a.dtype.kind in "fc" else a


def _of_numbers(function: AnyFunction, neutral: float) -> AnyFunction:
    def reduce(
        a: AnyArray,
        axis: Dims = None,
        dtype: DTypeLike = None,
        out: object = None,
        keepdims: bool = False,
        **options: object,
    ) -> AnyArray:
        options |= {} if dtype is None else {"dtype": dtype}
        return function(without_nan(a, neutral), axis=axis, keepdims=keepdims, **options)

    return reduce


implements(np.nansum)(_of_numbers(_sum, 0))
implements(np.nanprod)(_of_numbers(_prod, 1))


def _extremum_of_numbers(function: AnyFunction, neutral: float) -> AnyFunction:
    reduce = _of_numbers(function, neutral)
    return lambda a, axis=None, out=None, keepdims=False, **options: reduce(a, axis, keepdims=keepdims, **options)


implements(np.nanmax)(_extremum_of_numbers(_max, -np.inf))
implements(np.nanmin)(_extremum_of_numbers(_min, np.inf))


def _valid(a: AnyArray, where: TensorLike) -> AnyArray:
    """Return a mask of the selected elements that are not NaN."""
    not_nan = ~np.isnan(a)
    return not_nan if where is True else not_nan & where


@implements(np.nanmean)
def _nanmean(
    a: AnyArray,
    axis: Dims = None,
    dtype: DTypeLike = None,
    out: object = None,
    keepdims: bool = False,
    *,
    where: TensorLike = True,
) -> AnyArray:
    where = True if where is NOTHING else where
    if a.dtype.kind not in "fc":
        return _mean(a, axis, dtype, keepdims=keepdims, where=where)
    _check_inexact(dtype)
    n = _counted(_valid(a, where), a, axis, keepdims)
    return _divided_by_count(_sum(without_nan(a, 0), axis, dtype, keepdims=keepdims, where=where), n)


def _check_inexact(dtype: DTypeLike) -> None:
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        raise TypeError("If a is inexact, then dtype must be inexact")


def _spread_of_numbers(spread: Any, finish: Any) -> Any:
    def formula(
        a: AnyArray, axis: Dims, dtype: DTypeLike, ddof: float, keepdims: bool, where: TensorLike, mean: TensorLike
    ) -> AnyArray:
        where = True if where is NOTHING else where
        if a.dtype.kind not in "fc":
            return spread(a, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean)
        _check_inexact(dtype)
        _wide_squares(a, dtype)
        valid = _valid(a, where)
        mean = mean if _is_set(mean) else _nanmean(a, axis, dtype, keepdims=True, where=where)
        deviation = in_dtype(np.where(valid, a - mean, 0), a.dtype)
        left = _counted(valid, a, axis, keepdims) - ddof
        total = np.sum(
            np.real(deviation * np.conjugate(deviation)), axis=axis, dtype=dtype, keepdims=is_keepdims(keepdims)
        )
        return finish(np.where(left > 0, total / in_dtype(np.where(left > 0, left, 1), total.dtype), np.nan))

    return _spread(formula)


implements(np.nanvar)(_spread_of_numbers(_var, lambda variance: variance))
implements(np.nanstd)(_spread_of_numbers(_std, _root))


def _refuse(name: str, others: Params) -> None:
    """Raise for NumPy's arguments that a function does not support."""
    for keyword, value in others.items():
        if value is not NOTHING and not (value is True and keyword == "where"):
            raise errors.numpy_keyword(name, keyword)


def is_keepdims(keepdims: bool) -> bool:
    """Return whether ``keepdims`` was given and is true."""
    return keepdims is not NOTHING and builtins.bool(operator.index(keepdims))


# -- sorts and scans -------------------------------------------------------------------------------------------------


@implements(np.argsort)
def _argsort(
    a: AnyArray, axis: Dims = -1, kind: Any = None, order: str | None = None, *, stable: Any = None
) -> AnyArray:
    a, along = flattened(a, axis)
    sort_indices = functools.partial(
        np.argsort, axis=along, kind=kind, stable=stable
    )  # NumPy's order of equal elements
    return wrap(on_numbers(a, sort_indices)) if isinstance(a, Tensor) else on_numbers(a, sort_indices)


@implements(np.sort)
def _sort(
    a: AnyArray, axis: int = -1, kind: object = None, order: str | None = None, *, stable: object = None
) -> AnyArray:
    if axis is not None:
        checked_axes(axis, len(shape_of(a)))  # also for 0-d arrays
    if kind is not None:
        np.sort([], kind=kind)  # raises for an unknown kind
    a, along = flattened(a, axis)
    return with_same_layout(_sorted, a, along)


def _sorted(a: AnyArray, along: int) -> AnyArray:
    return indexing.gather(a, bind(reduction.argsort, (a,), {"axis": along, "descending": False}), axis=along)


def with_same_layout(function: AnyFunction, a: Any, along: int) -> AnyArray:
    """Apply a function along an axis; its result gets the array's memory layout, as in NumPy (``order="K"``)."""
    steps = layout(a).strides if isinstance(a, Tensor) else a.strides
    n = len(steps)
    order = sorted(range(n), key=lambda k: -abs(steps[k]))
    if order == list(range(n)):
        return function(a, along)
    result = function(np.transpose(a, order), order.index(along % n) - n)
    return np.transpose(result, [order.index(k) for k in range(n)])


@implements(np.median)
def _median(
    a: AnyArray, axis: Dims = None, out: object = None, overwrite_input: bool = False, keepdims: bool = False
) -> AnyArray:
    if not math.prod(shape_of(a)):
        return _mean(a, axis, keepdims=keepdims)
    a = to_mean_dtype(a)
    ordered, _ = sorted_first(a, checked_axes(axis, len(shape_of(a))))
    n = shape_of(ordered)[0]
    result = _quantile_result(np.mean(ordered[(n - 1) // 2 : n // 2 + 1], axis=0), ordered, a, axis, keepdims)
    if not isinstance(axis, (int, np.integer)):
        return result
    axis = int(axis) % len(shape_of(a))
    order = [k for k in primitives.memory_order(a) if k != axis]  # the memory layout of the mean of the middle elements
    return primitives.with_memory_order(
        result, [axis, *order] if is_keepdims(keepdims) else np.argsort(np.argsort(order)).tolist()
    )


@implements(np.percentile)
def _percentile(a: Any, q: Any, axis: Dims = None, out: object = None, **options: object) -> AnyArray:
    return _quantile(a, q / 100 if is_weak(q) else np.true_divide(q, 100), axis, **options)


def is_weak(q: IntoArray) -> bool:
    """Return whether the level of a quantile promotes weakly, like a Python number."""
    if type(q) is np.float64:
        return bool(np.quantile(np.zeros(1, np.float32), q * 0).dtype == np.float32)  # True up to NumPy 2.2
    return type(q) in (int, float)


def _between(alpha: float, beta: float) -> Any:
    """Return the position of Hyndman and Fan's quantiles of n elements, computed as in NumPy."""
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


#: methods that select an element, and the positions between elements for the others
_PLACES = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
_BETWEEN = {
    "linear": lambda n, q: (n - 1) * q,
    "midpoint": lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
    "interpolated_inverted_cdf": _between(0, 1),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0, 0),
    "median_unbiased": _between(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _between(3 / 8.0, 3 / 8.0),
}


@implements(np.quantile)
def _quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    **others: Any,
) -> Any:
    _refuse("quantile", {keyword: value for keyword, value in others.items() if value is not None})
    if method not in _PLACES and method not in _BETWEEN:
        raise errors.numpy_keyword("quantile", f"method={method!r}")
    if not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 1)):
        raise errors.quantile_range()
    if a.dtype.kind == "c":
        raise errors.complex_quantiles()
    weak, q = is_weak(q), np.asarray(q)
    exact = method in _PLACES or (method == "linear" and q.dtype.kind in "iu")  # no interpolation
    if not exact:
        refuse_booleans(a)
    if a.dtype.kind in "iub" and not exact:
        a = in_dtype(a, np.promote_types(a.dtype, q.dtype if q.dtype.kind == "f" else np.float64))
    ordered, rest = sorted_first(a, checked_axes(axis, len(shape_of(a))))
    last = shape_of(ordered)[0] - 1
    if exact:
        result = ordered[np.quantile(np.arange(last + 1), q, method=method)]
    else:
        position = np.asarray(_BETWEEN[method](last + 1, q))
        low, high, near, share = neighbours(position, last)
        share = float(share) if weak else np.reshape(share, (*position.shape, *(1,) * len(rest)))
        below, above, start = [ordered[index.astype(np.intp)] for index in (low, high, near)]
        result = start + share * (above - below)
    return _quantile_result(result, ordered, a, axis, keepdims)


def neighbours(position: AnyArray, last: TensorLike) -> tuple[Any, Any, Any, Any]:
    """Return the indices below and above, the nearer of them, and the fraction of the difference that NumPy adds to it."""
    low = np.clip(np.floor(position), 0, last)
    high = np.where(position < 0, low, np.minimum(low + 1, last))
    share = position - low
    above = share >= 0.5
    return low, high, np.where(above, high, low), np.where(above, share - 1, share)


def _quantile_result(result: AnyArray, ordered: AnyArray, a: AnyArray, axis: Dims, keepdims: bool) -> AnyArray:
    """Return a quantile of sorted elements; NaN sorts last, and any NaN makes the quantile NaN. Keep the axes if requested."""
    if predicate_holds(ordered[-1], _has_nan):
        result = np.where(np.isnan(ordered[-1]), ordered[-1], result)
    result = to_order(result, "C")
    if not is_keepdims(keepdims):
        return result
    shape, axes = shape_of(a), checked_axes(axis, len(shape_of(a)))
    front = shape_of(result)[: len(shape_of(result)) - len(shape) + len(axes)]
    return np.reshape(
        result, (*front, *[1 if k in axes else n for k, n in zip(range(-len(shape), 0), shape, strict=True)])
    )


def _has_nan(x: AnyArray) -> AnyArray:
    return np.asarray(np.isnan(x).any())


def sorted_first(a: AnyArray, axes: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Sort the elements of some axes along one leading axis; also return the shape of the other axes."""
    moved = merged_first(a, axes)
    return np.sort(moved, axis=0), tuple(shape_of(moved)[1:])


def merged_first(a: AnyArray, axes: tuple[int, ...]) -> AnyArray:
    """Merge some axes into one leading axis; return a 0-d array unchanged."""
    shape = shape_of(a)
    ndim = len(shape)
    if not ndim:
        return np.reshape(a, (1,))
    others = [k for k in range(-ndim, 0) if k not in axes]
    count = math.prod([shape[k] for k in axes])
    return np.reshape(np.transpose(a, [k % ndim for k in (*axes, *others)]), (count, *[shape[k] for k in others]))


@implements(np.cumsum, by_shape=True)
def _cumsum(a: AnyArray, axis: Dims = None, dtype: DTypeLike = None, out: object = None) -> AnyArray:
    return _scan(reduction.cumsum, a, axis, dtype)


@implements(np.cumprod, by_shape=True)
def _cumprod(a: AnyArray, axis: int | None = None, dtype: DTypeLike = None, out: object = None) -> AnyArray:
    return _scan(reduction.cumprod, a, axis, dtype)


def _scan(row: Primitive, a: AnyArray, axis: Dims, dtype: DTypeLike) -> AnyArray:
    a, along = flattened(a, axis)
    if dtype is None and a.dtype.kind in "iub" and a.dtype.itemsize < 8:
        dtype = np.uint64 if a.dtype.kind == "u" else np.int64
    return bind(row, (in_dtype(a, dtype),), {"axis": along})


@implements(np.diff, by_shape=True)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: TensorLike = NOTHING, append: IntoArray = NOTHING) -> Any:
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    if not hasattr(a, "shape"):
        a = asarray_or_tensor(a)
    if not shape_of(a):
        raise ValueError("diff requires input that is at least one dimensional")
    if prepend is not NOTHING or append is not NOTHING:
        parts = [asarray_or_tensor(p) for p in (prepend, a, append) if p is not NOTHING]
        edge = list(shape_of(a))
        edge[checked_axes(axis, len(edge))[0]] = 1
        a = np.concatenate([p if shape_of(p) else np.broadcast_to(p, edge) for p in parts], axis=axis)
    tail = (slice(None),) * (-checked_axes(axis, len(shape_of(a)))[0] - 1)
    step = np.not_equal if dtype_of(a).kind == "b" else np.subtract
    for _ in range(n):
        a = step(a[(..., slice(1, None), *tail)], a[(..., slice(None, -1), *tail)])
    return a


@implements(np.trapezoid, by_shape=True)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> AnyArray:
    y = np.moveaxis(y, axis, -1)
    width = dx if x is None else np.diff(x) if len(np.shape(x)) == 1 else np.diff(np.moveaxis(x, axis, -1))
    return np.sum(np.true_divide(np.multiply(width, y[..., 1:] + y[..., :-1]), 2), axis=-1)


# -- methods of ufuncs -----------------------------------------------------------------------------------------------


def _reducer(row: Primitive, function: AnyFunction) -> AnyFunction:
    def reduce(
        a: AnyArray, axis: Dims = 0, dtype: DTypeLike = None, keepdims: bool = False, **options: object
    ) -> AnyArray:
        if dtype is None and not options:  # the fast path for calls from rules
            return _reduce(row, a, axis, keepdims)
        return function(a, axis, keepdims=keepdims, **({} if dtype is None else {"dtype": dtype}), **options)

    return reduce


def accumulating(function: AnyFunction) -> AnyFunction:
    """Return a ufunc's ``accumulate``: a function of an array along an axis."""

    def accumulate(a: AnyArray, axis: int = 0, dtype: DTypeLike = None) -> object:
        if not shape_of(a):
            raise TypeError("cannot accumulate on a scalar")
        return function(a, axis, dtype)

    return accumulate


UFUNC_METHODS.update(
    {
        (np.add, "reduce"): _reducer(reduction.sum, _sum),
        (np.multiply, "reduce"): _reducer(reduction.prod, _prod),
        (np.maximum, "reduce"): _reducer(reduction.amax, _max),
        (np.minimum, "reduce"): _reducer(reduction.amin, _min),
        (np.logical_or, "reduce"): _reducer(reduction.any, _any),
        (np.logical_and, "reduce"): _reducer(reduction.all, _all),
        (np.logaddexp, "reduce"): _logaddexp,
        (np.add, "accumulate"): accumulating(functools.partial(_scan, reduction.cumsum)),
        (np.multiply, "accumulate"): accumulating(functools.partial(_scan, reduction.cumprod)),
        (np.logaddexp, "accumulate"): accumulating(
            lambda a, axis, dtype: _scan(reduction.logcumsumexp, _in_loop(a, dtype), axis, dtype)
        ),
    }
)


def outer(ufunc: np.ufunc) -> AnyFunction:
    """Return ``ufunc.outer``: the second operand broadcasts against new axes of the first."""

    def pairs(a: IntoArray, b: IntoArray, dtype: DTypeLike = None) -> AnyArray:
        a, b = asarray_or_tensor(a), asarray_or_tensor(b)  # numbers are arrays here, which are not weak
        x = np.reshape(a, (*shape_of(a), *(1,) * len(shape_of(b))))
        return call_ufunc(ufunc, "__call__", (x, b), None, {} if dtype is None else {"dtype": dtype})

    return pairs


for _ufunc in UFUNCS:
    if _ufunc.nin == 2 and _ufunc.nout == 1 and _ufunc.signature is None:
        UFUNC_METHODS[_ufunc, "outer"] = outer(_ufunc)
