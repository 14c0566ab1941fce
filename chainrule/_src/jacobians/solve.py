"""Solve linear systems with the blocks or the entries of a structured Jacobian. ``Jacobian.solve`` calls ``solve_system``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import Shape
from chainrule._src.jacobians.assemble import CsrMatrix
from chainrule._src.jacobians.blocks import Blocks
from chainrule._src.messages import errors
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.dense import MEMORY, check_size, result_limit
from chainrule._src.transforms.function import Function

ndarray = np.ndarray

#: A matrix is solved as banded if it has at most this number, and this fraction, of all diagonals.
_WIDEST, _BAND = 200, 0.1
#: A matrix is solved as sparse up to this density.
_SPARSE = 0.1
_ZERO_PIVOT = "its LU decomposition has a 0 on the diagonal"


class Shapes(NamedTuple):
    """The shapes of y and x of a Jacobian ∂y/∂x, for the indices of rows and columns in messages."""

    out_shape: Shape
    in_shape: Shape


def solve_system(blocks: Blocks | None, entries: Callable[[], CsrMatrix], shapes: Shapes, b: Any) -> Any:
    """Solve ``J x = b`` for b of shape ``(m, c)``; the method depends on the structure of J.

    Args:
        blocks: the blocks of J; None if it is not block diagonal.
        entries: returns the entries of J.

    Raises:
        numpy.linalg.LinAlgError: J is singular.
    """
    m = b.shape[0]
    if not m:
        return b
    if blocks is not None and blocks.rows.shape == blocks.cols.shape and blocks.cols.size == m:
        return _by_blocks(blocks, shapes, b)
    matrix = entries()
    system = System(matrix, *shapes)
    system.check_no_line_is_empty()
    if system.sparse and _scipy() is not None and _numbers(matrix.data) and _numbers(b):
        if type(matrix.data) is ndarray and type(b) is ndarray:
            return system.solution(matrix.data, b)
        return SparseSolve.apply(*[wrap(x) if type(x) is ndarray else x for x in (matrix.data, b)], system)
    check_size(*shapes, dtype_of(matrix.data), result_limit(MEMORY), "This system is solved as a dense one")
    return _dense(matrix.dense(), shapes, b)


def _numbers(x: object) -> bool:
    """Return whether x is a plain array, or a tensor of one."""
    return type(getattr(x, "_raw", x)) is ndarray


def _scipy() -> Any:
    try:
        from scipy import linalg, sparse
        from scipy.sparse import linalg as sparse_linalg
    except ImportError:
        return None
    return linalg, sparse, sparse_linalg


def _dense(matrix: Any, shapes: Shapes, b: Any) -> Any:
    try:
        return np.linalg.solve(matrix, b)
    except np.linalg.LinAlgError:
        raise errors.jacobian_singular(shapes, _ZERO_PIVOT) from None


# -- blocks ------------------------------------------------------------------------------------------------------------


def _by_blocks(blocks: Blocks, shapes: Shapes, b: object) -> Any:
    vals = getattr(blocks.vals, "_raw", blocks.vals)
    if blocks.cols.shape[1] == 1 and type(vals) is ndarray and not vals.all():
        k = int(np.flatnonzero(vals.reshape(-1) == 0)[0])
        raise errors.jacobian_singular(
            shapes, f"the only entry of its row {_index_text(blocks.rows[k, 0], shapes.out_shape)} is 0"
        )
    if blocks.dense:
        return _dense(blocks.matrix(), shapes, b)
    try:
        return blocks.solution(b)
    except np.linalg.LinAlgError:
        row = _index_text(blocks.rows[_first_singular(vals), 0], shapes.out_shape)
        raise errors.jacobian_singular(shapes, f"the block with the row {row} is") from None


def _first_singular(vals: object) -> int:
    return int(np.argmin(np.linalg.matrix_rank(vals))) if type(vals) is ndarray else 0


# -- sparse matrices ---------------------------------------------------------------------------------------------------


class System:
    """The pattern of a square sparse matrix, and the method to solve systems with it.

    Args:
        matrix: its data are not used.
        out_shape, in_shape: shapes for the indices of rows and columns in messages.
    """

    def __init__(self, matrix: CsrMatrix, out_shape: tuple[int, ...], in_shape: tuple[int, ...]) -> None:
        self.matrix = matrix._replace(data=None)
        self.out_shape = out_shape
        self.in_shape = in_shape
        self.rows = matrix.row_numbers()
        away = matrix.indices - self.rows
        self.below, self.above = max(0, -int(away.min(initial=0))), max(0, int(away.max(initial=0)))

    @property
    def banded(self) -> bool:
        width = self.below + self.above + 1
        return width <= 3 or width <= min(_WIDEST, _BAND * self.matrix.shape[0])

    @property
    def sparse(self) -> bool:
        """Whether to solve the system without making it dense."""
        return self.banded or self.matrix.nnz <= _SPARSE * self.matrix.shape[0] ** 2

    def solution(self, data: ndarray, b: ndarray) -> Any:
        """Solve ``A x = b`` by LAPACK's banded solver or SuperLU.

        Raises:
            numpy.linalg.LinAlgError: A is singular.
        """
        linalg, sparse, sparse_linalg = _scipy()
        dtype = np.result_type(data, b)
        try:
            if self.banded:
                return linalg.solve_banded((self.below, self.above), self._diagonals(data.astype(dtype)), b)
            arrays = data.astype(dtype), self.matrix.indices, self.matrix.indptr
            return sparse_linalg.splu(sparse.csr_array(arrays, shape=self.matrix.shape).tocsc()).solve(b.astype(dtype))
        except (np.linalg.LinAlgError, RuntimeError):  # SuperLU raises RuntimeError
            raise errors.jacobian_singular(self, _ZERO_PIVOT) from None

    def _diagonals(self, data: ndarray) -> ndarray:
        diagonals = np.zeros((self.below + self.above + 1, self.matrix.shape[1]), data.dtype)
        diagonals[self.above + self.rows - self.matrix.indices, self.matrix.indices] = data
        return diagonals

    def transposed(self) -> tuple[System, Any]:
        """Return the transposed system, and the indices of its entries among those of this system."""
        turned = self.matrix._replace(data=np.arange(self.matrix.nnz)).transposed()
        return System(turned, self.in_shape, self.out_shape), turned.data

    def check_no_line_is_empty(self) -> None:
        """Raise numpy.linalg.LinAlgError if a row or a column has no entries."""
        empty = np.flatnonzero(np.diff(self.matrix.indptr) == 0)
        if empty.size:
            row = _index_text(empty[0], self.out_shape)
            raise errors.jacobian_singular(
                self, f"its row {row} is empty, because that element of y does not depend on x"
            )
        empty = np.flatnonzero(np.bincount(self.matrix.indices, minlength=self.matrix.shape[1]) == 0)
        if empty.size:
            column = _index_text(empty[0], self.in_shape)
            raise errors.jacobian_singular(
                self, f"its column {column} is empty, because y does not depend on that element of x"
            )


class SparseSolve(Function):
    """The solution of ``A x = b`` for a sparse A, as a differentiable function of A's entries and b."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, b: Tensor, system: System) -> Any:
        x = wrap(system.solution(data._raw, b._raw))
        ctx.save_for_backward(data, x)
        ctx.system = system
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        data, x = ctx.saved_tensors
        system = ctx.system
        turned, order = system.transposed()
        adjoint = SparseSolve.apply(np.conjugate(np.take(data, order)), g, turned)
        products = np.take(adjoint, system.rows, 0) * np.conjugate(np.take(x, system.matrix.indices, 0))
        return -products.sum(-1), adjoint, None


def _index_text(flat: Any, shape: tuple[int, ...]) -> str:
    index = tuple(int(i) for i in np.unravel_index(int(flat), shape)) if shape else ()
    return str(index[0]) if len(index) == 1 else str(index)
