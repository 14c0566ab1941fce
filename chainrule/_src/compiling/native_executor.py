"""Runs a plan's loops without Python in between.

Steps that are loops make up segments. Each becomes one program of :mod:`chainrule._src.native.code`, whose arguments are places in the
arena, in inputs, constants and outputs. If there is nothing else, the plan is one call of that program. Otherwise Python goes
from step to step, and a segment is one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import gcd
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.factors import Memories
from chainrule._src.compiling.grouping import LoopArgument, LoopGroup, Work
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
    Moving,
    address,
    arrange,
    in_stack,
    root_of,
)
from chainrule._src.compiling.looped_lowering import LoweredLoop, add_works
from chainrule._src.compiling.loops import ROUND
from chainrule._src.compiling.python_executor import ARENA_OF_CALL, NOTE, Executor, Report, named
from chainrule._src.compiling.rolling import Item, Rolled, rolled_up
from chainrule._src.compiling.steps import Lowering, PlanStep
from chainrule._src.interpreters.recorded import Program
from chainrule._src.native import Runner
from chainrule._src.native import code as words

ndarray = np.ndarray

#: bytes that a group's loops hand to each other in a block, and limits of the elements of a block
CACHED = 192 * 1024
SHORTEST, LONGEST = 1024, 8192

UNFIT = "an array of a plan has not the layout that it was planned for, or is read-only and to be written"


class NativeSegment:
    """Steps that run one after the other without Python.

    Attributes:
        steps: their numbers.
        items: their loops and groups, in the order in which they run.
        loops: of each, the first and last step of the body, the last step of all iterations, and how many there are.
    """

    def __init__(
        self, numbers: list[int], steps: list[PlanStep], memories: Memories, loops: dict[int, LoweredLoop]
    ) -> None:
        self.steps = numbers
        self.works: list[Work] = []  # outside of loops
        self._origins: list[int] = []  # the steps that they are of
        self._detected: list[
            tuple[int, Rolled, tuple[int, int]]
        ] = []  # which works come before a loop, the loop, its steps
        within: list[int] = []  # the steps of a loop that come next
        for number in numbers:
            loop = loops.get(number)
            if loop is not None:
                within = [k for k in range(loop.first, loop.end) if not steps[k].view]
                rolled = loop.rolled([steps[k] for k in within], memories, self.works)
                self._origins += [number] * (len(self.works) - len(self._origins))
                self._detected.append((len(self.works), rolled, (number, within[-1])))
            if within and number <= within[-1]:
                continue
            add_works(self.works, steps[number], memories)
            self._origins += [number] * (len(self.works) - len(self._origins))
        self.loops: list[tuple[int, int, int, int]] = []
        self.items: list[Item] = [*self.works, *[rolled for _, rolled, _ in self._detected]]

    @property
    def touched(self) -> set[Buffer]:
        """All buffers that it uses."""
        items: list[Item] = [*self.works, *[rolled for _, rolled, _ in self._detected]]
        return {buffer for item in items for buffer in item.touched}

    def arrange(self, elsewhere: frozenset[Buffer]) -> None:
        """Find more loops between those that are known, and have large kernel calls in groups. Some buffers are used elsewhere, too."""
        self.items = []
        at = 0
        for end, rolled, (first, last) in self._detected:
            self._arrange(at, end, elsewhere)
            self.items.append(rolled)
            self.loops.append((first, last, last, rolled.count))
            at = end
        self._arrange(at, len(self.works), elsewhere)
        self.works, self._origins, self._detected = [], [], []

    def _arrange(self, begin: int, end: int, elsewhere: frozenset[Buffer]) -> None:
        works, of = self.works[begin:end], self._origins
        if self._detected:
            others: list[Item] = [*self.works[:begin], *self.works[end:]]
            others += [rolled for _, rolled, _ in self._detected]
            elsewhere = elsewhere.union(*[item.touched for item in others])
        items = rolled_up(works, elsewhere)
        for item in items:
            if type(item) is Rolled and item.period:
                first, last = begin + item.start, begin + item.start + item.period
                stop = begin + item.start + item.count * item.period
                self.loops.append((of[first], of[last - 1], of[stop - 1], item.count))
        self.items += items

    def buffers(self) -> list[Buffer]:
        """Every buffer that is used, in the order of the first use."""
        return list(dict.fromkeys([buffer for item in self.items for buffer in item.touched]))


class Block:
    """The memory of a group's blocks, in which buffers that nothing else uses take turns.

    Attributes:
        offsets: of each such buffer, in bytes for each element of a block.
        width: bytes for each element of a block that all of them need.
    """

    def __init__(self, group: LoopGroup, private: set[Buffer]) -> None:
        self.offsets: dict[Buffer, int] = {}
        self.width = 0
        self._free: dict[int, list[int]] = {}
        self._total = group.total
        last = {buffer: i for i, work in enumerate(group.works) for buffer in work.touched if buffer in private}
        for i, work in enumerate(group.works):
            ending = [buffer for buffer in dict.fromkeys(work.reads) if last.get(buffer) == i]
            if work.loop.in_place:
                self._release(ending)
            for buffer in work.writes:
                if buffer in last and buffer not in self.offsets:
                    self.offsets[buffer] = self._take(self._item(buffer))
            if not work.loop.in_place:
                self._release(ending)
            self._release([buffer for buffer in set(work.writes) - set(work.reads) if last.get(buffer) == i])

    def _item(self, buffer: Buffer) -> int:
        return buffer.nbytes // self._total

    def _take(self, size: int) -> int:
        places = self._free.get(size)
        if places:
            return places.pop()
        self.width += size
        return self.width - size

    def _release(self, buffers: list[Buffer]) -> None:
        for buffer in buffers:
            self._free.setdefault(self._item(buffer), []).append(self.offsets[buffer])


class Numbers:
    """The single numbers of a program, in one array."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._known: dict[Any, int] = {}  # by identity, and by content

    def offset(self, number: NumpyArray) -> int:
        known = self._known.get(id(number))
        if known is None:
            key = number.dtype.str, number.tobytes()
            known = self._known.get(key)
            if known is None:
                self._content += bytes(-len(self._content) % 32)
                known = self._known[key] = len(self._content)
                self._content += key[1]
            self._known[id(number)] = known
        return known

    def array(self) -> NumpyArray:
        """An aligned array of their bytes."""
        memory = np.zeros(len(self._content) + ALIGNMENT, np.uint8)
        start = -address(memory) % ALIGNMENT
        content = memory[start : start + len(self._content)]
        content[...] = np.frombuffer(bytes(self._content), np.uint8)
        return content


