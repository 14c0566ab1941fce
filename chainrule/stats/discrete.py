"""SciPy's discrete distributions, differentiable with respect to their parameters, but not k.

``chainrule.stats`` exports an instance of each class.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule.stats.base import Discrete, sc
from chainrule.stats.densities import log1mexp
from chainrule.stats.operands import choose, operands


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
    """Make the methods of a distribution accept ``logits`` instead of p, and call a distribution parameterized by them."""

    def decorate(cls: type[Discrete]) -> type[Discrete]:
        other = kind()
        other.name = cls.__name__
        for name in ("_bound", "logpmf", "pmf", "cdf", "logcdf", "sf", "logsf", "mean", "var", "std"):
            setattr(
                cls, name, _dispatch_logits(getattr(cls, name), getattr(other, name), 2 if name == "_bound" else None)
            )
        for name in ("ppf", "isf", "rvs"):
            setattr(cls, name, _convert_logits(getattr(cls, name)))
        return cls

    return decorate


def _dispatch_logits(method: Any, by_logits: Any, at: int | None = None) -> Any:
    """Wrap a method to call ``by_logits`` if the keywords contain logits (for ``_bound`` they are positional argument ``at``)."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        given = kwds if at is None else args[at]
        return by_logits(*args, **kwds) if "logits" in given else method(self, *args, **kwds)

    return call


def _convert_logits(method: Any) -> Any:
    """Wrap a non-differentiable method to convert logits to p = 1 / (1 + exp(−logits))."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        if "logits" in kwds:
            kwds["p"] = sc.expit(*operands(self.name, [kwds.pop("logits")]))
        return method(self, *args, **kwds)

    return call


def _is_probability(p: AnyArray) -> AnyArray | bool:
    return (p >= 0) & (p <= 1)


class _bernoulli_of_logits(Discrete):
    """The Bernoulli distribution, parameterized by log(p / (1 − p))."""

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
    """The Bernoulli distribution: 1 with probability p, else 0.

    Instead of p, ``logits`` = log(p / (1 − p)) may be given; then the probabilities of 0 and 1 are both accurate.
    """

    high = 1.0

    _valid = lambda self, p: _is_probability(p)
    _logpmf = lambda self, k, p: sc.xlogy(k, p) + sc.xlog1py(1 - k, -p)
    _cdf = lambda self, k, p: np.where(k < 1, 1 - p, k)  # nan if k is nan
    _sf = lambda self, k, p: np.where(k < 1, p, k - 1)
    _mean = lambda self, p: p
    _var = lambda self, p: p * (1 - p)


class binom(Discrete):
    """The binomial distribution: the number of successes in n trials of probability p. n is not differentiable."""

    _valid = lambda self, n, p: (n >= 0) & (np.floor(n) == n) & _is_probability(p)
    _ends = lambda self, n, p: (0.0, n)
    _inner = lambda self, n, p: 0 * np.floor(n)

    def _logpmf(self, k: AnyArray, n: AnyArray, p: AnyArray) -> AnyArray:
        n = np.floor(n)
        log_count = sc.gammaln(n + 1) - sc.gammaln(k + 1) - sc.gammaln(n - k + 1)
        return log_count + sc.xlogy(k, p) + sc.xlog1py(n - k, -p)

    def _at_most(self, function: AnyFunction, at_n: float, k: AnyArray, n: AnyArray, p: AnyArray) -> Any:
        """Call a function with the incomplete beta function's arguments; return ``at_n`` for k = n."""
        rest = np.floor(n) - k
        return choose(rest <= 0, at_n, function(k + 1, choose(rest <= 0, 1, rest), p))

    _cdf = lambda self, k, n, p: self._at_most(sc.betaincc, 1, k, n, p)
    _logcdf = lambda self, k, n, p: self._at_most(sc.log_betaincc, 0, k, n, p)
    _sf = lambda self, k, n, p: self._at_most(sc.betainc, 0, k, n, p)
    _logsf = lambda self, k, n, p: self._at_most(sc.log_betainc, -np.inf, k, n, p)
    _mean = lambda self, n, p: n * p
    _var = lambda self, n, p: n * p * (1 - p)


class geom(Discrete):
    """The geometric distribution: the number of trials until the first success, each with probability p."""

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
    """The negative binomial distribution: the number of failures before n successes, each with probability p."""

    _valid = lambda self, n, p: (n > 0) & (p > 0) & (p <= 1)

    def _logpmf(self, k: AnyArray, n: AnyArray, p: AnyArray) -> AnyArray:
        log_count = sc.gammaln(n + k) - sc.gammaln(k + 1) - sc.gammaln(n)
        return log_count + n * np.log(p) + sc.xlog1py(k, -p)

    _cdf = lambda self, k, n, p: sc.betainc(n, k + 1, p)
    _logcdf = lambda self, k, n, p: sc.log_betainc(n, k + 1, p)
    _sf = lambda self, k, n, p: sc.betaincc(n, k + 1, p)
    _logsf = lambda self, k, n, p: sc.log_betaincc(n, k + 1, p)
    _mean = lambda self, n, p: n * (1 - p) / p
    _var = lambda self, n, p: n * (1 - p) / np.square(p)
