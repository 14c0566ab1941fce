"""Assemble matrices from terms: dense matrices, and sparse matrices in CSR format.

``layouts``, ``result`` and ``prepared`` call this module.

A dense Jacobian starts as zeros, and every term is added to it. If the columns of a term are a linear function of its indices,
the positions of its entries are, too, and the sum is one strided operation. Other terms go through an ``EntryPattern``.

An ``EntryPattern`` depends only on the integers of terms. It stores how the numbers in ``vals`` become the entries of a sparse
matrix. The numbers are concatenated (the *pool*), and one ``take`` sorts them. Entries at the same position are summed with one
``np.add.reduceat``. So the numbers can be any array-like that implements NumPy's protocols, and a pattern can be reused for terms
with the same integers and other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.memory import zeros
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, DTypeLike, NumpyArray, NumpyDType
from chainrule._src.jacobians.ordering import TermBlock, entries_in_order
from chainrule._src.jacobians.terms import IndexArray, Term, Variable, flatten_array
from chainrule._src.table.indexing import take_add
from chainrule._src.tape.dispatch import bind

ndarray = np.ndarray
Matrix = NumpyArray

_NUMBERS = (int, float, complex, np.generic)


# -- the numbers of terms ---------------------------------------------------------------------------------------------


def has_plain_vals(terms: Iterable[Term]) -> bool:
    """Return whether all numbers are NumPy's or Python's, so that matrices can be written in place."""
    return all([type(term.vals) is ndarray or isinstance(term.vals, _NUMBERS) for term in terms])


def dtype_of_terms(terms: Sequence[Term]) -> NumpyDType:
    """Return the dtype to which the numbers of terms promote; Python numbers are weakly typed."""
    numbers = [term.vals for term in terms if isinstance(term.vals, (int, float, complex))]
    found = [dtype_of(term.vals) for term in terms if not isinstance(term.vals, (int, float, complex))]
    if not found:
        found = [term.source.dtype for term in terms] or [np.dtype(np.float64)]
    return np.result_type(*found, *numbers)


def _cast(x: Any, dtype: NumpyDType) -> Any:
    """Cast an array-like to a dtype; raise TypeError if complex numbers would become real."""
    have = dtype_of(x)
    if have == dtype:
        return x
    if not np.can_cast(have, dtype, "same_kind"):
        raise TypeError(f"a Jacobian of {np.dtype(dtype).name} cannot hold derivatives of {have.name}")
    return np.astype(x, dtype)


# -- sparse matrices --------------------------------------------------------------------------------------------------


class CsrMatrix(NamedTuple):
    """A matrix in CSR format, as in ``scipy.sparse.csr_array``; the columns of a row ascend, without duplicates."""

    indptr: IndexArray
    indices: IndexArray
    data: Any
    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        """Number of stored entries, explicit zeros included."""
        return len(self.indices)

    def row_numbers(self) -> IndexArray:
        """Return the row of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    @property
    def positions(self) -> IndexArray:
        """The position of each entry in the flat matrix."""
        return self.row_numbers() * self.shape[1] + self.indices

    def term(self, source: Variable) -> Term:
        cols = self.indices[None].astype(np.intp, copy=False)
        return Term(source, cols, np.reshape(self.data, (1, -1)), self.row_numbers())

    def dense(self) -> AnyArray:
        m, n = self.shape
        if type(self.data) is ndarray:
            J = zeros((m, n), self.data.dtype)
            J.reshape(-1)[self.positions] = self.data
            return J
        spread = bind(take_add, (self.data, self.positions), {"axis": -1, "length": m * n})
        return np.reshape(spread, (m, n))

    def transposed(self) -> CsrMatrix:
        order = self.indices.argsort(kind="stable")
        indptr: Any = np.zeros(self.shape[1] + 1, self.indptr.dtype)
        np.cumsum(np.bincount(self.indices, minlength=self.shape[1]), out=indptr[1:])
        rows = self.row_numbers().take(order).astype(self.indices.dtype)
        return CsrMatrix(indptr, rows, np.take(self.data, order), self.shape[::-1])

    def symmetrized(self) -> CsrMatrix:
        """Return ``(A + Aᵀ) / 2``: its entries are those of A and Aᵀ, and exactly symmetric."""
        if np.array_equal(self.indices, self.row_numbers()):  # a diagonal matrix
            return self
        return self.averaged(self.transposed())

    def averaged(self, other: CsrMatrix) -> CsrMatrix:
        """Return ``(A + B) / 2`` for two matrices of one shape: its entries are those of A and B."""
        if np.array_equal(other.indptr, self.indptr) and np.array_equal(other.indices, self.indices):
            return self._replace(data=(self.data + other.data) / 2)
        variable = Variable(self.shape[1:], dtype_of(self.data))
        both = [self.term(variable), other.term(variable)]
        found = EntryPattern.of(both, self.shape[:1], variable.size).matrix(both)
        return found._replace(data=found.data / 2)


