"""Read and write by index. Reading is linear, and its transpose adds into zeros.

``ops.indexing``, ``ops.gathering`` and ``ops.scattering`` apply the primitives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.any_array import is_array, is_recorded
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyArray, Params
from chainrule._src.rules.batching import batch_parameters, broadcast_batch, prepend_size
from chainrule._src.rules.kinds import call, linear, unbroadcast
from chainrule._src.rules.primitive import Primitive
from chainrule._src.table.shape import functional_scatter, memory_order, with_memory_order
from chainrule._src.tape.foreign import (
    Foreign,
    are_writable,
    constant_like,
    copy_in_library,
    innermost_foreign,
    is_foreign_index,
    zeros_on_device_of,
)
from chainrule._src.tape.protocol import memory_of, predicate_holds

ndarray = np.ndarray


def _last_kind(index: tuple[object, ...]) -> str:
    """Return the name of the last effective step of an index: PyTorch applies an index item by item."""
    if len(index) == 1 and isinstance(index[0], slice):
        return "SliceBackward0"
    for item in reversed(index):
        if item is None:
            return "UnsqueezeBackward0"
        if isinstance(item, slice):
            if item != slice(None):
                return "SliceBackward0"
        elif item is not Ellipsis:
            return "SelectBackward0"
    return "AliasBackward0"


_batch_basic = batch_parameters(shape=prepend_size, index=lambda index, size: (slice(None), *index))
_BASIC = [
    call((3, 4), index=(1,)),
    call((3, 4), index=(slice(None), slice(0, 4, 2))),
    call((3, 4), index=(Ellipsis, None, 2)),
    call((3, 4), index=(slice(None, None, -1), slice(1, 1))),
    call((3, 4), index=(-1, 2)),
    call((), index=(Ellipsis,)),
]


@linear(
    transpose=lambda g, x_shape, *, index: embed(g, shape=x_shape, index=index),
    batch=_batch_basic,
    view=True,
    moves=True,
    naming=lambda params: _last_kind(params["index"]),
    samples=_BASIC,
)
def getitem(x: Any, *, index: Any) -> Any:
    """Apply a basic index: integers, slices, None and Ellipsis. The result is a view."""
    part = x[index]
    return x[(*index, Ellipsis)] if isinstance(part, np.generic) else part  # with Ellipsis a 0-d result is a view


@linear(
    transpose=lambda g, *, index: getitem(g, index=index),
    batch=_batch_basic,
    naming="SliceBackward0",
    samples=[
        call((3,), shape=(3,), index=(slice(None, None, -1),)),
        call((4,), shape=(3, 4), index=(1,)),
        call((3, 2), shape=(3, 4), index=(slice(None), slice(0, 4, 2))),
    ],
    structure="selection",
)
def embed(x: AnyArray, *, shape: object, index: object) -> AnyArray:
    """Return zeros of a shape, with x written at a basic index."""
    if type(x) is Foreign:
        return x.by_row("embed", functional_scatter().embed_by_padding, shape=shape, index=index)
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


# -- integer and boolean arrays as indices ---------------------------------------------------------------------------


def _unique(index: tuple[object, ...]) -> bool:
    """Return whether an index of arrays selects no element twice: all its arrays are masks."""
    return all(i.dtype == bool for i in index if isinstance(i, ndarray))


def _array_batch(prim: Primitive, payloads: Any, batched: Sequence[int], size: int, params: Params) -> AnyArray:
    """Move the batch axis last, where no index reaches it: an index may move the axes that it indexes to the front."""
    params = dict(params)
    payloads = [p if b else broadcast_batch(p, size) for p, b in zip(payloads, batched, strict=True)]
    index = params["index"]
    params["index"] = (*index, slice(None) if any(item is Ellipsis for item in index) else Ellipsis)
    if "shape" in params:
        params["shape"] = (*params["shape"], size)
    batch_last = [np.moveaxis(p, 0, -1) for p in payloads]
    out = np.moveaxis(prim(*batch_last, **params), -1, 0)
    if params.get("order") == "K" and len(shape_of(out)) > 2:  # lay out each example by itself
        return with_memory_order(out, [0, *[k for k in memory_order(out) if k]])
    return out


_ADVANCED = [
    call((3, 4), index=(np.array([0, 2, 0]),)),
    call((3, 4), index=(slice(None), np.array([[1, 1], [3, 0]]))),
    call((3, 4), index=(np.array([0, 1]), np.array([2, 2]))),
    call((3,), index=(np.array([True, False, True]),)),
    call((2, 3), index=(np.array([[True, False, True], [False, False, True]]),)),
    call((3, 4), index=(Ellipsis, np.array([-1, 0]))),
    call((2, 3, 4), index=(np.array([0, 1]), slice(None), np.array([2, 2]))),
    call((2, 3, 4), index=(slice(None), None, np.array([2, 2]), 1)),
    call((3, 4), index=(np.array([], int),)),
    call((2, 3), index=(np.array([True, False]), np.array([0, 2, 0]))),
]


def _along_one_axis(x: AnyArray, index: tuple[Any, ...]) -> Any:
    """Return (axis, indices along it) for an index of one array and full slices; None for any other index."""
    axis = None
    for k, item in enumerate(index):
        if is_array(item) and axis is None:
            axis = k
        elif type(item) is not slice or item != _FULL:
            return None
    if axis is None or not (array := index[axis]).shape:
        return None
    if array.dtype != bool:
        return axis, array
    fits = array.ndim == 1 and array.shape == x.shape[axis : axis + 1]
    return (axis, array.nonzero()[0]) if fits else None


_FULL = slice(None)


def _only_first_axis(x: NumpyArray, index: tuple[object, ...]) -> bool:
    """Return whether only the first axis of a C-contiguous array is indexed: then NumPy's result is C-contiguous, too."""
    return x.flags.c_contiguous and is_array(index[0]) and not any(is_array(item) for item in index[1:])


