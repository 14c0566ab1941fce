"""``torch.amp``: arithmetic stays in the dtype of the tensors, so ``autocast`` is there to be off.

>>> import chainrule as torch
>>> with torch.autocast("cpu", enabled=False):
...     (torch.ones(2) * 2).dtype
torch.float32
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, TypeVar

from chainrule._src.arrays.types import AnyFunction, DTypeLike
from chainrule._src.messages import errors
from chainrule._src.messages.places import warn

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "is_autocast_enabled"]

T = TypeVar("T", bound=Callable[..., Any])


class autocast(ContextDecorator):
    """A region without automatic casts: what programs write around what has to stay in full precision.

    Args:
        device_type: ``"cpu"``; for ``"cuda"`` it warns and stays off, as PyTorch's does without such a device.
        dtype: what products would be computed in.
        enabled: False.
        cache_enabled: whether casts would be kept.

    Raises:
        RuntimeError: it is enabled for the CPU: PyTorch computes products in bfloat16 then, which NumPy does not have.
    """

    def __init__(
        self, device_type: str, dtype: DTypeLike = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if enabled and device_type == "cpu":
            raise RuntimeError(
                "autocast(): nothing here is cast automatically, and NumPy has no bfloat16. Leave it out, or write enabled=False; "
                "x.half() and x.double() compute in another dtype"
            )
        if enabled:
            warn(f"autocast(): nothing is cast automatically, on {device_type!r} either: it stays off")

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return whether operations cast their operands: no."""
    return False


def is_autocast_available(device_type: str) -> bool:
    """Return whether operations could cast their operands: no."""
    return False


def custom_fwd(fwd: T | None = None, *, device_type: str, cast_inputs: object = None) -> AnyFunction:
    """Return the ``forward`` of a Function itself, with options only the decorator."""
    return fwd if fwd is not None else lambda function: function


def custom_bwd(bwd: T | None = None, *, device_type: str) -> AnyFunction:
    """Return the ``backward`` of a Function itself, with options only the decorator."""
    return bwd if bwd is not None else lambda function: function


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
