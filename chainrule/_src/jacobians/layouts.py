"""Convert terms to the requested layout: arrays, SciPy sparse arrays or ``Jacobian`` objects, as blocks or as one matrix.

``api`` calls ``lay_out_blocks`` and ``lay_out_matrix``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.memory import zeros
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, NumpyDType
from chainrule._src.jacobians.assemble import KnownPatterns, add_into, dense_of_terms, dtype_of_terms, has_plain_vals
from chainrule._src.jacobians.ordering import TermBlock
from chainrule._src.jacobians.result import Jacobian
from chainrule._src.jacobians.terms import Term, Variable
from chainrule._src.transforms.arguments import as_caller_type
from chainrule._src.transforms.dense import MEMORY, check_size, check_sizes, result_limit

Grid = list[list[Any]]

SPARSE = ("csr", "csc", "coo")
#: ``layout="auto"`` is sparse below this density.
SPARSE_BELOW = 0.3


def lay_out_blocks(
    found: Sequence[Sequence[Sequence[Term]]],
    results: Sequence[Any],
    variables: Sequence[Variable],
    layout: str,
    tensors: bool,
    symmetric: bool = False,
    memory: int = MEMORY,
    patterns: KnownPatterns | None = None,
) -> Grid:
    """Return for each result its Jacobian with respect to each variable.

    Args:
        found: the terms, for each result, for each variable.
        results: the values; only their shapes and dtypes are used.
        layout: "dense", "csr", "csc", "coo", "structured" or "auto".
        tensors: whether the caller works with tensors.
        symmetric: whether they are a Hessian's blocks, which are made exactly symmetric.
        memory: a dense Jacobian may take 16 times as many bytes.
        patterns: the patterns of matrices of terms with the same rows and columns, if there are any.
    """
    if layout == "dense" and not symmetric:
        return [
            [_dense(terms, y, v, tensors, memory) for terms, v in zip(row, variables, strict=True)]
            for row, y in zip(found, results, strict=True)
        ]
    kept = layout == "structured"
    grid: Grid = [
        [
            Jacobian(
                terms,
                shape_of(y),
                v.shape,
                entry_dtype(terms, y, v),
                symmetric and i == j,
                tensors,
                kept,
                (patterns, (i, j)),
            )
            for j, (terms, v) in enumerate(zip(row, variables, strict=True))
        ]
        for i, (row, y) in enumerate(zip(found, results, strict=True))
    ]
    if symmetric:
        for i, j in itertools.combinations(range(len(grid)), 2):
            grid[i][j] = (grid[i][j] + grid[j][i].T) / 2
            grid[j][i] = grid[i][j].T
    return [[_lay_out(J, layout, memory) for J in row] for row in grid]


def lay_out_matrix(
    found: Sequence[Sequence[Sequence[Term]]],
    results: Sequence[object],
    variables: Sequence[Variable],
    layout: str,
    tensors: bool,
    symmetric: bool = False,
    memory: int = MEMORY,
    patterns: KnownPatterns | None = None,
) -> Any:
    """Return all Jacobians as one matrix: a row block for each result, a column block for each variable.

    (Arguments: see ``lay_out_blocks``.)
    """
    every, first_row = [], 0
    for row, y in zip(found, results, strict=True):
        m, first_column = math.prod(shape_of(y)), 0
        for terms, v in zip(row, variables, strict=True):
            every.append((terms, m, first_row, first_column))
            first_column += v.size
        first_row += m
    shape = first_row, sum([v.size for v in variables])
    dtype = np.result_type(
        *[
            entry_dtype(terms, y, v)
            for row, y in zip(found, results, strict=True)
            for terms, v in zip(row, variables, strict=True)
        ]
    )
    if layout == "dense" and not symmetric and all([has_plain_vals(block[0]) for block in every]):
        return as_caller_type(_dense_matrix(every, shape, dtype, memory), tensors)
    return _lay_out(Jacobian.stacked(every, shape, dtype, symmetric, tensors, patterns), layout, memory)


def check_dense(results: Sequence[object], variables: Sequence[Variable], hstack: bool, memory: int) -> None:
    """Raise ValueError if a dense Jacobian (with ``hstack``, all together) takes too much memory."""
    if hstack:
        m, n = sum([math.prod(shape_of(y)) for y in results]), sum([v.size for v in variables])
        check_size((m,), (n,), np.result_type(*map(dtype_of, results)), result_limit(memory))
        return
    check_sizes(results, variables, memory)


def entry_dtype(terms: Sequence[Term], y: object, v: Variable) -> NumpyDType:
    """Return the dtype of a Jacobian's entries: the value's dtype, or complex if terms or variable are complex."""
    kinds = (v.dtype.kind, dtype_of_terms(terms).kind)
    return np.result_type(dtype_of(y), np.complex64) if "c" in kinds else dtype_of(y)


def _dense(terms: Sequence[Term], y: AnyArray, v: Variable, tensors: bool, memory: int) -> Any:
    dtype = entry_dtype(terms, y, v)
    check_size(shape_of(y), v.shape, dtype, result_limit(memory))
    return as_caller_type(dense_of_terms(terms, shape_of(y), v.shape, dtype), tensors)


def _dense_matrix(every: Sequence[TermBlock], shape: tuple[int, int], dtype: NumpyDType, memory: int) -> Any:
    check_size(shape[:1], shape[1:], dtype, result_limit(memory))
    J = zeros(shape, dtype)
    for block in every:
        add_into(J, block)
    return J


def _lay_out(J: Jacobian, layout: str, memory: int) -> Any:
    if layout == "structured":
        return J
    if layout == "auto":
        m, n = J.matrix_shape
        layout = "csr" if has_plain_vals(J.terms) and J.nnz < SPARSE_BELOW * m * n else "dense"
    if layout in SPARSE:
        return J.to_scipy(layout, copy=False)
    check_size(J.out_shape, J.in_shape, J.dtype, result_limit(memory))
    return J.to_dense()
