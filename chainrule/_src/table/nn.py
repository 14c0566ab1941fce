"""The primitives of neural networks: activations, losses, an affine map, standardization.

The modules of ``chainrule.nn`` apply the primitives.

Each activation is one primitive with its own partial; a composition would add a node per step to the graph. The losses
include their reduction. All other functions of ``chainrule.nn.functional`` are compositions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Params, TensorLike
from chainrule._src.rules.batching import broadcast_batch, leading_axes, reshape_any
from chainrule._src.rules.kinds import call, elementwise, opaque
from chainrule._src.rules.kinds import linear as linear_row
from chainrule._src.rules.primitive import Primitive
from chainrule._src.rules.sums import accurate_sum
from chainrule._src.table.arithmetic import masked
from chainrule._src.table.exponential import sigmoid
from chainrule._src.table.reduction import count, height
from chainrule._src.table.reduction import softmax as _softmax
from chainrule._src.table.special import erf

ndarray = np.ndarray
_ROOT_HALF = math.sqrt(0.5)
_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)


# -- activations -----------------------------------------------------------------------------------------------------


def _elu_partial(x: AnyArray, *, alpha: float, scale: float, input_scale: float) -> AnyArray:
    decay = (alpha * scale * input_scale) * np.exp(np.where(x >= 0, 0, x) * input_scale)  # constant for x ≥ 0
    return np.where(x <= 0, decay, scale)


@elementwise(
    d=_elu_partial,
    formula="g * np.where(x > 0, scale, alpha * scale * input_scale * np.exp(np.minimum(x, 0) * input_scale))",
    naming=lambda params: "CeluBackward0" if params["input_scale"] != 1 else "EluBackward0",
    samples=[{"alpha": 1.3, "scale": 1.0, "input_scale": 1.0}, {"alpha": 0.7, "scale": 1.1, "input_scale": 0.6}],
    accepts="f",
)
def elu(x: AnyArray, *, alpha: TensorLike, scale: TensorLike, input_scale: TensorLike) -> AnyArray:
    """Return scale·x where x is positive, else scale·alpha·(exp(input_scale·x) − 1)."""
    return np.where(x > 0, scale * x, (alpha * scale) * np.expm1(np.minimum(0, x) * input_scale)).astype(x.dtype)


@elementwise(
    vjp=lambda g, x, *, min_val, max_val: masked(np.logical_not((x <= min_val) | (x >= max_val)), g),
    samples=[{"min_val": -1.0, "max_val": 0.8}],
    accepts="iuf",
    tied=True,
)
def hardtanh(x: AnyArray, *, min_val: TensorLike, max_val: TensorLike) -> AnyArray:
    """Limit x to [min_val, max_val]. At a bound the derivative is 0."""
    if x.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
    return np.minimum(max_val, np.maximum(min_val, x))


def _silu_partial(x: AnyArray) -> AnyArray:
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


@elementwise(d=_silu_partial, formula="g * sigmoid(x) * (1 + x * (1 - sigmoid(x)))", accepts="fc")
def silu(x: object) -> AnyArray:
    """Return x·sigmoid(x)."""
    return x * sigmoid(x)


def _mish_partial(x: AnyArray) -> AnyArray:
    h = np.tanh(np.logaddexp(x, 0.0))
    return h + x * sigmoid(x) * (1 - h * h)


@elementwise(
    d=_mish_partial,
    formula="g * (np.tanh(np.logaddexp(x, 0)) + x * sigmoid(x) * (1 - np.tanh(np.logaddexp(x, 0)) ** 2))",
    accepts="f",
)
def mish(x: object) -> AnyArray:
    """Return x·tanh(log(1 + exp(x)))."""
    return x * np.tanh(np.logaddexp(x, 0))


def _gelu_partial(x: AnyArray, *, approximate: str) -> AnyArray:
    if approximate == "tanh":
        h = np.tanh(_ROOT_2_OVER_PI * (x + 0.044715 * x * x * x))
        return 0.5 * (1 + h) + 0.5 * x * (1 - h * h) * (_ROOT_2_OVER_PI * (1 + 0.134145 * x * x))
    return 0.5 * (1 + erf(_ROOT_HALF * x)) + (0.5 * _ROOT_2_OVER_PI) * x * np.exp(-0.5 * x * x)


@elementwise(
    d=_gelu_partial,
    formula=(
        "g * ((1 + erf(x / np.sqrt(2))) / 2 + x * np.exp(-x ** 2 / 2) / np.sqrt(2 * np.pi))"
        " if approximate == 'none' else "
        "g * (lambda h: 0.5 * (1 + h) + 0.5 * x * (1 - h ** 2) * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x ** 2))"
        "(np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))"
    ),
    samples=[{"approximate": "none"}, {"approximate": "tanh"}],
    accepts="f",
)
def gelu(x: object, *, approximate: str) -> AnyArray:
    """Return x·Φ(x) with the normal distribution function Φ, or its tanh approximation (Hendrycks and Gimpel, 2016)."""
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(_ROOT_2_OVER_PI * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(_ROOT_HALF * x))


@elementwise(
    vjp=lambda g, x: masked((x > -3) & (x < 3), g / 6),
    formula="g * ((x > -3) & (x < 3)) / 6",
    domain=(-4.2, 4.2),
    accepts="f",
    tied=True,
)
def hardsigmoid(x: object) -> AnyArray:
    """Return x/6 + 1/2, limited to [0, 1]."""
    return np.minimum(np.maximum(x + 3, 0), 6) / 6


@elementwise(
    vjp=lambda g, x: np.where(x <= -3, 0, np.where(x < 3, g * (x / 3 + 0.5), g)),
    formula="g * np.where(x <= -3, 0, np.where(x < 3, x / 3 + 0.5, 1))",
    domain=(-4.2, 4.2),
    accepts="f",
)
def hardswish(x: object) -> AnyArray:
    """Return x·hardsigmoid(x)."""
    return x * np.minimum(np.maximum(x + 3, 0), 6) / 6


@elementwise(d=lambda x: sigmoid(-x), accepts="f")
def log_sigmoid(x: object) -> AnyArray:
    """Return log(sigmoid(x)), computed without overflow."""
    return np.minimum(x, 0) - np.log1p(np.exp(-np.absolute(x)))


_shrinking = elementwise(
    vjp=lambda g, x, *, lambd: masked(~((x >= -lambd) & (x <= lambd)), g),
    samples=[{"lambd": 0.7}],
    accepts="f",
    tied=True,
)


@_shrinking
def hardshrink(x: AnyArray, *, lambd: TensorLike) -> AnyArray:
    """Return x where |x| is larger than lambd, else 0."""
    return np.where((x >= -lambd) & (x <= lambd), np.zeros((), x.dtype), x)


@_shrinking
def softshrink(x: object, *, lambd: object) -> AnyArray:
    """Move x towards 0 by lambd; return 0 where |x| is at most lambd."""
    return x - np.minimum(lambd, np.maximum(-lambd, x))


# -- losses, element by element --------------------------------------------------------------------------------------


def _clip(difference: object, delta: float) -> AnyArray:
    """Limit the differences to ±delta; outside, the derivative is 0."""
    return np.where(np.absolute(difference) < delta, difference, delta * np.sign(difference))


@elementwise(
    d={"x": lambda x, y, *, delta: _clip(x - y, delta), "y": lambda x, y, *, delta: _clip(y - x, delta)},
    formula={"x": "g * np.clip(x - y, -delta, delta)", "y": "g * np.clip(y - x, -delta, delta)"},
    aliases={"y": "target"},
    samples=[{"delta": 0.83}],
    accepts="f",
)
def huber_loss(x: object, y: object, *, delta: TensorLike) -> AnyArray:
    """Return (x − y)²/2 where |x − y| is below delta, else delta·(|x − y| − delta/2)."""
    size = np.absolute(x - y)
    return np.where(size < delta, 0.5 * size * size, delta * (size - 0.5 * delta)).astype(size.dtype)


@elementwise(
    d={
        "x": lambda x, y: (x - y) / np.maximum(x * (1 - x), 1e-12),
        "y": lambda x: np.maximum(np.log1p(-x), -100) - np.maximum(np.log(x), -100),
    },
    formula={"x": "g * (x - y) / (x * (1 - x))", "y": "g * (np.log1p(-x) - np.log(x))"},
    aliases={"y": "target"},
    domain=(0.1, 0.9),
    accepts="f",
)
def binary_cross_entropy(x: object, y: object) -> AnyArray:
    """Return −y·log(x) − (1 − y)·log(1 − x), with the logarithms limited to −100 from below."""
    with np.errstate(divide="ignore"):
        out = (y - 1) * np.maximum(np.log1p(-x), -100) - y * np.maximum(np.log(x), -100)
    return out.astype(np.result_type(x, y), copy=False)


@elementwise(d={"x": lambda x, y: sigmoid(x) - y, "y": lambda x: -x}, aliases={"y": "target"}, accepts="f")
def binary_cross_entropy_with_logits(x: object, y: object) -> AnyArray:
    """Return the binary cross entropy of sigmoid(x), computed without overflow."""
    out = (1 - y) * x - np.minimum(x, 0) + np.log1p(np.exp(-np.absolute(x)))
    return out.astype(np.result_type(x, y), copy=False)


# -- losses with a reduction -----------------------------------------------------------------------------------------


def _divisor(shape: tuple[int, ...], ndim: int, mean: bool) -> float:
    return (math.prod(shape[len(shape) - ndim :]) or math.nan) if mean else 1


def _weighted_gap(g: AnyArray, x: AnyArray, y: AnyArray, *, ndim: int, mean: bool) -> AnyArray:
    """Return ∂loss/∂x: 2·(x − y)·g / n."""
    scale = g * (2 / _divisor(shape_of(x), ndim, mean))
    lead = shape_of(scale)
    if lead:
        scale = np.reshape(scale, (*lead, *(1,) * ndim))
    return (x - y) * scale


def _mse_tangent(t: AnyArray, x: AnyArray, y: AnyArray, *, ndim: int, mean: bool) -> AnyArray:
    product = (x - y) * t
    if not ndim:
        return 2 * product
    return np.add.reduce(product, axis=tuple(range(-ndim, 0))) * (2 / _divisor(shape_of(x), ndim, mean))


@opaque(
    shared={"gap": _weighted_gap},
    vjp={"x": lambda gap: gap, "y": lambda gap: -gap},
    jvp={"x": _mse_tangent, "y": lambda t, x, y, **params: _mse_tangent(t, y, x, **params)},
    formula={"x": "2 * g * (x - y) / (x.size if mean else 1)", "y": "2 * g * (y - x) / (x.size if mean else 1)"},
    aliases={"y": "target"},
    samples=[
        call((2, 3), (2, 3), ndim=2, mean=True),
        call((4,), (4,), ndim=1, mean=False),
        call((), (), ndim=0, mean=True),
    ],
    promotion="none",
    accepts="f",
    structure=lambda params: "abcdefghijklmnopqrstuvwxyz"[: params["ndim"]] + ":",
)
def mse_loss(x: AnyArray, y: AnyArray, *, ndim: int, mean: bool) -> AnyArray:
    """Return the mean (or sum) of (x − y)² over the last ``ndim`` axes; both operands have the same shape and dtype."""
    difference = np.subtract(x, y)
    if difference.ndim == ndim:
        flat = difference.reshape(-1)
        total = flat.dot(flat)
    else:
        total = np.add.reduce(difference * difference, axis=tuple(range(-ndim, 0))) if ndim else difference * difference
    return total / _divisor(x.shape, ndim, mean) if mean else total


def _picks_batch(
    prim: Primitive, payloads: list[TensorLike], batched: list[bool], size: int, params: Params
) -> AnyArray:
    """Give scores and classes the batch axis; weights are multiplied in, so they only need a rank that broadcasts."""
    x, index, coef = payloads
    x = x if batched[0] else broadcast_batch(x, size)
    index = index if batched[1] else broadcast_batch(index, size)
    if batched[2] and len(shape_of(coef)) == 1:
        coef = reshape_any(coef, (size, 1))
    return prim(x, index, coef, **params)


def _class_scores(x: AnyArray, index: AnyArray) -> AnyArray:
    """Return the score of its class for every row of scores."""
    if is_array(x) and is_array(index) and x.ndim == 2:
        return x[np.arange(x.shape[0]), index]
    return np.take_along_axis(x, index[..., None], axis=-1)[..., 0]


def _row_cotangent(g: AnyArray, coef: TensorLike, reduce: bool) -> AnyArray:
    """Return the cotangent of each row's score of its class, with an axis for the scores."""
    return ((g[..., None] if reduce else g) * coef)[..., None]


