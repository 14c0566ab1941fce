"""``Blocks``: matrices that are block diagonal after a permutation of rows and columns, with blocks of equal size.

Examples are diagonal matrices (blocks of one entry), dense matrices (one block), and operations applied to each example of a
batch. Products, solutions and transposes are computed block by block. ``products`` and ``solve`` use them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyDType
from chainrule._src.jacobians.assemble import CsrMatrix, scatter_rows
from chainrule._src.jacobians.terms import IndexArray, Term, Variable

ndarray = np.ndarray


class Blocks:
    """``k`` blocks of ``p`` rows and ``q`` columns.

    Attributes:
        vals: the entries, ``(k, p, q)``.
        rows: the matrix rows of the blocks, ``(k, p)``, without duplicates.
        cols: the matrix columns of the blocks, ``(k, q)``, without duplicates.
        shape: of the matrix. Elements outside of the blocks are zero.
    """

    __slots__ = ("cols", "rows", "shape", "vals")

    def __init__(self, vals: AnyArray, rows: IndexArray, cols: IndexArray, shape: tuple[int, int]) -> None:
        self.vals = vals
        self.rows = rows
        self.cols = cols
        self.shape = shape

    @property
    def size(self) -> int:
        return math.prod(shape_of(self.vals))

    @property
    def diagonal(self) -> bool:
        """Whether it is a diagonal matrix with all diagonal entries."""
        m, n = self.shape
        return self.rows.shape == self.cols.shape == (m, 1) and m == n and bool((self.rows == self.cols).all())

    @property
    def dense(self) -> bool:
        """Whether it is a single block that covers the matrix."""
        return self.rows.shape == (1, self.shape[0]) and self.cols.shape == (1, self.shape[1])

    def matrix(self) -> Any:
        """Return the matrix of a single block."""
        vals = np.reshape(self.vals, self.shape)
        for axis, positions in enumerate((self.rows, self.cols)):
            if not _in_order(positions):
                vals = np.take(vals, positions[0].argsort(), axis)
        return vals

    def transposed(self) -> Blocks:
        return Blocks(np.swapaxes(self.vals, 1, 2), self.cols, self.rows, self.shape[::-1])

    def times(self, x: Any) -> Any:
        """Return the product with a matrix ``(n, c)``."""
        found = np.matmul(self.vals, np.take(x, self.cols, 0))
        return _spread(found, self.rows, self.shape[0])

    def solution(self, b: Any) -> Any:
        """Return the solution of a system with right-hand sides ``(m, c)``; the blocks must be square and cover the matrix.

        Raises:
            numpy.linalg.LinAlgError: a block is singular.
        """
        rights = np.take(b, self.rows, 0)
        if self.cols.shape[1] == 1:
            found = rights / self.vals
        else:
            found = np.linalg.solve(self.vals, rights)
        return _spread(found, self.cols, self.shape[1])

    def product(self, other: Blocks) -> Blocks | None:
        """Return the product with another such matrix; None if its blocks do not match this one's columns."""
        shape = (self.shape[0], other.shape[1])
        if self.cols.shape[1] == other.rows.shape[1] == 1:
            partner = np.full(other.shape[0], -1)
            partner[other.rows[:, 0]] = np.arange(len(other.rows))
            met = partner[self.cols[:, 0]]
            if (met < 0).any():
                return None
            vals = np.matmul(self.vals, np.take(other.vals, met, 0))
            return Blocks(vals, self.rows, other.cols[met], shape)
        if np.array_equal(self.cols, other.rows):
            return Blocks(np.matmul(self.vals, other.vals), self.rows, other.cols, shape)
        if other.diagonal:
            scale = np.reshape(np.take(other.vals, self.cols, 0), (len(self.cols), 1, -1))
            return Blocks(self.vals * scale, self.rows, self.cols, shape)
        if self.diagonal:
            scale = np.reshape(np.take(self.vals, other.rows, 0), (len(other.rows), -1, 1))
            return Blocks(other.vals * scale, other.rows, other.cols, shape)
        return None

    def term(self, source: Variable, out_shape: tuple[int, ...]) -> Term:
        """Return the matrix as one term of a value of shape ``out_shape``; the term has explicit rows if some are missing."""
        p, q = self.rows.shape[1], self.cols.shape[1]
        order = self.rows.reshape(-1)
        covers = order.size == self.shape[0]
        cols = np.repeat(self.cols, p, axis=0)
        vals = np.reshape(self.vals, (order.size, q))
        if not covers:
            return Term(source, cols.T, np.swapaxes(vals, 0, 1), order)
        if not _in_order(order):
            where = order.argsort()
            cols, vals = cols.take(where, 0), np.take(vals, where, 0)
        shape = (q, *out_shape)
        columns = affine_view(cols.T.reshape(shape), source)
        return Term(source, columns, np.reshape(np.swapaxes(vals, 0, 1), shape))


