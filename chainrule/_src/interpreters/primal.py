"""``WithPrimal``, the base class of ``Dual`` and ``Jac``: a value (``primal``) with its tangent, or its place in a Jacobian's trace.

It implements the methods that are the same for both. ``ArrayLike`` (``tape.protocol``) documents them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray
from chainrule._src.tape.inplace import with_numbers
from chainrule._src.tape.protocol import ArrayLike, on_numbers, strides_of, strip_derivatives
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray


class WithPrimal(ArrayLike):
    """An array-like with the shape and dtype of its primal.

    A subclass has the constructor ``cls(primal, change, level)``. ``change`` is a tangent, or the origin of a Jacobian, or None for a
    constant.
    """

    __slots__ = ("dtype", "level", "primal", "shape")
    wraps = True

    def __init__(self, primal: Any, change: object, level: int) -> None:
        self.primal = primal
        self.level = level
        if type(primal) is ndarray:
            self.shape = primal.shape
            self.dtype = primal.dtype
        else:
            self.shape = tuple(shape_of(primal))
            self.dtype = dtype_of(primal)

    @property
    def change(self) -> Any:
        """The tangent, or the origin of the Jacobian; None for a constant."""
        raise NotImplementedError

    @classmethod
    def constant(cls, data: AnyArray, level: int) -> Self:
        """Return a value without a derivative."""
        return cls(data, None, level)

    @property
    def inside(self) -> Any:
        return self.primal

    def with_inside(self, inside: Any) -> Self:
        return type(self)(inside, self.change, self.level)

    @property
    def moving(self) -> bool:
        return self.change is not None or super().moving

    @property
    def own_strides(self) -> tuple[int, ...]:
        return strides_of(self.primal)

    def on_numbers(self, function: Callable[[Any], object]) -> Any:
        return on_numbers(self.primal, function)

    def detached(self) -> Self:
        return type(self)(strip_derivatives(self.primal), None, self.level)

    @classmethod
    def with_numbers(cls, x: Any, numbers: Any, level: Any) -> Self:
        old, new = (y if type(y) is cls and y.level == level else cls(y, None, level) for y in (x, numbers))
        return cls(with_numbers(old.primal, new.primal), old.change, level)

    def concrete(self) -> Any:
        data = self._data()
        return data.concrete() if isinstance(data, ArrayLike) else data

    def read(self) -> Any:
        data = self._data()
        return data.read() if isinstance(data, ArrayLike) else data

    @property
    def readable(self) -> bool:
        data = self._data()
        return data.readable if isinstance(data, ArrayLike) else True

    def _data(self) -> Any:
        return self.primal._raw if isinstance(self.primal, Tensor) else self.primal
