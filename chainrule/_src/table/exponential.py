"""Exponentials, logarithms, and related functions that need care with rounding.

``ops.elementwise`` makes the public functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.any_array import is_recorded
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.rules.kinds import discrete, elementwise

_LN2 = float(np.log(2))
_LN10 = float(np.log(10))
_LOG_REMEDY = (
    "a logarithm is real only of positive numbers, so keep its operand positive, x.clip(min=eps). x * log(y) at 0 is xlogy(x, y); "
    "log(softmax(x)) is log_softmax(x), and log(sigmoid(x)) is -logaddexp(0, -x)"
)
_OVERFLOW_REMEDY = (
    "exp(x) is infinite for x above 709 (float64), 88 (float32) or 11 (float16). In a softmax, subtract the maximum first, "
    "exp(x - x.max()), or call softmax, log_softmax or logsumexp; logaddexp(0, x) is log(1 + exp(x)), and sigmoid(x) "
    "(scipy.special.expit) is 1 / (1 + exp(-x))"
)


def _exp(x: AnyArray) -> AnyArray:
    """Return exp(x). NumPy's float32 exp may be off by one unit in the last place, so small arrays use float64."""
    if (type(x) is np.ndarray or is_recorded(x)) and x.dtype == np.float32 and x.size <= _SMALL:
        return np.exp(x.astype(np.float64)).astype(np.float32)
    return np.exp(x)


_SMALL = 10_000


@op(method=True, in_place=True)
@elementwise(np.exp, value=_exp, d=lambda out: out, promotion="float", remedy=_OVERFLOW_REMEDY)
def exp(x: AnyArray) -> None:
    """Return the exponential of every element."""


@op("exp2 special.exp2", method=True, in_place=True)
@elementwise(np.exp2, d=lambda out: out * _LN2, promotion="float", remedy=_OVERFLOW_REMEDY)
def exp2(x: AnyArray) -> None:
    """Return 2 to the power of every element."""


@op("expm1 special.expm1", method=True, in_place=True)
@elementwise(np.expm1, d=lambda out: out + 1, promotion="float", remedy=_OVERFLOW_REMEDY)
def expm1(x: AnyArray) -> None:
    """Return exp(x) − 1, accurate near 0."""


@op(method=True, in_place=True)
@elementwise(np.log, d=lambda x: 1 / x, vjp=lambda g, x: g / x, promotion="float", domain=(0.2, 3), remedy=_LOG_REMEDY)
def log(x: AnyArray) -> None:
    """Return the natural logarithm."""


@op(method=True, in_place=True)
@elementwise(np.log2, d=lambda x: 1 / (x * _LN2), promotion="float", domain=(0.2, 3), remedy=_LOG_REMEDY)
def log2(x: AnyArray) -> None:
    """Return the logarithm to base 2."""


@op(method=True, in_place=True)
@elementwise(np.log10, d=lambda x: 1 / (x * _LN10), promotion="float", domain=(0.2, 3), remedy=_LOG_REMEDY)
def log10(x: AnyArray) -> None:
    """Return the logarithm to base 10."""


@op("log1p special.log1p", method=True, in_place=True)
@elementwise(
    np.log1p, d=lambda x: 1 / (1 + x), promotion="float", domain=(-0.7, 3), naming="Log1PBackward0", remedy=_LOG_REMEDY
)
def log1p(x: AnyArray) -> None:
    """Return log(1 + x), accurate near 0."""


@op("sigmoid nn.functional.sigmoid special.expit", method=True, in_place=True)
@elementwise(d=lambda out: out - out * out, formula="g * out * (1 - out)", promotion="float")
def sigmoid(x: Any) -> AnyArray:
    """Return the logistic function 1 / (1 + exp(−x)), computed without overflow."""
    if x.dtype.kind == "c":
        return 0.5 * (1 + np.tanh(0.5 * x))
    small = np.exp(-np.absolute(x))  # at most 1; accurate to the last place even where the result is tiny
    return np.maximum(small, x >= 0) / (1 + small)  # np.where takes longer, since its branches are mispredicted


