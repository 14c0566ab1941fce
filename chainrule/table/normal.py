"""The normal distribution's functions and the inverses of the error functions, without cancellation in the tails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.core.kinds import elementwise
from chainrule.table.special import erf_of, erfc_of, erfcx_tail

_HALF = math.sqrt(0.5)
_HALF_ROOT_PI = math.sqrt(math.pi) / 2
_ROOT_2_PI = math.sqrt(2 * math.pi)


def _double(x: Any) -> Any:
    return np.asarray(x, np.float64)


def _erfcx(x: Any) -> Any:
    x = _double(x)
    size = np.absolute(x)
    tail = erfcx_tail(np.maximum(size, 0.46875))
    with np.errstate(over="ignore"):
        near = np.exp(size * size) * erfc_of(np.minimum(size, 0.46875))
        right = np.where(size < 0.46875, near, tail)
        return np.where(np.isnan(x), np.nan, np.where(x < 0, 2 * np.exp(x * x) - right, right))


def _inverse(p: Any) -> Any:
    """The y ≥ 0 with erfc(y) = p, for p up to 1: Winitzki's approximation, then Halley's iteration."""
    ends = (p <= 0) | np.isnan(p)
    q = np.where(ends, 0.5, p)
    log_q = np.log(q)
    log = log_q + np.log(2 - q)
    half = 2 / (math.pi * 0.147) + 0.5 * log
    y = np.sqrt(np.maximum(np.sqrt(half * half - log / 0.147) - half, 0))
    for _ in range(3):
        away = (erfcx_of(y) - np.exp(y * y + log_q)) * -_HALF_ROOT_PI  # (erfc(y) − q) / erfc'(y)
        y = y - away / (1 + y * away)
    return np.where(ends, np.where(p == 0, np.inf, np.nan), y)


def _erfinv(x: Any) -> Any:
    """From erf where that is small, else from erfc."""
    x = _double(x)
    size = np.absolute(x)
    out = _inverse(1 - np.minimum(size, 1))
    small = size < 0.5
    near = np.where(small, out, 0)
    for _ in range(2):
        away = (erf_of(near) - np.where(small, size, 0)) * _HALF_ROOT_PI * np.exp(near * near)
        near = near - away / (1 + near * away)
    out = np.where(small, near, out)
    return np.copysign(np.where((size > 1) | np.isnan(x), np.nan, out), x)


def erfcx_of(x: Any) -> Any:
    """exp(x²)·erfc(x) of a float64 array."""
    return _erfcx(x)


@elementwise(
    d={"x": lambda x: _HALF_ROOT_PI * np.exp(np.square(erfinv(x)))},
    formula={"x": "g * np.sqrt(np.pi) / 2 * np.exp(erfinv(x) ** 2)"},
    domain=(-0.9, 0.9),
    promotion="float",
    accepts="biuf",
)
def erfinv(x):
    """The inverse of the error function; infinite at ±1, nan beyond."""
    with np.errstate(all="ignore"):
        return _erfinv(x).astype(x.dtype)


def _erfcx_derivative(x: Any, out: Any) -> Any:
    """2x·erfcx(x) − 2/√π; where the difference cancels, the asymptotic series of what is left of it (DLMF 7.12.1)."""
    large = x > 12
    z = 0.5 / np.square(np.where(large, x, 12))
    series: Any = 1.0
    for k in range(19, 1, -2):
        series = 1 - k * z * series
    return np.where(large, (-1 / _HALF_ROOT_PI) * z * series, 2 * np.where(large, 0, x) * out - 1 / _HALF_ROOT_PI)


@elementwise(
    d={"x": lambda x, out: _erfcx_derivative(x, out)},
    formula={"x": "g * (2 * x * out - 2 / np.sqrt(np.pi))"},
    promotion="float",
    accepts="biuf",
)
def erfcx(x):
    """exp(x²)·erfc(x), finite where erfc is too small for a number."""
    return _erfcx(x).astype(x.dtype)


@elementwise(
    d={"x": lambda x: np.exp(-0.5 * x * x) * (1 / _ROOT_2_PI)},
    formula={"x": "g * np.exp(-x ** 2 / 2) / np.sqrt(2 * np.pi)"},
    promotion="float",
    accepts="biuf",
)
def ndtr(x):
    """The normal distribution function: the share below x."""
    return (0.5 * erfc_of(-_HALF * _double(x))).astype(x.dtype)


def _log_ndtr_derivative(x: Any, out: Any) -> Any:
    """The density over the distribution function; erfcx would overflow on the right, the exponent cancel on the left."""
    positive = x > 0
    right, left = np.where(positive, x, 0), np.where(positive, 0, x)
    density = np.exp(-0.5 * np.square(right) - np.where(positive, out, 0)) / _ROOT_2_PI
    return np.where(positive, density, (2 / _ROOT_2_PI) / erfcx(-_HALF * left))


@elementwise(
    d={"x": lambda x, out: _log_ndtr_derivative(x, out)},
    formula={"x": "g * np.sqrt(2 / np.pi) / erfcx(-x / np.sqrt(2))"},
    promotion="float",
    accepts="biuf",
)
def log_ndtr(x):
    """The logarithm of the normal distribution function, finite far in the lower tail."""
    wide = _double(x)
    low = wide < -1
    with np.errstate(all="ignore"):
        tail = np.log(0.5 * _erfcx(np.where(low, -_HALF * wide, 0))) - 0.5 * wide * wide
        near = np.log1p(-0.5 * erfc_of(np.where(low, 0, _HALF * wide)))
    return np.where(low, tail, near).astype(x.dtype)


@elementwise(
    d={"x": lambda x: _ROOT_2_PI * np.exp(0.5 * np.square(ndtri(x)))},
    formula={"x": "g * np.sqrt(2 * np.pi) * np.exp(ndtri(x) ** 2 / 2)"},
    domain=(0.1, 0.9),
    promotion="float",
    accepts="biuf",
)
def ndtri(x):
    """The inverse of the normal distribution function; infinite at 0 and 1, nan beyond."""
    wide = _double(x)
    low = wide < 0.5
    with np.errstate(all="ignore"):
        y = _inverse(2 * np.where(low, wide, 1 - wide)) / _HALF
    return np.where(wide == 0.5, 0.0, np.where(low, -y, y)).astype(x.dtype)
