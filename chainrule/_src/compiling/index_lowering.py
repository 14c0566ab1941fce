"""Lower indexing with arrays of positions (gather and scatter) to C loops of chainrule.

Positions are operands, so each run checks that they are within bounds. The loops are ``checked``: if one fails, the eager call raises
the error. ``data_movement``, ``gathers`` and ``lowering`` call this module. Constant positions are handled by ``gathers``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import NumpyArray, Shape
from chainrule._src.compiling.call_loops import CallLoops, in_one_line
from chainrule._src.compiling.iteration import broadcast_strides, is_run, merged_axes, sorted_axes
from chainrule._src.compiling.loops import InnerLoop, Operand, Unlowered, own_loop
from chainrule._src.interpreters.rebuilt import ArrayPlaceholder, Rebuilt
from chainrule._src.interpreters.trace_types import TracedCall, Var

ndarray = np.ndarray
INTEGER = np.dtype(np.intp)
#: the maximum number of axes that are indexed by arrays
MOST = 30


class IndexedRegion(NamedTuple):
    """The region of an array at an index, with axes like those of ``x[index]``.

    Attributes:
        offset: the offset of the region in bytes; shape, strides: its shape, and strides that are 0 along axes of positions.
        positions: the arrays of positions, each with strides along the axes of the region.
        lengths, steps: the lengths and strides of the axes that are indexed by positions.
    """

    offset: int
    shape: Shape
    strides: list[int]
    positions: list[tuple[Operand, list[int]]]
    lengths: Shape
    steps: Shape


def indexed_region(loops: CallLoops, x: Operand, index: tuple[object, ...]) -> IndexedRegion:
    """Return the region at an index of integers, slices, None, Ellipsis and arrays (Operands or plain arrays)."""
    items = _for_every_axis(loops, index, len(x.layout.shape))
    among = [k for k, item in enumerate(items) if type(item) is int or isinstance(item, Operand)]
    together = not among or among[-1] - among[0] == len(among) - 1
    arrays = [item for item in items if isinstance(item, Operand)]
    if len(arrays) > MOST:
        raise Unlowered
    common = np.broadcast_shapes(*[item.layout.shape for item in arrays])
    axes: list[tuple[int, int]] = []
    offset, first_axis = x.offset, 0
    lengths, steps = [], []
    of_x = iter(zip(x.layout.shape, x.layout.strides, strict=True))
    for k, item in enumerate(items):
        if among and k == among[0] and together:
            first_axis = len(axes)
        if item is None:
            axes.append((1, 0))
            continue
        n, stride = next(of_x)
        if type(item) is int:
            if not -n <= item < n:
                raise Unlowered
            offset += item % n * stride
        elif type(item) is slice:
            start, _, step = item.indices(n)
            length = len(range(*item.indices(n)))
            offset += start * stride if length else 0
            axes.append((length, step * stride))
        else:
            lengths.append(n)
            steps.append(stride)
    shape = (*[n for n, _ in axes[:first_axis]], *common, *[n for n, _ in axes[first_axis:]])
    strides = [*[step for _, step in axes[:first_axis]], *[0] * len(common), *[step for _, step in axes[first_axis:]]]
    after = len(axes) - first_axis
    positions = [(item, [0] * first_axis + broadcast_strides(item.layout, common) + [0] * after) for item in arrays]
    return IndexedRegion(offset, shape, strides, positions, tuple(lengths), tuple(steps))


def _for_every_axis(loops: CallLoops, index: tuple[object, ...], ndim: int) -> list[Any]:
    """Return an index with an item for every axis, and Operands in place of arrays."""
    items: list[Any] = []
    for item in index:
        if isinstance(item, np.generic | list) or type(item) is bool:
            raise Unlowered
        if type(item) is ndarray and item.dtype == bool:
            if not item.ndim:
                raise Unlowered
            items += [_positions(loops, part) for part in item.nonzero()]
        elif isinstance(item, ndarray | Operand):
            items.append(_positions(loops, item))
        elif item is None or item is Ellipsis or type(item) in (int, slice):
            items.append(item)
        else:
            raise Unlowered
    if any([type(item) is slice and not _is_plain(item) for item in items]):
        raise Unlowered
    missing = ndim - sum([item is not None and item is not Ellipsis for item in items])
    end = next((k for k, item in enumerate(items) if item is Ellipsis), len(items))
    if missing < 0:
        raise Unlowered
    return [*items[:end], *[slice(None)] * missing, *items[end + 1 :]]


def _is_plain(item: slice) -> bool:
    return all([part is None or type(part) is int for part in (item.start, item.stop, item.step)])


def _positions(loops: CallLoops, item: NumpyArray | Operand) -> Operand:
    """Return an array of positions as an operand of intp."""
    if item.dtype.kind not in "iu" or (item.dtype.kind == "u" and item.dtype.itemsize == INTEGER.itemsize):
        raise Unlowered
    if isinstance(item, Operand):
        return loops.converted(item, INTEGER)
    array = np.array(item, INTEGER, order="C")
    return Operand(loops.template.number(array), array.shape, array.strides, INTEGER)


def _add_index_loop(
    loops: CallLoops, name: str, target: IndexedRegion, array: Operand, other: Operand, first: bool, in_order: bool
) -> None:
    """Add a loop over the elements of a region of ``array``, and the elements of ``other``.

    Args:
        first: True if ``array`` is the first argument, which the loop reads; False if it is the last one, which the loop writes.
        in_order: whether elements at equal positions must be processed in the order of the positions.
    """
    if math.prod(target.shape) == 0:
        if any([0 not in part.layout.shape for part, _ in target.positions]):
            raise Unlowered  # NumPy checks the positions, even for an empty result
        return
    ndim = len(target.shape)
    every = [target.strides, *[steps for _, steps in target.positions], broadcast_strides(other.layout, target.shape)]
    args = [
        (array.slot, target.offset),
        *[(part.slot, part.offset) for part, _ in target.positions],
        (other.slot, other.offset),
    ]
    itemsizes = [array.dtype.itemsize, *[INTEGER.itemsize] * len(target.positions), other.dtype.itemsize]
    order = list(range(ndim - 1, -1, -1)) if in_order else sorted_axes([every[-1]], ndim)
    if not first:
        every[0], every[-1], args[0], args[-1] = every[-1], every[0], args[-1], args[0]
    address, _ = own_loop(name)
    loops.template.loops.append(
        InnerLoop(
            name,
            (address, len(target.positions)),
            merged_axes(list(target.shape), every, order),
            args,
            itemsizes,
            core=target.lengths,
            core_strides=target.steps,
            checked=True,
        )
    )


def lower_index_read(loops: CallLoops, x: Operand, index: tuple[object, ...], out: Operand) -> None:
    """Lower ``x[index]``."""
    target = indexed_region(loops, x, index)
    if not target.positions or target.shape != out.layout.shape or x.dtype != out.dtype:
        raise Unlowered
    _add_index_loop(loops, f"elements{out.dtype.itemsize}", target, x, out, True, False)


def lower_index_write(
    loops: CallLoops, out: Operand, index: tuple[object, ...], values: Operand, accumulate: bool
) -> None:
    """Lower ``out[index] = values``, or ``np.add.at(out, index, values)``."""
    target = indexed_region(loops, out, index)
    if values.dtype != out.dtype or np.broadcast_shapes(target.shape, values.layout.shape) != target.shape:
        raise Unlowered
    if not target.positions and not accumulate:
        loops.copy(values, Operand(out.slot, target.shape, tuple(target.strides), out.dtype, target.offset))
        return
    if not target.positions or not all([_in_c_order(part) for part, _ in target.positions]):
        raise Unlowered  # NumPy may iterate over them in another order
    name = f"add_{out.dtype.str[1:]}" if accumulate else f"put{out.dtype.itemsize}"
    _add_index_loop(loops, name, target, out, values, False, True)


def _in_c_order(x: Operand) -> bool:
    """Return whether NumPy iterates over positions in C order for any layout of the values."""
    shape, strides, _ = x.layout
    return is_run(x.layout, reversed(range(len(shape)))) or (len(shape) == 1 and strides[0] > 0)


def _add_zero_fill(loops: CallLoops, out: Operand) -> None:
    loops.copy(Operand(loops.template.number(np.zeros((), out.dtype)), (), (), out.dtype), out)


# -- calls -----------------------------------------------------------------------------------------------------------


def lower_take_or_getitem(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.take`` and ``x[index]``."""
    given = dict(zip(("a", "indices", "axis"), call.args, strict=False)) | call.kwargs
    if call.function is np.take:
        if (
            not set(given) <= {"a", "indices", "axis"}
            or type(given["a"]) is not Var
            or type(given["indices"]) is not Var
        ):
            raise Unlowered
        x, positions = loops.reads
        lower_take_along(loops, x, positions, given.get("axis"), loops.writes[0])
        return
    reads: Iterator[Operand] = iter(loops.reads)
    x = next(reads)
    items = call.args[1] if type(call.args[1]) is tuple else (call.args[1],)
    lower_index_read(loops, x, tuple([next(reads) if type(item) is Var else item for item in items]), loops.writes[0])


