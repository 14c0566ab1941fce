"""Write elements at indices or under a mask into a copy: scatter, index_add, masked_scatter, put and similar functions.

(``x.scatter_`` and the other methods with an underscore write into x itself.)
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.types import AnyArray, AnyFunction, Index, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import shaping
from chainrule._src.ops.arguments import cast_source, number_in, takes_tensors, tensor_of
from chainrule._src.ops.gathering import _bounds, _integers, _same_rank
from chainrule._src.ops.indexing import _value_shape, getitem, read_index
from chainrule._src.ops.ordering import cumsum
from chainrule._src.rules.primitive import Primitive
from chainrule._src.table import indexing as primitives
from chainrule._src.table import scattering
from chainrule._src.table import shape as moves
from chainrule._src.table.any_index import put_any
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.protocol import as_array
from chainrule._src.tape.tensor import Tensor, wrap

# -- one element for each index --------------------------------------------------------------------------------------


def _scattering(
    name: str, row: Primitive, input: Tensor, dim: int, index: AnyArray, src: TensorLike, **params: object
) -> Tensor:
    """Check all operands, and apply a primitive that writes every element of ``src`` at its index."""
    x = tensor_of(name, input)
    index = _integers(name, index)
    if not index.numel():
        return shaping.clone(x)
    index = _same_rank(name, x, index)
    d = errors.check_dim(name, dim, x.ndim)
    if not isinstance(src, Tensor):
        number = isinstance(src, (int, float, complex))
        src = wrap(np.full(index.shape, number_in(src, x.dtype)) if number else np.asarray(src))
    if src.dtype != x.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype, but got {x.dtype} and {src.dtype}")
    if not x.ndim or not index.ndim:
        flat = _scattering(name, row, x.reshape(-1), 0, index.reshape(-1), src.reshape(-1), **params)
        return moves.unsafe_view(flat, shape=tuple(x.shape))
    if index.ndim != src.ndim:
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as src tensor: {name} got index "
            f"{tuple(index.shape)} and src {tuple(src.shape)}"
        )
    for k, (m, s, n) in enumerate(zip(index.shape, src.shape, x.shape, strict=True)):
        if m > s or (k != d and m > n):
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from "
                f"dimension {d} and to be no larger size than src {list(src.shape)}"
            )
    _bounds(name, index, x.shape[d], d)
    if tuple(src.shape) != tuple(index.shape):
        src = src[tuple(slice(0, m) for m in index.shape)]
    return bind(row, (x, index, src), {"axis": d - x.ndim, **params})


@op(method=True, in_place=True)
def scatter(
    input: Tensor,
    dim: int,
    index: Any,
    src: TensorLike | None = None,
    *,
    value: TensorLike | None = None,
    reduce: str | None = None,
) -> Tensor:
    """Return a copy with the elements of ``src`` (or one ``value``) written at indices along ``dim``.

    With ``reduce`` "add" or "multiply", they are added to the existing elements, or multiplied with them.
    """
    source = src if value is None else value
    if source is None:
        raise TypeError(
            "scatter() received an invalid combination of arguments: give src (a tensor) or value (a number)"
        )
    if reduce == "add":
        return scatter_add(input, dim, index, source)
    if reduce == "multiply":
        return _scattering("scatter", scattering.scatter_prod, input, dim, index, source)
    if reduce is not None:
        raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce}: scatter_reduce has more")
    return _scattering("scatter", primitives.scatter, input, dim, index, source)


@op(method=True, in_place=True)
def scatter_add(input: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """Return a copy with the elements of ``src`` added at indices along ``dim``; repeated indices accumulate."""
    return _scattering("scatter_add", primitives.scatter_add, input, dim, index, src)


@op(method=True, in_place=True, sample="rand(2, 3), 0, tensor([[0, 1, 0]]), rand(1, 3), 'sum'")
def scatter_reduce(input: Tensor, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Tensor:
    """Return a copy in which every element that is indexed along ``dim`` is combined with the values scattered to it.

    Args:
        reduce: "sum", "prod", "mean", "amax" or "amin". Tied maxima (minima) share the gradient evenly.
        include_self: whether the existing element takes part; otherwise it is replaced if it is indexed.

    Raises:
        RuntimeError: ``reduce`` is none of these, or the shapes do not match.

    >>> import chainrule as cr
    >>> groups = cr.tensor([0, 1, 0])
    >>> cr.zeros(2).scatter_reduce(0, groups, cr.tensor([1., 5., 3.]), "mean", include_self=False)
    tensor([2., 5.])
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    name = "scatter_reduce"
    if reduce in ("amax", "amin"):
        best = {"largest": reduce == "amax", "include_self": include_self}
        return _scattering(name, scattering.scatter_best, input, dim, index, src, **best)
    start = input
    if not include_self:
        start = _scattering(name, primitives.scatter, input, dim, index, int(reduce == "prod"))
    if reduce == "prod":
        return _scattering(name, scattering.scatter_prod, start, dim, index, src)
    total = _scattering(name, primitives.scatter_add, start, dim, index, src)
    if reduce == "sum":
        return total
    ones = input.new_ones(input.shape)
    if not include_self:
        ones = _scattering(name, primitives.scatter, ones, dim, index, 0)
    number = ew.clamp(_scattering(name, primitives.scatter_add, ones, dim, index, 1), min=1) if input.numel() else ones
    return ew.div(total, number, rounding_mode="floor" if total.dtype.kind in "iu" else None)


