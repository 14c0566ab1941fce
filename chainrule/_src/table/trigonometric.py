"""Trigonometric and hyperbolic functions and their inverses. ``ops.elementwise`` makes the public functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.types import AnyArray
from chainrule._src.rules.kinds import elementwise
from chainrule._src.tape.foreign import safe_divisor

_SINH_REMEDY = "it grows as exp(x) and is infinite for x above 710 (float64), 89 (float32) or 11 (float16): tanh(x) is sinh(x) / cosh(x)"
_DOMAIN_REMEDY = "it is real only between -1 and 1, and at the ends its slope is infinite, so x.clip(-1 + eps, 1 - eps)"


@op(method=True, in_place=True)
@elementwise(np.sin, d=lambda x: np.cos(x), promotion="float")
def sin(x: AnyArray) -> None:
    """Return the sine of angles in radians."""


@op(method=True, in_place=True)
@elementwise(np.cos, d=lambda x: -np.sin(x), promotion="float")
def cos(x: AnyArray) -> None:
    """Return the cosine of angles in radians."""


@op(method=True, in_place=True)
@elementwise(np.tan, d=lambda out: 1 + out * out, promotion="float", domain=(-1, 1))
def tan(x: AnyArray) -> None:
    """Return the tangent of angles in radians."""


@op("asin arcsin", method=True, in_place=True)
@elementwise(
    np.arcsin, d=lambda x: 1 / np.sqrt(1 - x * x), promotion="float", domain=(-0.8, 0.8), remedy=_DOMAIN_REMEDY
)
def asin(x: AnyArray) -> None:
    """Return the inverse sine, in radians."""


@op("acos arccos", method=True, in_place=True)
@elementwise(
    np.arccos, d=lambda x: -1 / np.sqrt(1 - x * x), promotion="float", domain=(-0.8, 0.8), remedy=_DOMAIN_REMEDY
)
def acos(x: AnyArray) -> None:
    """Return the inverse cosine, in radians."""


@op("atan arctan", method=True, in_place=True)
@elementwise(np.arctan, d=lambda x: 1 / (1 + x * x), promotion="float")
def atan(x: AnyArray) -> None:
    """Return the inverse tangent, in radians."""


def _over_squares(u: object, x: AnyArray, y: AnyArray) -> AnyArray:
    """Return u / (x² + y²), and 0 at the origin, without squares of tiny or huge numbers."""
    r = np.hypot(x, y)
    zero = r == 0
    r = safe_divisor(r, zero)
    return np.where(zero, 0, u / r / r)


@op("atan2 arctan2", method=True, in_place=True)
@elementwise(
    np.arctan2,
    d={"x": lambda x, y: _over_squares(y, x, y), "y": lambda x, y: -_over_squares(x, x, y)},
    formula={"x": "g * y / (x ** 2 + y ** 2)", "y": "-g * x / (x ** 2 + y ** 2)"},
    promotion="float",
    accepts="biuf",
)
def atan2(x: AnyArray, y: AnyArray) -> None:
    """Return the angle of the point (y, x), in radians. The gradient at the origin is 0."""


@op(method=True, in_place=True)
@elementwise(np.sinh, d=lambda x: np.cosh(x), promotion="float", remedy=_SINH_REMEDY)
def sinh(x: AnyArray) -> None:
    """Return the hyperbolic sine."""


@op(method=True, in_place=True)
@elementwise(np.cosh, d=lambda x: np.sinh(x), promotion="float", remedy=_SINH_REMEDY)
def cosh(x: AnyArray) -> None:
    """Return the hyperbolic cosine."""


@op("tanh nn.functional.tanh", method=True, in_place=True)
@elementwise(np.tanh, vjp=lambda g, out: g * (1 - out * out), d=lambda out: 1 - out * out, promotion="float")
def tanh(x: AnyArray) -> None:
    """Return the hyperbolic tangent."""


@op("asinh arcsinh", method=True, in_place=True)
@elementwise(np.arcsinh, d=lambda x: 1 / np.sqrt(x * x + 1), promotion="float")
def asinh(x: AnyArray) -> None:
    """Return the inverse hyperbolic sine."""


@op("acosh arccosh", method=True, in_place=True)
@elementwise(
    np.arccosh,
    d=lambda x: 1 / np.sqrt(x - 1) / np.sqrt(x + 1),
    formula="g / (np.sqrt(x - 1) * np.sqrt(x + 1))",
    promotion="float",
    domain=(1.2, 3),
    remedy="it is real only from 1 on, so x.clip(min=1 + eps)",
)
def acosh(x: AnyArray) -> None:
    """Return the inverse hyperbolic cosine."""


@op("atanh arctanh", method=True, in_place=True)
@elementwise(
    np.arctanh,
    d=lambda x: 1 / (1 - x * x),
    promotion="float",
    domain=(-0.8, 0.8),
    remedy="it is real only between -1 and 1, so x.clip(-1 + eps, 1 - eps)",
)
def atanh(x: AnyArray) -> None:
    """Return the inverse hyperbolic tangent."""


def _sinc_derivative(x: AnyArray) -> AnyArray:
    px = np.pi * x
    small = np.absolute(px) < 0.1
    near = np.where(small, px, 0)
    square = near * near
    series = near * square * (1 / 30 - square * (1 / 840 - square * (1 / 45360))) - near / 3  # +0. at 0
    px = np.where(small, 1, px)
    return np.pi * np.where(small, series, (np.cos(px) - np.sin(px) / px) / px)


@op("sinc special.sinc", method=True, in_place=True)
@elementwise(
    d=_sinc_derivative,
    formula="g * np.pi * (np.cos(np.pi*x) * np.pi*x - np.sin(np.pi*x)) / (np.pi*x) ** 2",
    promotion="float",
    domain=(0.2, 2),
)
def sinc(x: Any) -> AnyArray:
    """Return sin(πx) / (πx), and 1 at 0."""
    zero = x == 0
    px = np.pi * np.where(zero, 1, x)
    return np.where(zero, 1, np.sin(px) / px).astype(x.dtype)


@op(method=True, in_place=True)
@elementwise(np.deg2rad, d=lambda: np.pi / 180, promotion="float", naming="Deg2RadBackward0", accepts="biuf")
def deg2rad(x: AnyArray) -> None:
    """Convert degrees to radians."""


@op(method=True, in_place=True)
@elementwise(np.rad2deg, d=lambda: 180 / np.pi, promotion="float", naming="Rad2DegBackward0", accepts="biuf")
def rad2deg(x: AnyArray) -> None:
    """Convert radians to degrees."""
