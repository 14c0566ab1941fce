"""Norms of vectors and matrices, of ``chainrule.linalg``. ``op`` makes these functions public."""

from __future__ import annotations

from typing import Any

from chainrule._src.api.declare import op
from chainrule._src.arrays.dtypes import as_dtype
from chainrule._src.arrays.types import AnyArray, DTypeLike
from chainrule._src.messages import errors
from chainrule._src.ops import reductions
from chainrule._src.ops.arguments import axes_of
from chainrule._src.ops.linalg import numpy_functions as shared
from chainrule._src.ops.linalg.decompositions import tensor_like
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.tensor import Tensor


def _for_norm(function: str, x: AnyArray, dtype: DTypeLike) -> Tensor:
    x = tensor_like(function, x)
    if dtype is not None:
        x = cast(x, as_dtype(dtype))
    if x.dtype.kind not in "fc":
        raise errors.matrix_dtype(function, x)
    return x


@op(out=True, cached=True)
def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """Return the norm (Σ |x|^ord)^(1/ord) over ``dim`` (by default of all elements, for any shape)."""
    x = _for_norm("linalg.vector_norm", x, dtype)
    return reductions.vector_norm(x, float(ord), axes_of("linalg.vector_norm", dim, x.ndim), bool(keepdim))


@op(out=True)
def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: DTypeLike = None
) -> Tensor:
    """Return the norm of the matrices in two axes: "fro", "nuc", inf, -inf, 1, -1, 2 or -2."""
    name = "linalg.matrix_norm"
    A = _for_norm(name, A, dtype)
    if A.ndim < 2:
        raise errors.matrix_rank_low(name, A)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {list(dim)}")
    row, column = (errors.check_dim(name, d, A.ndim) - A.ndim for d in dim)
    if row == column:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    return shared.matrix_norm(name, A, ord, (row, column), bool(keepdim))


@op(out=True, cached=True)
def norm(A: Tensor, ord: object = None, dim: Any = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """Return a vector norm (if ``dim`` is an int, or the tensor is 1-D) or a matrix norm (for two dims, or a 2-D tensor).

    By default, return the 2-norm of the elements in ``dim``.

    >>> import chainrule as cr
    >>> cr.linalg.norm(cr.tensor([[3., 4.], [0., 0.]]))
    tensor(5.)
    """
    name = "linalg.norm"
    A = tensor_like(name, A)
    dims = (dim,) if isinstance(dim, int) else None if dim is None else tuple(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"{name}: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if dims is None and ord is not None and A.ndim not in (1, 2):
        raise RuntimeError(f"{name}: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D.")
    if isinstance(ord, str) or (ord is not None and (A.ndim if dims is None else len(dims)) == 2):
        return matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype)
