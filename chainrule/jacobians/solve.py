"""Linear systems with a structured Jacobian: by the method that its structure is best solved by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule import errors
from chainrule.jacobians.assemble import Sparse
from chainrule.jacobians.blocks import Blocks
from chainrule.transform.dense import MEMORY, check_size, largest

if TYPE_CHECKING:
    from chainrule.jacobians.result import Jacobian

ndarray = np.ndarray

#: A band is solved as one if it has at most so many diagonals, and at most this part of all.
_WIDEST, _BAND = 200, 0.1
#: A matrix is solved as a sparse one if at most this part of it is entries.
_SPARSE = 0.1


def solution(J: Jacobian, b: Any) -> Any:
    """x of ``J x = b``, for b of shape ``(m, c)``.

    Raises:
        numpy.linalg.LinAlgError: J is singular.
    """
    m = J.matrix_shape[0]
    if not m:
        return b
    blocks = J._any_blocks()
    if blocks is not None and blocks.rows.shape == blocks.cols.shape and blocks.cols.size == m:
        return _by_blocks(J, blocks, b)
    matrix = J._entries()
    _check_no_line_is_empty(J, matrix)
    if type(matrix.data) is ndarray and type(b) is ndarray:
        found = _by_scipy(J, matrix, b)
        if found is not None:
            return found
    check_size(
        J.out_shape,
        J.in_shape,
        J.dtype,
        largest(MEMORY),
        "Without SciPy, or where entries are recorded, systems are dense",
    )
    return _dense(J, matrix.dense(), b)


def _by_blocks(J: Jacobian, blocks: Blocks, b: Any) -> Any:
    vals = getattr(blocks.vals, "_raw", blocks.vals)
    if blocks.cols.shape[1] == 1 and type(vals) is ndarray and not vals.all():
        k = int(np.flatnonzero(vals.reshape(-1) == 0)[0])
        raise _singular(J, f"the only entry of its row {_place(blocks.rows[k, 0], J.out_shape)} is 0")
    if blocks.dense:
        return _dense(J, blocks.matrix(), b)
    try:
        return blocks.solution(b)
    except np.linalg.LinAlgError:
        rows = _place(blocks.rows[_first_singular(vals), 0], J.out_shape)
        raise _singular(J, f"the block with the row {rows} is") from None


def _first_singular(vals: Any) -> int:
    return int(np.argmin(np.linalg.matrix_rank(vals))) if type(vals) is ndarray else 0


def _by_scipy(J: Jacobian, matrix: Sparse, b: Any) -> Any:
    """By LAPACK's banded solver, or SuperLU; None without SciPy, and for what is better dense."""
    m = matrix.shape[0]
    below, above = J.bandwidth
    width = below + above + 1
    band = width <= min(_WIDEST, _BAND * m) or width <= 3
    if not band and matrix.nnz > _SPARSE * m * m:
        return None
    try:
        from scipy import linalg, sparse
        from scipy.sparse import linalg as sparse_linalg
    except ImportError:
        return None
    dtype = np.result_type(matrix.data, b)
    if band:
        diagonals = np.zeros((width, m), dtype)
        diagonals[above + matrix.row_numbers() - matrix.indices, matrix.indices] = matrix.data
        try:
            return linalg.solve_banded((below, above), diagonals, b)
        except np.linalg.LinAlgError:
            raise _singular(J, "its LU decomposition has a 0 on the diagonal") from None
    columns = sparse.csr_array((matrix.data.astype(dtype), matrix.indices, matrix.indptr), shape=matrix.shape).tocsc()
    try:
        return sparse_linalg.splu(columns).solve(b.astype(dtype))
    except RuntimeError:
        raise _singular(J, "its LU decomposition has a 0 on the diagonal") from None


def _dense(J: Jacobian, matrix: Any, b: Any) -> Any:
    try:
        return np.linalg.solve(matrix, b)
    except np.linalg.LinAlgError:
        raise _singular(J, "its LU decomposition has a 0 on the diagonal") from None


def _check_no_line_is_empty(J: Jacobian, matrix: Sparse) -> None:
    empty = np.flatnonzero(np.diff(matrix.indptr) == 0)
    if empty.size:
        raise _singular(J, f"its row {_place(empty[0], J.out_shape)} is empty, as that element of y depends on no x")
    counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    empty = np.flatnonzero(counts == 0)
    if empty.size:
        raise _singular(J, f"its column {_place(empty[0], J.in_shape)} is empty, as no y depends on that element of x")


def _place(flat: Any, shape: tuple[int, ...]) -> str:
    place = tuple(int(i) for i in np.unravel_index(int(flat), shape)) if shape else ()
    return str(place[0]) if len(place) == 1 else str(place)


def _singular(J: Jacobian, why: str) -> Exception:
    return errors.jacobian_singular(J, why)
