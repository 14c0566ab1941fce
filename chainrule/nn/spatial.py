"""What convolutions, pooling and resampling share: a number for each axis, and inputs with or without a batch axis."""

from __future__ import annotations

from typing import Any

from chainrule._src.arrays.types import Ints, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.arguments import tensor_of
from chainrule._src.tape.tensor import Tensor


def each_axis(function: str, argument: str, value: Any, axes: int) -> Ints:
    """An int or a tuple as one int for each axis."""
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


def whole(function: str, argument: str, value: object) -> int:
    """An argument that has to be an int."""
    if not hasattr(value, "__index__") or isinstance(value, bool):
        raise errors.not_an_int(function, argument, value)
    return value.__index__()


def tensor_argument(function: str, argument: str, value: TensorLike) -> Tensor:
    """An argument after the first that has to be a tensor (or an array)."""
    if not hasattr(value, "dtype"):
        raise TypeError(
            f"{function}(): argument '{argument}' must be Tensor, not {type(value).__name__}: wrap it in tensor(...)"
        )
    return tensor_of(function, value)


def with_examples(function: str, x: Any, axes: int) -> tuple[Any, bool]:
    """The input with a batch axis, and whether it had one."""
    if x.ndim == axes + 2:
        return x, True
    if x.ndim != axes + 1:
        raise errors.spatial_rank(function, x, axes)
    return x.unsqueeze(0), False