def one_hot(index: AnyArray, n: int) -> AnyArray:
    return index[..., None] == np.arange(n)


_PICKS = [
    call((3, 4), np.array([2, 0, 3]), np.array([-0.5, -0.2, -0.3]), reduce=True),
    call((3, 4), np.array([1, 1, 2]), -0.25, reduce=True),
    call((2, 4), np.array([3, 0]), np.array([-1.0, -0.5]), reduce=False),
]
_G_PICKED = "((np.expand_dims(g, -1) if reduce else g) * coef)[..., None]"


@linear_row(
    transpose={
        "x": lambda g, index, coef, x_shape, *, reduce: (
            one_hot(index, x_shape[-1]).astype(g.dtype) * _row_cotangent(g, coef, reduce)
        )
    },
    formula={"x": f"one_hot(index, x_shape[-1]) * {_G_PICKED}"},
    batch=_picks_batch,
    samples=_PICKS,
    promotion="none",
    accepts="biuf",
    tied=True,
    structure={"x": lambda params: "nc:" if params["reduce"] else "nc:n"},
)
def nll_loss(x: AnyArray, index: AnyArray, coef: TensorLike, *, reduce: bool) -> AnyArray:
    """Return coef·x[index] for every row of x (n, classes), summed over the rows if ``reduce``."""
    terms = (_class_scores(x, index) * coef).astype(x.dtype, copy=False)
    return np.add.reduce(terms, axis=-1) if reduce else terms


