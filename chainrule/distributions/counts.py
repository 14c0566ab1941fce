"""Distributions of counts: binomial, geometric, negative binomial and multinomial.

``chainrule.distributions`` exports ``Binomial``, ``NegativeBinomial``, ``Geometric`` and ``Multinomial``.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.ops import creation, random
from chainrule._src.ops.elementwise import where
from chainrule._src.ops.random import _drawn_from, _rng
from chainrule._src.ops.shaping import broadcast_tensors
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.categorical import Categorical
from chainrule.distributions.from_stats import Gamma, wrapped
from chainrule.distributions.kl import register_kl
from chainrule.distributions.probs_or_logits import ClassProbs, ProbsOrLogits
from chainrule.distributions.utils import broadcast_all
from chainrule.nn import functional as F


def _drawn(name: str, draw: Any, probs: Tensor, shape: Any) -> Tensor:
    """Draw numbers for each probability with NumPy, without derivatives, in the dtype of the probabilities."""
    with no_grad():
        return wrapped(_drawn_from(name, lambda p: np.asarray(draw(p), p.dtype), probs.expand(shape)))


class _OfTrials(ProbsOrLogits):
    """The base of distributions with a number of trials or successes, ``total_count``."""

    has_enumerate_support = False

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) != (logits is None):
            given = broadcast_all(total_count, logits if probs is None else probs)
            self.total_count = given[0].to(given[1].dtype)
            probs, logits = (None, given[1]) if probs is None else (given[1], None)
        super().__init__(probs, logits, 0, validate_args)


class Binomial(_OfTrials):
    """The binomial distribution: the number of successes in trials.

    Args:
        total_count: the number of trials.
        probs: the probability of a success; or
        logits: its log odds.

    >>> import chainrule as torch
    >>> torch.distributions.Binomial(2, torch.tensor(0.5)).log_prob(torch.tensor(1.0)).exp()
    tensor(0.5000)
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Return the integers up to ``total_count``."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        """Return n·p."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        """Return the most probable count."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        """Return n·p·(1 − p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: object = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return random.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, rest = self.total_count, self.total_count - value
        log_count = (n + 1).lgamma() - (value + 1).lgamma() - (rest + 1).lgamma()
        return log_count + value * self.logits + n * F.logsigmoid(-self.logits)

    def _count(self, method: str) -> int:
        """Return the number of trials, if it is the same for all distributions of the batch."""
        counts = self.total_count.detach()
        count = int(counts.max())
        if not bool((counts == count).all()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{method}`.")
        return count

    def entropy(self) -> Tensor:
        self._count("entropy")
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values(1 + self._count("enumerate_support"), self._given.dtype, expand)


class NegativeBinomial(_OfTrials):
    """The negative binomial distribution: the number of successes before ``total_count`` failures.

    Args:
        total_count: the number of failures, which need not be an integer.
        probs: the probability of a success; or
        logits: its log odds.
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        """Return n·p / (1 − p)."""
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        """Return the most probable count."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        """Return n·p / (1 − p)²."""
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: object = ()) -> Tensor:
        with no_grad():
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False).sample(sample_shape)
            return random.poisson(rates)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.total_count
        log_count = (n + value).lgamma() - (value + 1).lgamma() - n.lgamma()
        log_count = where(n + value == 0, 0.0, log_count)
        return n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits) + log_count


class Geometric(ProbsOrLogits):
    """The geometric distribution: the number of failures before the first success.

    Args:
        probs: the probability of a success; or
        logits: its log odds.
    """

    has_enumerate_support = False
    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, 0, validate_args)
        if self._validate_args and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs of Geometric to be positive, but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        """Return (1 − p) / p."""
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        """Return 0."""
        return creation.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        """Return (1 − p) / p²."""
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: object = ()) -> Tensor:
        return _drawn(
            "Geometric.sample", lambda p: _rng(None).geometric(p) - 1, self.probs, self._extended_shape(sample_shape)
        )

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        certain = (self.probs == 1) & (value == 0)  # 0 · log 0, whose derivative would be nan
        return value * (-where(certain, 0.0, self.probs)).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Multinomial(ClassProbs):
    """The multinomial distribution: the counts of classes in trials.

    Args:
        total_count: the number of trials.
        probs: unnormalized probabilities of the classes ``(batch..., classes)``; or
        logits: unnormalized log probabilities.
    """

    has_enumerate_support = False
    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported: it must be an int")
        self.total_count = total_count
        super().__init__(probs, logits, 1, validate_args)
        self._event_shape = self.param_shape[-1:]

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Return the counts up to ``total_count``."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        """Return n·p."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """Return n·p·(1 − p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: object = ()) -> Tensor:
        def draw(probs: Any) -> Any:
            exact = probs.astype("float64")
            return _rng(None).multinomial(self.total_count, exact / exact.sum(-1, keepdims=True))

        return _drawn("Multinomial.sample", draw, self.probs, self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_tensors(self.logits, value)
        logits = where((value == 0) & logits.isneginf(), 0.0, logits)
        log_count = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return log_count + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = creation.tensor(float(self.total_count), dtype=self._given.dtype)
        each = Categorical(**{self._name: self._given}, validate_args=False).entropy()
        count = Binomial(self.total_count, self.probs, validate_args=False)
        values = count.enumerate_support(False)[1:]
        shares = (count.log_prob(values).exp() * (values + 1).lgamma()).sum((0, -1))
        return n * each - (n + 1).lgamma() + shares


@register_kl(Binomial, Binomial)
def _kl_binomials(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Geometric, Geometric)
def _kl_geometrics(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits
