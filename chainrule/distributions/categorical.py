"""The categorical distribution. ``chainrule.distributions`` exports ``Categorical``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.arrays.size import Size
from chainrule._src.ops import creation
from chainrule._src.ops.shaping import broadcast_tensors
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.probs_or_logits import ClassProbs


class Categorical(ClassProbs):
    """The categorical distribution over class indices, from 0.

    Args:
        probs: unnormalized probabilities of the classes ``(batch..., classes)``; or
        logits: unnormalized log probabilities.
    """

    def __init__(self, probs: object = None, logits: object = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, 1, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Return the constraint of class indices."""
        return constraints.integer_interval(0, self._given.shape[-1] - 1)

    @property
    def mean(self) -> Tensor:
        """Return nan: classes have no mean."""
        return creation.full(self.batch_shape, math.nan, dtype=self._given.dtype)

    variance = mean

    @property
    def mode(self) -> Tensor:
        """Return the most probable class."""
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._given.shape[-1])
            return rows.multinomial(Size(sample_shape).numel(), True).T.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        chosen, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, chosen[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=np.finfo(self.logits.dtype.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values(self._given.shape[-1], None, expand)
