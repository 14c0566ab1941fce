"""Split tensors along an axis into views.

``op`` makes these functions public: ``chainrule.narrow``, ``chainrule.select`` …
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.types import TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.arguments import takes_tensors, tensor_of
from chainrule._src.table import shape as primitives
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.view import mark_multi_output_views

_PIECES = {"sections": "indices_or_sections", "indices": "indices_or_sections"}


def _checked_int(name: str, argument: str, value: TensorLike) -> Any:
    """Check that an argument is an int (or a tensor with one), and return it."""
    if not hasattr(value, "__index__"):
        raise errors.not_an_int(name, argument, value)
    return value


def _checked_ints(name: str, argument: str, values: Any) -> list[int]:
    try:
        return [v.__index__() for v in values]
    except (TypeError, AttributeError):
        raise TypeError(f"{name}(): argument '{argument}' must be int or tuple of ints, not {values!r}") from None


@op(method=True, sample="rand(4, 3), 0, 1, 2")
def narrow(input: TensorLike, dim: int, start: TensorLike, length: int) -> Tensor:
    """Return ``length`` entries along ``dim``, from ``start`` on, as a view."""
    x = tensor_of("narrow", input)
    if not x.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = errors.check_dim("narrow", dim, x.ndim)
    n = x._raw.shape[d]
    if isinstance(start, Tensor) and (start.ndim or start.dtype.kind not in "iu"):
        raise RuntimeError(
            f"start must be an 0-dim integral Tensor, not one of shape {list(start.shape)}, {start.dtype}."
        )
    begin = int(_checked_int("narrow", "start", start))
    if _checked_int("narrow", "length", length) < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= begin <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {begin})")
    begin = begin + n if begin < 0 else begin
    if begin + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return x[(slice(None),) * d + (slice(begin, begin + length),)]


@op(method=True, sample="rand(2, 3), 0, 1")
def select(input: TensorLike, dim: int, index: int) -> Tensor:
    """Return the entry at ``index`` along ``dim`` as a view without that axis."""
    x = tensor_of("select", input)
    if not x.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    return x[(slice(None),) * errors.check_dim("select", dim, x.ndim) + (_checked_int("select", "index", index),)]


@op(method=True, sample="rand(2, 3)", cached=True)
def unbind(input: TensorLike, dim: int = 0) -> tuple[Tensor, ...]:
    """Return all entries along ``dim`` as views."""
    x = tensor_of("unbind", input)
    if not x.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    lead = (slice(None),) * errors.check_dim("unbind", dim, x.ndim)
    return mark_multi_output_views("Unbind", tuple([x[(*lead, i)] for i in range(x._raw.shape[len(lead)])]))


@op(method=True, also={"split_size": "split_size_or_sections"}, sample="rand(4, 3), 2", cached=True)
def split(tensor: TensorLike, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along ``dim`` into views of one size (the last may be smaller), or of the listed sizes."""
    x = tensor_of("split", tensor)
    if not x.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = errors.check_dim("split", dim, x.ndim)
    n = x._raw.shape[d]
    if isinstance(split_size_or_sections, (int, np.integer)):
        size = int(split_size_or_sections)
        if size < 0 or (size == 0 and n):
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
        sizes = [builtins.min(size, n - i) for i in range(0, n, size)] if n else [0]
    else:
        sizes = _checked_ints("split", "split_size_or_sections", split_size_or_sections)
        if any(size < 0 for size in sizes):
            raise RuntimeError(
                f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes}"
            )
        if builtins.sum(sizes) != n:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {d}), "
                f"but got split_sizes={sizes}"
            )
    return mark_multi_output_views("Split", _pieces(x, d, itertools.accumulate(sizes, initial=0)))


def _pieces(x: Tensor, d: int, cuts: Iterable[int]) -> tuple[Tensor, ...]:
    """Return the parts between neighbouring cuts."""
    lead = (slice(None),) * d
    return tuple([x[(*lead, slice(a, b))] for a, b in itertools.pairwise(cuts)])


