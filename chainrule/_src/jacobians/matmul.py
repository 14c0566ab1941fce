"""Multiply sparse matrices with each other, and with dense matrices.

``products`` and ``result`` call these functions.

The pattern of a product depends only on the patterns of the factors: entries whose sum is zero are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import call_as_one_operation, is_recorded
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.jacobians.assemble import CsrMatrix, EntryPattern, scatter_rows
from chainrule._src.jacobians.terms import Term, Variable
from chainrule._src.table.indexing import take_add
from chainrule._src.tape.dispatch import bind

ndarray = np.ndarray


#: From this number of multiplications on, SciPy is loaded.
_MANY = 30_000


def multiply_by_dense(a: CsrMatrix, x: Any) -> Any:
    """Return the product with a dense matrix ``(n, c)``."""
    count = shape_of(x)[1]
    if type(a.data) is type(x) is ndarray and a.nnz * count >= _MANY and _scipy() is not None:
        return _class(a) @ x
    filled = np.flatnonzero(np.diff(a.indptr))
    if not filled.size:
        return np.zeros((a.shape[0], count), np.result_type(dtype_of(a.data), dtype_of(x)))
    products = np.reshape(a.data, (-1, 1)) * np.take(x, a.indices, 0)
    return scatter_rows(np.add.reduceat(products, a.indptr[filled], axis=0), filled, a.shape[0])


def multiply_transpose_by_dense(a: CsrMatrix, x: Any) -> Any:
    """Return the product of the transpose with a dense matrix ``(m, c)``."""
    n, count = a.shape[1], shape_of(x)[1]
    if type(a.data) is type(x) is ndarray and a.nnz * count >= _MANY and _scipy() is not None:
        return _class(a).T @ x
    rows, cols = a.row_numbers(), a.indices.astype(np.intp, copy=False)
    if count == 1:
        found = a.data * np.take(np.reshape(x, (-1,)), rows)
        return np.reshape(bind(take_add, (found, cols), {"axis": -1, "length": n}), (n, 1))
    products = np.reshape(a.data, (-1, 1)) * np.take(x, rows, 0)
    return bind(take_add, (products, cols), {"axis": -2, "length": n})


def _class(a: CsrMatrix) -> Any:
    from scipy import sparse

    return sparse.csr_array((a.data, a.indices, a.indptr), shape=a.shape)


def multiply_sparse(a: CsrMatrix, b: CsrMatrix) -> CsrMatrix:
    """Return the product, with ascending columns in each row."""
    return sort_rows(multiply_unsorted(a, b))


def multiply_unsorted(a: CsrMatrix, b: CsrMatrix) -> CsrMatrix:
    """Return the product; the columns in a row of the factors and of the result may be in any order."""
    tools = _scipy()
    if tools is not None:
        if type(a.data) is ndarray and type(b.data) is ndarray:
            return _by_scipy(tools, a, b)
        if is_recorded(a.data) or is_recorded(b.data):
            product = FixedProduct(a, b)
            return CsrMatrix(
                product.indptr, product.indices, call_as_one_operation(product.data, a.data, b.data), product.shape
            )
    return _by_entries(a, b)


def sort_rows(a: CsrMatrix) -> CsrMatrix:
    """Return the matrix with ascending columns in each row; this may sort its arrays in place."""
    tools = _scipy()
    if tools is not None and type(a.data) is ndarray:
        tools.csr_sort_indices(a.shape[0], a.indptr, a.indices, a.data)
    return a


def _scipy() -> Any:
    """Return SciPy's functions on CSR arrays, or None. (SciPy's classes drop zero entries, and count entries twice.)"""
    try:
        from scipy.sparse import _sparsetools
    except ImportError:
        return None
    return _sparsetools if hasattr(_sparsetools, "csr_matmat_maxnnz") else None


def _by_scipy(tools: object, a: CsrMatrix, b: CsrMatrix) -> CsrMatrix:
    count = _count(tools, a, b)
    indptr, indices, data = _run(tools, a, b, a.data, b.data, count)
    if indptr[-1] == count:
        return CsrMatrix(indptr, indices, data, (a.shape[0], b.shape[1]))
    product = FixedProduct(a, b)
    return CsrMatrix(product.indptr, product.indices, product.data(a.data, b.data), product.shape)


def _count(tools: Any, a: CsrMatrix, b: CsrMatrix) -> int:
    """Return the number of entries of the product."""
    arrays = _alike([a.indptr, a.indices, b.indptr, b.indices], np.int32)
    return int(tools.csr_matmat_maxnnz(a.shape[0], b.shape[1], *arrays))


def _run(tools: Any, a: CsrMatrix, b: CsrMatrix, x: Any, y: Any, count: int) -> tuple[Any, Any, Any]:
    """Return the product with entries x and y, without zero entries."""
    m, n = a.shape[0], b.shape[1]
    ap, aj, bp, bj = _alike([a.indptr, a.indices, b.indptr, b.indices], np.int32 if count < 2**31 else np.int64)
    dtype = np.result_type(x, y)
    x, y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
    indptr, indices, data = np.empty(m + 1, ap.dtype), np.empty(count, ap.dtype), np.empty(count, dtype)
    tools.csr_matmat(m, n, ap, aj, x, bp, bj, y, indptr, indices, data)
    found = int(indptr[-1])
    return indptr, indices[:found], data[:found]


def _alike(arrays: Sequence[AnyArray], kind: type) -> list[AnyArray]:
    """Cast integer arrays to a common type, at least ``kind``."""
    common = np.result_type(kind, *arrays)
    return [x.astype(common, copy=False) for x in arrays]


class FixedProduct:
    """The pattern of the product of two patterns, reused for several products with other numbers.

    Attributes:
        indptr, indices: the pattern of the product; the columns of a row are in any order.
        shape: of the product.
    """

    def __init__(self, a: CsrMatrix, b: CsrMatrix) -> None:
        tools = _scipy()
        x, y = (np.ones(x.nnz, np.float32) for x in (a, b))  # sums of ones are not zero
        self.indptr, self.indices, _ = _run(tools, a, b, x, y, _count(tools, a, b))
        self.shape = a.shape[0], b.shape[1]
        self._factors = a._replace(data=None), b._replace(data=None)

    def data(self, x: AnyArray, y: AnyArray) -> Any:
        """Return the product's entries, from those of the factors."""
        count = len(self.indices)
        indptr, indices, data = _run(_scipy(), *self._factors, x, y, count)
        if indptr[-1] == count:
            return data
        n = self.shape[1]
        every, found = _positions(self.indptr, self.indices, n), _positions(indptr, indices, n)
        order = every.argsort()
        full = np.zeros(count, data.dtype)
        full[order[np.searchsorted(every, found, sorter=order)]] = data
        return full


def _positions(indptr: NumpyArray, indices: NumpyArray, n: int) -> Any:
    return np.repeat(np.arange(len(indptr) - 1) * n, np.diff(indptr)) + indices


def _by_entries(a: CsrMatrix, b: CsrMatrix) -> CsrMatrix:
    """Multiply every entry of a with the entries of the matching row of b, and sum products at the same position."""
    lengths = np.diff(b.indptr)[a.indices]
    ends = np.cumsum(lengths, dtype=np.intp)
    left = np.repeat(np.arange(len(a.indices)), lengths)
    right = np.arange(len(left)) + np.repeat(b.indptr[:-1][a.indices] - (ends - lengths), lengths)
    rows = a.row_numbers()[left]
    cols = b.indices[right][None].astype(np.intp, copy=False)
    vals = np.take(a.data, left) * np.take(b.data, right)
    met = [Term(Variable((b.shape[1],), vals.dtype), cols, np.reshape(vals, (1, -1)), rows)]
    return EntryPattern.of(met, a.shape[:1], b.shape[1]).matrix(met)
