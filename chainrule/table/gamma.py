"""The gamma function's logarithm and that one's derivatives, and the zeta function: what NumPy does not have.

Sums that converge slowly are turned into short ones: a recurrence leads to large arguments, where the asymptotic series
of Stirling and of Euler and Maclaurin are exact to the last places (DLMF 5.11, 25.11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.core.kinds import elementwise
from chainrule.core.primitive import unsupported

_LARGE = 10.0
#: Bernoulli's numbers B₂, B₄, …
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330, 854513 / 138,
)  # fmt: skip


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of float64 arrays as one of any floats, which computes in double precision."""

    def value(*operands: Any) -> Any:
        dtype = np.result_type(*operands)
        arrays = np.broadcast_arrays(*[np.asarray(x, np.float64) for x in operands])
        with np.errstate(all="ignore"):
            return function(*arrays).astype(dtype)

    return value


# -- gamma -----------------------------------------------------------------------------------------------------------


def _log_gamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # a pole; too large
        return math.inf


def _lgamma(x: Any) -> Any:
    return np.array([_log_gamma(v) for v in x.ravel().tolist()], np.float64).reshape(x.shape)


def _digamma(x: Any) -> Any:
    """The reflection formula for negative numbers, the recurrence up to 10, then Stirling's series."""
    mirrored = x <= 0
    y = np.where(mirrored, 1 - x, x)
    out = np.zeros_like(y)
    for _ in range(int(_LARGE)):
        low = y < _LARGE
        out = np.where(low, out - 1 / y, out)
        y = np.where(low, y + 1, y)
    square, power = 1 / (y * y), 1.0
    series = np.log(y) - 0.5 / y
    for k, b in enumerate(_BERNOULLI[:8], 1):
        power = power * square
        series = series - b / (2 * k) * power
    out = out + series
    fraction = x - np.rint(x)  # exact, also where x is tiny
    out = np.where(mirrored, out - np.pi / np.tan(np.pi * fraction), out)
    out = np.where(mirrored & (fraction == 0), np.nan, out)
    return np.where(x == 0, -np.copysign(np.inf, x), np.where(x == np.inf, np.inf, out))


@elementwise(
    value=_wide(_lgamma),
    d={"x": lambda x: digamma(x)},
    formula={"x": "g * digamma(x)"},
    domain=(0.3, 4),
    promotion="float",
    accepts="biuf",
)
def lgamma(x):
    """log |Γ(x)|; infinite at 0 and the negative integers."""


@elementwise(
    value=_wide(_digamma),
    d={"x": lambda x: polygamma(x, n=1)},
    formula={"x": "g * polygamma(x, n=1)"},
    domain=(0.3, 4),
    promotion="float",
    accepts="biuf",
)
def digamma(x):
    """Γ'(x) / Γ(x), the derivative of log Γ."""


# -- zeta ------------------------------------------------------------------------------------------------------------


def _tail(s: Any, q: Any) -> Any:
    """For q ≥ 0: terms up to where k + q is 10 + s, then Euler and Maclaurin's formula for the rest."""
    out = np.zeros_like(q)
    at = q.copy()
    large = _LARGE + np.clip(np.nan_to_num(s), 0, 1000)
    steps = int(np.nan_to_num(np.ceil(large - q), nan=0.0, neginf=0.0).max(initial=0))
    for _ in range(steps):
        low = at < large
        out = np.where(low, out + at**-s, out)
        at = np.where(low, at + 1, at)
    rest = at ** (1 - s) / (s - 1) + 0.5 * at**-s
    term = s * at ** (-s - 1)
    for k, b in enumerate(_BERNOULLI, 1):
        rest = rest + b / math.factorial(2 * k) * term
        term = term * (s + 2 * k - 1) * (s + 2 * k) / (at * at)
    return np.where(np.isinf(at), 0.0, out + rest)


def _zeta(s: Any, q: Any) -> Any:
    """For q < 0 and a whole s the terms with k + q < 0 are, but for their sign, those from −q down to its fraction."""
    below = q < 0
    fraction = np.where(below, np.ceil(q) - q, 0.5)
    out = _tail(s, np.where(below, 1 - fraction, q))
    if below.any():
        mirrored = _tail(s, fraction) - _tail(s, np.where(below, 1 - q, 1.5))
        out = np.where(below, out + np.where(s % 2 == 0, mirrored, -mirrored), out)
    out = np.where(np.isinf(s), np.where(q > 1, 0.0, np.where(q == 1, 1.0, np.inf)), out)
    whole = (q <= 0) & (q == np.floor(q))
    out = np.where(whole, np.inf, np.where((q < 0) & (s != np.floor(s)), np.nan, out))
    return np.where(s == 1, np.inf, np.where((s < 1) | np.isnan(s) | np.isnan(q), np.nan, out))


@elementwise(
    value=_wide(_zeta),
    d={
        "x": unsupported("the derivative of zeta(x, q) by x is no function of this kind; that by q is there"),
        "y": lambda x, y: -x * zeta(x + 1, y),
    },
    formula={"y": "-g * x * zeta(x + 1, y)"},
    domain=((1.5, 4), (0.3, 3)),
    promotion="float",
    accepts="biuf",
)
def zeta(x, y):
    """Hurwitz's zeta function Σ (k + y)⁻ˣ over k = 0, 1, …"""


def _polygamma(x: Any, n: int) -> Any:
    if n == 0:
        return _digamma(x)
    factor = float(math.factorial(n)) if n <= 170 else np.inf  # as far as float64 reaches
    return (factor if n % 2 else -factor) * _zeta(np.full_like(x, n + 1), x)


@elementwise(
    d={"x": lambda x, *, n: polygamma(x, n=n + 1)},
    formula={"x": "g * polygamma(x, n=n + 1)"},
    samples=[{"n": 0}, {"n": 1}, {"n": 3}],
    domain=(0.3, 3),
    promotion="float",
    accepts="biuf",
)
def polygamma(x, *, n):
    """The derivative of order n of digamma."""
    return _wide(lambda x: _polygamma(x, n))(x)
