"""Reductions and scans. Axes are counted from the end, so that an extra leading axis changes nothing.

``ops.reductions`` and ``ops.numpy_reductions`` apply them.
"""

from __future__ import annotations

import numpy as np

from chainrule._src.arrays.any_array import call_as_one_operation, is_array, is_recorded
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Dims, Params, TensorLike
from chainrule._src.rules.kinds import call, discrete, linear, opaque
from chainrule._src.rules.primitive import TABLE
from chainrule._src.rules.rules import conjugate
from chainrule._src.rules.sums import accurate_scan, accurate_sum
from chainrule._src.table.arithmetic import masked, sgn
from chainrule._src.tape.foreign import safe_divisor
from chainrule._src.tape.node import Node

ndarray = np.ndarray


def restore_axes(g: AnyArray, axis: tuple[int, ...], keepdims: bool, x_shape: tuple[int, ...]) -> AnyArray:
    """Reinsert the reduced axes of a reduced array, with length 1."""
    ndim = len(x_shape)
    if keepdims or len(axis) == ndim:  # a single number broadcasts without them
        return g
    reduced = {a % ndim for a in axis}
    shape = tuple(1 if i in reduced else n for i, n in enumerate(x_shape))
    return g.reshape(shape) if type(g) is ndarray else np.reshape(g, shape)


