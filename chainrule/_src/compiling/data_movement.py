"""Lower functions that copy, select and fill elements to C loops of chainrule: ``where``, ``concatenate``, ``roll``, ``zeros``, …

``lowering`` calls the functions in ``FUNCTIONS`` and ``PRIMITIVES``. They append the loops of a call to a ``CallLoops``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import NumpyArray, Params, Shape
from chainrule._src.compiling import index_lowering, ordering
from chainrule._src.compiling.call_loops import CallLoops, merged_iteration
from chainrule._src.compiling.iteration import ArrayLayout, dense_strides, is_run, size_of_shape
from chainrule._src.compiling.layout import data_address
from chainrule._src.compiling.loops import (
    InnerLoop,
    Operand,
    Unlowered,
    own_loop,
)
from chainrule._src.compiling.steps import element_view
from chainrule._src.interpreters.trace_types import TracedCall, Var
from chainrule._src.native.code import MAX_ARGS
from chainrule._src.rules.primitive import Primitive

ndarray = np.ndarray


def lower_where(loops: CallLoops, call: TracedCall) -> None:
    if len(call.args) != 3 or call.kwargs:
        raise Unlowered
    condition, x, y = loops.arguments(call.args)
    (out,) = loops.writes
    if not isinstance(condition, Operand) or condition.dtype != np.bool_:
        raise Unlowered
    if np.result_type(_type_of(x), _type_of(y)) != out.dtype:
        raise Unlowered
    inputs = [condition, loops.converted(x, out.dtype), loops.converted(y, out.dtype)]
    name = f"select{out.dtype.itemsize}"
    loops.elementwise("where", own_loop(name), inputs, [out], exact=True)


def lower_cast(loops: CallLoops, call: TracedCall) -> None:
    if len(loops.reads) != 1 or type(call.args[0]) is not Var or not set(call.kwargs) <= {"copy", "order"}:
        raise Unlowered
    loops.copy(loops.reads[0], loops.writes[0])


def lower_strided_copy(loops: CallLoops, call: TracedCall) -> None:
    """Lower a copy with other strides."""
    loops.copy(loops.reads[0], loops.writes[0])


def lower_reshape(loops: CallLoops, call: TracedCall) -> None:
    """Lower a reshape that copies elements in C order."""
    orders = call.args[1 if call.function is np.ravel else 2 :]
    if len(loops.reads) != 1 or any([order != "C" for order in (*orders, call.kwargs.get("order", "C"))]):
        raise Unlowered
    (x,), (out,) = loops.reads, loops.writes
    shape, itemsize = x.layout.shape, x.dtype.itemsize
    if x.dtype != out.dtype or not is_run(out.layout, reversed(range(len(out.layout.shape)))):
        raise Unlowered
    order = list(range(len(shape) - 1, -1, -1))
    loops.copy(x, Operand(out.slot, shape, dense_strides(shape, order, itemsize), x.dtype))


def lower_concatenate(loops: CallLoops, call: TracedCall) -> None:
    """Lower concatenation and stacking: copy each array into its part of the result."""
    arrays, axis = _two_arguments(call, ("arrays", "axis"), 0)
    (out,) = loops.writes
    ndim = len(out.layout.shape)
    stacked = call.function is np.stack
    if type(arrays) not in (list, tuple) or type(axis) is not int:
        raise Unlowered
    if not all([type(x) is Var or (stacked and isinstance(x, (float, np.generic))) for x in arrays]):
        raise Unlowered
    axis %= ndim
    reads = iter(loops.reads)
    parts = []
    for item in arrays:
        x = next(reads) if type(item) is Var else loops.converted(item, out.dtype)
        shape, strides, _ = x.layout
        if stacked:
            shape, strides = (*shape[:axis], 1, *shape[axis:]), (*strides[:axis], 0, *strides[axis:])
        parts.append(Operand(x.slot, shape, strides, x.dtype, x.offset))
    single = all([x.layout.shape[axis] == 1 and x.dtype == out.dtype for x in parts])
    if (
        single
        and 1 < len(parts) < MAX_ARGS
        and out.layout.strides[axis] == out.dtype.itemsize
        and size_of_shape(out.layout.shape)
    ):
        _add_interleave(loops, parts, out, axis)
        return
    offset = 0
    for x in parts:
        part = Operand(out.slot, x.layout.shape, out.layout.strides, out.dtype, offset)
        loops.copy(x, part)
        offset += x.layout.shape[axis] * out.layout.strides[axis]


def _add_interleave(loops: CallLoops, parts: list[Operand], out: Operand, axis: int) -> None:
    """Write arrays of length 1 along an axis into a result whose elements along that axis are adjacent, in one pass."""
    itemsize = out.dtype.itemsize
    layouts = [
        ArrayLayout((*shape[:axis], *shape[axis + 1 :]), (*strides[:axis], *strides[axis + 1 :]), itemsize)
        for shape, strides, _ in [x.layout for x in (*parts, out)]
    ]
    axes, _ = merged_iteration(layouts[-1:], layouts, layouts[-1].shape)
    kernel, _ = own_loop(f"interleave{itemsize}")
    args = [(x.slot, x.offset) for x in (*parts, out)]
    loops.template.loops.append(InnerLoop("interleave", (kernel, len(parts)), axes, args, [itemsize] * len(args)))


def lower_roll(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.roll``: copy each part of the array to its shifted position."""
    given = dict(zip(("a", "shift", "axis"), call.args, strict=False)) | call.kwargs
    (x,), (out,) = loops.reads, loops.writes
    shape = x.layout.shape
    axes = given.get("axis")
    if axes is None and len(shape) == 1:
        axes = 0
    shifts, axes = (item if type(item) is tuple else (item,) for item in (given["shift"], axes))
    if not all([type(item) is int for item in (*shifts, *axes)]) or len(shifts) != len(axes) or x.dtype != out.dtype:
        raise Unlowered
    total = [0] * len(shape)
    for shift, axis in zip(shifts, axes, strict=True):
        total[axis] += shift
    every = [_rolled_parts(length, shift) for length, shift in zip(shape, total, strict=True)]
    for parts in itertools.product(*every):
        lengths = tuple([length for _, _, length in parts])
        before = sum([start * stride for (start, _, _), stride in zip(parts, x.layout.strides, strict=True)])
        after = sum([start * stride for (_, start, _), stride in zip(parts, out.layout.strides, strict=True)])
        loops.copy(
            Operand(x.slot, lengths, x.layout.strides, x.dtype, x.offset + before),
            Operand(out.slot, lengths, out.layout.strides, out.dtype, out.offset + after),
        )


