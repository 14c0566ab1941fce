"""SciPy's continuous distributions of the whole line, each in its standard form: loc and scale are the base's.

Where two formulas are equal on paper, here (and beside this module) is the one that stays accurate: in the tails of a distribution,
and next to 0 and 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.ops.incomplete import log_student_density
from chainrule.stats.base import Continuous, inf, sc
from chainrule.stats.operands import choose
from chainrule.stats.rows import log1mexp, log_vonmises_density

LOG_2 = math.log(2)
LOG_PI = math.log(math.pi)
LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
EULER = 0.57721566490153286061


class norm(Continuous):
    """The normal distribution: loc is its mean, scale its standard deviation."""

    def _logpdf(self, x: AnyArray) -> AnyArray:
        return -0.5 * np.square(x) - LOG_ROOT_2PI

    def _cdf(self, x: AnyArray) -> AnyArray:
        return sc.ndtr(x)

    def _logcdf(self, x: AnyArray) -> AnyArray:
        return sc.log_ndtr(x)

    def _sf(self, x: AnyArray) -> AnyArray:
        return sc.ndtr(-x)

    def _logsf(self, x: AnyArray) -> AnyArray:
        return sc.log_ndtr(-x)

    def _ppf(self, q: AnyArray) -> AnyArray:
        return sc.ndtri(q)

    def _isf(self, q: AnyArray) -> AnyArray:
        return -sc.ndtri(q)

    def _entropy(self) -> Any:
        return LOG_ROOT_2PI + 0.5

    def _mean(self) -> Any:
        return 0.0

    def _var(self) -> Any:
        return 1.0


class t(Continuous):
    """Student's t distribution with df degrees of freedom."""

    def _logpdf(self, x: AnyArray, df: AnyArray) -> AnyArray:
        return log_student_density(df, x)

    def _cdf(self, x: AnyArray, df: AnyArray) -> AnyArray:
        return sc.stdtr(df, x)

    def _sf(self, x: AnyArray, df: AnyArray) -> AnyArray:
        return sc.stdtr(df, -x)

    def _logcdf(self, x: AnyArray, df: AnyArray) -> AnyArray:
        return sc.log_stdtr(df, x)

    def _logsf(self, x: AnyArray, df: AnyArray) -> AnyArray:
        return sc.log_stdtr(df, -x)

    def _ppf(self, q: AnyArray, df: AnyArray) -> Any:
        inside = sc.stdtrit(df, choose((q == 0) | (q == 1), 0.5, q))  # at the ends SciPy's function has inf or nan
        return choose(q == 0, -inf, choose(q == 1, inf, inside))

    def _isf(self, q: AnyArray, df: AnyArray) -> AnyArray:
        return -self._ppf(q, df)

    def _resampled(self, drawn: AnyArray, df: AnyArray) -> AnyArray:
        return sc.t_sample(df, drawn)

    def _entropy(self, df: AnyArray) -> AnyArray:
        half, whole = 0.5 * df, 0.5 * (df + 1)
        return whole * (sc.psi(whole) - sc.psi(half)) + 0.5 * np.log(df) + sc.betaln(half, 0 * df + 0.5)

    def _mean(self, df: AnyArray) -> Any:
        return choose(df <= 1, inf, 0 * df)

    def _var(self, df: AnyArray) -> Any:
        finite = df / choose(df <= 2, 1, df - 2)
        return choose(df <= 1, np.nan, choose((df > 1) & (df <= 2), inf, finite))


class laplace(Continuous):
    """The Laplace distribution: two exponential ones, back to back."""

    def _logpdf(self, x: AnyArray) -> AnyArray:
        return -np.abs(x) - LOG_2

    def _cdf(self, x: AnyArray) -> AnyArray:
        left, right = np.where(x > 0, 0, x), np.where(x > 0, x, 0)  # of |x| there would be no derivative at 0
        return np.where(x > 0, 1 - 0.5 * np.exp(-right), 0.5 * np.exp(left))

    def _sf(self, x: AnyArray) -> AnyArray:
        return self._cdf(-x)

    def _logcdf(self, x: AnyArray) -> AnyArray:
        left, right = np.where(x > 0, 0, x), np.where(x > 0, x, 0)
        return np.where(x > 0, log1mexp(-right - LOG_2), left - LOG_2)

    def _logsf(self, x: AnyArray) -> AnyArray:
        return self._logcdf(-x)

    def _ppf(self, q: AnyArray) -> AnyArray:
        return np.where(q > 0.5, -np.log(2 * (1 - q)), np.log(2 * q))

    def _isf(self, q: AnyArray) -> AnyArray:
        return -self._ppf(q)

    def _entropy(self) -> Any:
        return LOG_2 + 1

    def _mean(self) -> Any:
        return 0.0

    def _var(self) -> Any:
        return 2.0


class logistic(Continuous):
    """The logistic distribution."""

    def _logpdf(self, x: AnyArray) -> AnyArray:
        return x + 2 * sc.log_expit(-x)

    def _cdf(self, x: AnyArray) -> AnyArray:
        return sc.logistic_cdf(x)

    def _sf(self, x: AnyArray) -> AnyArray:
        return sc.logistic_cdf(-x)

    def _logcdf(self, x: AnyArray) -> AnyArray:
        return sc.log_expit(x)

    def _logsf(self, x: AnyArray) -> AnyArray:
        return sc.log_expit(-x)

    def _ppf(self, q: AnyArray) -> AnyArray:
        return sc.logit(q)

    def _isf(self, q: AnyArray) -> AnyArray:
        return -sc.logit(q)

    def _entropy(self) -> Any:
        return 2.0

    def _mean(self) -> Any:
        return 0.0

    def _var(self) -> Any:
        return math.pi**2 / 3


