"""Reading and writing along one axis, or under a mask: gather, scatter, index_add, masked_fill and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core.dispatch import bind, cast
from chainrule.core.tensor import Tensor, wrap
from chainrule.ops import elementwise as ew
from chainrule.ops import shaping
from chainrule.ops.arguments import takes_out, tensor_of
from chainrule.ops.indexing import _value_shape, read_index
from chainrule.table import indexing as rows

ndarray = np.ndarray


def _same_rank(name: str, x: Any, index: Any) -> Any:
    index = _integers(name, index)
    if x.ndim != index.ndim and not (x.numel() == 1 and index.ndim <= 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as input tensor: {name} got index "
            f"{tuple(index.shape)} for "
            f"{tuple(x.shape)}"
        )
    return index


def _bounds(name: str, index: Any, n: int, d: int, error: type[Exception] = RuntimeError) -> None:
    data = index._data
    if type(data) is ndarray and data.size and (int(data.max()) >= n or int(data.min()) < 0):
        bad = int(data.max()) if int(data.max()) >= n else int(data.min())
        raise error(f"{name}(): index {bad} is out of bounds for dimension {d} with size {n}")


@takes_out
def gather(input: Tensor, dim: int, index: Any, *, sparse_grad: bool = False) -> Tensor:
    """``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other dims."""
    index = _same_rank("gather", input, index)
    if not input.ndim:
        return input[None].gather(0, index.reshape(-1)).reshape(index.shape)
    d = errors.check_dim("gather", dim, input.ndim)
    x = _cut("gather", input, index, d)
    _bounds("gather", index, input.shape[d], d)
    return bind(rows.gather, (x, index), {"axis": d - input.ndim})


def _cut(name: str, x: Tensor, index: Any, d: int) -> Tensor:
    """x, cut to the index's sizes along the other axes."""
    cut = []
    for k, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)):
        if k != d and m > n:
            raise RuntimeError(
                f"Size does not match at dimension {k} expected index {list(index.shape)} to be no larger than self "
                f"{list(x.shape)} apart from dimension {d}"
            )
        cut.append(slice(0, m) if k != d and m < n else slice(None))
    return x if all(c == slice(None) for c in cut) else x[tuple(cut)]


@takes_out
def take_along_dim(input: Tensor, indices: Any, dim: int | None = None) -> Tensor:
    """Elements at indices along ``dim``; the other axes broadcast (``np.take_along_axis``)."""
    if not isinstance(indices, Tensor):
        indices = wrap(np.asarray(indices))
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    d = errors.check_dim("take_along_dim", dim, input.ndim)
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    whole = [max(a, b) for a, b in zip(input.shape, indices.shape, strict=True)]
    want_x, want_i = list(whole), list(whole)
    want_x[d], want_i[d] = input.shape[d], indices.shape[d]
    return gather(shaping.expand(input, *want_x), d, shaping.expand(indices, *want_i))


def take(input: Tensor, index: Any) -> Tensor:
    """Elements at indices into the flattened tensor (negative ones count from the end)."""
    x, where = tensor_of("take", input), _integers("take", index)
    n = x.numel()
    _bounds("take", ew.where(ew.lt(where, 0), where + n, where), n, 0, IndexError)
    return bind(rows.take, (shaping.reshape(x, -1), where), {"axis": -1})  # type: ignore[no-any-return]


def _integers(name: str, index: Any) -> Any:
    index = index if isinstance(index, Tensor) else wrap(np.asarray(index))
    if index._data.dtype.kind not in "iu":
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, but got {index.dtype}")
    return index


def _scattering(name: str, row: Any, input: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    index = _same_rank(name, input, index)
    d = errors.check_dim(name, dim, input.ndim)
    if not isinstance(src, Tensor):
        if isinstance(src, (int, float, complex)):
            src = wrap(np.full(index.shape, src, input.dtype))
        else:
            src = wrap(np.asarray(src))
    if src.dtype != input.dtype:
        raise RuntimeError(
            f"{name}(): Expected self.dtype to be equal to src.dtype, but got {input.dtype} and {src.dtype}"
        )
    for k, (m, s, n) in enumerate(zip(index.shape, src.shape, input.shape, strict=True)):
        if m > s or (k != d and m > n):
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from "
                f"dimension {d} "
                f"and to be no larger size than src {list(src.shape)}"
            )
    _bounds(name, index, input.shape[d] if input.ndim else 1, d)
    if not input.ndim:
        return _scattering(name, row, input[None], 0, index.reshape(-1), src.reshape(-1)).reshape(())
    if tuple(src.shape) != tuple(index.shape):
        src = src[tuple(slice(0, m) for m in index.shape)]
    return bind(row, (input, index, src), {"axis": d - input.ndim})


