"""Products of matrices as inner loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.compiling.call_loops import CallLoops, iteration
from chainrule._src.compiling.iteration import (
    ArrayLayout,
    LoopAxis,
    contiguity,
    size,
)
from chainrule._src.compiling.loops import (
    GENERALIZED,
    Loop,
    Operand,
    Unlowered,
    is_exact,
    ufunc_loop,
)
from chainrule._src.compiling.trials import multiple
from chainrule._src.interpreters.recorded import TracedCall

ndarray = np.ndarray


def generalized(loops: CallLoops, call: TracedCall, ufunc: np.ufunc) -> None:
    """A gufunc: the iterator goes through the leading axes, the loop through the core axes."""
    if ufunc not in GENERALIZED or len(loops.reads) != ufunc.nin:
        raise Unlowered
    dtypes, found = ufunc_loop(ufunc, [x.dtype for x in loops.reads])
    if [x.dtype for x in loops.reads + loops.writes] != list(dtypes):
        raise Unlowered
    along_cores(loops, ufunc.__name__, core_names(ufunc), found, loops.reads, loops.writes)


def along_cores(
    loops: CallLoops,
    name: str,
    cores: list[list[str]],
    found: tuple[int, int],
    reads: list[Operand],
    writes: list[Operand],
    checked: bool = False,
    outputs: int = 0,
) -> None:
    """Call a loop that goes through the core axes of operands, which have its dtypes, for each index of the leading ones.

    Args:
        cores: the names of each operand's core axes.
        checked: whether it may fail.
        outputs: how many operands it writes; 0: ``writes``.
    """
    every = reads + writes
    lengths: dict[str, int] = {}  # those of core axes that are left out first: they count as 1
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
    if size(shape) == 0:
        return
    loops.template.loops.append(
        Loop(
            name,
            found,
            iteration(leading[: len(reads)], leading, shape)[0],
            [(x.slot, x.offset) for x in every],
            [x.dtype.itemsize for x in every],
            core=tuple([lengths[name] for name in dict.fromkeys(name for core in cores for name in core)]),
            core_strides=tuple(core_strides),
            outputs=outputs or len(writes),
            checked=checked,
        )
    )


def core_names(ufunc: np.ufunc) -> list[list[str]]:
    """The names of each operand's core axes."""
    parts = re.findall(r"\((.*?)\)", str(ufunc.signature).replace(" ", ""))
    return [part.split(",") if part else [] for part in parts]


def dot(loops: CallLoops, call: TracedCall) -> None:
    """``np.dot`` where one of the lengths is 1: it calls the functions of BLAS that `matmul` calls, or has one product.

    Of numbers that are not complex, so that the one product has one rounding.
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
    if any(size(x.layout.shape) == 1 for x in loops.reads):
        _scaled(loops)
        return
    if any(not contiguity(x.layout) for x in loops.reads):
        raise Unlowered
    generalized(loops, call, np.matmul)


def inner(loops: CallLoops, call: TracedCall) -> None:
    """``np.inner`` of vectors is their ``np.dot``."""
    if any(len(x.layout.shape) != 1 for x in loops.reads):
        raise Unlowered
    dot(loops, call)


def _scaled(loops: CallLoops) -> None:
    """``np.dot`` with an array of one number: if there are more elements, it has BLAS add a multiple of them to zeros."""
    x, y = loops.reads if size(loops.reads[1].layout.shape) == 1 else loops.reads[::-1]
    (out,) = loops.writes
    if not x.dtype == y.dtype == out.dtype:
        raise Unlowered
    n, itemsize = size(out.layout.shape), out.dtype.itemsize
    if n == 1:
        _, found = ufunc_loop(np.multiply, [x.dtype, x.dtype])
    else:
        found = multiple(x.dtype)
    (step,) = [stride for stride, length in zip(x.layout.strides, x.layout.shape, strict=True) if length > 1] or [0]
    if n > 1 and (step <= 0 or step % itemsize):
        raise Unlowered  # it would be copied first
    args = [(operand.slot, operand.offset) for operand in (x, y, out)]
    loops.template.loops.append(Loop("dot", found, [LoopAxis(n, (step, 0, itemsize))], args, [itemsize] * 3))


def outer(loops: CallLoops, call: TracedCall) -> None:
    """``np.outer`` is the product of a column and a row."""
    if call.kwargs or len(loops.reads) != 2 or any(len(x.layout.shape) != 1 for x in loops.reads):
        raise Unlowered
    dtypes, found = ufunc_loop(np.multiply, [x.dtype for x in loops.reads])
    x, y = [loops.converted(x, dtype) for x, dtype in zip(loops.reads, dtypes, strict=False)]
    (n,), (m,), (step,), (stride,) = x.layout.shape, y.layout.shape, x.layout.strides, y.layout.strides
    column = Operand(x.slot, (n, 1), (step, 0), x.dtype, x.offset)
    row = Operand(y.slot, (1, m), (0, stride), y.dtype, y.offset)
    loops.elementwise("outer", found, [column, row], loops.writes, is_exact(np.multiply, dtypes[0]))


#: NumPy's functions, and what finds their loops
FUNCTIONS: dict[Any, Callable[[CallLoops, TracedCall], None]] = {np.dot: dot, np.inner: inner, np.outer: outer}