@linear(
    transpose=lambda g, x_shape, *, index: add_at(g, shape=x_shape, index=index),
    batch=_array_batch,
    moves=True,
    samples=_ADVANCED,
)
def index(x: Any, *, index: Any, order: Any = "C") -> Any:
    """Index with integer or boolean arrays, as NumPy does. The copy is laid out like x, or as NumPy's result ("K")."""
    if not is_array(x) or (order == "K" and not _only_first_axis(x, index)):
        return x[index]
    along = _along_one_axis(x, index)
    if along is not None:
        return x.take(along[1], axis=along[0])
    out = x[index]
    return np.ascontiguousarray(out) if x.flags.c_contiguous and is_array(out) and out.ndim else out


read = index  # an alias that a rule's parameter ``index`` does not shadow


@linear(
    transpose=lambda g, *, index: read(g, index=index),
    batch=_array_batch,
    naming="IndexPutBackward0",
    samples=[
        call((3, 4), shape=(3, 4), index=(np.array([0, 2, 0]),)),
        call((3,), shape=(2, 3), index=(np.array([[True, False, True], [False, False, True]]),)),
        call((3, 2, 2), shape=(3, 4), index=(np.array([[0, 2], [0, 0]]), np.array([1, 2, 1])[:, None, None])),
        call((2, 3), shape=(2, 3, 4), index=(np.array([0, 1]), slice(None), np.array([2, 2]))),
        call((3,), shape=(2, 3), index=(np.array([False, True]), np.array([0, 2, 0]))),
    ],
    structure="scatter",
)
def add_at(x: AnyArray, *, shape: object, index: object) -> AnyArray | None:
    """Return zeros of a shape, with x added at an index; values for the same element are summed."""
    if not are_writable(x):
        return functional_scatter().scatter_sum(x, shape, index)
    out = zeros_on_device_of(x, shape, x.dtype)
    if _unique(index):
        out[index] = x
    else:
        np.add.at(out, index, x)
    return out


def _put_values(
    g: AnyArray, x_shape: tuple[int, ...], values_shape: tuple[int, ...], *, index: tuple[Any, ...], accumulate: bool
) -> AnyArray:
    """Return the cotangent of the values; of several values written to one element, only the last gets it."""
    part = read(g, index=index)
    if not accumulate and not _unique(index):
        positions = np.arange(math.prod(shape_of(part))).reshape(shape_of(part))
        last = np.empty(x_shape, np.intp)
        last[index] = positions
        part = np.where(last[index] == positions, part, np.zeros((), g.dtype))
    return unbroadcast(part, values_shape, g.dtype)


