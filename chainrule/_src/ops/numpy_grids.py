"""NumPy's grids, polynomial fits and tensor equations for tensors: composites with NumPy's signatures.

NumPy calls them through ``__array_function__`` (``tape.protocol``).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Dims, DTypeLike, IntoArray, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.numpy_calculus import as_arraylike, plain_values, to_inexact
from chainrule._src.ops.numpy_lists import promoted, promotion_operand
from chainrule._src.ops.numpy_reductions import checked_axes
from chainrule._src.table import windows
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.protocol import UFUNCS, implements
from chainrule._src.tape.view import copy_scalar_view, make_read_only

_FLOAT = np.dtype(np.float64)


# -- windows ---------------------------------------------------------------------------------------------------------


@implements(np.lib.stride_tricks.sliding_window_view)
def _sliding_window_view(
    x: AnyArray, window_shape: Any, axis: Dims = None, *, subok: bool = False, writeable: bool = False
) -> AnyArray:
    ndim = len(shape_of(x))
    sizes = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
    axes = tuple(range(ndim)) if axis is None else checked_axes(tuple(axis) if isinstance(axis, list) else axis, ndim)
    if len(sizes) != len(axes):
        raise ValueError(f"a window of shape {sizes} has {len(sizes)} sizes for {len(axes)} axes of the array")
    for at, size in zip(axes, sizes, strict=True):
        length = shape_of(x)[at % ndim]
        if not 0 <= size <= length:
            raise ValueError(f"window shape cannot be larger than input array shape: {size} along an axis of {length}")
        x = bind(windows.unfold, (x,), {"axis": at % ndim - len(shape_of(x)), "size": size, "step": 1})
    return x if writeable else make_read_only(x)


# -- grids -----------------------------------------------------------------------------------------------------------


@implements(np.linspace)
def _linspace(
    start: TensorLike,
    stop: TensorLike,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
    *,
    device: DeviceLike = None,
) -> Any:
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    start, stop = (x if type(x) in (int, float, complex) else as_arraylike(x) for x in (start, stop))
    kind = np.result_type(promotion_operand(start), promotion_operand(stop), 0.0)
    start, stop = cast(as_arraylike(start), kind), cast(as_arraylike(stop), kind)
    steps = num - 1 if endpoint else num
    difference = stop - start
    step = difference / steps if steps > 0 else difference * np.nan
    count = np.reshape(np.arange(num, dtype=kind), (num, *(1,) * len(shape_of(difference))))
    y = count * (step if steps > 0 else difference) + start
    if endpoint and num > 1:
        y = np.concatenate([y[:-1], np.expand_dims(np.broadcast_to(stop, shape_of(difference)), 0)])
    y = np.moveaxis(y, 0, axis) if axis else y
    if dtype is not None:
        y = cast(np.floor(y) if np.dtype(dtype).kind in "iu" else y, np.dtype(dtype))
    return (y, step) if retstep else y


@implements(np.logspace)
def _logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: TensorLike = 10.0,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> AnyArray:
    if np.ndim(base):
        start, stop, base = np.broadcast_arrays(*(as_arraylike(x) for x in (start, stop, base)))
        base = np.expand_dims(base, axis)
    steps = np.linspace(start, stop, num=num, endpoint=endpoint, axis=axis)
    powers = np.power(base, steps) if type(base) in (int, float, complex) else np.power(*promoted(base, steps))
    return powers if dtype is None else cast(powers, np.dtype(dtype))


@implements(np.geomspace)
def _geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    start, stop = to_inexact(start), to_inexact(stop)
    for end in (plain_values(start), plain_values(stop)):
        if end is not None and not end.all():
            raise ValueError("Geometric sequence cannot include zero")
    kind = np.result_type(start.dtype, stop.dtype, _FLOAT)
    start, stop = cast(start, kind), cast(stop, kind)
    turn = start / np.absolute(start) if kind.kind == "c" else np.sign(start)
    y = np.logspace(np.log10(start / turn), np.log10(stop / turn), num=num, endpoint=endpoint) * turn
    num = shape_of(y)[0]
    last = 1 if endpoint and num > 1 else 0
    ends = [np.expand_dims(np.broadcast_to(end, shape_of(y)[1:]), 0) for end in (start, stop)]
    if num:
        y = np.concatenate([ends[0], y[1 : num - last], *ends[1 : 1 + last]])
    y = np.moveaxis(y, 0, axis) if axis else y
    return y if dtype is None else cast(y, np.dtype(dtype))


# -- polynomials and products ----------------------------------------------------------------------------------------


@implements(np.vander)
def _vander(x: AnyArray, N: int | None = None, increasing: bool = False) -> AnyArray:
    x = as_arraylike(x)
    if len(shape_of(x)) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    n = shape_of(x)[0]
    columns = n if N is None else N
    x = cast(x, np.promote_types(x.dtype, int))
    repeated = np.broadcast_to(np.expand_dims(x, 1), (n, max(columns - 1, 0)))
    powers = np.cumprod(np.concatenate([np.ones((n, 1), x.dtype), repeated], axis=1), axis=1)[:, :columns]
    return powers if increasing else np.copy(np.flip(powers, 1))


@implements(np.polyfit)
def _polyfit(
    x: AnyArray,
    y: AnyArray,
    deg: int,
    rcond: object = None,
    full: bool = False,
    w: AnyArray | None = None,
    cov: object = False,
) -> Any:
    order = int(deg) + 1
    x, y = to_inexact(x), to_inexact(y)
    _check_polyfit(x, y, deg)
    if x.dtype == y.dtype == np.float16:
        raise TypeError("array type float16 is unsupported in linalg")
    n = shape_of(x)[0]
    if rcond is None:
        rcond = n * float(np.finfo(x.dtype).eps)
    lhs, rhs = np.vander(x, order), y
    if w is not None:
        w = to_inexact(w)
        if len(shape_of(w)) != 1:
            raise TypeError("expected a 1-d array for weights")
        if shape_of(w)[0] != n:
            raise TypeError("expected w and y to have the same length")
        lhs, rhs = lhs * w[:, None], rhs * (w[:, None] if len(shape_of(y)) == 2 else w)
    scale = np.sqrt(np.sum(lhs * lhs, axis=0))
    lhs = lhs / scale
    kind = np.promote_types(lhs.dtype, rhs.dtype)
    c, residuals, rank, s = np.linalg.lstsq(cast(lhs, kind), cast(rhs, kind), rcond)
    c = c / (scale[:, None] if len(shape_of(y)) == 2 else scale)
    if full:
        return c, residuals, cast(rank, np.dtype(np.intc)), s, rcond
    if plain_values(rank) is not None and int(plain_values(rank)) != order:
        errors.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning)
    return (c, _coefficient_cov(lhs, scale, residuals, n - order, cov, y)) if cov else c


def _check_polyfit(x: AnyArray, y: AnyArray, deg: int) -> None:
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if len(shape_of(x)) != 1:
        raise TypeError("expected 1D vector for x")
    if not shape_of(x)[0]:
        raise TypeError("expected non-empty vector for x")
    if not 1 <= len(shape_of(y)) <= 2:
        raise TypeError("expected 1D or 2D array for y")
    if shape_of(x)[0] != shape_of(y)[0]:
        raise TypeError("expected x and y to have same length")


def _coefficient_cov(
    lhs: AnyArray, scale: AnyArray, residuals: AnyArray, freedom: int, cov: object, y: AnyArray
) -> AnyArray:
    spread = np.linalg.inv(np.swapaxes(lhs, 0, 1) @ lhs) / np.outer(scale, scale)
    if cov != "unscaled" and freedom <= 0:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    factor = 1 if cov == "unscaled" else residuals / freedom
    return spread * factor if len(shape_of(y)) == 1 else spread[:, :, None] * factor


def _coefficients(p: IntoArray) -> AnyArray:
    """Return coefficients without leading zeros, as ``np.poly1d`` does; inside ``vmap``, all of them."""
    p = np.atleast_1d(as_arraylike(p))
    values = plain_values(p)
    return p if values is None else p[int(np.argmax(values != 0)) if values.any() else values.size :]


def _sum_of_polynomials(function: Any) -> None:
    def call(a1: TensorLike, a2: TensorLike) -> AnyArray:
        a1, a2 = np.atleast_1d(as_arraylike(a1)), np.atleast_1d(as_arraylike(a2))
        n = max(shape_of(a1)[0], shape_of(a2)[0])
        return function(*(np.pad(a, (n - shape_of(a)[0], 0)) for a in (a1, a2)))

    implements({np.add: np.polyadd, np.subtract: np.polysub}[function])(call)


_sum_of_polynomials(np.add)
_sum_of_polynomials(np.subtract)


@implements(np.polymul)
def _polymul(a1: AnyArray, a2: IntoArray) -> AnyArray:
    return np.convolve(_coefficients(a1), _coefficients(a2))


@implements(np.polyder)
def _polyder(p: AnyArray, m: Any = 1) -> AnyArray:
    m = operator.index(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = np.atleast_1d(as_arraylike(p))
    for _ in range(m):
        n = shape_of(p)[0]
        p = np.multiply(p[:-1], np.arange(n - 1, 0, -1))
    return p


@implements(np.polyint)
def _polyint(p: AnyArray, m: Any = 1, k: IntoArray | None = None) -> AnyArray:
    m = operator.index(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = np.zeros(m) if k is None else np.atleast_1d(as_arraylike(k))
    k = np.broadcast_to(k, (m,)) if shape_of(k)[0] == 1 and m > 1 else k
    if shape_of(k)[0] < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    p = np.atleast_1d(as_arraylike(p))
    for step in range(m):
        p = np.concatenate([np.true_divide(p, np.arange(shape_of(p)[0], 0, -1)), k[step : step + 1]])
    return p


@implements(np.poly)
def _poly(seq_of_zeros: AnyArray) -> AnyArray:
    zeros = np.atleast_1d(as_arraylike(seq_of_zeros))
    if len(shape_of(zeros)) != 1:
        raise NotImplementedError(
            "np.poly of a matrix of tensors needs its eigenvalues, which have no rule: pass the sequence of eigenvalues"
        )
    zeros = cast(zeros, np.dtype(np.mintypecode(zeros.dtype.char)))
    p = np.ones_like(zeros, shape=(1,))
    for k in range(shape_of(zeros)[0]):
        zero = np.zeros_like(zeros, shape=(1,))
        p = np.concatenate([p, zero]) - zeros[k] * np.concatenate([zero, p])
    return p


if hasattr(np, "matvec"):  # since NumPy 2.2
    UFUNCS[np.matvec] = lambda a, v: np.matmul(a, np.expand_dims(v, -1))[..., 0]
    UFUNCS[np.vecmat] = lambda v, a: np.matmul(np.expand_dims(np.conjugate(v) if v.dtype.kind == "c" else v, -2), a)[
        ..., 0, :
    ]


def _ldexp(x: Any, n: Any) -> AnyArray:
    weak = x if type(x) in (bool, int, float) else None
    x, n = as_arraylike(x), as_arraylike(n)
    kind = np.ldexp(np.zeros((), x.dtype) if weak is None else weak, np.zeros((), n.dtype)).dtype
    return cast(x, kind) * cast(np.exp2(cast(n, _FLOAT)), kind)


UFUNCS[np.ldexp] = _ldexp


@implements(np.linalg.tensorsolve)
def _tensorsolve(a: Any, b: AnyArray, axes: Any = None) -> AnyArray:
    a, b = as_arraylike(a), as_arraylike(b)
    if axes is not None:
        last = [k % len(shape_of(a)) for k in axes]
        a = np.transpose(a, [k for k in range(len(shape_of(a))) if k not in last] + last)
    shape = shape_of(a)[len(shape_of(b)) :]
    n = int(np.prod(shape, dtype=int))
    if int(np.prod(shape_of(a), dtype=int)) != n * n:
        raise np.linalg.LinAlgError(
            "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return np.reshape(np.linalg.solve(np.reshape(a, (n, n)), np.reshape(b, (-1,))), shape)


@implements(np.linalg.tensorinv)
def _tensorinv(a: AnyArray, ind: int = 2) -> AnyArray:
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = shape_of(a)
    n = int(np.prod(shape[ind:], dtype=int))
    return np.reshape(np.linalg.inv(np.reshape(a, (n, -1))), (*shape[ind:], *shape[:ind]))


@implements(np.linalg.tensordot)
def _tensordot(x1: AnyArray, x2: AnyArray, /, *, axes: Dims = 2) -> AnyArray:
    return np.tensordot(x1, x2, axes)


@implements(np.linalg.vecdot)
def _vecdot(x1: AnyArray, x2: AnyArray, /, *, axis: int = -1) -> AnyArray:
    return copy_scalar_view(np.vecdot(x1, x2, axis=axis))
