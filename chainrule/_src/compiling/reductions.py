"""Lower reductions and accumulations to ufunc inner loops. The result is also the first operand of such a loop.

``lowering`` calls the functions in ``FUNCTIONS``, and ``lower_reduction`` and ``lower_accumulation`` for methods of ufuncs. They append the
loops of a call to a ``CallLoops``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray, Params
from chainrule._src.compiling.call_loops import CallLoops, in_one_line
from chainrule._src.compiling.iteration import (
    ArrayLayout,
    LoopAxis,
    broadcast_strides,
    dense_strides,
    merged_axes,
    size_of_shape,
    sorted_axes,
)
from chainrule._src.compiling.loops import (
    InnerLoop,
    Operand,
    Unlowered,
    initial_of,
    is_exact,
    loop_of,
    resolved_dtypes,
    ufunc_loop,
)
from chainrule._src.compiling.steps import REDUCTIONS
from chainrule._src.interpreters.trace_types import TracedCall

ndarray = np.ndarray
#: the number of elements from which NumPy sums a row pairwise; the number of rows from which additions of columns are faster
PAIRWISE, MANY = 8, 16
SUMS_IN_PIECES = np.lib.NumpyVersion(np.__version__) < "2.3.0"


def lower_named_reduction(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.sum`` and similar functions."""
    ufunc = REDUCTIONS[call.function]
    names = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
    if len(call.args) > (3 if ufunc in (np.add, np.multiply) else 2):
        raise Unlowered
    kwargs = {"array" if name == "a" else name: x for name, x in call.kwargs.items()}
    lower_reduction(loops, ufunc, dict(zip(names, call.args, strict=False)) | kwargs, None)


def lower_reduction(loops: CallLoops, ufunc: np.ufunc, given: Params, axis: int | None) -> None:
    """Lower a reduction of a ufunc.

    Args:
        given: the arguments of ``ufunc.reduce`` by name.
        axis: the default axis.
    """
    supported = {"array", "axis", "dtype", "keepdims", "initial"}
    if len(loops.reads) != 1 or not set(given) <= supported or given.get("dtype") is not None:
        raise Unlowered
    (x,), (out,) = loops.reads, loops.writes
    reduced = _normal_axes(given.get("axis", axis), len(x.layout.shape))
    if reduced is None or x.dtype.char == "e" or type(given.get("initial", 0)) not in (int, float):
        raise Unlowered
    _reduce_to(loops, ufunc, x, out, reduced, bool(given.get("keepdims")), given.get("initial"))


def _reduce_to(
    loops: CallLoops,
    ufunc: np.ufunc,
    x: Operand,
    out: Operand,
    reduced: tuple[int, ...],
    keepdims: bool,
    start: float | None = None,
) -> None:
    """Reduce an array into another one.

    Args:
        start: the initial value; None: NumPy's.
    """
    if x.dtype != out.dtype:
        if out.dtype.kind not in "iub":  # only integers can be converted first, since their order does not matter
            raise Unlowered
        x = loops.converted(x, out.dtype)
    dtypes = resolved_dtypes(ufunc, (None, x.dtype, None), True)
    if any(dtype != x.dtype for dtype in dtypes):
        raise Unlowered
    steps = _steps_of_result(out.layout, reduced, len(x.layout.shape), keepdims)
    initial = initial_of(ufunc, x.dtype) if start is None else np.asarray(start, x.dtype)
    _add_reduction_loops(loops, ufunc, loop_of(ufunc, dtypes), x, out, steps, initial)


