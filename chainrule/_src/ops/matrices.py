"""Triangles and diagonals of matrices, grids and combinations of vectors, and differences of neighbours.

``op`` makes these functions public: ``chainrule.tril``, ``chainrule.triu`` …
"""

from __future__ import annotations

import builtins
import itertools
import math

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.dtypes import default_dtype
from chainrule._src.arrays.types import TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.arguments import takes_tensors, tensor_of
from chainrule._src.ops.elementwise import same_dtype
from chainrule._src.ops.joining import atleast_2d, cat, pad, stack
from chainrule._src.ops.shaping import diagonal as diagonal_of
from chainrule._src.ops.shaping import expand, reshape, transpose
from chainrule._src.ops.splitting import narrow
from chainrule._src.table import shape as primitives
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.tensor import Tensor, wrap


@op(method=True, in_place=True, out=True, cached=True)
def tril(input: TensorLike, diagonal: int = 0) -> Tensor:
    """Return the lower triangle of matrices, up to a diagonal, with zeros elsewhere."""
    return bind(primitives.tril, (_matrix("tril", input),), {"k": diagonal})


@op(method=True, in_place=True, out=True, cached=True)
def triu(input: TensorLike, diagonal: int = 0) -> Tensor:
    """Return the upper triangle of matrices, from a diagonal on, with zeros elsewhere."""
    return bind(primitives.triu, (_matrix("triu", input),), {"k": diagonal})


def _matrix(name: str, x: TensorLike) -> Tensor:
    x = tensor_of(name, x)
    if x.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return x


@op(method=True, cached=True)
def diag_embed(input: TensorLike, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Put the last axis on a diagonal of two new axes, with zeros elsewhere."""
    x = tensor_of("diag_embed", input)
    n = x.ndim + 1
    a, b = errors.check_dim("diag_embed", dim1, n), errors.check_dim("diag_embed", dim2, n)
    if a == b:
        raise errors.same_diagonal_axes(dim1, dim2)
    length = x._raw.shape[-1] + builtins.abs(offset)
    return bind(
        primitives.undiagonal, (x,), {"offset": offset, "axis1": a - n, "axis2": b - n, "sizes": (length, length)}
    )


@op(method=True, out=True)
def diag(input: TensorLike, diagonal: int = 0) -> Tensor:
    """Return a matrix with a vector on a diagonal, or a copy of a matrix's diagonal."""
    x = tensor_of("diag", input)
    if x.ndim == 1:
        return diag_embed(x, diagonal)
    if x.ndim == 2:
        return primitives.clone(diagonal_of(x, diagonal))
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")


@op(method=True)
def diagflat(input: TensorLike, offset: int = 0) -> Tensor:
    """Return a matrix with the flattened elements on a diagonal."""
    return diag_embed(reshape(input, -1), offset)


@op(sample="rand(2), rand(3), indexing='ij'")
@takes_tensors
def meshgrid(*tensors: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return coordinate grids: the i-th result varies along axis i (with "xy", axes 0 and 1 are exchanged)."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for x in tensors:
        if x.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {tuple(x.shape)}")
    shape = [t.numel() for t in tensors]
    n = len(tensors)
    grids = [expand(reshape(t, *[-1 if i == k else 1 for i in range(n)]), *shape) for k, t in enumerate(tensors)]
    return tuple(transpose(g, 0, 1) for g in grids) if indexing == "xy" and n > 1 else tuple(grids)


@op(sample="rand(2), rand(3)")
@takes_tensors
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of one element of each vector, as rows."""
    for x in tensors:
        if x.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(g, -1) for g in meshgrid(*tensors)], 1)


@op()
@takes_tensors
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of r elements of a vector, as rows."""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}: flatten() it before combinations()")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    n = input.numel()
    count = math.comb(n + r - 1 if with_replacement and n else n, r)
    flat = itertools.chain.from_iterable(choose(range(n), r))
    picks = np.fromiter(flat, np.int64, count * r).reshape(count, r)
    return input[picks]


@op()
@takes_tensors
def block_diag(*tensors: Tensor) -> Tensor:
    """Return a block diagonal matrix of the given matrices."""
    for position, t in enumerate(tensors):
        if t.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has {t.ndim} dimensions"
            )
    blocks = [wrap(np.empty((1, 0), default_dtype()))]
    if tensors:
        blocks = [atleast_2d(t) for t in same_dtype("block_diag", *tensors)]
    width = builtins.sum(b.shape[1] for b in blocks)
    done = []
    start = 0
    for b in blocks:
        done.append(pad(b, (start, width - start - b.shape[1])))
        start += b.shape[1]
    return cat(done, 0)


@op(sample="rand(3)")
@takes_tensors
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of a vector's elements as columns."""
    if x.ndim != 1:
        raise RuntimeError(f"vander: x must be a one-dimensional tensor, got shape {tuple(x.shape)}")
    n = x.shape[0] if N is None else N
    x = x.long() if x.dtype.kind in "biu" else x
    powers = np.arange(n) if increasing else np.arange(n)[::-1]
    columns = [x ** int(p) if p else x.new_ones(x.shape) for p in powers]
    return stack(columns, -1) if n else x.new_zeros((x.shape[0], 0))


@op(method=True, out=True)
def diff(
    input: TensorLike, n: int = 1, dim: int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None
) -> Tensor:
    """Return the differences of neighbours along ``dim``, applied n times."""
    x = tensor_of("diff", input)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if not x.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    parts = [p for p in (prepend, x, append) if p is not None]
    x = cat(parts, dim) if len(parts) > 1 else x
    if n == 0:
        return x.clone()
    for _ in range(n):
        length = x._raw.shape[errors.check_dim("diff", dim, x.ndim)]
        if length == 0:
            return x
        later, earlier = narrow(x, dim, 1, length - 1), narrow(x, dim, 0, length - 1)
        x = later ^ earlier if x.dtype == np.bool_ else later - earlier
    return x
