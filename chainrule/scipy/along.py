"""Differentiate SciPy's functions that are linear along an axis, by their matrix: the images of the unit vectors.

``integrate``, ``ndimage`` and ``signal`` call this module.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array, recorded_as_numpy
from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor
from chainrule.scipy.derivatives import scipy_module

MAX_LENGTH = 8192  # elements along an axis; the matrix of this many takes half a gigabyte


def is_differentiated(x: object) -> bool:
    return isinstance(x, (Tensor, Array, ArrayLike))


def record_call(function: AnyFunction, *args: object, **options: object) -> Any:
    """Record a call of SciPy's function while a function is compiled; return None if it cannot be recorded."""
    return recorded_as_numpy(function, "", args, options) if trace_hooks.is_tracing() else None


def linear_along_axis(
    module: str, name: str, x: Any, axis: int, *args: object, before: tuple[object, ...] = (), **options: object
) -> AnyArray:
    """Call SciPy's ``name(*before, x, *args, axis=axis, **options)``, a function that is linear in x along the axis.

    Raises:
        TypeError: an argument other than x is differentiated.
        ValueError: the axis is longer than ``MAX_LENGTH``.
    """
    function = getattr(scipy_module(f"scipy.{module}", f"{module}.{name}"), name)
    for other in (*before, *args, *options.values()):
        if is_differentiated(other):
            raise TypeError(
                f"{name}() is differentiable with respect to the input only; other arguments must be constants"
            )
    if not is_differentiated(x):
        return function(*before, x, *args, axis=axis, **options)
    found = record_call(function, *before, x, *args, axis=axis, **options)
    if found is not None:
        return found
    n = np.shape(x)[axis]
    if n > MAX_LENGTH:
        raise ValueError(f"{name}(): the axis has {n:,} elements; derivatives are supported for up to {MAX_LENGTH:,}")
    matrix = function(*before, np.eye(n), *args, axis=0, **options)
    return np.moveaxis(np.tensordot(matrix, x, ([1], [axis])), 0, axis)
