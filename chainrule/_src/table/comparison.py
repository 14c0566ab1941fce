"""Comparisons, extrema, clamps and rounding: functions with kinks or steps, or without a gradient.

``ops.elementwise`` makes the public functions.

Where a derivative does not exist, the rules follow PyTorch: at a tie, maximum and minimum send half of the cotangent to
each operand; clamp sends all of it to the elements at their bounds. An element that is not selected gets 0, even from an
infinite cotangent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.rules.batching import batch_elementwise
from chainrule._src.rules.kinds import discrete, elementwise
from chainrule._src.rules.primitive import Primitive
from chainrule._src.table.arithmetic import masked

ndarray = np.ndarray


#: the cotangent of an operand that is not chosen is 0, also if g is infinite: 0 * g would be nan
_MASKED = "np.where({}, 0, np.where(x == y, 0.5 * g, g))"


def _tie_share(g: AnyArray, tie: object, behind: object) -> AnyArray:
    """Return an operand's share of the cotangent: half at a tie, none where ``behind`` holds."""
    g = masked(np.logical_not(behind), g)
    return g if type(tie) is ndarray and not tie.any() else np.where(tie, 0.5 * g, g)


@op(method=True, in_place=True)
@elementwise(
    np.maximum,
    vjp={"x": lambda g, x, y: _tie_share(g, x == y, x < y), "y": lambda g, x, y: _tie_share(g, x == y, y < x)},
    formula={"x": _MASKED.format("x < y"), "y": _MASKED.format("y < x")},
    accepts="biuf",
)
def maximum(x: AnyArray, y: AnyArray) -> None:
    """Return the larger of two elements; NaN where either is NaN."""


@op(method=True, in_place=True)
@elementwise(
    np.minimum,
    vjp={"x": lambda g, x, y: _tie_share(g, x == y, x > y), "y": lambda g, x, y: _tie_share(g, x == y, y > x)},
    formula={"x": _MASKED.format("x > y"), "y": _MASKED.format("y > x")},
    accepts="biuf",
)
def minimum(x: AnyArray, y: AnyArray) -> None:
    """Return the smaller of two elements; NaN where either is NaN."""


@elementwise(
    vjp={"x": lambda g, x, y: masked(x >= y, g), "y": lambda g, x, y: masked(x < y, g)},
    aliases={"y": "min"},
    naming="ClampBackward0",
    accepts="biuf",
)
def clamp_min(x: object, y: object) -> AnyArray:
    """Return max(x, y). At the bound the derivative with respect to x is 1, and with respect to y it is 0."""
    return np.maximum(x, y)


@elementwise(
    vjp={"x": lambda g, x, y: masked(x <= y, g), "y": lambda g, x, y: masked(x > y, g)},
    aliases={"y": "max"},
    naming="ClampBackward0",
    accepts="biuf",
)
def clamp_max(x: object, y: object) -> AnyArray:
    """Return min(x, y). At the bound the derivative with respect to x is 1, and with respect to y it is 0."""
    return np.minimum(x, y)


@elementwise(
    vjp={
        "x": lambda g, x, min, max: masked((x >= min) & (x <= max), g),
        "min": lambda g, x, min, max: masked((x < min) & (min < max), g),
        "max": lambda g, x, min, max: masked((x > max) | (max < min), g),
    },
    naming="ClampBackward0",
    accepts="biuf",
)
def clamp_between(x: object, min: object, max: object) -> AnyArray:
    """Limit x to [min, max]; where min is larger than max, return max."""
    return np.minimum(np.maximum(x, min), max)


@op(method=True)
@elementwise(
    np.fmax,
    vjp={
        "x": lambda g, x, y: masked((x >= y) | np.isnan(y), g),
        "y": lambda g, x, y: masked(~((x >= y) | np.isnan(y)), g),
    },
    accepts="biuf",
)
def fmax(x: AnyArray, y: AnyArray) -> None:
    """Return the larger of two elements, ignoring a NaN in one of them."""


@op(method=True)
@elementwise(
    np.fmin,
    vjp={
        "x": lambda g, x, y: masked((x <= y) | np.isnan(y), g),
        "y": lambda g, x, y: masked(~((x <= y) | np.isnan(y)), g),
    },
    accepts="biuf",
)
def fmin(x: AnyArray, y: AnyArray) -> None:
    """Return the smaller of two elements, ignoring a NaN in one of them."""


@elementwise(
    vjp={
        "x": lambda g, condition: masked(condition, g),
        "y": lambda g, condition: masked(np.logical_not(condition), g),
    },
    formula={"x": "np.where(condition, g, 0)", "y": "np.where(condition, 0, g)"},
    domain=("bool", (-2, 2), (-2, 2)),
)
def where(condition: TensorLike, x: TensorLike, y: TensorLike) -> Any:
    """Return x where the condition holds, else y."""
    return np.where(condition, x, y)


