"""Indexing as users call it: reading, writing, gather and scatter, masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core import inplace, view
from chainrule.core.dispatch import bind, cast
from chainrule.core.modes import recording
from chainrule.core.tensor import Tensor, to_array, wrap
from chainrule.core.versions import wrote
from chainrule.ops import elementwise as ew
from chainrule.ops import shaping
from chainrule.table import indexing as rows

ndarray = np.ndarray


def _index(index: Any) -> tuple[Any, ...]:
    """An index as a tuple of ints, slices, None, Ellipsis and integer or boolean arrays."""
    if type(index) is not tuple:
        index = tuple(index) if _is_list_of_slices(index) else (index,)
    items = []
    for item in index:
        kind = type(item)
        if kind is int or kind is slice or item is None or item is Ellipsis:
            items.append(_plain_slice(item) if kind is slice else item)
        elif kind is bool or kind is np.bool_:
            items.append(np.asarray(item))
        elif isinstance(item, Tensor):
            items.append(_tensor_item(item))
        elif isinstance(item, (list, tuple, ndarray, range)):
            array = np.asarray([_scalar(i) for i in item] if not isinstance(item, (ndarray, range)) else item)
            if array.size == 0 and array.dtype.kind == "f":
                array = array.astype(np.int64)
            if array.dtype.kind not in "iub":
                raise IndexError(
                    f"tensors used as indices must be long, int, byte or bool tensors; got an array of dtype {array.dtype}"
                )
            items.append(array)
        elif hasattr(item, "__index__"):
            items.append(item.__index__())
        else:
            raise TypeError(
                f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
                f"{kind.__name__})"
            )
    return tuple(items)


def _is_list_of_slices(index: Any) -> bool:
    return type(index) is list and any(isinstance(i, slice) or i is None or i is Ellipsis for i in index)


def _scalar(item: Any) -> Any:
    return item._array() if isinstance(item, Tensor) else item


def _plain_slice(item: slice) -> slice:
    parts = [p if p is None or type(p) is int else p.__index__() for p in (item.start, item.stop, item.step)]
    if parts[2] is not None and parts[2] <= 0:
        raise ValueError("step must be greater than zero: use flip() to reverse an axis")
    return slice(*parts)


def _tensor_item(item: Tensor) -> Any:
    if item._data.dtype.kind not in "iub":
        raise IndexError(
            f"tensors used as indices must be long, int, byte or bool tensors; got {item.dtype}"
        )
    if type(item._data) is ndarray:
        if item._data.dtype == np.uint8:  # PyTorch's masks of old
            return item._data.astype(bool)
        return int(item._data) if not item._data.shape and item._data.dtype != bool else item._data
    if item._data.dtype == bool:
        raise errors.data_dependent(item, "a boolean mask as an index")
    return item


def _failed(error: IndexError, x: Any) -> IndexError:
    return IndexError(f"{error}: indexing a tensor of shape {tuple(x.shape)}")


def _too_many(items: tuple[Any, ...], x: Any) -> None:
    used = sum(
        item.ndim if isinstance(item, ndarray) and item.dtype == bool else item is not None and item is not Ellipsis
        for item in items
    )
    if used > x.ndim:
        if x.ndim == 0:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
                "0-dim tensor to a number"
            )
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")


def getitem(self: Tensor, index: Any) -> Tensor:
    """``tensor[index]``: a view for basic indices, a copy for integer and boolean ones."""
    items = _index(index)
    _too_many(items, self)
    try:
        if not any(isinstance(i, (ndarray, Tensor)) for i in items):
            return bind(rows.getitem, (self,), {"index": items})
        return rows.index_any(self, items)
    except IndexError as error:
        raise _failed(error, self) from None


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """``tensor[index] = value``, recorded: gradients flow to the value, and to what was not overwritten."""
    items = _index(index)
    _too_many(items, self)
    inplace.check_writable(self, "__setitem__")
    if not isinstance(value, Tensor):
        value = wrap(to_array(value, self.dtype))
    elif value._data.dtype != self._data.dtype:
        value = cast(value, self._data.dtype)
    data = self._data
    try:
        if type(data) is ndarray and type(value._data) is ndarray and (
            not recording() or (self._edge is None and value._edge is None and _outside(self))
        ):
            data[items] = _leading_ones(value._data, data, items)
            wrote(data, "__setitem__", errors.user_line())
            return
        if any(isinstance(i, (ndarray, Tensor)) for i in items):
            base = wrap(data, self._edge)
            shape = data[items].shape if type(data) is ndarray else None
            if shape is not None and value.ndim > len(shape):
                value = value.reshape(value.shape[value.ndim - len(shape) :])
            result = rows.index_put(base, value, index=items, accumulate=False)
            inplace.update(self, result, "__setitem__")
            return
        region = getitem(self, items)
    except IndexError as error:
        raise _failed(error, self) from None
    except ValueError as error:
        raise _value_shape(error, self, items, value) from None
    while value.ndim > region.ndim and value.shape[0] == 1:
        value = value.squeeze(0)
    try:
        value = value.expand(region.shape)
    except RuntimeError as error:
        raise _value_shape(error, self, items, value) from None
    inplace.update(region, _kept_apart(value, region), "__setitem__")


def _kept_apart(value: Tensor, region: Tensor) -> Tensor:
    if type(value._data) is ndarray and type(region._data) is ndarray and np.may_share_memory(value._data, region._data):
        return value.clone()
    return value


def _outside(tensor: Tensor) -> bool:
    """Whether neither the tensor nor anything it is a view of requires grad."""
    base = view.base_of(tensor)
    return base is None or base._edge is None


def _leading_ones(value: Any, data: Any, items: Any) -> Any:
    ndim = len(data[items].shape)
    while value.ndim > ndim and value.shape[0] == 1:
        value = value[0]
    return value


def _value_shape(error: Exception, x: Tensor, items: Any, value: Tensor) -> RuntimeError:
    shape = tuple(np.shape(x._data[items])) if type(x._data) is ndarray else "?"
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of shape "
        f"{list(shape)} (of a tensor of shape {list(x.shape)})"
    )


def _same_rank(name: str, x: Any, index: Any) -> Any:
    if not isinstance(index, Tensor):
        index = wrap(np.asarray(index))
    if index._data.dtype.kind not in "iu":
        raise RuntimeError(f"{name}(): Expected dtype int64 for index, but got {index.dtype}")
    if x.ndim != index.ndim and not (x.numel() == 1 and index.ndim <= 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as input tensor: {name} got index {tuple(index.shape)} for "
            f"{tuple(x.shape)}"
        )
    return index


def _bounds(name: str, index: Any, n: int) -> None:
    data = index._data
    if type(data) is ndarray and data.size and (int(data.max()) >= n or int(data.min()) < 0):
        bad = int(data.max()) if int(data.max()) >= n else int(data.min())
        raise IndexError(f"index {bad} is out of bounds for dimension with size {n} in {name}")


def gather(input: Tensor, dim: int, index: Any, *, sparse_grad: bool = False) -> Tensor:
    """``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other dims."""
    index = _same_rank("gather", input, index)
    if not input.ndim:
        return input[None].gather(0, index.reshape(-1)).reshape(index.shape)
    d = errors.check_dim("gather", dim, input.ndim)
    x = _cut("gather", input, index, d)
    _bounds("gather", index, input.shape[d])
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
    """Elements at indices into the flattened tensor."""
    if not isinstance(index, Tensor):
        index = wrap(np.asarray(index))
    _bounds("take", Tensor.__abs__(index) if False else ew.where(ew.lt(index, 0), index + input.numel(), index), input.numel())
    return bind(rows.take, (input.reshape(-1), index), {"axis": -1})


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
                f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from dimension {d} "
                f"and to be no larger size than src {list(src.shape)}"
            )
    _bounds(name, index, input.shape[d] if input.ndim else 1)
    if not input.ndim:
        return _scattering(name, row, input[None], 0, index.reshape(-1), src.reshape(-1)).reshape(())
    if tuple(src.shape) != tuple(index.shape):
        src = src[tuple(slice(0, m) for m in index.shape)]
    return bind(row, (input, index, src), {"axis": d - input.ndim})


def scatter(input: Tensor, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
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


def index_add(input: Tensor, dim: int, index: Any, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """A copy with entries of ``source`` added at indices along ``dim``."""
    d = errors.check_dim("index_add", dim, input.ndim)
    where = index._array() if isinstance(index, Tensor) else np.asarray(index)
    values = source if alpha == 1 else source * alpha
    return rows.index_put(input, values, index=(slice(None),) * d + (where,), accumulate=True)


def index_copy(input: Tensor, dim: int, index: Any, source: Tensor) -> Tensor:
    """A copy with entries of ``source`` written at indices along ``dim``."""
    d = errors.check_dim("index_copy", dim, input.ndim)
    where = index._array() if isinstance(index, Tensor) else np.asarray(index)
    return rows.index_put(input, source, index=(slice(None),) * d + (where,), accumulate=False)


def index_fill(input: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """A copy with the entries at indices along ``dim`` filled with a value."""
    d = errors.check_dim("index_fill", dim, input.ndim)
    where = index._array() if isinstance(index, Tensor) else np.asarray(index)
    number = value if isinstance(value, Tensor) else wrap(np.asarray(value, input.dtype))
    return rows.index_put(input, number, index=(slice(None),) * d + (where,), accumulate=False)


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with values written (or added) at ``input[indices]``."""
    items = _index(tuple(indices))
    if not isinstance(values, Tensor):
        values = wrap(np.asarray(values, input.dtype))
    return rows.index_put(input, values, index=items, accumulate=accumulate)