def scatter(
    input: Tensor, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """A copy with the elements of ``src`` (or one ``value``) written at indices along ``dim``."""
    source = src if value is None else value
    if reduce == "add":
        return scatter_add(input, dim, index, source)
    if reduce is not None:
        raise NotImplementedError(f"scatter(reduce={reduce!r}): only 'add' is there; multiply with gather instead")
    return _scattering("scatter", rows.scatter, input, dim, index, source)


def scatter_add(input: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """A copy with the elements of ``src`` added at indices along ``dim``; repeated indices add up."""
    return _scattering("scatter_add", rows.scatter_add, input, dim, index, src)


def _along(name: str, x: Tensor, dim: int, index: Any, source: Any = None) -> tuple[Any, ...]:
    """The index of whole entries along ``dim``, after checking it and what will be written there."""
    d = errors.check_dim(name, dim, x.ndim)
    index = _integers(name, index)
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got shape {tuple(index.shape)}")
    _bounds(name, index, x.shape[d] if x.ndim else 1, d, IndexError if name == "index_fill" else RuntimeError)
    if source is not None:
        if source.dtype != x.dtype:
            raise RuntimeError(f"{name}(): self ({x.dtype}) and source ({source.dtype}) must have the same scalar type")
        if source.ndim and source.shape[d] != index.numel():
            kind = IndexError if name == "index_copy" else RuntimeError
            raise kind(
                f"{name}(): Number of indices ({index.numel()}) should be equal to source.size({d}) ({source.shape[d]})"
            )
    return (*(slice(None),) * d, index._array())


def index_add(input: Tensor, dim: int, index: Any, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """A copy with entries of ``source`` added at indices along ``dim``."""
    where = _along("index_add", input, dim, index, source)
    values = source if alpha == 1 else source * alpha
    return rows.index_put(input, values, index=where, accumulate=True)  # type: ignore[no-any-return]


def index_copy(input: Tensor, dim: int, index: Any, source: Tensor) -> Tensor:
    """A copy with entries of ``source`` written at indices along ``dim``."""
    where = _along("index_copy", input, dim, index, source)
    return rows.index_put(input, source, index=where, accumulate=False)  # type: ignore[no-any-return]


def index_fill(input: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """A copy with the entries at indices along ``dim`` filled with a value."""
    where = _along("index_fill", input, dim, index)
    number = value if isinstance(value, Tensor) else wrap(np.asarray(value, input.dtype))
    return rows.index_put(input, number, index=where, accumulate=False)  # type: ignore[no-any-return]


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with values written (or added) at ``input[indices]``."""
    items = read_index(tuple(indices))
    if not isinstance(values, Tensor):
        values = wrap(np.asarray(values, input.dtype))
    if not values.ndim:
        values = cast(values, input.dtype)
    if values.dtype != input.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {input.dtype} for the destination and "
            f"{values.dtype} for the source."
        )
    try:
        return rows.index_put(input, values, index=items, accumulate=accumulate)
    except ValueError as error:
        raise _value_shape(error, input, items, values) from None


def masked_fill(input: Tensor, mask: Any, value: Any) -> Tensor:
    """A copy with a value (a number or 0-d tensor) where the mask is True."""
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
        return ew.where(mask, cast(value, input.dtype), input)
    return ew.where(mask, wrap(np.asarray(value).astype(input.dtype)), input)


@takes_out
def masked_select(input: Tensor, mask: Any) -> Tensor:
    """The elements where the mask is True, in one vector."""
    if getattr(mask, "dtype", None) != np.bool_:
        raise RuntimeError(
            f"masked_select: expected BoolTensor for mask, but got {getattr(mask, 'dtype', type(mask).__name__)}"
        )
    x, m = shaping.broadcast_tensors(input, mask)
    return x[m]


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with the mask's places filled, in order, with elements of ``source``."""
    m = shaping.expand(mask, *input.shape)._array()
    n = int(m.sum())
    if source.dtype != input.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {input.dtype} and {source.dtype}"
        )
    if source.numel() < n:
        raise RuntimeError(
            f"masked_scatter: Number of elements of source ({source.numel()}) < number of ones in mask ({n})"
        )
    return rows.index_put(input, source.reshape(-1)[:n], index=(np.ascontiguousarray(m),), accumulate=False)


@takes_out
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Indices of the nonzero elements: a matrix with one row each, or one vector per axis."""
    if type(input._data) is not ndarray:
        raise errors.data_dependent(input, "nonzero()")
    found = np.nonzero(input._data if input.ndim else input._data.reshape(1))
    if as_tuple:
        return tuple(wrap(i.astype(np.int64)) for i in found)
    return wrap(np.stack(found, 1).astype(np.int64)) if input.ndim else wrap(np.empty((len(found[0]), 0), np.int64))


argwhere = nonzero


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements, in order."""
    options: dict[str, Any] = {"return_inverse": return_inverse, "return_counts": return_counts, "axis": dim}
    out: Any = np.unique(tensor_of("unique", input)._concrete("unique()"), **options)
    if not (return_inverse or return_counts):
        return wrap(out)
    parts = list(out)
    if return_inverse and dim is None:
        parts[1] = parts[1].reshape(input.shape)
    return tuple(wrap(p) for p in parts)


@takes_out
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Where the values would be inserted in a sorted vector to keep it sorted."""
    values = input._array() if isinstance(input, Tensor) else np.asarray(input)
    found = np.searchsorted(sorted_sequence._array(), values, side="right" if right else "left")
    return wrap(np.asarray(found, np.int32 if out_int32 else np.int64))


@takes_out
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The index of the bucket (between sorted boundaries) that every value falls in."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often every non-negative integer occurs; with weights, the sum of their weights."""
    x = input._array()
    if x.ndim != 1 or x.dtype.kind not in "iu" or (x.size and x.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return wrap(np.bincount(x, minlength=minlength))
    n = max(int(x.max()) + 1 if x.size else 0, minlength)
    return bind(rows.take_add, (weights, x), {"axis": -1, "length": n})


def isin(elements: Tensor, test_elements: Any) -> Tensor:
    """Whether each element is among the test elements."""
    test = test_elements._array() if isinstance(test_elements, Tensor) else test_elements
    return wrap(np.asarray(np.isin(elements._array(), test)))
