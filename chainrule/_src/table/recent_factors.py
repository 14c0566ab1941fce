"""Share the LU factors of a matrix between ``solve``, ``inv``, ``slogdet`` and their derivatives, in eager code.

``gufuncs`` calls ``factors_of``; ``linalg`` calls ``inverse_for_rules``. NumPy factors the matrix in each call. Here the factors of
the last matrix of a thread are cached while its memory exists, and used for every matrix with the same bits. LAPACK's ``getrf``
computes them, and ``getrs`` the solutions. On one thread these give the bits of ``gesv``, which NumPy calls. Plans of ``compile``
share factors in the same way (``compiling.factors``).
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.native.blas import blas_function, lapack_function

ndarray = np.ndarray
linalg: Any = np.linalg
#: numbers of rows: below SMALLEST, the calls take as long as the factorization; above LARGEST, the copies take too much memory
SMALLEST, LARGEST = 64, 1024


class LuFactors(NamedTuple):
    """The factors of a matrix.

    Attributes:
        matrix: a copy of the matrix, to compare with.
        columns: the factors, in Fortran order.
        pivots: as returned by LAPACK, counted from 1.
    """

    matrix: NumpyArray
    columns: NumpyArray
    pivots: NumpyArray

    def is_of(self, x: NumpyArray) -> bool:
        """Return whether a matrix has the same bits as the factored one."""
        return x.shape == self.matrix.shape and bool((x.view(np.int64) == self.matrix.view(np.int64)).all())

    def solution(self, y: NumpyArray) -> NumpyArray:
        """Return the solutions for the columns of a matrix."""
        return self._solved(y.T.copy())

    def inverse(self) -> NumpyArray:
        return self._solved(np.eye(len(self.matrix)))

    def fast_inverse(self) -> NumpyArray:
        """Return the inverse from the inverses of the triangles, in half of the time; its bits are not those of ``np.linalg.inv``."""
        getri: Any = lapack_function("dgetri_", 7)
        n, length, info = self._integers(len(self.matrix), _BLOCK * len(self.matrix), 0)
        found = self.columns.copy()
        getri(n, found, n, self.pivots, np.empty(_BLOCK * len(found)), length, info)
        return found.T

    def _solved(self, right: NumpyArray) -> NumpyArray:
        """Solve in place for right-hand sides in Fortran order; return the solutions in C order."""
        getrs: Any = lapack_function("dgetrs_", 9)
        n, sides, info = self._integers(len(self.matrix), len(right), 0)
        getrs(_NOT_TRANSPOSED, n, sides, self.columns, n, self.pivots, right, n, info)
        return np.ascontiguousarray(right.T)

    def _integers(self, *values: int) -> Any:
        return np.array(values, self.pivots.dtype)[:, None]

    def sign_and_log(self) -> tuple[Any, Any]:
        """Return the sign and the logarithm of the absolute value of the determinant, summed as NumPy does."""
        diagonal = self.columns.diagonal()
        exchanges = np.count_nonzero(self.pivots != np.arange(1, len(self.pivots) + 1))
        negative = (exchanges + np.count_nonzero(diagonal < 0)) % 2
        total = 0.0
        for element in np.abs(diagonal).tolist():
            total += math.log(element)
        return np.float64(-1.0 if negative else 1.0), np.float64(total)


#: width of the blocks of columns for which ``getri`` has memory
_BLOCK = 64
_NOT_TRANSPOSED = np.array([ord("N")], np.uint8)


class _Recent(threading.local):
    """The last factors of a thread, and a weak reference to the memory of their matrix."""

    factors: LuFactors | None = None
    owner: Any = None


_RECENT = _Recent()


def has_shared_factors(x: AnyArray) -> bool:
    """Return whether the factors of square matrices of this shape and dtype are shared."""
    return x.ndim == 2 and x.dtype == np.float64 and SMALLEST <= x.shape[0] <= LARGEST


def factors_of(x: NumpyArray) -> LuFactors | None:
    """Return the factors of a matrix; None if it is singular or its factors are not shared: other sizes, dtypes, BLAS or threads."""
    if not has_shared_factors(x):
        return None
    known = _RECENT.factors
    if known is not None and known.is_of(x):
        return known
    if not _are_available() or _threads() != 1:
        return None
    found = _factored(x)
    if found is not None:
        _keep(found, x)
    return found


def inverse_for_rules(x: NumpyArray) -> NumpyArray:
    """Return the inverse of a matrix that is not singular, for a derivative, which need not have the bits of ``np.linalg.inv``."""
    factors = factors_of(x)
    found = linalg.inv(x) if factors is None else factors.fast_inverse()
    return found if np.isfinite(found).all() else linalg.inv(x)


def _factored(x: NumpyArray) -> LuFactors | None:
    getrf: Any = lapack_function("dgetrf_", 6)
    integer = np.dtype(f"i{getrf.bits // 8}")
    columns, pivots = x.T.copy(), np.empty(len(x), integer)
    n, info = np.array([len(x), 0], integer)[:, None]
    getrf(n, n, columns, n, pivots, info)
    return None if info[0] or not np.isfinite(columns.diagonal()).all() else LuFactors(x.copy(), columns, pivots)


def _keep(found: LuFactors, x: NumpyArray) -> None:
    """Keep the factors until the memory of the matrix is freed."""
    owner: Any = x
    while type(owner.base) is ndarray:
        owner = owner.base
    state = _RECENT.__dict__

    def freed(reference: object) -> None:
        if state.get("owner") is reference:
            state["factors"] = state["owner"] = None

    _RECENT.factors, _RECENT.owner = found, weakref.ref(owner, freed)


def _threads() -> int:
    count = _thread_count()
    return 0 if count is None else int(count())


@functools.cache
def _thread_count() -> Any:
    """Return OpenBLAS's function that returns its number of threads; None for another BLAS."""
    found = blas_function("openblas_get_num_threads")
    if found is None:
        return None
    import ctypes

    return ctypes.CFUNCTYPE(ctypes.c_int)(found.address)


@functools.cache
def _are_available() -> bool:
    """Return whether NumPy's LAPACK is found, and results have the bits of NumPy's functions."""
    if lapack_function("dgetrf_", 6) is None or lapack_function("dgetrs_", 9) is None or _threads() != 1:
        return False
    numbers = np.random.default_rng(0)
    return all([_agrees(numbers.standard_normal((n, n)), numbers.standard_normal((n, 3))) for n in (SMALLEST, 150)])


def _agrees(x: NumpyArray, y: NumpyArray) -> bool:
    factors = _factored(x)
    if factors is None:
        return False
    pairs = [
        (factors.solution(y), linalg.solve(x, y)),
        (factors.solution(y[:, :1]), linalg.solve(x, y[:, :1])),
        (factors.inverse(), linalg.inv(x)),
        (np.array(factors.sign_and_log()), np.array(linalg.slogdet(x))),
    ]
    return all([np.array_equal(found, expected) for found, expected in pairs])
