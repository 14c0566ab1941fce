"""Faster ``np.linalg.solve``, ``inv`` and ``slogdet``: call NumPy's gufuncs without the Python wrapper.

``linalg`` calls these functions.

The wrapper takes five times as long as the gufunc for small matrices. The gufuncs, dtypes and error states are NumPy's, so
results and errors are the same. Operands other than float64 matrices go to NumPy's function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
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
    return _call_raising(_GUFUNCS.solve, x, y) if _are_square(x, y) else linalg.solve(x, y)


def inv(x: AnyArray) -> AnyArray:
    return _call_raising(_GUFUNCS.inv, x) if _are_square(x) else linalg.inv(x)


def slogdet(x: AnyArray) -> Any:
    return _GUFUNCS.slogdet(x) if _are_square(x) else linalg.slogdet(x)
