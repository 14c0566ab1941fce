"""Lower indexing at constant positions: ``np.take``, ``x[positions]`` and ``np.add.reduceat``.

``lowering`` calls ``lower_read_at_positions`` with a recorded call, its operands, and the ``CallLoops`` that receives the C loops of
chainrule. The positions are checked against the bounds once, when the plan is made. ``index_lowering`` lowers calls whose positions are
not constant.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from chainrule._src.arrays.types import NumpyArray, Shape
from chainrule._src.compiling import index_lowering
from chainrule._src.compiling.call_loops import CallLoops
from chainrule._src.compiling.iteration import ArrayLayout, LoopAxis, is_run, merged_axes, sorted_axes
from chainrule._src.compiling.layout import BufferView
from chainrule._src.compiling.loops import InnerLoop, Operand, Unlowered, own_loop
from chainrule._src.interpreters.trace_types import TracedCall, Var

BLOCK = 16384  # elements
FUNCTIONS: frozenset[Any] = frozenset({np.take, operator.getitem})
#: whether NumPy's sums begin with -0.0, the neutral element of addition
_SUMS_BEGIN_WITH_MINUS_ZERO = bool(np.signbit(np.add.reduceat(np.array([-0.0, -0.0]), np.array([0])))[0])


def reads_positions(call: TracedCall) -> bool:
    """Return whether the template of a call depends on the content of an array of positions."""
    return call.function in FUNCTIONS or (call.method == "reduceat" and call.function is np.add)


def lower_read_at_positions(loops: CallLoops, call: TracedCall, reads: list[BufferView]) -> None:
    """Lower a call that reads positions."""
    if call.method == "reduceat":
        lower_segment_sums(loops, call, reads)
        return
    try:
        lower_constant_gather(loops, call, reads)
    except Unlowered:
        index_lowering.lower_take_or_getitem(loops, call)


class Gather(NamedTuple):
    """The arguments of ``x[..., positions, ...]``: the layout of x, an axis, and positions along it."""

    layout: ArrayLayout
    axis: int


def lower_constant_gather(loops: CallLoops, call: TracedCall, reads: list[BufferView]) -> None:
    """Add a loop over the elements of the result. It reads each element of the operand at its position."""
    if len(loops.reads) != 2 or loops.reads[1].dtype != np.intp:
        raise Unlowered
    (x, positions), (out,) = loops.reads, loops.writes
    layout, axis = _gather_of_take(call, x.layout) if call.function is np.take else _gather_of_index(call, x.layout)
    if not _within(reads[1].array, layout.shape[axis]) or x.dtype != out.dtype:
        raise Unlowered
    shape, along = out.layout.shape, positions.layout
    strides_of_x = [*layout.strides[:axis], *[0] * len(along.shape), *layout.strides[axis + 1 :]]
    strides_of_positions = [*[0] * axis, *along.strides, *[0] * (len(layout.shape) - axis - 1)]
    strides = [strides_of_x, strides_of_positions, list(out.layout.strides)]
    if not len(shape) == len(strides_of_x) == len(strides_of_positions):
        raise Unlowered
    if math.prod(shape) == 0:
        return
    address, _ = own_loop(f"gather{out.dtype.itemsize}")
    itemsizes = [operand.dtype.itemsize for operand in (x, positions, out)]
    for axes, offsets in _in_blocks(merged_axes(list(shape), strides, sorted_axes(strides[2:], len(shape)))):
        args = [(part.slot, part.offset + offset) for part, offset in zip((x, positions, out), offsets, strict=True)]
        loops.template.loops.append(InnerLoop("take", (address, layout.strides[axis]), axes, args, itemsizes))


def _in_blocks(axes: list[LoopAxis]) -> list[tuple[list[LoopAxis], Shape]]:
    """Split a long run into blocks, which threads can share, and a rest; return the axes and offsets of each part."""
    (length, strides), *outer = axes
    if outer or length < 2 * BLOCK:
        return [(axes, (0, 0, 0))]
    count, rest = divmod(length, BLOCK)
    steps = tuple([stride * BLOCK for stride in strides])
    parts: list[tuple[list[LoopAxis], Shape]] = [([LoopAxis(BLOCK, strides), LoopAxis(count, steps)], (0, 0, 0))]
    if rest:
        parts.append(([LoopAxis(rest, strides)], tuple([step * count for step in steps])))
    return parts


def lower_segment_sums(loops: CallLoops, call: TracedCall, reads: list[BufferView]) -> None:
    """Lower ``np.add.reduceat``: sums of segments of an array, each from its position to the next."""
    if len(loops.reads) != 2 or call.kwargs or len(call.args) != 2 or not _SUMS_BEGIN_WITH_MINUS_ZERO:
        raise Unlowered
    (x, begins), (out,) = loops.reads, loops.writes
    dtype = x.dtype.str[1:]
    if begins.dtype != np.intp or x.dtype != out.dtype or not (_is_line(x) and _is_line(begins) and _is_line(out)):
        raise Unlowered
    positions, length = reads[1].array, x.layout.shape[0]
    if not _within(positions, length) or not (positions[1:] > positions[:-1]).all():
        raise Unlowered
    count = len(positions)
    address, _ = own_loop(f"segments_{dtype}")
    itemsizes = [operand.dtype.itemsize for operand in (x, begins, out)]
    for first, n, last in ((0, count - 1, 0), (count - 1, 1, length)):
        if n > 0:
            args = [(x.slot, x.offset)]
            args += [(part.slot, part.offset + first * part.dtype.itemsize) for part in (begins, out)]
            axes = [LoopAxis(n, (0, itemsizes[1], itemsizes[2]))]
            for part, offsets in _in_blocks(axes):
                located = [(slot, at + offset) for (slot, at), offset in zip(args, offsets, strict=True)]
                loops.template.loops.append(InnerLoop("add.reduceat", (address, last), part, located, itemsizes))


def _is_line(x: Operand) -> bool:
    """Return whether an array is 1-D and contiguous."""
    return len(x.layout.shape) == 1 and is_run(x.layout, (0,))


def _gather_of_take(call: TracedCall, x: ArrayLayout) -> Gather:
    """Return the gather of a call of ``np.take``."""
    given = dict(zip(("a", "indices", "axis"), call.args, strict=False)) | call.kwargs
    if len(call.args) > 3 or not set(given) <= {"a", "indices", "axis"}:
        raise Unlowered
    axis = given.get("axis")
    if type(given["a"]) is not Var or type(given["indices"]) is not Var:
        raise Unlowered
    if type(axis) is int and -len(x.shape) <= axis < len(x.shape):
        return Gather(x, axis % len(x.shape))
    if axis is not None or not is_run(x, reversed(range(len(x.shape)))):
        raise Unlowered
    return Gather(ArrayLayout((math.prod(x.shape),), (x.itemsize,), x.itemsize), 0)


def _gather_of_index(call: TracedCall, x: ArrayLayout) -> Gather:
    """Return the gather of ``x[index]`` with one array and otherwise only whole axes."""
    index = call.args[1] if type(call.args[1]) is tuple else (call.args[1],)
    places = [i for i, item in enumerate(index) if type(item) is Var]
    others = [item for item in index if type(item) is not Var]
    if type(call.args[0]) is not Var or len(places) != 1:
        raise Unlowered
    if not all([item is Ellipsis or (type(item) is slice and item == slice(None)) for item in others]):
        raise Unlowered
    after_ellipsis = Ellipsis in index[: places[0]]
    return Gather(x, len(x.shape) - (len(index) - places[0]) if after_ellipsis else places[0])


def _within(positions: NumpyArray | None, length: int) -> TypeGuard[NumpyArray]:
    """Return whether positions are constant, not negative and within bounds."""
    return positions is not None and (
        not positions.size or (int(positions.min()) >= 0 and int(positions.max()) < length)
    )
