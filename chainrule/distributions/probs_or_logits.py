"""The base of discrete distributions that are parameterized by probabilities or logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import DTypeLike
from chainrule._src.ops import creation
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions.distribution import Distribution, broadcast_parameters


class ProbsOrLogits(Distribution):
    """The base of distributions over 0, 1, ... with probabilities or logits; each is computed from the other."""

    has_enumerate_support = True

    def __init__(self, probs: Any, logits: Any, event: int, validate_args: bool | None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        (given,) = broadcast_parameters(logits if probs is None else probs)
        self._name = "logits" if probs is None else "probs"
        if given.ndim < event:
            raise ValueError(f"`{self._name}` parameter must be at least one-dimensional.")
        self.__dict__[self._name] = self._normalize(given)
        super().__init__(given.shape[: given.ndim - event], validate_args=validate_args)

    def __getattr__(self, name: str) -> Any:
        if name == "probs" and "logits" in self.__dict__:
            return self._probs_of(self.logits)
        if name == "logits" and "probs" in self.__dict__:
            tiny = np.finfo(self.probs.dtype.dtype).eps
            return self._logits_of(self.probs.clamp(tiny, 1 - tiny))
        return super().__getattr__(name)

    def _normalize(self, given: Tensor) -> Tensor:
        """Return the given parameter in the form in which it is stored."""
        return given

    def _probs_of(self, logits: Tensor) -> Tensor:
        raise NotImplementedError

    def _logits_of(self, probs: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _given(self) -> Tensor:
        given: Tensor = self.__dict__[self._name]
        return given

    def expand(self, batch_shape: Any) -> Distribution:
        given = self._given
        wide = given.expand((*batch_shape, *given.shape[len(self.batch_shape) :]))
        family: Any = type(self)
        return self._copy_validation(family(**{self._name: wide}, validate_args=False))

    def _values(self, count: int, dtype: DTypeLike, expand: bool) -> Tensor:
        """Return the integers below a count along a new first axis."""
        values = creation.arange(count, dtype=dtype).view((-1,) + (1,) * len(self.batch_shape))
        return values.expand((-1, *self.batch_shape)) if expand else values
