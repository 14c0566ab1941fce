"""SciPy's discrete distributions: derivatives by their parameters, and none by k."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule.stats.base import Discrete, sc
from chainrule.stats.operands import choose, operands
from chainrule.stats.rows import log1mexp


class poisson(Discrete):
    """The Poisson distribution of rate mu."""

    _valid = lambda self, mu: mu >= 0
    _logpmf = lambda self, k, mu: sc.xlogy(k, mu) - sc.gammaln(k + 1) - mu
    _cdf = lambda self, k, mu: sc.gammaincc(k + 1, mu)
    _sf = lambda self, k, mu: sc.gammainc(k + 1, mu)
    _logcdf = lambda self, k, mu: sc.log_gammaincc(k + 1, mu)
    _logsf = lambda self, k, mu: sc.log_gammainc(k + 1, mu)
    _mean = lambda self, mu: mu
    _var = lambda self, mu: mu


def _takes_logits(kind: type[Discrete]) -> Any:
    """Let the methods of a distribution take ``logits`` in the place of p, and hand them to a distribution of these."""

    def decorate(cls: type[Discrete]) -> type[Discrete]:
        other = kind()
        other.name = cls.__name__
        for name in ("_bound", "logpmf", "pmf", "cdf", "logcdf", "sf", "logsf", "mean", "var", "std"):
            setattr(cls, name, _or_by_logits(getattr(cls, name), getattr(other, name), 2 if name == "_bound" else None))
        for name in ("ppf", "isf", "rvs"):
            setattr(cls, name, _with_share(getattr(cls, name)))
        return cls

    return decorate


def _or_by_logits(method: Any, by_logits: Any, at: int | None = None) -> Any:
    """Return a method, or that of the other distribution if logits are among the keywords (which ``_bound`` has at a place)."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        given = kwds if at is None else args[at]
        return by_logits(*args, **kwds) if "logits" in given else method(self, *args, **kwds)

    return call


def _with_share(method: Any) -> Any:
    """Return a method without derivatives, of p = 1 / (1 + exp(−logits))."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        if "logits" in kwds:
            kwds["p"] = sc.expit(*operands(self.name, [kwds.pop("logits")]))
        return method(self, *args, **kwds)

    return call


def _share(p: AnyArray) -> AnyArray | bool:
    return (p >= 0) & (p <= 1)


class _bernoulli_of_logits(Discrete):
    """The Bernoulli distribution, by log(p / (1 − p))."""

    high = 1.0

    _valid = lambda self, logits: ~np.isnan(logits)
    _logpmf = lambda self, k, logits: sc.log_expit(np.where(k > 0.5, logits, -logits)) + 0 * k
    _cdf = lambda self, k, logits: np.where(k < 1, sc.logistic_cdf(-logits), k)
    _sf = lambda self, k, logits: np.where(k < 1, sc.logistic_cdf(logits), k - 1)
    _logcdf = lambda self, k, logits: np.where(k < 1, sc.log_expit(-logits), k - 1)
    _logsf = lambda self, k, logits: choose(k >= 1, -np.inf, sc.log_expit(logits) + 0 * k)
    _mean = lambda self, logits: sc.logistic_cdf(logits)
    _var = lambda self, logits: sc.logistic_cdf(logits) * sc.logistic_cdf(-logits)


@_takes_logits(_bernoulli_of_logits)
class bernoulli(Discrete):
    """1 with probability p, else 0. ``logits`` in the place of p is log(p / (1 − p)), from which both shares have all digits."""

    high = 1.0

    _valid = lambda self, p: _share(p)
    _logpmf = lambda self, k, p: sc.xlogy(k, p) + sc.xlog1py(1 - k, -p)
    _cdf = lambda self, k, p: np.where(k < 1, 1 - p, k)  # where k is nan, so is this
    _sf = lambda self, k, p: np.where(k < 1, p, k - 1)
    _mean = lambda self, p: p
    _var = lambda self, p: p * (1 - p)


class binom(Discrete):
    """The binomial distribution: how many of n trials succeed, each with probability p. There is no derivative by n."""

    _valid = lambda self, n, p: (n >= 0) & (np.floor(n) == n) & _share(p)
    _ends = lambda self, n, p: (0.0, n)
    _inner = lambda self, n, p: 0 * np.floor(n)

    def _logpmf(self, k: AnyArray, n: AnyArray, p: AnyArray) -> AnyArray:
        n = np.floor(n)
        ways = sc.gammaln(n + 1) - sc.gammaln(k + 1) - sc.gammaln(n - k + 1)
        return ways + sc.xlogy(k, p) + sc.xlog1py(n - k, -p)

    def _at_most(self, function: AnyFunction, at_n: float, k: AnyArray, n: AnyArray, p: AnyArray) -> Any:
        """Return a function of the incomplete beta function's arguments, which has a value of its own for k = n."""
        rest = np.floor(n) - k
        return choose(rest <= 0, at_n, function(k + 1, choose(rest <= 0, 1, rest), p))

    _cdf = lambda self, k, n, p: self._at_most(sc.betaincc, 1, k, n, p)
    _logcdf = lambda self, k, n, p: self._at_most(sc.log_betaincc, 0, k, n, p)
    _sf = lambda self, k, n, p: self._at_most(sc.betainc, 0, k, n, p)
    _logsf = lambda self, k, n, p: self._at_most(sc.log_betainc, -np.inf, k, n, p)
    _mean = lambda self, n, p: n * p
    _var = lambda self, n, p: n * p * (1 - p)


class geom(Discrete):
    """The geometric distribution: how many trials it takes to succeed, each with probability p."""

    low = 1.0

    _valid = lambda self, p: (p > 0) & (p <= 1)
    _logpmf = lambda self, k, p: sc.xlog1py(k - 1, -p) + np.log(p)
    _cdf = lambda self, k, p: sc.neg_expm1(self._logsf(k, p))
    _logcdf = lambda self, k, p: log1mexp(self._logsf(k, p))
    _sf = lambda self, k, p: np.exp(self._logsf(k, p))
    _logsf = lambda self, k, p: k * np.log1p(-p)
    _mean = lambda self, p: 1 / p
    _var = lambda self, p: (1 - p) / np.square(p)


class nbinom(Discrete):
    """The negative binomial distribution: how many trials fail until n succeed, each with probability p."""

    _valid = lambda self, n, p: (n > 0) & (p > 0) & (p <= 1)

    def _logpmf(self, k: AnyArray, n: AnyArray, p: AnyArray) -> AnyArray:
        ways = sc.gammaln(n + k) - sc.gammaln(k + 1) - sc.gammaln(n)
        return ways + n * np.log(p) + sc.xlog1py(k, -p)

    _cdf = lambda self, k, n, p: sc.betainc(n, k + 1, p)
    _logcdf = lambda self, k, n, p: sc.log_betainc(n, k + 1, p)
    _sf = lambda self, k, n, p: sc.betaincc(n, k + 1, p)
    _logsf = lambda self, k, n, p: sc.log_betaincc(n, k + 1, p)
    _mean = lambda self, n, p: n * (1 - p) / p
    _var = lambda self, n, p: n * (1 - p) / np.square(p)
