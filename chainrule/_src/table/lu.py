"""LU decomposition with partial pivoting, of the matrices in the last two axes.

``ops.linalg.factors`` applies the primitives.

NumPy has no public function for it. NumPy's LAPACK is called directly where that is possible (``table.lapack``). Otherwise,
columns are eliminated recursively (Toledo, 1997, "Locality of reference in LU decomposition with partial
pivoting"), so that nearly all work is matrix products. The rules are those of Giles (2008), extended to non-square
matrices. With k = min(m, n), the first k rows of L and columns of U are a square decomposition. One triangular solution
computes the rest of either factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray
from chainrule._src.messages import errors
from chainrule._src.rules.kinds import call, discrete, opaque
from chainrule._src.table import lapack
from chainrule._src.table.lapack import order_in_python, order_of, swap_rows
from chainrule._src.table.linalg import (
    H,
    bad_minor,
    dependent_column,
    eye,
    inv,
    over,
    over_transposed,
    solve_triangular,
    transposed_solution,
)
from chainrule._src.tape.foreign import Foreign, constant_like

ndarray = np.ndarray
_NARROW = 8  # up to this width, columns are eliminated one by one


def _eliminate(x: Any, pivots: Any, start: int, stop: int) -> None:
    """Decompose columns ``start`` to ``stop`` of a stack of matrices in place, from row ``start`` down."""
    if stop - start > _NARROW:
        middle = (start + stop) // 2
        _eliminate(x, pivots, start, middle)
        lower = np.tril(x[:, start:middle, start:middle], -1) + np.eye(middle - start, dtype=x.dtype)
        x[:, start:middle, middle:stop] = np.linalg.solve(lower, x[:, start:middle, middle:stop])
        x[:, middle:, middle:stop] -= x[:, middle:, start:middle] @ x[:, start:middle, middle:stop]
        _eliminate(x, pivots, middle, stop)
        return
    for k in range(start, stop):
        column = x[:, k:, k]
        size = np.abs(column.real) + np.abs(column.imag) if x.dtype.kind == "c" else np.abs(column)
        pivots[:, k] = size.argmax(1) + k
        swap_rows(x, k, pivots[:, k])
        pivot = x[:, k, k, None]
        column = x[:, k + 1 :, k]
        np.divide(column, pivot, out=column, where=pivot != 0)
        x[:, k + 1 :, k + 1 : stop] -= x[:, k + 1 :, k, None] * x[:, k, None, k + 1 : stop]


@discrete(samples=[call(np.array([3, 2, 3]), rows=4), call(np.array([[2, 2], [1, 2]]), rows=2)])
def row_order(pivots: AnyArray, *, rows: int) -> AnyArray | None:
    """Return the row order after row exchanges, which are counted from 1 as in LAPACK."""
    return order_of(pivots, rows)


# -- which matrices cannot be decomposed -----------------------------------------------------------------------------


def _info(x: AnyArray, of_one: Callable[[Any], int]) -> AnyArray | None:
    numbers = x.inside if type(x) is Foreign else x  # an error for arrays that are not computed yet
    found = np.zeros(x.shape[:-2], np.int32)
    for index in np.ndindex(found.shape):
        found[index] = of_one(numbers[index])
    return constant_like(x, found)


def _singular(matrix: AnyArray) -> int:
    try:
        inv.value(matrix)
    except errors.LinAlgError:
        return dependent_column(matrix)
    return 0


@discrete(samples=[call((2, 3, 3))])
def inverse_info(x: AnyArray) -> AnyArray | None:
    """Return 0 for each invertible matrix, else its first linearly dependent column, counted from 1."""
    return _info(x, _singular)


@discrete(samples=[call((2, 3, 3))])
def cholesky_info(x: AnyArray) -> Any:
    """Return 0 for each positive definite matrix, else the order of its first leading minor that is not positive."""
    return _info(x, bad_minor)


# -- the parts of the factors ----------------------------------------------------------------------------------------


def _parts(lu: AnyArray, k: int) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Split the compact factors: L₁ (unit lower), L₂ below it, U₁ (upper), U₂ to its right."""
    square = lu[..., :k, :k]
    return np.tril(square, -1) + eye(k, lu), lu[..., k:, :k], np.triu(square), lu[..., :k, k:]


def _blocks(square: AnyArray, right: AnyArray | None, below: AnyArray | None, m: int, n: int) -> AnyArray:
    """Assemble [[square, right], [below]], of which one part is empty."""
    if n > m:
        return np.concatenate([square, right], axis=-1)
    return np.concatenate([square, below], axis=-2) if m > n else square


