"""``np.linalg.solve``, ``inv`` and ``slogdet`` without the Python around their loops, which takes five times as long for small matrices.

What is called, in which dtype, and how errors are treated is NumPy's, so bits and errors are the same. What is not an ordinary matrix
of floats is left to NumPy's function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.tape.warned import VARIABLE, treatment

ndarray = np.ndarray
linalg: Any = np.linalg
_GUFUNCS: Any = getattr(linalg, "_umath_linalg", None)
_DOUBLE = np.dtype(np.float64)


def _singular(error: str, flag: int) -> None:
    raise linalg.LinAlgError("Singular matrix")


_SINGULAR = treatment(invalid="call", over="ignore", divide="ignore", under="ignore", call=_singular)


def _are_square(x: AnyArray, *others: object) -> bool:
    """Whether x is a stack of square matrices, and others stacks of matrices, of float64, which NumPy computes in."""
    for other in (x, *others):
        if type(other) is not ndarray or other.dtype is not _DOUBLE or other.ndim < 2:
            return False
    return x.shape[-1] == x.shape[-2] and VARIABLE is not None and _GUFUNCS is not None


def _raising(gufunc: np.ufunc, *matrices: object) -> Any:
    given = VARIABLE.get()
    try:
        VARIABLE.set(_SINGULAR)
        return gufunc(*matrices)
    finally:
        VARIABLE.set(given)


def solve(x: AnyArray, y: AnyArray) -> AnyArray:
    return _raising(_GUFUNCS.solve, x, y) if _are_square(x, y) else linalg.solve(x, y)


def inv(x: AnyArray) -> AnyArray:
    return _raising(_GUFUNCS.inv, x) if _are_square(x) else linalg.inv(x)


def slogdet(x: AnyArray) -> Any:
    return _GUFUNCS.slogdet(x) if _are_square(x) else linalg.slogdet(x)
