"""Faster ``np.linalg.solve``, ``inv`` and ``slogdet``: call NumPy's gufuncs without the Python wrapper.

``linalg`` calls these functions.

The wrapper takes five times as long as the gufunc for small matrices. The gufuncs, dtypes and error states are NumPy's, so
results and errors are the same. Operands other than float64 matrices go to NumPy's function. Single matrices of a middle size
share their LU factors (``recent_factors``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.table.recent_factors import factors_of
from chainrule._src.tape.fp_warnings import VARIABLE, new_error_state

ndarray = np.ndarray
linalg: Any = np.linalg
_GUFUNCS: Any = getattr(linalg, "_umath_linalg", None)
_DOUBLE = np.dtype(np.float64)


def _singular(error: str, flag: int) -> None:
    raise linalg.LinAlgError("Singular matrix")


_SINGULAR = new_error_state(invalid="call", over="ignore", divide="ignore", under="ignore", call=_singular)


def _are_square(x: AnyArray, *others: object) -> bool:
    """Return whether x is a stack of square float64 matrices and all others are stacks of float64 matrices."""
    for other in (x, *others):
        if type(other) is not ndarray or other.dtype is not _DOUBLE or other.ndim < 2:
            return False
    return x.shape[-1] == x.shape[-2] and VARIABLE is not None and _GUFUNCS is not None


def _call_raising(gufunc: np.ufunc, *matrices: object) -> Any:
    previous = VARIABLE.get()
    try:
        VARIABLE.set(_SINGULAR)
        return gufunc(*matrices)
    finally:
        VARIABLE.set(previous)


def solve(x: AnyArray, y: AnyArray) -> AnyArray:
    if not _are_square(x, y):
        return linalg.solve(x, y)
    factors = factors_of(x) if y.ndim == 2 and len(y) == len(x) else None
    return _call_raising(_GUFUNCS.solve, x, y) if factors is None else factors.solution(y)


def inv(x: AnyArray) -> AnyArray:
    if not _are_square(x):
        return linalg.inv(x)
    factors = factors_of(x)
    return _call_raising(_GUFUNCS.inv, x) if factors is None else factors.inverse()


def slogdet(x: AnyArray) -> Any:
    if not _are_square(x):
        return linalg.slogdet(x)
    factors = factors_of(x)
    return _GUFUNCS.slogdet(x) if factors is None else factors.sign_and_log()
