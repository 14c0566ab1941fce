"""The error functions, products with a logarithm that are 0 at 0, and the modified Bessel functions I₀ and I₁.

These are computed with NumPy only; SciPy computes the other special functions (``ops/scipy_special.py``).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.rules.kinds import elementwise
from chainrule._src.tape.foreign import Foreign, of_elements

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_BLOCK = 8192
_SMALL = 300  # up to this many elements, one call of the C library per element is about as fast

# -- error functions -------------------------------------------------------------------------------------------------

# Rational approximations of erf on [0, 0.46875], of exp(x²)·erfc on [0.46875, 4], and of exp(x²)·erfc − 1/(x√π) above 4:
# W. J. Cody (1969), "Rational Chebyshev approximations for the error function", Mathematics of Computation 23.
_NEAR = (
    (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_MIDDLE = (
    (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1, 2.98635138197400131e2,
     8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3),
    (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
     3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
)  # fmt: skip
_FAR = (
    (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
     1.60837851487422766e-2, 6.58749161529837803e-4),
    (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
     2.33520497626869185e-3),
)  # fmt: skip


def _ratio(coefficients: Any, x: AnyArray) -> AnyArray:
    above, below = coefficients
    p, q = above[0] * x + above[1], below[0] * x + below[1]
    for a, b in zip(above[2:], below[2:], strict=True):
        p *= x
        p += a
        q *= x
        q += b
    p /= q
    return p


def _decay(y: AnyArray) -> AnyArray:
    """Return exp(−y²), with y² split into an exact part and a small one."""
    head = np.trunc(y * 16) / 16
    return np.exp(-head * head) * np.exp(-(y - head) * (y + head))


def _erfc_tail(y: AnyArray) -> AnyArray:
    """Return erfc for y ≥ 0.46875."""
    out = np.zeros_like(y)  # stays 0 where erfc is too small for a double
    middle, far = y <= 4, (y > 4) & (y < 26.6)
    m = y[middle]
    out[middle] = _decay(m) * _ratio(_MIDDLE, m)
    f = y[far]
    if f.size:
        z = 1 / (f * f)
        out[far] = _decay(f) * (1 / math.sqrt(math.pi) - z * _ratio(_FAR, z)) / f
    out[np.isnan(y)] = np.nan
    return out


#: erf(x)/x as a ratio of polynomials in x² up to 3.95, where erf rounds to 1: fitted with relative error 2·10⁻⁸.
_SINGLE = (
    (2.0259442508725453e-6, 2.8468556258258284e-4, 3.8080236017276037e-3, 5.287501636331567e-2, 1.915469607391112e-1,
     1.1283791437940116),
    (3.783206767006973e-5, 1.1706942374493873e-3, 1.5054810007351909e-2, 1.1455825118579706e-1, 5.030867502598195e-1,
     1.0),
)  # fmt: skip


def _erf_of(x: AnyArray) -> AnyArray:
    if x.dtype == np.float32:
        wide = np.minimum(np.maximum(x, -3.93), 3.93).astype(np.float64)
        return wide * _ratio(_SINGLE, wide * wide)
    return _by_region(x, lambda near: near, lambda tail, x: np.copysign(1 - tail, x))


def _erfc_of(x: AnyArray) -> AnyArray:
    return _by_region(x, lambda near: 1 - near, lambda tail, x: np.where(x < 0, 2 - tail, tail))


def _by_region(x: AnyArray, from_erf: AnyFunction, from_erfc: AnyFunction) -> AnyArray:
    """Apply ``from_erf`` to erf(x) where x is small, and ``from_erfc`` to erfc(|x|) and x elsewhere."""
    y = np.abs(x)
    near = y <= 0.46875
    tail = ~near
    out = np.empty_like(x)
    n = x[near]
    out[near] = from_erf(n * _ratio(_NEAR, n * n))
    out[tail] = from_erfc(_erfc_tail(y[tail]), x[tail])
    return out


def _in_blocks(one: Any, many: Any, dtypes: tuple[Any, ...]) -> Any:
    """Combine a scalar function and a vectorized function of these dtypes; the latter runs in blocks that fit a cache."""

    def value(x: AnyArray) -> AnyArray | None:
        x = np.asarray(x)
        if x.size <= _SMALL:
            return np.array([one(v) for v in x.ravel().tolist()], np.float64).reshape(x.shape).astype(x.dtype)
        flat = x.reshape(-1)
        out = np.empty(x.shape, x.dtype)
        into = out.reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            piece = flat[part]
            into[part] = many(piece if piece.dtype in dtypes else piece.astype(np.float64))
        return out

    value.__name__ = one.__name__
    return value


_erf = _in_blocks(math.erf, _erf_of, (np.float32, np.float64))
_erfc = _in_blocks(math.erfc, _erfc_of, (np.float64,))


@op("erf special.erf", method=True, in_place=True)
@elementwise(value=of_elements(_erf), d=lambda x: _TWO_OVER_ROOT_PI * np.exp(-x * x), promotion="float", accepts="biuf")
def erf(x: AnyArray) -> None:
    """Return the error function 2/√π ∫₀ˣ exp(−t²) dt."""


@op("erfc special.erfc", method=True, in_place=True)
@elementwise(
    value=of_elements(_erfc), d=lambda x: -_TWO_OVER_ROOT_PI * np.exp(-x * x), promotion="float", accepts="biuf"
)
def erfc(x: AnyArray) -> None:
    """Return the complementary error function 1 − erf(x), accurate where it is tiny."""


@op("erfinv special.erfinv", method=True, in_place=True)
@elementwise(
    d=lambda x: np.exp(np.square(erfinv(x))) / _TWO_OVER_ROOT_PI,
    formula="g * np.sqrt(np.pi) / 2 * np.exp(erfinv(x) ** 2)",
    domain=(-0.9, 0.9),
    promotion="float",
    accepts="biuf",
    remedy="it is infinite at -1 and 1 and not real beyond, so x.clip(-1 + eps, 1 - eps)",
)
def erfinv(x: object) -> AnyArray:
    """Return the inverse of the error function; infinite at ±1, NaN beyond."""
    return _erfinv(x)


@of_elements
def _erfinv(x: AnyArray) -> AnyArray:
    size = np.absolute(np.asarray(x, np.float64))
    rest = 1 - size
    with np.errstate(all="ignore"):
        log = np.log(rest * (1 + size))
        half = 2 / (math.pi * 0.147) + 0.5 * log
        y = np.sqrt(
            np.sqrt(half * half - log / 0.147) - half
        )  # start: Winitzki's approximation; then Halley's iteration
        for _ in range(3):
            excess = np.where(size < 0.5, _erf(y) - size, rest - _erfc(y)) * np.exp(y * y) / _TWO_OVER_ROOT_PI
            y = y - excess / (1 + y * excess)
    return np.copysign(np.where(size == 1, np.inf, y), x).astype(x.dtype)


# -- products with a logarithm ---------------------------------------------------------------------------------------


@op("special.entr")
@elementwise(d=lambda x: -np.log(x) - 1, domain=(0.3, 2), promotion="float", accepts="biuf")
def entr(x: Any) -> AnyArray:
    """Return −x·log(x), 0 at 0 and −∞ for negative x."""
    positive = x > 0
    out = -x * np.log(np.where(positive, x, 1))
    return np.where(positive | np.isnan(x), out, np.where(x == 0, 0, -np.inf)).astype(x.dtype, copy=False)


def _log1p_or_zero(x: AnyArray, y: AnyArray) -> AnyArray | None:
    masked_out = (x == 0) & (y <= -1)
    return np.where(masked_out, 0, np.log1p(np.where(masked_out, 0, y))).astype(np.result_type(x, y))


@op("special.xlog1py")
@elementwise(
    d={"x": _log1p_or_zero, "y": lambda x, y: x / (y + 1)},
    formula={"x": "g * np.log1p(y)"},
    promotion="float",
    domain=((-2, 2), (-0.7, 1)),
    accepts="biuf",
)
def xlog1py(x: object, y: object) -> AnyArray | None:
    """Return x·log(1 + y), and 0 where x is 0 (unless y is NaN)."""
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, 0, x * np.log1p(np.where(zero, 0, y))).astype(np.result_type(x, y), copy=False)


# -- modified Bessel functions ---------------------------------------------------------------------------------------

# Up to 20: the power series, whose terms have one sign. Beyond: the asymptotic series, whose smallest term is then too small
# for a double (DLMF 10.25.2, 10.40.1).
_SERIES = 20.0


def _bessel(x: AnyArray, order: int) -> AnyArray:
    if type(x) is Foreign:
        own = functools.partial(_bessel, order=order)
        own.__dict__["__name__"] = f"i{order}"  # CuPy's name for it
        return x.elementwise(own)
    wide = np.asarray(x, np.float64)
    size = np.absolute(wide)
    near, far = np.minimum(size, _SERIES), np.maximum(size, _SERIES)
    with np.errstate(over="ignore", invalid="ignore"):
        series = np.ones_like(near)
        for k in range(60, 0, -1):
            series = 1 + series * (0.25 * near * near) / (k * (k + order))
        term = asymptotic = np.ones_like(far)
        for k in range(1, 28):
            term = term * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k * far)
            asymptotic = asymptotic + term
        beyond = asymptotic / (math.sqrt(2 * math.pi) * np.sqrt(far)) * np.exp(far)
        out = np.where(size > _SERIES, beyond, series * (0.5 * near) ** order)
        return (np.copysign(out, wide) if order else out).astype(x.dtype)


@op("i0 special.i0 special.modified_bessel_i0", method=True, in_place=True)
@elementwise(d=lambda x: i1(x), promotion="float", accepts="biuf")
def i0(x: object) -> AnyArray | None:
    """Return the modified Bessel function I₀(x)."""
    return _bessel(x, 0)


def _ratio_at_zero(y: AnyArray, x: AnyArray) -> AnyArray:
    """Return y / x, and 1/2 at 0: the limit of I₁(x)/x."""
    zero = x == 0
    return np.where(zero, 0.5, y / np.where(zero, 1, x))


@op("special.i1 special.modified_bessel_i1")
@elementwise(
    d=lambda x, out: i0(x) - _ratio_at_zero(out, x), formula="g * (i0(x) - out / x)", promotion="float", accepts="biuf"
)
def i1(x: object) -> AnyArray:
    """Return the modified Bessel function I₁(x)."""
    return _bessel(x, 1)
