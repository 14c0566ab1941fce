"""SciPy's continuous distributions on the whole line, in standard form; the base class applies loc and scale.

``chainrule.stats`` exports an instance of each class.

Of equivalent formulas, this package uses the one that is accurate in the tails and near 0 and 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, IntoArray, Seed
from chainrule._src.ops.incomplete import log_student_density
from chainrule.stats.base import Continuous, Symmetric, inf, sc
from chainrule.stats.densities import (
    EULER,
    LOG_2,
    LOG_2PI,
    LOG_PI,
    LOG_ROOT_2PI,
    log1mexp,
    log_skewnorm_density,
    log_vonmises_density,
)
from chainrule.stats.operands import choose


class norm(Symmetric):
    """The normal distribution: loc is its mean, scale its standard deviation."""

    _logpdf = lambda self, x: -0.5 * np.square(x) - LOG_ROOT_2PI
    _cdf = lambda self, x: sc.ndtr(x)
    _logcdf = lambda self, x: sc.log_ndtr(x)
    _ppf = lambda self, q: sc.ndtri(q)
    _entropy = lambda self: LOG_ROOT_2PI + 0.5
    _mean = lambda self: 0.0
    _var = lambda self: 1.0


class t(Symmetric):
    """Student's t distribution with df degrees of freedom."""

    _logpdf = lambda self, x, df: log_student_density(df, x)
    _cdf = lambda self, x, df: sc.stdtr(df, x)
    _logcdf = lambda self, x, df: sc.log_stdtr(df, x)

    def _ppf(self, q: AnyArray, df: AnyArray) -> Any:
        inside = sc.stdtrit(df, choose((q == 0) | (q == 1), 0.5, q))  # SciPy's function returns inf or nan at the ends
        return choose(q == 0, -inf, choose(q == 1, inf, inside))

    _reparameterized = lambda self, drawn, df: sc.t_sample(df, drawn)

    def _entropy(self, df: AnyArray) -> AnyArray:
        half, whole = 0.5 * df, 0.5 * (df + 1)
        return whole * (sc.psi(whole) - sc.psi(half)) + 0.5 * np.log(df) + sc.betaln(half, 0 * df + 0.5)

    _mean = lambda self, df: choose(df <= 1, inf, 0 * df)

    def _var(self, df: AnyArray) -> Any:
        finite = df / choose(df <= 2, 1, df - 2)
        return choose(df <= 1, np.nan, choose((df > 1) & (df <= 2), inf, finite))


class laplace(Symmetric):
    """The Laplace (double exponential) distribution."""

    _logpdf = lambda self, x: -np.abs(x) - LOG_2

    def _cdf(self, x: AnyArray) -> AnyArray:
        left, right = np.where(x > 0, 0, x), np.where(x > 0, x, 0)  # |x| would have no derivative at 0
        return np.where(x > 0, 1 - 0.5 * np.exp(-right), 0.5 * np.exp(left))

    def _logcdf(self, x: AnyArray) -> AnyArray:
        left, right = np.where(x > 0, 0, x), np.where(x > 0, x, 0)
        return np.where(x > 0, log1mexp(-right - LOG_2), left - LOG_2)

    _ppf = lambda self, q: np.where(q > 0.5, -np.log(2 * (1 - q)), np.log(2 * q))
    _entropy = lambda self: LOG_2 + 1
    _mean = lambda self: 0.0
    _var = lambda self: 2.0


class logistic(Symmetric):
    """The logistic distribution."""

    _logpdf = lambda self, x: x + 2 * sc.log_expit(-x)
    _cdf = lambda self, x: sc.logistic_cdf(x)
    _logcdf = lambda self, x: sc.log_expit(x)
    _ppf = lambda self, q: sc.logit(q)
    _entropy = lambda self: 2.0
    _mean = lambda self: 0.0
    _var = lambda self: math.pi**2 / 3


class cauchy(Symmetric):
    """The Cauchy distribution."""

    _logpdf = lambda self, x: -LOG_PI - np.log1p(np.square(x))
    _cdf = lambda self, x: np.arctan2(1, -x) / math.pi

    def _ppf(self, q: AnyArray) -> AnyArray:
        lower = q < 0.5
        near = math.pi * np.where(lower, q, 1 - q)  # the tangent is inaccurate far from 0
        return np.where(lower, -1, 1) / np.tan(near)

    _entropy = lambda self: math.log(4 * math.pi)
    _mean = lambda self: np.nan
    _var = lambda self: np.nan


class gumbel_r(Continuous):
    """The right-skewed Gumbel distribution (of maxima)."""

    inner = 0.0

    _logpdf = lambda self, x: -x - np.exp(-x)
    _cdf = lambda self, x: np.exp(-np.exp(-x))
    _logcdf = lambda self, x: -np.exp(-x)
    _sf = lambda self, x: sc.neg_expm1(-np.exp(-x))
    _logsf = lambda self, x: log1mexp(-np.exp(-x))
    _ppf = lambda self, q: -np.log(-np.log(q))
    _isf = lambda self, q: -np.log(-np.log1p(-q))
    _entropy = lambda self: EULER + 1
    _mean = lambda self: EULER
    _var = lambda self: math.pi**2 / 6


class skewnorm(Continuous):
    """The skew-normal distribution: skewed to the right for a > 0, to the left for a < 0."""

    _valid = lambda self, a: np.isfinite(a)
    _logpdf = lambda self, x, a: log_skewnorm_density(x, a)
    _cdf = lambda self, x, a: sc.skewnorm_cdf(x, a)
    _logcdf = lambda self, x, a: sc.log_skewnorm_sf(-x, -a)
    _sf = lambda self, x, a: sc.skewnorm_cdf(-x, -a)
    _logsf = lambda self, x, a: sc.log_skewnorm_sf(x, a)
    _ppf = lambda self, q, a: sc.skewnorm_ppf(q, a)
    _isf = lambda self, q, a: -sc.skewnorm_ppf(q, -a)
    _reparameterized = lambda self, drawn, a: sc.skewnorm_sample(a, drawn)
    _mean = lambda self, a: math.sqrt(2 / math.pi) * a / np.sqrt(1 + np.square(a))
    _var = lambda self, a: 1 - np.square(self._mean(a))


class vonmises(Continuous):
    """The von Mises distribution of angles around loc. cdf, ppf and rvs are not differentiable in the concentration kappa."""

    _valid = lambda self, kappa: kappa >= 0
    _logpdf = lambda self, x, kappa: log_vonmises_density(x, kappa)
    _cdf = lambda self, x, kappa: sc.vonmises_cdf(x, kappa)
    _logcdf = lambda self, x, kappa: sc.log_vonmises_sf(-x, kappa)
    _logsf = lambda self, x, kappa: sc.log_vonmises_sf(x, kappa)
    _ppf = lambda self, q, kappa: sc.vonmises_ppf(q, kappa)
    _entropy = lambda self, kappa: LOG_2PI + np.log(sc.i0e(kappa)) + kappa * (1 - sc.i1e(kappa) / sc.i0e(kappa))
    _mean = lambda self, kappa: 0 * kappa

    def rvs(self, *args: IntoArray, random_state: Seed = None, **kwds: IntoArray) -> AnyArray:
        """Draw random angles between −π and π, differentiable in loc; those for a ``random_state`` are SciPy's."""
        return np.mod(super().rvs(*args, random_state=random_state, **kwds) + math.pi, 2 * math.pi) - math.pi
