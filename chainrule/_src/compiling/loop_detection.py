"""Find the loops of a program on its trace, before its calls are lowered.

``plan`` passes the ``TraceArrays`` of a program to a ``LoopFinder``, whose ``loops`` go to ``looped_lowering``.

A loop is a range of calls in which a sequence of ``period`` signatures repeats ``count`` times. Repeated signatures propose loops; a loop
is accepted if its operands are related. In every iteration each operand must have one of these relations to the same
operand of the previous iteration:

- *carried*: it is the result of the call at the same distance before it;
- *invariant or strided*: it lies in the same memory, a constant number of bytes further. The results of one call of
  another loop's body count as one memory, so a backward loop can read the values that the forward loop saved;
- *table*: it is a constant of the same layout.

Each result of a body gets a buffer for the whole loop (:class:`LoopBuffer`): one slot if only its own iteration reads
it, a ring buffer if the next iterations read it too, and one slot per iteration if it is read after the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.grouping import LARGE
from chainrule._src.compiling.layout import memory_span, slot_nbytes
from chainrule._src.compiling.trace import CONSTANT, TraceArrays
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

CARRIED, STRIDED, TABLE = range(3)
ONE, RING, SAVED = "one", "ring", "saved"
_ITERATION = np.int64(1 << 40)  # represents the bytes between two slots of a buffer whose stride is not known yet


class LoopBuffer:
    """The buffer for one result of a body, over all iterations.

    Attributes:
        kind: ONE, RING or SAVED.
        before: the number of slots for results of calls before the loop: carried operands of the first iterations.
        slots: the number of results that fit; stride: the bytes from one slot to the next.
    """

    __slots__ = ("before", "kind", "nbytes", "slots", "stride")

    def __init__(self, kind: str, before: int, count: int, nbytes: int) -> None:
        self.before, self.nbytes = before, nbytes
        self.stride = slot_nbytes(nbytes)
        self.set_kind(kind, count)

    def set_kind(self, kind: str, count: int) -> None:
        self.kind = kind
        self.slots = 1 if kind == ONE else self.before + 1 if kind == RING else self.before + count

    def slot(self, iteration: int) -> int:
        """Return the slot that an iteration writes; iterations before the first one have negative numbers."""
        return 0 if self.kind == ONE else iteration % self.slots if self.kind == RING else iteration + self.before


class TraceLoop:
    """A loop of a trace.

    Attributes:
        begin, period, count: the index of its first call, the number of calls in its body, and the number of
            iterations.
        relation: CARRIED, STRIDED or TABLE, for each operand of the body.
        buffers: the buffers of its results, by (call of the body, result of the call).
    """

    def __init__(self, begin: int, period: int, count: int, relation: NumpyArray) -> None:
        self.begin, self.period, self.count, self.relation = begin, period, count, relation
        self.buffers: dict[tuple[int, int], LoopBuffer] = {}

    @property
    def end(self) -> int:
        return self.begin + self.period * self.count


class LoopFinder:
    """Finds the loops of a trace.

    Attributes:
        loops: the loops in the order in which they were found; in_order: in program order.
        member: for each root the index of the loop whose buffers contain it, or -1; body, iteration: the call of the
            body that computes the root, and the iteration.
    """

    def __init__(self, trace: TraceArrays) -> None:
        self._trace = trace
        self.loops: list[TraceLoop] = []
        roots = len(trace.root)
        self.member = np.full(roots, -1, np.int32)
        self.body, self.iteration = np.zeros(roots, np.int64), np.zeros(roots, np.int64)
        operand_root = trace.root[trace.operands]
        self._operand_root, self._operand_offset = operand_root, trace.offset[trace.operands]
        producer = trace.producer[operand_root]
        call = np.repeat(np.arange(len(trace.position)), np.diff(trace.starts))
        self._distance = np.where(producer >= 0, call - producer, -1)
        self._memory = np.arange(roots, dtype=np.int64)  # by root; results of one call of a body are one memory
        self._native = np.array([template is not None for template in trace.templates], bool)
        self._kernels = np.array([0 if template is None else len(template.loops) for template in trace.templates])
        if len(trace.position) >= MIN_ITERATIONS:
            self._find(0, len(trace.position), frozenset(), MAX_DEPTH)
        self.in_order = sorted(self.loops, key=lambda loop: loop.begin)

    def _find(self, low: int, high: int, refused: frozenset[int], depth: int) -> None:
        """Find the loops of a range, in program order: later loops read values that earlier loops saved."""
        if high - low < MIN_ITERATIONS or depth == 0:
            return
        at = low
        for begin, end, period in sorted(self._proposed(low, high, refused)):
            loop = self._verified(begin, end, period)
            if loop is None:
                self._find(at, end, refused | {period}, depth - 1)
            else:
                self._find(at, loop.begin, refused, depth - 1)
                self._find(loop.end, end, refused, depth - 1)
            at = end
        if low < at < high:
            self._find(at, high, refused, depth - 1)

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
            # the end of a range may repeat by chance at the begin of the next one: the parts before and after the chosen range remain
            parts = [
                part
                for first, last, period in found
                for part in ((first, min(last, begin), period), (max(first, end), last, period))
            ]
            found = [each for each in parts if each[1] - each[0] >= max(MIN_KERNEL_CALLS // 2, MIN_ITERATIONS * each[2])]
        return chosen

    # -- operands ----------------------------------------------------------------------------------------------------

    def _verified(self, begin: int, end: int, period: int) -> TraceLoop | None:
        """Return the longest loop in a range whose operands have the same relations in every iteration.

        A loop in the body repeats the same signatures with a shorter period. If the operands suggest it, a multiple of the period, for
        the enclosing loop, is therefore tried first. ``kernel_loops`` finds the loop in the body later.
        """
        found = self._compared(begin, end, period)
        if found is None:
            return None
        for multiple in _multiples(found[0]):
            enclosing = self._compared(begin, end, multiple * period)
            if enclosing is not None and np.count_nonzero(enclosing[0]) >= MIN_ALIKE * len(enclosing[0]):
                loop = self._longest(begin, multiple * period, *enclosing)
                if loop is not None:
                    return loop
        return self._longest(begin, period, *found)

    def _compared(self, begin: int, end: int, period: int) -> tuple[NumpyArray, NumpyArray] | None:
        """Compare the operands of successive iterations.

        Returns:
            For each iteration but the last, whether all its operands have their usual relations to those of the next one; and for
            each operand of the body, its usual relation. None if Python runs one of the calls, or if there are too few iterations.
        """
        trace = self._trace
        count = (end - begin) // period
        if count < MIN_ITERATIONS or not self._native[trace.signature[begin : begin + period]].all():
            return None
        first, last = trace.starts[begin], trace.starts[begin + count * period]
        width = (last - first) // count

        def rows(x: NumpyArray) -> NumpyArray:
            return x[first:last].reshape(count, width)

        root, distance = rows(self._operand_root), rows(self._distance)
        offset = rows(self._operand_offset)
        column, origin, layout = trace.column[root], trace.origin[root], trace.layout[root]
        location = offset + self.iteration[root] * _ITERATION
        memory = self._memory[root]
        alike = layout[1:] == layout[:-1]
        step = offset[1:] - offset[:-1]
        carried = alike & (distance[1:] == distance[:-1]) & (distance[1:] >= 0) & (distance[1:] <= MAX_AGE * period)
        carried &= column[1:] == column[:-1]
        stride = location[1:] - location[:-1]
        strided = memory[1:] == memory[:-1]
        table = alike & (origin[1:] == CONSTANT) & (origin[:-1] == CONSTANT) & trace.dense[layout[1:]] & (step == 0)
        half = (count - 1) / 2
        relation = np.where(carried.sum(0) > half, CARRIED, np.where(strided.sum(0) > half, STRIDED, TABLE))
        same = np.where(
            relation == CARRIED,
            carried & (step == _most_frequent(step)),
            np.where(relation == STRIDED, strided & (stride == _most_frequent(stride)), table),
        )
        return same.all(1), relation

    def _longest(self, begin: int, period: int, same: NumpyArray, relation: NumpyArray) -> TraceLoop | None:
        """Add the longest loop of iterations with the same relations, and return it; None if it is refused."""
        breaks = np.concatenate([[-1], np.flatnonzero(~same), [len(same)]])
        longest = int(np.argmax(np.diff(breaks)))
        start, stop = int(breaks[longest]) + 1, int(breaks[longest + 1]) + 1
        while stop - start >= MIN_ITERATIONS:
            loop = TraceLoop(begin + start * period, period, stop - start, relation)
            fits = self._lay_out(loop)
            if fits is not None:
                return loop if fits else None
            start += 1
        return None

    def _lay_out(self, loop: TraceLoop) -> bool | None:
        """Choose a buffer for each result of the body.

        Returns:
            True if the loop was added; False if it is refused; None if its first iteration must stay outside of the loop.
        """
        trace, begin, period, count = self._trace, loop.begin, loop.period, loop.count
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
        np.maximum.at(before, (writers, columns), (distances - readers + writers) // period)
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
                if start < 0:
                    return None
                members = trace.results[start : begin + count * period, column].reshape(-1, period)[:, bodies]
                if age and not self._can_use_buffers(start, begin, period, bodies, members[:age]):
                    return None
                if (self.member[members[age:]] >= 0).any():
                    return False
                if not (trace.layout[members] == trace.layout[members[-1]]).all():
                    return None
                ends = start + (np.arange(len(members)) + age + 1) * period
                late: NumpyArray = trace.last[members] >= ends[:, None]
                plans.append((column, age, bodies, members, late))
        buffers: dict[tuple[int, int], LoopBuffer] = {}
        for column, before_loop, bodies, members, late in plans:
            latest: Any = late[: count - 1].any(0)  # read after a ring buffer would have reused their slots
            late_counts = np.count_nonzero(late, axis=0).tolist()
            for k, body in enumerate(bodies.tolist()):
                if not late_counts[k] and not before_loop:
                    kind = ONE
                elif not latest[k] and not (before_loop and shifted[body, column]):
                    kind = RING
                else:
                    kind = SAVED
                array = trace.variables[int(members[-1, k])].array
                _, nbytes = memory_span(array.shape, array.strides, array.dtype.itemsize)
                buffer = LoopBuffer(kind, before_loop, count, nbytes)
                if kind == SAVED and nbytes * len(members) > MAX_UNREAD_BYTES and 2 * late_counts[k] < len(late):
                    return False
                buffers[body, column] = buffer
        self._keep_strided_values(loop)
        loop.buffers = buffers
        for column, before_loop, bodies, members, _ in plans:
            self.member[members], self.body[members] = len(self.loops), bodies
            self.iteration[members] = np.arange(-before_loop, len(members) - before_loop)[:, None]
            self._memory[members] = len(trace.root) * (1 + column) + begin + bodies
        self.loops.append(loop)
        return True

    def _can_use_buffers(self, start: int, begin: int, period: int, bodies: NumpyArray, members: NumpyArray) -> bool:
        """Return whether results of calls before the loop can be written into its buffers."""
        trace = self._trace
        signatures = trace.signature[start:begin].reshape(-1, period)[:, bodies]
        return bool((members >= 0).all() and self._native[signatures].all() and (self.member[members] < 0).all())

    def _is_of_large_arrays(self, signatures: NumpyArray) -> bool:
        """Return whether all kernel calls of a body are on large arrays. ``grouping`` runs such calls block by block, in cache."""
        templates = [self._trace.templates[s] for s in signatures.tolist()]
        return all([loop.total >= LARGE for t in templates if t is not None for loop in t.loops])

    def _keep_strided_values(self, loop: TraceLoop) -> None:
        """Replace ring buffers of other loops that this loop reads iteration by iteration by buffers with a slot per iteration."""
        trace = self._trace
        first, width = trace.starts[loop.begin], len(loop.relation)
        for k in np.flatnonzero(loop.relation == STRIDED).tolist():
            here, there = self._operand_root[first + k], self._operand_root[first + width + k]
            if here != there and self.member[here] >= 0:
                other = self.loops[self.member[here]]
                buffer = other.buffers[int(self.body[here]), int(trace.column[here])]
                if buffer.kind == RING:
                    buffer.set_kind(SAVED, other.count)


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


def _multiples(same: NumpyArray) -> list[int]:
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
