"""Read elements along one axis or under a mask: gather, take, masked_select and similar functions.

``op`` makes these functions public: ``chainrule.gather``, ``chainrule.take_along_dim`` …
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.types import AnyArray, Index, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import shaping
from chainrule._src.ops.arguments import cast_source, number_in, takes_tensors, tensor_of
from chainrule._src.table import indexing as primitives
from chainrule._src.table import shape as moves
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.protocol import as_array, memory_of, predicate_holds
from chainrule._src.tape.tensor import Tensor, wrap

ndarray = np.ndarray


def _same_rank(name: str, x: AnyArray, index: AnyArray) -> Tensor:
    index = _integers(name, index)
    if x.ndim != index.ndim and not (x.ndim <= 1 and index.ndim <= 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as input tensor: {name} got index "
            f"{tuple(index.shape)} for {tuple(x.shape)}"
        )
    return index


def _bounds(name: str, index: AnyArray, n: int, d: int, error: type[Exception] = RuntimeError) -> None:
    if predicate_holds(index, primitives.Outside(n, 0)):  # type: ignore[arg-type]  # mypy does not see the __call__ of a NamedTuple
        data = memory_of(index)
        bad = int(data.max()) if int(data.max()) >= n else int(data.min())
        raise error(f"{name}(): index {bad} is out of bounds for dimension {d} with size {n}")


@op(method=True, out=True)
@takes_tensors
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Return ``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other dims."""
    if not _integers("gather", index).numel():
        return shaping.clone(shaping.reshape(shaping.reshape(input, -1)[:0], *index.shape))
    index = _same_rank("gather", input, index)
    if not input.ndim or not index.ndim:
        picked = gather(shaping.reshape(input, -1), 0, index.reshape(-1))
        return moves.unsafe_view(picked, shape=tuple(index.shape))
    d = errors.check_dim("gather", dim, input.ndim)
    x = _crop("gather", input, index, d)
    _bounds("gather", index, input.shape[d], d)
    return bind(primitives.gather, (x, index), {"axis": d - input.ndim})


def _crop(name: str, x: Tensor, index: AnyArray, d: int) -> Tensor:
    """Crop x to the index's sizes along the other axes."""
    cut = []
    for k, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)):
        if k != d and m > n:
            raise RuntimeError(
                f"Size does not match at dimension {k} expected index {list(index.shape)} to be no larger than self "
                f"{list(x.shape)} apart from dimension {d}"
            )
        cut.append(slice(0, m) if k != d and m < n else slice(None))
    return x if all(c == slice(None) for c in cut) else x[tuple(cut)]


@op(method=True, out=True, sample="rand(2, 3), tensor([[0, 2]]), 1")
@takes_tensors
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements at indices along ``dim``; the other axes broadcast (``np.take_along_axis``)."""
    if not isinstance(indices, Tensor):
        indices = wrap(as_array(indices))
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    d = errors.check_dim("take_along_dim", dim, input.ndim)
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    indices = _integers("take_along_dim", indices)
    indices = ew.where(ew.lt(indices, 0), indices + input.shape[d], indices)
    common_shape = [max(a, b) for a, b in zip(input.shape, indices.shape, strict=True)]
    want_x, want_i = list(common_shape), list(common_shape)
    want_x[d], want_i[d] = input.shape[d], indices.shape[d]
    return gather(shaping.expand(input, *want_x), d, shaping.expand(indices, *want_i))


@op(method=True, out=True)
def take(input: Tensor, index: Any) -> Tensor:
    """Return the elements at indices into the flattened tensor (negative ones count from the end)."""
    x, where = tensor_of("take", input), _integers("take", index)
    n = x.numel()
    _bounds("take", ew.where(ew.lt(where, 0), where + n, where), n, 0, IndexError)
    return bind(primitives.take, (shaping.reshape(x, -1), where), {"axis": -1})


def _integers(name: str, index: Index) -> Tensor:
    index = index if isinstance(index, Tensor) else wrap(as_array(index))
    if index._raw.dtype.kind not in "iu":
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, but got {index.dtype}")
    return index


@op(method=True, in_place=True)
def masked_fill(input: Tensor, mask: TensorLike, value: TensorLike) -> Tensor:
    """Return a copy with a value (a number or 0-d tensor) where the mask is True."""
    if getattr(mask, "dtype", None) != np.bool_:
        raise RuntimeError(
            "masked_fill only supports boolean masks, but got mask with dtype "
            f"{getattr(mask, 'dtype', type(mask).__name__)}"
        )
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {value.ndim} "
                "dimension(s)."
            )
        if value.dtype.kind == "c" and input.dtype.kind != "c":
            raise errors.complex_into_real(input.dtype)
        return ew.where(mask, cast_source("masked_fill", value, input), input.contiguous())
    return ew.where(mask, wrap(number_in(value, input.dtype)), input.contiguous())


@op(method=True, out=True)
def masked_select(input: Tensor, mask: Any) -> Tensor:
    """Return the elements where the mask is True, as a vector."""
    if getattr(mask, "dtype", None) != np.bool_:
        raise RuntimeError(
            f"masked_select: expected BoolTensor for mask, but got {getattr(mask, 'dtype', type(mask).__name__)}"
        )
    x, m = shaping.broadcast_tensors(input, mask)
    return x[m]
