"""Matrices that are block diagonal once their rows and columns are put in order, with blocks of one size.

Diagonal matrices (blocks of one entry), dense ones (one block) and what happens to each example of a batch alike. Products,
solutions and transposes of them are those of their blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyDType
from chainrule._src.jacobians.assemble import Sparse, placed
from chainrule._src.jacobians.terms import IndexArray, Term, Variable

ndarray = np.ndarray


class Blocks:
    """``k`` blocks of ``p`` rows and ``q`` columns.

    Attributes:
        vals: the entries, ``(k, p, q)``.
        rows: where the blocks' rows are in the matrix, ``(k, p)``, each row once.
        cols: likewise their columns, ``(k, q)``.
        shape: of the matrix. What is in no block is zero.
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
        """Whether it is a diagonal matrix whose entries are all there."""
        m, n = self.shape
        return self.rows.shape == self.cols.shape == (m, 1) and m == n and bool((self.rows == self.cols).all())

    @property
    def dense(self) -> bool:
        """Whether it is one block, the matrix itself."""
        return self.rows.shape == (1, self.shape[0]) and self.cols.shape == (1, self.shape[1])

    def matrix(self) -> Any:
        """The matrix, if it is dense."""
        vals = np.reshape(self.vals, self.shape)
        for axis, places in enumerate((self.rows, self.cols)):
            if not _in_order(places):
                vals = np.take(vals, places[0].argsort(), axis)
        return vals

    def transposed(self) -> Blocks:
        return Blocks(np.swapaxes(self.vals, 1, 2), self.cols, self.rows, self.shape[::-1])

    def times(self, x: Any) -> Any:
        """The product with a matrix ``(n, c)``."""
        found = np.matmul(self.vals, np.take(x, self.cols, 0))
        return _spread(found, self.rows, self.shape[0])

    def solution(self, b: Any) -> Any:
        """The solution of a system with right sides ``(m, c)``, where all blocks are square and cover the matrix.

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
        """The product with another such matrix, if it has blocks where this one's columns are."""
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
        """The matrix as one term, with a row for each element of a value of shape ``out_shape`` if all have one."""
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
    """Columns as a strided view of the variable's seed, if they are one; otherwise as they are."""
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


def _in_order(places: IndexArray) -> bool:
    flat = places.reshape(-1)
    return not flat.size or (flat[0] == 0 and bool((flat[1:] - flat[:-1] == 1).all()))


def _spread(found: AnyArray, places: IndexArray, length: int) -> Any:
    """The rows of blocks' results ``(k, p, c)`` at their places among ``length``."""
    return placed(np.reshape(found, (places.size, shape_of(found)[-1])), places.reshape(-1), length)


# -- finding blocks ----------------------------------------------------------------------------------------------------


def blocks_of_terms(terms: Sequence[Term], out_shape: tuple[int, ...], size: int, dtype: NumpyDType) -> Blocks | None:
    """The blocks that terms are, if their columns are the same linear function of the indices; else None.

    It looks at strides alone, so it costs next to nothing, and doesn't find all there are.
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
    """Whether indices along axes with these (lengths, steps) all lead to different places."""
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


def blocks_of_sparse(matrix: Sparse) -> Blocks | None:
    """The blocks that the entries of a sparse matrix form: rows with the same columns, that no other row has."""
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
