"""Lower matrix products to the inner loops of gufuncs, and ``np.dot`` of vectors to BLAS functions.

``lowering`` calls the functions in ``FUNCTIONS``, which append the loops of a call to a ``CallLoops``. Other modules of lowering call
``add_core_loop``, for loops with core axes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.compiling.call_loops import CallLoops, merged_iteration
from chainrule._src.compiling.checked_loops import multiple_of_array_loop
from chainrule._src.compiling.iteration import (
    ArrayLayout,
    LoopAxis,
    contiguous_orders,
    size_of_shape,
)
from chainrule._src.compiling.loops import (
    GENERALIZED,
    InnerLoop,
    Operand,
    Unlowered,
    is_exact,
    ufunc_loop,
)
from chainrule._src.interpreters.trace_types import TracedCall
from chainrule._src.native import MATMUL_LOOPS

ndarray = np.ndarray


def lower_gufunc(loops: CallLoops, call: TracedCall, ufunc: np.ufunc) -> None:
    """Lower a gufunc: the loop runs over the leading axes, and the C function handles the core axes."""
    if ufunc not in GENERALIZED or len(loops.reads) != ufunc.nin:
        raise Unlowered
    dtypes, found = ufunc_loop(ufunc, [x.dtype for x in loops.reads])
    if [x.dtype for x in loops.reads + loops.writes] != list(dtypes):
        raise Unlowered
    if ufunc is np.matmul and dtypes[0].char in MATMUL_LOOPS:
        found = MATMUL_LOOPS[dtypes[0].char], 0
    add_core_loop(loops, ufunc.__name__, core_names(ufunc), found, loops.reads, loops.writes)


def add_core_loop(
    loops: CallLoops,
    name: str,
    cores: list[list[str]],
    found: tuple[int, int],
    reads: list[Operand],
    writes: list[Operand],
    checked: bool = False,
    outputs: int = 0,
) -> None:
    """Add a loop that handles the core axes of operands, called for each index of the leading axes.

    Args:
        loops: the call.
        name, found: the name and the addresses of the loop.
        cores: the names of each operand's core axes.
        reads, writes: the operands, in the dtypes of the loop.
        checked: whether it may fail.
        outputs: the number of operands that it writes; 0: those of ``writes``.
    """
    every = reads + writes
    lengths: dict[str, int] = {}  # by name of a core axis; optional axes that are left out have length 1
    for x, core in zip(reads, cores, strict=False):
        missing = len(core) - len(x.layout.shape)
        optional = [name for name in core if name.endswith("?")]
        if missing > len(optional):
            raise Unlowered
        lengths.update((name, 1) for name in optional[: max(missing, 0)])
    left_out = set(lengths)
    core_strides: list[int] = []
    leading = []
    for x, core in zip(every, cores, strict=True):
        shape, strides, itemsize = x.layout
        axis = ndim = len(shape) - len([name for name in core if name not in left_out])
        for name in core:
            if name in left_out:
                core_strides.append(0)
                continue
            if lengths.setdefault(name, shape[axis]) != shape[axis]:
                raise Unlowered
            core_strides.append(0 if shape[axis] == 1 else strides[axis])
            axis += 1
        leading.append(ArrayLayout(shape[:ndim], strides[:ndim], itemsize))
    shape = np.broadcast_shapes(*[layout.shape for layout in leading])
    if size_of_shape(shape) == 0:
        return
    loops.template.loops.append(
        InnerLoop(
            name,
            found,
            merged_iteration(leading[: len(reads)], leading, shape)[0],
            [(x.slot, x.offset) for x in every],
            [x.dtype.itemsize for x in every],
            core=tuple([lengths[name] for name in dict.fromkeys(name for core in cores for name in core)]),
            core_strides=tuple(core_strides),
            outputs=outputs or len(writes),
            checked=checked,
        )
    )


def core_names(ufunc: np.ufunc) -> list[list[str]]:
    """Return the names of the core axes of each operand of a gufunc."""
    parts = re.findall(r"\((.*?)\)", str(ufunc.signature).replace(" ", ""))
    return [part.split(",") if part else [] for part in parts]


def lower_dot(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.dot`` of real operands with an axis of length 1.

    It calls the BLAS functions that `matmul` calls, or computes a single product. (A complex product would round more than once.)
    """
    if len(loops.reads) != 2 or call.kwargs or any(x.dtype.char not in "fd" for x in loops.reads):
        raise Unlowered
    lengths = [length for x in loops.reads for length in x.layout.shape]
    if (
        [len(x.layout.shape) for x in loops.reads] not in ([2, 2], [2, 1], [1, 2], [1, 1])
        or 1 not in lengths
        or 0 in lengths
    ):
        raise Unlowered
    if any(size_of_shape(x.layout.shape) == 1 for x in loops.reads):
        _lower_scaled(loops)
        return
    if any(not contiguous_orders(x.layout) for x in loops.reads):
        raise Unlowered
    lower_gufunc(loops, call, np.matmul)


def lower_inner(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.inner`` of vectors, which is their ``np.dot``."""
    if any(len(x.layout.shape) != 1 for x in loops.reads):
        raise Unlowered
    lower_dot(loops, call)


def _lower_scaled(loops: CallLoops) -> None:
    """Lower ``np.dot`` with an array of one number. For more than one element, BLAS adds a multiple of the other array to zeros."""
    x, y = loops.reads if size_of_shape(loops.reads[1].layout.shape) == 1 else loops.reads[::-1]
    (out,) = loops.writes
    if not x.dtype == y.dtype == out.dtype:
        raise Unlowered
    n, itemsize = size_of_shape(out.layout.shape), out.dtype.itemsize
    if n == 1:
        _, found = ufunc_loop(np.multiply, [x.dtype, x.dtype])
    else:
        found = multiple_of_array_loop(x.dtype)
    (step,) = [stride for stride, length in zip(x.layout.strides, x.layout.shape, strict=True) if length > 1] or [0]
    if n > 1 and (step <= 0 or step % itemsize):
        raise Unlowered  # NumPy would copy it first
    args = [(operand.slot, operand.offset) for operand in (x, y, out)]
    loops.template.loops.append(InnerLoop("dot", found, [LoopAxis(n, (step, 0, itemsize))], args, [itemsize] * 3))


def lower_outer(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.outer`` as the broadcast product of a column and a row."""
    if call.kwargs or len(loops.reads) != 2 or any(len(x.layout.shape) != 1 for x in loops.reads):
        raise Unlowered
    dtypes, found = ufunc_loop(np.multiply, [x.dtype for x in loops.reads])
    x, y = [loops.converted(x, dtype) for x, dtype in zip(loops.reads, dtypes, strict=False)]
    (n,), (m,), (step,), (stride,) = x.layout.shape, y.layout.shape, x.layout.strides, y.layout.strides
    column = Operand(x.slot, (n, 1), (step, 0), x.dtype, x.offset)
    row = Operand(y.slot, (1, m), (0, stride), y.dtype, y.offset)
    loops.elementwise("outer", found, [column, row], loops.writes, is_exact(np.multiply, dtypes[0]))


#: the functions that lower NumPy functions
FUNCTIONS: dict[Any, Callable[[CallLoops, TracedCall], None]] = {
    np.dot: lower_dot,
    np.inner: lower_inner,
    np.outer: lower_outer,
}
