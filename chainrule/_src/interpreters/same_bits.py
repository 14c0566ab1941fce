"""Compare results bit for bit: two arrays, two numbers, or ``np.dot`` with ``np.matmul``. A plan must repeat bits exactly.

``recorder``, ``trace_types`` and the modules of ``compiling`` call these functions.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Hashable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, NumpyDType

ndarray = np.ndarray


def same_bits(x: NumpyArray, y: NumpyArray) -> bool:
    """Return whether two arrays have equal shape, dtype and values, including signs of zeros; all nans are equal."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if x.nbytes <= _SMALL and not x.dtype.hasobject and x.tobytes() == y.tobytes():
        return True
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    if x.dtype.kind == "c":
        return same_bits(x.real, y.real) and same_bits(x.imag, y.imag)
    return bool(((x == y) & (np.signbit(x) == np.signbit(y)) | ((x != x) & (y != y))).all())


def number_key(x: Any) -> Hashable:
    """Return a key of a number that is equal only for numbers of the same type with the same bits: ``-0.0`` differs from ``0.0``, and
    ``-nan`` from ``nan``. The key of another object contains the object.
    """
    kind = type(x)
    if isinstance(x, np.generic):
        if x.dtype.char in "gG":  # its bytes include padding
            return kind, repr(x), bool(np.signbit(x.real)), bool(np.signbit(x.imag))
        return kind, x.dtype, repr(x) if x.dtype.kind in "VO" else x.tobytes()
    if isinstance(x, complex):
        return kind, struct.pack("dd", x.real, x.imag)
    return (kind, struct.pack("d", x)) if isinstance(x, float) else (kind, x)


def multiplies_alike(function: AnyFunction, x: AnyArray, y: AnyArray) -> bool:
    """Return whether ``np.dot`` (or ``inner``, ``vdot``) calls the same BLAS function for two arrays as ``np.matmul``."""
    if not (type(x) is type(y) is ndarray and x.dtype == y.dtype and x.dtype.char in "fdFD" and x.size and y.size):
        return False
    if x.ndim == y.ndim == 1:  # np.dot copies strided operands, and multiplies single numbers without adding to zero
        return (
            (x.size > 1 or function is np.vdot)
            and bool(x.shape == y.shape and x.strides[0] == y.strides[0] == x.itemsize)
            and (function is np.dot or x.dtype.kind == "f")
        )
    if function is not np.dot or (x.ndim, y.ndim) not in ((2, 2), (2, 1), (1, 2)) or x.shape[-1] != y.shape[0]:
        return False
    if 1 in (x.size, y.size) or (x.dtype.kind == "c" and 1 in x.shape + y.shape):
        return False  # np.dot adds a multiple of an array to zeros, or calls another routine for an outer product
    if not (_dense(x) and _dense(y)) or (x.ndim == 1 and y.size > _TRIED_PRODUCT):
        return False
    if (1 in x.shape + y.shape or x.ndim == 1 or x.size + y.size < _SMALL_PRODUCT) and not _rounds_alike(
        x.dtype, x.shape, x.strides, y.shape, y.strides
    ):
        return False
    return x.size + y.size < _SMALL_PRODUCT or same_bits(x.dot(y), x @ y)


#: maximum bytes of arrays that are compared as bytes first, which takes less time than the other comparisons
_SMALL = 1 << 14
#: maximum number of elements of a matrix for which products of a vector and the matrix are compared
_TRIED_PRODUCT = 1 << 16
#: number of elements of two arrays below which products are compared once per layout, rather than each time
_SMALL_PRODUCT = 1 << 12


@functools.lru_cache(maxsize=4096)
def _rounds_alike(dtype: NumpyDType, *layouts: tuple[int, ...]) -> bool:
    """Return whether ``np.dot`` and ``np.matmul`` round alike for two layouts, by a test with random numbers and zeros."""
    numbers = np.random.default_rng(0)
    for trial in range(12):
        operands = []
        for shape, strides in (layouts[:2], layouts[2:]):
            memory = numbers.standard_normal((*shape, 1 + (dtype.kind == "c")))
            memory = np.trunc(memory) if trial < 4 else memory
            values = (memory[..., 0] + 1j * memory[..., -1] if dtype.kind == "c" else memory[..., 0]).astype(dtype)
            rows_first = len(shape) == 1 or strides[0] >= strides[1]
            operands.append(np.asarray(values, order="C" if rows_first else "F"))
        x, y = operands
        if not same_bits(x.dot(y), x @ y):
            return False
    return True


def _dense(x: NumpyArray) -> bool:
    return bool(x.flags.forc)
