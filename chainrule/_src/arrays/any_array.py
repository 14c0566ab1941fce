"""Arrays, and what stands for them while a program is recorded; arrays that lie in memory as others do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, NumpyDType

ndarray = np.ndarray


def is_recorded(x: object) -> bool:
    """Return whether x stands for a plain array that is being recorded: rules take the way with it that they take with the array."""
    return getattr(type(x), "stands_for_array", False)


def is_array(x: object) -> bool:
    """Return whether x is a plain array, or stands for one."""
    return type(x) is ndarray or getattr(type(x), "stands_for_array", False)


def unscalar(x: Any) -> Any:
    """Return a 0-d array for one of NumPy's scalars; anything else as it is."""
    if isinstance(x, np.generic):
        return np.asarray(x)
    return x.as_array() if is_recorded(x) else x


def lies_within(x: AnyArray, low: Any, high: Any) -> bool:
    """Return whether all elements of an array are between two numbers, or are one of them."""
    return bool(in_one(_lies_within, x, low, high))


def _lies_within(x: Any, low: Any, high: Any) -> Any:
    return np.asarray(not x.size or (x.min() >= low and x.max() <= high))


def in_one(function: AnyFunction, *args: Any, **kwargs: Any) -> Any:
    """What a function of arrays gives that goes by the numbers which way to take: a recording has it as one call."""
    for x in args:
        if is_recorded(x):
            return x.recorder.call(function, "", args, kwargs)
    return function(*args, **kwargs)


def same_strides(x: NumpyArray, y: NumpyArray) -> bool:
    """Return whether two arrays of one shape have the same strides; those of axes of length 1 are compared by sign only."""
    if not x.size:
        return True
    pairs = zip(x.strides, y.strides, x.shape, strict=True)  # of one complex number a loop rounds otherwise backwards
    return all([a == b or (n == 1 and (a < 0) == (b < 0)) for a, b, n in pairs])


def with_strides(array: NumpyArray, strides: tuple[int, ...]) -> NumpyArray:
    """Return a copy with these strides."""
    copy = room(array.shape, array.dtype, strides)
    copy[...] = array
    return copy


def overlaps_itself(x: NumpyArray) -> bool:
    """Return whether elements of an array may be one place in memory."""
    extent = 0
    for step, length in sorted(zip(map(abs, x.strides), x.shape, strict=True)):
        if length > 1:
            if step < extent + x.itemsize:
                return bool(x.size)
            extent += step * (length - 1)
    return False


def laid_by(array: NumpyArray, strides: tuple[int, ...]) -> NumpyArray:
    """Return the array, or a copy where it is not aligned or does not have these strides."""
    fits = all([n < 2 or a == b for n, a, b in zip(array.shape, array.strides, strides, strict=True)])
    return array if fits and array.flags.aligned else with_strides(array, strides)


def room(shape: Sequence[int], dtype: NumpyDType, strides: Sequence[int]) -> NumpyArray:
    """Return an array of whatever lies in memory, with these strides."""
    spans = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)] if math.prod(shape) else []
    low, high = sum([span for span in spans if span < 0]), sum([span for span in spans if span > 0])
    memory = np.empty(high - low + dtype.itemsize, np.uint8)
    return np.ndarray(tuple(shape), dtype, memory, -low, tuple(strides))


def lying_at(x: NumpyArray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> NumpyArray:
    """Return the view that begins so many bytes after the first element of an array without gaps."""
    return np.ndarray(shape, x.dtype, x if x.flags.c_contiguous else x.T, offset, strides)


def close_strides(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> list[int] | None:
    """Return the smallest strides with which an array can be reshaped, without a copy, exactly as with the given ones.

    The axes are in the same order and directions, and have gaps between them where they had gaps. None where elements overlap.
    """
    close = [itemsize] * len(shape)
    before = given = itemsize  # what the next axis' stride is if there is no gap
    for k in sorted([k for k, n in enumerate(shape) if n > 1], key=lambda k: abs(strides[k])):
        step = abs(strides[k])
        if step < given:
            return None
        own = before if step == given else before + itemsize
        close[k] = own if strides[k] > 0 else -own
        before, given = own * shape[k], step * shape[k]
    return close


def copy_alike(array: NumpyArray) -> NumpyArray:
    """Return a copy that lies in memory as the array does: what is a view of the one is a view of the other.

    It cannot be written to if the array can't, or has elements that share their place in memory.
    """
    if 0 in array.strides:
        apart = array[tuple([slice(None) if step else slice(1) for step in array.strides])]
        if apart.size < array.size:  # elements that are repeated
            return np.broadcast_to(copy_alike(apart), array.shape)
    strides = None if array.flags.forc else close_strides(array.shape, array.strides, array.itemsize)
    copy = array.copy(order="K") if strides is None else with_strides(array, tuple(strides))
    if not array.flags.writeable or (strides is None and not array.flags.forc):
        copy.flags.writeable = False
    return copy
