"""Matrix and vector products; all rules are derived from the subscripts. ``ops.products`` applies them."""

from __future__ import annotations

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Params
from chainrule._src.native import matmul
from chainrule._src.rules.batching import insert_axes, reshape_any
from chainrule._src.rules.contract import matrix_product
from chainrule._src.rules.kinds import call, contraction, opaque
from chainrule._src.rules.primitive import Primitive
from chainrule._src.rules.rules import conjugate


@contraction("ik,kj->ij", aliases={"y": "mat2"}, samples=[call((2, 3), (3, 4)), call((0, 3), (3, 2))])
def mm(x: AnyArray, y: AnyArray) -> None:
    """Return the product of two matrices."""


@contraction("ik,kj->ij", aliases={"y": "mat2"}, samples=[call((2, 2, 3), (2, 3, 4))])
def bmm(x: AnyArray, y: AnyArray) -> None:
    """Return the matrix products of two stacks of matrices of equal length."""


@contraction("ik,k->i", aliases={"y": "vec"}, samples=[call((2, 3), (3,))])
def mv(x: AnyArray, y: AnyArray) -> None:
    """Return the product of a matrix and a vector."""


@contraction("k,kj->j", aliases={"y": "mat2"}, samples=[call((3,), (3, 2))])
def vm(x: AnyArray, y: AnyArray) -> None:
    """Return the product of a vector and a matrix."""


@contraction("i,i->", aliases={"y": "tensor"}, samples=[call((3,), (3,))])
def dot(x: AnyArray, y: AnyArray) -> None:
    """Return the inner product of two vectors."""


def _tall_matrix(x: AnyArray) -> AnyArray:
    """Reshape a stack of matrices to one tall matrix."""
    if type(x) is np.ndarray and x.size:
        return x.reshape(-1, x.shape[-1])
    shape = shape_of(x)
    rows = 1
    for n in shape[:-1]:
        rows *= n
    return reshape_any(x, (rows, shape[-1]))


def _stack_matmul(x: AnyArray, y: AnyArray) -> AnyArray:
    """Return x @ y for a stack x and one matrix y, computed as one large product."""
    if type(x) is np.ndarray and type(y) is np.ndarray and x.size:
        shape = x.shape
        return x.reshape(-1, shape[-1]).dot(y).reshape(*shape[:-1], y.shape[1])
    shape = (*shape_of(x)[:-1], shape_of(y)[-1])
    return reshape_any(matrix_product(_tall_matrix(x), y), shape)


def _stack_matmul_batch(
    prim: Primitive, payloads: list[AnyArray], batched: list[bool], size: int, params: Params
) -> AnyArray:
    x, y = payloads
    if not batched[1]:
        return prim(x, y)
    return matmul(x, insert_axes(y, len(shape_of(x)) - batched[0] - 2))


def _product(x: AnyArray, y: AnyArray) -> AnyArray:
    return matrix_product(x, y)


@opaque(
    vjp={
        "x": lambda g, y: _stack_matmul(g, conjugate(y).mT),
        "y": lambda g, x: _product(conjugate(_tall_matrix(x)).mT, _tall_matrix(g)),
    },
    multilinear=True,
    formula={"x": "g @ y.mT", "y": "x.reshape(-1, x.shape[-1]).T @ g.reshape(-1, g.shape[-1])"},
    batch=_stack_matmul_batch,
    aliases={"y": "mat2"},
    naming="UnsafeViewBackward0",
    samples=[call((2, 3, 4), (4, 2)), call((2, 1, 3, 2), (2, 3))],
    structure="ik,kj->ij",
)
def stack_mm(x: AnyArray, y: AnyArray) -> AnyArray:
    """Return the matrix products of a stack of matrices and one matrix, computed as one large product."""
    return _stack_matmul(x, y)
