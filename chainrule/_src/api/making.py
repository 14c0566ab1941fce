"""Create tensors from numbers, nested sequences and arrays.

``ops.creation`` calls ``make_tensor``; ``ops.indexing`` and ``ops.dlpack`` call ``to_array``.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, as_tensors
from chainrule._src.arrays import promotion
from chainrule._src.arrays.dtype import DTYPE_OF
from chainrule._src.arrays.dtypes import as_dtype, default_dtype, get_default_complex_dtype, to_native_byte_order
from chainrule._src.arrays.libraries import is_container, is_foreign
from chainrule._src.arrays.types import DTypeLike, NumpyArray, NumpyDType
from chainrule._src.messages import errors
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.protocol import as_plain_array
from chainrule._src.tape.tensor import Tensor, wrap

ndarray = np.ndarray


def make_tensor(data: object, dtype: DTypeLike, requires_grad: bool, copy_data: bool) -> Tensor:
    """Implement ``tensor`` and ``as_tensor``: NumPy data keeps its dtype; Python floats get the default dtype."""
    if type(data) is not ndarray:
        data = _unwrap_container(data)
    if is_foreign(type(data)):
        array = as_plain_array(data)
        array = array if dtype is None else array.astype(as_dtype(dtype))
    elif isinstance(data, Tensor):
        array = data._array()
        target = array.dtype if dtype is None else as_dtype(dtype)
        array = array.astype(target, copy=copy_data)
    else:
        array = to_array(data, dtype, copy_data)
    out = wrap(array)
    if requires_grad:
        out.requires_grad = requires_grad
    elif isinstance(data, Tensor) and data._edge is not None:
        out._cut = errors.Cut("tensor()", errors.user_line())
    return out


def _unwrap_container(data: Any) -> Any:
    """Unwrap an Array to its tensor, an xarray object to its data, and a tensor of another library's array to that array."""
    if type(data) is Array:
        data = data._tensor
    if is_container(type(data)) and hasattr(data, "dims"):
        data = data.data
    return data._raw.payload if isinstance(data, Tensor) and type(data._raw) is Foreign else data


def to_array(data: object, dtype: DTypeLike = None, copy_data: bool = True) -> NumpyArray:
    """Convert numbers, nested sequences and arrays to an ndarray of a dtype that tensors support."""
    target = None if dtype is None else as_dtype(dtype)
    data = as_tensors(data)
    if isinstance(data, (ndarray, np.generic)) or _has_array(data):
        data = data if isinstance(data, np.matrix) else as_plain_array(data)
        array = np.array(data, copy=True if copy_data else None)
    elif hasattr(data, "__dlpack__"):
        array = np.from_dlpack(data)
        array = array.copy() if copy_data else array
    else:
        if isinstance(data, (list, tuple)):
            found = _find_tensor(data)
            if found is not None:
                if found._edge is not None:
                    raise errors.tensor_of_tensors(found)
                data = _unwrap_tensors(data)
        try:
            array = np.array(data)
        except ValueError as error:
            raise errors.ragged(data) from error
        if target is None:
            target = _inferred(array, data)
        elif array.dtype.kind in "fciu":
            _check_fits(array, target)
    if array.dtype.kind not in "fciub":
        raise errors.not_numbers(data, array.dtype)
    if array.dtype == np.longdouble or array.dtype == np.clongdouble:
        array = array.astype(np.float64 if array.dtype.kind == "f" else np.complex128)
    if target is not None:
        array = array.astype(target, copy=False)
    result: NumpyArray = to_native_byte_order(array)
    return result


def _find_tensor(data: list[Any] | tuple[Any, ...]) -> Tensor | None:
    """Return the first tensor that requires grad in a nested sequence, else the first tensor, else None."""
    found: Tensor | None = None
    stack: list[Any] = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            if item._edge is not None:
                return item
            found = found if found is not None else item
        elif (
            isinstance(item, (list, tuple))
            and item
            and (isinstance(item[0], (list, tuple, Tensor)) or any(isinstance(i, Tensor) for i in item))
        ):
            stack.extend(reversed(item))
    return found


def _check_fits(array: NumpyArray, dtype: NumpyDType) -> None:
    """Raise if one of the numbers a user wrote is not representable in the requested dtype."""
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise errors.complex_number(array, dtype)
    if dtype.kind in "iu" and array.size:
        high = np.iinfo(dtype).max
        low = np.iinfo(dtype).min or -high  # -1 is allowed as the largest unsigned number, as in C
        unfit = ~((array >= low) & (array <= high))
        if unfit.any():
            raise errors.number_overflows(array[unfit][0].item(), dtype)


def _unwrap_tensors(data: object) -> Any:
    if isinstance(data, Tensor):
        return data._array()
    return [_unwrap_tensors(item) for item in data] if isinstance(data, (list, tuple)) else data


def _inferred(array: NumpyArray, data: object) -> NumpyDType | None:
    """Return the dtype for data other than an array: defaults for Python numbers, their own for NumPy scalars.

    Return None to keep the array's dtype.
    """
    kind = array.dtype.kind
    typed_array = getattr(sys.modules.get("array"), "array", memoryview)
    if kind not in "fciu" or (kind in "fc" and isinstance(data, (memoryview, typed_array))):
        return None
    found: set[Any] = set()
    if isinstance(data, (list, tuple)):
        _collect(data, found)
        if not found <= _PYTHON.keys():
            each = [_PYTHON[d]() if d in _PYTHON else d for d in found]
            return functools.reduce(promotion.promoted_dtype, each) if DTYPE_OF.keys() >= set(each) else None
    return default_dtype() if kind == "f" else get_default_complex_dtype() if kind == "c" else np.dtype(np.int64)


_PYTHON = {
    bool: lambda: np.dtype(bool),
    int: lambda: np.dtype(np.int64),
    float: default_dtype,
    complex: get_default_complex_dtype,
}


def _collect(data: Any, found: set[Any]) -> None:
    """Collect the types of Python numbers and the dtypes of NumPy scalars in nested sequences."""
    for kind in set(map(type, data)):
        if kind in _PYTHON:
            found.add(kind)
        elif issubclass(kind, np.generic):
            found.add(np.dtype(kind))
        elif issubclass(kind, (list, tuple)):
            for item in data:
                if type(item) is kind:
                    _collect(item, found)
        else:
            found.update(
                [to_array(item, None, False).dtype for item in data if type(item) is kind and _has_array(item)]
            )


def _has_array(x: object) -> bool:
    return hasattr(x, "__array__") or hasattr(x, "__array_interface__") or hasattr(x, "__array_struct__")