def _rolled_parts(length: int, shift: int) -> list[tuple[int, int, int]]:
    """Return the parts of an axis as (start, start in the result, length)."""
    shift = shift % length if length else 0
    return [part for part in ((0, shift, length - shift), (length - shift, 0, shift)) if part[2] or not length]


def lower_fill(loops: CallLoops, call: TracedCall) -> None:
    """Lower functions that fill an array with one number."""
    (out,) = loops.writes
    if call.function in (np.full, np.full_like):
        fill = call.args[1] if len(call.args) == 2 else None
        if type(fill) not in (bool, int, float, complex):
            raise Unlowered
    else:
        fill = 0 if call.function in (np.zeros, np.zeros_like) else 1
    loops.copy(loops.converted(fill, out.dtype), out)


def lower_embed(loops: CallLoops, shape: Shape, index: tuple[object, ...]) -> None:
    """Lower zeros with an array at a basic index."""
    (x,), (out,) = loops.reads, loops.writes
    loops.copy(Operand(loops.template.number(np.zeros((), out.dtype)), (), (), out.dtype), out)
    _lower_view_write(loops, x, out, lambda array: element_view(array, index) if _is_basic(index) else None)


def lower_undiagonal(loops: CallLoops, offset: int, axis1: int, axis2: int, sizes: Shape) -> None:
    """Lower zeros with an array on a diagonal."""
    (x,), (out,) = loops.reads, loops.writes
    loops.copy(Operand(loops.template.number(np.zeros((), out.dtype)), (), (), out.dtype), out)
    _lower_view_write(loops, x, out, lambda array: np.diagonal(array, offset, axis1, axis2))


