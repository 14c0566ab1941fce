"""Questions about a tensor that are answered without computing."""

from __future__ import annotations

from typing import Any

from chainrule.core import dtypes
from chainrule.core.tensor import Tensor
from chainrule.ops.arguments import tensor_of


def is_tensor(obj: Any) -> bool:
    """Whether the object is a tensor."""
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return tensor_of("numel", input).numel()  # type: ignore[no-any-return]


def is_floating_point(input: Any) -> bool:
    """Whether a tensor (or dtype) is of real floating point numbers."""
    return input.is_floating_point() if isinstance(input, Tensor) else dtypes.is_floating_point(input)


def is_complex(input: Any) -> bool:
    """Whether a tensor (or dtype) is of complex numbers."""
    return input.is_complex() if isinstance(input, Tensor) else dtypes.is_complex(input)


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero."""
    return bool(tensor_of("is_nonzero", input))