def broadcast_to(g: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Broadcast to a shape, with a fast path for a single number."""
    if type(g) is ndarray:
        if g.size == 1 and g.flags.c_contiguous:
            return ndarray(shape, g.dtype, g, 0, (0,) * len(shape))
        return g if g.shape == shape else np.broadcast_to(g, shape)
    if shape_of(g) == shape:
        return g
    return TABLE["expand"](g, shape=shape) if hasattr(g, "_edge") else np.broadcast_to(g, shape)


def count(shape: tuple[int, ...], axis: tuple[int, ...]) -> int:
    """Return how many elements a reduction over axes combines into one."""
    n = 1
    for a in axis:
        n *= shape[a]
    return n


_AXES = [
    call((2, 3), axis=(-1,), keepdims=False),
    call((2, 3, 2), axis=(-3, -1), keepdims=True),
    call((2, 3), axis=(-2, -1), keepdims=False),
    call((4,), axis=(-1,), keepdims=False),
    call((), axis=(), keepdims=False),
]
_ONE_AXIS = [call((2, 3), axis=-1, keepdims=False), call((3, 2), axis=-2, keepdims=True)]
_AXES_OR_EMPTY = [*_AXES, call((0, 3), axis=(-2,), keepdims=False)]


@linear(
    transpose=lambda g, x_shape, *, axis, keepdims: broadcast_to(restore_axes(g, axis, keepdims, x_shape), x_shape),
    formula="np.broadcast_to(g if keepdims else np.expand_dims(g, axis), x_shape)",
    naming=lambda params: "SumBackward" + ("1" if params.get("dims") else "0"),
    samples=_AXES_OR_EMPTY,
    structure="sum",
)
def sum(x: TensorLike, *, axis: tuple[int, ...], keepdims: bool, dims: bool = False) -> AnyArray:
    """Return the sum over axes."""
    return accurate_sum(x, axis, keepdims)


@linear(
    transpose=lambda g, x_shape, *, axis, keepdims: broadcast_to(
        restore_axes(g / count(x_shape, axis), axis, keepdims, x_shape), x_shape
    ),
    formula="np.broadcast_to(g if keepdims else np.expand_dims(g, axis), x_shape) * g.size / max(np.prod(x_shape), 1)",
    naming=lambda params: "MeanBackward" + ("1" if params.get("dims") else "0"),
    samples=_AXES,
    structure="mean",
    remedy="the mean of no elements is 0/0, so check the size first",
)
def mean(x: AnyArray, *, axis: tuple[int, ...], keepdims: bool, dims: bool = False) -> AnyArray:
    """Return the mean over axes."""
    if x.dtype.char in "eF":  # float16 sums overflow where the mean does not; NumPy divides complex64 in complex128
        return np.mean(x, axis=axis, keepdims=keepdims)
    return np.true_divide(accurate_sum(x, axis, keepdims), _divisor(x, axis))


def _divisor(x: AnyArray, axis: tuple[int, ...]) -> float:
    n = count(shape_of(x), axis)
    return n if n else np.nan


def _can_divide(x: AnyArray, out: AnyArray) -> bool:
    """Return whether out / x gives the products without x: there are no zeros, and no product overflowed or underflowed."""
    return bool(call_as_one_operation(_is_regular, x, out))


def _is_regular(x: AnyArray, out: AnyArray) -> AnyArray:
    return np.asarray(x.all() and out.all() and np.isfinite(out).all())


def _prod_vjp(g: AnyArray, x: AnyArray, out: AnyArray, *, axis: tuple[int, ...], keepdims: bool) -> AnyArray:
    x_shape = shape_of(x)
    g, out = restore_axes(g, axis, keepdims, x_shape), restore_axes(out, axis, keepdims, x_shape)
    if is_array(x) and _can_divide(x, out):
        return g * np.conjugate(out / x) if x.dtype.kind == "c" else g * out / x
    others = _product_of_others(x, axis)
    return g * conjugate(others)


def _product_of_others(x: AnyArray, axis: tuple[int, ...]) -> AnyArray:
    """Return for every element the product of the others along the axes; zeros are handled correctly."""
    if not axis or not count(shape_of(x), axis):
        return np.ones_like(x)
    ndim = len(shape_of(x))
    rest = tuple(a for a in range(-ndim, 0) if a not in axis)
    order = tuple(a % ndim for a in rest + axis)
    reduced_last = np.transpose(x, order)
    shape = shape_of(reduced_last)
    n = count(shape, tuple(range(-len(axis), 0)))
    flat = np.reshape(reduced_last, (*shape[: len(rest)], n))
    edge = np.ones_like(flat[..., :1])
    before = np.cumprod(np.concatenate([edge, flat[..., : n - 1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([edge, np.flip(flat, axis=-1)[..., : n - 1]], axis=-1), axis=-1)
    result = np.reshape(before * np.flip(after, axis=-1), shape)
    back = tuple(order.index(i) for i in range(ndim))
    return np.transpose(result, back)


@opaque(
    vjp=_prod_vjp,
    jvp=lambda t, x, *, axis, keepdims: np.add.reduce(t * _product_of_others(x, axis), axis=axis, keepdims=keepdims),
    formula="(g if keepdims else np.expand_dims(g, axis)) * (out if keepdims else np.expand_dims(out, axis)) / x",
    naming=lambda params: "ProdBackward" + ("1" if params.get("dims") else "0"),
    samples=_AXES,
    structure="axis",
)
def prod(x: TensorLike, *, axis: tuple[int, ...], keepdims: bool, dims: bool = False) -> AnyArray:
    """Return the product over axes."""
    return np.multiply.reduce(x, axis=axis, keepdims=keepdims)


def attains(x: AnyArray, out: AnyArray) -> AnyArray | bool:
    """Return a mask of the elements equal to the extremum; where it is NaN, of the elements that are NaN."""
    if type(out) is ndarray and not (out != out).any():
        return x == out
    return (x == out) | ((x != x) & (out != out))


def extremum_vjp(g: AnyArray, x: AnyArray, out: AnyArray, *, axis: tuple[int, ...], keepdims: bool) -> AnyArray:
    """Share the cotangent of an extremum evenly among the elements that attain it."""
    x_shape = shape_of(x)
    g, out = restore_axes(g, axis, keepdims, x_shape), restore_axes(out, axis, keepdims, x_shape)
    mask = attains(x, out)
    return masked(mask, g / np.add.reduce(mask, axis=axis, keepdims=True).astype(g.dtype) if axis else g)


def extremum_jvp(t: AnyArray, x: AnyArray, out: AnyArray, *, axis: tuple[int, ...], keepdims: bool) -> AnyArray:
    mask = attains(x, restore_axes(out, axis, keepdims, shape_of(x)))
    n = np.add.reduce(mask, axis=axis, keepdims=keepdims)
    return np.add.reduce(t * mask, axis=axis, keepdims=keepdims) / n.astype(t.dtype) if axis else t


def _extremum_name(params: Params, node: Node) -> str:
    return str(params.get("name") or node.prim.name.capitalize())  # max() is named MaxBackward1


EXTREMUM = "(g if keepdims else np.expand_dims(g, axis)) * (x == (out if keepdims else np.expand_dims(out, axis)))"


_extremum = opaque(
    vjp=extremum_vjp, jvp=extremum_jvp, formula=EXTREMUM, samples=_AXES, naming=_extremum_name, structure="axis"
)


@_extremum
def amax(x: AnyArray, *, axis: tuple[int, ...], keepdims: bool, name: str = "") -> AnyArray:
    """Return the maximum over axes; tied elements share the gradient evenly."""
    return np.maximum.reduce(x, axis=axis, keepdims=keepdims)


@_extremum
def amin(x: AnyArray, *, axis: tuple[int, ...], keepdims: bool, name: str = "") -> AnyArray:
    """Return the minimum over axes; tied elements share the gradient evenly."""
    return np.minimum.reduce(x, axis=axis, keepdims=keepdims)


def _softmax_over(x: AnyArray, out: AnyArray, axis: tuple[int, ...], keepdims: bool) -> AnyArray:
    """Return exp(x) / Σ exp(x). Where out is large, x − out is inexact, but the normalization cancels the error."""
    e = np.exp(x - restore_axes(out, axis, keepdims, shape_of(x)))
    return _normalized(e, np.add.reduce(e, axis=axis, keepdims=True) if axis else e)


def _normalized(e: AnyArray, total: AnyArray) -> AnyArray:
    """Return e / total, and e itself where the total is 0 or NaN."""
    return e / np.where((total != total) | (total == 0), 1, total)


@opaque(
    vjp=lambda g, x, out, *, axis, keepdims: (
        restore_axes(g, axis, keepdims, shape_of(x)) * conjugate(_softmax_over(x, out, axis, keepdims))
    ),
    jvp=lambda t, x, out, *, axis, keepdims: np.add.reduce(
        t * _softmax_over(x, out, axis, keepdims), axis=axis, keepdims=keepdims
    ),
    formula="(g if keepdims else np.expand_dims(g, axis)) * np.exp(x - (out if keepdims else np.expand_dims(out, axis)))",
    samples=_AXES,
    promotion="float",
    structure="axis",
)
def logsumexp(x: AnyArray, *, axis: tuple[int, ...], keepdims: bool) -> AnyArray:
    """Return log Σ exp(x) over axes, computed without overflow."""
    real = np.real(x) if x.dtype.kind == "c" else x
    maximum = np.maximum.reduce(real, axis=axis, keepdims=True, initial=-np.inf)
    maximum = np.where(np.isfinite(maximum), maximum, 0)
    total = np.log(np.add.reduce(np.exp(x - maximum), axis=axis, keepdims=True)) + maximum
    return total if keepdims or not shape_of(x) else np.squeeze(total, axis)


_MANY, _NEAR = 4096, 16


def height(x: AnyArray, axis: int) -> AnyArray:
    """Return values to subtract before exp, so that it does not overflow: the maxima along an axis.

    NumPy is slow at the maxima of many short rows. If all numbers are close to each other, one maximum serves for all rows,
    to within the rounding of a difference of 16.
    """
    if axis == -1 and x.size >= _MANY:
        if type(x) is ndarray:
            high = np.maximum.reduce(x, axis=None)
            if high - np.minimum.reduce(x, axis=None) < _NEAR:
                return high
        elif is_recorded(x):
            return call_as_one_operation(_heights, x)
    return np.maximum.reduce(x, axis=axis, keepdims=True)


def _heights(x: AnyArray) -> AnyArray:
    """Return ``height`` along the last axis, always with that axis as length 1."""
    return np.array(np.broadcast_to(height(x, -1), (*shape_of(x)[:-1], 1)))


_NO_MAXIMUM = (
    "all elements along an axis are -inf (for example, all are masked), or one is inf. Keep at least one, or fill with a large "
    "negative number such as -1e4"
)


def dot_along(x: AnyArray, y: AnyArray, axis: int) -> AnyArray:
    """Return Σ x·y along an axis, which is kept with length 1."""
    if axis == -1 and is_array(x) and is_array(y) and x.dtype.char in "fd":
        return np.vecdot(x, y)[..., None]  # one pass over the memory
    return np.add.reduce(x * y, axis=axis, keepdims=True)


@opaque(
    vjp=lambda g, out, *, axis: (g - dot_along(g, out, axis)) * out,
    jvp=lambda t, out, *, axis: (t - dot_along(t, out, axis)) * out,
    formula="(g - (g * out).sum(axis, keepdims=True)) * out",
    samples=[call((2, 3), axis=-1), call((3, 2), axis=-2), call((4,), axis=-1)],
    promotion="float",
    accepts="f",
    structure="axis",
    remedy=_NO_MAXIMUM,
)
def softmax(x: object, *, axis: Dims) -> AnyArray:
    """Return exp(x) / Σ exp(x) along an axis, computed without overflow."""
    e = np.exp(x - height(x, axis))
    e /= np.add.reduce(e, axis=axis, keepdims=True)
    return e


@opaque(
    vjp=lambda g, out, *, axis: g - np.exp(out) * np.add.reduce(g, axis=axis, keepdims=True),
    jvp=lambda t, out, *, axis: t - np.add.reduce(np.exp(out) * t, axis=axis, keepdims=True),
    formula="g - np.exp(out) * g.sum(axis, keepdims=True)",
    samples=[call((2, 3), axis=-1), call((3, 2), axis=-2), call((4,), axis=-1)],
    promotion="float",
    accepts="f",
    structure="axis",
    remedy=_NO_MAXIMUM,
)
def log_softmax(x: object, *, axis: Dims) -> AnyArray:
    """Return x − log Σ exp(x) along an axis, computed without overflow."""
    x = x - height(x, axis)
    return x - np.log(np.add.reduce(np.exp(x), axis=axis, keepdims=True))


def _safe_ratio(x: AnyArray, out: AnyArray) -> AnyArray:
    zero = out == 0
    return np.where(zero, 0, x / safe_divisor(out, zero))


def _norm_partial(x: AnyArray, out: AnyArray, ord: float) -> AnyArray:
    if ord == 2:
        return _safe_ratio(x, out)
    size = np.absolute(x)
    if ord == 1:
        return sgn(x)
    if ord == 0:
        return np.zeros_like(x)
    ratio = _safe_ratio(size, out)
    if ord < 1:
        zero = ratio == 0
        return np.where(zero, 0, sgn(x) * np.where(zero, 1, ratio) ** (ord - 1))
    return sgn(x) * ratio ** (ord - 1)


def _norm_vjp(
    g: AnyArray, x: AnyArray, out: AnyArray, *, ord: float, axis: tuple[int, ...], keepdims: bool
) -> AnyArray:
    g, out = restore_axes(g, axis, keepdims, shape_of(x)), restore_axes(out, axis, keepdims, shape_of(x))
    if ord in (np.inf, -np.inf):
        mask = np.absolute(x) == out
        n = np.add.reduce(mask, axis=axis, keepdims=True) if axis else np.ones_like(g)
        return g / n.astype(g.dtype) * sgn(x) * mask
    return g * _norm_partial(x, out, ord)


def _norm_jvp(
    t: AnyArray, x: AnyArray, out: AnyArray, *, ord: float, axis: tuple[int, ...], keepdims: bool
) -> AnyArray:
    ones = np.ones_like(out)
    weights = _norm_vjp(ones, x, out, ord=ord, axis=axis, keepdims=keepdims)
    product = np.real(np.conjugate(weights) * t) if x.dtype.kind == "c" else weights * t
    return np.add.reduce(product, axis=axis, keepdims=keepdims)


@opaque(
    vjp=_norm_vjp,
    jvp=_norm_jvp,
    formula=(
        "(ord != 0) * (g if keepdims else np.expand_dims(g, axis)) * np.sign(x) * "
        "np.abs(x / (out if keepdims else np.expand_dims(out, axis))) ** (ord - 1)"
    ),
    samples=[
        call((2, 3), ord=2.0, axis=(-1,), keepdims=False),
        call((2, 3), ord=1.0, axis=(-2, -1), keepdims=False),
        call((2, 3), ord=3.0, axis=(-2,), keepdims=True),
        call((2, 3), ord=0.5, axis=(-1,), keepdims=False),
        call((2, 3), ord=-2.0, axis=(-1,), keepdims=False),
        call((2, 3), ord=np.inf, axis=(-1,), keepdims=False),
        call((2, 3, 2), ord=-np.inf, axis=(-3, -1), keepdims=True),
        call((2, 3), ord=0.0, axis=(-1,), keepdims=False),
        call((), ord=2.0, axis=(), keepdims=False),
    ],
    naming="LinalgVectorNormBackward0",
    promotion="float",
    structure="axis",
)
def vector_norm(x: AnyArray, *, ord: float, axis: tuple[int, ...], keepdims: bool) -> AnyArray:
    """Return the norm (Σ |x|^ord)^(1/ord) over axes. The gradient is 0 where the norm is 0."""
    size = np.absolute(x)
    if x.dtype == np.float16:  # its squares and sums overflow where the norm does not
        return vector_norm.value(size.astype(np.float32), ord=ord, axis=axis, keepdims=keepdims).astype(np.float16)
    if ord and count(x.shape, axis) == 1:  # avoids overflow of the power and the sum
        return accurate_sum(size, axis, keepdims)
    if ord == 2:
        return np.sqrt(accurate_sum(np.square(size), axis, keepdims))
    if ord == np.inf:
        return np.maximum.reduce(size, axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return np.minimum.reduce(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.add.reduce(size != 0, axis=axis, keepdims=keepdims).astype(size.dtype)
    if ord == 1:
        return accurate_sum(size, axis, keepdims)
    return accurate_sum(size**ord, axis, keepdims) ** (1 / ord)


# -- scans -----------------------------------------------------------------------------------------------------------


def _reverse_cumsum(g: AnyArray, axis: int) -> AnyArray:
    """Return the cumulative sum from the end to the start."""
    return np.flip(accurate_scan(np.cumsum, np.flip(g, axis=axis), axis), axis=axis)


_ALONG = [call((2, 3), axis=-1), call((3, 2), axis=-2), call((0, 2), axis=-2), call((1,), axis=-1)]


@linear(
    transpose=lambda g, *, axis: _reverse_cumsum(g, axis),
    formula="np.flip(np.cumsum(np.flip(g, axis), axis), axis)",
    samples=_ALONG,
    structure="scan",
)
def cumsum(x: AnyArray, *, axis: int) -> AnyArray:
    """Return the running sum along an axis."""
    return accurate_scan(np.cumsum, x, axis)


def _cumprod_vjp(g: AnyArray, x: AnyArray, out: AnyArray, *, axis: int) -> AnyArray:
    if is_array(x) and _can_divide(x, out):
        weighted = g * conjugate(out)
        return _reverse_cumsum(weighted, axis) / conjugate(x)
    n = shape_of(x)[axis]
    x, g = np.swapaxes(x, axis, -1), np.swapaxes(g, axis, -1)
    parts = []
    for k in range(n):  # ∂out_i/∂x_k is the product up to i without x_k, for i ≥ k
        without = np.concatenate([x[..., :k], np.ones_like(x[..., :1]), x[..., k + 1 :]], axis=-1)
        partial = conjugate(np.cumprod(without, axis=-1)[..., k:])
        parts.append(np.add.reduce(g[..., k:] * partial, axis=(-1,), keepdims=True))
    return np.swapaxes(np.concatenate(parts, axis=-1) if parts else g, axis, -1)


def _cumprod_jvp(t: AnyArray, x: AnyArray, out: AnyArray, *, axis: int) -> AnyArray:
    if is_array(x) and _can_divide(x, out):
        return out * np.cumsum(t / x, axis=axis)
    n = shape_of(x)[axis]
    x, t = np.swapaxes(x, axis, -1), np.swapaxes(t, axis, -1)
    total = np.zeros_like(x) * t
    for k in range(n):
        with_tangent = np.concatenate([x[..., :k], t[..., k : k + 1], x[..., k + 1 :]], axis=-1)
        partial = np.cumprod(with_tangent, axis=-1)
        total = total + np.concatenate([np.zeros_like(partial[..., :k]), partial[..., k:]], axis=-1)
    return np.swapaxes(total, axis, -1)


@opaque(
    vjp=_cumprod_vjp,
    jvp=_cumprod_jvp,
    formula="np.flip(np.cumsum(np.flip(g * out, axis), axis), axis) / x",
    samples=_ALONG,
    structure="scan",
)
def cumprod(x: AnyArray, *, axis: int) -> AnyArray:
    """Return the running product along an axis."""
    return accurate_scan(np.cumprod, x, axis)


def _logcumsumexp_vjp(g: AnyArray, x: AnyArray, out: AnyArray, *, axis: int) -> AnyArray:
    x, g, out = (np.swapaxes(a, axis, -1) for a in (x, g, out))
    return np.swapaxes(np.add.reduce(g[..., :, None] * _running_portions(x, out), axis=(-2,)), axis, -1)


def _running_portions(x: AnyArray, out: AnyArray) -> AnyArray:
    """Return [i, k]: exp(x_k) / Σ_{j≤i} exp(x_j) for k ≤ i, as m × m pairs. Each is at most 1, so nothing overflows."""
    earlier = np.tri(shape_of(x)[-1], dtype=bool)
    e = np.where(earlier, np.exp(np.where(earlier, x[..., None, :] - out[..., :, None], 0)), 0)
    return _normalized(e, np.add.reduce(e, axis=(-1,), keepdims=True))  # the totals are 1 up to the rounding of x − out


def _logcumsumexp_jvp(t: AnyArray, x: AnyArray, out: AnyArray, *, axis: int) -> AnyArray:
    x, t, out = (np.swapaxes(a, axis, -1) for a in (x, t, out))
    return np.swapaxes(np.add.reduce(t[..., None, :] * _running_portions(x, out), axis=(-1,)), axis, -1)


@opaque(
    vjp=_logcumsumexp_vjp,
    jvp=_logcumsumexp_jvp,
    formula="np.flip(np.cumsum(np.flip(g * np.exp(-out), axis), axis), axis) * np.exp(x)",
    samples=_ALONG,
    promotion="float",
    structure="scan",
)
def logcumsumexp(x: AnyArray, *, axis: int) -> AnyArray | None:
    """Return the running log Σ exp along an axis, computed without overflow."""
    if is_array(x):
        return np.logaddexp.accumulate(x, axis=axis)
    x = np.swapaxes(x, axis, -1)
    parts = [x[..., :1]]
    for k in range(1, shape_of(x)[-1]):
        parts.append(np.logaddexp(parts[-1], x[..., k : k + 1]))
    return np.swapaxes(np.concatenate(parts, axis=-1), axis, -1)


# -- discrete results ------------------------------------------------------------------------------------------------


@discrete(samples=_AXES, domain="bool")
def any(x: AnyArray, *, axis: tuple[int, ...], keepdims: bool) -> AnyArray:
    """Return whether any element is nonzero."""
    return np.logical_or.reduce(x, axis=axis, keepdims=keepdims)


@discrete(samples=_AXES, domain="bool")
def all(x: AnyArray, *, axis: tuple[int, ...], keepdims: bool) -> AnyArray:
    """Return whether all elements are nonzero."""
    return np.logical_and.reduce(x, axis=axis, keepdims=keepdims)


@discrete(samples=_ONE_AXIS)
def argmax(x: AnyArray, *, axis: int, keepdims: bool) -> AnyArray:
    """Return the index of the first maximum along an axis."""
    return np.argmax(x, axis=axis, keepdims=keepdims)


@discrete(samples=_ONE_AXIS)
def argmin(x: AnyArray, *, axis: int, keepdims: bool) -> AnyArray:
    """Return the index of the first minimum along an axis."""
    return np.argmin(x, axis=axis, keepdims=keepdims)


@discrete(samples=[call((2, 3), axis=-1, descending=False), call((3, 2), axis=-2, descending=True)])
def argsort(x: AnyArray, *, axis: int, descending: bool) -> AnyArray:
    """Return the indices that sort along an axis; ties keep their order."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    return shape_of(x)[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
