"""SciPy's continuous distributions on an interval. ``chainrule.stats`` exports an instance of each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule.stats.base import Continuous, sc
from chainrule.stats.densities import LOG_ROOT_2PI, log_beta_density, log_normal_mass, log_truncnorm_density
from chainrule.stats.operands import choose


class uniform(Continuous):
    """The uniform distribution from loc to loc + scale."""

    low, high = 0.0, 1.0

    _logpdf = lambda self, x: 0 * x
    _cdf = lambda self, x: x
    _ppf = lambda self, q: q
    _entropy = lambda self: 0.0
    _mean = lambda self: 0.5
    _var = lambda self: 1 / 12


class beta(Continuous):
    """The beta distribution."""

    low, high = 0.0, 1.0

    _logpdf = lambda self, x, a, b: log_beta_density(x, a, b)
    _cdf = lambda self, x, a, b: sc.betainc(a, b, x)
    _sf = lambda self, x, a, b: sc.betaincc(a, b, x)
    _logcdf = lambda self, x, a, b: sc.log_betainc(a, b, x)
    _logsf = lambda self, x, a, b: sc.log_betaincc(a, b, x)
    _ppf = lambda self, q, a, b: sc.betaincinv(a, b, q)
    _isf = lambda self, q, a, b: sc.betainccinv(a, b, q)
    _reparameterized = lambda self, drawn, a, b: sc.expit(sc.beta_logit_sample(a, b, sc.logit(drawn)))

    def _entropy(self, a: AnyArray, b: AnyArray) -> AnyArray:
        inside = (a - 1) * sc.psi(a) + (b - 1) * sc.psi(b) - (a + b - 2) * sc.psi(a + b)
        return sc.betaln(a, b) - inside

    _mean = lambda self, a, b: a / (a + b)
    _var = lambda self, a, b: a * b / (np.square(a + b) * (a + b + 1))


def _finite(end: AnyArray) -> Any:
    """Return an interval's end, with 0 for an infinite one (the density that multiplies it is 0 there)."""
    return choose(np.isinf(end), 0, end)


class truncnorm(Continuous):
    """The normal distribution truncated to [a, b], in units of scale relative to loc."""

    _valid = lambda self, a, b: a < b
    _ends = lambda self, a, b: (a, b)
    _inner = lambda self, a, b: 0.5 * (np.maximum(a, -1e9) + np.minimum(b, 1e9))
    _logpdf = lambda self, x, a, b: log_truncnorm_density(x, a, b)
    _cdf = lambda self, x, a, b: sc.truncnorm_cdf(x, a, b)
    _logcdf = lambda self, x, a, b: sc.truncnorm_logcdf(x, a, b)
    _sf = lambda self, x, a, b: sc.truncnorm_cdf(-x, -b, -a)
    _logsf = lambda self, x, a, b: sc.truncnorm_logcdf(-x, -b, -a)
    _ppf = lambda self, q, a, b: sc.truncnorm_ppf(q, a, b)
    _isf = lambda self, q, a, b: -sc.truncnorm_ppf(q, -b, -a)
    _reparameterized = lambda self, drawn, a, b: sc.truncnorm_sample(a, b, drawn)
    _mean = lambda self, a, b: np.exp(log_truncnorm_density(a, a, b)) - np.exp(log_truncnorm_density(b, a, b))

    def _var(self, a: AnyArray, b: AnyArray) -> AnyArray:
        mean = self._mean(a, b)
        lower, upper = _finite(a), _finite(b)
        left = (lower - mean) * np.exp(log_truncnorm_density(a, a, b))
        return 1 + left - (upper - mean) * np.exp(log_truncnorm_density(b, a, b))

    def _entropy(self, a: AnyArray, b: AnyArray) -> AnyArray:
        left = _finite(a) * np.exp(log_truncnorm_density(a, a, b))
        right = _finite(b) * np.exp(log_truncnorm_density(b, a, b))
        return LOG_ROOT_2PI + 0.5 + log_normal_mass(a, b) + 0.5 * (left - right)
