"""The normal distribution. ``chainrule.distributions`` exports ``Normal``."""

from __future__ import annotations

import math

from chainrule._src.ops import random
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.location_scale import LocationScale


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution.

    Args:
        loc: the mean.
        scale: the standard deviation.

    >>> import chainrule as torch
    >>> x = torch.tensor(1.0, requires_grad=True)
    >>> torch.distributions.Normal(x, 2.0).log_prob(torch.tensor(3.0)).backward()
    >>> x.grad
    tensor(0.5000)
    """

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        """Return the square of the standard deviation."""
        return self.scale**2

    def rsample(self, sample_shape: object = ()) -> Tensor:
        return self.loc + random.randn_like(self.loc.expand(self._extended_shape(sample_shape))) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 0.5 * (1 + ((value - self.loc) / (self.scale * math.sqrt(2))).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()