def _in_bounds(x: AnyArray, low: Any, high: object) -> Any:
    inside = True
    if low is not None:
        inside = x >= low
    if high is not None:
        inside = inside & (x <= high)
    return inside


@elementwise(
    vjp=lambda g, x, *, min, max: masked(_in_bounds(x, min, max), g),
    formula="g * ((x >= (-np.inf if min is None else min)) & (x <= (np.inf if max is None else max)))",
    samples=[{"min": -0.6, "max": 1.1}, {"min": 0.2, "max": None}, {"min": None, "max": 0.4}],
    naming="ClampBackward1",
    accepts="iuf",
)
def clamp(x: TensorLike, *, min: TensorLike, max: TensorLike) -> Any:
    """Limit x to [min, max]. At a bound the derivative is 1."""
    if min is not None:
        x = np.maximum(min, x)  # keeps the sign of a zero at a bound of 0
    return x if max is None else np.minimum(max, x)


@op(method=True, in_place=True)
@elementwise(vjp=lambda g, out: masked(np.logical_not(out <= 0), g), accepts="iuf", tied=True)
def relu(x: object) -> AnyArray:
    """Return max(x, 0), where -0. stays -0. The derivative at 0 is 0."""
    return np.maximum(0, x)


@elementwise(
    vjp=lambda g, x, *, negative_slope: np.where(x > 0, g, negative_slope * g),
    samples=[{"negative_slope": 0.1}],
    accepts="f",
    tied=True,
)
def leaky_relu(x: AnyArray, *, negative_slope: Any) -> AnyArray:
    """Return x where it is positive, else negative_slope·x."""
    return np.where(x > 0, x, negative_slope * x).astype(x.dtype)


@elementwise(
    vjp=lambda g, x, *, threshold: masked(np.logical_not(x <= threshold), g),
    samples=[{"threshold": 0.1, "value": 20.0}],
    accepts="iuf",
    tied=True,
)
def threshold(x: AnyArray, *, threshold: Any, value: Any) -> AnyArray:
    """Return x where it is above the threshold, else ``value``."""
    return np.where(x <= threshold, value, x).astype(x.dtype)


@elementwise(d=lambda x: np.isfinite(x), samples=[{"nan": 0.0, "posinf": None, "neginf": None}])
def nan_to_num(x: AnyArray, *, nan: object, posinf: object, neginf: object) -> AnyArray:
    """Replace NaNs and infinities by numbers."""
    finite = np.where(np.isnan(x), nan, x)
    info = np.finfo(x.dtype) if x.dtype.kind == "f" else None
    if info is not None:
        finite = np.where(x == np.inf, info.max if posinf is None else posinf, finite)
        finite = np.where(x == -np.inf, info.min if neginf is None else neginf, finite)
    return finite.astype(x.dtype)


# -- step functions: the derivative is 0 almost everywhere -----------------------------------------------------------


@elementwise(np.sign, d=0, accepts="iuf")
def sign(x: AnyArray) -> None:
    """Return −1, 0 or 1."""


def _keeps_integers(ufunc: AnyArray) -> Any:
    """Return a ufunc that keeps integer dtypes, as NumPy's own does since 2.1."""
    if ufunc(np.int64(0)).dtype.kind == "i":
        return ufunc
    return lambda x: x.copy() if x.dtype.kind in "iu" else ufunc(x)


@op(method=True, in_place=True)
@elementwise(np.floor, value=_keeps_integers(np.floor), d=0, accepts="iuf")
def floor(x: AnyArray) -> None:
    """Return the largest integer that is not above each element."""


@op(method=True, in_place=True)
@elementwise(np.ceil, value=_keeps_integers(np.ceil), d=0, accepts="iuf")
def ceil(x: AnyArray) -> None:
    """Return the smallest integer that is not below each element."""


@op("trunc fix", method=True, in_place=True)
@elementwise(np.trunc, value=_keeps_integers(np.trunc), d=0, accepts="iuf")
def trunc(x: AnyArray) -> None:
    """Return the integer part of each element."""


@elementwise(np.rint, d=0, accepts="iuf")
def round(x: AnyArray) -> None:
    """Round to the nearest integer, ties to even."""


@elementwise(np.floor_divide, d={"x": 0, "y": 0}, domain=((-2, 2), (0.6, 0.9)), accepts="iuf")
def floor_divide(x: AnyArray, y: AnyArray) -> None:
    """Return the floor of the quotient."""


