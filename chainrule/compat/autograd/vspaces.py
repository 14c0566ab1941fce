"""Vector spaces of values: numbers, arrays, and containers of them.

``extend`` exports the classes; ``differential_operators`` and ``test_util`` call ``vspace``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.tree import is_container, tree_flatten, tree_map, tree_unflatten
from chainrule._src.arrays.types import NumpyDType, TensorLike
from chainrule.compat.autograd.kinds import TypeMappings
from chainrule.compat.autograd.values import getval

__all__ = [
    "ArrayVSpace",
    "ComplexArrayVSpace",
    "VSpace",
    "vspace",
]

_SCALARS = (float, complex, np.inexact)


class VSpace:
    """The real vector space of a value; a complex number has two dimensions.

    Attributes:
        shape, dtype: shape and dtype of an array or number.
        size: the number of dimensions.
        iscomplex: whether the value is a complex array.
        mappings: user-defined classes, and the functions that return their values' spaces.
    """

    mappings = TypeMappings()

    def __init__(self, value: object) -> None:
        leaves, self.spec = tree_flatten(value)
        if value is None or not all(isinstance(x, _SCALARS) or hasattr(x, "__array__") for x in leaves):
            raise TypeError(
                f"Can't find vector space for value {value} of type {type(value)}. It must be a float, a complex number, an "
                "array, or a tuple, list or dict of them"
            )
        self.leaves = [(np.shape(x), np.result_type(getval(x))) for x in leaves]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._single("shape")[0]

    @property
    def dtype(self) -> NumpyDType:
        return self._single("dtype")[1]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return sum(math.prod(shape) * (1 + (dtype.kind == "c")) for shape, dtype in self.leaves)

    @property
    def iscomplex(self) -> bool:
        return self.spec.kind is None and self.dtype.kind == "c"

    def _single(self, what: str) -> tuple[tuple[int, ...], NumpyDType]:
        if self.spec.kind is not None:
            raise TypeError(f"a {self.spec.kind.__name__} of arrays has no {what}")
        return self.leaves[0]

    def _fill(self, make: Callable[[tuple[int, ...], NumpyDType], Any]) -> Any:
        return tree_unflatten([make(*leaf)[()] for leaf in self.leaves], self.spec)

    def zeros(self) -> Any:
        return self._fill(np.zeros)

    def ones(self) -> Any:
        return self._fill(lambda shape, dtype: np.full(shape, 1 + 1j if dtype.kind == "c" else 1, dtype))

    def randn(self) -> Any:
        def normal(shape: tuple[int, ...], dtype: NumpyDType) -> TensorLike:
            real = np.asarray(np.random.randn(*shape))
            return (real + 1j * np.random.randn(*shape) if dtype.kind == "c" else real).astype(dtype)

        return self._fill(normal)

    def standard_basis(self) -> Iterator[Any]:
        """Iterate over the unit vectors; those of a complex number are 1 and 1j."""
        for place, (shape, dtype) in enumerate(self.leaves):
            for index in np.ndindex(shape):
                for unit in (1, 1j) if dtype.kind == "c" else (1,):
                    leaves = [np.zeros(*leaf) for leaf in self.leaves]
                    leaves[place][index] = unit
                    yield tree_unflatten([leaf[()] for leaf in leaves], self.spec)

    def add(self, x: object, y: object) -> Any:
        return tree_map(np.add, x, y)

    def mut_add(self, x: object, y: object) -> Any:
        """Return the sum; ``x`` may be None, for zeros."""
        return self.add(self.zeros() if x is None else x, y)

    def scalar_mul(self, x: object, a: object) -> Any:
        return tree_map(lambda leaf: leaf * a, x)

    def inner_prod(self, x: object, y: object) -> Any:
        """Return Re ⟨x, y⟩, summed over all leaves."""
        products = tree_map(lambda a, b: np.real(np.sum(np.conj(a) * b)), x, y)
        return sum(tree_flatten(products)[0], 0.0)

    def covector(self, x: object) -> Any:
        """Return the conjugate: the gradient of ``inner_prod`` with the vector."""
        return tree_map(lambda leaf: np.conj(leaf) if np.iscomplexobj(leaf) else leaf, x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VSpace) and (self.spec, self.leaves) == (other.spec, other.leaves)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"VSpace({tree_unflatten([f'{dtype}{list(shape)}' for shape, dtype in self.leaves], self.spec)})"

    @classmethod
    def register(cls, value_type: type, vspace_maker: Callable[[Any], VSpace] | None = None) -> None:
        """Register the vector space of a class of arrays."""
        VSpace.mappings[value_type] = cls if vspace_maker is None else vspace_maker


class ArrayVSpace(VSpace):
    """The space of one array or number."""

    def __init__(self, value: object) -> None:
        super().__init__(value if isinstance(value, _SCALARS) or hasattr(value, "__array__") else np.asarray(value))


class ComplexArrayVSpace(ArrayVSpace):
    """The space of one complex array or number."""


def vspace(value: object) -> VSpace:
    """Return the vector space of a value."""
    if type(value) in VSpace.mappings:
        return VSpace.mappings[type(value)](value)
    if isinstance(value, _SCALARS) or (hasattr(value, "__array__") and not is_container(value)):
        return ComplexArrayVSpace(value) if np.iscomplexobj(value) else ArrayVSpace(value)
    return VSpace(value)


show(globals())
