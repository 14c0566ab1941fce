"""Products and linear systems with sparse matrices. The sparsity pattern is constant; the entries are an operand.

``ops.sparse`` and ``chainrule.sparse`` call the primitives.

SciPy computes. The module is loaded when the first sparse matrix is used, and its primitives are not in ``TABLE``.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyArray, Params
from chainrule._src.messages import errors
from chainrule._src.rules.batching import apply_primitive, broadcast_batch
from chainrule._src.rules.kinds import linear, opaque
from chainrule._src.rules.primitive import Primitive
from chainrule._src.rules.rules import conjugate

ndarray = np.ndarray


def scipy_sparse(caller: str = "a sparse matrix") -> Any:
    """Import and return ``scipy.sparse``.

    Raises:
        ImportError: SciPy is not installed.
    """
    try:
        from scipy import sparse
        from scipy.sparse import linalg  # noqa: F401 -- makes it an attribute of ``sparse``
    except ImportError:
        raise errors.needs_scipy(caller) from None
    return sparse


def is_increasing(numbers: NumpyArray) -> bool:
    """Return whether the numbers are strictly increasing: sorted, without duplicates."""
    return bool((numbers[1:] > numbers[:-1]).all())


class SparsityPattern:
    """The sparsity pattern of a matrix, row by row, in the format of ``scipy.sparse.csr_array``.

    Attributes:
        indices: the column of each entry.
        indptr: the start of each row's entries, and the end of the last row's.
        shape: the numbers of rows and of columns.
    """

    def __init__(self, indices: NumpyArray, indptr: NumpyArray, shape: tuple[int, int], matrix: Any = None) -> None:
        """Make a pattern; ``matrix``, a SciPy matrix with this pattern, is reused for its own entries."""
        self.indices = indices
        self.indptr = indptr
        self.shape = shape
        self._matrix = matrix
        self._factored: tuple[Any, Any] = None, None

    @functools.cached_property
    def rows(self) -> NumpyArray:
        """The row of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def coordinates(self, transposed: bool) -> tuple[NumpyArray, NumpyArray]:
        """Return the row and column of each entry, of the matrix or of its transpose."""
        return (self.indices, self.rows) if transposed else (self.rows, self.indices)

    @functools.cached_property
    def unique(self) -> bool:
        """Whether no two entries have the same position."""
        at = self.rows.astype(np.intp) * self.shape[1] + self.indices
        return is_increasing(at) or len(np.unique(at)) == len(at)

    @functools.cache  # noqa: B019 -- a pattern lives as long as its matrix
    def numbered(self, kind: str, transposed: bool) -> Any:
        """Return a SciPy matrix in the format ``kind`` with the entries 1, 2, 3 …, to find the entries that an index selects."""
        numbers = np.arange(1, len(self.indices) + 1)
        found = getattr(scipy_sparse(), kind)((numbers, self.indices, self.indptr), shape=self.shape)
        return found.T if transposed else found

    def matrix(self, data: ndarray, transposed: bool = False) -> Any:
        """Return the SciPy matrix with these entries."""
        found = self._matrix
        if found is None or found.data is not data:
            found = scipy_sparse().csr_array((data, self.indices, self.indptr), shape=self.shape)
        return found.T if transposed else found

    def blocks(self, count: int) -> SparsityPattern:
        """Return the pattern of a block diagonal matrix whose blocks have this pattern."""
        m, n = self.shape
        steps = np.arange(count)[:, None]
        indices = (self.indices + steps * n).reshape(-1)
        indptr = np.append((self.indptr[:-1] + steps * len(self.indices)).reshape(-1), count * len(self.indices))
        return SparsityPattern(indices, indptr, (count * m, count * n))

    def factors(self, data: ndarray) -> Any:
        """Return SuperLU's factors of the matrix. The last factors are cached, because derivatives solve with them again.

        Raises:
            numpy.linalg.LinAlgError: the matrix is singular.
        """
        known, factors = self._factored
        if known is not None and known.dtype == data.dtype and np.array_equal(known, data):
            return factors
        try:
            factors = scipy_sparse().linalg.splu(self.matrix(data).tocsc())
        except RuntimeError as error:
            raise np.linalg.LinAlgError(f"the sparse matrix of shape {self.shape} is singular: {error}") from None
        self._factored = data.copy(), factors
        return factors


# -- the primitives ----------------------------------------------------------------------------------------------------


