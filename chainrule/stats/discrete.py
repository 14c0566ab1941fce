"""SciPy's discrete distributions: derivatives by their parameters, and none by k."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.stats.base import Discrete, sc


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
