"""LU factors by NumPy's LAPACK. NumPy has no public function for them.

``table.lu`` calls ``lu`` with plain arrays. ``native/linear_algebra.c`` calls LAPACK for the matrices of a stack; without the extension,
ctypes does. If NumPy's LAPACK is not found, ``lu`` returns None.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.native import LOOPS
from chainrule._src.native.blas import blas_function, lapack_function

ndarray = np.ndarray
_KINDS = {"f": "s", "d": "d", "F": "c", "D": "z"}  # the characters of dtypes -> of LAPACK


@functools.cache
def _in_c() -> bool:
    """Pass the addresses of getrf to the extension; return whether there are any."""
    if LOOPS is None:
        return False
    getrf = [blas_function(f"{kind}getrf_") for kind in _KINDS.values()]
    bits = {found.bits for found in getrf if found}
    if len(bits) != 1:
        return False
    LOOPS.use_lapack_functions(tuple([found.address if found else 0 for found in getrf]), *bits)
    return True


def lu(x: NumpyArray) -> tuple[NumpyArray, NumpyArray, NumpyArray] | None:
    """Return the factors in one matrix, the pivots counted from 1, and the row order, for each matrix of a stack."""
    if _in_c():
        found = LOOPS.lu(x)
        if found is not None:
            return found
    return lu_by_ctypes(x)


def lu_by_ctypes(x: NumpyArray) -> tuple[NumpyArray, NumpyArray, NumpyArray] | None:
    """Return the result of ``lu`` without the extension; None if NumPy's LAPACK is not found."""
    m, n = x.shape[-2:]
    kind = _KINDS.get(x.dtype.char)
    getrf = lapack_function(f"{kind}getrf_", 6) if kind and x.size else None
    if getrf is None:
        return None
    columns = np.array(x.reshape(math.prod(x.shape[:-2]), m, n).swapaxes(1, 2), x.dtype.newbyteorder("="), order="C")
    integer = np.dtype(f"i{getrf.bits // 8}")
    exchanges = np.empty((len(columns), min(m, n)), integer)
    rows, width, info = np.array([m, n, 0], integer)[:, None]
    for matrix, pivot_row in zip(columns, exchanges, strict=True):
        getrf(rows, width, matrix, rows, pivot_row, info)  # the caller checks for zeros among the pivots
    own = np.arange(1, min(m, n) + 1)
    pivots = np.where((exchanges < own) | (exchanges > m), own, exchanges).astype(np.int32)
    pivots = pivots.reshape(*x.shape[:-2], min(m, n))
    return np.ascontiguousarray(columns.swapaxes(1, 2)).reshape(x.shape), pivots, order_of(pivots, m)


def order_of(pivots: Any, rows: int) -> Any:
    """Return the row order after a sequence of row exchanges (counted from 1)."""
    found = order_in_c(pivots, rows)
    return order_in_python(pivots.astype(np.int64) - 1, rows) if found is None else found


def order_in_c(pivots: Any, rows: int) -> NumpyArray | None:
    """Return the row order if the pivots are an int32 array of rows, and the extension is available; else None."""
    return LOOPS.row_order(pivots, rows) if LOOPS is not None and type(pivots) is ndarray else None


def order_in_python(pivots: Any, rows: int) -> Any:
    """Return the row order after a sequence of row exchanges (counted from 0)."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.tile(np.arange(rows), (flat.shape[0], 1))
    if len(flat) < flat.shape[1]:  # few long sequences: one after the other
        for i, exchanges in enumerate(np.asarray(flat).tolist()):  # for foreign arrays an error, not a copy
            row = order[i].tolist()
            for k, other in enumerate(exchanges):
                row[k], row[other] = row[other], row[k]
            order[i] = row
    else:
        for k in range(flat.shape[1]):
            swap_rows(order, k, flat[:, k])
    return order.reshape(*pivots.shape[:-1], rows)


def swap_rows(x: Any, k: int, other: Any) -> None:
    """Exchange row k with row ``other`` of each matrix, in place."""
    every = np.arange(len(x))
    row = x[every, other]
    x[every, other] = x[:, k]
    x[:, k] = row
