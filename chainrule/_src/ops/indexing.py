"""``tensor[index]`` and ``tensor[index] = value``, with PyTorch's rules for indices.

``ops.array`` and ``ops.methods`` make them methods of ``Array`` and ``Tensor``.
"""

from __future__ import annotations

import sys
from opcode import opmap
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, as_tensors
from chainrule._src.api.making import to_array
from chainrule._src.arrays.any_array import is_recorded
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Index, TensorLike
from chainrule._src.messages import errors
from chainrule._src.messages.source_locations import PACKAGE
from chainrule._src.ops.shaping import apart
from chainrule._src.table import indexing as primitives
from chainrule._src.table.any_index import put_any, read_any
from chainrule._src.tape import inplace, trace_hooks, view
from chainrule._src.tape.dispatch import bind, cast, record_unary
from chainrule._src.tape.modes import WATCHES, is_recording
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.protocol import as_plain_array as plain_array
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import note_write, saveable_array

ndarray = np.ndarray


#: the operation named in errors about reading the values of a mask, with an alternative
MASK = "a boolean mask as an index (where np.where(mask, new, old) does without)"


def read_index(index: Any) -> tuple[Any, ...]:
    """Return an index as a tuple of ints, slices, None, Ellipsis and integer or boolean arrays."""
    if type(index) is not tuple:
        index = tuple(index) if _stands_for_tuple(index) else (index,)
    items = []
    for item in index:
        kind = type(item)
        if is_foreign(kind):
            item = wrap(plain_array(item))
        if kind is int or kind is slice or item is None or item is Ellipsis:
            items.append(_plain_slice(item) if kind is slice else item)
        elif kind is bool or kind is np.bool_:
            items.append(np.asarray(item))
        elif isinstance(item, (Tensor, Array)):
            items.append(_tensor_item(as_tensors(item)))
        elif isinstance(item, (list, tuple, ndarray, range)):
            array = np.asarray(
                saveable_array(plain_array(item))
                if isinstance(item, ndarray)
                else item
                if isinstance(item, range)
                else [_scalar(i) for i in item]
            )
            if array.size == 0 and array.dtype.kind == "f":
                array = array.astype(np.int64)
            if array.dtype.kind not in "iub":
                raise IndexError(
                    "tensors used as indices must be long, int, byte or bool tensors; got an array of dtype "
                    f"{array.dtype}"
                )
            items.append(array if array.shape or array.dtype.kind == "b" else int(array))
        elif hasattr(item, "__index__"):
            items.append(item.__index__())
        elif hasattr(item, "__array__"):  # another library's array, such as a column of a table
            items += read_index((np.asarray(item),))
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
                f"{kind.__name__})"
            )
    return tuple(items)


def _stands_for_tuple(index: Index) -> bool:
    """Return whether a short list of sequences is read as a tuple: ``x[[[0, 1], [2, 3]]]`` is ``x[[0, 1], [2, 3]]`` in PyTorch."""
    return (
        type(index) is list
        and len(index) < 32
        and any(isinstance(i, (slice, list, tuple, Tensor, ndarray)) or i is None or i is Ellipsis for i in index)
    )


def _scalar(item: Any) -> Any:
    return item._array() if isinstance(item, Tensor) else item


def _plain_slice(item: slice) -> slice:
    try:
        parts = [p if p is None or type(p) is int else p.__index__() for p in (item.start, item.stop, item.step)]
    except AttributeError:
        raise errors.slice_type(item) from None
    if parts[2] is not None and parts[2] <= 0:
        raise ValueError("step must be greater than zero: use flip() to reverse an axis")
    return slice(*parts)


def _tensor_item(item: Tensor) -> TensorLike:
    if item._raw.dtype.kind not in "iub":
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors; got {item.dtype}")
    trace_hooks.lift(item)
    if item._raw.dtype in (bool, np.uint8):  # uint8 masks are an old form in PyTorch
        return item._concrete(MASK).astype(bool, copy=False)
    raw = item._raw if type(item._raw) is ndarray else item._raw.concrete()
    if raw is None and is_recorded(item._raw) and not item._raw.shape:
        raw = item._concrete("an index")  # its result is a view
    if raw is None:  # the index differs between examples
        return item
    return raw if raw.shape else int(raw)


