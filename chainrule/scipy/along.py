"""Functions of SciPy's that are linear along an axis, by the matrix that they make of unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array, recorded_as_numpy
from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor
from chainrule.scipy.derivatives import scipy_module

LONGEST = 8192  # elements along an axis, whose matrix takes half a gigabyte


def is_differentiated(x: object) -> bool:
    return isinstance(x, (Tensor, Array, ArrayLike))


def recorded(function: AnyFunction, *args: object, **options: object) -> Any:
    """Have SciPy's own function recorded, for arrays that are plain where nothing is compiled; None: they are not."""
    return None if LOCAL.recorder is None else recorded_as_numpy(function, "", args, options)


def linear_along(
    module: str, name: str, x: Any, axis: int, *args: object, before: tuple[object, ...] = (), **options: object
) -> AnyArray:
    """``name(*before, x, *args, axis=axis, **options)`` of a module of SciPy's, for a function that is linear in x along the axis.

    Raises:
        TypeError: something else than x is differentiated.
        ValueError: the axis is longer than a matrix is made for.
    """
    function = getattr(scipy_module(f"scipy.{module}", f"{module}.{name}"), name)
    for other in (*before, *args, *options.values()):
        if is_differentiated(other):
            raise TypeError(
                f"{name}(): there are derivatives by what it is applied to, and everything else is a constant"
            )
    if not is_differentiated(x):
        return function(*before, x, *args, axis=axis, **options)
    found = recorded(function, *before, x, *args, axis=axis, **options)
    if found is not None:
        return found
    n = np.shape(x)[axis]
    if n > LONGEST:
        raise ValueError(f"{name}(): of {n:,} elements; there are derivatives for up to {LONGEST:,} along the axis")
    matrix = function(*before, np.eye(n), *args, axis=0, **options)
    return np.moveaxis(np.tensordot(matrix, x, ([1], [axis])), 0, axis)