@linear(
    transpose={
        "x": lambda g, *, index, accumulate: (
            g if accumulate else index_put(g, np.zeros((), g.dtype), index=index, accumulate=False)
        ),
        "values": _put_values,
    },
    formula={
        "x": "g if accumulate else index_put(g, 0.0, index=index, accumulate=False)",
        "values": "_put_values(g, x_shape, values_shape, index=index, accumulate=accumulate)",
    },
    batch=_array_batch,
    samples=[
        call((3, 4), (4,), index=(np.array([0, 2]),), accumulate=False),
        call((3, 4), (3, 4), index=(np.array([0, 2, 0]),), accumulate=True),
        call((3, 4), (4, 4), index=(np.array([0, 2, 0, -3]),), accumulate=False),
        call((3, 4), (), index=(1,), accumulate=False),
        call((2, 3), (), index=(np.array([[True, False, True], [False, False, True]]),), accumulate=False),
        call((2, 3, 4), (2, 1), index=(slice(None), np.array([0, 2]), slice(1, 3)), accumulate=True),
        call((2, 3, 4), (3,), index=(np.array([0, 1]), slice(None), np.array([2, 3])), accumulate=False),
    ],
    structure={
        "x": lambda params: "diagonal" if params["accumulate"] else "selection",
        "values": lambda params: "scatter" if params["accumulate"] else "selection",
    },
)
def index_put(x: AnyArray, values: AnyArray, *, index: tuple[Any, ...], accumulate: bool) -> AnyArray | None:
    """Return x with values written (or added) at an index."""
    if not (is_array(x) and is_array(values)):
        return (
            x + functional_scatter().scatter_sum(values, shape_of(x), index)
            if accumulate
            else functional_scatter().scatter_write(x, values, index)
        )
    out = np.array(x, order="K", copy=True)
    if accumulate:
        if out.ndim == values.ndim == len(index) == 1 and np.ndim(index[0]) > 1:
            # NumPy (2.4) adds a row of values once, although each row of indices should get it
            values = np.broadcast_to(values, index[0].shape)
        np.add.at(out, index, values)
    else:
        out[index] = values
    return out


# -- along one axis --------------------------------------------------------------------------------------------------


@linear(
    transpose={"x": lambda g, index, x_shape, *, axis: scatter_add(np.zeros(x_shape, g.dtype), index, g, axis=axis)},
    samples=[call((2, 3), np.array([[0, 2, 2, 1], [1, 1, 0, -1]]), axis=-1), call((3, 2), np.array([[2, 0]]), axis=-2)],
    structure="selection",
)
def gather(x: AnyArray, index: AnyArray, *, axis: int) -> AnyArray:
    """Return one element of x per index along an axis, as ``np.take_along_axis``."""
    return take_along_axis(x, index, axis)


def take_along_axis(x: AnyArray, index: AnyArray, axis: int) -> AnyArray:
    """Call ``np.take_along_axis``, or its counterpart for an index of another library."""
    return (
        functional_scatter().take_along_foreign(x, index, axis)
        if is_foreign_index(index)
        else np.take_along_axis(x, index, axis)
    )


def _grid(index: AnyArray, axis: int) -> tuple[AnyArray, ...]:
    """Return the index arrays for all positions in ``index``'s shape, with ``index`` itself along ``axis``."""
    grid = list(np.indices(index.shape, sparse=True))
    grid[axis] = index
    return tuple(grid)


def crop_to_index(x: AnyArray, index: AnyArray, axis: int) -> AnyArray:
    """Crop x to the index's sizes along the other axes: the part that the index can read or write."""
    sizes, ends = shape_of(x), shape_of(index)
    if sizes[:axis] == ends[:axis] and sizes[axis:][1:] == ends[axis:][1:]:
        return x
    return x[tuple(slice(None) if k == len(sizes) + axis else slice(0, end) for k, end in enumerate(ends))]