def masked_fill(input: Tensor, mask: Any, value: Any) -> Tensor:
    """A copy with a value (a number or 0-d tensor) where the mask is True."""
    if getattr(mask, "dtype", None) != np.bool_:
        raise RuntimeError(
            f"masked_fill only supports boolean masks, but got mask with dtype {getattr(mask, 'dtype', type(mask).__name__)}"
        )
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        return ew.where(mask, cast(value, input.dtype), input)
    return ew.where(mask, wrap(np.asarray(value).astype(input.dtype)), input)


def masked_select(input: Tensor, mask: Any) -> Tensor:
    """The elements where the mask is True, in one vector."""
    x, m = shaping.broadcast_tensors(input, mask)
    return x[m]


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with the mask's places filled, in order, with elements of ``source``."""
    m = shaping.expand(mask, *input.shape)._array()
    n = int(m.sum())
    return rows.index_put(input, source.reshape(-1)[:n], index=(np.ascontiguousarray(m),), accumulate=False)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Indices of the nonzero elements: a matrix with one row each, or one vector per axis."""
    if type(input._data) is not ndarray:
        raise errors.data_dependent(input, "nonzero()")
    found = np.nonzero(input._data if input.ndim else input._data.reshape(1))
    if as_tuple:
        return tuple(wrap(i.astype(np.int64)) for i in found)
    return wrap(np.stack(found, 1).astype(np.int64)) if input.ndim else wrap(np.empty((len(found[0]), 0), np.int64))


argwhere = nonzero


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The distinct elements, in order."""
    out = np.unique(input._array(), return_index=False, return_inverse=return_inverse, return_counts=return_counts, axis=dim)
    if not (return_inverse or return_counts):
        return wrap(out)
    parts = list(out)
    if return_inverse and dim is None:
        parts[1] = parts[1].reshape(input.shape)
    return tuple(wrap(p) for p in parts)


def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Where the values would be inserted in a sorted vector to keep it sorted."""
    values = input._array() if isinstance(input, Tensor) else np.asarray(input)
    found = np.searchsorted(sorted_sequence._array(), values, side="right" if right else "left")
    return wrap(np.asarray(found, np.int32 if out_int32 else np.int64))


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The index of the bucket (between sorted boundaries) that every value falls in."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often every non-negative integer occurs; with weights, the sum of their weights."""
    x = input._array()
    if x.ndim != 1 or x.dtype.kind not in "iu":
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return wrap(np.bincount(x, minlength=minlength))
    n = max(int(x.max()) + 1 if x.size else 0, minlength)
    return bind(rows.take_add, (weights, x), {"axis": -1, "length": n})


def isin(elements: Tensor, test_elements: Any) -> Tensor:
    """Whether each element is among the test elements."""
    test = test_elements._array() if isinstance(test_elements, Tensor) else test_elements
    return wrap(np.asarray(np.isin(elements._array(), test)))
