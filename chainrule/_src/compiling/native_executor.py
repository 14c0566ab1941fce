"""Run the kernel calls of a plan in native code.

``plan`` passes a lowered program to ``Native``. Consecutive steps with kernel calls form segments. Each segment is encoded as a program
of :mod:`chainrule._src.native.code`, whose arguments are offsets in the arena, inputs, constants and outputs. A plan of segments
alone is one call of native code (``NativePlan``). Otherwise an ``Executor`` runs segments and Python steps in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.factors import Memories
from chainrule._src.compiling.grouping import KernelCall, LoopArgument, LoopGroup
from chainrule._src.compiling.kernel_loops import Item, KernelLoop, arranged
from chainrule._src.compiling.layout import (
    ALIGNMENT,
    ARENA,
    CONSTANT,
    INPUT,
    LOOSE,
    OUTPUT,
    Buffer,
    BufferView,
    Move,
    MovingBuffer,
    assign_arena_offsets,
    data_address,
    root_of,
)
from chainrule._src.compiling.looped_lowering import LoweredLoop, kernel_calls_of
from chainrule._src.compiling.loops import ROUND
from chainrule._src.compiling.python_executor import ARENA_OF_CALL, NOTE, Executor, Report, exception_names
from chainrule._src.compiling.steps import Lowering, PlanStep
from chainrule._src.compiling.value_checks import ValueDiffers
from chainrule._src.interpreters.trace_types import Program
from chainrule._src.native import Runner
from chainrule._src.native import code as code_format

ndarray = np.ndarray

#: the bytes of a group's intermediate values per block, and the limits of the number of elements of a block
CACHED = 192 * 1024
SHORTEST, LONGEST = 1024, 8192

UNFIT = "an array of a plan does not have the layout that it was planned for, or is written and read-only"


class NativeSegment:
    """Consecutive steps that run in native code.

    Attributes:
        steps: the indices of the steps.
        items: the kernel calls, groups and loops, in the order in which they run.
        loops: for each loop the first and last step of the body, and the trip count; inner loops come after the loop around them.
    """

    def __init__(
        self, numbers: list[int], steps: list[PlanStep], memories: Memories, loops: dict[int, LoweredLoop]
    ) -> None:
        self.steps = numbers
        self.items = arranged(kernel_calls_of(numbers, steps, loops, memories), 0)
        self.loops: list[tuple[int, int, int]] = []
        for number in numbers:
            if number in loops:
                self._note_loop(number, loops[number], steps)

    def _note_loop(self, first: int, loop: LoweredLoop, steps: list[PlanStep]) -> None:
        last = max([k for k in range(loop.first, loop.end) if not steps[k].view])
        self.loops.append((first, last, loop.count))
        for number, inner in loop.loops.items():
            self._note_loop(number, inner, steps)

    def buffers(self) -> list[Buffer]:
        """Return all buffers, in the order of first use."""
        return list(dict.fromkeys([buffer for item in self.items for buffer in item.touched]))


class Block:
    """The scratch memory of a group for one block, shared by buffers that only the group uses.

    Attributes:
        offsets: the offset of each such buffer, in bytes per element of a block.
        width: the size of the memory, in bytes per element of a block.
    """

    def __init__(self, group: LoopGroup, private: set[Buffer]) -> None:
        self.offsets: dict[Buffer, int] = {}
        self.width = 0
        self._free: dict[int, list[int]] = {}
        self._total = group.total
        last = {
            buffer: i
            for i, kernel_call in enumerate(group.kernel_calls)
            for buffer in kernel_call.touched
            if buffer in private
        }
        for i, kernel_call in enumerate(group.kernel_calls):
            ending = [buffer for buffer in dict.fromkeys(kernel_call.reads) if last.get(buffer) == i]
            if kernel_call.loop.in_place:
                self._release(ending)
            for buffer in kernel_call.writes:
                if buffer in last and buffer not in self.offsets:
                    self.offsets[buffer] = self._take(self._item(buffer))
            if not kernel_call.loop.in_place:
                self._release(ending)
            self._release(
                [buffer for buffer in set(kernel_call.writes) - set(kernel_call.reads) if last.get(buffer) == i]
            )

    def _item(self, buffer: Buffer) -> int:
        return buffer.nbytes // self._total

    def _take(self, size: int) -> int:
        offsets = self._free.get(size)
        if offsets:
            return offsets.pop()
        self.width += size
        return self.width - size

    def _release(self, buffers: list[Buffer]) -> None:
        for buffer in buffers:
            self._free.setdefault(self._item(buffer), []).append(self.offsets[buffer])


class Numbers:
    """The 0-d constants of a program, in one array without duplicates."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._known: dict[Any, int] = {}  # by identity, and by content

    def offset(self, number: NumpyArray) -> int:
        offset = self._known.get(id(number))
        if offset is None:
            key = number.dtype.char, number.tobytes()
            offset = self._known.get(key)
            if offset is None:
                self._content += bytes(-len(self._content) % 32)
                offset = self._known[key] = len(self._content)
                self._content += key[1]
            self._known[id(number)] = offset
        return offset

    def array(self) -> NumpyArray:
        """Return an aligned array of their bytes."""
        memory = np.zeros(len(self._content) + ALIGNMENT, np.uint8)
        start = -data_address(memory) % ALIGNMENT
        content = memory[start : start + len(self._content)]
        content[...] = np.frombuffer(bytes(self._content), np.uint8)
        return content


