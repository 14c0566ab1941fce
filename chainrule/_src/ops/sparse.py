"""Products of SciPy's sparse matrices and linear operators with tensors and Arrays: ``A @ u``, ``u @ A``.

``ops.array`` and ``chainrule.sparse`` call these functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import takes_arrays
from chainrule._src.api.operands import operand
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.table import sparse as primitives
from chainrule._src.table.sparse import SparsityPattern
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.foreign_operands import is_linear_operator


def entries_of(A: Any) -> tuple[Any, SparsityPattern, bool]:
    """Return a sparse SciPy matrix's entries, their sparsity pattern, and whether the pattern is that of the transpose."""
    transposed = A.format == "csc"
    stored = A.T if transposed else A.tocsr()
    return stored.data, SparsityPattern(stored.indices, stored.indptr, stored.shape, stored), transposed


def operator(symbol: str, x: Any, A: Any) -> Any:
    """Compute ``x @ A``, ``A @ x`` and, for SciPy's matrices (not its arrays), the products by ``*``.

    Args:
        symbol: the operator, as in ``tape.foreign_operands.operate_with_foreign``.
        x: a tensor or an Array.
        A: a SciPy sparse matrix or array, or a linear operator.

    Raises:
        TypeError: the result would not be a dense array.
    """
    matrix = is_linear_operator(A) or _is_matrix(A)
    if symbol in ("matmul", "rmatmul") or (matrix and symbol in ("mul", "rmul")):
        return product(A, x) if symbol.startswith("r") else left_product(x, A)
    sign = {"mul": "*", "add": "+", "sub": "-", "truediv": "/", "pow": "**"}.get(symbol.removeprefix("r"), symbol)
    raise TypeError(
        f"{sign} of a {type(A).__name__} and a {type(x).__name__} is elementwise: use A.toarray() {sign} x for a dense result, "
        "or chainrule.sparse.like(A, data), with data computed from A.data, for entries where A has them"
    )


def _is_matrix(A: object) -> bool:
    """Return whether ``*`` is the matrix product, as for every class but ``sparray``."""
    return not isinstance(A, primitives.scipy_sparse().sparray)


@takes_arrays
def product(A: Any, x: Any) -> Any:
    """Compute ``A @ x``, for a constant SciPy matrix or linear operator A.

    Raises:
        ValueError: the sizes don't match.
    """
    x = operand("matmul", 1, x)
    if is_linear_operator(A):
        check_product(A.shape, x, "A @ x")
        return bind(primitives.operator_matmul, (x,), {"operator": A})
    if A.ndim == 1:
        return product(A.reshape(1, -1), x)[0]
    check_product(A.shape, x, "A @ x")
    data, pattern, transposed = entries_of(A)
    return bind(primitives.sparse_matmul, (data, x), {"pattern": pattern, "transposed": transposed})


def left_product(x: Any, A: Any) -> Any:
    """Compute ``x @ A``."""
    transposed = A if A.ndim == 1 else A.T
    if A.ndim == 1 or x.ndim == 1:
        return product(transposed, x.T if x.ndim == 2 else x)
    return np.swapaxes(product(transposed, np.swapaxes(x, -1, -2)), -1, -2)


def check_product(shape: tuple[int, ...], x: Any, call: str) -> None:
    """Raise if a matrix of a shape has no product with x.

    Raises:
        ValueError: the sizes don't match, or x is a number or a stack of matrices.
    """
    have = tuple(shape_of(x))
    if len(have) not in (1, 2) or have[0] != shape[-1]:
        raise ValueError(
            f"{call}: a matrix of shape {tuple(shape)} has products with arrays of shape ({shape[-1]},) and "
            f"({shape[-1]}, k), not {have}"
        )
