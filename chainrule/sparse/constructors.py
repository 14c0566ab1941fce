"""Constructors with the names and arguments of ``scipy.sparse``, for matrices with differentiable entries.

``chainrule.sparse`` exports these functions; all return a ``SparseArray``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import DTypeLike, NumpyArray
from chainrule._src.table.sparse import scipy_sparse
from chainrule._src.tape.foreign_operands import is_sparse
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor
from chainrule.sparse.arrays import SparseArray, SparseMatrix, coo, csr, like


def _from_constructor_args(name: str, arg: object, shape: Any) -> SparseArray:
    """Return a SparseArray from the arguments of SciPy's constructors."""
    if isinstance(arg, SparseArray) or is_sparse(arg):
        return like(arg)
    if isinstance(arg, tuple) and len(arg) == 2 and isinstance(arg[1], (tuple, list)):
        row, col = map(np.asarray, arg[1])
        return coo(arg[0], row, col, shape or (_size(row), _size(col)))
    if isinstance(arg, tuple) and len(arg) == 3 and not name.startswith("coo"):
        data, indices, indptr = arg
        n = _size(np.asarray(indices))
        of_columns = name.startswith("csc")
        m = len(indptr) - 1
        if not of_columns:
            return csr(data, indices, indptr, shape or (m, n))
        return csr(data, indices, indptr, shape[::-1] if shape else (m, n)).T
    if isinstance(arg, tuple) and len(arg) == 2 and all(isinstance(n, (int, np.integer)) for n in arg):
        return coo(np.zeros(0), np.zeros(0, int), np.zeros(0, int), arg)
    if isinstance(arg, (Tensor, Array, ArrayLike)):
        raise TypeError(
            f"{name}(x): the pattern of an array with derivatives cannot be read from its values: give the indices, as in "
            f"{name}((x[row, col], (row, col)), shape=x.shape)"
        )
    return like(scipy_sparse(name).csr_array(np.asarray(arg)))


def _size(places: NumpyArray) -> int:
    return int(places.max()) + 1 if places.size else 0


def _constructor(name: str, kind: type[SparseArray]) -> Callable[..., SparseArray]:
    """Return the public function for one of SciPy's constructors."""

    def make(
        arg1: object, shape: tuple[int, int] | None = None, dtype: DTypeLike = None, copy: bool = False
    ) -> SparseArray:
        found = _from_constructor_args(name, arg1, shape)
        if shape is not None and tuple(shape) != found.shape:
            raise ValueError(f"{name}(): shape is {tuple(shape)}, but the matrix has the shape {found.shape}")
        found = found.asformat(name[:3])
        found = found if dtype is None else found.astype(dtype)
        return kind(found.data, found._pattern, found._transposed)

    make.__name__ = make.__qualname__ = name
    forms = "" if name.startswith("coo") else "``(data, indices, indptr)``, "
    star = "``*`` is the matrix product" if kind is SparseMatrix else "``*`` is elementwise"
    make.__doc__ = f"""Return a sparse matrix from the arguments of ``scipy.sparse.{name}``; {star}.

    Args:
        arg1: {forms}``(data, (row, col))`` with differentiable data, in which duplicate entries add up; a sparse matrix of
            SciPy's or of chainrule's; a constant dense array; or the shape of an empty matrix.
        shape: the numbers of rows and columns; by default, the smallest that the indices need.

    Raises:
        ValueError: the indices are invalid for the shape.
        TypeError: a dense array that carries derivatives.
    """
    return make


coo_array, csr_array, csc_array = (_constructor(f"{form}_array", SparseArray) for form in ("coo", "csr", "csc"))
coo_matrix, csr_matrix, csc_matrix = (_constructor(f"{form}_matrix", SparseMatrix) for form in ("coo", "csr", "csc"))


def diags(diagonals: Any, offsets: Any = 0, shape: tuple[int, int] | None = None) -> SparseArray:
    """Return a matrix with the given diagonals, as ``scipy.sparse.diags_array``.

    Args:
        diagonals: a vector for the main diagonal, or a list with a vector (or one number) for each offset.
        offsets: the diagonals' positions, above the main diagonal (> 0) or below it (< 0).
        shape: the numbers of rows and columns; by default, square with the size of the first diagonal.

    Raises:
        ValueError: the length of a diagonal does not match its offset.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cr.sparse.diags([np.array([1., 2.]), np.array([3., 4., 5.])], offsets=[-1, 0]).toarray()
    array([[3., 0., 0.],
           [1., 4., 0.],
           [0., 2., 5.]])
    """
    if not isinstance(diagonals, (list, tuple)) or not any(map(np.ndim, diagonals)):
        one = np.ndim(offsets) == 0 and np.ndim(diagonals) < 2
        diagonals, offsets = ([diagonals], [offsets]) if one else (list(diagonals), offsets)
    offsets = [int(k) for k in np.atleast_1d(offsets)]
    if len(diagonals) != len(offsets) or len(set(offsets)) < len(offsets):
        raise ValueError(
            f"diags(): {len(diagonals)} diagonals, but offsets {offsets}: give one distinct offset for each"
        )
    n = np.shape(diagonals[0])[-1] + abs(offsets[0]) if shape is None else 0
    m, n = shape or (n, n)
    data, row, col = [], [], []
    for diagonal, k in zip(diagonals, offsets, strict=True):
        length = max(0, min(m + min(k, 0), n - max(k, 0)))
        if tuple(shape_of(np.atleast_1d(diagonal))) not in ((length,), (1,)):
            raise ValueError(
                f"diags(): the diagonal of offset {k} must have {length} elements in a matrix of shape {(m, n)}, not "
                f"{tuple(np.shape(diagonal))}"
            )
        data.append(np.broadcast_to(np.atleast_1d(diagonal), (length,)))
        row.append(np.arange(length) - min(k, 0))
        col.append(np.arange(length) + max(k, 0))
    return coo(np.concatenate(data), np.concatenate(row), np.concatenate(col), (m, n))


def diags_array(diagonals: object, *, offsets: object = 0, shape: tuple[int, int] | None = None) -> SparseArray:
    """Call :func:`diags`, under SciPy's newer name."""
    return diags(diagonals, offsets, shape)


def eye_array(m: int, n: int | None = None, *, k: int = 0) -> SparseArray:
    """Return a matrix with ones on a diagonal, as ``scipy.sparse.eye_array``."""
    return diags([np.ones(1)], [k], (m, m if n is None else n))
