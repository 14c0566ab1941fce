"""A square matrix, dense or sparse, that systems are solved with again and again."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import numpy as np

ndarray = np.ndarray


class Factors:
    """What is computed of a square matrix once, so that solving with it and with its transpose is cheap.

    Args:
        matrix: an array, or a sparse array of SciPy's.
        singular: what to say if it is singular.

    Raises:
        numpy.linalg.LinAlgError: it is singular, as far as the precision of its numbers tells.
    """

    __slots__ = ("_factors", "_transposed", "matrix", "singular")

    def __init__(self, matrix: Any, singular: str) -> None:
        self.matrix = matrix
        self.singular = singular
        self._transposed = False
        self._factors: Any = self._of_dense(matrix) if type(matrix) is ndarray else self._of_sparse(matrix)

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
        inverse = linalg.LinearOperator(
            matrix.shape, matvec=factors.solve, rmatvec=lambda b: factors.solve(b, "T"), dtype=matrix.dtype
        )
        self._check(linalg.norm(matrix, 1) * linalg.onenormest(inverse))
        return factors

    def _check(self, condition: float) -> None:
        """Raise where the matrix cannot be told from a singular one: by its condition number."""
        if not condition * np.finfo(self.matrix.dtype).eps < 1:
            raise np.linalg.LinAlgError(f"{self.singular} (its condition number is {condition:.0e})")

    @property
    def T(self) -> Factors:
        """Those of the transpose."""
        other = copy.copy(self)
        other._transposed = not self._transposed
        return other

    def solve(self, b: ndarray, transposed: bool = False) -> ndarray:
        """x with ``matrix @ x = b`` (or ``matrix.T @ x = b``), for a vector."""
        transposed ^= self._transposed
        if type(self.matrix) is not ndarray:
            found: ndarray = self._factors.solve(b, "T" if transposed else "N")
            return found
        matrix, inverse = (self.matrix.T, self._factors.T) if transposed else (self.matrix, self._factors)
        x: ndarray = inverse @ b
        return x + inverse @ (b - matrix @ x)  # what the inverse has lost to rounding