class Words:
    """Writes the code of segments that share a runner.

    Args:
        segments: what is to be written.
        given: buffers that are arrays of the call, in their order; the arena is the first of them if ``arena_is_given``.
        constants: buffers whose content is known.
        made: buffers of the outputs that the runner makes.
        private: buffers that live in the blocks of groups only.

    Attributes:
        code: the words; ends: where those of each segment end.
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
        self._arena = words.FIRST_INPUT if arena_is_given else words.ARENA
        first = words.FIRST_INPUT + arena_is_given
        ordered = [*given, *constants]
        self._bases = {buffer: first + i for i, buffer in enumerate(ordered)}
        self._number_base = first + len(ordered)
        self._bases |= {buffer: self._number_base + 1 + i for i, buffer in enumerate(made)}
        self._count = self._number_base + 1 + len(made)  # of bases
        self._moving: dict[tuple[int, tuple[Move | None, ...]], int] = {}  # those of the loops that are being written
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

    def _place(self, arg: LoopArgument) -> tuple[int, int]:
        buffer, offset, number = arg
        if buffer is None:
            return self._number_base, offset + self._numbers.offset(number)
        if type(buffer) is Moving:
            base, start = self._start(buffer.root)
            return self._moving[base, buffer.moves], start + offset
        base, start = self._start(buffer)
        return base, start + offset

    def _start(self, buffer: Buffer) -> tuple[int, int]:
        """Where a buffer begins."""
        return (self._arena, buffer.offset) if buffer.kind == ARENA else (self._bases[buffer], 0)

    def _write(self, code: list[int], item: Item) -> None:
        """Add the words of a loop, a group, or a loop that is rolled up to the code."""
        if type(item) is LoopGroup:
            code += self._group(item)
            return
        if type(item) is Rolled:
            code += self._rolled(item)
            return
        assert type(item) is Work
        head, tail = item.loop.words
        code += head
        for buffer, offset, number in item.args:
            if buffer is not None and buffer.kind == ARENA:
                code += (self._arena, offset + buffer.offset)
            else:
                code += self._place((buffer, offset, number))
        code += tail

    def _rolled(self, item: Rolled) -> list[int]:
        depth, first = item.depth, self._count
        moves: list[tuple[int, int, int, int]] = []
        added = []
        for place in item.moving:
            way = place.moves[: depth + 1]
            move = way[depth] if len(way) > depth else None
            base, _ = self._start(place.root)
            if move is None or (base, way) in self._moving:
                continue
            around = way[:depth]
            while around and around[-1] is None:
                around = around[:-1]
            step, ring, at = move
            moves.append((self._moving[base, around] if around else base, step, ring, at))
            self._moving[base, way] = first + len(moves) - 1
            added.append((base, way))
        self._count += len(moves)
        code: list[int] = []
        for inner in item.items:
            self._write(code, inner)
        self._count = first
        for known in added:
            del self._moving[known]
        return words.loop_body_step([code], item.count, moves, first)

    def _group(self, group: LoopGroup) -> list[int]:
        block = Block(group, self._private)
        row = group.row or 1
        rows = rows_of_block(group, block.width)
        steps = [self._step_of_group(work, row, block, rows * row) for work in group.works]
        scratch = block.width * rows * row
        return words.group(steps, rows=group.total // row, block=rows, n=row, scratch=scratch, split=True)

    def _step_of_group(self, work: Work, row: int, block: Block, elements: int) -> list[int]:
        args = []
        strides = []
        flat = True
        for k, arg in enumerate(work.args):
            _, stride, step, length = work.pattern(k)
            strides.append(stride)
            if arg[0] in block.offsets:
                args.append((words.SCRATCH, block.offsets[arg[0]] * elements, 0, stride * row))
                continue
            flat = flat and not length
            step = step if length else stride * row
            args.append((*self._place(arg), step, step))
        return words.group_step(work.loop.address, work.loop.data, args, strides, flat=flat)


def rows_of_block(group: LoopGroup, width: int) -> int:
    """How many rows of a group are done at once: so many that what they hand to each other stays in cache."""
    row = group.row or 1
    elements = min(max(CACHED // max(width, 16), SHORTEST), LONGEST)
    unit = ROUND // gcd(row, ROUND)
    return min(max(unit, elements // row // unit * unit), group.total // row)


class Native:
    """How a lowered program is run with native loops.

    Attributes:
        units: segments, and the numbers of steps that Python runs, in order.
        memory: bytes of the arena.
        segments: those among them, and those that write to inputs.
        whole: whether there are segments alone.
        groups: loops that are done block by block; private: buffers that live in their blocks only.
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
        self._arrange_segments()
        objects = any(value.dtype.hasobject for value in lowering.inputs)
        self.whole = not objects and all(isinstance(unit, NativeSegment) for unit in self.units + self._commits)
        self.groups: list[LoopGroup] = []
        self.private: set[Buffer] = set()
        self.memory = arrange(self._placed())
        for buffer, place, at in self._together:
            buffer.offset = place.offset + at

    def _arrange_segments(self) -> None:
        """Roll loops up. What several units use is needed as it is."""
        units = self.units + self._commits
        touched: list[Any] = []
        for unit in units if len(units) > 1 else ():
            touched.append(unit.touched if isinstance(unit, NativeSegment) else self._lowering.steps[unit].touched)
        count = Counter(buffer for buffers in touched for buffer in buffers)
        several = frozenset([buffer for buffer, units in count.items() if units > 1])
        for unit in self.units:
            if isinstance(unit, NativeSegment):
                unit.arrange(several)

    def _placed(self) -> list[Buffer]:
        """Note when buffers are used; those that need a place in the arena. The others are in places of these."""
        uses = _Uses()
        for unit in self.units + self._commits:
            for item in unit.items if isinstance(unit, NativeSegment) else [self._lowering.steps[unit]]:
                uses.add(item)
        self.groups = [item for item, _ in uses.items if type(item) is LoopGroup]
        for group in self.groups:
            self.private |= {buffer for buffer in group.written if _is_private(buffer, group)}
        together: dict[Buffer, Buffer] = {}
        for item, time in uses.items:
            if type(item) is Work and item.loop.in_place:
                _take_place(item, time, together)
        self._together = [(buffer, place, 0) for buffer, place in together.items()]
        self._together += [(buffer, *in_stack(buffer)) for buffer in uses.members]
        left_out = self.private | together.keys()
        return [buffer for buffer in uses.buffers if buffer.kind == ARENA and buffer not in left_out]

    def shown(self) -> tuple[list[PlanStep], list[tuple[PlanStep, PlanStep, int]]]:
        """The steps, of what is rolled up once; the first and last step of such a body, and how often it is done."""
        steps, loops, shown, at = self._lowering.steps, [], [], 0
        for segment in self.segments:
            for first, last, end, count in segment.loops:
                shown += steps[at : last + 1]
                loops.append((steps[first], steps[last], count))
                at = end + 1
        shown += steps[at:]
        return (self._without_views_of_others(shown) if loops else shown), loops

    def _without_views_of_others(self, shown: list[PlanStep]) -> list[PlanStep]:
        """The steps without views that no other one of them takes: those of times round that are not shown."""
        needed = set(self._lowering.outputs)
        kept = []
        for step in reversed(shown):
            if not step.view or not needed.isdisjoint(step.writes):
                needed.update(step.reads)
                kept.append(step)
        return kept[::-1]

    # -- one call ----------------------------------------------------------------------------------------------------

    def words(self) -> Words:
        """The code of the whole plan."""
        lowering = self._lowering
        given = [value.buffer for value in lowering.inputs]
        used = dict.fromkeys([buffer for segment in self.segments for buffer in segment.buffers()])
        constants = [buffer for buffer in used if buffer.kind == CONSTANT]
        made = [value.buffer for value in lowering.owners]
        segments: Any = self.units + self._commits
        return Words(segments, given, constants, made, self.private, False)

    def runner(self) -> Runner:
        """The whole plan as one call."""
        lowering = self._lowering
        written = self.words()
        return Runner(
            np.array(written.code, np.intp),
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
        """The plan as Python's steps, some of which are segments."""
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
        written = Words([segment], given, constants, [], self.private, True)
        arena = ((self.memory,), np.dtype(np.uint8), (1,))
        layouts = [arena, *[_layout(buffer.root) for buffer in given]]
        targets = {buffer for item in segment.items for buffer in item.writes if buffer.kind == INPUT}
        writes = [1 + i for i, buffer in enumerate(given) if buffer in targets]
        runner = Runner(np.array(written.code, np.intp), 0, layouts, written.constants(), [], writes)
        roots = [buffer.root for buffer in given]
        return PlanStep(None, SegmentCall(runner), ([ARENA_OF_CALL, *roots], NOTE), {}, roots, [])


class _Uses:
    """When buffers are used.

    Attributes:
        items: what runs without a loop around it that is rolled up, or in one, and when.
        buffers: what is used; members: those that lie in the stack of a loop.
    """

    def __init__(self) -> None:
        self.items: list[tuple[Any, int]] = []
        self.buffers: list[Buffer] = []
        self.members: dict[Buffer, None] = {}
        self._time = 0

    def add(self, item: Any) -> None:
        """Note what an item uses; what a loop finds, or leaves, is used from its beginning to its end."""
        if type(item) is not Rolled:
            self.items.append((item, self._time))
            self._note(item.touched)
            self._time += 1
            return
        around = item.touched - item.local
        self._note(around)
        self._time += 1
        for inner in item.items:
            self.add(inner)
        self._note(around)
        self._time += 1

    def _note(self, touched: set[Buffer]) -> None:
        for buffer in touched:
            if buffer.stack is not None:
                self.members[buffer] = None
                buffer, _ = in_stack(buffer)
            buffer.last = self._time
            if buffer.first < 0:
                buffer.first = self._time
                self.buffers.append(buffer)


def _is_private(buffer: Buffer, group: LoopGroup) -> bool:
    """Whether nothing but a group uses a buffer, all of it in the order of its elements."""
    if group.places[buffer] is not buffer or buffer.stack is not None:
        return False
    offset, stride, _, row = group.written[buffer]
    whole = not row and offset == 0 and stride * group.total == buffer.nbytes
    return whole and buffer.kind == ARENA and buffer.first == buffer.last


def _take_place(work: Work, time: int, together: dict[Buffer, Buffer]) -> None:
    """Have the result of an elementwise loop take the place of an operand that is not used any more."""
    last = len(work.args) - 1
    result, pattern = work.args[last][0], work.pattern(last)
    offset, stride, _, row = pattern
    if result.kind != ARENA or result.first != time or row or offset or stride * work.loop.total != result.nbytes:
        return
    for k in range(last):
        buffer: Any = work.args[k][0]
        if buffer is None or buffer.kind != ARENA or buffer.last != time or buffer.nbytes != result.nbytes:
            continue
        places = [j for j in range(last) if root_of(work.args[j][0]) is buffer]
        if all([work.args[j][0] is buffer and work.pattern(j) == pattern for j in places]):
            place = together.get(buffer, buffer)
            together[result] = place
            place.last = max(place.last, result.last)
            return


class NativePlan:
    """A plan that is one call of native code."""

    def __init__(self, native: Native, lowering: Lowering) -> None:
        self._runner = native.runner()
        self._writes = bool(lowering.commits)
        places = [lowering.owners.index(value) for value in lowering.outputs]
        self._places = None if places == list(range(len(lowering.owners))) else places
        self._reporting: tuple[Any, Any] = (None, _Reporting(None))

    def run(self, arrays: list[np.ndarray[Any, Any]], report: Report | None = None) -> list[np.ndarray[Any, Any]]:
        known, reporting = self._reporting
        if report is not known:
            reporting = _Reporting(report)
            self._reporting = report, reporting
        outputs = self._runner(arrays, reporting)
        if outputs is None:
            raise ValueError(UNFIT)
        return outputs if self._places is None else [outputs[i] for i in self._places]

    @property
    def runs(self) -> int:
        return self._runner.runs

    def entry(self, report: Report) -> tuple[Any, Any] | None:
        """The native code and what to give it besides arrays; None if its outputs are not the plan's, one by one."""
        return None if self._places is not None else (self._runner, _Reporting(report))

    def replay(self, program: Program) -> list[NumpyArray]:
        """The outputs at the recorded inputs, which stay as they are."""
        arrays = [var.array for var in program.inputs]
        if self._writes:
            arrays = [with_strides(array, array.strides) for array in arrays]
        return self.run(arrays)


class _Reporting:
    """Names floating-point exceptions for a report, and raises where a loop failed."""

    def __init__(self, report: Report | None) -> None:
        self._report = report
        self._handled: frozenset[str] = getattr(report, "handled", frozenset())

    def __call__(self, mask: int) -> None:
        found = named(mask)
        found &= {name for name, way in np.geterr().items() if way != "ignore"} | self._handled
        if found and self._report is not None:
            self._report(found)


class SegmentCall:
    """Runs a segment on its arrays."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def __call__(self, arrays: list[NumpyArray], report: Callable[[int], object]) -> None:
        if self._runner.run_into(arrays, (), report) is None:
            raise ValueError(UNFIT)


def _layout(value: BufferView) -> tuple[Any, Any, Any]:
    return value.shape, value.dtype, value.strides


def _units(
    steps: list[PlanStep], numbers: range, memories: Memories, loops: dict[int, LoweredLoop]
) -> list[NativeSegment | int]:
    """Steps as segments and numbers of steps that Python runs."""
    units: list[NativeSegment | int] = []
    together: list[int] = []
    for number in numbers:
        step = steps[number]
        if step.view:
            continue
        if step.template is not None:
            together.append(number)
            continue
        if together:
            units.append(NativeSegment(together, steps, memories, loops))
            together = []
        units.append(number)
    if together:
        units.append(NativeSegment(together, steps, memories, loops))
    return units


def _with_views(lowering: Lowering, units: list[NativeSegment | int], steps: list[PlanStep]) -> list[PlanStep]:
    """Python's steps with those that give views of arrays of the call, each as soon as it can be."""
    placed: list[PlanStep] = []
    views = [(number, step) for number, step in enumerate(lowering.steps) if step.view]
    k = 0
    for unit, step in zip(units, steps, strict=True):
        upto = unit.steps[-1] if isinstance(unit, NativeSegment) else unit
        while k < len(views) and views[k][0] < upto:
            placed.append(views[k][1])
            k += 1
        placed.append(step)
    return placed + [step for _, step in views[k:]]