def affine_view(cols: IndexArray, source: Variable) -> IndexArray:
    """Return columns as a strided view of the variable's seed if possible; else unchanged."""
    if not cols.size:
        return cols
    own = source.seed if source.seed.base is None else source.seed.base
    first = cols[(0,) * cols.ndim]
    steps = []
    for axis, length in enumerate(cols.shape):
        second = cols[tuple(int(a == axis) for a in range(cols.ndim))] if length > 1 else first
        steps.append(int(second - first))
    spans = [(length - 1) * step for length, step in zip(cols.shape, steps, strict=True)]
    low, high = sum([s for s in spans if s < 0]), sum([s for s in spans if s > 0])
    if first + low < 0 or first + high >= source.size:
        return cols
    size = own.itemsize
    view: IndexArray = np.ndarray(cols.shape, own.dtype, own, int(first) * size, [step * size for step in steps])
    return view if np.array_equal(view, cols) else cols


def _in_order(positions: IndexArray) -> bool:
    flat = positions.reshape(-1)
    return not flat.size or (flat[0] == 0 and bool((flat[1:] - flat[:-1] == 1).all()))


def _spread(found: AnyArray, positions: IndexArray, length: int) -> Any:
    """Scatter the rows of blocks' results ``(k, p, c)`` to a matrix with ``length`` rows."""
    return scatter_rows(np.reshape(found, (positions.size, shape_of(found)[-1])), positions.reshape(-1), length)


# -- finding blocks ----------------------------------------------------------------------------------------------------


def blocks_of_terms(terms: Sequence[Term], out_shape: tuple[int, ...], size: int, dtype: NumpyDType) -> Blocks | None:
    """Return terms as blocks if their columns are the same linear function of the indices; else None.

    Only strides are inspected. This is cheap, but does not find all blocks.
    """
    if not terms or any([t.rows is not None or not t.affine or _layout(t) != _layout(terms[0]) for t in terms]):
        return None
    cols = terms[0].cols
    if not cols.size:
        return None
    slots, *lengths = cols.shape
    slot_step, *steps = [s // cols.itemsize for s in cols.strides]
    batch = [a for a, (n, s) in enumerate(zip(lengths, steps, strict=True), 1) if n > 1 and s]
    rest = [a for a in range(1, cols.ndim) if a not in batch]
    if not _apart([(cols.shape[a], steps[a - 1]) for a in batch] + [(slots, slot_step)]):
        return None
    k, p = math.prod([cols.shape[a] for a in batch]), math.prod([cols.shape[a] for a in rest])
    m = math.prod(out_shape)
    order = [*batch, *rest, 0]
    rows = np.arange(m).reshape(out_shape).transpose([a - 1 for a in order[:-1]]).reshape(k, p)
    vals = _added([t.vals for t in terms], cols.shape, dtype)
    vals = np.reshape(np.transpose(vals, order), (k, p, slots))
    columns = cols.transpose(order).reshape(k, p, slots)[:, 0]
    return Blocks(vals, rows, columns, (m, size))


def _layout(term: Term) -> tuple[Any, ...]:
    cols = term.cols
    return (cols.__array_interface__["data"][0], cols.shape, cols.strides)


def _apart(axes: list[tuple[int, int]]) -> bool:
    """Return whether axes with these (lengths, steps) address distinct offsets."""
    reach = 0
    for length, step in sorted([(n, abs(s)) for n, s in axes if n > 1], key=lambda axis: axis[1]):
        if step <= reach:
            return False
        reach += step * (length - 1)
    return True


def _added(numbers: list[Any], shape: tuple[int, ...], dtype: NumpyDType) -> Any:
    total = numbers[0]
    for more in numbers[1:]:
        total = total + more
    if not shape_of(total) and not hasattr(total, "dtype"):
        total = np.asarray(total, dtype)
    elif total.dtype != dtype:
        total = np.astype(total, dtype)
    return np.broadcast_to(total, shape)


def blocks_of_sparse(matrix: CsrMatrix) -> Blocks | None:
    """Return the entries of a sparse matrix as blocks: rows with the same columns, which no other row has. Else None."""
    m, n = matrix.shape
    if not matrix.nnz or matrix.nnz % m or (np.diff(matrix.indptr) != matrix.nnz // m).any():
        return None
    q = matrix.nnz // m
    columns = matrix.indices.reshape(m, q).astype(np.intp)
    order = columns[:, 0].argsort(kind="stable")
    leaders = columns[order, 0]
    k = 1 + int((leaders[1:] != leaders[:-1]).sum())
    if m % k or k * q > n:
        return None
    groups = columns[order].reshape(k, m // k, q)
    if (groups != groups[:, :1]).any() or np.bincount(groups[:, 0].reshape(-1), minlength=n).max() > 1:
        return None
    vals = np.reshape(np.take(np.reshape(matrix.data, (m, q)), order, 0), (k, m // k, q))
    return Blocks(vals, order.reshape(k, -1), groups[:, 0], (m, n))