def _probabilities(x: AnyArray) -> AnyArray:
    return _softmax.value(x, axis=-1) if is_array(x) else _softmax(x, axis=-1)


def _cross_entropy_vjp(g: AnyArray, x: AnyArray, index: AnyArray, coef: TensorLike, *, reduce: bool) -> AnyArray:
    weights = _row_cotangent(g, coef, reduce)
    p = _probabilities(x)
    if type(p) is ndarray and p.ndim == 2 and type(index) is ndarray and type(weights) is ndarray:
        p[np.arange(index.size), index] -= 1
        p *= -weights
        return p
    if is_array(p) and p.ndim == 2 and is_array(index) and is_array(weights):
        return ((p - one_hot(index, p.shape[-1]).astype(p.dtype)) * -weights).astype(p.dtype, copy=False)
    return (one_hot(index, shape_of(x)[-1]).astype(x.dtype) - p) * weights


def _cross_entropy_jvp(t: AnyArray, x: AnyArray, index: AnyArray, coef: TensorLike, *, reduce: bool) -> AnyArray:
    terms = (_class_scores(t, index) - np.add.reduce(_probabilities(x) * t, axis=-1)) * coef
    return np.add.reduce(terms, axis=-1) if reduce else terms


@opaque(
    vjp={"x": _cross_entropy_vjp},
    jvp={"x": _cross_entropy_jvp},
    formula={"x": f"(one_hot(index, x_shape[-1]) - softmax(x, axis=-1)) * {_G_PICKED}"},
    batch=_picks_batch,
    naming="NllLossBackward0",
    samples=_PICKS,
    promotion="none",
    accepts="f",
    structure={"x": lambda params: "nc:" if params["reduce"] else "nc:n"},
)
def cross_entropy(x: AnyArray, index: AnyArray, coef: TensorLike, *, reduce: bool) -> AnyArray:
    """Return coef·log_softmax(x)[index] for every row of x (n, classes), summed over the rows if ``reduce``."""
    shifted = x - height(x, -1)
    terms = (_class_scores(shifted, index) - np.log(np.add.reduce(np.exp(shifted), axis=-1))) * coef
    terms = terms.astype(x.dtype, copy=False)
    return np.add.reduce(terms, axis=-1) if reduce else terms


