"""``Factors``: factorize a square matrix, dense or sparse, to solve several systems with it.

``solution`` and ``newton`` make ``Factors``.
"""

from __future__ import annotations

import copy
import importlib
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray

ndarray = np.ndarray


class Factors:
    """The factorization of a square matrix, for systems with the matrix and with its transpose.

    Rows and columns are scaled first, so that the result does not depend on the units of equations and unknowns.

    Args:
        matrix: an array, or a SciPy sparse array.
        singular: the error message for a singular matrix.

    Raises:
        numpy.linalg.LinAlgError: the matrix is singular to working precision.
    """

    __slots__ = ("_factors", "_transposed", "by_columns", "by_rows", "matrix", "singular")

    def __init__(self, matrix: AnyArray, singular: str) -> None:
        self.matrix = matrix
        self.singular = singular
        self._transposed = False
        self.by_rows = self._one_over(_largest(matrix, 1))
        scaled = _scaled(matrix, self.by_rows, None)
        self.by_columns = self._one_over(_largest(scaled, 0))
        scaled = _scaled(scaled, None, self.by_columns)
        self._factors: Any = self._of_dense(scaled) if type(matrix) is ndarray else self._of_sparse(scaled)

    def _one_over(self, largest: ndarray) -> ndarray:
        if not np.all(np.isfinite(largest) & (largest > 0)):
            raise np.linalg.LinAlgError(self.singular)
        return 1 / largest

    def _of_dense(self, matrix: ndarray) -> ndarray:
        try:
            inverse: ndarray = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            raise np.linalg.LinAlgError(self.singular) from None
        self._check(float(np.linalg.norm(matrix, 1) * np.linalg.norm(inverse, 1)))
        return inverse

    def _of_sparse(self, matrix: Any) -> Any:
        linalg = importlib.import_module("scipy.sparse.linalg")
        try:
            factors = linalg.splu(matrix.tocsc())
        except RuntimeError:
            raise np.linalg.LinAlgError(self.singular) from None
        norm = float(np.max(np.asarray(abs(matrix).sum(0))))
        self._check(norm * _norm_of_inverse(factors, matrix.shape[0]))
        return factors

    def _check(self, condition: float) -> None:
        """Raise if the condition number shows that the matrix is singular to working precision."""
        if not condition * np.finfo(self.matrix.dtype).eps < 1:
            raise np.linalg.LinAlgError(f"{self.singular} (its condition number is {condition:.0e})")

    @property
    def T(self) -> Factors:
        """The factors of the transpose."""
        other = copy.copy(self)
        other._transposed = not self._transposed
        return other

    def solve(self, b: ndarray, transposed: bool = False) -> ndarray:
        """Solve ``matrix @ x = b`` (or ``matrix.T @ x = b``), for a vector."""
        transposed ^= self._transposed
        x = self._solve_once(b, transposed)
        matrix = self.matrix.T if transposed else self.matrix
        return x + self._solve_once(b - matrix @ x, transposed)  # one step of iterative refinement

    def _solve_once(self, b: ndarray, transposed: bool) -> ndarray:
        before, after = (self.by_columns, self.by_rows) if transposed else (self.by_rows, self.by_columns)
        b = before * b
        if type(self.matrix) is ndarray:
            found: ndarray = (self._factors.T if transposed else self._factors) @ b
        else:
            found = self._factors.solve(b, "T" if transposed else "N")
        return after * found


def _norm_of_inverse(factors: Any, n: int) -> float:
    """Estimate the 1-norm of a matrix's inverse from a few solutions, by Hager's and Higham's method.

    (SciPy's function draws from NumPy's global generator, which would change the user's random numbers.)
    """
    x = np.full(n, 1 / n)
    largest = 0.0
    for _ in range(5):
        y = factors.solve(x)
        norm = float(np.sum(np.abs(y)))
        if not norm > largest:
            break
        largest = norm
        z = factors.solve(np.where(y < 0, -1.0, 1.0), "T")
        column = int(np.argmax(np.abs(z)))
        if abs(z[column]) <= z @ x:
            break
        x = np.zeros(n)
        x[column] = 1
    alternating = np.where(np.arange(n) % 2, -1.0, 1.0) * (1 + np.arange(n) / max(n - 1, 1))
    return max(largest, 2 * float(np.sum(np.abs(factors.solve(alternating)))) / (3 * n))


def _largest(matrix: Any, axis: int) -> ndarray:
    """Return the largest absolute value along an axis."""
    if type(matrix) is ndarray:
        found: ndarray = np.max(np.abs(matrix), axis)
        return found
    return abs(matrix).max(axis).toarray().reshape(-1)


def _scaled(matrix: object, rows: ndarray | None, columns: ndarray | None) -> Any:
    if type(matrix) is ndarray:
        return matrix * (rows[:, None] if rows is not None else columns)
    diagonal = importlib.import_module("scipy.sparse").diags_array
    return diagonal(rows) @ matrix if rows is not None else matrix @ diagonal(columns)