class cauchy(Continuous):
    """The Cauchy distribution."""

    def _logpdf(self, x: AnyArray) -> AnyArray:
        return -LOG_PI - np.log1p(np.square(x))

    def _cdf(self, x: AnyArray) -> AnyArray:
        return np.arctan2(1, -x) / math.pi

    def _sf(self, x: AnyArray) -> AnyArray:
        return np.arctan2(1, x) / math.pi

    def _ppf(self, q: AnyArray) -> AnyArray:
        return -self._isf(q)

    def _isf(self, q: AnyArray) -> AnyArray:
        upper = q < 0.5
        near = math.pi * np.where(upper, q, 1 - q)  # the tangent of what is far from 0 would lose its digits
        return np.where(upper, 1, -1) / np.tan(near)

    def _entropy(self) -> Any:
        return math.log(4 * math.pi)

    def _mean(self) -> Any:
        return np.nan

    def _var(self) -> Any:
        return np.nan


class gumbel_r(Continuous):
    """The right-skewed Gumbel distribution, of largest values."""

    inner = 0.0

    def _logpdf(self, x: AnyArray) -> AnyArray:
        return -x - np.exp(-x)

    def _cdf(self, x: AnyArray) -> AnyArray:
        return np.exp(-np.exp(-x))

    def _logcdf(self, x: AnyArray) -> AnyArray:
        return -np.exp(-x)

    def _sf(self, x: AnyArray) -> AnyArray:
        return sc.neg_expm1(-np.exp(-x))

    def _logsf(self, x: AnyArray) -> AnyArray:
        return log1mexp(-np.exp(-x))

    def _ppf(self, q: AnyArray) -> AnyArray:
        return -np.log(-np.log(q))

    def _isf(self, q: AnyArray) -> AnyArray:
        return -np.log(-np.log1p(-q))

    def _entropy(self) -> Any:
        return EULER + 1

    def _mean(self) -> Any:
        return EULER

    def _var(self) -> Any:
        return math.pi**2 / 6


class skewnorm(Continuous):
    """The skew-normal distribution: a > 0 leans to the right, a < 0 to the left."""

    def _valid(self, a: AnyArray) -> Any:
        return np.isfinite(a)

    def _logpdf(self, x: AnyArray, a: AnyArray) -> AnyArray:
        return LOG_2 - LOG_ROOT_2PI - 0.5 * np.square(x) + sc.log_ndtr(a * x)

    def _cdf(self, x: AnyArray, a: AnyArray) -> AnyArray:
        return sc.skewnorm_cdf(x, a)

    def _logcdf(self, x: AnyArray, a: AnyArray) -> AnyArray:
        return sc.log_skewnorm_sf(-x, -a)

    def _sf(self, x: AnyArray, a: AnyArray) -> AnyArray:
        return sc.skewnorm_cdf(-x, -a)

    def _logsf(self, x: AnyArray, a: AnyArray) -> AnyArray:
        return sc.log_skewnorm_sf(x, a)

    def _ppf(self, q: AnyArray, a: AnyArray) -> AnyArray:
        return sc.skewnorm_ppf(q, a)

    def _isf(self, q: AnyArray, a: AnyArray) -> AnyArray:
        return -sc.skewnorm_ppf(q, -a)

    def _resampled(self, drawn: AnyArray, a: AnyArray) -> AnyArray:
        return sc.skewnorm_sample(a, drawn)

    def _mean(self, a: AnyArray) -> AnyArray:
        return math.sqrt(2 / math.pi) * a / np.sqrt(1 + np.square(a))

    def _var(self, a: AnyArray) -> AnyArray:
        return 1 - np.square(self._mean(a))


class vonmises(Continuous):
    """The von Mises distribution of angles around loc. Of cdf, ppf and rvs there is no derivative by the concentration kappa."""

    def _valid(self, kappa: AnyArray) -> Any:
        return kappa >= 0

    def _logpdf(self, x: AnyArray, kappa: AnyArray) -> AnyArray:
        return log_vonmises_density(x, kappa)

    def _cdf(self, x: AnyArray, kappa: AnyArray) -> AnyArray:
        return sc.vonmises_cdf(x, kappa)

    def _logcdf(self, x: AnyArray, kappa: AnyArray) -> AnyArray:
        return sc.log_vonmises_sf(-x, kappa)

    def _logsf(self, x: AnyArray, kappa: AnyArray) -> AnyArray:
        return sc.log_vonmises_sf(x, kappa)

    def _ppf(self, q: AnyArray, kappa: AnyArray) -> AnyArray:
        return sc.vonmises_ppf(q, kappa)

    def _entropy(self, kappa: AnyArray) -> AnyArray:
        return 2 * LOG_ROOT_2PI + np.log(sc.i0e(kappa)) + kappa * (1 - sc.i1e(kappa) / sc.i0e(kappa))

    def _mean(self, kappa: AnyArray) -> AnyArray:
        return 0 * kappa

    def rvs(self, *args: Any, random_state: Any = None, **kwds: Any) -> Any:
        """Random angles between −π and π, which are SciPy's for a ``random_state``, with a derivative by loc."""
        return np.mod(super().rvs(*args, random_state=random_state, **kwds) + math.pi, 2 * math.pi) - math.pi