def reordered(x: AnyArray, order: AnyArray) -> AnyArray:
    """Reorder the rows."""
    return np.take_along_axis(x, np.broadcast_to(order[..., None], shape_of(x)), axis=-2)


def _vjp(g: AnyArray, lu: AnyArray, order: AnyArray) -> AnyArray | None:
    g = g[0]
    m, n = shape_of(lu)[-2:]
    k = min(m, n)
    l1, l2, u1, u2 = _parts(lu, k)
    g1, to_l2, to_u2 = g[..., :k, :k], g[..., k:, :k], g[..., :k, k:]
    lower, upper = H(l1) @ np.tril(g1, -1), np.triu(g1) @ H(u1)
    if n > m:
        lower = lower - to_u2 @ H(u2)
    if m > n:
        upper = upper - H(l2) @ to_l2
    middle = over_transposed(np.tril(lower, -1) + np.triu(upper), u1)
    square = transposed_solution(l1, middle, False, True)
    right = transposed_solution(l1, to_u2, False, True) if n > m else None
    below = over_transposed(to_l2, u1) if m > n else None
    return reordered(_blocks(square, right, below, m, n), np.argsort(order, axis=-1))


def _jvp(t: AnyArray, lu: AnyArray, order: AnyArray) -> tuple[AnyArray | None, ...] | None:
    m, n = shape_of(lu)[-2:]
    k = min(m, n)
    l1, l2, u1, u2 = _parts(lu, k)
    t = reordered(t, order)
    inner = over(solve_triangular(l1, t[..., :k, :k], upper=False, unitriangular=True), u1)
    lower, upper = np.tril(inner, -1), np.triu(inner)
    square = l1 @ lower + upper @ u1
    right = solve_triangular(l1, t[..., :k, k:], upper=False, unitriangular=True) - lower @ u2 if n > m else None
    below = over(t[..., k:, :k], u1) - l2 @ upper if m > n else None
    return _blocks(square, right, below, m, n), None, None


_TEXT = (
    "(lambda L1, L2, U1, U2, G1, G2, G3: reordered(np.concatenate([np.concatenate(["
    "np.linalg.inv(H(L1)) @ (np.tril(H(L1) @ np.tril(G1, -1) - G3 @ H(U2), -1)"
    " + np.triu(np.triu(G1) @ H(U1) - H(L2) @ G2)) @ np.linalg.inv(H(U1)), np.linalg.inv(H(L1)) @ G3], -1),"
    " np.concatenate([G2 @ np.linalg.inv(H(U1)), np.zeros(G2.shape[:-1] + G3.shape[-1:])], -1)], -2),"
    " np.argsort(order, -1)))"
    "(np.tril(lu[..., :lu.shape[-1], :lu.shape[-2]], -1) + np.eye(min(lu.shape[-2:])),"
    " lu[..., lu.shape[-1]:, :lu.shape[-2]], np.triu(lu[..., :lu.shape[-1], :lu.shape[-2]]),"
    " lu[..., :lu.shape[-1], lu.shape[-2]:], g[0][..., :lu.shape[-1], :lu.shape[-2]],"
    " g[0][..., lu.shape[-1]:, :lu.shape[-2]], g[0][..., :lu.shape[-1], lu.shape[-2]:])"
)


@opaque(
    vjp=_vjp,
    jvp=_jvp,
    outputs=("lu", "pivots", "order"),
    formula=_TEXT,
    aliases={"x": "A", "lu": "LU"},
    naming="LinalgLuFactorExBackward0",
    samples=[call((3, 3), make="general"), call((4, 2), make="general"), call((2, 2, 3), make="general")],
    promotion="float",
    structure="ab:ij,k,l",
)
def lu_factor(x: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the factors of x[order] = L @ U in one matrix (L without its unit diagonal), the pivots from 1 and the order."""
    m, n = x.shape[-2:]
    found = lapack.lu(x) if type(x) is ndarray else None
    if found is not None:
        return found
    k = min(m, n)
    matrices = x.reshape(math.prod(x.shape[:-2]), m, n)
    flat = np.array(matrices)
    pivots = np.zeros((flat.shape[0], k), np.int64)
    _eliminate(flat, pivots, 0, k)
    if n > k and flat.size:
        lower = np.tril(flat[:, :k, :k], -1) + np.eye(k, dtype=x.dtype)
        right = np.take_along_axis(matrices, order_in_python(pivots, m)[..., None], 1)[..., k:]
        flat[:, :, k:] = np.linalg.solve(lower, right)
    pivots = pivots.reshape(*x.shape[:-2], k)
    return flat.reshape(x.shape), (pivots + 1).astype(np.int32), order_in_python(pivots, m)
