"""Registration of user-defined classes of arrays or numbers (``Box.register``, ``VSpace.register``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays.libraries import register_plain
from chainrule._src.arrays.types import AnyFunction


class TypeMappings(dict[type, AnyFunction]):
    """A dict from classes to functions that create a box or vector space of a value, or raise for unsupported values.

    Raises:
        NotImplementedError: the class is not a class of arrays or numbers.
    """

    def __setitem__(self, kind: type, maker: AnyFunction) -> None:
        if kind is not Array and not issubclass(kind, (np.ndarray, np.generic, float, complex)):
            raise NotImplementedError(
                f"{kind.__name__} is not a class of arrays; chainrule differentiates arrays, alone and in containers. Register it "
                "as a container: chainrule.tree.register_pytree_node(cls, flatten_fn, unflatten_fn)"
            )
        if issubclass(kind, np.ndarray):
            _defer_to_arrays(kind)
            register_plain(kind)
        super().__setitem__(kind, maker)

    def check(self, x: object) -> None:
        """Call the function registered for the value's class, if any; it raises if the value is not differentiable."""
        maker = self.get(type(x))
        if maker is not None and not isinstance(maker, type):
            maker(x)


def _defer_to_arrays(kind: Any) -> None:
    """Patch a class with its own ``__array_ufunc__`` to return NotImplemented for Arrays, so that these handle the call."""
    original = kind.__array_ufunc__
    if original is np.ndarray.__array_ufunc__ or hasattr(original, "leaves_to_arrays"):
        return

    def __array_ufunc__(self: object, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> object:
        if any(type(x) is Array for x in inputs):
            return NotImplemented
        return original(self, ufunc, method, *inputs, **kwargs)

    __array_ufunc__.leaves_to_arrays = True  # type: ignore[attr-defined]
    kind.__array_ufunc__ = __array_ufunc__


#: The registry behind ``Box.type_mappings``.
TYPE_MAPPINGS = TypeMappings()
