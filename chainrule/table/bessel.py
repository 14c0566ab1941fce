"""Modified Bessel functions of the first kind, of orders 0 and 1.

Up to 20 their power series, whose terms are all of one sign; beyond, the asymptotic series, whose smallest term is by
then too small for a double (DLMF 10.25.2, 10.40.1). Both are computed times exp(−|x|), which keeps them finite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.core.kinds import elementwise

_FAR = 20.0


def _power_series(x: Any, order: int) -> Any:
    square = 0.25 * x * x
    out = np.ones_like(x)
    for k in range(60, 0, -1):
        out = 1 + out * square / (k * (k + order))
    return out * np.exp(-x) * (0.5 * x) ** order


def _asymptotic(x: Any, order: int) -> Any:
    term = out = np.ones_like(x)
    for k in range(1, 28):
        term = term * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k * x)
        out = out + term
    return out / (math.sqrt(2 * math.pi) * np.sqrt(x))


def _scaled(x: Any, order: int) -> Any:
    """exp(−|x|)·I(x)."""
    wide = np.asarray(x, np.float64)
    size = np.absolute(wide)
    near = size <= _FAR
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.where(
            near, _power_series(np.where(near, size, 0), order), _asymptotic(np.where(near, _FAR, size), order)
        )
    out = np.where(np.isnan(wide), np.nan, out)
    return np.copysign(out, wide) if order else out


def _whole(x: Any, order: int) -> Any:
    with np.errstate(over="ignore"):
        return (_scaled(x, order) * np.exp(np.absolute(np.asarray(x, np.float64)))).astype(x.dtype)


def _over(y: Any, x: Any) -> Any:
    """y / x, and 1/2 at 0: the limit of I₁(x)/x."""
    zero = x == 0
    return np.where(zero, 0.5, y / np.where(zero, 1, x))


@elementwise(d={"x": lambda x: i1(x)}, formula={"x": "g * i1(x)"}, promotion="float", accepts="biuf")
def i0(x):
    """The modified Bessel function I₀(x)."""
    return _whole(x, 0)


@elementwise(
    d={"x": lambda x, out: i0(x) - _over(out, x)},
    formula={"x": "g * (i0(x) - out / x)"},
    promotion="float",
    accepts="biuf",
)
def i1(x):
    """The modified Bessel function I₁(x)."""
    return _whole(x, 1)


@elementwise(
    d={"x": lambda x, out: i1e(x) - np.sign(x) * out},
    formula={"x": "g * (i1e(x) - np.sign(x) * out)"},
    promotion="float",
    accepts="biuf",
)
def i0e(x):
    """exp(−|x|)·I₀(x)."""
    return _scaled(x, 0).astype(x.dtype)


@elementwise(
    d={"x": lambda x, out: i0e(x) - np.sign(x) * out - _over(out, x)},
    formula={"x": "g * (i0e(x) - np.sign(x) * out - out / x)"},
    promotion="float",
    accepts="biuf",
)
def i1e(x):
    """exp(−|x|)·I₁(x)."""
    return _scaled(x, 1).astype(x.dtype)
