"""Distributions of one-hot vectors, and their continuous relaxations.

``chainrule.distributions`` exports ``OneHotCategorical``, ``OneHotCategoricalStraightThrough``,
``RelaxedOneHotCategorical`` and ``RelaxedBernoulli``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from chainrule._src.arrays.size import Size
from chainrule._src.ops import creation
from chainrule._src.ops.shaping import broadcast_tensors
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.bernoulli import Bernoulli
from chainrule.distributions.categorical import Categorical
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.probs_or_logits import ClassProbs
from chainrule.distributions.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import ExpTransform, SigmoidTransform
from chainrule.distributions.utils import broadcast_all, clamp_probs, uniform_like
from chainrule.nn import functional as F


class OneHotCategorical(ClassProbs):
    """The distribution of one-hot vectors.

    Args:
        probs: unnormalized probabilities of the classes ``(batch..., classes)``; or
        logits: unnormalized log probabilities.
    """

    support = constraints.one_hot

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, 1, validate_args)
        self._event_shape = self.param_shape[-1:]

    @property
    def _categorical(self) -> Categorical:
        return Categorical(**{self._name: self._given}, validate_args=False)

    @property
    def mean(self) -> Tensor:
        """Return the probabilities."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """Return the most probable class."""
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        """Return p·(1 − p)."""
        return self.probs * (1 - self.probs)

    def _one_hot(self, classes: Tensor) -> Tensor:
        return F.one_hot(classes, self.event_shape[0]).to(self._given.dtype)

    def sample(self, sample_shape: object = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = creation.eye(n, dtype=self._given.dtype).view((n, *(1,) * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """:class:`OneHotCategorical` with samples that have the derivative of the probabilities (Bengio and others, 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: object = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class _Relaxed(Distribution):
    """The base of relaxed distributions before their last transform.

    Args:
        temperature: a positive tensor; samples of low temperatures are close to discrete ones.
        probs, logits: the parameters of the discrete distribution.
    """

    has_rsample = True
    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    _family: Any

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._discrete = self._family(probs, logits, validate_args)
        super().__init__(self._discrete.batch_shape, self._discrete.event_shape, validate_args)

    @property
    def probs(self) -> Any:
        """Return the probabilities."""
        return self._discrete.probs

    @property
    def logits(self) -> Any:
        """Return the logits."""
        return self._discrete.logits

    @property
    def param_shape(self) -> Size:
        """Return the shape of the parameters."""
        return Size(self._discrete._given.shape)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._copy(batch_shape, _instance)
        new._discrete = self._discrete.expand(batch_shape)
        return new


class ExpRelaxedCategorical(_Relaxed):
    """The logarithm of :class:`RelaxedOneHotCategorical`."""

    support = constraints.real_vector
    _family = OneHotCategorical

    def rsample(self, sample_shape: object = ()) -> Tensor:
        uniform = clamp_probs(uniform_like(self.logits, self._extended_shape(sample_shape)))
        scores = (self.logits - (-uniform.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_tensors(self.logits, value)
        n = self.event_shape[0]
        (temperature,) = broadcast_all(self.temperature)
        score = logits - value * temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + temperature.new_full((), float(n)).lgamma() + (n - 1) * temperature.log()


class LogitRelaxedBernoulli(_Relaxed):
    """The log odds of :class:`RelaxedBernoulli`."""

    support = constraints.real

    _family = Bernoulli

    def rsample(self, sample_shape: object = ()) -> Tensor:
        uniform = clamp_probs(uniform_like(self.logits, self._extended_shape(sample_shape)))
        return (uniform.logit() + clamp_probs(self.probs).logit()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_tensors(self.logits, value)
        difference = logits - value * self.temperature
        (temperature,) = broadcast_all(self.temperature)
        return temperature.log() + difference - 2 * difference.exp().log1p()


class _RelaxedAfterTransform(TransformedDistribution):
    """The base of relaxed distributions."""

    has_rsample = True
    arg_constraints: ClassVar = {}

    @property
    def temperature(self) -> Any:
        """Return the temperature."""
        return self.base_dist.temperature  # type: ignore[attr-defined]

    @property
    def probs(self) -> Any:
        """Return the probabilities."""
        return self.base_dist.probs  # type: ignore[attr-defined]

    @property
    def logits(self) -> Any:
        """Return the logits."""
        return self.base_dist.logits  # type: ignore[attr-defined]


class RelaxedOneHotCategorical(_RelaxedAfterTransform):
    """A continuous relaxation of :class:`OneHotCategorical` (Maddison and others 2017; Jang and others 2017).

    Args:
        temperature: a positive tensor; samples of low temperatures are close to one-hot vectors.
        probs: unnormalized probabilities of the classes ``(batch..., classes)``; or
        logits: unnormalized log probabilities.
    """

    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)


class RelaxedBernoulli(_RelaxedAfterTransform):
    """A continuous relaxation of :class:`Bernoulli`, on (0, 1).

    Args:
        temperature: a positive tensor; samples of low temperatures are close to 0 and 1.
        probs: the probability of 1; or
        logits: its log odds.
    """

    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)