# -- one entry for each index ----------------------------------------------------------------------------------------


def _accept_0d(function: AnyFunction) -> AnyFunction:
    """Wrap a function so that a 0-d tensor is written to as a vector of length 1."""
    written = function.__code__.co_varnames[3]

    @functools.wraps(function)
    def call(input: Tensor, dim: int, index: Index, *more: object, **options: object) -> Tensor:
        x = tensor_of(function.__name__, input)
        if x.ndim:
            return function(x, dim, index, *more, **options)
        errors.check_dim(function.__name__, dim, 0)
        if written in options:
            more = (options.pop(written), *more)
        if more and written == "source" and isinstance(more[0], Tensor):
            if more[0].ndim and function.__name__ != "index_copy":
                raise _entries(function.__name__, [], list(more[0].shape))
            more = (more[0].reshape(-1), *more[1:])
        return moves.unsafe_view(function(x.reshape(1), 0, index, *more, **options), shape=())

    return call


def _along(name: str, x: Tensor, dim: int, index: Any, source: Any = None) -> tuple[Any, ...]:
    """Check the index of whole entries along ``dim``, and the source; return the full index."""
    d = errors.check_dim(name, dim, x.ndim)
    index = _integers(name, index)
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got shape {tuple(index.shape)}")
    _bounds(name, index, x.shape[d], d, IndexError if name in ("index_fill", "index_copy") else RuntimeError)
    if source is not None:
        _check_entries(name, x, d, index, source)
    if not index.ndim:
        index = index.reshape(1)
    return (*(slice(None),) * d, index._raw if type(index._raw) is np.ndarray else index)


def _check_entries(name: str, x: Tensor, d: int, index: Tensor, source: Tensor) -> None:
    if not isinstance(source, Tensor):
        raise TypeError(
            f"{name}(): argument 'source' (position 3) must be Tensor, not {type(source).__name__}: wrap it in "
            "tensor(...), or write a number with index_fill()"
        )
    if source.dtype != x.dtype:
        raise RuntimeError(f"{name}(): self ({x.dtype}) and source ({source.dtype}) must have the same scalar type")
    n = source.shape[d] if source.ndim > d else 1
    if n != index.numel():
        kind = IndexError if name == "index_copy" else RuntimeError
        raise kind(f"{name}(): Number of indices ({index.numel()}) should be equal to source.size({d}) ({n})")
    rest, want = list(source.shape), list(x.shape)
    if [*rest[:d], *rest[d + 1 :]] != [*want[:d], *want[d + 1 :]] or (name != "index_copy" and source.ndim < x.ndim):
        raise _entries(name, want, rest)


