"""Parameters: leaves that require grad."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.api.making import make_tensor
from chainrule.core.tensor import Tensor, wrap


class _Leaves(type):
    """Parameters are what the optimizer changes: ``isinstance`` asks for a leaf that requires grad."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.requires_grad and instance.is_leaf


class Parameter(Tensor, metaclass=_Leaves):
    """A leaf that shares the data's memory and requires grad: an ordinary tensor, so that operations on it are fast.

    >>> import chainrule as cr
    >>> w = cr.nn.Parameter(cr.zeros(2))
    >>> w.requires_grad, w.is_leaf, isinstance(w, cr.nn.Parameter)
    (True, True, True)
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Tensor:  # type: ignore[misc]
        if data is None:
            tensor = make_tensor(np.empty((0,), np.float32), None, False, False)
        elif isinstance(data, Tensor):
            tensor = wrap(data._raw)
        else:
            tensor = make_tensor(data, None, False, False)
        return tensor.requires_grad_(requires_grad)
