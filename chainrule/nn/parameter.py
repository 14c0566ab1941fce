"""``Parameter``: a tensor that a module registers and an optimizer updates."""

from __future__ import annotations

import numpy as np

from chainrule._src.api.making import make_tensor
from chainrule._src.arrays.types import TensorLike
from chainrule._src.tape.tensor import Tensor, no_torch_function, wrap


class _ParameterMeta(type):
    """Make ``isinstance`` read ``_parameter``: a parameter has the type Tensor, so that operations take the fast path."""

    def __instancecheck__(cls, instance: object) -> bool:
        marked = cls is Parameter and isinstance(instance, Tensor) and instance._parameter is True
        return marked or super().__instancecheck__(instance)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor that shares the data's memory and that modules register as a parameter.

    A subclass creates parameters of its own type; the results of operations on them are ordinary tensors.

    Args:
        data: a tensor, or data to make one from.
        requires_grad: False for a frozen parameter.

    >>> import chainrule as cr
    >>> w = cr.nn.Parameter(cr.zeros(2))
    >>> w.requires_grad, w.is_leaf, isinstance(w, cr.nn.Parameter), isinstance(w * 2, cr.nn.Parameter)
    (True, True, True, False)
    """

    __slots__ = ()
    __torch_function__ = no_torch_function

    def __new__(cls, data: TensorLike | None = None, requires_grad: bool = True) -> Tensor:  # type: ignore[misc]
        if data is None:
            tensor = make_tensor(np.empty((0,), np.float32), None, False, False)
        elif isinstance(data, Tensor):
            tensor = wrap(data._raw)
        else:
            tensor = make_tensor(data, None, False, False)
        if cls is not Parameter:
            tensor.__class__ = cls
        tensor._parameter = True
        return tensor.requires_grad_(requires_grad)
