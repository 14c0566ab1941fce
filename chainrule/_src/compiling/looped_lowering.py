"""Lower a program with detected loops: the calls outside of loops, and one body per loop.

``lower_with_loops`` makes a ``LoopedLowering`` from a program and the loops that ``loop_detection`` found in it, for ``plan`` and
``scan_lowering``. ``native_executor`` and ``scan_lowering`` call ``kernel_calls_of`` with its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.factors import Memories
from chainrule._src.compiling.grouping import KernelCall, LoopArgument
from chainrule._src.compiling.kernel_loops import BodyCall, RepeatedCalls, moving, table_of
from chainrule._src.compiling.layout import ARENA, Buffer, BufferView, Move, memory_span
from chainrule._src.compiling.loop_detection import (
    CARRIED,
    FARTHEST,
    MIN_ITERATIONS,
    MIN_KERNEL_CALLS,
    MOTIONS,
    ONE,
    RING,
    SAVED,
    TABLE,
    WINDOWS,
    LoopBuffer,
    LoopFinder,
    TraceLoop,
)
from chainrule._src.compiling.loops import MEMORY, READ, TEMPORARY, WRITE
from chainrule._src.compiling.lowering import LoopLowerer
from chainrule._src.compiling.simplify import RemainingCalls, Simplified
from chainrule._src.compiling.steps import Lowering, PlanStep, ResultLayout
from chainrule._src.compiling.trace import TraceArrays
from chainrule._src.interpreters.trace_types import Program, Var

#: the number of calls up to which programs are lowered once to see whether they may have loops: that takes less time than to find loops
FEW_CALLS = 64


def lower_with_loops(
    program: Program,
    simplified: Simplified,
    lowerer: LoopLowerer,
    plain: type[Lowering] = Lowering,
    looped: type[LoopedLowering] | None = None,
    apart: Sequence[Var] = (),
) -> Lowering:
    """Lower a program to kernel calls, with one body per loop.

    Args:
        plain, looped: the classes for programs without and with loops.
        apart: Vars that need buffers of their own.
    """
    lowering = plain(program, simplified, lowerer) if len(simplified.calls) <= FEW_CALLS else None
    if lowering is not None and not _may_have_loops(lowering.steps):
        return lowering
    trace = TraceArrays(program, simplified, lowerer)
    found = LoopFinder(trace, apart)
    if lowering is not None and not found.loops:
        return lowering
    return (looped or LoopedLowering)(program, simplified, lowerer, trace, found)


def _may_have_loops(steps: list[PlanStep]) -> bool:
    """Return False for steps that ``LoopFinder`` certainly finds no loop in: with few kernel calls, or without repeated sequences."""
    if sum([len(step.template.loops) for step in steps if step.template is not None]) < MIN_KERNEL_CALLS:
        return False
    kinds: list[object] = []
    for step in steps:
        if step.template is not None:
            kinds.append((*[loop.name for loop in step.template.loops], *[value.layout for value in step.writes]))
        elif not step.view:
            kinds.append(step)
    windows = {tuple(kinds[i : i + WINDOWS[0]]) for i in range(len(kinds))}
    return len(kinds) - len(windows) >= MIN_ITERATIONS - 1


def kernel_calls_of(
    numbers: Iterable[int],
    steps: list[PlanStep],
    loops: dict[int, LoweredLoop],
    memories: Memories,
    before: list[Any] | None = None,
    around: LoweredLoop | None = None,
) -> list[BodyCall]:
    """Return the kernel calls of steps, with loops among them.

    Args:
        numbers: the indices of steps that are no views.
        loops: the lowered loops by their first steps.
        before: the list to which calls that prepare shared memory are appended; None: they are among the returned ones.
        around: the loop whose body has the steps.
    """
    calls: list[BodyCall] = []
    before = calls if before is None else before
    end = -1  # of the last loop
    for number in numbers:
        loop = loops.get(number)
        if loop is not None:
            end = loop.end
            calls.append(loop.repeated_calls(steps, memories, before))
            if around is not None:
                around.local |= loop.local
        if number < end:
            continue
        step = steps[number]
        if around is None or step in around.reads:
            temporaries = _add_kernel_calls(calls, step, memories, before, around)
        else:  # a copy of an invariant operand
            temporaries = _add_kernel_calls(calls, step, memories, before, None)
            around.local.update([value.buffer for value in step.writes])
        if around is not None:
            around.local.update(temporaries)
    return calls


def _add_kernel_calls(
    kernel_calls: list[Any], step: PlanStep, memories: Memories, before: list[Any], loop: LoweredLoop | None
) -> list[Buffer]:
    """Append the kernel calls of a step, with its arrays as their arguments; return the buffers of temporaries.

    Args:
        before: the list to which calls that prepare shared memory are appended.
        loop: the loop whose body has the step. It gives the locations of operands in each iteration.
    """
    template = step.template
    if loop is None:
        reads, writes = [[(value.buffer, value.offset) for value in values] for values in (step.reads, step.writes)]
    else:
        reads, writes = loop.reads[step], loop.writes[step]
    temporaries = [Buffer(ARENA, nbytes) for nbytes in template.temporaries]
    for each in template.loops:
        kernel = memories.chosen(each, step.reads, before)
        args: list[LoopArgument] = []
        for (kind, i), offset in kernel.args:
            if kind in (READ, WRITE):
                location, start = (reads if kind == READ else writes)[i]
                args.append((location, start + offset, None))
            elif kind == TEMPORARY:
                args.append((temporaries[i], offset, None))
            elif kind == MEMORY:
                args.append((memories.buffer(i), 0, None))
            elif loop is None:
                args.append((None, offset, template.numbers[i]))
            else:
                args.append(loop.number(step, i, offset))
        kernel_calls.append(KernelCall(kernel, args))
    return temporaries


class LoweredLoop:
    """The body of a loop as steps.

    Attributes:
        first, end: its steps, as indices of all steps.
        count: the number of iterations.
        distances: the number of calls from the first iteration of this loop and of those around it to every other one, with an axis
            for each loop; varying: the calls of its first iteration whose numbers differ in others.
        motion: ``TraceLoop.motion``, for each operand from ``first_operand`` of the trace on.
        loops: the loops in its body, by their first step that is no view.
        reads, writes: for each step the locations of its operands and results: (location, offset) pairs. Locations move from
            one iteration to the next.
        numbers: for each step the numbers of every iteration of this loop and those around it, where they differ: an array of their
            indices with an axis for each loop, and the numbers of each index.
        local: the buffers that every iteration writes before it reads them.
    """

    distances: NumpyArray
    varying: set[int]
    motion: list[list[int]]
    first_operand: int

    def __init__(self, first: int, count: int) -> None:
        self.first = self.end = first
        self.count = count
        self.loops: dict[int, LoweredLoop] = {}
        self.reads: dict[PlanStep, list[Any]] = {}
        self.writes: dict[PlanStep, list[Any]] = {}
        self.numbers: dict[PlanStep, tuple[NumpyArray, dict[int, list[NumpyArray]]]] = {}
        self.local: set[Buffer] = set()

    def repeated_calls(self, steps: list[PlanStep], memories: Memories, before: list[Any]) -> RepeatedCalls:
        """Return the kernel calls of its body. Calls that prepare it are appended to ``before``."""
        numbers = [k for k in range(self.first, self.end) if not steps[k].view]
        calls = kernel_calls_of(numbers, steps, self.loops, memories, before, self)
        return RepeatedCalls(calls, self.count, self.local)

    def number(self, step: PlanStep, i: int, offset: int) -> LoopArgument:
        """Return a number of a step as an argument of a kernel call: a table, if the number differs between iterations."""
        if step not in self.numbers:
            return None, offset, step.template.numbers[i]
        every, numbers = self.numbers[step]
        contents: dict[bytes, int] = {}
        same = {k: contents.setdefault(each[i].tobytes(), k) for k, each in numbers.items()}
        found = _table(_replaced(every, same), lambda k: numbers[k][i])
        if found is None:
            return None, offset, numbers[int(every.flat[0])][i]
        table, moves = found
        return moving(table, moves), offset, None


def _replaced(x: NumpyArray, values: dict[int, int]) -> NumpyArray:
    return np.array([values[k] for k in x.ravel().tolist()], np.int64).reshape(x.shape)


def _table(indices: NumpyArray, array_of: Callable[[int], NumpyArray]) -> tuple[Buffer, list[Move | None]] | None:
    """Return a table of the arrays of all iterations, and its move in each loop; None if all arrays are the same.

    Args:
        indices: the index of the array in each iteration, with an axis for each loop.
        array_of: returns the array of an index.
    """
    for axis in range(indices.ndim):
        first = indices.take([0], axis)
        if (indices == first).all():
            indices = first
    if indices.size == 1:
        return None
    table, stride = table_of([array_of(k) for k in indices.ravel().tolist()])
    moves: list[Move | None] = []
    for count in reversed(indices.shape):
        moves.append((stride, 0, 0) if count > 1 else None)
        stride *= count
    return table, moves[::-1]


class LoopedLowering(Lowering):
    """Turn a program into steps, with one body for each loop.

    Args:
        trace: the calls of the program as integer arrays.
        found: its loops.

    Attributes:
        loops: the outermost lowered loops, by their first step that is no view.
    """

    def __init__(
        self, program: Program, simplified: Simplified, lowerer: LoopLowerer, trace: TraceArrays, found: LoopFinder
    ) -> None:
        self._trace, self._found = trace, found
        self._buffers: dict[LoopBuffer, Buffer] = {}
        super().__init__(program, simplified, lowerer)

    def _add_calls(self, calls: RemainingCalls) -> None:
        self._add_range(0, len(calls), self._found.in_order, [], [])

    def _add_range(
        self, at: int, end: int, loops: list[TraceLoop], around: list[TraceLoop], lowered: list[LoweredLoop]
    ) -> None:
        """Add the calls of a range, with loops among them.

        Args:
            at, end: the first call of the simplified program, and the end.
            around, lowered: the loops whose bodies contain the range, outermost first.
        """
        position = self._trace.position
        for loop in loops:
            begin = int(position[loop.begin])
            self._add_unrolled(at, begin, around, lowered)
            self._add_loop(loop, begin, int(position[loop.begin + loop.period]), around, lowered)
            at = int(position[loop.end] if loop.end < len(position) else position[loop.end - 1] + 1)
        self._add_unrolled(at, end, around, lowered)

    def _add_unrolled(self, at: int, end: int, around: list[TraceLoop], lowered: list[LoweredLoop]) -> None:
        """Add the calls of a range without loops."""
        calls = self._simplified.calls[at:end]
        if not around:
            for call, used in calls:
                self._add(call, used)
            return
        for number, (call, used) in zip(self._trace.index[at:end].tolist(), calls, strict=True):
            self._add(call, used)
            if number >= 0:
                self._set_locations(number, around, lowered)

    def _add_loop(
        self, loop: TraceLoop, begin: int, end: int, around: list[TraceLoop], lowered: list[LoweredLoop]
    ) -> None:
        """Add the body of a loop, which has the calls ``begin`` to ``end`` of the simplified program."""
        body = LoweredLoop(len(self.steps), loop.count)
        body.motion, body.first_operand = loop.motion.tolist(), int(self._trace.starts[loop.begin])
        outer = lowered[-1].distances if lowered else np.array(0)
        body.distances = _in_every_iteration(outer, [loop], [loop.period])
        numbers = self._trace.numbers[
            np.add.outer(np.arange(loop.begin, loop.begin + loop.period), body.distances.ravel())
        ]
        body.varying = {loop.begin + k for k in np.flatnonzero((numbers != numbers[:, :1]).any(1)).tolist()}
        self._add_range(begin, end, loop.inner, [*around, loop], [*lowered, body])
        body.end = len(self.steps)
        first_step = next(k for k in range(body.first, body.end) if not self.steps[k].view)
        (lowered[-1].loops if lowered else self.loops)[first_step] = body

    # -- locations of arrays -----------------------------------------------------------------------------------------

    def _result(self, var: Var, spec: ResultLayout) -> BufferView:
        slot = self._trace.slot(var)
        if not self._found.is_result(slot):
            return super()._result(var, spec)
        buffer, offset = self._location(slot)
        self._count += 1
        return BufferView(self._count, buffer, offset, spec.shape, spec.strides, spec.dtype, spec.layout)

    def _value(self, var: Var) -> BufferView:
        value = self.values.get(var)
        if value is None:
            original = self._simplified.original(var)
            value = self.values.get(original)
            if value is None and original not in self._simplified.constants:
                value = self._value_of_iteration(original)
            if value is None:
                return super()._value(var)
            self.values[var] = value
        return value

    def _value_of_iteration(self, var: Var) -> BufferView:
        """Return the value of an array in an iteration that is not lowered: a view of a buffer of its loop, or of another array."""
        slot = self._trace.slot(var)
        root = int(self._trace.root[slot])
        if not self._found.is_result(root) and self._value(self._trace.variables[root]).buffer.kind != ARENA:
            self._add(
                *self._simplified.calls[int(self._trace.view_call[slot])]
            )  # Python's steps take such views from steps
            return self.values[var]
        buffer, offset = self._location(slot)
        return self._view(buffer, offset, var.array)

    def _region(self, var: Var) -> int | None:
        root = int(self._trace.root[self._trace.slot(var)])
        return root if self._found.is_result(root) else None

    def _location(self, slot: int) -> tuple[Buffer, int]:
        """Return the buffer that an array lies in, and its offset in bytes."""
        trace, found = self._trace, self._found
        root, offset = int(trace.root[slot]), int(trace.offset[slot])
        slot_of_loop = found.slot_of(root)
        if slot_of_loop is None:
            value = self._value(trace.variables[root])
            return value.buffer, value.offset + offset
        where, iterations = slot_of_loop
        buffer = self._buffers.get(where)
        array = trace.variables[root].array
        start, _ = memory_span(array.shape, array.strides, array.dtype.itemsize)
        if buffer is None:
            buffer = self._buffers[where] = Buffer(ARENA, where.whole_nbytes)
            buffer.slots = True
            buffer.root = BufferView(0, buffer, start, array.shape, array.strides, array.dtype)
            self.buffers.append(buffer)
        return buffer, start + where.offset(iterations) + offset

    # -- locations in loops ------------------------------------------------------------------------------------------

    def _set_locations(self, number: int, around: list[TraceLoop], lowered: list[LoweredLoop]) -> None:
        """Set the locations of the operands and results of the last step, a call of the trace in loops."""
        trace, step = self._trace, self.steps[-1]
        body, first = lowered[-1], int(trace.starts[number])
        body.reads[step] = [self._read(around, body, first + k, value) for k, value in enumerate(step.reads)]
        body.writes[step] = []
        for root, value in zip(trace.results[number].tolist(), step.writes, strict=False):
            where, _ = self._slot(root)
            body.writes[step].append((self._written(where, len(around), value), value.offset))
            for loop, axis in zip(lowered, where.axes, strict=False):
                if axis.kind != ONE:
                    break
                loop.local.add(value.buffer)
        if number in body.varying:
            calls = number + body.distances
            numbers = trace.numbers[calls]
            templates = dict(zip(numbers.ravel().tolist(), calls.ravel().tolist(), strict=True))
            body.numbers[step] = numbers, {k: trace.template(call).numbers for k, call in templates.items()}

    def _written(self, where: LoopBuffer, depth: int, value: BufferView) -> Any:
        """Return the location that a result of a body is written to.

        Args:
            depth: the number of loops around the call. The buffer has another axis if it has the slots of an inner loop, too.
        """
        moves = [
            None if axis.slots == 1 else (stride, axis.slots if axis.kind == RING else 0, 0)
            for axis, stride in zip(where.axes[:depth], where.strides, strict=False)
        ]
        return moving(value.buffer, moves)

    def _read(self, loops: list[TraceLoop], body: LoweredLoop, operand: int, value: BufferView) -> tuple[Any, int]:
        """Return the location that an operand of a body is read from, and its offset.

        Args:
            loops: the loops whose bodies have the call, outermost first; body: the last one.
            operand: the index of the operand in the trace, in the first iteration of all loops.
        """
        trace = self._trace
        here, offset = int(trace.operands[operand]), value.offset
        motion = body.motion[operand - body.first_operand]
        moves: list[Move | None] = []
        for depth, loop in enumerate(loops):
            relation, _, step, inner_step = motion[depth * MOTIONS : (depth + 1) * MOTIONS]
            if relation == TABLE:  # in the loops within it, too
                inner = loops[depth:]
                operands = _in_every_iteration(np.array(operand), inner, [len(each.relation) for each in inner])
                found = _table(trace.root[trace.operands[operands]], lambda root: trace.variables[root].array)
                if found is None:
                    break
                return moving(found[0], [*moves, *found[1]]), int(trace.offset[here])
            if relation == CARRIED:
                where, iterations = self._slot(int(trace.root[here]))
                axis, stride = where.axes[depth], where.strides[depth]
                if axis.kind == RING and axis.slots > 1:
                    slot = axis.slot(iterations[depth])
                    moves.append((stride, axis.slots, slot))
                    offset -= slot * stride
                    continue
                step += stride if axis.kind == SAVED else 0
            elif inner_step or abs(step) >= FARTHEST:  # another slot of a loop's buffer
                there = int(trace.operands[operand + len(loop.relation)])
                step = self._location(there)[1] - self._location(here)[1]
            moves.append((step, 0, 0) if step else None)
        return moving(value.buffer, moves), offset

    def _slot(self, root: int) -> tuple[LoopBuffer, tuple[int, ...]]:
        """Return the buffer of a loop that a root lies in, and the iteration of each loop that computes it."""
        found = self._found.slot_of(root)
        assert found is not None
        return found


def _in_every_iteration(first: NumpyArray, loops: Sequence[TraceLoop], steps: Sequence[int]) -> NumpyArray:
    """Return indices in every iteration of loops, as an array with another axis for each loop.

    Args:
        steps: for each loop the distance between the indices of successive iterations.
    """
    for loop, step in zip(loops, steps, strict=True):
        first = np.add.outer(first, step * np.arange(loop.count))
    return first
