"""The exponential distribution. ``chainrule.distributions`` exports ``Exponential``."""

from __future__ import annotations

from typing import ClassVar

from chainrule._src.ops import creation, random
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.utils import broadcast_all


class Exponential(ExponentialFamily):
    """The exponential distribution.

    Args:
        rate: the inverse of the mean.
    """

    arg_constraints: ClassVar = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: object, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Return the expectation."""
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        """Return 0, the maximum of the density."""
        return creation.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        """Return the square of the mean."""
        return self.rate.pow(-2)

    def rsample(self, sample_shape: object = ()) -> Tensor:
        return -(-random.rand_like(self.rate.expand(self._extended_shape(sample_shape)))).log1p() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()