def lower_put(loops: CallLoops, index: tuple[object, ...], accumulate: bool) -> None:
    """Lower a copy of an array with values written at an index."""
    if accumulate or not _is_basic(index):
        index_lowering.lower_put_at(loops, index, accumulate)
        return
    base, values = loops.reads
    loops.copy(base, loops.writes[0])
    _lower_view_write(loops, values, loops.writes[0], lambda array: element_view(array, index))


def lower_put_view(loops: CallLoops, steps: Any) -> None:
    """Lower a copy of an array with values written into a view of it."""
    base, values = loops.reads
    loops.copy(base, loops.writes[0])
    _lower_view_write(loops, values, loops.writes[0], lambda array: functools.reduce(_after_step, steps, array))


def _lower_view_write(loops: CallLoops, values: Operand, out: Operand, view: Callable[[Any], object]) -> None:
    """Copy values into a view of the result."""
    memory = with_strides(np.zeros(out.layout.shape, out.dtype), out.layout.strides)
    region = view(memory)
    if type(region) is not ndarray or region.dtype != values.dtype:
        raise Unlowered
    if region.size == 0:
        return
    if not np.may_share_memory(memory, region):
        raise Unlowered  # a copy, not a view
    offset = data_address(region) - data_address(memory)
    loops.copy(values, Operand(out.slot, region.shape, region.strides, region.dtype, offset))


def _is_basic(index: tuple[object, ...]) -> bool:
    return all([type(item) in (int, slice) or item is None or item is Ellipsis for item in index])


def _after_step(array: NumpyArray, step: tuple[Primitive, Params]) -> Any:
    row, params = step
    return row(array, **params)


def _type_of(x: object) -> Any:
    return x.dtype if isinstance(x, Operand) else x


def _two_arguments(call: TracedCall, names: tuple[str, str], default: int) -> tuple[Any, Any]:
    """Return the two arguments of a function by name, the second with a default."""
    given = dict(zip(names, call.args, strict=False)) | call.kwargs
    if len(call.args) > 2 or not set(given) <= set(names):
        raise Unlowered
    return given[names[0]], given.get(names[1], default)


#: the functions that lower NumPy functions
FUNCTIONS: dict[Any, Callable[[CallLoops, TracedCall], None]] = {
    np.zeros: lower_fill,
    np.zeros_like: lower_fill,
    np.ones: lower_fill,
    np.ones_like: lower_fill,
    np.full: lower_fill,
    np.full_like: lower_fill,
    with_strides: lower_strided_copy,
    np.where: lower_where,
    np.copy: lower_cast,
    np.reshape: lower_reshape,
    np.ravel: lower_reshape,
    np.concatenate: lower_concatenate,
    np.stack: lower_concatenate,
    np.roll: lower_roll,
    np.take_along_axis: index_lowering.lower_take_along_axis,
    **ordering.FUNCTIONS,
}
if hasattr(np, "astype"):
    FUNCTIONS[np.astype] = lower_cast
#: the functions that lower op definitions which are traced as one call
PRIMITIVES: dict[str, Callable[..., None]] = {
    "embed": lower_embed,
    "index_put": lower_put,
    "copy_slices": lower_put_view,
    "undiagonal": lower_undiagonal,
    **index_lowering.PRIMITIVES,
    "inserted": ordering.lower_insertion_search,
}
