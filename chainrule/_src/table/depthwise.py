"""Convolutions of single channels: each output channel reads one input channel.

``table.convolution`` calls these functions. Other convolutions copy the windows to the columns of a matrix product. Here each column
would be used only once, so the result is a sum over the taps (elements) of the kernel, in order: each tap multiplies a shifted copy of
the input. ``native/depthwise.c`` computes the same bits. The NumPy code is used without the extension, and if the extension meets a
floating-point exception, so that NumPy warns.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import call_as_one_operation, is_array
from chainrule._src.arrays.types import AnyArray, Ints, NumpyArray
from chainrule._src.native import LOOPS

MAX_MULTIPLIER = 4  #: maximum number of output channels of one input channel; for more, matrix products are faster
ndarray = np.ndarray


def is_depthwise(x: Any, y: Any, channels: int, groups: int, out: int) -> bool:
    """Return whether each group has one channel, and both operands are arrays of the same real dtype."""
    return (
        channels == groups
        and 0 < out // groups <= MAX_MULTIPLIER
        and is_array(x)
        and is_array(y)
        and x.dtype == y.dtype
        and x.dtype.char in "fd"
    )


def depthwise(x: AnyArray, weight: AnyArray, stride: Ints, padding: Ints, dilation: Ints, counts: Ints) -> AnyArray:
    """Return the convolution of x (n, channels, …) with weights (out, 1, …), where channels divides out."""
    return call_as_one_operation(_value, x, weight, stride, padding, dilation, counts)


def depthwise_input(
    g: AnyArray, weight: AnyArray, stride: Ints, padding: Ints, dilation: Ints, size: Ints, channels: int
) -> AnyArray:
    """Return the cotangent (n, channels, *size) of the input, given that of the output."""
    return call_as_one_operation(_input, g, weight, stride, padding, dilation, size, channels)


def depthwise_weight(g: AnyArray, x: AnyArray, stride: Ints, padding: Ints, dilation: Ints, kernel: Ints) -> AnyArray:
    """Return the cotangent (out, 1, *kernel) of the weight, given that of the output."""
    return call_as_one_operation(_weight, g, x, stride, padding, dilation, kernel)


def _value(x: NumpyArray, weight: NumpyArray, stride: Ints, padding: Ints, dilation: Ints, counts: Ints) -> NumpyArray:
    if _in_c():
        found = LOOPS.depthwise(x, weight, stride, padding, dilation)
        if found is not None:
            return found
    return value_in_numpy(x, weight, stride, padding, dilation, counts)


def _input(
    g: NumpyArray, weight: NumpyArray, stride: Ints, padding: Ints, dilation: Ints, size: Ints, channels: int
) -> NumpyArray:
    if _in_c():
        found = LOOPS.depthwise_input(g, weight, stride, padding, dilation, size, channels)
        if found is not None:
            return found
    return input_in_numpy(g, weight, stride, padding, dilation, size, channels)


def _weight(g: NumpyArray, x: NumpyArray, stride: Ints, padding: Ints, dilation: Ints, kernel: Ints) -> NumpyArray:
    if _in_c():
        parts = LOOPS.depthwise_weight(g, x, stride, padding, dilation, kernel)
        if parts is not None:
            return np.add.reduce(parts, axis=-1) + 0
    return weight_in_numpy(g, x, stride, padding, dilation, kernel)


# -- the reference ---------------------------------------------------------------------------------------------------


def _padded(x: NumpyArray, padding: Ints) -> NumpyArray:
    if not any(padding):
        return x
    out = np.zeros((*x.shape[:2], *[n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True)]), x.dtype)
    inside: Any = (..., *[slice(p, p + n) for n, p in zip(x.shape[2:], padding, strict=True)])
    out[inside] = x
    return out


def _taps(kernel: Ints, stride: Ints, dilation: Ints, counts: Ints) -> Iterator[tuple[Ints, tuple[Any, ...]]]:
    """Yield each tap's index in the kernel, and the index of the elements of the padded input that the tap multiplies."""
    for tap in np.ndindex(*kernel):
        start = [k * d for k, d in zip(tap, dilation, strict=True)]
        yield tap, (..., *[slice(a, a + s * (c - 1) + 1, s) for a, s, c in zip(start, stride, counts, strict=True)])