@linear(
    transpose={
        "x": lambda g: g,
        "src": lambda g, index, *, axis: gather(crop_to_index(g, index, axis), index, axis=axis),
    },
    samples=[
        call((3, 4), np.array([[2, 0], [1, 1]]), (2, 2), axis=-1),
        call((2, 3, 2), np.array([[[0], [2]]]), (1, 2, 1), axis=-2),
        call((2, 3), np.array([[0, 2, 2, 1], [1, 1, 0, 2]]), (2, 4), axis=-1),
        call((3, 2), np.array([[2, 0]]), (1, 2), axis=-2),
    ],
    structure={"x": "diagonal", "src": "scatter"},
)
def scatter_add(x: AnyArray, index: AnyArray, src: AnyArray, *, axis: int) -> AnyArray | None:
    """Return x with every element of src added at its index along an axis."""
    if is_foreign_index(index):
        added = functional_scatter().take_along_foreign_transpose(
            np.broadcast_to(src, shape_of(index)), index, axis, shape_of(x)[axis]
        )
        return (
            x + added
            if shape_of(added) == shape_of(x)
            else x + functional_scatter().embed_by_padding(added, shape_of(x), _corner(added))
        )
    if not are_writable(x, src):
        return x + functional_scatter().scatter_sum(src, shape_of(x), _grid(index, axis)) if index.size else x
    out = copy_in_library(x if is_array(src) else constant_like(src, x), "C")
    if index.size:
        steps = [math.prod(out.shape[k + 1 :]) for k in range(out.ndim)]
        grid = _grid(nonnegative_indices(index, out.shape[axis], axis), axis)
        at = sum(i * step for i, step in zip(grid, steps, strict=True))
        # faster than indexing along each axis
        np.add.at(out.reshape(-1), at.ravel(), np.broadcast_to(src, index.shape).ravel())
    return out


@linear(
    transpose={
        "x": lambda g, index, *, axis: scatter(g, index, np.zeros(shape_of(index), g.dtype), axis=axis),
        "src": lambda g, index, *, axis: gather(crop_to_index(g, index, axis), index, axis=axis),
    },
    samples=[
        call((3, 4), np.array([[2, 0], [1, 3]]), (2, 2), axis=-1),
        call((2, 3), np.array([[2, 0], [1, 2]]), (2, 2), axis=-1),
        call((3, 2), np.array([[2, 0]]), (1, 2), axis=-2),
    ],
    structure="selection",
)
def scatter(x: AnyArray, index: AnyArray, src: AnyArray, *, axis: int) -> AnyArray | None:
    """Return x with every element of src written at its index along an axis."""
    if not (is_array(x) and is_array(src)) and is_array(index):
        return functional_scatter().scatter_write(x, src, _grid(index, axis)) if index.size else x
    x = constant_like(innermost_foreign(index), x) if is_array(x) else x
    out = copy_in_library(x)
    if index.size:
        out[_grid(index, axis)] = src
    return out


def _corner(x: AnyArray) -> tuple[slice, ...]:
    return tuple(map(slice, shape_of(x)))


def nonnegative_indices(index: Any, n: int, axis: int) -> Any:
    """Convert integer indices along an axis of length n to nonnegative ones.

    Raises:
        IndexError: an index is out of range (also if it is in some of the examples of a transformation only).
    """
    if is_foreign_index(index):  # the values may not be computed yet
        return index
    index = np.asarray(index) if isinstance(index, np.generic) else index
    if is_recorded(index):  # a compiled function has to check again
        return index.on_numbers(_FromFront(n, axis))
    outside = Outside(n, -n)
    if predicate_holds(index, outside):
        raise outside.error(memory_of(index), axis)
    return np.remainder(np.astype(index, np.int64), max(n, 1))


class Outside(NamedTuple):
    """A check whether some integers are out of range for an axis of n elements; ``low`` is the smallest valid index."""

    n: int
    low: int

    def __call__(self, index: Any) -> Any:
        return np.asarray(bool(index.size) and (int(index.max()) >= self.n or int(index.min()) < self.low))

    def error(self, numbers: NumpyArray, axis: int) -> IndexError:
        first = numbers[(numbers < self.low) | (numbers >= self.n)].flat[0]
        return IndexError(f"index {first} is out of bounds for dimension {axis} with size {self.n}")


class _FromFront(NamedTuple):
    """``nonnegative_indices`` of plain integers, as a callable that can be recorded."""

    n: int
    axis: int

    def __call__(self, index: AnyArray) -> AnyArray:
        return nonnegative_indices(np.asarray(index), self.n, self.axis)


