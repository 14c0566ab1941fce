"""What convolutions, pooling and resampling share: a number for each axis, and inputs with or without a batch axis."""

from __future__ import annotations

from typing import Any

from chainrule import errors

Ints = tuple[int, ...]


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


def with_examples(function: str, x: Any, axes: int) -> tuple[Any, bool]:
    """The input with a batch axis, and whether it had one."""
    if x.ndim == axes + 2:
        return x, True
    if x.ndim != axes + 1:
        raise errors.spatial_rank(function, x, axes)
    return x.unsqueeze(0), False