def lower_take_along(loops: CallLoops, x: Operand, positions: Operand, axis: int | None, out: Operand) -> None:
    if axis is None:
        x, axis = in_one_line(x), 0
    if type(axis) is not int:
        raise Unlowered
    lower_index_read(loops, x, (*[slice(None)] * (axis % max(len(x.layout.shape), 1)), positions), out)


def lower_take_along_axis(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.take_along_axis``."""
    given = dict(zip(("arr", "indices", "axis"), call.args, strict=False)) | call.kwargs
    if len(loops.reads) != 2 or type(given.get("axis")) is not int or type(given["arr"]) is not Var:
        raise Unlowered
    lower_gather(loops, given["axis"])


def lower_gather(loops: CallLoops, axis: int) -> None:
    (x, positions), (out,) = loops.reads, loops.writes
    target = _region_along_axis(loops, x, positions, axis)
    if target.shape != out.layout.shape or x.dtype != out.dtype:
        raise Unlowered
    _add_index_loop(loops, f"elements{out.dtype.itemsize}", target, x, out, True, False)


def _region_along_axis(loops: CallLoops, x: Operand, positions: Operand, axis: int) -> IndexedRegion:
    """Return the region of x with one element per position along an axis."""
    positions = _positions(loops, positions)
    (lengths, strides, _), (shape, _, _) = x.layout, positions.layout
    if len(lengths) != len(shape) or not lengths:
        raise Unlowered
    axis %= len(lengths)
    if any([n > m for k, (n, m) in enumerate(zip(shape, lengths, strict=True)) if k != axis]):
        raise Unlowered
    along = [0 if k == axis or shape[k] == 1 else step for k, step in enumerate(strides)]
    if any([n == 1 < m for k, (n, m) in enumerate(zip(shape, lengths, strict=True)) if k != axis]):
        raise Unlowered  # take_along_axis broadcasts such positions, gather uses only the first elements
    pairs = [(positions, broadcast_strides(positions.layout, shape))]
    return IndexedRegion(x.offset, shape, along, pairs, (lengths[axis],), (strides[axis],))


def lower_scatter_into_copy(loops: CallLoops, axis: int, accumulate: bool) -> None:
    """Lower a copy of an array with values added or written at positions along an axis."""
    (x, positions, values), (out,) = loops.reads, loops.writes
    loops.copy(x, out)
    target = _region_along_axis(loops, out, positions, axis)
    if values.dtype != out.dtype or x.dtype != out.dtype or not _in_c_order(target.positions[0][0]):
        raise Unlowered
    name = f"add_{out.dtype.str[1:]}" if accumulate else f"put{out.dtype.itemsize}"
    _add_index_loop(loops, name, target, out, values, False, True)


def lower_take_add(loops: CallLoops, axis: int, length: int) -> None:
    """Lower zeros with values added at positions along an axis."""
    (values, positions), (out,) = loops.reads, loops.writes
    _add_zero_fill(loops, out)
    lower_index_write(loops, out, (*[slice(None)] * (axis % len(out.layout.shape)), positions), values, True)


def lower_add_at(loops: CallLoops, shape: Shape, index: tuple[NumpyArray | slice, ...]) -> None:
    """Lower zeros with values added at an index."""
    (values,), (out,) = loops.reads, loops.writes
    _add_zero_fill(loops, out)
    lower_index_write(loops, out, index, values, True)


def lower_getitem(loops: CallLoops, index: tuple[object, ...], order: str = "C") -> None:
    """Lower ``x[index]`` into a result with the recorded layout. ``order`` is ignored."""
    lower_index_read(loops, loops.reads[0], index, loops.writes[0])


def lower_put_at(loops: CallLoops, index: tuple[object, ...], accumulate: bool) -> None:
    """Lower a copy of an array with values written or added at an index."""
    (x, values), (out,) = loops.reads, loops.writes
    loops.copy(x, out)
    lower_index_write(loops, out, index, values, accumulate)


def lower_rebuilt_write(loops: CallLoops, call: Rebuilt) -> None:
    """Lower ``x[index] = values``, ``np.add.at(x, index, values)`` and ``np.put(x, positions, values)``, on a copy of x."""
    accumulate = getattr(call.function, "__self__", None) is np.add and call.function.__name__ == "at"
    if not accumulate and call.function not in (np.put, operator.setitem):
        raise Unlowered
    if call.kwargs or call.floats or len(call.args) != 3 or call.written != (getattr(call.args[0], "at", None),):
        raise Unlowered
    x, values, (out,) = _operand(loops, call.args[0]), _operand(loops, call.args[2]), loops.writes
    index = call.args[1] if type(call.args[1]) is tuple else (call.args[1],)
    index = tuple([_operand(loops, item) if type(item) is ArrayPlaceholder else item for item in index])
    loops.copy(x, out)
    if accumulate or call.function is operator.setitem:
        lower_index_write(loops, out, index, values, accumulate)
        return
    if len(index) != 1 or not isinstance(index[0], Operand) or values.layout.shape != index[0].layout.shape:
        raise Unlowered
    lower_index_write(loops, in_one_line(out), index, values, False)


def _operand(loops: CallLoops, x: float | ArrayPlaceholder) -> Operand:
    if type(x) is not ArrayPlaceholder:
        raise Unlowered
    return loops.reads[x.at]


def _lower_take(loops: CallLoops, axis: int) -> None:
    x, positions = loops.reads
    lower_take_along(loops, x, positions, axis, loops.writes[0])


def _lower_scatter_add(loops: CallLoops, axis: int) -> None:
    lower_scatter_into_copy(loops, axis, True)


def _lower_scatter(loops: CallLoops, axis: int) -> None:
    lower_scatter_into_copy(loops, axis, False)


#: op definitions that are traced as one call
PRIMITIVES: dict[str, Callable[..., None]] = {
    "index": lower_getitem,
    "add_at": lower_add_at,
    "take_add": lower_take_add,
    "gather": lower_gather,
    "take": _lower_take,
    "scatter_add": _lower_scatter_add,
    "scatter": _lower_scatter,
}
