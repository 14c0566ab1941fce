"""Argument checks of convolutions, pooling and resampling: ints per axis, and inputs with or without a batch axis.

``convolution``, ``pooling`` and ``resampling`` call these functions.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.arrays.types import Ints, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.arguments import tensor_of
from chainrule._src.tape.tensor import Tensor


def each_axis(function: str, argument: str, value: Any, axes: int) -> Ints:
    """Convert an int or a tuple to a tuple with one int for each axis."""
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return (value.__index__(),) * axes
    try:
        found = tuple(v.__index__() for v in value)
    except (TypeError, AttributeError):
        raise TypeError(
            f"{function}(): argument '{argument}' must be tuple of ints, not {type(value).__name__}"
        ) from None
    if len(found) == 1:
        return found * axes
    if len(found) != axes:
        raise errors.window_numbers(function, argument, value, axes)
    return found


def int_argument(function: str, argument: str, value: object) -> int:
    """Return an argument as an int; raise if it is not one."""
    if not hasattr(value, "__index__") or isinstance(value, bool):
        raise errors.not_an_int(function, argument, value)
    return value.__index__()


def tensor_argument(function: str, argument: str, value: TensorLike) -> Tensor:
    """Return an argument as a tensor; raise if it is neither a tensor nor an array."""
    if not hasattr(value, "dtype"):
        raise TypeError(
            f"{function}(): argument '{argument}' must be Tensor, not {type(value).__name__}: wrap it in tensor(...)"
        )
    return tensor_of(function, value)


def add_batch_axis(function: str, x: Any, axes: int) -> tuple[Any, bool]:
    """Return the input with a batch axis (added if missing), and whether the input had one."""
    if x.ndim == axes + 2:
        return x, True
    if x.ndim != axes + 1:
        raise errors.spatial_rank(function, x, axes)
    return x.unsqueeze(0), False
