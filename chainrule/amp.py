"""Mixed precision, like ``torch.amp``: tensors are never cast automatically, so ``autocast`` only accepts being off.

>>> import chainrule as torch
>>> with torch.autocast("cpu", enabled=False):
...     (torch.ones(2) * 2).dtype
torch.float32
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, TypeVar, overload

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import DTypeLike
from chainrule._src.messages.source_locations import warn

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "is_autocast_enabled"]

T = TypeVar("T", bound=Callable[..., Any])


class autocast(ContextDecorator):
    """A context without automatic casts, for programs that turn them off around full-precision code.

    Args:
        device_type: ``"cpu"``; for ``"cuda"`` it warns and stays off, like PyTorch without a GPU.
        dtype: accepted and ignored.
        enabled: must be False for the CPU.
        cache_enabled: accepted and ignored.

    Raises:
        RuntimeError: it is enabled for the CPU: PyTorch computes products in bfloat16, which NumPy lacks.
    """

    def __init__(
        self, device_type: str, dtype: DTypeLike = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if enabled and device_type == "cpu":
            raise RuntimeError(
                "autocast(): automatic casts are not supported, and NumPy has no bfloat16. Remove autocast or pass enabled=False; "
                "use x.half() or x.double() to compute in another dtype"
            )
        if enabled:
            warn(f"autocast(): automatic casts are not supported on {device_type!r}; autocast stays off")

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return whether operations cast their operands: always False."""
    return False


def is_autocast_available(device_type: str) -> bool:
    """Return whether operations could cast their operands: always False."""
    return False


@overload
def custom_fwd(fwd: None = None, *, device_type: str, cast_inputs: object = None) -> Callable[[T], T]: ...
@overload
def custom_fwd(fwd: T, *, device_type: str, cast_inputs: object = None) -> T: ...
def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: object = None) -> Any:
    """Return the ``forward`` of a Function unchanged; with options only, return a decorator."""
    return fwd if fwd is not None else lambda function: function


@overload
def custom_bwd(bwd: None = None, *, device_type: str) -> Callable[[T], T]: ...
@overload
def custom_bwd(bwd: T, *, device_type: str) -> T: ...
def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Return the ``backward`` of a Function unchanged; with options only, return a decorator."""
    return bwd if bwd is not None else lambda function: function


show(globals())
