"""SciPy's continuous distributions on the positive numbers. ``chainrule.stats`` exports an instance of each class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, Seed
from chainrule._src.ops.incomplete import log_student_density
from chainrule.stats.base import Continuous, inf, sc
from chainrule.stats.densities import EULER, LOG_2, LOG_PI, LOG_ROOT_2PI, log1mexp, log_gamma_density
from chainrule.stats.line import t
from chainrule.stats.operands import as_scalar, choose, concrete_values, operands

_t = t()


class gamma(Continuous):
    """The gamma distribution of shape a."""

    low, inner = 0.0, 1.0

    _logpdf = lambda self, x, a: log_gamma_density(x, a)
    _cdf = lambda self, x, a: sc.gammainc(a, x)
    _sf = lambda self, x, a: sc.gammaincc(a, x)
    _logcdf = lambda self, x, a: sc.log_gammainc(a, x)
    _logsf = lambda self, x, a: sc.log_gammaincc(a, x)
    _ppf = lambda self, q, a: sc.gammaincinv(a, q)
    _isf = lambda self, q, a: sc.gammainccinv(a, q)
    _reparameterized = lambda self, drawn, a: sc.gamma_sample(a, drawn)
    _entropy = lambda self, a: sc.psi(a) * (1 - a) + a + sc.gammaln(a)
    _mean = lambda self, a: a
    _var = lambda self, a: a


class chi2(Continuous):
    """The χ² distribution with df degrees of freedom: twice a gamma distribution of shape df/2."""

    low, inner = 0.0, 1.0

    _logpdf = lambda self, x, df: sc.xlogy(0.5 * df - 1, x) - 0.5 * x - sc.gammaln(0.5 * df) - 0.5 * LOG_2 * df
    _cdf = lambda self, x, df: sc.gammainc(0.5 * df, 0.5 * x)
    _sf = lambda self, x, df: sc.gammaincc(0.5 * df, 0.5 * x)
    _logcdf = lambda self, x, df: sc.log_gammainc(0.5 * df, 0.5 * x)
    _logsf = lambda self, x, df: sc.log_gammaincc(0.5 * df, 0.5 * x)
    _ppf = lambda self, q, df: 2 * sc.gammaincinv(0.5 * df, q)
    _isf = lambda self, q, df: 2 * sc.gammainccinv(0.5 * df, q)
    _reparameterized = lambda self, drawn, df: 2 * sc.gamma_sample(0.5 * df, 0.5 * drawn)

    def _entropy(self, df: AnyArray) -> AnyArray:
        half = 0.5 * df
        return half + LOG_2 + sc.gammaln(half) + (1 - half) * sc.psi(half)

    _mean = lambda self, df: df
    _var = lambda self, df: 2 * df


class invgamma(Continuous):
    """The inverse gamma distribution: of 1/x, where x has a gamma distribution of shape a."""

    low, closed, inner = 0.0, False, 1.0

    _logpdf = lambda self, x, a: -(a + 1) * np.log(x) - sc.gammaln(a) - 1 / x
    _cdf = lambda self, x, a: sc.gammaincc(a, 1 / x)
    _sf = lambda self, x, a: sc.gammainc(a, 1 / x)
    _logcdf = lambda self, x, a: sc.log_gammaincc(a, 1 / x)
    _logsf = lambda self, x, a: sc.log_gammainc(a, 1 / x)
    _ppf = lambda self, q, a: 1 / sc.gammainccinv(a, q)
    _isf = lambda self, q, a: 1 / sc.gammaincinv(a, q)
    _reparameterized = lambda self, drawn, a: 1 / sc.gamma_sample(a, 1 / drawn)
    _entropy = lambda self, a: a + sc.gammaln(a) - (a + 1) * sc.psi(a)
    _mean = lambda self, a: choose(a <= 1, inf, 1 / choose(a <= 1, 1, a - 1))

    def _var(self, a: AnyArray) -> Any:
        finite = choose(a <= 2, 3, a)
        return choose(a <= 2, inf, 1 / (np.square(finite - 1) * (finite - 2)))


class expon(Continuous):
    """The exponential distribution with the mean ``scale``."""

    low, inner = 0.0, 1.0

    _logpdf = lambda self, x: -x
    _cdf = lambda self, x: sc.neg_expm1(-x)
    _logcdf = lambda self, x: log1mexp(-x)
    _sf = lambda self, x: np.exp(-x)
    _logsf = lambda self, x: -x
    _ppf = lambda self, q: -np.log1p(-q)
    _isf = lambda self, q: -np.log(q)
    _entropy = lambda self: 1.0
    _mean = lambda self: 1.0
    _var = lambda self: 1.0


class weibull_min(Continuous):
    """The Weibull distribution of shape c."""

    low, inner = 0.0, 1.0

    _logpdf = lambda self, x, c: np.log(c) + sc.xlogy(c - 1, x) - x**c
    _cdf = lambda self, x, c: sc.neg_expm1(-(x**c))
    _logcdf = lambda self, x, c: log1mexp(-(x**c))
    _sf = lambda self, x, c: np.exp(-(x**c))
    _logsf = lambda self, x, c: -(x**c)
    _ppf = lambda self, q, c: (-np.log1p(-q)) ** (1 / c)
    _isf = lambda self, q, c: (-np.log(q)) ** (1 / c)
    _reparameterized = lambda self, drawn, c: np.exp(np.log(drawn) * concrete_values(c) / c)
    _entropy = lambda self, c: EULER * (1 - 1 / c) - np.log(c) + 1
    _mean = lambda self, c: sc.gamma(1 + 1 / c)
    _var = lambda self, c: sc.gamma(1 + 2 / c) - np.square(sc.gamma(1 + 1 / c))


class lognorm(Continuous):
    """The log-normal distribution: of exp(x), where x is normal with standard deviation s and mean log(scale)."""

    low, closed, inner = 0.0, False, 1.0

    def _logpdf(self, x: AnyArray, s: AnyArray) -> AnyArray:
        log = np.log(x)
        return -0.5 * np.square(log / s) - log - np.log(s) - LOG_ROOT_2PI

    _cdf = lambda self, x, s: sc.ndtr(np.log(x) / s)
    _logcdf = lambda self, x, s: sc.log_ndtr(np.log(x) / s)
    _sf = lambda self, x, s: sc.ndtr(-np.log(x) / s)
    _logsf = lambda self, x, s: sc.log_ndtr(-np.log(x) / s)
    _ppf = lambda self, q, s: np.exp(s * sc.ndtri(q))
    _isf = lambda self, q, s: np.exp(-s * sc.ndtri(q))
    _reparameterized = lambda self, drawn, s: np.exp(np.log(drawn) / concrete_values(s) * s)
    _entropy = lambda self, s: LOG_ROOT_2PI + 0.5 + np.log(s)
    _mean = lambda self, s: np.exp(0.5 * np.square(s))
    _var = lambda self, s: np.exp(np.square(s)) * np.expm1(np.square(s))


class halfnorm(Continuous):
    """The half-normal distribution: of |x|, where x is normal."""

    low = 0.0

    _logpdf = lambda self, x: LOG_2 - LOG_ROOT_2PI - 0.5 * np.square(x)
    _cdf = lambda self, x: sc.erf(math.sqrt(0.5) * x)
    _sf = lambda self, x: 2 * sc.ndtr(-x)
    _logsf = lambda self, x: LOG_2 + sc.log_ndtr(-x)
    _ppf = lambda self, q: sc.ndtri(0.5 * (1 + q))
    _isf = lambda self, q: -sc.ndtri(0.5 * q)
    _entropy = lambda self: LOG_ROOT_2PI + 0.5 - LOG_2
    _mean = lambda self: math.sqrt(2 / math.pi)
    _var = lambda self: 1 - 2 / math.pi


class halfcauchy(Continuous):
    """The half-Cauchy distribution: of |x|, where x has a Cauchy distribution."""

    low = 0.0

    _logpdf = lambda self, x: LOG_2 - LOG_PI - np.log1p(np.square(x))
    _cdf = lambda self, x: np.arctan(x) * (2 / math.pi)
    _sf = lambda self, x: np.arctan2(1, x) * (2 / math.pi)

    def _ppf(self, q: AnyArray) -> AnyArray:
        lower = q < 0.5
        near = 0.5 * math.pi * np.where(lower, q, 1 - q)  # the tangent is inaccurate far from 0
        return np.where(lower, np.tan(near), 1 / np.tan(np.where(lower, 1, near)))

    def _isf(self, q: AnyArray) -> AnyArray:
        lower = q < 0.5
        near = 0.5 * math.pi * np.where(lower, q, 1 - q)
        return np.where(lower, 1 / np.tan(np.where(lower, near, 1)), np.tan(near))

    _entropy = lambda self: math.log(2 * math.pi)
    _mean = lambda self: inf
    _var = lambda self: inf


class halft(Continuous):
    """The half-t distribution: of |x|, where x has Student's t distribution with df degrees of freedom. (Not in SciPy.)"""

    low = 0.0

    _logpdf = lambda self, x, df: LOG_2 + log_student_density(df, x)
    _cdf = lambda self, x, df: sc.halft_cdf(df, x)
    _sf = lambda self, x, df: 2 * sc.stdtr(df, -x)
    _logsf = lambda self, x, df: LOG_2 + sc.log_stdtr(df, -x)

    def _from_shares(self, below: AnyArray, above: AnyArray, df: AnyArray) -> AnyArray:
        """Return the point with the given probabilities below and above it, computed from the smaller one."""
        square = sc.betaincinv(0 * df + 0.5, 0.5 * df, choose((below > 0.5) | (below == 0), 0.5, below))
        near = choose(below == 0, 0, np.sqrt(df * square / (1 - square)))
        far = -sc.stdtrit(df, 0.5 * choose((above > 0.5) | (above == 0), 0.5, above))
        return np.where(below > 0.5, choose(above == 0, inf, far), near)

    _ppf = lambda self, q, df: self._from_shares(q, 1 - q, df)
    _isf = lambda self, q, df: self._from_shares(1 - q, q, df)

    def rvs(self, *args: Any, random_state: Seed = None, **kwds: Any) -> Any:
        """Draw random numbers, differentiable in all parameters: absolute values of ``t.rvs``, scaled and shifted."""
        bound = self._bound("rvs", args, kwds, ("size",))
        loc, scale, df = operands("halft.rvs", [bound[name] for name in ("loc", "scale", "df")])
        least = np.broadcast_shapes(np.shape(loc), np.shape(scale), np.shape(df))
        self._check_domain(self._valid(df) & (scale >= 0))
        size = least if bound.get("size") is None else bound["size"]
        return as_scalar(np.abs(_t.rvs(df, size=size, random_state=random_state)) * scale + loc)

    _entropy = lambda self, df: _t._entropy(df) - LOG_2

    def _mean(self, df: Any) -> Any:
        finite = choose(df <= 1, 2, df)
        log = sc.gammaln(0.5 * (finite + 1)) - sc.gammaln(0.5 * finite) + 0.5 * np.log(finite)
        return choose(df <= 1, inf, 2 * np.exp(log) / (math.sqrt(math.pi) * (finite - 1)))

    def _var(self, df: AnyArray) -> Any:
        finite = choose(df <= 2, 3, df)
        return choose(df <= 2, inf, finite / (finite - 2) - np.square(self._mean(finite)))


