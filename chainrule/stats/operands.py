"""What distributions compute with: operands of one floating dtype, and conditions whose values may be known."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array, as_tensors
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import AnyArray, DTypeLike, IntoArray, TensorLike
from chainrule._src.ops.incomplete import as_dtype
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.protocol import ArrayLike, check_kinds
from chainrule._src.tape.tensor import Tensor


def operands(name: str, values: Any) -> list[Any]:
    """What is to be computed with: arrays of whatever kind, of floating dtypes; numbers take the dtype of the arrays.

    Raises:
        TypeError: something that is not made of real numbers.
    """
    given = [x if type(x) in (int, float) else array_like(x) for x in values]
    dtypes = [dtype_of(x) for x in given if type(x) not in (int, float)]
    strange = next((dtype for dtype in dtypes if dtype.kind not in "biuf"), None)
    if strange is not None:
        raise TypeError(f"{name} is for real numbers, not for an array of {strange}")
    if any(isinstance(x, Tensor) for x in given):
        dtypes = [dtype for dtype in dtypes if dtype.kind == "f"]  # counts do not widen what they meet, as in PyTorch
    common = np.result_type(*dtypes, 0.0) if dtypes else np.dtype(float)
    return [_as_float(x, common) for x in given]


def array_like(x: Any) -> AnyArray | None:
    """Arrays that NumPy's functions compute as they are; lists and columns of tables as arrays."""
    check_kinds((type(x),))
    if isinstance(x, (Array, Tensor, ArrayLike)) or (hasattr(x, "__array_function__") and type(x) is not np.ndarray):
        return x
    found = as_tensors(x)  # the elements of a list, or of an array of objects, may be Arrays
    return np.asarray(found) if found is x else Array(x)


def _as_float(x: Any, dtype: DTypeLike) -> TensorLike:
    if type(x) in (int, float):
        return np.asarray(x, dtype)[()]
    return x if dtype_of(x).kind == "f" else as_dtype(x, dtype)


def values_of(x: AnyArray) -> Any:
    """Return the plain array of the values, whatever derivative they carry; None where there is not one, or a program is recorded."""
    if isinstance(x, (Array, Tensor)):
        x = as_tensors(x)._raw
    if isinstance(x, ArrayLike):
        return x.concrete()
    return x if isinstance(x, (np.ndarray, np.generic)) and LOCAL.recorder is None else None


def certain(condition: Any) -> bool:
    """Return whether a condition is known to hold everywhere."""
    values = values_of(condition)
    return values is not None and bool(np.all(values))


def choose(condition: Any, x: Any, y: Any) -> TensorLike:
    """``np.where``, with a number for x in the dtype of y; y where the condition is known to hold nowhere."""
    if certain(~condition):
        return y
    return np.where(condition, np.asarray(x, dtype_of(y)) if isinstance(x, (int, float)) else x, y)


def finished(x: Any) -> TensorLike:
    """Return a result as NumPy's functions return it: a scalar in the place of a 0-d array."""
    return x[()] if type(x) is np.ndarray else x


def plain(*values: IntoArray) -> bool:
    """Return whether all are arrays that carry no derivative."""
    return all(isinstance(x, (np.ndarray, np.generic)) for x in values)