def _entries(name: str, want: list[int], got: list[int]) -> RuntimeError:
    return RuntimeError(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
        f"{want} source.shape = {got}: {name}() writes whole entries along its dim"
    )


@op(method=True, in_place=True, sample="rand(2, 3), 0, tensor([0, 1]), rand(2, 3)")
@_accept_0d
def index_add(input: Tensor, dim: int, index: Any, source: Tensor, *, alpha: TensorLike = 1) -> Tensor:
    """Return a copy with entries of ``source`` added at indices along ``dim``."""
    where = _along("index_add", input, dim, index, source)
    alpha = int(alpha) if source.dtype.kind in "iu" else alpha
    values = source if alpha == 1 else source * alpha
    return put_any(input, values, where, True)


@op(method=True, in_place=True, sample="rand(2, 3), 0, tensor([0, 1]), rand(2, 3)")
@_accept_0d
def index_copy(input: Tensor, dim: int, index: Any, source: Tensor) -> Tensor:
    """Return a copy with entries of ``source`` written at indices along ``dim``."""
    where = _along("index_copy", input, dim, index, source)
    return put_any(input, source, where, False)


@op(method=True, in_place=True)
@_accept_0d
def index_fill(input: Tensor, dim: int, index: Any, value: TensorLike) -> Tensor:
    """Return a copy with the entries at indices along ``dim`` set to a value (a number or 0-d tensor)."""
    *before, chosen = _along("index_fill", input, dim, index)
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s): use index_copy"
        )
    if isinstance(value, complex) and input.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    number = (
        cast_source("index_fill", value, input) if isinstance(value, Tensor) else wrap(number_in(value, input.dtype))
    )
    if isinstance(chosen, Tensor):  # the indices differ between examples
        d = len(before)
        named = put_any(wrap(np.zeros(input.shape[d], bool)), wrap(np.asarray(True)), (chosen,), False)
        return ew.where(named.reshape(-1, *(1,) * (input.ndim - d - 1)), number, input)
    where = (*before, np.unique(chosen))  # an entry that is indexed twice counts once in the gradient
    return put_any(input, number, where, False)


@op(method=True, in_place=True, sample="rand(2, 3), 0, tensor([0, 1]), rand(2, 3), 'prod'")
@_accept_0d
def index_reduce(
    input: Tensor, dim: int, index: Any, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Combine whole entries along ``dim`` as :func:`scatter_reduce` does: with "prod", "mean", "amax" or "amin"."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    _along("index_reduce", input, dim, index, source)
    d = errors.check_dim("index_reduce", dim, input.ndim)
    where = _integers("index_reduce", index).reshape([-1 if k == d else 1 for k in range(input.ndim)])
    return scatter_reduce(input, d, shaping.expand_as(where, source), source, reduce, include_self=include_self)


# -- at any indices --------------------------------------------------------------------------------------------------


@op(method=True, in_place=True)
@takes_tensors
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy with values written (or added) at ``input[indices]``."""
    items = read_index(tuple(indices))
    if not isinstance(values, Tensor):
        values = wrap(as_array(values, input.dtype))
    if values.numel() == 1 and not accumulate and len(items) == 1 and getattr(items[0], "dtype", None) == np.bool_:
        values = cast_source("index_put", values.reshape(()), input)  # like masked_fill
    if values.dtype != input.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {input.dtype} for the destination and "
            f"{values.dtype} for the source."
        )
    if values.ndim > 1 and values.shape[0] == 1 and values.ndim > getitem(input.detach(), items).ndim:
        raise _value_shape(input, items, values)  # NumPy would accept leading axes of length 1
    try:
        return put_any(input, values, items, accumulate)
    except (ValueError, TypeError):
        raise _value_shape(input, items, values) from None


@op(method=True, in_place=True, sample="rand(2, 3), tensor([0, 4]), rand(2)")
@takes_tensors
def put(input: Tensor, index: Any, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy with elements of ``source`` written (or added) at indices into the flattened tensor."""
    where = _integers("put_", index)
    if source.dtype != input.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {input.dtype} and "
            f"source.dtype = {source.dtype}"
        )
    if source.numel() != where.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {where.numel()}"
        )
    n = input.numel()
    flat = where._array().reshape(-1)
    outside = flat[(flat < -n) | (flat >= n)]
    if outside.size:
        raise IndexError(f"out of range: tried to access index {outside[0]} on a tensor of {n} elements.")
    values = source.reshape(-1)
    written = primitives.index_put(input.reshape(-1), values, index=(flat,), accumulate=accumulate)
    return moves.unsafe_view(written, shape=tuple(input.shape))


