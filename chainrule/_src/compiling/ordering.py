"""Lower sorting and searching to inner loops that call NumPy's C functions for each dtype.

``lowering`` calls the functions in ``FUNCTIONS``: for ``np.sort``, ``np.argsort``, ``np.argmax``, ``np.argmin`` and ``np.searchsorted``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyDType
from chainrule._src.compiling.call_loops import CallLoops, in_one_line
from chainrule._src.compiling.iteration import dense_strides, is_run, size_of_shape
from chainrule._src.compiling.loops import Operand, Unlowered, own_loop
from chainrule._src.compiling.products import add_core_loop
from chainrule._src.interpreters.trace_types import TracedCall, Var
from chainrule._src.native import orders

_KINDS = {None: 0, "quicksort": 0, "stable": 2, "mergesort": 2}


def lower_sort(loops: CallLoops, call: TracedCall) -> None:
    axis, kind = _options(loops, call)
    x, out, given = _with_axis_last(loops, axis)
    address = _functions_of(x.dtype)[0][kind]
    found = own_loop(f"sort{x.dtype.itemsize}")[0], _required(address)
    add_core_loop(loops, "sort", [["n"], ["n"]], found, [x], [given], True)
    if given is not out:
        loops.copy(given, out)


def lower_argsort(loops: CallLoops, call: TracedCall) -> None:
    axis, kind = _options(loops, call)
    x, out, given = _with_axis_last(loops, axis)
    address = _functions_of(x.dtype)[1][kind]
    add_core_loop(loops, "argsort", [["n"], ["n"]], (own_loop("argsort")[0], _required(address)), [x], [given], True)
    if given is not out:
        loops.copy(given, out)


def _options(loops: CallLoops, call: TracedCall) -> tuple[int, int]:
    """Return the axis, and the index of NumPy's sorting algorithm."""
    given = dict(zip(("a", "axis", "kind", "order"), call.args, strict=False)) | call.kwargs
    axis, kind = given.get("axis", -1), given.get("kind")
    if len(loops.reads) != 1 or type(given["a"]) is not Var or type(axis) is not int or not loops.reads[0].layout.shape:
        raise Unlowered
    if given.get("order") is not None or kind not in _KINDS or given.get("stable") is False:
        raise Unlowered
    return axis % len(loops.reads[0].layout.shape), 2 if given.get("stable") else _KINDS[kind]


def _with_axis_last(loops: CallLoops, axis: int) -> tuple[Operand, Operand, Operand]:
    """Return the operand and the result with an axis last, and the result or a temporary with contiguous elements along the axis."""
    x, out = _last(loops.reads[0], axis), _last(loops.writes[0], axis)
    target = out if out.layout.strides[-1] == out.dtype.itemsize else _scratch_operand(loops, out)
    return _contiguous_along_last(loops, x), out, target


def _last(x: Operand, axis: int) -> Operand:
    shape, strides, _ = x.layout
    order = [*[k for k in range(len(shape)) if k != axis], axis]
    return Operand(x.slot, tuple([shape[k] for k in order]), tuple([strides[k] for k in order]), x.dtype, x.offset)


def _scratch_operand(loops: CallLoops, like: Operand) -> Operand:
    shape, itemsize = like.layout.shape, like.dtype.itemsize
    strides = dense_strides(shape, list(range(len(shape) - 1, -1, -1)), itemsize)
    return Operand(loops.template.temporary(size_of_shape(shape) * itemsize), shape, strides, like.dtype)


def _contiguous_along_last(loops: CallLoops, x: Operand) -> Operand:
    """Return an array, or a copy of it, that is contiguous along its last axis."""
    if not size_of_shape(x.layout.shape) or x.dtype.kind not in "fiu":
        raise Unlowered
    if x.layout.strides[-1] == x.dtype.itemsize:
        return x
    copy = _scratch_operand(loops, x)
    loops.copy(x, copy)
    return copy


def lower_arg_extremum(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.argmax`` and ``np.argmin``."""
    given = dict(zip(("a", "axis"), call.args, strict=False)) | call.kwargs
    axis = given.get("axis")
    if (
        len(loops.reads) != 1
        or len(call.args) > 2
        or not set(given) <= {"a", "axis", "keepdims"}
        or given.get("keepdims")
    ):
        raise Unlowered
    (x,), (out,) = loops.reads, loops.writes
    if axis is None:
        x, axis = x if len(x.layout.shape) == 1 else in_one_line(x), 0
    if type(axis) is not int or not x.layout.shape or out.dtype != np.intp:
        raise Unlowered
    x = _contiguous_along_last(loops, _last(x, axis % len(x.layout.shape)))
    address = _functions_of(x.dtype)[2 if call.function is np.argmax else 3]
    add_core_loop(
        loops, call.function.__name__, [["n"], []], (own_loop("argbest")[0], _required(address)), [x], [out], True
    )


def lower_searchsorted(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.searchsorted``."""
    given = dict(zip(("a", "v", "side"), call.args, strict=False)) | call.kwargs
    if len(loops.reads) != 2 or not set(given) <= {"a", "v", "side"} or type(given["a"]) is not Var:
        raise Unlowered
    lower_insertion_search(loops, given.get("side", "left"))


def lower_insertion_search(loops: CallLoops, side: str) -> None:
    (x, keys), (out,) = loops.reads, loops.writes
    if side not in ("left", "right") or x.dtype != keys.dtype or out.dtype != np.intp or len(x.layout.shape) != 1:
        raise Unlowered
    x, found = _contiguous_along_last(loops, x), own_loop(f"search_{x.dtype.str[1:]}")
    if not size_of_shape(out.layout.shape) or not is_run(keys.layout, reversed(range(len(keys.layout.shape)))):
        raise Unlowered
    keys, out = [
        Operand(z.slot, (size_of_shape(z.layout.shape),), (z.dtype.itemsize,), z.dtype, z.offset) for z in (keys, out)
    ]
    add_core_loop(
        loops, "searchsorted", [["n"], ["m"], ["m"]], (found[0], int(side == "right")), [x, keys], [out], True
    )


def _functions_of(dtype: NumpyDType) -> Any:
    found = orders(dtype)
    if found is None:
        raise Unlowered
    return found


def _required(address: int) -> int:
    if not address:
        raise Unlowered
    return address


#: the functions that lower NumPy functions
FUNCTIONS: dict[Any, Callable[[CallLoops, TracedCall], None]] = {
    np.sort: lower_sort,
    np.argsort: lower_argsort,
    np.argmax: lower_arg_extremum,
    np.argmin: lower_arg_extremum,
}
