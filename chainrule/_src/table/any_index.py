"""Read and write ``x[index]`` for any index, including index arrays that differ between the examples of a transformation.

``ops.indexing``, ``ops.array`` and ``ops.numpy_moves`` call ``read_any`` and ``put_any``.

If all index arrays are plain, the index is a parameter of one primitive (``getitem``, ``index``, ``index_put``). An index
array inside a transformation must be an operand. The indexed axes are then merged into one, the index arrays are combined
into one array of flat indices, and reading and writing are ``take``, ``scatter`` and ``scatter_add``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray
from chainrule._src.table.indexing import getitem, index, index_put, nonnegative_indices, scatter, scatter_add, take
from chainrule._src.table.shape import memory_order, with_memory_order
from chainrule._src.tape.foreign import innermost_foreign
from chainrule._src.tape.protocol import FUNCTIONS, strides_of, strip_derivatives
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray
Items = tuple[Any, ...]


def is_array(item: object) -> bool:
    return hasattr(item, "dtype") and hasattr(item, "shape")


def _all_plain(items: Items) -> bool:
    return all(type(i) is ndarray or not is_array(i) for i in items)


def read(x: AnyArray, items: object) -> Any:
    """Return ``x[items]`` for any array-like and any index NumPy accepts."""
    if type(items) is not tuple:
        items = (items,)
    if not any(is_array(i) or isinstance(i, list) for i in items):
        return getitem(x, index=items)
    return read_any(x, items)


def read_any(x: AnyArray, items: Items, order: str = "C") -> Any:
    """Return ``x[items]``, where some items are integer or boolean arrays; ``order`` as in the primitive ``index``."""
    if _all_plain(items):
        return index(x, index=items, order=order)
    parts = _split_index(items, len(shape_of(x)))
    in_c_order = order == "C" and _in_c_order(x)
    whole, x = x, _region(x, parts.basic)
    alone = len(parts.arrays) == 1 and parts.arrays[0][0] == parts.at
    # The result has the layout that ``index`` gives it: C order, or the layout of NumPy's result.
    own = innermost_foreign(x) is None and all([innermost_foreign(i) is None for _, i in parts.arrays])
    one_axis = alone and x is whole and not any(item is Ellipsis for item in items)
    as_numpy = own and (order == "K" or not (in_c_order or one_axis))
    if alone:
        axis, where = parts.arrays[0]
        taken, m = take(x, where, axis=axis - len(shape_of(x))), len(shape_of(where))
        if not as_numpy:
            return taken
        rest = [k if k < axis else k - 1 + m for k in memory_order(x) if k != axis]
        return with_memory_order(taken, [*range(axis, axis + m), *rest])
    indexed = [axis for axis, _ in parts.arrays]
    front, where = _merge_to_front(x, indexed), _flat_indices(shape_of(x), parts.arrays)
    taken = take(front, where, axis=-len(shape_of(front)))
    m = len(shape_of(where))
    if as_numpy:  # the axes of the arrays vary slowest, and the others are in the order of those of x
        rest = [axis for axis in range(len(shape_of(x))) if axis not in indexed]
        taken = with_memory_order(taken, [*range(m), *[m + rest.index(k) for k in memory_order(x) if k in rest]])
    moved = _move_axes(taken, 0, parts.at, m)
    return with_memory_order(moved, [*range(len(shape_of(moved)))]) if own and in_c_order else moved


def _in_c_order(x: AnyArray) -> bool:
    """Return whether the elements fill their memory in C order."""
    step = dtype_of(x).itemsize
    for length, stride in zip(reversed(shape_of(x)), reversed(strides_of(x)), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def put_any(x: AnyArray, values: Tensor, items: Items, accumulate: bool) -> Any:
    """Return a copy of x with values written (or added) at ``x[items]``, where some items are arrays."""
    if _all_plain(items):
        return index_put(x, values, index=items, accumulate=accumulate)
    parts = _split_index(items, len(shape_of(x)))
    region = _region(x, parts.basic)
    written = _put(region, values, parts, accumulate)
    if region is not x:
        return index_put(x, written, index=parts.basic, accumulate=False)
    # Lay the result out in memory like x, as ``index_put`` does.
    return written if innermost_foreign(x) is not None else with_memory_order(written, memory_order(x))


def _put(x: AnyArray, values: AnyArray, parts: _Parts, accumulate: bool) -> AnyArray:
    """Write or add values; of several values for one element the last is kept, and the others get no derivative."""
    axes = [axis for axis, _ in parts.arrays]
    lengths = [shape_of(x)[axis] for axis in axes]
    rest = [n for axis, n in enumerate(shape_of(x)) if axis not in axes]
    where = _flat_indices(shape_of(x), parts.arrays)
    found = shape_of(where)
    n, m, at = math.prod(found), len(found), parts.at
    values_shape = shape_of(values)
    while len(values_shape) > m + len(rest) and values_shape[0] == 1:
        values_shape = values_shape[1:]
    values = np.broadcast_to(np.reshape(values, values_shape), (*rest[:at], *found, *rest[at:]))
    values = np.reshape(_move_axes(values, at, 0, m), (n, *rest))
    where = np.reshape(where, (n,))
    if not accumulate and n > 1:
        order = np.arange(n)
        last = take(scatter(np.zeros(math.prod(lengths), np.intp), where, order, axis=-1), where, axis=-1)
        values = np.where(np.reshape(last == order, (n, *(1,) * len(rest))), values, strip_derivatives(values))
    where = np.broadcast_to(np.reshape(where, (n, *(1,) * len(rest))), (n, *rest))
    row = scatter_add if accumulate else scatter
    # x is moved last, so that it gets its gradient first, as with ``index_put``
    written = row(_merge_to_front(x, axes), where, values, axis=-1 - len(rest))
    if axes == [0]:
        return written
    return np.moveaxis(np.reshape(written, (*lengths, *rest)), tuple(range(len(axes))), tuple(axes))


class _Parts:
    """An index in two steps: a basic index, then arrays."""

    __slots__ = ("arrays", "at", "basic")

    def __init__(self, basic: Items, arrays: list[tuple[int, Any]], at: int) -> None:
        self.basic = basic  # the basic index, with full slices in the positions of arrays
        self.arrays = arrays  # (axis of the basic index's result, index array)
        self.at = at  # the position of the index arrays' own axes among the axes that no array indexes


def _split_index(items: Items, ndim: int) -> _Parts:
    items = _for_every_axis(items, ndim)
    among = [k for k, i in enumerate(items) if type(i) is int or is_array(i)]
    together = among[-1] - among[0] == len(among) - 1
    basic: list[Any] = []
    arrays = []
    axis = at = 0
    for k, item in enumerate(items):
        if k == among[0] and together:
            at = axis
        if is_array(item):
            arrays.append((axis, item))
            item = slice(None)
        basic.append(item)
        axis += type(item) is not int
    return _Parts(tuple(basic), arrays, at)


def _for_every_axis(items: Items, ndim: int) -> Items:
    """Return an index with one item per axis: masks become integer arrays; ellipses and missing items become slices."""
    named: list[Any] = []
    for item in items:
        if type(item) is ndarray and item.dtype == bool:
            named += item.nonzero()
        else:
            named.append(np.asarray(item) if isinstance(item, list) else item)
    missing = ndim - sum(item is not None and item is not Ellipsis for item in named)
    end = next((k for k, item in enumerate(named) if item is Ellipsis), len(named))
    return (*named[:end], *(slice(None),) * missing, *named[end + 1 :])


def _region(x: AnyArray, basic: Items) -> AnyArray:
    return x if all(type(i) is slice and i == slice(None) for i in basic) else getitem(x, index=basic)


def _merge_to_front(x: Any, axes: list[int]) -> Any:
    """Move the indexed axes to the front and merge them into one."""
    if axes == [0]:
        return x
    indexed_first = np.moveaxis(x, tuple(axes), tuple(range(len(axes))))
    lengths, rest = shape_of(indexed_first)[: len(axes)], shape_of(indexed_first)[len(axes) :]
    return np.reshape(indexed_first, (math.prod(lengths), *rest))


def _flat_indices(shape: tuple[int, ...], arrays: list[tuple[int, Any]]) -> Any:
    """Return the flat indices along the axis that ``_merge_to_front`` makes."""
    where = 0
    for axis, i in arrays:
        where = where * shape[axis] + nonnegative_indices(i, shape[axis], axis)
    return where


def _move_axes(x: Any, begin: int, end: int, n: int) -> AnyArray:
    """Move n axes that start at ``begin`` so that they start at ``end``, in the same order."""
    if begin == end or not n:
        return x
    return np.moveaxis(x, tuple(range(begin, begin + n)), tuple(range(end, end + n)))


FUNCTIONS["getitem"] = read
