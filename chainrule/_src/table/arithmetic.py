"""Arithmetic: sums, products, quotients, powers, and the parts of complex numbers.

``ops.elementwise`` makes the public functions.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.rules.kinds import elementwise
from chainrule._src.tape.foreign import safe_divisor


def _remedy_if_infinite(text: str) -> Callable[[Any, Any], str]:
    """Return a ``remedy`` that gives advice for infinite operands."""
    return lambda x, y: text if x is None or y is None or math.inf in (builtins.abs(x), builtins.abs(y)) else ""


@elementwise(
    np.add,
    d={"x": 1, "y": 1},
    remedy=_remedy_if_infinite("inf + -inf is nan, so avoid infinite operands"),
)
def add(x: AnyArray, y: AnyArray) -> None:
    """Return the sum x + y, element by element."""


@elementwise(
    np.subtract,
    d={"x": 1, "y": -1},
    accepts="iufc",
    remedy=_remedy_if_infinite("inf - inf is nan, so avoid infinite operands"),
    on_bools="Subtraction, the `-` operator, with two bool tensors is not supported, use the `^` or `logical_xor()` operator instead.",
)
def sub(x: AnyArray, y: AnyArray) -> None:
    """Return the difference x − y, element by element."""


@elementwise(d={"x": -1, "y": 1}, accepts="iufc", overloads="010")
def rsub(x: object, y: object) -> AnyArray:
    """Return y − x, as computed by ``2 - x``."""
    return y - x


@op("mul multiply", method=True, in_place=True)
@elementwise(
    np.multiply,
    d={"x": lambda y: y, "y": lambda x: x},
    remedy=_remedy_if_infinite("0 * inf is nan, so avoid the infinite factor"),
)
def mul(x: AnyArray, y: AnyArray) -> None:
    """Return the product x · y, element by element."""


def _inverse(y: AnyArray) -> TensorLike:
    """Return 1 / y, also for Python numbers that are 0."""
    if isinstance(y, (int, float)) and y == 0:
        return math.copysign(math.inf, y)
    return 1 / y


def _quotient_remedy(x: Any, y: Any) -> str:
    if y is None:
        return "0/0 and inf/inf are nan, so add a small number to a denominator that can be 0, and keep the operands finite"
    if y == 0:
        return "0/0 is nan and x/0 infinite, so add a small number to the denominator, or divide by count.clip(min=1)"
    return "inf/inf is nan, so keep both operands from overflowing" if builtins.abs(y) == math.inf else ""


@op("true_divide", method=True, in_place=True)
@elementwise(
    np.divide,
    d={"x": lambda y: _inverse(y), "y": lambda x, y: -(x / y) / y},
    vjp={"x": lambda g, y: g / y},
    promotion="float",
    domain=((-2, 2), (0.4, 2)),
    remedy=_quotient_remedy,
)
def div(x: AnyArray, y: AnyArray) -> None:
    """Return the quotient x / y, element by element. Integers are divided as floats of the default dtype."""


_BITS = {"e": np.int16, "f": np.int32, "d": np.int64}


def masked(mask: Any, g: Any) -> AnyArray:
    """Return ``np.where(mask, g, 0)``: infinities and NaNs outside of the mask become 0."""
    bits = _BITS.get(g.dtype.char) if type(g) is np.ndarray and g.ndim else None
    if bits is None or type(mask) is not np.ndarray or mask.dtype.kind != "b":
        return np.where(mask, g, 0)
    return np.multiply(g.view(bits), mask).view(g.dtype)  # without branches, many times faster than np.where


def sgn(x: AnyArray) -> AnyArray:
    """Return x / |x|, and 0 at 0: the direction of steepest ascent of |x|."""
    if not _complex(x):
        return np.sign(x)
    size = np.absolute(x)
    zero = size == 0
    return np.where(zero, 0, x / safe_divisor(size, zero))


def _complex(x: AnyArray) -> bool:
    return isinstance(x, complex) or getattr(getattr(x, "dtype", None), "kind", "") == "c"


def _power_dx(x: AnyArray, y: AnyArray) -> TensorLike:
    if isinstance(y, (int, float)):
        if y == 2:
            return 2 * x
        return y if y == 1 else y * x ** (y - 1) if y != 0 else np.zeros_like(x)
    # where 1 / x overflows, mask the base, not every exponent 0: the mixed derivative is 1 / x there
    masked_out = (y == 0) & ~(np.abs(x) > 2e-38)
    return np.where(masked_out, 0, y) * np.where(masked_out, 1, x) ** (y - 1)


def _power_dy(x: AnyArray, y: AnyArray, out: AnyArray) -> AnyArray:
    """Return out·log x, and 0 where x is 0 and the exponent is not negative."""
    if _complex(y) and not _complex(x):
        x = x + 0j  # a negative number has a logarithm
    if isinstance(x, (int, float, complex)):  # a Python number, which does not widen the dtype
        if x != 0:
            return out * np.log(x).item()
        x = np.zeros_like(out)
    masked_out = x == 0
    if not _complex(y):
        masked_out = masked_out & (y >= 0)
    return out * np.log(np.where(masked_out, 1, x))


def _power_remedy(x: Any, y: Any) -> str:
    if x is not None and x > 0:
        return ""
    return (
        "a negative base has no real power that is not whole, and at 0 powers below 1 have infinite slope, so clamp the base, "
        "x.clip(min=eps) ** p"
    )


@elementwise(
    np.power,
    d={"x": _power_dx, "y": _power_dy},
    formula={
        "x": "g * np.where(y == 0, 0, y * x ** np.where(y == 0, 1, y - 1))",
        "y": "g * np.where((x == 0) & (y >= 0), 0, out * np.log(x))",
    },
    domain=((0.3, 2), (-2, 2)),
    aliases={"y": "exponent"},
    overloads="201",
    accepts="iufc",
    remedy=_power_remedy,
)
def pow(x: AnyArray, y: AnyArray) -> None:
    """Return x to the power y. The derivative with respect to x is 0 where y is 0; with respect to y it is 0 where x is 0."""


@elementwise(
    np.remainder,
    d={"x": 1, "y": lambda x, y: -np.floor_divide(x, y)},
    domain=((-2, 2), (0.6, 0.9)),
    overloads="101",
    accepts="iuf",
)
def remainder(x: AnyArray, y: AnyArray) -> None:
    """Return the remainder of floor division; it has the sign of the divisor."""


@elementwise(
    np.fmod,
    d={"x": 1, "y": lambda x, y: -np.trunc(x / y)},
    domain=((-2, 2), (0.6, 0.9)),
    overloads="101",
    accepts="iuf",
)
def fmod(x: AnyArray, y: AnyArray) -> None:
    """Return the remainder of truncated division; it has the sign of the dividend."""


@op("neg negative", method=True, in_place=True)
@elementwise(
    np.negative,
    d=-1,
    accepts="iufc",
    on_bools="Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
    "mask, use the `~` or `logical_not()` operator instead.",
)
def neg(x: AnyArray) -> None:
    """Return the negative of every element."""


@elementwise(np.positive, d=1, accepts="iufc")
def positive(x: AnyArray) -> None:
    """Return a copy (``+x``)."""


@elementwise(
    np.absolute,
    vjp=lambda g, x: g * sgn(x),
    jvp=lambda t, x: np.real(np.conjugate(sgn(x)) * t) if _complex(x) else sgn(x) * t,
    formula="g * np.sign(x)",
    accepts="iufc",
)
def abs(x: AnyArray) -> None:
    """Return the absolute value. The derivative at 0 is 0."""


@op(method=True, in_place=True)
@elementwise(np.square, d=lambda x: 2 * x, naming="PowBackward0", accepts="iufc")
def square(x: AnyArray) -> None:
    """Return the square of every element."""


@op(method=True, in_place=True)
@elementwise(
    np.sqrt,
    d=lambda out: 0.5 / out,
    promotion="float",
    domain=(0.2, 3),
    remedy="it is not real below 0, and its slope at 0 is infinite, so add a small number inside, sqrt(x + eps)",
)
def sqrt(x: AnyArray) -> None:
    """Return the square root. The derivative at 0 is infinite."""


@op(method=True, in_place=True)
@elementwise(
    d=lambda out: -0.5 * out**3,
    formula="-0.5 * g * out ** 3",
    promotion="float",
    domain=(0.3, 3),
    remedy="it is infinite at 0, so add a small number inside, rsqrt(x + eps)",
)
def rsqrt(x: object) -> AnyArray:
    """Return one over the square root."""
    return 1 / np.sqrt(x)


@op()
@elementwise(
    np.cbrt,
    d=lambda out: 1 / (3 * out * out),
    promotion="float",
    domain=(0.3, 3),
    remedy="its slope at 0 is infinite, so add a small number inside, cbrt(x + eps)",
)
def cbrt(x: AnyArray) -> None:
    """Return the cube root."""


@op(method=True, in_place=True)
@elementwise(
    np.reciprocal,
    d=lambda out: -out * out,
    promotion="float",
    domain=(0.3, 3),
    remedy="it is infinite at 0, so add a small number to the denominator",
)
def reciprocal(x: AnyArray) -> None:
    """Return one over every element."""


@elementwise(np.conjugate, vjp=lambda g: np.conjugate(g), jvp=lambda t: np.conjugate(t))
def conj_physical(x: AnyArray) -> None:
    """Return the complex conjugate."""


@elementwise(vjp=lambda g: g, jvp=lambda t: np.real(t), view=True)
def real(x: object) -> AnyArray:
    """Return the real part."""
    return np.real(x)


@elementwise(vjp=lambda g: g * 1j, view=True, jvp=lambda t: np.imag(t), domain="complex")
def imag(x: TensorLike) -> Any:
    """Return the imaginary part."""
    return np.imag(x)


@elementwise(
    vjp={"x": lambda g: np.real(g), "y": lambda g: np.imag(g)},
    jvp={"x": lambda t: t + 0j, "y": lambda t: t * 1j},
    aliases={"x": "real", "y": "imag"},
    accepts="f",
)
def complex_(x: TensorLike, y: TensorLike) -> Any:
    """Return the complex numbers x + iy."""
    return x + 1j * y


@op(method=True)
@elementwise(
    vjp=lambda g, x: _angle_vjp(g, x),
    jvp=lambda t, x: np.where(x == 0, 0, np.imag(t / np.where(x == 0, 1, x))) if _complex(x) else 0 * t,
    formula="0 * g if x.dtype.kind == 'f' else g * 1j * x / np.abs(x) ** 2",
    promotion="float",
)
def angle(x: Any) -> AnyArray:
    """Return the argument of every complex number (0 or π for reals)."""
    return (
        np.arctan2(np.imag(x), np.real(x))
        if _complex(x)
        else np.where(x < 0, np.pi, np.where(np.isnan(x), x, 0)).astype(x.dtype)
    )


def _angle_vjp(g: AnyArray, x: AnyArray) -> AnyArray | None:
    if not _complex(x):
        return np.zeros_like(g)
    size = np.absolute(x)
    zero = size == 0
    size = np.where(zero, 1, size)
    return np.where(zero, 0, g * 1j * x / size / size)


@op(method=True, in_place=True)
@elementwise(
    np.hypot,
    d={"x": lambda x, out: x / out, "y": lambda y, out: y / out},
    promotion="float",
    domain=((0.3, 2), (0.3, 2)),
    accepts="f",
    remedy="its slope at (0, 0) is 0/0, so add a small number inside, sqrt(x * x + y * y + eps)",
)
def hypot(x: AnyArray, y: AnyArray) -> None:
    """Return √(x² + y²), computed without overflow."""


@op(method=True, in_place=True)
@elementwise(np.copysign, d={"x": lambda x, out: np.sign(x) * np.sign(out), "y": 0}, promotion="float", accepts="biuf")
def copysign(x: AnyArray, y: AnyArray) -> None:
    """Return the magnitude of x with the sign of y."""


@elementwise(
    d={"x": lambda weight: 1 - weight, "y": lambda weight: weight, "weight": lambda x, y: y - x},
    aliases={"y": "end"},
    overloads="1101",
)
def lerp(x: Any, y: Any, weight: Any) -> Any:
    """Return x + weight·(y − x), computed from the nearer end: exact at both ends. float16 is computed in float32."""
    if x.dtype == y.dtype == np.float16:
        single = weight if isinstance(weight, (int, float)) else weight.astype(np.float32)
        return lerp.value(x.astype(np.float32), y.astype(np.float32), single).astype(np.float16)
    difference = y - x
    if isinstance(weight, float):
        weight = float(difference.dtype.type(weight))
        near = abs(weight) < 0.5
        return ((x if near else y) + (weight if near else weight - 1) * difference).astype(difference.dtype, copy=False)
    near = np.absolute(weight) < 0.5
    return (np.where(near, x, y) + np.where(near, weight, weight - 1) * difference).astype(difference.dtype, copy=False)


@elementwise(
    d={"x": 1, "y": lambda z, *, value: z * value, "z": lambda y, *, value: y * value},
    samples=[{"value": 1.5}],
    aliases={"y": "tensor1", "z": "tensor2"},
)
def addcmul(x: object, y: object, z: object, *, value: object) -> AnyArray:
    """Return x + value·y·z."""
    return x + value * (y * z)


@elementwise(
    d={"x": 1, "y": lambda z, *, value: value / z, "z": lambda y, z, *, value: -value * y / (z * z)},
    samples=[{"value": 1.5}],
    domain=((-2, 2), (-2, 2), (0.4, 2)),
    aliases={"y": "tensor1", "z": "tensor2"},
)
def addcdiv(x: object, y: object, z: object, *, value: object) -> AnyArray:
    """Return x + value·y/z."""
    return x + value * np.true_divide(y, z)
