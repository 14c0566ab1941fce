"""The Bernoulli distribution. ``chainrule.distributions`` exports ``Bernoulli``."""

from __future__ import annotations

import math
from typing import ClassVar

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.ops.elementwise import where
from chainrule._src.ops.shaping import broadcast_tensors
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.probs_or_logits import ProbsOrLogits
from chainrule.nn import functional


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """The Bernoulli distribution: 1 with a probability, else 0.

    Args:
        probs: the probability of 1; or
        logits: its log odds.
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean

    def __init__(self, probs: object = None, logits: object = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, 0, validate_args)

    @property
    def mean(self) -> Tensor:
        """Return the probability."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """Return the more probable value; nan where both are equally probable."""
        half = self.probs == 0.5
        return where(half, math.nan, (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        """Return p·(1 − p)."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: object = ()) -> Tensor:
        with no_grad():
            return (self.probs.expand(self._extended_shape(sample_shape))).bernoulli()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_tensors(self.logits, value)
        return -functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values(2, self.mean.dtype, expand)