def value_in_numpy(
    x: NumpyArray, weight: NumpyArray, stride: Ints, padding: Ints, dilation: Ints, counts: Ints
) -> NumpyArray:
    n, channels = x.shape[:2]
    padded = _padded(x, padding)[:, :, None]
    out = np.zeros((n, channels, weight.shape[0] // channels, *counts), x.dtype)
    for tap, where in _taps(weight.shape[2:], stride, dilation, counts) if out.size else ():
        out += padded[where] * weight[(slice(None), 0, *tap)].reshape(channels, -1, *(1,) * len(counts))
    return out.reshape(n, weight.shape[0], *counts)


def input_in_numpy(
    g: NumpyArray, weight: NumpyArray, stride: Ints, padding: Ints, dilation: Ints, size: Ints, channels: int
) -> NumpyArray:
    n, out, *counts = g.shape
    padded = np.zeros((n, channels, *[m + 2 * p for m, p in zip(size, padding, strict=True)]), g.dtype)
    each = g.reshape(n, channels, out // channels, *counts)
    for tap, where in _taps(weight.shape[2:], stride, dilation, tuple(counts)) if g.size else ():
        factors = weight[(slice(None), 0, *tap)].reshape(channels, -1, *(1,) * len(counts))
        for j in range(out // channels):
            padded[where] += each[:, :, j] * factors[:, j]
    inside: Any = (..., *[slice(p, p + m) for m, p in zip(size, padding, strict=True)])
    return np.ascontiguousarray(padded[inside])


def weight_in_numpy(
    g: NumpyArray, x: NumpyArray, stride: Ints, padding: Ints, dilation: Ints, kernel: Ints
) -> NumpyArray:
    """Sum the products of each plane, then these sums over the examples. Each sum is along contiguous rows, as in the extension."""
    n, out, *counts = g.shape
    channels = x.shape[1]
    each = g.reshape(n, channels, out // channels, *counts)
    padded = _padded(x, padding)[:, :, None]
    parts = np.zeros((out, 1, *kernel, n), g.dtype)
    for tap, where in _taps(kernel, stride, dilation, tuple(counts)) if g.size else ():
        products = np.ascontiguousarray(each * padded[where]).reshape(n, out, -1)
        at: Any = (slice(None), 0, *tap)
        parts[at] = (np.add.reduce(products, axis=-1) + 0).T
    return np.add.reduce(parts, axis=-1) + 0


# -- self-test -------------------------------------------------------------------------------------------------------


@functools.cache
def _in_c() -> bool:
    """Return whether the extension computes the bits of the reference, on samples of both dtypes."""
    if LOOPS is None:
        return False
    numbers = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        return all([_same(numbers, *case) for case in itertools.product(_CASES, (np.float32, np.float64))])


#: (examples, channels, output channels), size, kernel, stride, padding, dilation
_CASES: tuple[tuple[Ints, Ints, Ints, Ints, Ints, Ints], ...] = (
    ((2, 3, 3), (9, 11), (3, 2), (1, 1), (1, 0), (1, 2)),
    ((3, 2, 4), (12, 13), (3, 3), (2, 3), (1, 1), (1, 1)),
    ((9, 1, 2), (260,), (5,), (1,), (2,), (1,)),
    ((2, 2, 2), (70, 131), (2, 2), (1, 1), (0, 0), (1, 1)),
)


def _same(numbers: np.random.Generator, case: Any, dtype: Any) -> bool:
    (n, channels, out), size, kernel, stride, padding, dilation = case
    options = stride, padding, dilation
    x, weight = (numbers.standard_normal(shape).astype(dtype) for shape in ((n, channels, *size), (out, 1, *kernel)))
    counts = tuple(
        [
            (m + 2 * p - d * (k - 1) - 1) // s + 1
            for m, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
        ]
    )
    g = numbers.standard_normal((n, out, *counts)).astype(dtype)
    found = (
        LOOPS.depthwise(x, weight, *options),
        LOOPS.depthwise_input(g, weight, *options, size, channels),
        LOOPS.depthwise_weight(g, x, *options, kernel),
    )
    if any([part is None for part in found]):
        return False
    found = (*found[:2], np.add.reduce(found[2], axis=-1) + 0)
    expected = (
        value_in_numpy(x, weight, *options, counts),
        input_in_numpy(g, weight, *options, size, channels),
        weight_in_numpy(g, x, *options, kernel),
    )
    return all([a.tobytes() == b.tobytes() for a, b in zip(found, expected, strict=True)])
