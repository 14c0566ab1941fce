"""Lower a program with detected loops: the calls outside of loops, and one body per loop.

``plan`` makes a ``LoopedLowering`` from a program and the loops that ``loop_detection`` found in it. ``native_executor`` and
``scan_lowering`` call ``add_kernel_calls`` with its steps.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.compiling.factors import Memories
from chainrule._src.compiling.grouping import KernelCall, LoopArgument
from chainrule._src.compiling.kernel_loops import KernelLoop, moved, table_of
from chainrule._src.compiling.layout import ARENA, Buffer, BufferView, Move, memory_span
from chainrule._src.compiling.loop_detection import (
    CARRIED,
    ONE,
    RING,
    SAVED,
    STRIDED,
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


def add_kernel_calls(
    kernel_calls: list[KernelCall],
    step: PlanStep,
    memories: Memories,
    before: list[KernelCall] | None = None,
    loop: LoweredLoop | None = None,
) -> list[Buffer]:
    """Append the kernel calls of a step, with its arrays as their arguments; return the buffers of temporaries.

    Args:
        before: the list to which calls that prepare shared memory are appended; None: ``kernel_calls``.
        loop: the loop whose body has the step. It gives the locations of operands in each iteration.
    """
    template = step.template
    if loop is None:
        reads, writes = [[(value.buffer, value.offset) for value in values] for values in (step.reads, step.writes)]
    else:
        reads, writes = loop.reads[step], loop.writes[step]
    temporaries = [Buffer(ARENA, nbytes) for nbytes in template.temporaries]
    for each in template.loops:
        kernel = memories.chosen(each, step.reads, kernel_calls if before is None else before)
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
        reads, writes: for each step the locations of its operands and results: (location, offset) pairs. Locations move from
            one iteration to the next.
        numbers: for each step the numbers of every iteration, where they differ.
        local: the buffers that every iteration writes before it reads them.
    """

    def __init__(self, first: int, count: int) -> None:
        self.first = self.end = first
        self.count = count
        self.reads: dict[PlanStep, list[Any]] = {}
        self.writes: dict[PlanStep, list[Any]] = {}
        self.numbers: dict[PlanStep, list[list[Any]]] = {}
        self.local: set[Buffer] = set()

    def kernel_loop(self, steps: list[PlanStep], memories: Memories, before: list[KernelCall]) -> KernelLoop:
        """Return the loop with the kernel calls of its body. Calls that prepare it are appended to ``before``."""
        kernel_calls: list[KernelCall] = []
        for step in steps:
            if step in self.reads:
                temporaries = add_kernel_calls(kernel_calls, step, memories, before, self)
            else:  # a copy of an invariant operand
                temporaries = add_kernel_calls(kernel_calls, step, memories, before)
                self.local.update([value.buffer for value in step.writes])
            self.local.update(temporaries)
        return KernelLoop(kernel_calls, self.count, 0, self.local)

    def number(self, step: PlanStep, i: int, offset: int) -> LoopArgument:
        """Return a number of a step as an argument of a kernel call: a table, if the number differs between iterations."""
        every = self.numbers.get(step)
        if every is None:
            return None, offset, step.template.numbers[i]
        numbers = [numbers[i] for numbers in every]
        if all([other is numbers[0] or other.tobytes() == numbers[0].tobytes() for other in numbers]):
            return None, offset, numbers[0]
        table, stride = table_of(numbers)
        return moved(table, (), (stride, 0, 0), 0), offset, None


