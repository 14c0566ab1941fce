"""``torch.tensor`` and ``torch.as_tensor`` with PyTorch's rule for tensors in a list: one-element tensors are numbers.

The functions of ``chainrule`` raise an error if one of these tensors requires grad. PyTorch copies its number and warns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from chainrule._src.api.making import _find_tensor
from chainrule._src.messages import errors
from chainrule._src.ops import creation
from chainrule._src.tape.tensor import Tensor

__all__ = ["as_tensor", "tensor"]


def _copies_numbers(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a function that makes a tensor from data: it copies the numbers of one-element tensors in a list."""

    @functools.wraps(function)
    def copying(data: Any, *args: Any, **options: Any) -> Tensor:
        found = _find_tensor(data) if isinstance(data, (list, tuple)) else None
        if found is None:
            return function(data, *args, **options)
        result = function(_as_numbers(data), *args, **options)
        if found._edge is not None:
            errors.warn_numbers_copied(function.__name__, found)
        return result

    return copying


def _as_numbers(data: Any) -> Any:
    """Replace one-element tensors in a nested sequence by 0-d tensors outside of the graph."""
    if isinstance(data, (list, tuple)):
        return [_as_numbers(item) for item in data]
    if not isinstance(data, Tensor) or data.numel() != 1:
        return data  # a longer tensor that requires grad raises chainrule's error
    return (data if data._edge is None else data.detach()).reshape(())


tensor = _copies_numbers(creation.tensor)
as_tensor = _copies_numbers(creation.as_tensor)
