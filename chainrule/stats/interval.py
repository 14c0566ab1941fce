"""SciPy's continuous distributions of an interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule.stats.base import Continuous, sc
from chainrule.stats.operands import choose
from chainrule.stats.rows import log_normal_mass, log_truncnorm_density

LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


class uniform(Continuous):
    """The uniform distribution from loc to loc + scale."""

    low, high = 0.0, 1.0

    def _logpdf(self, x: AnyArray) -> AnyArray:
        return 0 * x

    def _cdf(self, x: AnyArray) -> AnyArray:
        return x

    def _ppf(self, q: AnyArray) -> AnyArray:
        return q

    def _entropy(self) -> Any:
        return 0.0

    def _mean(self) -> Any:
        return 0.5

    def _var(self) -> Any:
        return 1 / 12


class beta(Continuous):
    """The beta distribution."""

    low, high = 0.0, 1.0

    def _logpdf(self, x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.xlog1py(b - 1, -x) + sc.xlogy(a - 1, x) - sc.betaln(a, b)

    def _cdf(self, x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.betainc(a, b, x)

    def _sf(self, x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.betaincc(a, b, x)

    def _logcdf(self, x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.log_betainc(a, b, x)

    def _logsf(self, x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.log_betaincc(a, b, x)

    def _ppf(self, q: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.betaincinv(a, b, q)

    def _isf(self, q: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.betainccinv(a, b, q)

    def _resampled(self, drawn: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.expit(sc.beta_logit_sample(a, b, sc.logit(drawn)))

    def _entropy(self, a: AnyArray, b: AnyArray) -> AnyArray:
        inside = (a - 1) * sc.psi(a) + (b - 1) * sc.psi(b) - (a + b - 2) * sc.psi(a + b)
        return sc.betaln(a, b) - inside

    def _mean(self, a: AnyArray, b: AnyArray) -> AnyArray:
        return a / (a + b)

    def _var(self, a: AnyArray, b: AnyArray) -> AnyArray:
        return a * b / (np.square(a + b) * (a + b + 1))


def _finite(end: Any) -> Any:
    """An end of an interval, and 0 for an infinite one, where the density that it is multiplied with is 0."""
    return choose(np.isinf(end), 0, end)


class truncnorm(Continuous):
    """The normal distribution between a and b, which are counted in scales from loc."""

    def _valid(self, a: AnyArray, b: AnyArray) -> Any:
        return a < b

    def _ends(self, a: AnyArray, b: AnyArray) -> tuple[Any, Any]:
        return a, b

    def _inner(self, a: AnyArray, b: AnyArray) -> AnyArray:
        return 0.5 * (np.maximum(a, -1e9) + np.minimum(b, 1e9))

    def _logpdf(self, x: AnyArray, a: AnyArray, b: AnyArray) -> Any:
        return log_truncnorm_density(x, a, b)

    def _cdf(self, x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.truncnorm_cdf(x, a, b)

    def _logcdf(self, x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.truncnorm_logcdf(x, a, b)

    def _sf(self, x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.truncnorm_cdf(-x, -b, -a)

    def _logsf(self, x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.truncnorm_logcdf(-x, -b, -a)

    def _ppf(self, q: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.truncnorm_ppf(q, a, b)

    def _isf(self, q: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return -sc.truncnorm_ppf(q, -b, -a)

    def _resampled(self, drawn: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
        return sc.truncnorm_sample(a, b, drawn)

    def _mean(self, a: AnyArray, b: AnyArray) -> AnyArray:
        return np.exp(log_truncnorm_density(a, a, b)) - np.exp(log_truncnorm_density(b, a, b))

    def _var(self, a: AnyArray, b: AnyArray) -> AnyArray:
        mean = self._mean(a, b)
        lower, upper = _finite(a), _finite(b)
        left = (lower - mean) * np.exp(log_truncnorm_density(a, a, b))
        return 1 + left - (upper - mean) * np.exp(log_truncnorm_density(b, a, b))

    def _entropy(self, a: AnyArray, b: AnyArray) -> AnyArray:
        left = _finite(a) * np.exp(log_truncnorm_density(a, a, b))
        right = _finite(b) * np.exp(log_truncnorm_density(b, a, b))
        return LOG_ROOT_2PI + 0.5 + log_normal_mass(a, b) + 0.5 * (left - right)