class LoopedLowering(Lowering):
    """Turn a program into steps, with one body for each loop.

    Args:
        trace: the calls of the program as integer arrays.
        found: its loops.

    Attributes:
        loops: the lowered loops, by their first step that is no view.
    """

    def __init__(
        self, program: Program, simplified: Simplified, lowerer: LoopLowerer, trace: TraceArrays, found: LoopFinder
    ) -> None:
        self._trace, self._found = trace, found
        self._buffers: dict[LoopBuffer, Buffer] = {}
        super().__init__(program, simplified, lowerer)

    def _add_calls(self, calls: RemainingCalls) -> None:
        position = self._trace.position
        at = 0
        for loop in self._found.in_order:
            begin = position[loop.begin]
            for call, used in calls[at:begin]:
                self._add(call, used)
            self._add_loop(loop, begin, position[loop.begin + loop.period])
            at = position[loop.end] if loop.end < len(position) else position[loop.end - 1] + 1
        for call, used in calls[at:]:
            self._add(call, used)

    # -- locations of arrays -----------------------------------------------------------------------------------------

    def _result(self, var: Var, spec: ResultLayout) -> BufferView:
        slot = self._trace.slot(var)
        if self._found.member[slot] < 0:
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
        if self._found.member[root] < 0 and self._value(self._trace.variables[root]).buffer.kind != ARENA:
            self._add(
                *self._simplified.calls[int(self._trace.view_call[slot])]
            )  # Python's steps take such views from steps
            return self.values[var]
        buffer, offset = self._location(slot)
        return self._view(buffer, offset, var.array)

    def _region(self, var: Var) -> int | None:
        root = int(self._trace.root[self._trace.slot(var)])
        return root if self._found.member[root] >= 0 else None

    def _location(self, slot: int) -> tuple[Buffer, int]:
        """Return the buffer that an array lies in, and its offset in bytes."""
        trace, found = self._trace, self._found
        root, offset = int(trace.root[slot]), int(trace.offset[slot])
        if found.member[root] < 0:
            value = self._value(trace.variables[root])
            return value.buffer, value.offset + offset
        where = found.loops[found.member[root]].buffers[int(found.body[root]), int(trace.column[root])]
        buffer = self._buffers.get(where)
        array = trace.variables[root].array
        start, _ = memory_span(array.shape, array.strides, array.dtype.itemsize)
        if buffer is None:
            nbytes = where.nbytes if where.slots == 1 else where.slots * where.stride
            buffer = self._buffers[where] = Buffer(ARENA, nbytes)
            buffer.slots = True
            buffer.root = BufferView(0, buffer, start, array.shape, array.strides, array.dtype)
            self.buffers.append(buffer)
        return buffer, start + where.slot(int(found.iteration[root])) * where.stride + offset

    # -- loops -------------------------------------------------------------------------------------------------------

    def _add_loop(self, loop: TraceLoop, begin: int, end: int) -> None:
        lowered = LoweredLoop(len(self.steps), loop.count)
        trace, first = self._trace, int(self._trace.starts[loop.begin])
        for position in range(begin, end):
            call, used = self._simplified.calls[position]
            self._add(call, used)
            number = trace.index[position]
            if number < 0:
                continue
            step, body = self.steps[-1], number - loop.begin
            operands = range(int(trace.starts[number]), int(trace.starts[number + 1]))
            lowered.reads[step] = [self._read(loop, body, k, k - first, step.reads[i]) for i, k in enumerate(operands)]
            lowered.writes[step] = [
                self._written(loop.buffers[body, column], value) for column, value in enumerate(step.writes)
            ]
            numbers = trace.numbers[number : loop.end : loop.period]
            if (numbers != numbers[0]).any():
                lowered.numbers[step] = [trace.template(call).numbers for call in range(number, loop.end, loop.period)]
        lowered.local = {self._buffers[b] for b in loop.buffers.values() if b.kind == ONE and b in self._buffers}
        lowered.end = len(self.steps)
        first_step = next(k for k in range(lowered.first, lowered.end) if not self.steps[k].view)
        self.loops[first_step] = lowered

    def _written(self, buffer: LoopBuffer, value: BufferView) -> tuple[Any, int]:
        """Return the location that a result of the body is written to, and its offset."""
        move = (
            None
            if buffer.slots == 1
            else (buffer.stride, buffer.slots, 0)
            if buffer.kind == RING
            else (buffer.stride, 0, 0)
        )
        return moved(value.buffer, (), move, 0), value.offset

    def _read(self, loop: TraceLoop, body: int, operand: int, k: int, value: BufferView) -> tuple[Any, int]:
        """Return the location that an operand of the body is read from, and its offset."""
        trace = self._trace
        width = len(loop.relation)
        here, there = int(trace.operands[operand]), int(trace.operands[operand + width])
        if loop.relation[k] == CARRIED:
            root = int(trace.root[here])
            writer, column = int(self._found.body[trace.root[there]]), int(trace.column[root])
            buffer = loop.buffers[writer, column]
            step = int(trace.offset[there] - trace.offset[here])
            if buffer.kind == RING and buffer.slots > 1:
                slot = buffer.slot(int(self._found.iteration[root]))
                return moved(
                    value.buffer, (), (buffer.stride, buffer.slots, slot), 0
                ), value.offset - slot * buffer.stride
            step += buffer.stride if buffer.kind == SAVED else 0
            return moved(value.buffer, (), (step, 0, 0) if step else None, 0), value.offset
        if loop.relation[k] == STRIDED:
            _, at = self._location(here)
            _, next_at = self._location(there)
            move: Move | None = (next_at - at, 0, 0) if next_at != at else None
            return moved(value.buffer, (), move, 0), value.offset
        every = [trace.variables[int(trace.root[trace.operands[operand + i * width]])] for i in range(loop.count)]
        table, stride = table_of([var.array for var in every])
        return moved(table, (), (stride, 0, 0), 0), int(trace.offset[here])
