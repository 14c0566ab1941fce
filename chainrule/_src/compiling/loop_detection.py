"""Find the loops of a program on its trace, before its calls are lowered.

``looped_lowering`` passes the ``TraceArrays`` of a program to a ``LoopFinder``, and lowers its ``loops``.

A loop is a range of calls in which a sequence of ``period`` signatures repeats ``count`` times. Repeated signatures propose loops; a loop
is accepted if its operands are related. In every iteration each operand must have one of these relations to the same
operand of the previous iteration:

- *carried*: it is the result of the call at the same distance before it;
- *invariant or strided*: it lies in the same memory, a constant number of bytes further. The results of one call of
  another loop's body count as one memory, so a backward loop can read the values that the forward loop saved;
- *table*: it is a constant of the same layout.

Each result of a body gets a buffer for the whole loop (:class:`LoopBuffer`): one slot if only its own iteration reads
it, a ring buffer if the next iterations read it too, and one slot per iteration if it is read after the loop.

Loops in a body are found in the same way, in its first iteration. There, operands are also compared by their motion in the loops
around: its relation, distance and stride. If operands have the same relation in the inner loop, and the same motion in the outer loop,
then ``base + i * outer stride + j * inner stride`` is their address in all iterations of both loops. The buffers that the results
of the inner iterations have in the outer loop become one buffer, with slots along both loops.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.grouping import LARGE
from chainrule._src.compiling.layout import memory_span, slot_nbytes
from chainrule._src.compiling.trace import CONSTANT, TraceArrays
from chainrule._src.interpreters.trace_types import Var
from chainrule._src.native import LOOPS

#: minimum number of iterations of a loop, and of the kernel calls of all iterations
MIN_ITERATIONS, MIN_KERNEL_CALLS = 4, 24
#: the maximum number of iterations between the write and the read of a carried operand
MAX_AGE = MIN_ITERATIONS - 1
#: lengths of the windows of signatures that are compared, and the maximum number of periods that are tried for each length
WINDOWS, MAX_PERIODS = (4, 16, 64), 24
#: bytes above which a buffer is refused if less than half of its slots are read after their iteration
MAX_UNREAD_BYTES = 1 << 26
#: the largest multiple of a period that is tried if most iterations differ, and the fraction of iterations that must be alike
MAX_MULTIPLE, MIN_ALIKE = 8, 0.75
#: the maximum depth of recursion into a range, and the maximum number of ranges that are proposed at once
MAX_DEPTH, MAX_RANGES = 8, 256
#: the maximum number of loops within each other
MAX_NESTED = 3

CARRIED, STRIDED, TABLE = range(3)
KINDS = ONE, RING, SAVED = "one", "ring", "saved"
MOTIONS = 4  # numbers of the motion of an operand in one loop
_ITERATION = np.int64(1 << 40)  # represents the bytes between two slots of a buffer whose stride is not known yet
FARTHEST = 1 << 39  # strides that are less than this are distances within one slot
_INNER_BITS = 32  # the bits of the iteration of an innermost loop; the iteration of the loop around it is above them


class SlotAxis:
    """The slots of a buffer along the iterations of one loop.

    Attributes:
        kind: ONE, RING or SAVED.
        before: the number of slots for results of calls before the loop: carried operands of the first iterations.
        count: the number of iterations.
    """

    __slots__ = ("before", "count", "kind")

    def __init__(self, kind: str, before: int, count: int) -> None:
        self.kind, self.before, self.count = kind, before, count

    @property
    def slots(self) -> int:
        return 1 if self.kind == ONE else self.before + 1 if self.kind == RING else self.before + self.count

    def slot(self, iteration: int) -> int:
        """Return the slot that an iteration writes; iterations before the first one have negative numbers."""
        return 0 if self.kind == ONE else iteration % self.slots if self.kind == RING else iteration + self.before

    @property
    def shape(self) -> int:
        """A number that is equal for axes with the same slots for the same iterations."""
        return 0 if self.slots == 1 else 2 * self.before + (self.kind == SAVED)


class LoopBuffer:
    """The buffer for one result of a body, over all iterations.

    Attributes:
        axes: the slots along each loop that contains the call, outermost first.
        nbytes: the bytes of one result.
        memories: the numbers of the results that it replaced, as ``LoopFinder`` numbers memory.
    """

    def __init__(self, axes: list[SlotAxis], nbytes: int, memories: NumpyArray) -> None:
        self.axes, self.nbytes, self.memories = axes, nbytes, memories

    @functools.cached_property
    def strides(self) -> list[int]:
        """The bytes from one slot to the next along each axis. The axes must not change later."""
        slots = [axis.slots for axis in self.axes]
        return [slot_nbytes(self.nbytes) * math.prod(slots[k + 1 :]) for k in range(len(slots))]

    @property
    def whole_nbytes(self) -> int:
        """The bytes of all slots."""
        slots = math.prod([axis.slots for axis in self.axes])
        return self.nbytes if slots == 1 else slots * slot_nbytes(self.nbytes)

    def offset(self, iterations: tuple[int, ...]) -> int:
        """Return the offset of the slot of an iteration of each loop."""
        return sum([a.slot(i) * stride for a, i, stride in zip(self.axes, iterations, self.strides, strict=True)])


class TraceLoop:
    """A loop of a trace.

    Attributes:
        begin, period, count: the index of its first call, the number of calls in its body, and the number of
            iterations.
        relation: CARRIED, STRIDED or TABLE, for each operand of the body.
        around: the loop whose body contains it, or None; inner: the loops in its body, in program order.
        motion: for each operand of the body its relation, age (of carried ones), and stride (of carried ones within their slot), in this
            loop and those around it. The stride has two numbers, as ``LoopFinder`` numbers locations.
        buffers: the buffers of its results, by (call of the body, result of the call), without results of inner loops.
    """

    motion: NumpyArray

    def __init__(
        self, begin: int, period: int, count: int, relation: NumpyArray, columns: int, around: TraceLoop | None
    ) -> None:
        self.begin, self.period, self.count, self.relation, self.around = begin, period, count, relation, around
        self._columns = columns  # the maximum number of results of a call
        self.inner: list[TraceLoop] = []
        self.depth: int = 0 if around is None else around.depth + 1
        self.buffers: dict[tuple[int, int], LoopBuffer] = {}

    @property
    def end(self) -> int:
        return self.begin + self.period * self.count

    @functools.cached_property
    def shapes(self) -> NumpyArray:
        """For each result of the body the shape of its buffer; -1 without one, and for results of inner loops."""
        shapes = np.full((self.period, self._columns), -1)
        for result, buffer in self.buffers.items():
            shape = 0
            for axis in buffer.axes:
                shape = 8 * shape + axis.shape
            shapes[result] = shape
        return shapes

    @functools.cached_property
    def kept(self) -> NumpyArray:
        """For each result of the body whether it is read after its iteration."""
        kept = np.zeros((self.period, self._columns), bool)
        for result, buffer in self.buffers.items():
            kept[result] = any([axis.kind != ONE for axis in buffer.axes])
        return kept


class LoopFinder:
    """Finds the loops of a trace.

    Args:
        apart: Vars that no loop may write, because each needs a buffer of its own.

    The *memory* of a root is a number: the root itself, or, for the result of a call of a body, a number that all iterations share. The
    *location* in a memory is two numbers: the offset and the iteration of the outermost loop, and the iterations of the inner loops.

    Attributes:
        loops: the outermost loops in the order in which they were found; in_order: in program order.
        buffers: the buffer of each memory that is a result of a loop.
    """

    def __init__(self, trace: TraceArrays, apart: Sequence[Var] = ()) -> None:
        self._trace = trace
        self.loops: list[TraceLoop] = []
        self.buffers: dict[int, LoopBuffer] = {}
        self._roots = len(trace.root)
        numbers = self._roots + trace.results.size
        self._memory = np.arange(self._roots, dtype=np.int32)  # by root
        self._iteration = np.zeros(self._roots, np.int32)  # by root, of the outermost loop
        self._same_memory = np.arange(numbers, dtype=np.int32)  # by number in ``_memory``
        self._inner = np.zeros(numbers, np.int64)  # by number in ``_memory``: the iterations of the inner loops
        self._has_inner = False
        operand_root = trace.root[trace.operands]
        self._operand_root, self._operand_offset = operand_root, trace.offset[trace.operands]
        producer = trace.producer[operand_root]
        self._call = np.repeat(np.arange(len(trace.position), dtype=np.int32), np.diff(trace.starts))
        self._distance = np.where(producer >= 0, self._call - producer, np.int32(-1))
        self._apart = np.zeros(self._roots + 1, bool)  # the last one is for missing results
        self._apart[trace.root[[trace.slot(var) for var in apart]]] = True
        self._native = np.array([template is not None for template in trace.templates], bool)
        self._kernels = np.array([0 if template is None else len(template.loops) for template in trace.templates])
        if len(trace.position) >= MIN_ITERATIONS:
            self._find(0, len(trace.position), frozenset(), MAX_DEPTH, None)
        self.in_order = sorted(self.loops, key=lambda loop: loop.begin)

    def is_result(self, root: int) -> bool:
        """Return whether a root lies in a buffer of a loop."""
        return bool(self._memory[root] >= self._roots)

    def slot_of(self, root: int) -> tuple[LoopBuffer, tuple[int, ...]] | None:
        """Return the buffer of a loop that a root lies in, and the iteration of each loop that computes it; None for other roots."""
        memory = int(self._memory[root])
        if memory < self._roots:
            return None
        buffer = self.buffers[int(self._same_memory[memory])]
        if len(buffer.axes) == 1:
            return buffer, (int(self._iteration[root]),)
        inner = int(self._inner[memory])
        middle = (inner + (1 << _INNER_BITS - 1)) >> _INNER_BITS
        iterations = int(self._iteration[root]), middle, inner - (middle << _INNER_BITS)
        return buffer, iterations[: len(buffer.axes)]

    def _find(self, low: int, high: int, refused: frozenset[int], depth: int, around: TraceLoop | None) -> None:
        """Find the loops of a range, in program order: later loops read values that earlier loops saved.

        Args:
            around: the loop whose first iteration contains the range, if there is one.
        """
        if high - low < MIN_ITERATIONS or depth == 0:
            return
        at = low
        for begin, end, period in sorted(self._proposed(low, high, refused)):
            loop = self._verified(begin, end, period, around)
            if loop is None:
                self._find(at, end, refused | {period}, depth - 1, around)
            else:
                self._find(at, loop.begin, refused, depth - 1, around)
                self._find_inner(loop)
                self._find(loop.end, end, refused, depth - 1, around)
            at = end
        if low < at < high:
            self._find(at, high, refused, depth - 1, around)

    def _find_inner(self, loop: TraceLoop) -> None:
        """Find the loops in the body of a loop."""
        trace, end = self._trace, loop.begin + loop.period
        if loop.depth + 1 < MAX_NESTED and self._kernels[trace.signature[loop.begin : end]].sum() >= MIN_KERNEL_CALLS:
            self._find(loop.begin, end, frozenset(), MAX_DEPTH, loop)
            loop.inner.sort(key=lambda inner: inner.begin)

    # -- signatures --------------------------------------------------------------------------------------------------

    def _proposed(self, low: int, high: int, refused: frozenset[int]) -> list[tuple[int, int, int]]:
        """Return ranges in which signatures repeat, with their periods. The ranges do not overlap; the longest comes first."""
        signature = self._trace.signature[low:high]
        found = [
            (begin + low, end + low, period)
            for period in _periods(signature)
            if period not in refused
            for begin, end in _repetitions(signature, period)
            if end - begin >= MIN_KERNEL_CALLS // 2
        ]
        chosen = []
        found = sorted(found, key=lambda each: each[0] - each[1])[:MAX_RANGES]
        while found:
            most = max(end - begin for begin, end, _ in found)
            begin, end, _ = best = min(
                (each for each in found if each[1] - each[0] >= 0.97 * most), key=lambda each: each[2]
            )
            chosen.append(best)
            apart = [each for each in found if each[1] <= begin or each[0] >= end]
            parts = [
                part
                for low, high, period in found
                if low < end and high > begin
                for part in ((low, begin, period), (end, high, period))
                if part[1] - part[0] >= max(MIN_ITERATIONS * period, MIN_KERNEL_CALLS // 2)
            ]
            found = apart + parts
        return chosen

    # -- operands ----------------------------------------------------------------------------------------------------

    def _verified(self, begin: int, end: int, period: int, around: TraceLoop | None) -> TraceLoop | None:
        """Return the longest loop in a range whose operands have the same relations in every iteration.

        A loop in the body repeats the same signatures with a shorter period. If the operands suggest it, a multiple of the period, for
        the enclosing loop, is therefore tried first. The loop in the body is found later.
        """
        found = self._compared(begin, end, period, around)
        if found is None:
            return None
        for multiple in _multiples(found[0].all(1)):
            enclosing = self._compared(begin, end, multiple * period, around)
            if enclosing is not None and np.count_nonzero(enclosing[0].all(1)) >= MIN_ALIKE * len(enclosing[0]):
                loop = self._longest(begin, multiple * period, *enclosing, around)
                if loop is not None:
                    return loop
        return self._longest(begin, period, *found, around)

    def _compared(
        self, begin: int, end: int, period: int, around: TraceLoop | None
    ) -> tuple[NumpyArray, NumpyArray] | None:
        """Compare the operands of successive iterations.

        Returns:
            For each iteration but the last, and each call of the body, whether all operands have their usual relations to those of
            the next iteration; and for each operand of the body, its usual relation. None if Python runs one of the calls, or if
            there are too few iterations.
        """
        trace = self._trace
        count = (end - begin) // period
        if count < MIN_ITERATIONS or not self._native[trace.signature[begin : begin + period]].all():
            return None
        first, last = trace.starts[begin], trace.starts[begin + count * period]
        width = (last - first) // count

        def rows(x: NumpyArray) -> NumpyArray:
            return x[first:last].reshape(count, width)

        root, distance, offset = rows(self._operand_root), rows(self._distance), rows(self._operand_offset)
        column, origin, layout = trace.column[root], trace.origin[root], trace.layout[root]
        memory, location, inner = self._locations(root, offset)
        alike = layout[1:] == layout[:-1]
        step = offset[1:] - offset[:-1]
        carried = alike & (distance[1:] == distance[:-1]) & (distance[1:] >= 0) & (distance[1:] <= MAX_AGE * period)
        carried &= column[1:] == column[:-1]
        stride = location[1:] - location[:-1]
        strided = memory[1:] == memory[:-1]
        table = alike & (origin[1:] == CONSTANT) & (origin[:-1] == CONSTANT) & trace.dense[layout[1:]] & (step == 0)
        if around is not None:
            start = trace.starts[around.begin]
            motion = around.motion[first - start : last - start].reshape(count, width, around.motion.shape[1])
            still = (motion[1:] == motion[:-1]).all(2)
            outer = motion[1:, :, ::MOTIONS]
            carried &= still & (outer == CARRIED).all(2)
            strided &= still & (outer != TABLE).all(2)  # the tables of outer loops differ in later iterations
            table &= still
        half = (count - 1) / 2
        relation = np.where(carried.sum(0) > half, CARRIED, np.where(strided.sum(0) > half, STRIDED, TABLE))
        strided &= stride == _most_frequent(stride)
        if inner is not None:
            inner_stride = inner[1:] - inner[:-1]
            strided &= inner_stride == _most_frequent(inner_stride)
        same = np.where(
            relation == CARRIED,
            carried & (step == _most_frequent(step)),
            np.where(relation == STRIDED, strided, table),
        )
        rows_apart, operands_apart = np.nonzero(~same)
        alike = np.ones((count - 1, period), bool)
        alike[rows_apart, self._call[first + operands_apart] - begin] = False
        if self._apart.any():
            columns = trace.results.shape[1]
            apart = self._apart[trace.results[begin : begin + count * period]].reshape(count, period, columns)
            alike &= ~(apart[1:] | apart[:-1]).any(2)
        if around is not None:
            start = begin - around.begin
            shapes = around.shapes[start : start + count * period].reshape(count, period, around.shapes.shape[1])
            alike &= (shapes[1:] == shapes[:-1]).all(2)
        return alike, relation

    def _locations(self, root: NumpyArray, offset: NumpyArray) -> tuple[NumpyArray, NumpyArray, NumpyArray | None]:
        """Return the numbers of the memories of operands, and their locations there (see the class).

        The last array is None before the first inner loop is found.
        """
        memory, location = self._memory[root], offset + self._iteration[root] * _ITERATION
        if not self._has_inner:
            return memory, location, None
        return self._same_memory[memory], location, self._inner[memory]

    def _longest(
        self, begin: int, period: int, same: NumpyArray, relation: NumpyArray, around: TraceLoop | None
    ) -> TraceLoop | None:
        """Add the longest loop of iterations with the same relations, and return it; None if it is refused.

        A loop that begins with another call of the body is preferred if it has more iterations.
        """
        iterations, (start, length) = _longest_run(same.all(1)), _longest_run(same.ravel())
        runs = [(iterations[0] * period, iterations[1] * period)]
        if length // period > iterations[1]:
            runs.insert(0, (start, length))
        for start, length in runs:
            operand = self._trace.starts[begin + start % period] - self._trace.starts[begin]
            rotated = np.roll(relation, -operand) if operand else relation
            for first in range(start, start + length + 1, period):
                count = (start + length - first) // period + 1
                if count < MIN_ITERATIONS:
                    break
                loop = TraceLoop(begin + first, period, count, rotated, self._trace.results.shape[1], around)
                fits = self._lay_out(loop)
                if fits:
                    return loop
                if fits is not None:
                    break
        return None

    def _lay_out(self, loop: TraceLoop) -> bool | None:
        """Choose a buffer for each result of the body.

        Returns:
            True if the loop was added; False if it is refused; None if its first iteration must stay outside of the loop.
        """
        trace, begin, period, count, around = self._trace, loop.begin, loop.period, loop.count, loop.around
        signatures = trace.signature[begin : begin + period]
        kernels = int(self._kernels[signatures].sum())
        if kernels * count < MIN_KERNEL_CALLS or self._is_of_large_arrays(signatures):
            return False
        first = trace.starts[begin]
        calls = np.repeat(np.arange(period), np.diff(trace.starts[begin : begin + period + 1]))
        before = np.zeros((period, trace.results.shape[1]), np.int64)
        shifted = np.zeros(before.shape, bool)
        carried = np.flatnonzero(loop.relation == CARRIED)
        operands, readers = first + carried, calls[carried]
        distances, columns = self._distance[operands], trace.column[self._operand_root[operands]]
        writers = (readers - distances) % period
        ages = (distances - readers + writers) // period
        np.maximum.at(before, (writers, columns), ages)
        moves = self._operand_offset[operands + len(calls)] != self._operand_offset[operands]
        shifted[writers[moves], columns[moves]] = True
        plans: list[tuple[int, int, NumpyArray, NumpyArray, NumpyArray]] = []
        for column in range(before.shape[1]):
            for age in _distinct(before[:, column]).tolist():
                bodies = np.flatnonzero(
                    (before[:, column] == age) & (trace.results[begin : begin + period, column] >= 0)
                )
                if not len(bodies):
                    continue
                start = begin - age * period
                if start + bodies[0] < (0 if around is None else around.begin):
                    return None
                written = start + period * np.arange(age + count)[:, None] + bodies
                members = trace.results[written, column]
                free = self._are_free(written, members, column, age, around)
                if not free[:age].all():
                    return None
                if not free[age:].all():
                    return False
                if not (trace.layout[members] == trace.layout[members[-1]]).all():
                    return None
                ends = start + (np.arange(len(members)) + age + 1) * period
                late: NumpyArray = trace.last[members] >= ends[:, None]
                if around is not None:
                    late |= around.kept[written - around.begin, column]
                plans.append((column, age, bodies, written, late))
        buffers: dict[tuple[int, int], LoopBuffer] = {}
        for column, before_loop, bodies, written, late in plans:
            latest: Any = late[: count - 1].any(0)  # read after a ring buffer would have reused their slots
            late_counts = np.count_nonzero(late, axis=0).tolist()
            for k, body in enumerate(bodies.tolist()):
                if not late_counts[k] and not before_loop:
                    kind = ONE
                elif not latest[k] and not (before_loop and shifted[body, column]):
                    kind = RING
                else:
                    kind = SAVED
                buffer = self._buffer(written[:, k], column, around, SlotAxis(kind, before_loop, count))
                if kind == SAVED and buffer.whole_nbytes > MAX_UNREAD_BYTES and 2 * late_counts[k] < len(late):
                    return False
                buffers[body, column] = buffer
        self._keep_strided_values(loop)
        loop.buffers, loop.motion = buffers, self._motion(loop, carried, ages)
        for column, before_loop, bodies, written, _ in plans:
            self._note_results(loop, column, before_loop, bodies, written)
        (self.loops if around is None else around.inner).append(loop)
        return True

    def _are_free(
        self, written: NumpyArray, members: NumpyArray, column: int, before: int, around: TraceLoop | None
    ) -> NumpyArray:
        """Return for each iteration whether the results of calls can be written into buffers of a new loop.

        Args:
            written, members: the calls, and the roots of these results; one row per iteration.
            before: the number of iterations before the loop.
        """
        if around is not None:  # results of the first inner iteration have the buffers that others must be like
            shapes = around.shapes[written - around.begin, column]
            return np.asarray(((shapes >= 0) & (shapes == shapes[-1])).all(1))
        free = np.asarray((self._memory[members] < self._roots).all(1))
        if before:
            signatures, roots = self._trace.signature[written[:before]], members[:before]
            free[:before] &= (self._native[signatures] & (roots >= 0) & ~self._apart[roots]).all(1)
        return free

    def _buffer(self, written: NumpyArray, column: int, around: TraceLoop | None, axis: SlotAxis) -> LoopBuffer:
        """Return a buffer for the results of calls, one per iteration. In an inner loop, it also has the slots along the loops around."""
        if around is None:
            array = self._trace.variables[int(self._trace.results[written[-1], column])].array
            _, nbytes = memory_span(array.shape, array.strides, array.dtype.itemsize)
            return LoopBuffer([axis], nbytes, self._result_memories(written[axis.before :][:1], column))
        replaced = [around.buffers[call, column] for call in (written - around.begin).tolist()]
        axes = [
            SlotAxis(max([axis.kind for axis in axes], key=KINDS.index), axes[0].before, axes[0].count)
            for axes in zip(*[buffer.axes for buffer in replaced], strict=True)
        ]
        return LoopBuffer([*axes, axis], replaced[0].nbytes, np.concatenate([b.memories for b in replaced]))

    def _result_memories(self, calls: NumpyArray, column: int) -> NumpyArray:
        """Return the numbers of the memories of results of calls."""
        return np.asarray(self._roots + column * len(self._trace.results) + calls)

    def _note_results(self, loop: TraceLoop, column: int, before: int, bodies: NumpyArray, written: NumpyArray) -> None:
        """Note the memory and the iteration of the results of calls in a loop.

        Args:
            bodies, written: the calls in the body, and the calls of all iterations, of which ``before`` ones are before the loop.
        """
        iterations = np.arange(-before, len(written) - before)
        around = loop.around
        if around is None:
            members = self._trace.results[written, column]
            self._memory[members] = self._result_memories(loop.begin + bodies, column)
            self._iteration[members] = iterations[:, None]
        else:
            self._has_inner = True
            around.shapes[written - around.begin, column] = -1
            for calls in (written - around.begin).T.tolist():
                for iteration, call in zip(iterations.tolist(), calls, strict=True):
                    inner = iteration << _INNER_BITS * (MAX_NESTED - 1 - loop.depth)
                    self._inner[around.buffers.pop((call, column)).memories] += inner
        for body in bodies.tolist():
            buffer = loop.buffers[body, column]
            self._same_memory[buffer.memories] = buffer.memories[0]
            self.buffers[int(buffer.memories[0])] = buffer

    def _motion(self, loop: TraceLoop, carried: NumpyArray, ages: NumpyArray) -> NumpyArray:
        """Return the motion of the operands of a loop.

        Args:
            carried, ages: the carried operands, and the number of iterations since they were written.
        """
        trace, width, relation = self._trace, len(loop.relation), loop.relation
        first = int(trace.starts[loop.begin])
        root, offset = [
            x[first : first + 2 * width].reshape(2, width) for x in (self._operand_root, self._operand_offset)
        ]
        _, location, inner = self._locations(root, offset)
        motion = np.zeros((width, MOTIONS), np.int64)
        motion[:, 0] = relation
        motion[carried, 1] = ages
        motion[:, 2] = np.where(relation == CARRIED, offset[1] - offset[0], location[1] - location[0])
        if inner is not None:
            motion[:, 3] = np.where(relation == STRIDED, inner[1] - inner[0], 0)
        motion[relation == TABLE, 2] = 0
        if loop.around is None:
            return motion
        start = first - int(trace.starts[loop.around.begin])
        return np.concatenate([loop.around.motion[start : start + width], motion], 1)

    def _is_of_large_arrays(self, signatures: NumpyArray) -> bool:
        """Return whether all kernel calls of a body are on large arrays. ``grouping`` runs such calls block by block, in cache."""
        templates = [self._trace.templates[s] for s in signatures.tolist()]
        return all([loop.total >= LARGE for t in templates if t is not None for loop in t.loops])

    def _keep_strided_values(self, loop: TraceLoop) -> None:
        """Replace ring buffers of other loops that this loop reads iteration by iteration by buffers with a slot per iteration."""
        first, width = int(self._trace.starts[loop.begin]), len(loop.relation)
        here, there = self._operand_root[first : first + 2 * width].reshape(2, width)
        for k in np.flatnonzero((loop.relation == STRIDED) & (here != there)).tolist():
            slot, other = self.slot_of(here[k]), self.slot_of(there[k])
            if slot is not None and other is not None:
                for axis, i, j in zip(slot[0].axes, slot[1], other[1], strict=True):
                    if i != j and axis.kind == RING:
                        axis.kind = SAVED


def _periods(signature: NumpyArray) -> list[int]:
    """Return distances between equal windows of signatures, the most frequent first."""
    found: list[tuple[int, int]] = []
    for length in WINDOWS:
        occurrences = np.bincount(LOOPS.repeat_distances(signature, length))
        distances = np.flatnonzero(occurrences)
        counts = occurrences[distances]
        most = np.argsort(-counts, kind="stable")[:MAX_PERIODS]
        found += [(-int(counts[k]), int(distances[k])) for k in most if counts[k] >= MIN_ITERATIONS - 1]
    return list(dict.fromkeys([distance for _, distance in sorted(found)]))


def _most_frequent(rows: NumpyArray) -> NumpyArray:
    """Return the median of each column: the value that more than half of the rows have, if there is one."""
    return np.asarray(np.partition(rows, len(rows) // 2, axis=0)[len(rows) // 2])


def _multiples(same: Any) -> list[int]:
    """Return the multiples of a period that may be the period of an enclosing loop.

    Args:
        same: whether the operands of each iteration have the usual relations to those of the next one.
    """
    breaks = np.flatnonzero(~same)
    if len(breaks) < MIN_ITERATIONS - 1:
        return []
    if 2 * len(breaks) > len(same):
        return list(range(2, 1 + min(MAX_MULTIPLE, (1 + len(same)) // MIN_ITERATIONS)))
    distances = _distinct(np.concatenate([breaks[k:] - breaks[:-k] for k in range(1, MIN_ITERATIONS)]))
    is_break = ~np.append(same, True)
    repeated = [is_break[np.minimum(breaks + distance, len(same))].sum() for distance in distances]
    evenly = [
        d for d, n in zip(distances.tolist(), repeated, strict=True) if d > 1 and n >= MIN_ALIKE * (len(breaks) - 1)
    ]
    return evenly[:MIN_ITERATIONS]


def _longest_run(same: Any) -> tuple[int, int]:
    """Return the first index and the length of the longest run of True."""
    breaks = np.concatenate([[-1], np.flatnonzero(~same), [len(same)]])
    longest = int(np.argmax(np.diff(breaks)))
    return int(breaks[longest]) + 1, int(breaks[longest + 1] - breaks[longest]) - 1


def _distinct(x: NumpyArray) -> NumpyArray:
    """Return the distinct numbers of an array, in order. (``np.unique`` imports ``np.ma``.)"""
    x = np.sort(x)
    return x[np.append(True, x[1:] != x[:-1])[: len(x)]]


def _repetitions(signature: NumpyArray, period: int) -> Iterator[tuple[int, int]]:
    """Yield ranges in which each signature repeats after a period, as (first call, end)."""
    different = np.flatnonzero(signature[:-period] != signature[period:])
    edges = np.concatenate([[-1], different, [len(signature) - period]])
    lengths = np.diff(edges) - 1
    for k in np.flatnonzero(lengths >= (MIN_ITERATIONS - 1) * period):
        yield int(edges[k]) + 1, int(edges[k + 1]) + period
