"""Helpers for distributions, with the names of ``torch.distributions.utils``.

The distributions call these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from chainrule._src.api.grad_mode import enable_grad
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.dtypes import default_dtype
from chainrule._src.ops import creation, random
from chainrule._src.ops.shaping import broadcast_tensors
from chainrule._src.tape.tensor import Tensor

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]


def broadcast_all(*values: object) -> list[Tensor]:
    """Broadcast parameters to tensors of one shape; numbers take the dtype of the tensors.

    Raises:
        ValueError: a parameter is neither a number nor a tensor.
    """
    for x in values:
        if not isinstance(x, (Tensor, Number)):
            raise ValueError(f"Input arguments must all be instances of Number or Tensor, not {type(x).__name__}")
    kind = next((x.dtype for x in values if isinstance(x, Tensor)), default_dtype())
    return list(broadcast_tensors(*(x if isinstance(x, Tensor) else creation.tensor(x, dtype=kind) for x in values)))


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamp probabilities to [eps, 1 − eps], where eps is the dtype's distance between 1 and the next number."""
    eps = float(np.finfo(probs.dtype.dtype).eps)
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return probabilities: of 1 from log odds, or of classes (last axis) from log probabilities."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the inverse of :func:`logits_to_probs`, of clamped probabilities."""
    clamped = clamp_probs(probs)
    return clamped.logit() if is_binary else clamped.log()


class lazy_property:
    """A property that is computed at first use, with grad mode enabled, and then stored in the instance.

    >>> class Circle:
    ...     @lazy_property
    ...     def area(self):
    ...         print("computed")
    ...         return 3
    >>> circle = Circle()
    >>> circle.area + circle.area
    computed
    6
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped, self.__doc__ = wrapped, wrapped.__doc__
        self.name = wrapped.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        vars(instance)[self.name] = value  # not by setattr, which a subclass may override
        return value


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return random.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Return the sum over the last ``dim`` axes."""
    return value.sum(tuple(range(-dim, 0))) if dim else value


def uniform_like(x: Tensor, shape: Any) -> Tensor:
    """Draw uniform numbers in (0, 1), with the dtype of a parameter."""
    return random.rand_like(x.expand(shape)).clamp(min=float(np.finfo(x.dtype.dtype).tiny))


show(globals())
