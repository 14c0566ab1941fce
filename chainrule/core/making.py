"""Tensors from what users write: numbers, nested sequences, arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core.array import Array, as_tensors
from chainrule.core.dtypes import as_dtype, default_dtype, native
from chainrule.core.tensor import Tensor, wrap

ndarray = np.ndarray


def make_tensor(data: Any, dtype: Any, requires_grad: bool, copy_data: bool) -> Tensor:
    """The work behind ``tensor`` and ``as_tensor``: NumPy data keeps its dtype, Python floats get the default one."""
    if type(data) is Array:
        data = data._tensor
    if isinstance(data, Tensor):
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


def to_array(data: Any, dtype: Any = None, copy_data: bool = True) -> np.ndarray[Any, Any]:
    """Numbers, nested sequences and arrays as an ndarray of a dtype that tensors can have."""
    target = None if dtype is None else as_dtype(dtype)
    data = as_tensors(data)
    if isinstance(data, (ndarray, np.generic)):
        array = np.array(data, copy=True if copy_data else None)
    else:
        if isinstance(data, (list, tuple)):
            found = errors.find_tensor(data, Tensor)
            if found is not None:
                if found._edge is not None:
                    raise errors.tensor_of_tensors(found)
                data = _unwrapped(data)
        try:
            array = np.array(data)
        except ValueError as error:
            raise errors.ragged(data) from error
        if target is None:
            target = _python_dtype(array, data)
        elif array.dtype.kind in "fciu":
            _check_fits(array, target)
    if array.dtype.kind not in "fciub":
        raise errors.not_numbers(data, array.dtype)
    if array.dtype == np.longdouble or array.dtype == np.clongdouble:
        array = array.astype(np.float64 if array.dtype.kind == "f" else np.complex128)
    if target is not None:
        array = array.astype(target, copy=False)
    result: np.ndarray[Any, Any] = native(array)
    return result


def _check_fits(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    """Raise if one of the numbers a user wrote cannot be written in the dtype asked for."""
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise errors.complex_number(array, dtype)
    if dtype.kind in "iu" and array.size:
        high = np.iinfo(dtype).max
        low = np.iinfo(dtype).min or -high  # -1 is the largest unsigned number, as in C
        unfit = ~((array >= low) & (array <= high))
        if unfit.any():
            raise errors.number_overflows(array[unfit][0].item(), dtype)


def _unwrapped(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data._array()
    return [_unwrapped(item) for item in data] if isinstance(data, (list, tuple)) else data


def _python_dtype(array: np.ndarray[Any, Any], data: Any) -> np.dtype[Any] | None:
    """The dtype of data that came as Python numbers: the default float, the complex of that width, int64 or bool."""
    kind = array.dtype.kind
    if kind == "f" and not _has_numpy(data):
        return default_dtype()
    if kind == "c" and not _has_numpy(data):
        return np.dtype(np.complex64 if default_dtype().itemsize <= 4 else np.complex128)
    if kind in "iu" and not _has_numpy(data):
        return np.dtype(np.int64)
    return None


def _has_numpy(data: Any) -> bool:
    while isinstance(data, (list, tuple)):
        if not data:
            return False
        data = data[0]
    return isinstance(data, (ndarray, np.generic))
