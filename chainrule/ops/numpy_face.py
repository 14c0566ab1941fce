"""NumPy's functions on tensors and other array-likes, with NumPy's signatures and semantics.

Rules are NumPy code, so this is also how a rule runs on a Dual or a Batched value.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core.dispatch import bind, rank
from chainrule.core.protocol import UFUNC_METHODS, ArrayLike, implements
from chainrule.core.shapes import from_end, shape_of
from chainrule.core.tensor import Tensor, wrap
from chainrule.ops import products, shaping
from chainrule.table import arithmetic, comparison, indexing, reduction
from chainrule.table import shape as rows

ndarray = np.ndarray


# -- shape and type ---------------------------------------------------------------------------------------------------


@implements(np.shape)
def _shape(a: Any) -> tuple[int, ...]:
    return tuple(shape_of(a))


@implements(np.ndim)
def _ndim(a: Any) -> int:
    return len(shape_of(a))


@implements(np.size)
def _size(a: Any, axis: Any = None) -> int:
    shape = shape_of(a)
    return int(np.prod(shape, dtype=int)) if axis is None else shape[axis]


@implements(np.zeros_like)
def _zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any) -> Any:
    array = np.zeros(shape_of(a) if shape is None else shape, dtype or a.dtype)
    return wrap(array) if isinstance(a, Tensor) else array


@implements(np.ones_like)
def _ones_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any) -> Any:
    array = np.ones(shape_of(a) if shape is None else shape, dtype or a.dtype)
    return wrap(array) if isinstance(a, Tensor) else array


@implements(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any) -> Any:
    array = np.full(shape_of(a) if shape is None else shape, fill_value, dtype or a.dtype)
    return wrap(array) if isinstance(a, Tensor) else array


@implements(np.empty_like)
def _empty_like(prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any) -> Any:
    return _zeros_like(prototype, dtype, shape=shape)


@implements(np.iscomplexobj)
def _iscomplexobj(x: Any) -> bool:
    return bool(x.dtype.kind == "c")


@implements(np.isrealobj)
def _isrealobj(x: Any) -> bool:
    return bool(x.dtype.kind != "c")


@implements(np.result_type)
def _result_type(*arrays_and_dtypes: Any) -> Any:
    return np.result_type(*[a.dtype if hasattr(a, "dtype") else a for a in arrays_and_dtypes])


@implements(np.may_share_memory, np.shares_memory)
def _shares(a: Any, b: Any, max_work: Any = None) -> bool:
    return bool(np.may_share_memory(_raw(a), _raw(b)))


def _raw(x: Any) -> Any:
    return x._data if isinstance(x, Tensor) else x


def _astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return x if x.dtype == np.dtype(dtype) and not copy else rows.cast(x, dtype=np.dtype(dtype))


if hasattr(np, "astype"):
    implements(np.astype)(_astype)


@implements(np.copy)
def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return rows.clone(a)


@implements(np.array_repr, np.array_str)
def _repr(arr: Any, *args: Any, **kwargs: Any) -> str:
    return repr(arr)


# -- elementwise ------------------------------------------------------------------------------------------------------


@implements(np.where)
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return wrap(condition).nonzero(as_tuple=True) if not isinstance(condition, Tensor) else condition.nonzero(as_tuple=True)
    return comparison.where(condition, x, y)


@implements(np.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None, **_: Any) -> Any:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if rank(low) or rank(high) or isinstance(low, ndarray) or isinstance(high, ndarray):
        if low is not None:
            a = comparison.maximum(a, low)
        return a if high is None else comparison.minimum(a, high)
    return comparison.clamp(a, min=low, max=high)


@implements(np.real)
def _real(val: Any) -> Any:
    return arithmetic.real(val) if val.dtype.kind == "c" else val


@implements(np.imag)
def _imag(val: Any) -> Any:
    return arithmetic.imag(val) if val.dtype.kind == "c" else val * 0


@implements(np.angle)
def _angle(z: Any, deg: bool = False) -> Any:
    out = arithmetic.angle(z)
    return out * (180 / np.pi) if deg else out


@implements(np.round, np.around)
def _round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    return comparison.round(a * 10.0**decimals) / 10.0**decimals if decimals else comparison.round(a)


@implements(np.nan_to_num)
def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    return comparison.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@implements(np.sinc)
def _sinc(x: Any) -> Any:
    from chainrule.table import trigonometric

    return trigonometric.sinc(x)


@implements(np.fix)
def _fix(x: Any, out: Any = None) -> Any:
    return comparison.trunc(x)


@implements(np.isclose)
def _isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    near = (abs(a - b) <= atol + rtol * abs(b)) | (a == b)
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near


@implements(np.allclose)
def _allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return bool(np.all(_isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    return shape_of(a1) == np.shape(a2) and bool(np.all(a1 == a2))


# -- reductions -------------------------------------------------------------------------------------------------------

_NOTHING = np._NoValue


def _keep(keepdims: Any) -> bool:
    return builtins.bool(keepdims) if keepdims is not _NOTHING and keepdims is not None else False


def _checked_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(-ndim, 0))
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if not -ndim <= a < ndim:
            raise np.exceptions.AxisError(a, ndim)
    return from_end(axes, ndim)


def _reduce(row: Any, a: Any, axis: Any, keepdims: Any, dtype: Any = None) -> Any:
    if dtype is not None and a.dtype != dtype:
        a = rows.cast(a, dtype=np.dtype(dtype))
    return bind(row, (a,), {"axis": _checked_axes(row.name, axis, len(shape_of(a))), "keepdims": _keep(keepdims)})


@implements(np.sum)
def _sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _NOTHING, where: Any = True) -> Any:
    if where is not True:
        a = np.where(where, a, 0)
    total = _reduce(reduction.sum, a, axis, keepdims, dtype)
    return total if initial is _NOTHING or initial == 0 else total + initial


@implements(np.prod)
def _prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _NOTHING, where: Any = True) -> Any:
    if where is not True:
        a = np.where(where, a, 1)
    total = _reduce(reduction.prod, a, axis, keepdims, dtype)
    return total if initial is _NOTHING or initial == 1 else total * initial


@implements(np.mean)
def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    if where is not True:
        count = np.sum(np.broadcast_to(where, shape_of(a)), axis=axis, keepdims=_keep(keepdims))
        return _sum(a, axis, dtype, keepdims=keepdims, where=where) / count
    if a.dtype.kind in "iub":
        dtype = dtype or np.float64
    return _reduce(reduction.mean, a, axis, keepdims, dtype)


@implements(np.max, np.amax)
def _max(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _NOTHING, where: Any = True) -> Any:
    return _reduce(reduction.amax, a, axis, keepdims)


@implements(np.min, np.amin)
def _min(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _NOTHING, where: Any = True) -> Any:
    return _reduce(reduction.amin, a, axis, keepdims)


@implements(np.ptp)
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return _max(a, axis, keepdims=keepdims) - _min(a, axis, keepdims=keepdims)


@implements(np.var)
def _var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *, correction: Any = _NOTHING, **_: Any) -> Any:
    less = ddof if correction is _NOTHING else correction
    axes = _checked_axes("var", axis, len(shape_of(a)))
    n = 1
    for k in axes:
        n *= shape_of(a)[k]
    away = a - _mean(a, axis, keepdims=True)
    squares = np.square(np.absolute(away)) if a.dtype.kind == "c" else away * away
    return _sum(squares, axis, keepdims=keepdims) / (n - less)


@implements(np.std)
def _std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *, correction: Any = _NOTHING, **_: Any) -> Any:
    return np.sqrt(_var(a, axis, ddof=ddof, keepdims=keepdims, correction=correction))


@implements(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    if weights is None:
        return _mean(a, axis, keepdims=keepdims)
    if shape_of(weights) != shape_of(a) and axis is not None:
        weights = np.reshape(weights, tuple(-1 if i == axis % len(shape_of(a)) else 1 for i in range(len(shape_of(a)))))
    scale = np.sum(np.broadcast_to(weights, shape_of(a)), axis=axis, keepdims=_keep(keepdims))
    return np.sum(a * weights, axis=axis, keepdims=_keep(keepdims)) / scale


@implements(np.any)
def _any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    return _reduce(reduction.any, a, axis, keepdims)


@implements(np.all)
def _all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    return _reduce(reduction.all, a, axis, keepdims)


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return _reduce(reduction.sum, rows.cast(a != 0, dtype=np.dtype(np.int64)), axis, keepdims)


def _flat(a: Any, axis: Any) -> tuple[Any, int]:
    return (np.reshape(a, (-1,)), -1) if axis is None else (a, axis if axis < 0 else axis - len(shape_of(a)))


@implements(np.argmax)
def _argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    a, axis = _flat(a, axis)
    return bind(reduction.argmax, (a,), {"axis": axis, "keepdims": _keep(keepdims)})


@implements(np.argmin)
def _argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    a, axis = _flat(a, axis)
    return bind(reduction.argmin, (a,), {"axis": axis, "keepdims": _keep(keepdims)})


@implements(np.argsort)
def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a, axis = _flat(a, axis)
    return bind(reduction.argsort, (a,), {"axis": axis, "descending": False})


@implements(np.sort)
def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a, axis = _flat(a, axis)
    index = bind(reduction.argsort, (a,), {"axis": axis, "descending": False})
    return indexing.gather(a, index, axis=axis)


@implements(np.cumsum)
def _cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    a, axis = _flat(a, axis)
    return bind(reduction.cumsum, (a,), {"axis": axis})


@implements(np.cumprod)
def _cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    a, axis = _flat(a, axis)
    return bind(reduction.cumprod, (a,), {"axis": axis})


@implements(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = _NOTHING, append: Any = _NOTHING) -> Any:
    parts = [p for p in (prepend, a, append) if p is not _NOTHING]
    if len(parts) > 1:
        a = np.concatenate([np.atleast_1d(p) for p in parts], axis=axis)
    tail = (slice(None),) * (-(axis if axis < 0 else axis - len(shape_of(a))) - 1)
    for _ in range(n):
        a = a[(..., slice(1, None), *tail)] - a[(..., slice(None, -1), *tail)]
    return a


def _reducer(row: Any) -> Any:
    def reduce(a: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, **_: Any) -> Any:
        return _reduce(row, a, axis, keepdims, dtype)

    return reduce


for _ufunc, _row in (
    (np.add, reduction.sum), (np.multiply, reduction.prod), (np.maximum, reduction.amax), (np.minimum, reduction.amin),
    (np.logical_or, reduction.any), (np.logical_and, reduction.all), (np.logaddexp, reduction.logsumexp),
):
    UFUNC_METHODS[_ufunc, "reduce"] = _reducer(_row)
UFUNC_METHODS[np.add, "accumulate"] = lambda a, axis=0, **_: _cumsum(a, axis)
UFUNC_METHODS[np.multiply, "accumulate"] = lambda a, axis=0, **_: _cumprod(a, axis)


def _outer(function: Any) -> Any:
    def outer(a: Any, b: Any, **_: Any) -> Any:
        return function(np.reshape(a, (*shape_of(a), *(1,) * len(shape_of(b)))), b)

    return outer


for _ufunc in (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.power):
    UFUNC_METHODS[_ufunc, "outer"] = _outer(_ufunc)


# -- moves ------------------------------------------------------------------------------------------------------------


@implements(np.reshape)
def _reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    target = shape if shape is not None else newshape
    target = (target,) if isinstance(target, (int, np.integer)) else tuple(target)
    if order != "C":
        raise errors.numpy_keyword("reshape", "order")
    if isinstance(a, Tensor):
        return shaping.reshape(a, target)
    return rows.view(a, shape=shaping._filled("reshape", tuple(shape_of(a)), target))


@implements(np.ravel)
def _ravel(a: Any, order: str = "C") -> Any:
    return _reshape(a, (-1,))


@implements(np.transpose, np.permute_dims)
def _transpose(a: Any, axes: Any = None) -> Any:
    n = len(shape_of(a))
    order = tuple(range(n - 1, -1, -1)) if axes is None else tuple(k % n for k in axes)
    return bind(rows.permute, (a,), {"axes": order})


@implements(np.matrix_transpose)
def _matrix_transpose(x: Any, /) -> Any:
    return _swapaxes(x, -1, -2)


@implements(np.swapaxes)
def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    n = len(shape_of(a))
    return bind(rows.transpose, (a,), {"axis0": axis1 % n - n, "axis1": axis2 % n - n})


@implements(np.moveaxis)
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    n = len(shape_of(a))
    src = [s % n for s in ([source] if isinstance(source, (int, np.integer)) else source)]
    dst = [d % n for d in ([destination] if isinstance(destination, (int, np.integer)) else destination)]
    order = [k for k in range(n) if k not in src]
    for d, s in builtins.sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return bind(rows.permute, (a,), {"axes": tuple(order)})


@implements(np.rollaxis)
def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    n = len(shape_of(a))
    axis %= n
    return _moveaxis(a, axis, start - 1 if axis < start else start)


@implements(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Any:
    axes = axis if isinstance(axis, tuple) else (axis,)
    n = len(shape_of(a)) + len(axes)
    return bind(rows.unsqueeze, (a,), {"axis": tuple(k % n - n for k in axes)})


@implements(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Any:
    shape = shape_of(a)
    n = len(shape)
    axes = tuple(k for k in range(n) if shape[k] == 1) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for k in axes:
        if shape[k] != 1:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return bind(rows.squeeze, (a,), {"axis": tuple(k % n - n for k in axes)})


@implements(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return bind(rows.expand, (array,), {"shape": shape}) if tuple(shape_of(array)) != shape else array


@implements(np.broadcast_arrays)
def _broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    shape = np.broadcast_shapes(*[np.shape(a) for a in args])
    return tuple(np.broadcast_to(a, shape) for a in args)


@implements(np.flip)
def _flip(m: Any, axis: Any = None) -> Any:
    return bind(rows.flip, (m,), {"axis": _checked_axes("flip", axis, len(shape_of(m)))})


implements(np.fliplr)(lambda m: _flip(m, 1))
implements(np.flipud)(lambda m: _flip(m, 0))


@implements(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return np.reshape(_roll(np.reshape(a, (-1,)), shift, 0), shape_of(a))
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    return bind(rows.roll, (a,), {"shift": shifts, "axis": from_end(axes, len(shape_of(a)))})


@implements(np.rot90)
def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    return shaping.rot90(m, k, axes)


@implements(np.concatenate)
def _concatenate(arrays: Any, /, axis: Any = 0, out: Any = None, **_: Any) -> Any:
    arrays = [a if hasattr(a, "shape") else np.asarray(a) for a in arrays]
    if axis is None:
        arrays, axis = [np.reshape(a, (-1,)) for a in arrays], 0
    n = len(shape_of(arrays[0]))
    return bind(rows.cat, tuple(arrays), {"axis": axis if axis < 0 else axis - n})


@implements(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, **_: Any) -> Any:
    arrays = [a if hasattr(a, "shape") else np.asarray(a) for a in arrays]
    n = len(shape_of(arrays[0])) + 1
    return bind(rows.stack, tuple(arrays), {"axis": axis if axis < 0 else axis - n})


implements(np.atleast_1d)(lambda *arys: shaping._each(arys, lambda x: x if shape_of(x) else np.reshape(x, (1,))))
implements(np.atleast_2d)(
    lambda *arys: shaping._each(arys, lambda x: x if len(shape_of(x)) > 1 else np.reshape(x, (1, -1)))
)


@implements(np.vstack)
def _vstack(tup: Any, **_: Any) -> Any:
    return np.concatenate([np.atleast_2d(a) for a in tup], axis=0)


@implements(np.hstack)
def _hstack(tup: Any, **_: Any) -> Any:
    arrays = [np.atleast_1d(a) for a in tup]
    return np.concatenate(arrays, axis=0 if len(np.shape(arrays[0])) == 1 else 1)


@implements(np.column_stack)
def _column_stack(tup: Any) -> Any:
    return np.concatenate([np.reshape(a, (-1, 1)) if len(np.shape(a)) < 2 else a for a in tup], axis=1)


@implements(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return np.concatenate([arr, values], axis=axis)


@implements(np.split, np.array_split)
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    n = shape_of(ary)[axis]
    if isinstance(indices_or_sections, int):
        k = indices_or_sections
        cuts = np.cumsum([0, *[n // k + (i < n % k) for i in range(k)]]).tolist()
    else:
        cuts = [0, *indices_or_sections, n]
    lead = (slice(None),) * (axis % len(shape_of(ary)))
    return [ary[(*lead, slice(a, b))] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


@implements(np.tile)
def _tile(A: Any, reps: Any) -> Any:
    return shaping.tile(A, *((reps,) if isinstance(reps, int) else reps))


@implements(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    a, axis = _flat(a, axis)
    index = np.repeat(np.arange(shape_of(a)[axis]), repeats)
    return bind(indexing.take, (a, index), {"axis": axis})


@implements(np.pad)
def _pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Any:
    n = len(shape_of(array))
    widths = tuple((int(a), int(b)) for a, b in np.broadcast_to(pad_width, (n, 2)))
    if mode == "constant":
        return rows.pad(array, widths=widths, value=kwargs.get("constant_values", 0))
    for k, (a, b) in enumerate(widths):
        if a or b:
            index = np.pad(np.arange(shape_of(array)[k]), (a, b), mode=mode)  # type: ignore[call-overload]
            array = bind(indexing.take, (array, index), {"axis": k - n})
    return array


@implements(np.tril)
def _tril(m: Any, k: int = 0) -> Any:
    return bind(rows.tril, (m,), {"k": k})


@implements(np.triu)
def _triu(m: Any, k: int = 0) -> Any:
    return bind(rows.triu, (m,), {"k": k})


@implements(np.diagonal)
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    n = len(shape_of(a))
    return bind(rows.diagonal, (a,), {"offset": offset, "axis1": axis1 % n - n, "axis2": axis2 % n - n})


@implements(np.diag)
def _diag(v: Any, k: int = 0) -> Any:
    if len(shape_of(v)) == 2:
        return _diagonal(v, k)
    n = shape_of(v)[0] + builtins.abs(k)
    return bind(rows.undiagonal, (v,), {"offset": k, "axis1": -2, "axis2": -1, "sizes": (n, n)})


@implements(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return np.sum(_diagonal(a, offset, axis1, axis2), axis=-1)


@implements(np.meshgrid)
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    return list(shaping.meshgrid(*[x if isinstance(x, Tensor) else wrap(np.asarray(x)) for x in xi], indexing=indexing))


@implements(np.take)
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    a, axis = _flat(a, axis)
    return bind(indexing.take, (a, indices if hasattr(indices, "shape") else np.asarray(indices)), {"axis": axis})


@implements(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    arr, axis = _flat(arr, axis)
    return bind(indexing.gather, (arr, indices), {"axis": axis})


# -- products ---------------------------------------------------------------------------------------------------------


@implements(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if not shape_of(a) or not shape_of(b):
        return a * b
    if len(shape_of(b)) <= 2:
        return np.matmul(a, b)
    return products.tensordot(a, b, ([-1], [-2]))


@implements(np.inner)
def _inner(a: Any, b: Any) -> Any:
    return products.inner(a, b)


@implements(np.outer)
def _outer_product(a: Any, b: Any, out: Any = None) -> Any:
    return np.reshape(a, (-1, 1)) * np.reshape(b, (1, -1))


@implements(np.vdot)
def _vdot(a: Any, b: Any) -> Any:
    return np.dot(np.conjugate(np.reshape(a, (-1,))), np.reshape(b, (-1,)))


@implements(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    return products.tensordot(a, b, axes)


@implements(np.kron)
def _kron(a: Any, b: Any) -> Any:
    return products.kron(a, b)


@implements(np.einsum)
def _einsum(subscripts: str, *operands: Any, out: Any = None, optimize: Any = False, **_: Any) -> Any:
    return products.einsum(subscripts, *operands)


_ = ArrayLike