def lower_mean(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.mean``: a sum, divided by a NumPy integer, and converted back."""
    given = dict(zip(("a", "axis"), call.args, strict=False)) | call.kwargs
    if len(loops.reads) != 1 or len(call.args) > 2 or not set(given) <= {"a", "axis", "keepdims"}:
        raise Unlowered
    (x,), (out,) = loops.reads, loops.writes
    shape = x.layout.shape
    reduced = _normal_axes(given.get("axis"), len(shape))
    keepdims = given.get("keepdims", False)
    if (
        reduced is None
        or x.dtype != out.dtype
        or x.dtype.char == "e"
        or type(keepdims) is not bool
        or size_of_shape(shape) == 0
    ):
        raise Unlowered
    total = Operand(
        loops.template.temporary(size_of_shape(out.layout.shape) * out.dtype.itemsize), *out.layout[:2], out.dtype
    )
    _reduce_to(loops, np.add, x, total, reduced, keepdims)
    count = np.intp(size_of_shape(tuple([shape[axis] for axis in reduced])))
    dtypes, found = ufunc_loop(np.true_divide, [x.dtype, count.dtype])
    inputs = [loops.converted(total, dtypes[0]), loops.converted(count, dtypes[1])]
    nbytes = size_of_shape(out.layout.shape) * dtypes[2].itemsize
    quotient = out
    if dtypes[2] != out.dtype:
        layout = inputs[0].layout
        quotient = Operand(loops.template.temporary(nbytes), layout.shape, layout.strides, dtypes[2])
    loops.elementwise("divide", found, inputs, [quotient], is_exact(np.true_divide, dtypes[0]))
    if quotient is not out:
        loops.copy(quotient, out)


def lower_accumulation(loops: CallLoops, ufunc: np.ufunc, given: Params) -> None:
    """Lower an accumulation, whose loop adds each element to the previous result."""
    if len(loops.reads) != 1 or not set(given) <= {"array", "axis", "dtype"} or given.get("dtype") is not None:
        raise Unlowered
    (x,), (out,) = loops.reads, loops.writes
    shape, axis = x.layout.shape, given.get("axis", 0)
    if type(axis) is not int or not shape or x.dtype != out.dtype or x.layout.shape != out.layout.shape:
        raise Unlowered
    axis %= len(shape)
    dtypes = resolved_dtypes(ufunc, (None, x.dtype, None), True)
    if any(dtype != x.dtype for dtype in dtypes):
        raise Unlowered
    found = loop_of(ufunc, dtypes)
    if size_of_shape(shape) == 0:
        return
    first = tuple([1 if k == axis else length for k, length in enumerate(shape)])
    loops.copy(
        Operand(x.slot, first, x.layout.strides, x.dtype, x.offset),
        Operand(out.slot, first, out.layout.strides, out.dtype, out.offset),
    )
    if shape[axis] == 1:
        return
    sx, so = x.layout.strides, out.layout.strides
    along = LoopAxis(shape[axis] - 1, (so[axis], sx[axis], so[axis]))
    others = [
        LoopAxis(shape[k], (so[k], sx[k], so[k])) for k in reversed(range(len(shape))) if k != axis and shape[k] > 1
    ]
    args = [(out.slot, out.offset), (x.slot, x.offset + sx[axis]), (out.slot, out.offset + so[axis])]
    itemsizes = [x.dtype.itemsize] * 3
    loops.template.loops.append(InnerLoop(f"{ufunc.__name__}.accumulate", found, [along, *others], args, itemsizes))


def lower_cumulative(loops: CallLoops, call: TracedCall) -> None:
    given = dict(zip(("array", "axis", "dtype"), call.args, strict=False)) | call.kwargs
    given = {"array" if name == "a" else name: x for name, x in given.items()}
    if "dtype" in given and given["dtype"] is loops.reads[0].dtype:
        del given["dtype"]
    if given.get("axis") is None:
        loops.reads = [x if len(x.layout.shape) == 1 else in_one_line(x) for x in loops.reads]
        given["axis"] = 0
    lower_accumulation(loops, np.add if call.function is np.cumsum else np.multiply, given)


def _add_reduction_loops(
    loops: CallLoops,
    ufunc: np.ufunc,
    found: tuple[int, int],
    x: Operand,
    out: Operand,
    steps: list[int],
    initial: NumpyArray | None,
) -> None:
    """Initialize the result with a number or with the first elements, then add loops over the other elements.

    Args:
        steps: the strides of the result along the axes of x; 0 for reduced axes.
    """
    shape = x.layout.shape
    strides = broadcast_strides(x.layout, shape)
    steps = [0 if length == 1 else step for length, step in zip(shape, steps, strict=True)]
    axes = merged_axes(list(shape), [steps, strides, steps], sorted_axes([strides], len(shape)))
    reduced = [k for k, axis in enumerate(axes) if axis.strides[0] == 0 and axis.length > 1]
    if reduced[:2] == [0, 1]:
        raise Unlowered  # NumPy's iterator might copy x, and so sum more elements per call
    if reduced[:1] not in ([0], [1]) and not is_exact(ufunc, x.dtype):
        raise Unlowered  # NumPy's iterator might copy x, and so call the loop for more elements
    offset = x.offset
    if initial is not None and reduced == [0] and _adds_few(ufunc, x, axes):
        _add_few(loops, found, x, out, axes, initial)
        return
    if initial is not None:
        loops.copy(Operand(loops.template.number(initial), (), (), x.dtype), out)
    else:
        if 0 in shape or len(reduced) > 1:
            raise Unlowered
        first = [axis for k, axis in enumerate(axes) if k not in reduced]
        lengths = tuple([axis.length for axis in first])
        loops.copy(
            Operand(x.slot, lengths, tuple([axis.strides[1] for axis in first]), x.dtype, x.offset),
            Operand(out.slot, lengths, tuple([axis.strides[0] for axis in first]), out.dtype, out.offset),
        )
        if not reduced:
            return
        (k,) = reduced
        axes[k] = LoopAxis(axes[k].length - 1, axes[k].strides)
        offset += axes[k].strides[1]
    if size_of_shape(shape) == 0:
        return
    rows = [(axes, 0)]
    if ufunc is np.add and x.dtype.kind in "fc" and reduced[:1] == [0]:
        rows = _reduction_rows(axes, len(reduced))
    for part, start in rows:
        args = [(out.slot, out.offset), (x.slot, offset + start), (out.slot, out.offset)]
        name, itemsizes = f"{ufunc.__name__}.reduce", [x.dtype.itemsize] * 3
        loops.template.loops.append(InnerLoop(name, found, part, args, itemsizes, reduces=True))


def _adds_few(ufunc: np.ufunc, x: Operand, axes: list[LoopAxis]) -> bool:
    """Return whether a reduction sums many rows of floats that are short enough for NumPy to add the elements in order."""
    rows = size_of_shape(tuple([axis.length for axis in axes[1:]]))
    return ufunc is np.add and x.dtype.char in "fd" and axes[0].length < PAIRWISE and rows >= MANY


def _add_few(
    loops: CallLoops,
    found: tuple[int, int],
    x: Operand,
    out: Operand,
    axes: list[LoopAxis],
    initial: NumpyArray,
) -> None:
    """Sum short rows by additions of whole columns, in the order of NumPy's sum of a row: ``initial + ((x0 + x1) + x2)``.

    Args:
        axes: the axes, the reduced one first, with strides of (result, operand, result).
    """
    row, *others = axes[:1] + axes[:0:-1]
    shape = tuple([axis.length for axis in others])
    dense = dense_strides(shape, list(range(len(shape) - 1, -1, -1)), x.dtype.itemsize)

    def column(k: int) -> Operand:
        strides = tuple([axis.strides[1] for axis in others])
        return Operand(x.slot, shape, strides, x.dtype, x.offset + k * row.strides[1])

    total = column(0)
    for k in range(1, row.length):
        result = Operand(loops.template.temporary(size_of_shape(shape) * x.dtype.itemsize), shape, dense, x.dtype)
        loops.elementwise("add", found, [total, column(k)], [result], True)
        total = result
    target = Operand(out.slot, shape, tuple([axis.strides[0] for axis in others]), x.dtype, out.offset)
    loops.elementwise("add", found, [Operand(loops.template.number(initial), (), (), x.dtype), total], [target], True)


def _reduction_rows(axes: list[LoopAxis], reduced: int) -> list[tuple[list[LoopAxis], int]]:
    """Return the rows that one loop call sums, with their offsets. Before NumPy 2.3 a row is limited to the iterator's buffer."""
    row, *others = axes
    count, left = divmod(row.length, np.getbufsize())
    if not SUMS_IN_PIECES or count + (left > 0) < 2:
        return [(axes, 0)]
    if reduced > 1:
        raise Unlowered
    result, step, _ = row.strides
    size = np.getbufsize()
    pieces = [([LoopAxis(size, row.strides), LoopAxis(count, (result, size * step, result)), *others], 0)]
    if left:
        pieces.append(([LoopAxis(left, row.strides), *others], count * size * step))
    return pieces


def _normal_axes(axis: object, ndim: int) -> tuple[int, ...] | None:
    if axis is None:
        return tuple(range(ndim))
    axes = axis if type(axis) is tuple else (axis,)
    if not all(type(k) is int for k in axes):
        return None
    return tuple([k % ndim for k in axes]) if ndim else ()


def _steps_of_result(out: ArrayLayout, reduced: tuple[int, ...], ndim: int, keepdims: bool) -> list[int]:
    """Return the strides of the result of a reduction along the axes of its operand."""
    strides = iter(out.strides)
    steps = []
    for axis in range(ndim):
        if axis in reduced:
            steps.append(0)
            if keepdims:
                next(strides)
        else:
            steps.append(next(strides))
    return steps


#: the functions that lower NumPy functions
FUNCTIONS: dict[Any, Callable[[CallLoops, TracedCall], None]] = {
    **dict.fromkeys(REDUCTIONS, lower_named_reduction),
    np.mean: lower_mean,
    np.cumsum: lower_cumulative,
    np.cumprod: lower_cumulative,
}
