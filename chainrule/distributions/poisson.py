"""The Poisson distribution. ``chainrule.distributions`` exports ``Poisson``."""

from __future__ import annotations

from typing import ClassVar

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.ops import random
from chainrule._src.ops.shaping import broadcast_tensors
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.utils import broadcast_all


class Poisson(ExponentialFamily):
    """The Poisson distribution of counts with a rate."""

    arg_constraints: ClassVar = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: object, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Return the rate."""
        return self.rate

    variance = mean

    @property
    def mode(self) -> Tensor:
        """Return the most probable count."""
        return self.rate.floor()

    def sample(self, sample_shape: object = ()) -> Tensor:
        with no_grad():
            return random.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        rate, value = broadcast_tensors(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()