@op(method=True, sample="rand(4, 3), [1, 3]", cached=True)
def split_with_sizes(tensor: TensorLike, split_sizes: object, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along ``dim`` into views of the listed sizes."""
    return split(tensor, list(split_sizes), dim)


@op(method=True, sample="rand(4, 3), 2", cached=True)
def chunk(input: TensorLike, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along ``dim`` into at most ``chunks`` views of equal size; the last may be smaller."""
    if _checked_int("chunk", "chunks", chunks) <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    x = tensor_of("chunk", input)
    if not x.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    n = x._raw.shape[errors.check_dim("chunk", dim, x.ndim)]
    return split(x, -(-n // chunks) if n else [0] * chunks, dim)


@op(method=True, sample="rand(4, 3), 2")
def unsafe_split(tensor: TensorLike, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split as :func:`split` does into copies, which may be written to in place."""
    return tuple(primitives.clone(piece) for piece in split(tensor, split_size, dim))


@op(method=True, sample="rand(4, 3), [1, 3]")
def unsafe_split_with_sizes(tensor: TensorLike, split_sizes: object, dim: int = 0) -> tuple[Tensor, ...]:
    """Split as :func:`split_with_sizes` does into copies, which may be written to in place."""
    return tuple(primitives.clone(piece) for piece in split(tensor, list(split_sizes), dim))


@op(method=True, sample="rand(4, 3), 2")
def unsafe_chunk(input: TensorLike, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split as :func:`chunk` does into copies, which may be written to in place."""
    return tuple(primitives.clone(piece) for piece in chunk(input, chunks, dim))


@op(method=True, also=_PIECES | {"tensor_indices_or_sections": "indices_or_sections"}, sample="rand(4, 3), 2")
@takes_tensors
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split as ``np.array_split`` does: into a number of nearly equal parts, or at indices."""
    if not input.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = errors.check_dim("tensor_split", dim, input.ndim)
    n = input.shape[d]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = _cuts(indices_or_sections)
    if isinstance(indices_or_sections, int):
        k = indices_or_sections
        if k <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {k}")
        cuts = even_cuts("tensor_split", n, k)
    else:
        cuts = [0, *_checked_ints("tensor_split", "indices_or_sections", indices_or_sections), n]
    return _pieces(input, d, cuts)


def even_cuts(function: str, n: int, k: int) -> list[int]:
    """Return the cuts of an axis of length n into k parts of nearly equal length, including both ends."""
    if k > n + 1_000_000:
        raise RuntimeError(f"{function}(): of {k} sections of an axis of length {n}, all but {n} would be empty")
    return [0, *np.cumsum([n // k + (i < n % k) for i in range(k)]).tolist()]


def _cuts(where: Tensor) -> Any:
    """Return a number of sections, or indices, given as a tensor."""
    if where.dtype != np.int64:
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {where.dtype}"
        )
    if where.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {where.ndim} dims"
        )
    return where.tolist()


@op(method=True, also=_PIECES, sample="rand(2, 4), 2")
def hsplit(input: TensorLike, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Split between columns (a vector between elements)."""
    return _split_at_least("hsplit", input, indices_or_sections, 1, 1)


@op(method=True, also=_PIECES, sample="rand(4, 3), 2")
def vsplit(input: TensorLike, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Split between rows."""
    return _split_at_least("vsplit", input, indices_or_sections, 2, 0)


@op(method=True, also=_PIECES, sample="rand(2, 3, 4), 2")
def dsplit(input: TensorLike, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Split along the third axis."""
    return _split_at_least("dsplit", input, indices_or_sections, 3, 2)


def _split_at_least(name: str, input: TensorLike, sections: object, ndim: int, dim: int) -> tuple[Tensor, ...]:
    """Split along an axis (the last one, if there are fewer) a tensor with at least ``ndim`` axes."""
    x = tensor_of(name, input)
    if x.ndim < ndim:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {ndim} dimension, but got a tensor with {x.ndim} dimensions!"
        )
    dim = builtins.min(dim, x.ndim - 1)
    if isinstance(sections, str):
        raise TypeError(f"{name}(): argument 'indices_or_sections' must be an int or ints, not {sections!r}")
    n = x._raw.shape[dim]
    if isinstance(sections, int) and (sections <= 0 or n % sections):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {n} is not "
            f"divisible by the split_size {sections}!"
        )
    return tensor_split(x, sections, dim)
