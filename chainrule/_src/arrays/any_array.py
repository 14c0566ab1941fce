"""Predicates for plain arrays and the values that represent them in a trace, and arrays with a given memory layout.

``ops``, ``tape`` and ``compiling`` call these functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, NumpyDType

ndarray = np.ndarray


def is_recorded(x: object) -> bool:
    """Return whether x represents a plain array in a trace. Rules then take the branch for arrays."""
    return getattr(type(x), "stands_for_array", False)


def is_array(x: object) -> bool:
    """Return whether x is a plain array, or represents one in a trace."""
    return type(x) is ndarray or getattr(type(x), "stands_for_array", False)


def scalar_to_array(x: Any) -> Any:
    """Convert a NumPy scalar to a 0-d array; return anything else unchanged."""
    if isinstance(x, np.generic):
        return np.asarray(x)
    return x.as_array() if is_recorded(x) else x


def lies_within(x: AnyArray, low: Any, high: Any) -> bool:
    """Return whether all elements of an array are in the closed interval [low, high]."""
    return bool(call_as_one_operation(_lies_within, x, low, high))


def _lies_within(x: Any, low: Any, high: Any) -> Any:
    return np.asarray(not x.size or (x.min() >= low and x.max() <= high))


def call_as_one_operation(function: AnyFunction, *args: Any, **kwargs: Any) -> Any:
    """Call a function that branches on the values of arrays; a trace records it as a single call."""
    for x in args:
        if is_recorded(x):
            return x.recorder.call(function, "", args, kwargs)
    return function(*args, **kwargs)


def same_strides(x: NumpyArray, y: NumpyArray) -> bool:
    """Return whether two arrays of one shape have the same strides; for axes of length 1 only the signs are compared."""
    if not x.size:
        return True
    pairs = zip(
        x.strides, y.strides, x.shape, strict=True
    )  # a loop over one complex number rounds differently if the stride is negative
    return all([a == b or (n == 1 and (a < 0) == (b < 0)) for a, b, n in pairs])


def with_strides(array: NumpyArray, strides: tuple[int, ...]) -> NumpyArray:
    """Return a copy with these strides."""
    copy = empty_with_strides(array.shape, array.dtype, strides)
    copy[...] = array
    return copy


def overlaps_itself(x: NumpyArray) -> bool:
    """Return whether elements of an array may share memory."""
    extent = 0
    for step, length in sorted(zip(map(abs, x.strides), x.shape, strict=True)):
        if length > 1:
            if step < extent + x.itemsize:
                return bool(x.size)
            extent += step * (length - 1)
    return False


def ensure_strides(array: NumpyArray, strides: tuple[int, ...]) -> NumpyArray:
    """Return the array, or a copy if it is not aligned or does not have these strides."""
    fits = all([n < 2 or a == b for n, a, b in zip(array.shape, array.strides, strides, strict=True)])
    return array if fits and array.flags.aligned else with_strides(array, strides)


def empty_with_strides(shape: Sequence[int], dtype: NumpyDType, strides: Sequence[int]) -> NumpyArray:
    """Return an uninitialized array with these strides."""
    spans = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)] if math.prod(shape) else []
    low, high = sum([span for span in spans if span < 0]), sum([span for span in spans if span > 0])
    memory = np.empty(high - low + dtype.itemsize, np.uint8)
    return np.ndarray(tuple(shape), dtype, memory, -low, tuple(strides))


def view_at_offset(x: NumpyArray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> NumpyArray:
    """Return the view that starts at a byte offset from the first element of a contiguous array."""
    return np.ndarray(shape, x.dtype, x if x.flags.c_contiguous else x.T, offset, strides)


def compact_strides(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> list[int] | None:
    """Return the smallest strides for which reshaping is a view in exactly the same cases as for the given strides.

    The axes keep their order and direction, and gaps between axes stay gaps. Return None if elements overlap.
    """
    close = [itemsize] * len(shape)
    close_stride = given_stride = itemsize  # the stride of the next axis, if there is no gap
    for k in sorted([k for k, n in enumerate(shape) if n > 1], key=lambda k: abs(strides[k])):
        step = abs(strides[k])
        if step < given_stride:
            return None
        own = close_stride if step == given_stride else close_stride + itemsize
        close[k] = own if strides[k] > 0 else -own
        close_stride, given_stride = own * shape[k], step * shape[k]
    return close


def copy_alike(array: NumpyArray) -> NumpyArray:
    """Return a copy with the memory layout of the array, so that the same operations return views of it.

    The copy is read-only if the array is, or if the array's elements share memory.
    """
    if 0 in array.strides:
        distinct = array[tuple([slice(None) if step else slice(1) for step in array.strides])]
        if distinct.size < array.size:  # there are repeated elements
            return np.broadcast_to(copy_alike(distinct), array.shape)
    strides = None if array.flags.forc else compact_strides(array.shape, array.strides, array.itemsize)
    copy = array.copy(order="K") if strides is None else with_strides(array, tuple(strides))
    if not array.flags.writeable or (strides is None and not array.flags.forc):
        copy.flags.writeable = False
    return copy