def scatter_rows(rows: AnyArray, where: IndexArray, count: int) -> Any:
    """Scatter rows to the positions ``where`` of a matrix with ``count`` rows; other rows are zero."""
    if len(where) == count and bool((where[1:] > where[:-1]).all()):
        return rows
    source = np.full(count, len(where))
    source[where] = np.arange(len(where))
    if len(where) < count:
        rows = np.concatenate([rows, np.zeros((1, *shape_of(rows)[1:]), dtype_of(rows))])
    return np.take(rows, source, 0)


class EntryPattern:
    """The positions of a sparse matrix's entries, and the indices of their numbers in the pool.

    Attributes:
        shape: of the matrix.
        indptr, indices: as in ``scipy.sparse.csr_array``; the columns of a row ascend, without duplicates.
        pool: length of the pool of numbers.
        order: for each summand, in the order of positions, its index in the pool; None if the pool is in order.
        starts: for each entry of the matrix, the index of its first summand; None if no two entries share a position.
    """

    __slots__ = ("indices", "indptr", "order", "pool", "shape", "starts")

    def __init__(self, blocks: Sequence[TermBlock], shape: tuple[int, int]) -> None:
        self.shape = shape
        columns, sources, indptr, self.pool = entries_in_order(blocks, shape)
        self.starts: IndexArray | None = None
        first = np.ones(len(columns), bool)
        np.not_equal(columns[1:], columns[:-1], out=first[1:])
        if not first.all():
            first[indptr[:-1][indptr[:-1] < indptr[1:]]] = True
            if not first.all():
                self.starts = np.flatnonzero(first)
                columns, indptr = columns[self.starts], self.starts.searchsorted(indptr).astype(indptr.dtype)
        self.indptr, self.indices = indptr, columns
        if sources is not None and self.pool == len(sources) and (sources[1:] > sources[:-1]).all():
            sources = None
        self.order = sources

    @classmethod
    def of(cls, terms: Sequence[Term], out_shape: tuple[int, ...], size: int) -> EntryPattern:
        """Return the pattern of the Jacobian of a value with respect to a variable of ``size`` elements."""
        m = math.prod(out_shape)
        return cls([(terms, m, 0, 0)], (m, size))

    @property
    def nnz(self) -> int:
        """Number of stored entries, explicit zeros included."""
        return len(self.indices)

    def data(self, terms: Sequence[Term], dtype: DTypeLike = None) -> Any:
        """Return the entries in the order of ``indices``, from terms with the integers of the pattern.

        Args:
            terms: all terms of all blocks, in order.
            dtype: of the result; by default, the promoted dtype of the numbers.

        Returns:
            An array of shape ``(nnz,)``, or a tensor or a value of a transformation if terms contain one.
        """
        pool = _pool(terms, dtype_of_terms(terms) if dtype is None else np.dtype(dtype))
        if shape_of(pool) != (self.pool,):
            raise ValueError(f"the pattern has {self.pool} numbers, but the terms have {shape_of(pool)[0]}")
        ordered = pool if self.order is None else np.take(pool, self.order)
        data = ordered if self.starts is None else np.add.reduceat(ordered, self.starts)
        return data.copy() if data is pool and type(pool) is ndarray and len(terms) == 1 else data

    def row_numbers(self) -> IndexArray:
        """Return the row of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    @property
    def positions(self) -> IndexArray:
        """The position of each entry in the flat matrix."""
        return self.row_numbers() * self.shape[1] + self.indices

    def matrix(self, terms: Sequence[Term], dtype: DTypeLike = None) -> CsrMatrix:
        """Return the matrix with the numbers of terms. (Arguments: see ``data``.)"""
        return CsrMatrix(self.indptr, self.indices, self.data(terms, dtype), self.shape)

    def __repr__(self) -> str:
        return f"<pattern {self.shape[0]} × {self.shape[1]}, {self.nnz} entries>"


#: the patterns of a plan, by block (see ``plan_cache``)
KnownPatterns = dict[Any, EntryPattern]


def pattern_from(
    known: KnownPatterns | None, key: object, blocks: Sequence[TermBlock], shape: tuple[int, int]
) -> EntryPattern:
    """Return a pattern from the known patterns; compute and add it if it is missing.

    The arrays of a known pattern are read-only, because several Jacobians share them.
    """
    if known is None:
        return EntryPattern(blocks, shape)
    found = known.get(key)
    if found is None:
        found = EntryPattern(blocks, shape)
        for integers in (found.indptr, found.indices):
            integers.flags.writeable = False
        known[key] = found
    return found


def _pool(terms: Sequence[Term], dtype: NumpyDType) -> Any:
    """Concatenate the numbers of all terms."""
    parts = [
        _cast(flatten_array(np.asarray(v) if isinstance(v, _NUMBERS) else v), dtype) for v in [t.vals for t in terms]
    ]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


# -- dense matrices ---------------------------------------------------------------------------------------------------


def dense_of_terms(
    terms: Sequence[Term], out_shape: tuple[int, ...], variable_shape: tuple[int, ...], dtype: NumpyDType | None = None
) -> AnyArray:
    """Return the Jacobian of shape ``(*out_shape, *variable_shape)``.

    It is a new array, or a tensor or a value of a transformation if terms contain one.
    """
    shape = (*out_shape, *variable_shape)
    m, n = math.prod(out_shape), math.prod(variable_shape)
    dtype = dtype_of_terms(terms) if dtype is None else np.dtype(dtype)
    if not has_plain_vals(terms):
        return np.reshape(EntryPattern.of(terms, out_shape, n).matrix(terms, dtype).dense(), shape)
    J = zeros((m, n), dtype)
    add_into(J, (terms, m, 0, 0))
    return J.reshape(shape)


def add_into(J: Matrix, block: TermBlock) -> None:
    """Add terms of plain numbers to a block of zeros in a contiguous matrix."""
    terms, m, first_row, first_column = block
    untouched = True
    others = []
    for term in terms:
        view = _entries_view(J, term, first_row, first_column)
        if view is None:
            others.append(term)
            continue
        vals = _cast(np.asarray(term.vals), J.dtype)
        if view.strides[0] == 0 and term.slots > 1:  # all slots of a row have the same position
            vals = np.add.reduce(np.broadcast_to(vals, term.cols.shape), 0, keepdims=True)
            view = view[:1]
        if untouched:
            view[...] = vals
        else:
            view += vals
        untouched = False
    if others:
        pattern = EntryPattern([(others, m, first_row, first_column)], J.shape)
        data = pattern.data(others, J.dtype)
        if untouched:
            J.reshape(-1)[pattern.positions] = data
        else:
            J.reshape(-1)[pattern.positions] += data


def _entries_view(J: Matrix, term: Term, first_row: int, first_column: int) -> Matrix | None:
    """Return the positions of a term's entries as a strided view of the matrix; None if they are not."""
    cols, rows = term.cols, term.rows
    if not term.affine or not cols.size:
        return None
    if rows is not None:
        if not _ascends_by_one(rows):
            return None
        first_row += int(rows[0])
    height, width = J.strides
    corner = first_row * height + (first_column + int(cols[(0,) * cols.ndim])) * width
    strides = [step // cols.itemsize * width for step in cols.strides]
    for axis in range(cols.ndim - 1, 0, -1):
        strides[axis] += height
        height *= cols.shape[axis]
    return np.ndarray(cols.shape, J.dtype, J, corner, strides)


def _ascends_by_one(rows: IndexArray) -> bool:
    return bool(rows[-1] - rows[0] == len(rows) - 1) and bool((rows[1:] - rows[:-1] == 1).all())