@op(method=True, in_place=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the masked elements replaced, in order, by elements of ``source``; tensor and mask broadcast."""
    if getattr(mask, "dtype", None) != np.bool_:
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{getattr(mask, 'dtype', type(mask).__name__)}"
        )
    x, wide_mask = [part.contiguous() for part in shaping.broadcast_tensors(input, mask)]
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {x.dtype} and {source.dtype}"
        )
    if type(m := wide_mask._raw) is not np.ndarray:  # the mask differs between examples
        flat = shaping.reshape(wide_mask, -1)
        source_index = cumsum(flat.long(), 0) * flat - flat.long()
        values = shaping.reshape(shaping.reshape(source, -1)[source_index], *x.shape)
        return ew.where(wide_mask, values, x)
    n = int(m.sum())
    if source.numel() < n:
        raise RuntimeError(
            f"masked_scatter: Number of elements of source ({source.numel()}) < number of ones in mask ({n})"
        )
    values = source.reshape(-1)[:n]
    return primitives.index_put(x, values, index=(m,), accumulate=False)


# -- replace a part of a tensor --------------------------------------------------------------------------------------


def _with_part_replaced(name: str, input: Tensor, src: Tensor, row: Primitive, **params: object) -> Tensor:
    """Return a copy of ``input`` with the region of a view replaced by ``src``."""
    shape = tuple(bind(row, (input.detach(),), params).shape)
    if tuple(src.shape) != shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(shape)}: {name}() replaces exactly that slice"
        )
    return bind(moves.copy_slices, (input, cast_source(name, src, input)), {"steps": ((row, params),)})


@op(method=True, sample="rand(2, 3), rand(3), 0, 1")
@takes_tensors
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy with the entry at ``index`` along ``dim`` (see ``select``) replaced by ``src``."""
    d = errors.check_dim("select_scatter", dim, input.ndim)
    n = input.shape[d]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {d}"
        )
    return _with_part_replaced("select_scatter", input, src, primitives.getitem, index=(*(slice(None),) * d, index))


@op(method=True)
@takes_tensors
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a copy with every ``step``-th entry from ``start`` to ``end`` along ``dim`` replaced by those of ``src``."""
    d = errors.check_dim("slice_scatter", dim, input.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive: flip() reverses an axis")
    return _with_part_replaced(
        "slice_scatter", input, src, primitives.getitem, index=(*(slice(None),) * d, slice(start, end, step))
    )


@op(method=True, sample="rand(3, 3), rand(3)")
@takes_tensors
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy with the diagonal of two axes (see ``diagonal``) replaced by ``src``."""
    n = input.ndim
    a, b = errors.check_dim("diagonal", dim1, n), errors.check_dim("diagonal", dim2, n)
    if a == b:
        raise errors.same_diagonal_axes(dim1, dim2)
    return _with_part_replaced("diagonal_scatter", input, src, moves.diagonal, offset=offset, axis1=a - n, axis2=b - n)
