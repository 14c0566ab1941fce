"""Helpers of distributions: conversion of operands to one floating dtype, and conditions with possibly known values.

``base`` and the distributions call these functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array, as_tensors
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import AnyArray, DTypeLike, IntoArray, TensorLike
from chainrule._src.ops.incomplete import as_dtype
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.protocol import ArrayLike, check_kinds
from chainrule._src.tape.tensor import Tensor


def operands(name: str, values: Any) -> list[Any]:
    """Convert values to arrays of floating dtype; Python numbers take the dtype of the arrays.

    Raises:
        TypeError: a value does not consist of real numbers.
    """
    given = [x if type(x) in (int, float) else array_like(x) for x in values]
    dtypes = [dtype_of(x) for x in given if type(x) not in (int, float)]
    unsupported = next((dtype for dtype in dtypes if dtype.kind not in "biuf"), None)
    if unsupported is not None:
        raise TypeError(f"{name} is for real numbers, not for an array of {unsupported}")
    if any(isinstance(x, Tensor) for x in given):
        dtypes = [dtype for dtype in dtypes if dtype.kind == "f"]  # integers do not promote floats, as in PyTorch
    common = np.result_type(*dtypes, 0.0) if dtypes else np.dtype(float)
    return [_as_float(x, common) for x in given]


def array_like(x: Any) -> AnyArray | None:
    """Return arrays that support NumPy's functions unchanged; convert others, such as lists and table columns."""
    check_kinds((type(x),))
    if isinstance(x, (Array, Tensor, ArrayLike)) or (hasattr(x, "__array_function__") and type(x) is not np.ndarray):
        return x
    found = as_tensors(x)  # the elements of a list, or of an array of objects, may be Arrays
    return np.asarray(found) if found is x else Array(x)


def _as_float(x: Any, dtype: DTypeLike) -> TensorLike:
    if type(x) in (int, float):
        return np.asarray(x, dtype)[()]
    return x if dtype_of(x).kind == "f" else as_dtype(x, dtype)


def concrete_values(x: AnyArray) -> Any:
    """Return the plain array of a value, without derivatives; None for batched values and while compiling."""
    if isinstance(x, (Array, Tensor)):
        x = as_tensors(x)._raw
    if isinstance(x, ArrayLike):
        return x.concrete()
    return x if isinstance(x, (np.ndarray, np.generic)) and not trace_hooks.is_tracing() else None


def known_true(condition: Any) -> bool:
    """Return whether a condition's values are concrete and all true."""
    values = concrete_values(condition)
    return values is not None and bool(np.all(values))


def choose(condition: Any, x: Any, y: Any) -> TensorLike:
    """Compute ``np.where``, with a number x in the dtype of y; return y if the condition is known to be false everywhere."""
    if known_true(~condition):
        return y
    return np.where(condition, np.asarray(x, dtype_of(y)) if isinstance(x, (int, float)) else x, y)


def as_scalar(x: Any) -> TensorLike:
    """Convert a 0-d array to a scalar, as NumPy's functions do."""
    return x[()] if type(x) is np.ndarray else x


def without_derivatives(*values: IntoArray) -> bool:
    """Return whether all values are plain arrays."""
    return all(isinstance(x, (np.ndarray, np.generic)) for x in values)
