"""C loops of chainrule that reproduce computations of NumPy and BLAS, checked on many numbers before their first use.

``lowering`` and ``products`` call ``scalar_power_loop`` and ``multiple_of_array_loop``, which raise ``Unlowered`` if a loop does not give
NumPy's bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray, NumpyDType
from chainrule._src.compiling.layout import data_address
from chainrule._src.compiling.loops import Unlowered, own_loop
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.native import execute
from chainrule._src.native.blas import blas_function
from chainrule._src.native.code import FIRST_INPUT, kernel_step, program


def multiple_of_array_loop(dtype: NumpyDType) -> tuple[int, int]:
    """Return the loop of ``np.dot`` with an array of one number: BLAS adds a multiple of the other array to zeros."""
    function = blas_function(f"cblas_{'d' if dtype.itemsize == 8 else 's'}axpy")
    if function is None:
        raise Unlowered
    found = own_loop(f"multiple{function.bits}_{dtype.str[1:]}")[0], function.address
    return _verified_loop(found, dtype, lambda x, y: np.dot(x[:, None], y[None, None])[:, 0])


def scalar_power_loop(dtype: NumpyDType) -> tuple[int, int]:
    """Return the loop of ``**`` of NumPy scalars."""
    return _verified_loop(
        own_loop(f"power_{dtype.str[1:]}"), dtype, lambda x, y: np.array([operator.pow(each, y) for each in x])
    )


_AGREE: dict[tuple[int, int], bool] = {}


def _verified_loop(
    found: tuple[int, int], dtype: NumpyDType, expected: Callable[[NumpyArray, Any], NumpyArray]
) -> tuple[int, int]:
    """Return a loop (function address, data) if it gives the expected bits for an array and each of many numbers.

    Raises:
        Unlowered: the bits differ.
    """
    if found not in _AGREE:
        special = [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            1e-40,
            -3e-310,
            1.0,
            2.0,
            3.0,
            -1.0,
            0.5,
            -2.5,
            1 / 3,
            1e30,
            -7e300,
        ]
        with np.errstate(all="ignore"):
            x = np.concatenate([special, np.random.default_rng(0).standard_normal(9)]).astype(dtype)
            alike = [same_bits(_result_of_loop(found, part, y), expected(part, y)) for y in x for part in (x, x[::2])]
        _AGREE[found] = all(alike)
    if not _AGREE[found]:
        raise Unlowered
    return found


def _result_of_loop(found: tuple[int, int], x: NumpyArray, y: object) -> NumpyArray:
    """Return the result of a loop for an array and a number."""
    arrays = [x, np.asarray(y), np.empty(x.shape, x.dtype)]
    args = [(FIRST_INPUT + i, 0) for i in range(3)]
    code = program([kernel_step(*found, x.size, args, (*x.strides, 0, x.itemsize))])
    execute(code, 0, code.size, np.array([0, 0, *map(data_address, arrays)], np.intp))
    return arrays[2]
