"""The Laplace distribution. ``chainrule.distributions`` exports ``Laplace``."""

from __future__ import annotations

from chainrule._src.ops import random
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions.location_scale import LocationScale


class Laplace(LocationScale):
    """The Laplace (double exponential) distribution.

    Args:
        loc: the mean.
        scale: the mean absolute deviation.
    """

    @property
    def variance(self) -> Tensor:
        """Return the expectation of the squared distance from the mean."""
        return 2 * self.scale**2

    def rsample(self, sample_shape: object = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = random.rand_like(self.loc.expand(shape))  # never 1, for which the logarithm would be -inf
        sign = 1 - 2 * random.randint(2, shape).to(self.loc.dtype)
        return self.loc - self.scale * sign * (-u).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 0.5 - 0.5 * (value - self.loc).sign() * (-(value - self.loc).abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