def _batch(prim: Primitive, payloads: Any, batched: Any, size: int, params: Params) -> Any:
    """Batch vectors as columns of one matrix, and matrices as blocks of one block diagonal matrix."""
    data, x = payloads
    pattern = params["pattern"]
    m, n = pattern.shape[::-1] if params["transposed"] else pattern.shape
    if prim.name == "sparse_solve":
        m, n = n, m
    if not batched[0]:
        rest = shape_of(x)[2:]
        columns = np.reshape(np.moveaxis(x, 0, -1), (n, math.prod(rest) * size))
        return np.moveaxis(np.reshape(apply_primitive(prim, (data, columns), params), (m, *rest, size)), -1, 0)
    x = x if batched[1] else broadcast_batch(x, size)
    rest = shape_of(x)[2:]
    operands = np.reshape(data, (size * len(pattern.indices),)), np.reshape(x, (size * n, *rest))
    return np.reshape(apply_primitive(prim, operands, {**params, "pattern": pattern.blocks(size)}), (size, m, *rest))


def _at_pattern(g: AnyArray, x: AnyArray, pattern: SparsityPattern, transposed: bool) -> Any:
    """Return the elements of ``g @ xᴴ`` at the positions of the entries."""
    rows, columns = pattern.coordinates(transposed)
    products = np.take(g, rows, 0) * conjugate(np.take(x, columns, 0))
    return products if len(shape_of(g)) == 1 else np.sum(products, -1)


def _product_vjp(g: AnyArray, data: AnyArray, pattern: SparsityPattern, transposed: bool) -> Any:
    return sparse_matmul(conjugate(data), g, pattern=pattern, transposed=not transposed)


@opaque(
    vjp={
        "data": lambda g, x, pattern, transposed: _at_pattern(g, x, pattern, transposed),
        "x": lambda g, data, pattern, transposed: _product_vjp(g, data, pattern, transposed),
    },
    multilinear=True,
    batch=_batch,
    formula={"data": "(g @ x.T)[rows, columns]", "x": "A.T @ g"},
    structure="entries",
    listed=False,
)
def sparse_matmul(data: Any, x: Any, *, pattern: Any, transposed: Any) -> Any:
    """Return the product of a sparse matrix and a vector or the columns of a dense matrix."""
    return pattern.matrix(np.asarray(data), transposed) @ np.asarray(x)


def _transposed_solution(g: AnyArray, data: AnyArray, pattern: SparsityPattern, transposed: bool) -> Any:
    """Return ``A⁻ᴴ g``, computed with the factors of A."""
    return conjugate(sparse_solve(data, conjugate(g), pattern=pattern, transposed=not transposed))


@opaque(
    shared={"gy": lambda g, data, pattern, transposed: _transposed_solution(g, data, pattern, transposed)},
    vjp={
        "data": lambda gy, out, pattern, transposed: -_at_pattern(gy, out, pattern, transposed),
        "y": lambda gy: gy,
    },
    jvp={
        "data": lambda t, data, out, pattern, transposed: (
            -sparse_solve(
                data,
                sparse_matmul(t, out, pattern=pattern, transposed=transposed),
                pattern=pattern,
                transposed=transposed,
            )
        ),
        "y": lambda t, data, pattern, transposed: sparse_solve(data, t, pattern=pattern, transposed=transposed),
    },
    batch=_batch,
    formula={"data": "-(gy @ out.T)[rows, columns]", "y": "np.linalg.solve(A.T, g)"},
    listed=False,
)
def sparse_solve(data: Any, y: Any, *, pattern: Any, transposed: Any) -> Any:
    """Return the solution x of A x = y, for a sparse matrix A and a vector y or the columns of a dense matrix y."""
    data, y = np.asarray(data), np.asarray(y)
    dtype = np.result_type(data, y, np.float32)
    if not y.size:
        return np.zeros(y.shape, dtype)
    return pattern.factors(data.astype(dtype)).solve(y.astype(dtype), "T" if transposed else "N")


def _operator_batch(prim: Primitive, payloads: Any, batched: object, size: int, params: Params) -> Any:
    (x,) = payloads
    n, *rest = shape_of(x)[1:]
    columns = np.reshape(np.moveaxis(x, 0, -1), (n, math.prod(rest) * size))
    out = apply_primitive(prim, (columns,), params)
    return np.moveaxis(np.reshape(out, (shape_of(out)[0], *rest, size)), -1, 0)


@linear(
    transpose=lambda g, operator: operator_matmul(g, operator=operator.H),
    batch=_operator_batch,
    formula="A.H @ g",
    listed=False,
)
def operator_matmul(x: Any, *, operator: Any) -> Any:
    """Return the product of a constant ``scipy.sparse.linalg.LinearOperator`` and a vector or the columns of a matrix."""
    x = np.asarray(x)
    return operator.matvec(x) if x.ndim == 1 else operator.matmat(x)