def _logit_vjp(g: AnyArray, x: AnyArray, *, eps: float | None) -> AnyArray:
    low, outside = (0, np.nan) if eps is None else (eps, 0)
    return np.where((x < low) | (x > 1 - low), outside, g / (x * (1 - x)))


@elementwise(
    vjp=_logit_vjp,
    formula="g / (x * (1 - x)) * (1 if eps is None else (x >= eps) & (x <= 1 - eps))",
    promotion="float",
    domain=(0.1, 0.9),
    samples=[{"eps": None}, {"eps": 0.3}],
    accepts="biuf",
    remedy="it is infinite at 0 and 1 and not real beyond, so x.clip(eps, 1 - eps)",
)
def logit(x: object, *, eps: float | None) -> AnyArray:
    """Return log(x / (1 − x)), the inverse of the sigmoid, with x limited to [eps, 1 − eps]; NaN outside [0, 1]."""
    if eps is not None:
        x = np.minimum(np.maximum(x, eps), 1 - eps)
    return np.log(x / (1 - x))


@elementwise(
    np.logaddexp,
    d={"x": lambda x, y: sigmoid(x - y), "y": lambda x, y: sigmoid(y - x)},
    formula={"x": "g / (1 + np.exp(y - x))", "y": "g / (1 + np.exp(x - y))"},
    promotion="float",
    accepts="biuf",
)
def logaddexp(x: AnyArray, y: AnyArray) -> None:
    """Return log(exp(x) + exp(y)), computed without overflow."""


@op(method=True)
@elementwise(
    np.logaddexp2,
    d={"x": lambda x, y: sigmoid((x - y) * _LN2), "y": lambda x, y: sigmoid((y - x) * _LN2)},
    formula={"x": "g / (1 + np.exp2(y - x))", "y": "g / (1 + np.exp2(x - y))"},
    promotion="float",
    accepts="biuf",
)
def logaddexp2(x: AnyArray, y: AnyArray) -> None:
    """Return log2(2**x + 2**y), computed without overflow."""


def _log_or_zero(x: AnyArray, y: AnyArray) -> AnyArray | None:
    masked_out = (x == 0) & (y <= 0)
    return np.where(masked_out, 0, np.log(np.where(masked_out, 1, y))).astype(np.result_type(x, y))


@op("xlogy special.xlogy", method=True, in_place=True)
@elementwise(
    d={"x": _log_or_zero, "y": lambda x, y: x / y},
    formula={"x": "g * np.log(y)"},
    promotion="float",
    domain=((-2, 2), (0.3, 2)),
    accepts="biuf",
    remedy=_LOG_REMEDY,
)
def xlogy(x: object, y: object) -> AnyArray | None:
    """Return x·log(y), and 0 where x is 0 (unless y is NaN)."""
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, 0, x * np.log(np.where(zero, 1, y))).astype(np.result_type(x, y), copy=False)


@elementwise(
    vjp=lambda g, x, *, beta, threshold: np.where(x * beta > threshold, g, g * sigmoid(x * beta)),
    formula="g * np.where(x * beta > threshold, 1, 1 / (1 + np.exp(-beta * x)))",
    promotion="float",
    samples=[{"beta": 2.0, "threshold": 20.0}, {"beta": 1.0, "threshold": 0.5}],
    accepts="biuf",
)
def softplus(x: AnyArray, *, beta: TensorLike, threshold: TensorLike) -> AnyArray:
    """Return log(1 + exp(beta·x)) / beta, and x where beta·x is above the threshold."""
    z = beta * x
    soft = np.maximum(z, 0) + np.log1p(np.exp(-np.absolute(z)))
    return np.where(z > threshold, x, soft / beta).astype(x.dtype, copy=False)


@discrete(accepts="f", samples=[{"shapes": [(2, 3)]}, {"shapes": [()]}])
def binary_exponent(x: AnyArray) -> AnyArray:
    """Return the exponent e of x = m·2**e with 0.5 ≤ |m| < 1 (0 for 0)."""
    return np.frexp(x)[1]