class pareto(Continuous):
    """The Pareto distribution of shape b, on [scale, ∞)."""

    low, inner = 1.0, 2.0

    _logpdf = lambda self, x, b: np.log(b) - (b + 1) * np.log(x)
    _cdf = lambda self, x, b: sc.neg_expm1(-b * np.log(x))
    _logcdf = lambda self, x, b: log1mexp(-b * np.log(x))
    _sf = lambda self, x, b: np.exp(-b * np.log(x))
    _logsf = lambda self, x, b: -b * np.log(x)
    _ppf = lambda self, q, b: np.exp(-np.log1p(-q) / b)
    _isf = lambda self, q, b: np.exp(-np.log(q) / b)
    _reparameterized = lambda self, drawn, b: np.exp(np.log(drawn) * concrete_values(b) / b)
    _entropy = lambda self, b: 1 + 1 / b - np.log(b)
    _mean = lambda self, b: choose(b <= 1, inf, b / choose(b <= 1, 1, b - 1))

    def _var(self, b: AnyArray) -> Any:
        finite = choose(b <= 2, 3, b)
        return choose(b <= 2, inf, finite / (np.square(finite - 1) * (finite - 2)))


class f(Continuous):
    """The F distribution with dfn and dfd degrees of freedom."""

    low, inner = 0.0, 1.0

    def _logpdf(self, x: AnyArray, dfn: AnyArray, dfd: AnyArray) -> AnyArray:
        n, d = 0.5 * dfn, 0.5 * dfd
        ratio = dfn / dfd
        return sc.xlogy(n - 1, x) + n * np.log(ratio) - (n + d) * np.log1p(ratio * x) - sc.betaln(n, d)

    def _by_smaller_share(self, near: AnyFunction, far: AnyFunction, x: AnyArray, dfn: AnyArray, dfd: AnyArray) -> Any:
        """Call ``near`` or ``far`` with the smaller of the fractions of dfn·x and dfd in their sum, for accuracy near 1."""
        total = dfd + dfn * x
        low = dfn * x <= dfd
        first, second = np.where(low, dfn * x / total, 0.25), np.where(low, 0.25, dfd / total)
        return np.where(low, near(0.5 * dfn, 0.5 * dfd, first), far(0.5 * dfd, 0.5 * dfn, second))

    _cdf = lambda self, x, dfn, dfd: self._by_smaller_share(sc.betainc, sc.betaincc, x, dfn, dfd)
    _logcdf = lambda self, x, dfn, dfd: self._by_smaller_share(sc.log_betainc, sc.log_betaincc, x, dfn, dfd)
    _sf = lambda self, x, dfn, dfd: self._by_smaller_share(sc.betaincc, sc.betainc, x, dfn, dfd)
    _logsf = lambda self, x, dfn, dfd: self._by_smaller_share(sc.log_betaincc, sc.log_betainc, x, dfn, dfd)

    def _ppf(self, q: AnyArray, dfn: AnyArray, dfd: AnyArray) -> AnyArray:
        above, below = sc.betaincinv(0.5 * dfn, 0.5 * dfd, q), sc.betainccinv(0.5 * dfd, 0.5 * dfn, q)
        return dfd / dfn * above / below

    def _isf(self, q: AnyArray, dfn: AnyArray, dfd: AnyArray) -> AnyArray:
        above, below = sc.betainccinv(0.5 * dfn, 0.5 * dfd, q), sc.betaincinv(0.5 * dfd, 0.5 * dfn, q)
        return dfd / dfn * above / below

    def _reparameterized(self, drawn: Any, dfn: Any, dfd: Any) -> AnyArray:
        logit = np.log(concrete_values(dfn) / concrete_values(dfd) * drawn)
        return dfd / dfn * np.exp(sc.beta_logit_sample(0.5 * dfn, 0.5 * dfd, logit))

    def _entropy(self, dfn: AnyArray, dfd: AnyArray) -> AnyArray:
        n, d = 0.5 * dfn, 0.5 * dfd
        ends = (1 - n) * sc.psi(n) - (1 + d) * sc.psi(d) + (n + d) * sc.psi(n + d)
        return np.log(dfd / dfn) + sc.betaln(n, d) + ends

    _mean = lambda self, dfn, dfd: choose(dfd <= 2, inf, dfd / choose(dfd <= 2, 1, dfd - 2)) + 0 * dfn

    def _var(self, dfn: AnyArray, dfd: AnyArray) -> Any:
        finite = choose(dfd <= 4, 5, dfd)
        ratio = 2 * np.square(finite) * (dfn + finite - 2) / (dfn * np.square(finite - 2) * (finite - 4))
        return choose((dfd <= 4) & (dfd > 0), inf, ratio)
