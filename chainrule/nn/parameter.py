"""Parameters: leaves that require grad."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.core.making import make_tensor
from chainrule.core.tensor import Tensor, wrap


def Parameter(data: Any = None, requires_grad: bool = True) -> Tensor:
    """A leaf that shares the data's memory and requires grad: an ordinary tensor, so that operations on it are fast.

    >>> import chainrule as cr
    >>> w = cr.nn.Parameter(cr.zeros(2))
    >>> w.requires_grad, w.is_leaf
    (True, True)
    """
    if data is None:
        tensor = make_tensor(np.empty((0,), np.float32), None, False, False)
    elif isinstance(data, Tensor):
        tensor = wrap(data._raw)
    else:
        tensor = make_tensor(data, None, False, False)
    return tensor.requires_grad_(requires_grad)
