"""Traced NumPy calls with operands that are no arrays in eager code: Python floats, NumPy scalars, memory to write into.

``Recorder`` records such a call as a function of arrays only (``Rebuilt``, ``OnFloats``), which converts the operands back in each call.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, TensorLike

ndarray = np.ndarray


class ArrayPlaceholder:
    """A placeholder among arguments for the array at an index."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at

    def __repr__(self) -> str:
        return f"Place({self.at})"


class Rebuilt:
    """A call as a function of its arrays.

    Attributes:
        function, args, kwargs: the function and its arguments, with a ``ArrayPlaceholder`` for each array.
        floats: the indices of arrays that are Python floats in eager code.
        scalars: the indices of arrays that are NumPy scalars in eager code.
        written: the indices of arrays that the function writes into: it gets copies of them, which are the results.
    """

    __slots__ = ("__name__", "args", "floats", "function", "kwargs", "scalars", "written")

    def __init__(
        self,
        function: AnyFunction,
        args: tuple[Any, ...],
        kwargs: Params,
        floats: tuple[int, ...],
        scalars: tuple[int, ...],
        written: tuple[int, ...],
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.floats, self.scalars, self.written = floats, scalars, written
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *arrays: Any) -> Any:
        parts = list(arrays)
        for i in self.floats:
            parts[i] = parts[i].item()
        for i in self.scalars:
            parts[i] = parts[i][()]
        for i in self.written:
            parts[i] = with_strides(parts[i], parts[i].strides)
        out = self.function(*_filled(self.args, parts), **_filled(self.kwargs, parts))
        if not self.written:
            return out
        return parts[self.written[0]] if len(self.written) == 1 else tuple([parts[i] for i in self.written])


def _filled(x: Any, parts: list[AnyArray]) -> Any:
    """Return arguments with each ``ArrayPlaceholder`` replaced by its array."""
    kind = type(x)
    if kind is ArrayPlaceholder:
        return parts[x.at]
    if kind is tuple or kind is list:
        return kind([_filled(item, parts) for item in x])
    if kind is dict:
        return {name: _filled(item, parts) for name, item in x.items()}
    return slice(*[_filled(item, parts) for item in (x.start, x.stop, x.step)]) if kind is slice else x


class OnFloats:
    """A Python operator on floats, as a function of arrays."""

    __slots__ = ("__name__", "operation")

    def __init__(self, operation: AnyFunction) -> None:
        self.operation = operation
        self.__name__ = operation.__name__

    def __call__(self, *operands: TensorLike) -> Any:
        return self.operation(*[x.item() if isinstance(x, (ndarray, np.generic)) else x for x in operands])


_OPERATORS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "neg",
    "pos",
    "abs",
    "lt",
    "le",
    "eq",
    "ne",
    "gt",
    "ge",
]
#: Python operator -> its function of arrays that computes on floats
ARITHMETIC: dict[Any, OnFloats] = {
    operation: OnFloats(operation) for operation in (*[getattr(operator, name) for name in _OPERATORS], round)
}
#: Python operators whose results for floats have the bits of a ufunc's results
SAME_AS_UFUNC: dict[Any, np.ufunc] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.neg: np.negative,
    operator.pos: np.positive,
    operator.abs: np.absolute,
    operator.lt: np.less,
    operator.le: np.less_equal,
    operator.eq: np.equal,
    operator.ne: np.not_equal,
    operator.gt: np.greater,
    operator.ge: np.greater_equal,
}