def _torch_error(error: IndexError, x: AnyArray) -> IndexError:
    """Convert NumPy's error about an index to PyTorch's wording."""
    text = str(error).replace("for axis", "for dimension")
    return IndexError(f"{text}: indexing a tensor of shape {tuple(x.shape)}")


def _axes(item: Any) -> int:
    """Return how many axes an item of an index consumes; 0 for an ellipsis."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if type(item) is ndarray and item.dtype.kind == "b" else 1


def _check_axes(items: tuple[object, ...], x: AnyArray) -> None:
    """Raise if an index has too many axes, or masks of another length than the axes (NumPy accepts empty masks)."""
    used = sum(map(_axes, items))
    if used > x.ndim:
        if x.ndim == 0:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                "convert a 0-dim tensor to a number"
            )
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    at = 0
    for item in items:
        if type(item) is ndarray and item.dtype.kind == "b":
            for k, length in enumerate(item.shape, at):
                if length != x.shape[k]:
                    raise IndexError(
                        f"The shape of the mask {list(item.shape)} at index {k} does not match the shape of the indexed "
                        f"tensor {list(x.shape)} at index {k}"
                    )
        at += x.ndim - used if item is Ellipsis else _axes(item)


def _numbers_first(items: tuple[Any, ...], ndim: int) -> tuple[tuple[Any, ...] | None, tuple[Any, ...]]:
    """Split an index with arrays into a basic index and the rest, where NumPy would read the whole index differently.

    NumPy treats a number as an index array, and an ellipsis separates two arrays even if it stands for no axis. Axes of
    separated arrays come first. PyTorch applies numbers first: ``x[0, :, [1, 2]]`` is ``x[0][:, [1, 2]]``.
    """
    rest = ndim - sum(map(_axes, items))
    remaining: list[Any] = []
    for item in items:
        remaining += [slice(None)] * rest if item is Ellipsis else [] if type(item) is int else [item]
    numbers = [isinstance(item, (int, ndarray, Tensor)) for item in items]
    arrays = [isinstance(item, (ndarray, Tensor)) for item in remaining]
    if not _separated(numbers) or _separated(arrays):
        return None, items
    basic: list[Any] = []
    for item, is_index in zip(items, numbers, strict=True):
        basic += [item] if type(item) is int or not is_index else [slice(None)] * _axes(item)
    return tuple(basic), tuple(item if a else slice(None) for item, a in zip(remaining, arrays, strict=True))


def _separated(is_array: list[bool]) -> bool:
    first = is_array.index(True)
    return not all(is_array[first : first + sum(is_array)])


_ITEMS = frozenset({int, type(None), type(Ellipsis)})
_BOUNDS = frozenset({int, type(None)})


def _as_numpy_reads_it(items: tuple[Any, ...]) -> bool:
    """Return whether an index has only plain integers, slices of them, None and Ellipsis: the fast path."""
    for item in items:
        kind = type(item)
        if kind is slice:
            step = item.step
            if step is not None and (type(step) is not int or step <= 0):
                return False
            if type(item.start) not in _BOUNDS or type(item.stop) not in _BOUNDS:
                return False
        elif kind not in _ITEMS:
            return False
    return True


def getitem(self: Tensor, index: object) -> Tensor:
    """Return ``tensor[index]``: a view for basic indices, a copy for integer and boolean ones."""
    data = self._raw
    items = index if type(index) is tuple else (index,)
    if type(data) is ndarray and not WATCHES and not trace_hooks.is_tracing() and _as_numpy_reads_it(items):
        try:
            part = data[items]
            part = part if type(part) is ndarray else data[(*items, ...)]
            return record_unary(primitives.getitem, self, {"index": items}, part)
        except IndexError:
            pass  # the slow path raises PyTorch's error
    items = read_index(index)
    _check_axes(items, self)
    try:
        if not any(isinstance(item, (ndarray, Tensor)) for item in items):
            return bind(primitives.getitem, (self,), {"index": items})
        basic, items = _numbers_first(items, self.ndim)
        return read_any(self if basic is None else getitem(self, basic), items)
    except IndexError as error:
        raise _torch_error(error, self) from None


def setitem(self: Tensor, index: object, value: TensorLike) -> None:
    """Set ``tensor[index] = value``. Gradients flow to the value, and to the elements that were not overwritten."""
    check_no_shuffle(self, index, value)
    items = read_index(index)
    _check_axes(items, self)
    if type(self._edge) is Leaf and is_recording() and _takes_view(items):
        raise errors.leaf_view_in_place("__setitem__")
    inplace.check_writable(self, "__setitem__")
    if any(isinstance(item, (ndarray, Tensor)) for item in items):
        basic, items = _numbers_first(items, self.ndim)
        if basic is not None:
            return setitem(getitem(self, basic), items, value)
    value = as_tensors(value)
    if not isinstance(value, Tensor):
        if isinstance(value, complex) and self._raw.dtype.kind != "c":
            raise errors.complex_into_real(self._raw.dtype)
        value = wrap(to_array(value, self.dtype))
    elif value._raw.dtype != self._raw.dtype:
        if any(isinstance(i, (ndarray, Tensor)) and i.dtype != bool for i in items):
            raise errors.index_put_dtype(value._raw.dtype, self._raw.dtype)
        value = cast(value, self._raw.dtype)
    data = self._raw
    plain = type(data) is ndarray and not any(isinstance(i, Tensor) for i in items)
    try:
        if (
            plain
            and type(value._raw) is ndarray
            and (not is_recording() or (self._edge is None and value._edge is None and _is_unrecorded(self)))
        ):
            data[items] = _leading_ones(value._raw, data, items)
            note_write(data, "__setitem__", errors.user_line())
            return
        if any(isinstance(i, (ndarray, Tensor)) for i in items):
            shape = data[items].shape if plain else None
            if shape is not None and value.ndim > len(shape):
                value = value.reshape(value.shape[value.ndim - len(shape) :])
            result = put_any(wrap(data, self._edge), value, items, False)
            inplace.write_result(self, result, "__setitem__")
            return
        region = getitem(self, items)
    except IndexError as error:
        raise _torch_error(error, self) from None
    except ValueError:
        raise _value_shape(self, items, value) from None
    while value.ndim > region.ndim and value.shape[0] == 1:
        value = value.squeeze(0)
    try:
        value = value.expand(region.shape)
    except RuntimeError:
        raise _value_shape(self, items, value) from None
    inplace.write_result(region, apart(value, region), "__setitem__")


def check_no_shuffle(target: Tensor, index: object, value: object) -> None:
    """Raise if ``random.shuffle`` or a NumPy generator swaps rows.

    They assign ``x[i], x[j] = x[j], x[i]``, where rows are views: one is overwritten before it is read. NumPy's generators are
    written in C, so the assignment happens while the calling frame is at a call instruction.
    """
    if type(index) is not int or not isinstance(value, Tensor) or value._view is None:
        return
    if value._view.base is not target and value._view.base is not view.base_of(target):
        return
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    code = frame.f_code
    in_c = code.co_code[frame.f_lasti] != opmap["STORE_SUBSCR"] and not {"__setitem__", "setitem"} & {*code.co_names}
    random = sys.modules.get("random")  # imported if one of its functions is running
    if in_c or (random is not None and code is random.Random.shuffle.__code__):
        raise errors.shuffled_in_place(shape_of(target._raw))


def _takes_view(items: tuple[object, ...]) -> bool:
    """Return whether an index first takes a view of a part of the tensor."""
    return any(item is None or type(item) is int or (type(item) is slice and item != slice(None)) for item in items)


def _is_unrecorded(tensor: Tensor) -> bool:
    """Return whether neither the tensor nor its base is recorded."""
    base = view.base_of(tensor)
    return base is None or base._edge is None


def _leading_ones(value: AnyArray, data: AnyArray, items: object) -> AnyArray:
    ndim = len(data[items].shape)
    while value.ndim > ndim and value.shape[0] == 1:
        value = value[0]
    return value


def _value_shape(x: Tensor, items: tuple[object, ...], value: Tensor) -> RuntimeError:
    shape = list(getitem(x.detach(), items).shape)
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of shape "
        f"{shape} (of a tensor of shape {list(x.shape)})"
    )
