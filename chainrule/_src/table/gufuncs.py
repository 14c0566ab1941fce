"""Faster ``np.linalg.solve``, ``inv``, ``cholesky``, ``det`` and ``slogdet``. ``linalg`` calls these functions.

NumPy's Python wrapper takes five times as long as the gufunc for small matrices, so the gufuncs are called directly, with NumPy's
dtypes and error states. ``native/small_matrices.c`` computes real matrices of at most four rows, if its bits are those of the gufunc.
Single float64 matrices of 64 to 1,024 rows share their LU factors (``recent_factors``).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.native import LOOPS
from chainrule._src.table.recent_factors import factors_of
from chainrule._src.tape.fp_warnings import VARIABLE, new_error_state

ndarray = np.ndarray
linalg: Any = np.linalg
_GUFUNCS: Any = getattr(linalg, "_umath_linalg", None)
#: dtype of the operands -> the character of the dtype that NumPy computes in, and whether the results are converted back
_COMPUTED = {
    np.dtype(np.float64): ("d", False),
    np.dtype(np.complex128): ("D", False),
    np.dtype(np.float32): ("d", True),
    np.dtype(np.complex64): ("D", True),
}


def _raiser(message: str) -> Any:
    """Return an error state in which the FP exception flag "invalid" raises ``LinAlgError``."""

    def call(error: str, flag: int) -> None:
        raise linalg.LinAlgError(message)

    return new_error_state(invalid="call", over="ignore", divide="ignore", under="ignore", call=call)


_SINGULAR, _INDEFINITE = _raiser("Singular matrix"), _raiser("Matrix is not positive definite")


def _computed(x: AnyArray, *others: AnyArray) -> tuple[str, bool] | None:
    """Return the entry of ``_COMPUTED`` for a stack of square matrices, and for stacks of matrices of the same dtype; else None."""
    if VARIABLE is None or _GUFUNCS is None or type(x) is not ndarray or x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        return None
    for other in others:
        if type(other) is not ndarray or other.ndim < 2 or other.dtype != x.dtype:
            return None
    return _COMPUTED.get(x.dtype)


def _call(error_state: object, gufunc: np.ufunc, types: str, is_converted: bool, *matrices: AnyArray) -> Any:
    """Call a gufunc whose result is one array. ``types``: the signature in double precision."""
    if error_state is None:
        out = gufunc(*matrices, signature=types)
    else:
        previous = VARIABLE.get()
        try:
            VARIABLE.set(error_state)
            out = gufunc(*matrices, signature=types)
        finally:
            VARIABLE.set(previous)
    return out.astype(matrices[0].dtype, copy=False) if is_converted else out


MAX_ROWS = 4  #: the maximum number of rows of matrices that the extension computes
_NAMES = ("inv", "solve", "det", "slogdet", "cholesky_lo")
INV, SOLVE, DET, SLOGDET, CHOLESKY = range(5)


@functools.cache
def small_loops() -> dict[str, int]:
    """Return the addresses of inner loops for float64 with the bits of the gufuncs, by name; none without the extension."""
    if LOOPS is None or _GUFUNCS is None:
        return {}
    found = []
    for name in _NAMES:
        gufunc: Any = getattr(_GUFUNCS, name, None)
        types = next((types for types in getattr(gufunc, "types", ()) if set(types) == {"d", "-", ">"}), None)
        loop = None if types is None else LOOPS.loop(gufunc, gufunc.types.index(types))
        if loop is None:
            return {}
        found.append(loop)
    loops: dict[str, int] = LOOPS.use_small_matrices(*found)
    return loops


def _small(function: int, *matrices: AnyArray) -> Any:
    """Return the result for small matrices, or None."""
    return LOOPS.small_matrices(function, *matrices) if small_loops() else None


def solve(x: AnyArray, y: AnyArray) -> AnyArray:
    if (out := _small(SOLVE, x, y)) is not None:
        return out
    if (found := _computed(x, y)) is None:
        return linalg.solve(x, y)
    factors = factors_of(x) if y.ndim == 2 and len(y) == len(x) else None
    if factors is not None:
        return factors.solution(y)
    char, is_converted = found
    return _call(_SINGULAR, _GUFUNCS.solve, f"{char}{char}->{char}", is_converted, x, y)


def inv(x: AnyArray) -> AnyArray:
    if (out := _small(INV, x)) is not None:
        return out
    if (found := _computed(x)) is None:
        return linalg.inv(x)
    factors = factors_of(x)
    if factors is not None:
        return factors.inverse()
    return _call(_SINGULAR, _GUFUNCS.inv, f"{found[0]}->{found[0]}", found[1], x)


def cholesky(x: AnyArray) -> AnyArray:
    if (out := _small(CHOLESKY, x)) is not None:
        return out
    if (found := _computed(x)) is None:
        return linalg.cholesky(x)
    return _call(_INDEFINITE, _GUFUNCS.cholesky_lo, f"{found[0]}->{found[0]}", found[1], x)


def det(x: AnyArray) -> Any:
    if (out := _small(DET, x)) is not None:
        return out if out.ndim else out[()]
    if (found := _computed(x)) is None:
        return linalg.det(x)
    return _call(None, _GUFUNCS.det, f"{found[0]}->{found[0]}", found[1], x)


def slogdet(x: AnyArray) -> Any:
    if (out := _small(SLOGDET, x)) is not None:
        return out
    if (found := _computed(x)) is None or found[1]:
        return linalg.slogdet(x)
    factors = factors_of(x)
    return _GUFUNCS.slogdet(x) if factors is None else factors.sign_and_log()
