"""Families that are given probabilities or logits."""

from __future__ import annotations

from typing import Any

from chainrule._src.tape.tensor import Tensor
from chainrule.distributions.distribution import Distribution, together


class OfProbabilities(Distribution):
    """Families that are given probabilities or logits, and derive the others."""

    def __init__(self, probs: Any, logits: Any, event: int, validate_args: bool | None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        (given,) = together(logits if probs is None else probs)
        if given.ndim < event:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        self._take(given, probs is None)
        super().__init__(given.shape[: given.ndim - event], validate_args=validate_args)

    def _take(self, given: Tensor, are_logits: bool) -> None:
        self.__dict__["logits" if are_logits else "probs"] = given

    def expand(self, batch_shape: Any) -> Distribution:
        name = "logits" if "logits" in self.__dict__ else "probs"
        given = self.__dict__[name]
        wide = given.expand((*batch_shape, *given.shape[len(self.batch_shape) :]))
        return self._kept(type(self)(**{name: wide}, validate_args=False))