@elementwise(d={"x": 0, "y": 0}, domain=((-2, 2), (0.6, 0.9)), accepts="iuf")
def trunc_divide(x: AnyArray, y: AnyArray) -> AnyArray:
    """Return the integer part of the quotient; it is exact for integers."""
    return (x - np.fmod(x, y)) // y if np.result_type(x, y).kind in "iu" else np.trunc(x / y)


@elementwise(np.heaviside, d={"x": 0, "y": lambda x: x == 0}, accepts="biuf")
def heaviside(x: AnyArray, y: AnyArray) -> None:
    """Return 0 below zero, y at zero, 1 above."""


@op(method=True, in_place=True)
@elementwise(
    np.nextafter,
    d={"y": 0},
    vjp={"x": lambda g, x, y: np.where(x == y, 0, g)},
    formula={"x": "g * (x != y)"},
    accepts="f",
)
def nextafter(x: AnyArray, y: AnyArray) -> None:
    """Return the next representable number after x in the direction of y."""


# -- discrete results ------------------------------------------------------------------------------------------------


def _discrete_ufunc(
    ufunc: np.ufunc, names: str, doc: str, accepts: str = "biufc", promotion: str = "common", in_place: bool = True
) -> Primitive:
    """Declare a primitive with a boolean or integer result, computed by a NumPy ufunc."""
    declare = discrete(
        value=ufunc, name=names.split()[0], doc=doc, batch=batch_elementwise, accepts=accepts, promotion=promotion,
        domain=(-2, 2) if "f" in accepts else "int",
    )  # fmt: skip
    row = declare((lambda x, y: ufunc(x, y)) if ufunc.nin == 2 else (lambda x: ufunc(x)))
    return op(names, method=True, in_place=in_place)(row)


eq = _discrete_ufunc(np.equal, "eq", "Return whether two elements are equal.", promotion="comparison")
ne = _discrete_ufunc(np.not_equal, "ne not_equal", "Return whether two elements differ.", promotion="comparison")
lt = _discrete_ufunc(np.less, "lt less", "Return whether x is less than y.", accepts="biuf", promotion="comparison")
le = _discrete_ufunc(
    np.less_equal, "le less_equal", "Return whether x is at most y.", accepts="biuf", promotion="comparison"
)
gt = _discrete_ufunc(
    np.greater, "gt greater", "Return whether x is greater than y.", accepts="biuf", promotion="comparison"
)
ge = _discrete_ufunc(
    np.greater_equal, "ge greater_equal", "Return whether x is at least y.", accepts="biuf", promotion="comparison"
)
logical_and = _discrete_ufunc(np.logical_and, "logical_and", "Return whether both elements are nonzero.")
logical_or = _discrete_ufunc(np.logical_or, "logical_or", "Return whether at least one of two elements is nonzero.")
logical_xor = _discrete_ufunc(np.logical_xor, "logical_xor", "Return whether exactly one of two elements is nonzero.")
logical_not = _discrete_ufunc(np.logical_not, "logical_not", "Return whether an element is zero.")
bitwise_and = _discrete_ufunc(np.bitwise_and, "bitwise_and", "Return the bits set in both elements.", accepts="biu")
bitwise_or = _discrete_ufunc(
    np.bitwise_or, "bitwise_or", "Return the bits set in at least one of two elements.", accepts="biu"
)
bitwise_xor = _discrete_ufunc(
    np.bitwise_xor, "bitwise_xor", "Return the bits set in exactly one of two elements.", accepts="biu"
)
bitwise_not = _discrete_ufunc(np.invert, "bitwise_not", "Flip all bits (logical not for booleans).", accepts="biu")
bitwise_left_shift = _discrete_ufunc(
    np.left_shift, "bitwise_left_shift", "Shift the bits of x left by y.", accepts="iu"
)
bitwise_right_shift = _discrete_ufunc(
    np.right_shift, "bitwise_right_shift", "Shift the bits of x right by y.", accepts="iu"
)
isnan = _discrete_ufunc(np.isnan, "isnan", "Return whether an element is NaN.", in_place=False)
isinf = _discrete_ufunc(np.isinf, "isinf", "Return whether an element is infinite.", in_place=False)
isfinite = _discrete_ufunc(np.isfinite, "isfinite", "Return whether an element is a finite number.", in_place=False)
signbit = _discrete_ufunc(np.signbit, "signbit", "Return whether the sign bit is set.", accepts="biuf", in_place=False)
gcd = _discrete_ufunc(np.gcd, "gcd", "Return the greatest common divisor.", accepts="iu")
lcm = _discrete_ufunc(np.lcm, "lcm", "Return the least common multiple.", accepts="iu")