# -- affine map and standardization ----------------------------------------------------------------------------------


def _linear_batch(
    prim: Primitive, payloads: list[AnyArray], batched: list[bool], size: int, params: Params
) -> AnyArray:
    """Merge the examples of one layer into the rows of one product."""
    x, weight, bias = payloads
    if batched == [True, False, False]:
        n, k = shape_of(x)[-2:]
        out = prim(reshape_any(x, (size * n, k)), weight, bias)
        return reshape_any(out, (size, n, shape_of(out)[-1]))
    return leading_axes(prim, payloads, batched, size, params)


@opaque(
    vjp={
        "x": lambda g, weight: np.matmul(g, weight),
        "weight": lambda g, x: np.matmul(g.mT, x),
        "bias": lambda g: accurate_sum(g, (-2,)),
    },
    jvp={
        "x": lambda t, weight: np.matmul(t, weight.mT),
        "weight": lambda t, x: np.matmul(x, t.mT),
        "bias": lambda t: t[..., None, :],
    },
    formula={"weight": "g.T @ x", "bias": "g.sum(0)"},
    aliases={"x": "mat1", "weight": "mat2"},
    batch=_linear_batch,
    naming="AddmmBackward0",
    samples=[call((2, 3), (4, 3), (4,), complex=False)],
    promotion="none",
    accepts="f",
    structure="ik,jk,j->ij",
)
def linear(x: Any, weight: Any, bias: Any) -> AnyArray:
    """Return x @ weightᵀ + bias for a matrix x, a layer's weight (out, in) and its bias (out,)."""
    if x.ndim == 2 and is_array(x) and is_array(weight) and is_array(bias):
        out = x.dot(weight.T)
        out += bias
        return out
    return np.matmul(x, weight.mT) + bias[..., None, :]