class ProgramEncoder:
    """Encodes segments in the code format of one runner.

    Args:
        segments: the segments.
        given: the buffers of the arrays that the runner receives, in order.
        constants: the constant buffers.
        made: the buffers of outputs that the runner allocates.
        private: the buffers that only exist in blocks of groups.
        arena_is_given: whether the arena is the first array that is passed.

    Attributes:
        code: the integers of the code format; ends: the end of each segment in ``code``.
    """

    def __init__(
        self,
        segments: list[NativeSegment],
        given: list[Buffer],
        constants: list[Buffer],
        made: list[Buffer],
        private: set[Buffer],
        arena_is_given: bool,
    ) -> None:
        self._private = private
        self._arena = code_format.FIRST_INPUT if arena_is_given else code_format.ARENA
        first = code_format.FIRST_INPUT + arena_is_given
        ordered = [*given, *constants]
        self._bases = {buffer: first + i for i, buffer in enumerate(ordered)}
        self._number_base = first + len(ordered)
        self._bases |= {buffer: self._number_base + 1 + i for i, buffer in enumerate(made)}
        self._count = self._number_base + 1 + len(made)  # the number of base addresses
        self._moving: dict[tuple[int, tuple[Move | None, ...]], int] = {}  # moving bases of the loops being encoded
        self._constants = [buffer.root.array for buffer in constants]
        self._numbers = Numbers()
        self.code: list[int] = []
        self.ends: list[int] = []
        for segment in segments:
            for item in segment.items:
                self._write(self.code, item)
            self.ends.append(len(self.code))

    def constants(self) -> list[Any]:
        return [*self._constants, self._numbers.array()]

    def _location(self, arg: LoopArgument) -> tuple[int, int]:
        buffer, offset, number = arg
        if buffer is None:
            return self._number_base, offset + self._numbers.offset(number)
        if type(buffer) is MovingBuffer:
            base, start = self._start(buffer.root)
            return self._moving[base, buffer.moves], start + offset
        base, start = self._start(buffer)
        return base, start + offset

    def _start(self, buffer: Buffer) -> tuple[int, int]:
        """Return the base and the offset at which a buffer begins."""
        return (self._arena, buffer.offset) if buffer.kind == ARENA else (self._bases[buffer], 0)

    def _write(self, code: list[int], item: Item) -> None:
        """Append a kernel call, a group or a loop to the code."""
        if type(item) is LoopGroup:
            code += self._encode_group(item)
            return
        if type(item) is KernelLoop:
            code += self._encode_loop(item)
            return
        assert type(item) is KernelCall
        head, tail = item.loop.code_parts
        code += head
        for buffer, offset, number in item.args:
            if buffer is not None and buffer.kind == ARENA:
                code += (self._arena, offset + buffer.offset)
            else:
                code += self._location((buffer, offset, number))
        code += tail

    def _encode_loop(self, item: KernelLoop) -> list[int]:
        depth, first = item.depth, self._count
        moves: list[tuple[int, int, int, int]] = []
        added = []
        for location in item.moving:
            moves_here = location.moves[: depth + 1]
            move = moves_here[depth] if len(moves_here) > depth else None
            base, _ = self._start(location.root)
            if move is None or (base, moves_here) in self._moving:
                continue
            around = moves_here[:depth]
            while around and around[-1] is None:
                around = around[:-1]
            step, ring, at = move
            moves.append((self._moving[base, around] if around else base, step, ring, at))
            self._moving[base, moves_here] = first + len(moves) - 1
            added.append((base, moves_here))
        self._count += len(moves)
        code: list[int] = []
        for inner in item.items:
            self._write(code, inner)
        self._count = first
        for key in added:
            del self._moving[key]
        return code_format.loop_body_step([code], item.count, moves, first)

    def _encode_group(self, group: LoopGroup) -> list[int]:
        block = Block(group, self._private)
        row = group.row or 1
        rows = rows_of_block(group, block.width)
        steps = [self._encode_group_step(kernel_call, row, block, rows * row) for kernel_call in group.kernel_calls]
        scratch = block.width * rows * row
        return code_format.group(steps, rows=group.total // row, block=rows, n=row, scratch=scratch, split=True)

    def _encode_group_step(self, kernel_call: KernelCall, row: int, block: Block, elements: int) -> list[int]:
        args = []
        strides = []
        loop = kernel_call.loop
        flat = not loop.reduces
        for k, arg in enumerate(kernel_call.args):
            _, stride, step, length = kernel_call.pattern(k)
            strides.append(stride)
            if arg[0] in block.offsets:
                args.append((code_format.SCRATCH, block.offsets[arg[0]] * elements, 0, stride * row))
                continue
            flat = flat and not length
            step = step if length else stride * row
            args.append((*self._location(arg), step, step))
        n, repeats = (loop.axes[0].length, loop.axes[1:-1]) if loop.reduces else (row, [])
        return code_format.group_step(
            loop.address, loop.data, args, strides, n, repeats[0] if repeats else None, flat=flat
        )


def rows_of_block(group: LoopGroup, width: int) -> int:
    """Return the number of rows per block, so that the intermediate values of a block stay in cache."""
    row = group.row or 1
    elements = min(max(CACHED // max(width, 16), SHORTEST), LONGEST)
    unit = ROUND // gcd(row, ROUND)
    return min(max(unit, elements // row // unit * unit), group.total // row)


class Native:
    """A lowered program as native segments and Python steps.

    Attributes:
        units: the segments, and the indices of steps that Python runs, in order.
        memory: the bytes of the arena.
        segments: all segments, including segments that write to inputs.
        whole: whether there are only segments.
        groups: the groups; private: the buffers that only exist in their blocks.
    """

    def __init__(self, lowering: Lowering) -> None:
        self._lowering = lowering
        steps = lowering.steps
        main = len(steps) - lowering.commits
        memories = Memories(steps)
        loops = lowering.loops
        self.units = _units(steps, range(main), memories, loops)
        self._commits = _units(steps, range(main, len(steps)), memories, loops)
        self.segments = [unit for unit in self.units + self._commits if isinstance(unit, NativeSegment)]
        objects = any(value.dtype.hasobject for value in lowering.inputs)
        self.whole = not objects and all(isinstance(unit, NativeSegment) for unit in self.units + self._commits)
        self.groups: list[LoopGroup] = []
        self.private: set[Buffer] = set()
        self.memory = assign_arena_offsets(self._arena_buffers())
        for buffer, other in self._shared_buffers.items():
            buffer.offset = other.offset

    def _arena_buffers(self) -> list[Buffer]:
        """Set the lifetimes of buffers. Return the buffers that need memory in the arena; all others share memory with one of them."""
        uses = _BufferUses()
        for unit in self.units + self._commits:
            for item in unit.items if isinstance(unit, NativeSegment) else [self._lowering.steps[unit]]:
                uses.add(item)
        self.groups = [item for item, _ in uses.items if type(item) is LoopGroup]
        for group in self.groups:
            self.private |= {buffer for buffer in group.written if _is_private(buffer, group)}
        self._shared_buffers: dict[Buffer, Buffer] = {}
        for item, time in uses.items:
            if type(item) is KernelCall and item.loop.in_place:
                _reuse_operand(item, time, self._shared_buffers)
        self._constants = list(uses.constants)
        left_out = self.private | self._shared_buffers.keys()
        return [buffer for buffer in uses.buffers if buffer.kind == ARENA and buffer not in left_out]

    def shown(self) -> tuple[list[PlanStep], list[tuple[PlanStep, PlanStep, int]]]:
        """Return the steps to print, with one body per loop, and the (first step, last step, trip count) of each loop."""
        steps, loops, shown, at = self._lowering.steps, [], [], 0
        for segment in self.segments:
            for first, last, count in segment.loops:
                shown += steps[at : last + 1]
                loops.append((steps[first], steps[last], count))
                at = max(at, last + 1)
        shown += steps[at:]
        return (self._without_views_of_others(shown) if loops else shown), loops

    def _without_views_of_others(self, shown: list[PlanStep]) -> list[PlanStep]:
        """Return the steps without views that no other step uses: views of iterations that are not printed."""
        needed = set(self._lowering.outputs)
        kept = []
        for step in reversed(shown):
            if not step.view or not needed.isdisjoint(step.writes):
                needed.update(step.reads)
                kept.append(step)
        return kept[::-1]

    # -- one call ----------------------------------------------------------------------------------------------------

    def encode(self) -> ProgramEncoder:
        """Encode the whole plan."""
        lowering = self._lowering
        given = [value.buffer for value in lowering.inputs]
        outputs = [value.buffer for value in lowering.owners]
        segments: Any = self.units + self._commits
        return ProgramEncoder(segments, given, self._constants, outputs, self.private, False)

    def runner(self) -> Runner:
        """Return a runner of the whole plan."""
        lowering = self._lowering
        written = self.encode()
        return Runner(
            written.code,
            self.memory,
            [_layout(value) for value in lowering.inputs],
            written.constants(),
            [_layout(value) for value in lowering.owners],
            [
                value.buffer.index
                for step in lowering.steps[len(lowering.steps) - lowering.commits :]
                for value in step.writes
            ],
            written.ends[len(self.units) - 1] if self.units else 0,
        )

    # -- step by step ------------------------------------------------------------------------------------------------

    def executor(self) -> Executor:
        """Return an executor that runs the plan from Python, with segments as steps."""
        lowering = self._lowering
        steps = [
            self._segment(unit) if isinstance(unit, NativeSegment) else lowering.steps[unit] for unit in self.units
        ]
        commits = [
            self._segment(unit) if isinstance(unit, NativeSegment) else lowering.steps[unit] for unit in self._commits
        ]
        return Executor(lowering, self.memory, _with_views(lowering, self.units, steps), commits)

    def _segment(self, segment: NativeSegment) -> PlanStep:
        buffers = segment.buffers()
        given = [buffer for buffer in buffers if buffer.kind in (INPUT, OUTPUT, LOOSE)]
        constants = [buffer for buffer in buffers if buffer.kind == CONSTANT]
        written = ProgramEncoder([segment], given, constants, [], self.private, True)
        arena = ((self.memory,), np.dtype(np.uint8), (1,))
        layouts = [arena, *[_layout(buffer.root) for buffer in given]]
        targets = {buffer for item in segment.items for buffer in item.writes if buffer.kind == INPUT}
        writes = [1 + i for i, buffer in enumerate(given) if buffer in targets]
        runner = Runner(written.code, 0, layouts, written.constants(), [], writes)
        roots = [buffer.root for buffer in given]
        return PlanStep(None, SegmentCall(runner), ([ARENA_OF_CALL, *roots], NOTE), {}, roots, [])


class _BufferUses:
    """The lifetimes of buffers.

    Attributes:
        items: all kernel calls and groups, including those in bodies of loops, each with its time.
        buffers: the used buffers but for constants; constants: the used constants.
    """

    def __init__(self) -> None:
        self.items: list[tuple[Any, int]] = []
        self.buffers: list[Buffer] = []
        self.constants: dict[Buffer, None] = {}  # other plans may use them, too
        self._time = 0

    def add(self, item: Any) -> None:
        """Note the buffers that an item uses. Buffers that live across iterations of a loop are used from its begin to its end."""
        if type(item) is not KernelLoop:
            self.items.append((item, self._time))
            self._note(item.roots if type(item) is KernelCall else item.touched)
            self._time += 1
            return
        around = item.touched - item.local
        self._note(around)
        self._time += 1
        for inner in item.items:
            self.add(inner)
        self._note(around)
        self._time += 1

    def _note(self, touched: Iterable[Buffer]) -> None:
        time = self._time
        for buffer in touched:
            if buffer.kind == CONSTANT:
                self.constants[buffer] = None
                continue
            buffer.last = time
            if buffer.first < 0:
                buffer.first = time
                self.buffers.append(buffer)


def _is_private(buffer: Buffer, group: LoopGroup) -> bool:
    """Return whether only a group uses a buffer, and writes all of it in the order of its elements."""
    if group.locations[buffer] is not buffer:
        return False
    offset, stride, _, row = group.written[buffer]
    whole = not row and offset == 0 and stride * group.total == buffer.nbytes
    return whole and buffer.kind == ARENA and buffer.first == buffer.last


def _reuse_operand(kernel_call: KernelCall, time: int, shared_buffers: dict[Buffer, Buffer]) -> None:
    """Place the result of an elementwise loop in the memory of an operand that is not used later."""
    args, last = kernel_call.args, len(kernel_call.args) - 1
    result, pattern = args[last][0], None
    if result.kind != ARENA or result.first != time:
        return
    for k in range(last):
        buffer: Any = args[k][0]
        if buffer is None or buffer.kind != ARENA or buffer.last != time or buffer.nbytes != result.nbytes:
            continue
        if pattern is None:
            pattern = kernel_call.pattern(last)
            offset, stride, _, row = pattern
            if row or offset or stride * kernel_call.loop.total != result.nbytes:
                return
        uses = [j for j in range(last) if root_of(args[j][0]) is buffer]
        if all([args[j][0] is buffer and kernel_call.pattern(j) == pattern for j in uses]):
            shared = shared_buffers.get(buffer, buffer)
            shared_buffers[result] = shared
            shared.last = max(shared.last, result.last)
            return


class NativePlan:
    """A plan that is one call of native code."""

    def __init__(self, native: Native, lowering: Lowering) -> None:
        self._runner = native.runner()
        self._writes = bool(lowering.commits)
        positions = [lowering.owners.index(value) for value in lowering.outputs]
        self._positions = None if positions == list(range(len(lowering.owners))) else positions
        self._reporting: tuple[Any, Any] = (None, _Reporting(None))

    def run(self, arrays: list[np.ndarray[Any, Any]], report: Report | None = None) -> list[np.ndarray[Any, Any]]:
        last_report, reporting = self._reporting
        if report is not last_report:
            reporting = _Reporting(report)
            self._reporting = report, reporting
        outputs = self._runner(arrays, reporting)
        if outputs is None:
            raise ValueError(UNFIT)
        if isinstance(outputs, tuple):  # a check failed
            raise ValueDiffers(*outputs)
        return outputs if self._positions is None else [outputs[i] for i in self._positions]

    @property
    def runs(self) -> int:
        return self._runner.runs

    def entry(self, report: Report) -> tuple[Any, Any] | None:
        """Return the runner and its argument for reporting; None if outputs of the plan share or permute the runner's."""
        return None if self._positions is not None else (self._runner, _Reporting(report))

    def replay(self, program: Program) -> list[NumpyArray]:
        """Return the outputs for the recorded inputs, which are not written."""
        arrays = [var.array for var in program.inputs]
        if self._writes:
            arrays = [with_strides(array, array.strides) for array in arrays]
        return self.run(arrays)


class _Reporting:
    """Passes floating-point exceptions to a report by name, and raises ``NativeLoopFailed`` if a loop failed."""

    def __init__(self, report: Report | None) -> None:
        self._report = report
        self._handled: frozenset[str] = getattr(report, "handled", frozenset())

    def __call__(self, mask: int) -> None:
        found = exception_names(mask)
        found &= {name for name, way in np.geterr().items() if way != "ignore"} | self._handled
        if found and self._report is not None:
            self._report(found)


class SegmentCall:
    """Runs a segment as a step of an executor."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def __call__(self, arrays: list[NumpyArray], report: Callable[[int], object]) -> None:
        outcome = self._runner.run_into(arrays, (), report)
        if outcome is None:
            raise ValueError(UNFIT)
        if isinstance(outcome, tuple):
            raise ValueDiffers(*outcome)


def _layout(value: BufferView) -> tuple[Any, Any, Any]:
    return value.shape, value.dtype, value.strides


def _units(
    steps: list[PlanStep], numbers: range, memories: Memories, loops: dict[int, LoweredLoop]
) -> list[NativeSegment | int]:
    """Return steps as segments and indices of steps that Python runs."""
    units: list[NativeSegment | int] = []
    native_steps: list[int] = []
    for number in numbers:
        step = steps[number]
        if step.view:
            continue
        if step.template is not None:
            native_steps.append(number)
            continue
        if native_steps:
            units.append(NativeSegment(native_steps, steps, memories, loops))
            native_steps = []
        units.append(number)
    if native_steps:
        units.append(NativeSegment(native_steps, steps, memories, loops))
    return units


def _with_views(lowering: Lowering, units: list[NativeSegment | int], steps: list[PlanStep]) -> list[PlanStep]:
    """Return the Python steps with the steps that make views of arrays of the run, each as early as possible."""
    ordered: list[PlanStep] = []
    views = [(number, step) for number, step in enumerate(lowering.steps) if step.view]
    k = 0
    for unit, step in zip(units, steps, strict=True):
        upto = unit.steps[-1] if isinstance(unit, NativeSegment) else unit
        while k < len(views) and views[k][0] < upto:
            ordered.append(views[k][1])
            k += 1
        ordered.append(step)
    return ordered + [step for _, step in views[k:]]
