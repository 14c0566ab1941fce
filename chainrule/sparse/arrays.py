"""``SparseArray``, a sparse matrix with differentiable entries, and functions that construct it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from chainrule._src.api.array import Array, as_arrays, unwrap_array
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.tree import register_pytree_node
from chainrule._src.arrays.types import AnyArray, DTypeLike, NumpyArray, NumpyDType, TensorLike
from chainrule._src.ops.sparse import check_product, entries_of
from chainrule._src.rules.primitive import Primitive
from chainrule._src.table import sparse as primitives
from chainrule._src.table.indexing import take_add
from chainrule._src.table.sparse import SparsityPattern, is_increasing
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.foreign_operands import is_sparse, numbers_of, reraise_error_caught_by_scipy
from chainrule._src.tape.protocol import ArrayLike, as_array
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray


def apply_primitive(prim: Primitive, operands: tuple[object, ...], **params: object) -> Any:
    """Apply a primitive to tensors, Arrays and plain arrays. The result is an Array unless an operand is a tensor."""
    opened = [_unwrap(x) for x in operands]
    result = bind(prim, opened, params)
    return as_arrays(result) if not any(isinstance(x, (Tensor, ArrayLike)) for x in operands) else result


def _unwrap(x: object) -> Tensor | ArrayLike | NumpyArray:
    if type(x) is Array:
        return x._tensor
    if isinstance(x, (Tensor, ArrayLike)):
        return x
    numbers = numbers_of(x)
    return as_array(x) if numbers is None else numbers


_ALTERNATIVES = (
    "chainrule.scipy.sparse.linalg has spsolve, splu, cg, eigsh ... that accept it, A.toarray() is dense, and A.to_scipy() "
    "converts the values for SciPy"
)


class SparseArray:
    """A sparse matrix with a fixed pattern. :func:`like`, :func:`csr_array`, :func:`coo_array`, :func:`diags` ... create it.

    It is a pytree of its entries: ``cr.grad(f)(A)`` is a matrix with the same pattern. ``*`` is elementwise, and indexing
    works as for SciPy's sparse arrays; one-dimensional results are dense vectors.

    Attributes:
        data: the entries, a vector: an array, an ``Array`` or a ``Tensor``.
        shape: the numbers of rows and columns.
    """

    __slots__ = ("_pattern", "_transposed", "data")
    __array_ufunc__ = None  # makes ``array @ A`` call this class
    ndim = 2

    def __init__(self, data: Any, pattern: SparsityPattern, transposed: bool = False) -> None:
        self.data = data
        self._pattern = pattern
        self._transposed = transposed

    def __reduce__(self) -> tuple[object, ...]:
        pattern = self._pattern
        return type(self)._restored, (self.data, pattern.indices, pattern.indptr, pattern.shape, self._transposed)

    @classmethod
    def _restored(cls, data: Any, indices: Any, indptr: Any, shape: tuple[int, int], transposed: bool) -> SparseArray:
        return cls(data, SparsityPattern(indices, indptr, shape), transposed)

    @property
    def shape(self) -> tuple[int, int]:
        m, n = self._pattern.shape
        return (n, m) if self._transposed else (m, n)

    @property
    def dtype(self) -> NumpyDType:
        """Return the dtype of the entries."""
        return dtype_of(self.data)

    @property
    def nnz(self) -> int:
        """Return the number of entries."""
        return len(self._pattern.indices)

    @property
    def coords(self) -> tuple[NumpyArray, NumpyArray]:
        """Return the row and column of each entry, in the order of ``data``."""
        return self._pattern.coordinates(self._transposed)

    @property
    def T(self) -> SparseArray:
        """Return the transpose, with the same entries in the same order."""
        return type(self)(self.data, self._pattern, not self._transposed)

    def transpose(self) -> SparseArray:
        """Return the transpose."""
        return self.T

    @property
    def row(self) -> NumpyArray:
        """Return the row of each entry, in the order of ``data``."""
        return self.coords[0]

    @property
    def col(self) -> NumpyArray:
        """Return the column of each entry, in the order of ``data``."""
        return self.coords[1]

    @property
    def indices(self) -> NumpyArray:
        """Return the column of each entry in the csr format, its row in the csc format."""
        return self._pattern.indices

    @property
    def indptr(self) -> NumpyArray:
        """Return the start of each row's entries in the csr format, of each column's in the csc format."""
        return self._pattern.indptr

    @property
    def format(self) -> str:
        """Return "csr" if the entries are ordered by rows, "csc" if by columns."""
        return "csc" if self._transposed else "csr"

    def with_data(self, data: object) -> SparseArray:
        """Return a matrix with the same pattern and other entries."""
        if tuple(shape_of(data)) != (self.nnz,):
            raise ValueError(f"the pattern has {self.nnz} entries, but data has the shape {tuple(shape_of(data))}")
        return type(self)(data, self._pattern, self._transposed)

    # -- products and systems ------------------------------------------------------------------------------------------

    def __matmul__(self, x: object) -> Any:
        """Return the product with a vector, a dense matrix, or a sparse matrix (then the result is sparse)."""
        if isinstance(x, SparseArray) or is_sparse(x):
            return self._sparse_product(_sparse(x))
        x = _unwrap(x) if isinstance(x, (list, tuple)) or numbers_of(x) is not None else x
        check_product(self.shape, x, "A @ x")
        return apply_primitive(
            primitives.sparse_matmul, (self.data, x), pattern=self._pattern, transposed=self._transposed
        )

    dot = __matmul__

    def __rmatmul__(self, x: TensorLike) -> Any:
        if is_sparse(x):
            return _sparse(x) @ self
        x = x if hasattr(x, "ndim") else np.asarray(x)
        return self.T @ x if x.ndim == 1 else np.swapaxes(self.T @ np.swapaxes(x, -1, -2), -1, -2)

    def _sparse_product(self, other: SparseArray) -> SparseArray:
        if self.shape[1] != other.shape[0]:
            raise ValueError(f"A @ B: the shapes are {self.shape} and {other.shape}")
        coords, other_coords = self.coords, other.coords
        counts = np.bincount(other_coords[0], minlength=other.shape[0])
        starts = np.cumsum(counts) - counts
        match_counts = counts[coords[1]]  # number of entries of other that each entry multiplies
        left = np.repeat(np.arange(self.nnz), match_counts)
        rank = np.arange(len(left)) - np.repeat(np.cumsum(match_counts) - match_counts, match_counts)
        right = np.argsort(other_coords[0], kind="stable")[starts[coords[1]][left] + rank]
        data = np.take(self.data, left) * np.take(other.data, right)
        return self._coo(data, coords[0][left], other_coords[1][right], (self.shape[0], other.shape[1]))

    def _coo(self, data: object, row: object, col: object, shape: tuple[int, int]) -> SparseArray:
        """Return a matrix of the same class from coordinates."""
        made = coo(data, row, col, shape)
        return type(self)(made.data, made._pattern, made._transposed)

    def solve(self, b: object) -> Any:
        """Solve ``A @ x = b`` for a vector or the columns of a dense matrix, by SuperLU.

        The factors are cached for other right-hand sides and for the derivatives with respect to ``data`` and b.

        Raises:
            ValueError: the matrix is not square, or b has another length.
            numpy.linalg.LinAlgError: the matrix is singular.
        """
        m, n = self.shape
        if m != n:
            raise ValueError(f"A.solve(b) requires a square matrix, but A has the shape {self.shape}")
        check_product(self.shape, b, "A.solve(b)")
        return apply_primitive(
            primitives.sparse_solve, (self.data, b), pattern=self._pattern, transposed=self._transposed
        )

    # -- elementwise operations ----------------------------------------------------------------------------------------

    def multiply(self, x: object) -> SparseArray:
        """Multiply elementwise by a number or a dense array that broadcasts to the shape of A."""
        return self.with_data(self.data * self._at_entries(x, "*"))

    def __mul__(self, x: object) -> SparseArray:
        return self.multiply(x)

    def __rmul__(self, x: object) -> SparseArray:
        return self.multiply(x)

    def __truediv__(self, x: object) -> SparseArray:
        return self.with_data(self.data / self._at_entries(x, "/"))

    def __neg__(self) -> SparseArray:
        return self.with_data(-self.data)

    def conj(self) -> SparseArray:
        """Return the complex conjugate."""
        return self.with_data(np.conj(self.data))

    conjugate = conj

    def astype(self, dtype: DTypeLike) -> SparseArray:
        """Return the matrix with entries of another dtype."""
        return self.with_data(self.data.astype(dtype))

    def copy(self) -> SparseArray:
        """Return a matrix with a copy of the entries."""
        return self.with_data(np.copy(self.data))

    def _at_entries(self, x: Any, sign: str) -> AnyArray:
        """Return the elements of a dense array, broadcast to this shape, at the coordinates of the entries."""
        if isinstance(x, SparseArray) or is_sparse(x):
            raise TypeError(f"{sign} of two sparse matrices is not supported: compute with their data")
        numbers = numbers_of(x)
        x = x if numbers is None else numbers
        shape = np.shape(x)
        if len(shape) > 2 or any(n not in (1, m) for n, m in zip(shape[::-1], self.shape[::-1], strict=False)):
            raise ValueError(f"A {sign} x: x of shape {shape} does not broadcast to {self.shape}")
        index = [k if n > 1 else 0 for n, k in zip(shape[::-1], self.coords[::-1], strict=False)][::-1]
        return x[tuple(index)] if shape else x

    def __add__(self, other: Any) -> SparseArray:
        """Return the sum of two sparse matrices; its pattern is the union of both."""
        if not (isinstance(other, SparseArray) or is_sparse(other)):
            return NotImplemented
        other = _sparse(other)
        if other.shape != self.shape:
            raise ValueError(f"A + B: the shapes are {self.shape} and {other.shape}")
        if other._pattern is self._pattern and other._transposed == self._transposed:
            return self.with_data(self.data + other.data)
        row, col = (np.concatenate(pair) for pair in zip(self.coords, other.coords, strict=True))
        return self._coo(np.concatenate([self.data, other.data]), row, col, self.shape)

    __radd__ = __add__

    def __sub__(self, other: TensorLike) -> SparseArray:
        return self + -other

    def __rsub__(self, other: TensorLike) -> SparseArray:
        return -self + other

    # -- indexing and conversion ---------------------------------------------------------------------------------------

    def __getitem__(self, index: object) -> Any:
        """Return an element, a submatrix, or a dense vector of elements, with the indices of SciPy's sparse arrays."""
        if not self._pattern.unique:
            return self._coo(self.data, *self.coords, self.shape)[index]
        at: Any = self._pattern.numbered(self._scipy_class, self._transposed)[index]
        if not is_sparse(at):  # one element, or one for each pair of a row and a column
            at = np.asarray(at)
            found = np.take(self.data, np.maximum(at - 1, 0))
            return found if (at > 0).all() else np.where(at > 0, found, 0)
        at = at.tocoo()
        entries = np.take(self.data, at.data - 1)
        if at.ndim == 1:
            return apply_primitive(take_add, (entries, at.coords[0].astype(np.intp)), axis=-1, length=at.shape[0])
        row, col = at.coords
        return self._coo(entries, row, col, at.shape)

    def __setitem__(self, index: object, value: object) -> None:
        raise TypeError(
            "the pattern of a SparseArray is fixed: create a matrix with the entry by coo_array((data, (row, col)), shape), "
            "which adds up duplicate entries, or call A.with_data(data) for other entries in the same pattern"
        )

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.shape[0]))

    def __len__(self) -> int:
        raise TypeError("the length of a sparse matrix is ambiguous: A.nnz entries, A.shape[0] rows")

    def __array__(self, dtype: DTypeLike = None, copy: object = None) -> NoReturn:
        raise TypeError(
            f"a SparseArray cannot be converted to a NumPy array, as its entries may carry derivatives: {_ALTERNATIVES}"
        )

    def matvec(self, x: object) -> NumpyArray:
        """Return ``A @ x`` for plain values. SciPy's ``cg``, ``eigsh`` ... call this method.

        Raises:
            TypeError: the entries carry derivatives, which SciPy would drop.
        """
        data = unwrap_array(self.data)
        if isinstance(data, Tensor) and (data._edge is not None or type(data._raw) is not ndarray):
            raise TypeError(
                f"the entries of a SparseArray carry derivatives, which SciPy's function would drop: {_ALTERNATIVES}"
            )
        return self.to_scipy() @ x

    def rmatvec(self, x: TensorLike) -> NumpyArray:
        """Return ``A.conj().T @ x`` for plain values; see ``matvec``."""
        return np.conj(self.T.matvec(np.conj(x)))

    def tocsr(self) -> SparseArray:
        """Return the matrix with its entries ordered by rows."""
        return self._sort_entries(False)

    def tocsc(self) -> SparseArray:
        """Return the matrix with its entries ordered by columns."""
        return self._sort_entries(True)

    def _sort_entries(self, of_columns: bool) -> SparseArray:
        if self._transposed == of_columns:
            return self
        row, col = self.coords if of_columns else self.coords[::-1]
        order = np.lexsort((row, col))
        counts = np.bincount(col, minlength=self.shape[of_columns])
        shape = self.shape[::-1] if of_columns else self.shape
        pattern = SparsityPattern(row[order], np.append(0, np.cumsum(counts)), shape)
        return type(self)(np.take(self.data, order), pattern, of_columns)

    def tocoo(self) -> SparseArray:
        """Return the matrix unchanged; it has ``row``, ``col`` and ``coords``."""
        return self

    def asformat(self, format: str | None) -> SparseArray:
        """Return the matrix in the format "csr" or "csc"; for "coo", return it unchanged."""
        forms = {None: self.tocoo, "coo": self.tocoo, "csr": self.tocsr, "csc": self.tocsc}
        if format not in forms:
            raise ValueError(f"A.asformat({format!r}): a SparseArray has the format 'csr' or 'csc'")
        return forms[format]()

    def todense(self) -> Any:
        """Return the dense matrix, as ``toarray``."""
        return self.toarray()

    def toarray(self) -> Any:
        """Return the dense matrix."""
        rows_at, columns = self.coords
        positions = rows_at.astype(np.intp) * self.shape[1] + columns
        return np.reshape(self._scatter_add(positions, self.shape[0] * self.shape[1]), self.shape)

    def diagonal(self, k: int = 0) -> Any:
        """Return the elements on the k-th diagonal, above the main one where k > 0."""
        rows_at, columns = self.coords
        length = max(0, min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0)))
        on = np.flatnonzero(columns - rows_at == k)
        return apply_primitive(take_add, (np.take(self.data, on), rows_at[on] + min(k, 0)), axis=-1, length=length)

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of a diagonal."""
        return np.sum(self.diagonal(offset))

    def sum(self, axis: int | None = None, dtype: DTypeLike = None, out: object = None) -> Any:
        """Return the sum of all elements, of each column (``axis=0``), or of each row (``axis=1``)."""
        if dtype is not None or out is not None:
            raise NotImplementedError("A.sum(dtype=, out=) of a SparseArray: cast the entries, A.astype(dtype)")
        if axis is None:
            return np.sum(self.data)
        if axis not in (-2, -1, 0, 1):
            raise ValueError(f"A.sum(axis={axis!r}): axis must be 0 or 1")
        kept_axis = 1 - axis % 2
        return self._scatter_add(self.coords[kept_axis], self.shape[kept_axis])

    def mean(self, axis: int | None = None, dtype: DTypeLike = None, out: object = None) -> Any:
        """Return the mean of all elements, of each column (``axis=0``), or of each row (``axis=1``)."""
        return self.sum(axis, dtype, out) / (self.shape[0] * self.shape[1] if axis is None else self.shape[axis])

    def _scatter_add(self, positions: NumpyArray, length: int) -> AnyArray:
        return apply_primitive(take_add, (self.data, positions.astype(np.intp)), axis=-1, length=length)

    def to_scipy(self) -> Any:
        """Return the matrix as a ``scipy.sparse`` array, without derivatives.

        Raises:
            TypeError: called inside a transformation.
        """
        tensor = unwrap_array(self.data)
        data = tensor._raw if isinstance(tensor, Tensor) else tensor
        if type(data) is not ndarray:
            raise TypeError("the entries are inside a transformation, but SciPy needs concrete values")
        return self._pattern.matrix(data, self._transposed)

    _scipy_class = "csr_array"

    def __format__(self, spec: str) -> str:
        reraise_error_caught_by_scipy()
        return format(repr(self), spec)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.shape}, {self.nnz} entries, {self.dtype}>"


class SparseMatrix(SparseArray):
    """A sparse matrix like ``scipy.sparse.coo_matrix``, ``csr_matrix`` and ``csc_matrix``: ``*`` is the matrix product.

    Sums over rows or columns, and the results of indexing, have two dimensions.
    """

    __slots__ = ()
    _scipy_class = "csr_matrix"

    def __mul__(self, x: Any) -> Any:
        return self.multiply(x) if not isinstance(x, SparseArray) and not np.ndim(x) else self @ x

    def __rmul__(self, x: Any) -> Any:
        return self.multiply(x) if not np.ndim(x) else x @ self

    def sum(self, axis: int | None = None, dtype: DTypeLike = None, out: object = None) -> Any:
        """Return the sum of all elements, of each column (``axis=0``), or of each row (``axis=1``)."""
        found = super().sum(axis, dtype, out)
        return found if axis is None else np.reshape(found, (1, -1) if axis % 2 == 0 else (-1, 1))

    def todense(self) -> NoReturn:
        raise TypeError("a numpy.matrix cannot carry derivatives: use the dense A.toarray(), whose * is elementwise")


def _flatten(A: SparseArray) -> Any:
    return (A.data,), (A._pattern, A._transposed)


register_pytree_node(SparseArray, _flatten, lambda leaves, rest: SparseArray(*leaves, *rest))
register_pytree_node(SparseMatrix, _flatten, lambda leaves, rest: SparseMatrix(*leaves, *rest))


def csr(data: object, indices: object, indptr: object, shape: tuple[int, int]) -> SparseArray:
    """Return a sparse matrix from the arguments of ``scipy.sparse.csr_array((data, indices, indptr), shape)``.

    Args:
        data: the entries, (nnz,): an array, an ``Array`` or a ``Tensor``. Duplicate entries add up.
        indices: the column of each entry.
        indptr: the start of each row's entries, and the end of the last row's.

    Raises:
        ValueError: the indices are invalid for the shape.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> A = cr.sparse.csr(cr.tensor([1., 2., 3.], requires_grad=True), [0, 1, 1], [0, 2, 3], (2, 2))
    >>> A @ np.ones(2, np.float32)
    tensor([3., 3.], grad_fn=<SparseMatmulBackward0>)
    """
    indices, indptr = np.asarray(indices), np.asarray(indptr)
    m, n = shape
    if indptr.shape != (m + 1,) or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(f"indptr of a matrix with {m} rows must have {m + 1} ascending integers, starting with 0")
    if indices.shape != (indptr[-1],) or (indices.size and not 0 <= indices.min() <= indices.max() < n):
        raise ValueError(f"indices must have {indptr[-1]} columns (indptr[-1]), each from 0 to {n - 1}")
    return SparseArray(None, SparsityPattern(indices, indptr, (m, n))).with_data(data)


def coo(data: object, row: object, col: object, shape: tuple[int, int]) -> SparseArray:
    """Return a sparse matrix from entries, rows and columns, as ``scipy.sparse.coo_array``. Entries are sorted by rows.

    Args:
        data: the entries, (nnz,). Duplicate entries add up.
        row, col: the row and column of each entry.

    Raises:
        ValueError: the indices are invalid for the shape.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cr.sparse.coo(np.array([1., 2., 3.]), [1, 0, 1], [0, 1, 0], (2, 2)).toarray()
    array([[0., 2.],
           [4., 0.]])
    """
    row, col = np.asarray(row), np.asarray(col)
    m, n = shape
    inside = not row.size or (0 <= row.min() <= row.max() < m and 0 <= col.min() <= col.max() < n)
    if not (shape_of(data) == row.shape == col.shape and row.ndim == 1 and inside):
        raise ValueError(
            f"row and col must have one integer for each entry, from 0 to {m - 1} in row and from 0 to {n - 1} in col"
        )
    positions = row.astype(np.intp) * n + col
    if is_increasing(positions):
        inverse = np.arange(len(positions))
    else:
        positions, inverse = np.unique(positions, return_inverse=True)
    summed = apply_primitive(take_add, (data, inverse), axis=-1, length=len(positions))
    indptr = np.append(0, np.cumsum(np.bincount(positions // max(n, 1), minlength=m)))
    return csr(summed, positions % max(n, 1), indptr, shape)


def like(A: Any, data: Any = None) -> SparseArray:
    """Return a sparse matrix with the pattern of another.

    Args:
        A: one of SciPy's matrices, or a SparseArray.
        data: the entries, in the order of ``A.data`` (for SciPy's formats csr and csc, and coo without duplicates). By
            default, the entries of A.

    Raises:
        ValueError: the format does not define an order of entries, or data has another length.
    """
    if isinstance(A, SparseArray):
        return A if data is None else A.with_data(data)
    if not is_sparse(A) or A.ndim != 2:
        raise TypeError(f"like(A): A is a {type(A).__name__}, not a sparse matrix")
    if data is not None and A.format == "coo":
        if tuple(shape_of(data)) != A.data.shape:
            raise ValueError(f"A has {A.nnz} entries, but data has the shape {tuple(shape_of(data))}")
        return coo(data, A.row, A.col, A.shape)
    if data is not None and A.format not in ("csr", "csc"):
        raise ValueError(f"the format {A.format} does not define an order of entries: use A.tocsr()")
    found, pattern, transposed = entries_of(A)
    return SparseArray(None, pattern, transposed).with_data(found if data is None else data)


def _sparse(x: object) -> SparseArray:
    return x if isinstance(x, SparseArray) else like(x)
