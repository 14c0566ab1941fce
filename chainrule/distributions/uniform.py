"""The uniform distribution. ``chainrule.distributions`` exports ``Uniform``."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from chainrule._src.ops import random
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all


class Uniform(Distribution):
    """The uniform distribution on [low, high).

    Raises:
        ValueError: ``low`` is not less than ``high``.
    """

    arg_constraints: ClassVar = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ValueError("Uniform is not defined when low>= high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Return the interval from ``low`` to ``high``."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        """Return the midpoint of the interval."""
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        """Return nan: all values are equally probable."""
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        """Return the squared length divided by 12."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: object = ()) -> Tensor:
        return self.low + random.rand_like(self.low.expand(self._extended_shape(sample_shape))) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = (self.low <= value) & (self.high > value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
