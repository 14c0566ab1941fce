"""The base of discrete distributions that are parameterized by probabilities or logits.

``Bernoulli``, ``Categorical`` and other discrete distributions inherit from it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from chainrule._src.arrays.size import Size
from chainrule._src.arrays.types import DTypeLike
from chainrule._src.ops import creation
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


class ProbsOrLogits(Distribution):
    """The base of distributions over 0, 1, ... with probabilities or logits; each is computed from the other."""

    has_enumerate_support = True
    _is_binary = True

    def __init__(self, probs: Any, logits: Any, event: int, validate_args: bool | None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        (given,) = broadcast_all(logits if probs is None else probs)
        self._name = "logits" if probs is None else "probs"
        if given.ndim < event:
            raise ValueError(f"`{self._name}` parameter must be at least one-dimensional.")
        self.__dict__[self._name] = self._normalize(given)
        super().__init__(given.shape[: given.ndim - event], validate_args=validate_args)

    @lazy_property
    def probs(self) -> Any:
        """Return the probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @lazy_property
    def logits(self) -> Any:
        """Return the logits."""
        return probs_to_logits(self.probs, self._is_binary)

    def _normalize(self, given: Tensor) -> Tensor:
        """Return the given parameter in the form in which it is stored."""
        return given

    @property
    def param_shape(self) -> Size:
        """Return the shape of the given parameter."""
        return Size(self._given.shape)

    @property
    def _given(self) -> Tensor:
        given: Tensor = self.__dict__[self._name]
        return given

    def _values(self, count: int, dtype: DTypeLike, expand: bool) -> Tensor:
        """Return the integers below a count along a new first axis."""
        values = creation.arange(count, dtype=dtype).view((-1,) + (1,) * len(self.batch_shape))
        return values.expand((-1, *self.batch_shape)) if expand else values


class ClassProbs(ProbsOrLogits):
    """The base of distributions over classes, with unnormalized probabilities or log probabilities along the last axis."""

    _is_binary = False
    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def _normalize(self, given: Tensor) -> Tensor:
        return (
            given - given.logsumexp(-1, keepdim=True) if self._name == "logits" else given / given.sum(-1, keepdim=True)
        )
