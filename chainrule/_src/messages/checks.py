"""Checks of arguments that raise an error if an argument is invalid.

Public functions call them as ``errors.check_dim`` in each call, so ``errors`` imports this module at once.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.messages.names import name_of


def dim_range(function: str, dim: object, ndim: int) -> IndexError:
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    return IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim}): {function}")


def check_dim(function: str, dim: Any, ndim: int) -> int:
    """Return a dimension as a non-negative index; raise PyTorch's errors for an invalid one."""
    try:
        if type(dim) is bool:
            raise TypeError
        index: int = dim.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{function}(): argument 'dim' must be int, not {type(dim).__name__}") from None
    bound = ndim or 1
    if not -bound <= index < bound:
        raise dim_range(function, dim, ndim)
    return index % bound


def check_function(api: str, func: object) -> None:
    """Raise if a function transformation is given an object that is not callable."""
    if callable(func):
        return
    kind = type(func).__name__
    text = f"'{kind}' object is not callable: {api} takes a function, so pass f, not its result f(x)."
    if hasattr(func, "_edge"):
        y = name_of(func) or "y"
        text += (
            f"\n{y} is already computed: chainrule.jacobian({y}, x) is the whole Jacobian ∂{y}/∂x, and "
            f"chainrule.autograd.grad({y}, x) is the gradient, if {y} is a scalar."
        )
    raise TypeError(text)