def _take_batch(prim: Primitive, payloads: Any, batched: Sequence[int], size: int, params: Params) -> Any:
    x, index = payloads
    axis = params["axis"]
    if not batched[1]:
        return prim(x, index, axis=axis)
    if not batched[0]:  # the index's axes, with its batch axis, replace the indexed axis
        return np.moveaxis(prim(x, index, axis=axis), len(shape_of(x)) + axis, 0)
    # Merge the batch axis and the indexed axis into one of size·n, and add each example's offset to its indices.
    first = np.moveaxis(x, axis, 1)
    shape = shape_of(first)
    n = shape[1]
    rest = shape[2:]
    flat = np.reshape(first, (size * n, *rest))
    offsets = np.reshape(np.arange(size) * n, (size, *(1,) * (len(shape_of(index)) - 1)))
    taken = prim(flat, nonnegative_indices(index, n, len(shape_of(x)) - 1 + axis) + offsets, axis=-len(rest) - 1)
    extra = len(shape_of(index)) - 1
    position = len(shape_of(x)) + axis  # the final position of the index axes, counted with the batch axis in front
    return np.moveaxis(taken, tuple(range(1, 1 + extra)), tuple(range(position, position + extra))) if extra else taken


@linear(
    transpose={"x": lambda g, index, x_shape, *, axis: take_add(g, index, axis=axis, length=x_shape[axis])},
    batch=_take_batch,
    naming="IndexSelectBackward0",
    samples=[
        call((3, 2), np.array([0, 2, 0, -1]), axis=-2),
        call((2, 3), np.array([[1, 1], [2, 0]]), axis=-1),
        call((2, 3, 2), np.array([[1, 1], [2, 0]]), axis=-2),
        call((2, 3), np.array(1), axis=-1),
    ],
    structure="selection",
)
def take(x: AnyArray, index: AnyArray, *, axis: int) -> AnyArray:
    """Return the entries of x at indices along an axis, as ``np.take``; the index's axes replace the axis."""
    return (
        functional_scatter().take_foreign(x, index, axis) if is_foreign_index(index) else np.take(x, index, axis=axis)
    )


def _take_add_batch(prim: Primitive, payloads: Any, batched: Any, size: int, params: Params) -> Any:
    g, index = payloads
    axis, length = params["axis"], params["length"]
    if not batched[1]:
        return prim(g, index, axis=axis, length=length)
    g = g if batched[0] else broadcast_batch(g, size)
    extra = len(shape_of(index)) - 1
    start = len(shape_of(g)) + axis + 1 - extra  # first of the index axes in g
    index_first = np.moveaxis(g, tuple(range(start, start + extra)), tuple(range(1, 1 + extra))) if extra else g
    rest = shape_of(index_first)[1 + extra :]
    offsets = np.reshape(np.arange(size) * length, (size, *(1,) * extra))
    flat = prim(index_first, np.remainder(index, length) + offsets, axis=-len(rest) - 1, length=size * length)
    return np.moveaxis(np.reshape(flat, (size, length, *rest)), 1, axis)


@linear(
    transpose={"x": lambda g, index, *, axis: take(g, index, axis=axis)},
    formula={"x": "np.take(g, index, axis)"},
    batch=_take_add_batch,
    naming="IndexAddBackward0",
    samples=[
        call((4, 2), np.array([0, 2, 0, -1]), axis=-2, length=3),
        call((2, 2, 2), np.array([[1, 1], [2, 0]]), axis=-1, length=3),
        call((2, 2, 2, 2), np.array([[1, 1], [2, 0]]), axis=-2, length=3),
        call((2,), np.array(1), axis=-1, length=3),
    ],
    structure="scatter",
)
def take_add(x: AnyArray, index: AnyArray, *, axis: int, length: int) -> AnyArray:
    """Apply the transpose of ``take``: add the entries of x at their indices to zeros of ``length`` along the axis."""
    shape = x.shape
    n = index.ndim
    after = -axis - 1
    start = len(shape) - after - n
    if is_foreign_index(index):
        return functional_scatter().take_foreign_transpose(x, index, axis, length)
    if not are_writable(x):
        return functional_scatter().scatter_sum(
            x, (*shape[:start], length, *shape[len(shape) - after :]), (*(slice(None),) * start, index)
        )
    out = zeros_on_device_of(x, (*shape[:start], length, *shape[len(shape) - after :]), x.dtype)
    if x.size:  # NumPy checks indices along an empty axis even where there is nothing to add
        np.add.at(out, (*(slice(None),) * start, index), x)
    return out
