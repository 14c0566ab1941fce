"""Share LU factors between steps of a plan.

Several steps may factor the same matrix: ``solve``, ``inv``, ``det``, ``slogdet``. For each of their loops there is a variant that looks
up the matrix by its bits in a cache of factors (`native/lu_cache.c`). ``Memories.chosen`` selects the variant if several steps of a plan
read the matrix, and ``Memories`` owns the buffers of the caches.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.call_loops import CallLoops
from chainrule._src.compiling.grouping import KernelCall, LoopArgument
from chainrule._src.compiling.iteration import LoopAxis
from chainrule._src.compiling.layout import ARENA, Buffer, BufferView
from chainrule._src.compiling.loops import MEMORY, READ, InnerLoop, Operand, own_loop
from chainrule._src.compiling.products import add_core_loop
from chainrule._src.compiling.steps import PlanStep
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.native import KERNELS, execute, use_lapack
from chainrule._src.native.blas import blas_function
from chainrule._src.native.code import FIRST_INPUT, kernel_step, program

ndarray = np.ndarray
DOUBLE, WORD = np.dtype(np.float64), 8
#: the maximum size of matrices with two cache entries; larger ones have one
SMALL = 64


def add_shared(loops: CallLoops, name: str, reads: list[Operand], writes: list[Operand]) -> None:
    """Set the variant with shared factors of the loop that was added last, if there is one."""
    if (
        any([x.dtype != DOUBLE for x in reads + writes])
        or len(reads[0].layout.shape) != 2
        or not factors_are_available()
    ):
        return
    plain, n = loops.template.loops.pop(), reads[0].layout.shape[0]
    cores = {"inv": [["m", "m"]] * 2, "slogdet": [["m", "m"], [], []], "det": [["m", "m"], []]}.get(name)
    sides = n
    if cores is None:
        name, cores = "solve", [["m", "m"], ["m", "n"], ["m", "n"]]
        reads, writes = [reads[0], _columns(reads[1])], [_columns(writes[0])]
        sides = reads[1].layout.shape[-1]
    if any([len(x.layout.shape) > 2 for x in reads + writes]):
        loops.template.loops.append(plain)
        return
    more = [Operand((MEMORY, n), (), (), DOUBLE)]
    if name in ("solve", "inv"):
        more.insert(0, Operand(loops.template.temporary(n * sides * WORD), (), (), DOUBLE))
    found = KERNELS[f"shared_{name}"], _entries(n)
    add_core_loop(loops, name, [*cores, *[[]] * len(more)], found, reads, [*writes, *more], plain.checked)
    plain.shared = loops.template.loops.pop()
    loops.template.loops.append(plain)


def _columns(x: Operand) -> Operand:
    """Return a vector as a matrix of one column."""
    if len(x.layout.shape) != 1:
        return x
    return Operand(x.slot, (*x.layout.shape, 1), (*x.layout.strides, 0), x.dtype, x.offset)


def _entries(n: int) -> int:
    return 2 if n <= SMALL else 1


def _nbytes(n: int) -> int:
    return WORD * (2 + _entries(n) * (2 + 2 * n * n + n))


class Memories:
    """The buffers of a plan's cached factors, one for each size of matrices.

    Args:
        steps: the steps of the plan.
    """

    def __init__(self, steps: list[PlanStep]) -> None:
        self._buffers: dict[int, Buffer] = {}
        read = Counter(
            [
                _matrix(loop, step.reads)
                for step in steps
                if step.template is not None
                for loop in step.template.loops
                if loop.shared is not None
            ]
        )
        self._shared_matrices = {matrix for matrix, count in read.items() if count > 1}

    def chosen(self, loop: InnerLoop, reads: list[BufferView], kernel_calls: list[KernelCall]) -> InnerLoop:
        """Return the loop of a step to run: the variant with shared factors, or the loop itself.

        At the first use of a cache, a kernel call that clears it is appended to ``kernel_calls``.
        """
        if loop.shared is None or _matrix(loop, reads) not in self._shared_matrices:
            return loop
        n = next(at for (kind, at), _ in loop.shared.args if kind == MEMORY)
        if n not in self._buffers:
            buffer = self._buffers[n] = Buffer(ARENA, _nbytes(n))
            args: list[LoopArgument] = [(None, 0, np.zeros((), np.int64)), (buffer, 0, None)]
            slots = [((READ, 0), 0), ((READ, 0), 0)]
            kernel_calls.append(
                KernelCall(InnerLoop("copy", own_loop("copy8"), [LoopAxis(1, (0, WORD))], slots, [WORD, WORD]), args)
            )
        return loop.shared

    def buffer(self, n: int) -> Buffer:
        return self._buffers[n]


def _matrix(loop: InnerLoop, reads: list[BufferView]) -> tuple[Any, int]:
    """Return the location of the matrix that a loop factors, which is also that of its transpose."""
    (kind, i), offset = loop.args[0]
    value = reads[i] if kind == READ else None
    return (None, id(loop)) if value is None else (value.buffer, value.offset + offset)


# -- self-test -------------------------------------------------------------------------------------------------------


@functools.cache
def factors_are_available() -> bool:
    """Return whether NumPy's LAPACK is found, and loops with shared factors give the bits of NumPy's gufuncs."""
    getrf, getrs, gesv = [blas_function(name) for name in ("dgetrf_", "dgetrs_", "dgesv_")]
    if getrf is None or getrs is None or gesv is None or not {"shared_solve", "shared_inv"} <= KERNELS.keys():
        return False
    threads = blas_function("openblas_get_num_threads")
    use_lapack(getrf.address, getrs.address, gesv.address, threads.address if threads else 0, getrf.bits)
    numbers = np.random.default_rng(0)
    try:
        return all(
            [
                _factors_agree(np.round(numbers.standard_normal((n, n)), digits))
                for n in (1, 2, 3, 7, 13, 20)
                for digits in (0, 9)
            ]
        )
    except np.linalg.LinAlgError:
        return False


def _factors_agree(x: NumpyArray) -> bool:
    n = len(x)
    if not np.linalg.det(x):
        return True
    with np.errstate(all="ignore"):
        expected = [np.linalg.solve(x, x[:, :1] + 1), np.linalg.inv(x), *np.linalg.slogdet(x), np.linalg.det(x)]
    memory, scratch = np.zeros(_nbytes(n), np.uint8), np.empty(n * n)
    square = (x.strides[0], x.strides[1])
    side, out = x[:, :1] + 1, [np.empty((n, 1)), np.empty((n, n)), np.empty(()), np.empty(()), np.empty(())]
    calls = [
        ("solve", [x, side, out[0], scratch, memory], (n, 1), (*square, WORD, 0, WORD, 0)),
        ("inv", [x, out[1], scratch, memory], (n,), square * 2),
        ("slogdet", [x, out[2], out[3], memory], (n,), square),
        ("det", [x, out[4], memory], (n,), square),
    ]
    for name, arrays, core, strides in calls:
        args = [(FIRST_INPUT + i, 0) for i in range(len(arrays))]
        step = kernel_step(KERNELS[f"shared_{name}"], _entries(n), 1, args, (*[0] * len(args), *strides), core=core)
        code = program([step])
        execute(code, 0, code.size, np.array([0, 0, *[array.ctypes.data for array in arrays]], np.intp))
    return all([same_bits(np.asarray(a), np.asarray(b)) for a, b in zip(out, expected, strict=True)])
