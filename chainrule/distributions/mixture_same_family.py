"""Mixtures of distributions of one family. ``chainrule.distributions`` exports ``MixtureSameFamily``."""

from __future__ import annotations

from typing import Any, ClassVar

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.ops.shaping import broadcast_tensors
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.categorical import Categorical
from chainrule.distributions.distribution import Distribution


class MixtureSameFamily(Distribution):
    """A mixture of the distributions along the last batch axis of a batch.

    Args:
        mixture_distribution: the probabilities of the components.
        component_distribution: the components ``(batch..., n)``.

    >>> import chainrule as torch
    >>> D = torch.distributions
    >>> d = D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.tensor([-1.0, 1.0]), 1.0))
    >>> d.mean, d.variance
    (tensor(0.), tensor(2.))
    """

    arg_constraints: ClassVar = {}

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        batch, count = component_distribution.batch_shape[:-1], component_distribution.batch_shape[-1]
        for own, other in zip(reversed(mixture_distribution.batch_shape), reversed(batch), strict=False):
            if own != 1 and other != 1 and own != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is not compatible with "
                    f"`component_distribution.batch_shape` ({component_distribution.batch_shape})"
                )
        if mixture_distribution.param_shape[-1] != count:
            raise ValueError(
                f"`mixture_distribution component` ({mixture_distribution.param_shape[-1]}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({count})"
            )
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(batch, component_distribution.event_shape, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._copy(batch_shape, _instance)
        new.component_distribution = self.component_distribution.expand(
            (*batch_shape, self.component_distribution.batch_shape[-1])
        )
        new.mixture_distribution = self.mixture_distribution.expand(batch_shape)
        return new

    @constraints.dependent_property()
    def support(self) -> constraints.Constraint:
        """Return the support of the components."""
        return self.component_distribution.support

    @property
    def _axis(self) -> int:
        """Return the axis of the components in their values."""
        return -1 - len(self.event_shape)

    def _average(self, x: Tensor) -> Tensor:
        """Return the expectation over the components."""
        probs = self.mixture_distribution.probs
        return (probs.reshape((*probs.shape, *(1,) * len(self.event_shape))) * x).sum(self._axis)

    @property
    def mean(self) -> Tensor:
        """Return the expectation."""
        return self._average(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """Return the mean of the variances plus the variance of the means."""
        means = self.component_distribution.mean
        return self._average(self.component_distribution.variance + (means - self.mean.unsqueeze(self._axis)).pow(2))

    def cdf(self, value: Tensor) -> Tensor:
        return (self.component_distribution.cdf(value.unsqueeze(self._axis)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        each = self.component_distribution.log_prob(value.unsqueeze(self._axis))
        return (each + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: object = ()) -> Tensor:
        with no_grad():
            chosen = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = chosen.reshape((*chosen.shape, *(1,) * (1 + len(self.event_shape))))
            index, _ = broadcast_tensors(index, drawn.select(self._axis, 0).unsqueeze(self._axis))
            return drawn.gather(self._axis, index).squeeze(self._axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution!r}, {self.component_distribution!r})"
