"""Classes of the program's own that are arrays or numbers: what it says of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays.libraries import register_plain
from chainrule._src.arrays.types import AnyFunction


class Kinds(dict[type, AnyFunction]):
    """A class, and what makes a box or a space of its values. What that refuses is refused where it is differentiated by.

    Raises:
        NotImplementedError: the class is none of arrays or numbers.
    """

    def __setitem__(self, kind: type, maker: AnyFunction) -> None:
        if kind is not Array and not issubclass(kind, (np.ndarray, np.generic, float, complex)):
            raise NotImplementedError(
                f"{kind.__name__} is no class of arrays, which are what chainrule differentiates, alone and in containers. Make it "
                "a container: chainrule.tree.register_pytree_node(cls, flatten_fn, unflatten_fn)"
            )
        if issubclass(kind, np.ndarray):
            _leave_to_arrays(kind)
            register_plain(kind)
        super().__setitem__(kind, maker)

    def check(self, x: object) -> None:
        """Ask the maker for a value's class, if there is one, whether it can be differentiated by."""
        maker = self.get(type(x))
        if maker is not None and not isinstance(maker, type):
            maker(x)


def _leave_to_arrays(kind: Any) -> None:
    """Have a class with an ``__array_ufunc__`` of its own, which comes first in ``x * box``, leave boxes to themselves."""
    own = kind.__array_ufunc__
    if own is np.ndarray.__array_ufunc__ or hasattr(own, "leaves_to_arrays"):
        return

    def __array_ufunc__(self: object, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> object:
        if any(type(x) is Array for x in inputs):
            return NotImplemented
        return own(self, ufunc, method, *inputs, **kwargs)

    __array_ufunc__.leaves_to_arrays = True  # type: ignore[attr-defined]
    kind.__array_ufunc__ = __array_ufunc__


#: classes whose values programs differentiate by
TYPE_MAPPINGS = Kinds()
