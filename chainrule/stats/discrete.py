"""SciPy's discrete distributions: derivatives by their parameters, and none by k."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.stats.base import Discrete, sc
from chainrule.stats.operands import choose
from chainrule.stats.rows import log1mexp


class poisson(Discrete):
    """The Poisson distribution of rate mu."""

    def _valid(self, mu: Any) -> Any:
        return mu >= 0

    def _logpmf(self, k: Any, mu: Any) -> Any:
        return sc.xlogy(k, mu) - sc.gammaln(k + 1) - mu

    def _cdf(self, k: Any, mu: Any) -> Any:
        return sc.gammaincc(k + 1, mu)

    def _sf(self, k: Any, mu: Any) -> Any:
        return sc.gammainc(k + 1, mu)

    def _logcdf(self, k: Any, mu: Any) -> Any:
        return sc.log_gammaincc(k + 1, mu)

    def _logsf(self, k: Any, mu: Any) -> Any:
        return sc.log_gammainc(k + 1, mu)

    def _mean(self, mu: Any) -> Any:
        return mu

    def _var(self, mu: Any) -> Any:
        return mu


def _share(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


class bernoulli(Discrete):
    """1 with probability p, else 0."""

    high = 1.0

    def _valid(self, p: Any) -> Any:
        return _share(p)

    def _logpmf(self, k: Any, p: Any) -> Any:
        return sc.xlogy(k, p) + sc.xlog1py(1 - k, -p)

    def _cdf(self, k: Any, p: Any) -> Any:
        return np.where(k < 1, 1 - p, k)  # where k is nan, so is this

    def _sf(self, k: Any, p: Any) -> Any:
        return np.where(k < 1, p, k - 1)

    def _mean(self, p: Any) -> Any:
        return p

    def _var(self, p: Any) -> Any:
        return p * (1 - p)


class binom(Discrete):
    """The binomial distribution: how many of n trials succeed, each with probability p. There is no derivative by n."""

    def _valid(self, n: Any, p: Any) -> Any:
        return (n >= 0) & (np.floor(n) == n) & _share(p)

    def _ends(self, n: Any, p: Any) -> tuple[Any, Any]:
        return 0.0, n

    def _inner(self, n: Any, p: Any) -> Any:
        return 0 * np.floor(n)

    def _logpmf(self, k: Any, n: Any, p: Any) -> Any:
        n = np.floor(n)
        ways = sc.gammaln(n + 1) - sc.gammaln(k + 1) - sc.gammaln(n - k + 1)
        return ways + sc.xlogy(k, p) + sc.xlog1py(n - k, -p)

    def _at_most(self, function: Any, at_n: float, k: Any, n: Any, p: Any) -> Any:
        """A function of the incomplete beta function's arguments, which has a value of its own for k = n."""
        rest = np.floor(n) - k
        return choose(rest <= 0, at_n, function(k + 1, choose(rest <= 0, 1, rest), p))

    def _cdf(self, k: Any, n: Any, p: Any) -> Any:
        return self._at_most(sc.betaincc, 1, k, n, p)

    def _logcdf(self, k: Any, n: Any, p: Any) -> Any:
        return self._at_most(sc.log_betaincc, 0, k, n, p)

    def _sf(self, k: Any, n: Any, p: Any) -> Any:
        return self._at_most(sc.betainc, 0, k, n, p)

    def _logsf(self, k: Any, n: Any, p: Any) -> Any:
        return self._at_most(sc.log_betainc, -np.inf, k, n, p)

    def _mean(self, n: Any, p: Any) -> Any:
        return n * p

    def _var(self, n: Any, p: Any) -> Any:
        return n * p * (1 - p)


class geom(Discrete):
    """The geometric distribution: how many trials it takes to succeed, each with probability p."""

    low = 1.0

    def _valid(self, p: Any) -> Any:
        return (p > 0) & (p <= 1)

    def _logpmf(self, k: Any, p: Any) -> Any:
        return sc.xlog1py(k - 1, -p) + np.log(p)

    def _cdf(self, k: Any, p: Any) -> Any:
        return sc.neg_expm1(self._logsf(k, p))

    def _logcdf(self, k: Any, p: Any) -> Any:
        return log1mexp(self._logsf(k, p))

    def _sf(self, k: Any, p: Any) -> Any:
        return np.exp(self._logsf(k, p))

    def _logsf(self, k: Any, p: Any) -> Any:
        return k * np.log1p(-p)

    def _mean(self, p: Any) -> Any:
        return 1 / p

    def _var(self, p: Any) -> Any:
        return (1 - p) / np.square(p)


class nbinom(Discrete):
    """The negative binomial distribution: how many trials fail until n succeed, each with probability p."""

    def _valid(self, n: Any, p: Any) -> Any:
        return (n > 0) & (p > 0) & (p <= 1)

    def _logpmf(self, k: Any, n: Any, p: Any) -> Any:
        ways = sc.gammaln(n + k) - sc.gammaln(k + 1) - sc.gammaln(n)
        return ways + n * np.log(p) + sc.xlog1py(k, -p)

    def _cdf(self, k: Any, n: Any, p: Any) -> Any:
        return sc.betainc(n, k + 1, p)

    def _logcdf(self, k: Any, n: Any, p: Any) -> Any:
        return sc.log_betainc(n, k + 1, p)

    def _sf(self, k: Any, n: Any, p: Any) -> Any:
        return sc.betaincc(n, k + 1, p)

    def _logsf(self, k: Any, n: Any, p: Any) -> Any:
        return sc.log_betaincc(n, k + 1, p)

    def _mean(self, n: Any, p: Any) -> Any:
        return n * (1 - p) / p

    def _var(self, n: Any, p: Any) -> Any:
        return n * (1 - p) / np.square(p)