def _mean(x: AnyArray, axis: tuple[int, ...]) -> AnyArray:
    return accurate_sum(x, axis, True) / count(shape_of(x), axis)


def _rescaled(g: AnyArray, x: AnyArray, *, axis: tuple[int, ...], eps: float, name: str) -> AnyArray:
    """Apply the derivative of standardization, which is symmetric: (g − mean(g) − out·mean(g·out)) / √(var + eps)."""
    deviations = x - _mean(x, axis)
    scale = 1 / np.sqrt(_mean(deviations * deviations, axis) + eps)
    out = deviations * scale
    return (g - _mean(g, axis) - out * _mean(g * out, axis)) * scale


@opaque(
    vjp=_rescaled,
    jvp=lambda t, x, **params: _rescaled(t, x, **params),
    formula=(
        "(lambda scale: (lambda y: (g - g.mean(axis, keepdims=True) - y * (g * y).mean(axis, keepdims=True)) * scale)"
        "((x - x.mean(axis, keepdims=True)) * scale))(1 / np.sqrt(x.var(axis, keepdims=True) + eps))"
    ),
    naming=lambda params: params["name"],
    samples=[
        call((2, 4), axis=(-1,), eps=1e-5, name="NativeLayerNormBackward0"),
        call((3, 2, 2), axis=(-3, -1), eps=0.1, name="NativeBatchNormBackward0"),
    ],
    accepts="f",
    structure="axis",
    remedy="the elements are equal, so their variance is 0: take an eps above 0",
)
def standardize(x: AnyArray, *, axis: tuple[int, ...], eps: float, name: str) -> AnyArray:
    """Return (x − mean) / √(variance + eps) over axes."""
    deviations = x - _mean(x, axis)
    deviations *= 1 / np.sqrt(_mean(deviations * deviations, axis) + eps)
    return deviations
