"""``Size``: the shape of a tensor, a tuple of ints that keeps its type under slicing and concatenation.

``Tensor.shape`` is a ``Size``.
"""

import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

import numpy as np


class Size(tuple[int, ...]):
    """A tuple of ints that prints as PyTorch's shapes do.

    It equals, and hashes like, the plain tuple. Code that has a tuple of ints already,
    such as a NumPy shape, may skip the checks with ``tuple.__new__(Size, shape)``.

    Args:
        iterable: ints, or objects with an integer ``__index__``; empty by default.

    Raises:
        TypeError: if an item is not an integer, or several arguments are given.

    Example:
        >>> shape = Size([2, 4])
        >>> shape
        torch.Size([2, 4])
        >>> shape[1:], shape + (5,), shape.numel()
        (torch.Size([4]), torch.Size([2, 4, 5]), 8)
        >>> shape == (2, 4)
        True
    """

    __module__ = "chainrule"
    __slots__ = ()

    def __new__(cls, iterable: Iterable[SupportsIndex] = (), /) -> "Size":
        self = tuple.__new__(cls, iterable)
        for item in self:
            if type(item) is not int:
                return tuple.__new__(cls, map(_as_int, range(len(self)), self))
        return self

    def numel(self) -> int:
        """Return the number of elements an array of this shape has.

        Example:
            >>> Size([2, 3]).numel(), Size().numel()
            (6, 1)
        """
        return math.prod(self)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> "Size": ...
    def __getitem__(self, index: Any, /) -> "int | Size":
        item = tuple.__getitem__(self, index)
        return tuple.__new__(Size, item) if type(item) is tuple else item

    # Python calls an operand's own ``__add__`` before it concatenates sequences. So ``(1,) + size``, where the
    # subclass has precedence, stays a Size, and NotImplemented leaves ``size + array`` to the array.

    def __add__(self, other: tuple[Any, ...], /) -> "Size":
        if isinstance(other, tuple):
            return Size((*self, *other))
        if hasattr(other, "__radd__"):
            return NotImplemented
        raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")

    def __radd__(self, other: tuple[Any, ...], /) -> "Size":
        if not isinstance(other, tuple):
            return NotImplemented
        return Size((*other, *self))

    def __mul__(self, times: SupportsIndex, /) -> "Size":
        if not isinstance(times, (int, np.integer)):
            return NotImplemented
        return tuple.__new__(Size, tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __reduce__(self) -> tuple[type["Size"], tuple[tuple[int, ...]]]:
        return Size, (tuple(self),)


def _as_int(position: int, item: SupportsIndex) -> int:
    try:
        return int(operator.index(item))
    except TypeError:
        raise TypeError(
            f"torch.Size() takes an iterable of 'int' (item {position} is '{type(item).__name__}')"
        ) from None
