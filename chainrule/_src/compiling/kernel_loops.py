"""Arrange kernel calls: detect loops in the body of a loop, expand recorded loops, group large calls.

``loop_detection`` has found the loops of the trace before. This module finds the loops in their bodies, on kernel calls and buffers.
``native_executor`` passes the kernel calls between loops to ``arranged``. A ``KernelLoop``, made from a loop of the trace or from
``scan``, passes its body to ``detect_loops``, which returns each repeated sequence as another ``KernelLoop``.

Iterations are alike if they make the same kernel calls and each operand has the same relation to that of the previous iteration:

- *carried*: written the same number of kernel calls before, in this iteration or one of the last few. The buffer of such values has
  one slot if only the same iteration reads them, a ring of slots if the next iterations read them, too, and a slot per iteration if
  they are read after the loop (saved values of a backward pass);
- *invariant or strided*: in the same buffer, a constant number of bytes further: a row of data, a slot of another loop's buffer;
- *table*: a number, or a constant of the same layout.

All operands of all iterations are compared. Iterations that differ stay unrolled, so the first and last iterations may differ. Loops
within the body are detected in the same way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.grouping import LARGE, KernelCall, LoopArgument, LoopGroup, group_kernel_calls
from chainrule._src.compiling.layout import (
    ALIGNMENT,
    ARENA,
    CONSTANT,
    Buffer,
    BufferView,
    Move,
    MovingBuffer,
    data_address,
    root_of,
    slot_nbytes,
)
from chainrule._src.compiling.loops import InnerLoop

#: the minimum number of iterations, and of kernel calls of all iterations, of a loop
MIN_ITERATIONS, MIN_KERNEL_CALLS = 4, 24
#: the maximum age of a carried operand in iterations: less than MIN_ITERATIONS, so that the loop reads some of its own values
MAX_AGE = MIN_ITERATIONS - 1
#: the length of the windows that propose periods, and the numbers of periods that are tried for a loop and for one around it
WINDOW, MAX_PERIODS, MAX_OUTER_PERIODS = 4, 64, 16
#: bytes above which a buffer is refused if less than half of its slots are read after their iteration
MAX_UNREAD_BYTES = 1 << 26


class KernelLoop:
    """A loop of kernel calls.

    Args:
        kernel_calls: the kernel calls of the body, with locations that move.

    Attributes:
        items: the kernel calls, groups and inner loops of the body.
        count: the number of iterations.
        depth: the number of loops around it.
        local: the buffers that each iteration writes before it reads them.
        moving: the moving locations of operands.
        touched, writes: all buffers that it uses, and the buffers that it writes.
    """

    def __init__(self, kernel_calls: list[KernelCall], count: int, depth: int, local: set[Buffer]) -> None:
        self.count, self.depth, self.local = count, depth, local
        self.touched = {
            root_of(location)
            for kernel_call in kernel_calls
            for location, _, _ in kernel_call.args
            if location is not None
        }
        self.writes = list(dict.fromkeys([buffer for kernel_call in kernel_calls for buffer in kernel_call.writes]))
        self.items = detect_loops(kernel_calls, frozenset(self.touched - local), depth + 1)
        self.moving = dict.fromkeys(
            [
                location
                for location in (*_locations(kernel_calls), *_locations(self.items))
                if type(location) is MovingBuffer
            ]
        )
        within = {buffer for item in self.items for buffer in item.touched}
        self.touched |= {buffer for buffer in within if buffer.kind == CONSTANT}  # tables of inner loops


def _locations(items: Sequence[Item]) -> Iterator[Any]:
    """Yield the locations of the operands of kernel calls, and the moving locations of loops."""
    for item in items:
        if type(item) is KernelLoop:
            yield from item.moving
        elif type(item) is KernelCall:
            yield from [location for location, _, _ in item.args]
        elif type(item) is LoopGroup:
            yield from _locations(item.kernel_calls)


Item = KernelCall | LoopGroup | KernelLoop


def arranged(kernel_calls: list[KernelCall]) -> list[Item]:
    """Return kernel calls outside of loops in order, with recorded loops expanded, and large calls in groups.

    Args:
        kernel_calls: the kernel calls; the loop of some of them may be a ``ScanLoop``.
    """
    return _between_recorded_loops(kernel_calls, 0, lambda begin, end: group_kernel_calls(kernel_calls[begin:end]))


def detect_loops(kernel_calls: list[KernelCall], elsewhere: frozenset[Buffer], depth: int) -> list[Item]:
    """Return the kernel calls of a body like ``arranged``, with repeated sequences as loops.

    Args:
        elsewhere: the buffers that are used outside of these calls, too.
        depth: the number of loops around them.
    """

    def arrange(begin: int, end: int) -> list[Item]:
        others = (*kernel_calls[:begin], *kernel_calls[end:])
        used_elsewhere = {buffer for kernel_call in others for buffer in kernel_call.touched}
        return _detect_loops(kernel_calls[begin:end], elsewhere | used_elsewhere, depth)

    return _between_recorded_loops(kernel_calls, depth, arrange)


def _between_recorded_loops(
    kernel_calls: list[KernelCall], depth: int, arrange: Callable[[int, int], Sequence[Item]]
) -> list[Item]:
    """Return the kernel calls with recorded loops expanded, and each range between these as ``arrange`` returns it."""
    items: list[Item] = []
    begin = 0
    for end, kernel_call in enumerate(kernel_calls):
        if type(kernel_call.loop) is not InnerLoop:
            items += [*arrange(begin, end), *kernel_call.loop.items(kernel_call.args, depth)]
            begin = end + 1
    return [*items, *arrange(begin, len(kernel_calls))]


def _detect_loops(kernel_calls: list[KernelCall], elsewhere: frozenset[Buffer], depth: int) -> list[Item]:
    items: list[Item] = []
    at = 0
    for run in _RepeatFinder(kernel_calls, elsewhere).runs() if len(kernel_calls) >= MIN_KERNEL_CALLS else ():
        items += group_kernel_calls(kernel_calls[at : run.start])
        items.append(KernelLoop(run.body(depth), run.count, depth, run.local()))
        at = run.stop
    return items + group_kernel_calls(kernel_calls[at:])


class _Strided(NamedTuple):
    """Relation of an operand to that of the previous iteration: in the same buffer, ``step`` bytes further."""

    step: int


class _Carried(NamedTuple):
    """Relation of an operand: in the buffer that an output of the kernel call ``distance`` calls before wrote first."""

    distance: int
    output: int
    step: int


_TABLED = -1  # the location index of numbers and constants, which may become a table
_NUMBER, _CONSTANT = "number", "constant"  # relations: another number, another constant of the same layout
OperandRelation = _Strided | _Carried | str


class _RepeatFinder:
    """Finds repeated sequences in a list of kernel calls."""

    def __init__(self, kernel_calls: list[KernelCall], elsewhere: frozenset[Buffer]) -> None:
        self.kernel_calls = kernel_calls
        keys = _keys(kernel_calls)
        self._windows = self._window_starts(keys)
        if all([len(starts) < MIN_ITERATIONS for starts in self._windows]):
            self._windows = []  # there are no loops
            return
        # by buffer: the first kernel call that writes it, and the index of the argument
        self.writers: dict[Buffer, tuple[int, int]] = {}
        self.last: dict[Buffer, float] = dict.fromkeys(elsewhere, np.inf)  # the last kernel call that uses a buffer
        for x, kernel_call in enumerate(kernel_calls):
            first = len(kernel_call.args) - kernel_call.loop.outputs
            for k, (location, _, _) in enumerate(kernel_call.args):
                if location is not None:
                    root = location.root if type(location) is MovingBuffer else location
                    if k >= first and root not in self.writers:
                        self.writers[root] = x, k
                    if root not in elsewhere:
                        self.last[root] = x
        self._note_operands(keys)
        self._bad: dict[int, int] = {}  # by period: the index up to which no loop begins

    def _note_operands(self, keys: list[int]) -> None:
        """Number the operands of kernel calls. Comparisons of these arrays exclude most pairs of calls that are not alike.

        Two kernel calls may be alike if for each argument the locations are equal, or the distances to their writers are.
        """
        width = 1 + max([len(kernel_call.args) for kernel_call in self.kernel_calls], default=0)
        roots: dict[Buffer, int] = {}
        move_numbers: dict[Any, int] = {}
        locations, move_indices, relative = [], [], []
        for x, kernel_call in enumerate(self.kernel_calls):
            for location, _, _ in kernel_call.args:
                root, moves = (location.root, location.moves) if type(location) is MovingBuffer else (location, ())
                if root is None or root.kind == CONSTANT:
                    locations.append(_TABLED)
                    relative.append(-1)
                else:
                    locations.append(roots.setdefault(root, len(roots)))
                    written = self.writers.get(root) if root.kind == ARENA else None
                    relative.append(-1 if written is None else (x - written[0]) * width + written[1])
                move_indices.append(move_numbers.setdefault(moves, len(move_numbers)))
            missing = width - 1 - len(kernel_call.args)
            locations += [_TABLED] * missing
            relative += [-1] * missing
            move_indices += [0] * missing
        shape = len(keys), width - 1
        self._roots = roots
        self._numbers = np.array(locations, np.intp).reshape(shape)
        self._moves = np.array(move_indices, np.intp).reshape(shape)
        self._keys = np.array(keys, np.intp)
        self._relative = np.array(relative, np.intp).reshape(shape)
        self._relative[self._relative < 0] = -2 - np.arange(
            np.count_nonzero(self._relative < 0)
        )  # unequal to all others
        self._number_locations()

    def _number_locations(self) -> None:
        """Update the location numbers: buffers that became slots of a larger one have the number of that buffer."""
        numbers = dict(self._roots)
        current = np.arange(len(numbers) + 1)
        for root, number in self._roots.items():
            parent = root
            while parent.parent is not None:
                parent = parent.parent
            if parent is not root:
                current[number] = numbers.setdefault(parent, len(numbers))
        current[-1] = _TABLED
        self._location_numbers = current[self._numbers] * (1 + self._moves.max(initial=0)) + self._moves
        self._own = np.where(current[self._numbers] == self._numbers, self._relative, self._location_numbers)

    def _may_repeat(self, x: int | slice, y: NumpyArray | slice) -> Any:
        """Return False for kernel calls that are certainly not alike, else True."""
        same = (self._location_numbers[x] == self._location_numbers[y]) | (self._own[x] == self._own[y])
        return (self._keys[x] == self._keys[y]) & same.all(-1)

    def runs(self, at: int = 0, end: int | None = None) -> list[_Repeat]:
        """Return the loops in a range of kernel calls, in order, with buffers for their results."""
        found: list[_Repeat] = []
        end = len(self.kernel_calls) if end is None else end
        while at < min(end, len(self._windows)):
            run = self._best(at, end)
            if run is None:
                at += 1
                continue
            laid_out = run.lay_out()
            if laid_out:
                self._number_locations()
            found += self.runs(at, run.start)
            if laid_out:
                found.append(run)
            at = run.stop
        return found

    @staticmethod
    def _window_starts(keys: list[int]) -> list[list[int]]:
        """Return for each kernel call the positions at which the same window of kernel calls starts."""
        starts: dict[Any, list[int]] = {}
        windows = []
        for x in range(len(keys) - WINDOW + 1):
            same = starts.setdefault(tuple(keys[x : x + WINDOW]), [])
            same.append(x)
            windows.append(same)
        return windows

    def _best(self, at: int, end: int) -> _Repeat | None:
        """Return the loop that begins at a position, or a loop around it, which may begin later."""
        starts = self._windows[at]
        best = self._first(at, end, starts)
        while best is not None:
            around = self._enclosing_loop(best, end, starts)
            if around is None:
                return best
            best = around
        return None

    def _first(self, at: int, end: int, starts: list[int]) -> _Repeat | None:
        k = bisect_left(starts, at + 1)
        if len(starts) - k < MIN_ITERATIONS - 1:  # in each iteration of a loop, the same window starts again
            return None
        tried = np.array(starts[k : k + MAX_PERIODS], np.intp)
        tried = tried[at + MIN_ITERATIONS * (tried - at) <= end]
        for period in (tried[self._may_repeat(at, tried)] - at).tolist() if len(tried) else ():
            run = self._candidate(at, end, period)
            if run is not None:
                return run
        return None

    def _candidate(self, at: int, end: int, period: int) -> _Repeat | None:
        if self._bad.get(period, -1) >= at:
            return None
        run = _Repeat(self, at, period, min(self._alike(at, period), end - period - at))
        if run.count >= MIN_ITERATIONS and run.count * period >= MIN_KERNEL_CALLS:
            return run
        self._bad[period] = at + run.alike
        return None

    def _enclosing_loop(self, inner: _Repeat, end: int, starts: list[int]) -> _Repeat | None:
        """Return a loop that contains another one. It may begin an iteration or two later than the inner loop."""
        k = bisect_left(starts, inner.stop)
        for start in starts[k : k + MAX_OUTER_PERIODS]:
            period, at = start - inner.start, inner.start
            while at <= inner.start + 2 * period and at + MIN_ITERATIONS * period <= end:
                run = self._candidate(at, end, period)
                if run is not None and run.stop > inner.stop:
                    return run
                at = self._bad.get(period, at) + 1
        return None

    def _alike(self, at: int, period: int) -> int:
        """Return the number of kernel calls from a position on that may be like the kernel calls one period later."""
        count = len(self.kernel_calls) - period - at
        done, length = 0, 64
        while done < count:
            ahead = min(length, count - done)
            here = slice(at + done, at + done + ahead)
            different = ~self._may_repeat(here, slice(here.start + period, here.stop + period))
            first = int(different.argmax())
            if different[first]:
                return done + first
            done, length = done + ahead, 4 * length
        return count

    def canonical(self, location: Any, offset: int) -> tuple[Buffer, tuple[Move | None, ...], int]:
        """Return a location as its outermost buffer, its moves and its offset in the buffer."""
        root, moves = (location.root, location.moves) if type(location) is MovingBuffer else (location, ())
        while root.parent is not None:
            offset += root.parent_offset
            root = root.parent
        return root, moves, offset

    def relation(self, x: int, y: int, k: int) -> OperandRelation | None:
        """Return the relation of argument ``k`` of kernel call ``y`` to that of an earlier call ``x``; None if there is none."""
        location, offset, number = self.kernel_calls[x].args[k]
        other, other_offset, other_number = self.kernel_calls[y].args[k]
        if location is other or (type(location) is MovingBuffer and location == other):
            if location is not None:
                return _Strided(other_offset - offset)
            alike = offset == other_offset and number.dtype == other_number.dtype and number.shape == other_number.shape
            return _NUMBER if alike else None
        if location is None or other is None:
            return None
        a, b = root_of(location), root_of(other)
        if a.parent is not None or b.parent is not None:
            one, moves, start = self.canonical(location, offset)
            two, other_moves, end = self.canonical(other, other_offset)
            return _Strided(end - start) if one is two and moves == other_moves else None
        if a.kind != b.kind or a.nbytes != b.nbytes:
            return None
        if a.kind == CONSTANT:
            alike = type(location) is type(other) is Buffer and offset == other_offset and _same_layout(a.root, b.root)
            return _CONSTANT if alike else None
        written, written_again = self.writers.get(a), self.writers.get(b)
        if a.kind != ARENA or written is None or written_again is None:
            return None
        moves = location.moves if type(location) is MovingBuffer else ()
        other_moves = other.moves if type(other) is MovingBuffer else ()
        same = moves == other_moves and written[1] == written_again[1] and x - written[0] == y - written_again[0]
        return _Carried(x - written[0], written[1], other_offset - offset) if same and x >= written[0] else None

    def is_related(self, x: int, y: int, k: int, expected: OperandRelation) -> bool:
        """Return whether ``relation`` gives the expected relation, with a fast path for most operands."""
        location, offset, _ = self.kernel_calls[x].args[k]
        other, other_offset, _ = self.kernel_calls[y].args[k]
        if type(location) is type(other) is Buffer and location.parent is other.parent is None:
            if location is other:
                return type(expected) is _Strided and expected.step == other_offset - offset
            written, written_again = self.writers.get(location), self.writers.get(other)
            if type(expected) is _Carried and written is not None and written_again is not None:
                same = location.kind == other.kind == ARENA and location.nbytes == other.nbytes
                distance, output, step = expected
                ages = x - written[0] == y - written_again[0] == distance
                return same and ages and written[1] == written_again[1] == output and other_offset - offset == step
        return self.relation(x, y, k) == expected


class _ResultBuffer:
    """The buffers that one result of a body has in the iterations, and the buffer that replaces them.

    Attributes:
        shifted: whether readers use other offsets in each iteration.
        members: the buffers. The first ``before`` of them are written before the loop.
        buffer: the common buffer with a slot for each member, or None if one member serves all iterations.
        stride: the bytes from one slot to the next; ring: the number of slots, if it is a ring buffer, else 0.
    """

    def __init__(self) -> None:
        self.before = 0
        self.shifted = False
        self.members: list[Buffer] = []
        self.buffer: Buffer | None = None
        self.stride = self.ring = 0


class _Repeat:
    """A candidate loop.

    Args:
        finder: the finder with the kernel calls.
        start, period: the index of the first kernel call, and the number of calls of the body.
        alike: the number of kernel calls that may be like the kernel calls one period later.

    Attributes:
        count: the number of iterations whose operands have the same relations; stop: the end of the last one.
        alike: the number of kernel calls whose operands are related in the same way to the operands one period later.
    """

    def __init__(self, finder: _RepeatFinder, start: int, period: int, alike: int) -> None:
        self._finder = finder
        self.start, self.period = start, period
        self._relations: list[list[OperandRelation]] = []
        self._results: dict[tuple[int, int], _ResultBuffer] = {}
        if alike < (MIN_ITERATIONS - 1) * period:
            self.alike, self.count = alike, 1
        else:
            self.alike = self._verified(alike)
            self.count = self.alike // period + 1
        self.stop = start + self.count * period

    def _verified(self, alike: int) -> int:
        finder, start, period = self._finder, self.start, self.period
        kernel_calls, farthest = finder.kernel_calls, MAX_AGE * period
        for x in range(start, start + min(alike, period)):
            found = []
            for k in range(len(kernel_calls[x].args)):
                relation = finder.relation(x, x + period, k)
                if relation is None or (type(relation) is _Carried and relation.distance > farthest):
                    return x - start
                found.append(relation)
            self._relations.append(found)
        for x in range(start + period, start + alike):
            for k, relation in enumerate(self._relations[(x - start) % period]):
                if not finder.is_related(x, x + period, k, relation):
                    return x - start
        return alike

    # -- buffers of results ----------------------------------------------------------------------------------------------

    def lay_out(self) -> bool:
        """Choose a common buffer for each result of all iterations. Return False if the buffers would take too much memory."""
        kernel_calls = self._finder.kernel_calls[self.start : self.start + self.period]
        if all([kernel_call.loop.total >= LARGE for kernel_call in kernel_calls]):
            return False  # a group is faster: it runs all iterations for a block of elements, in cache
        for j, relations in enumerate(self._relations):
            for relation in relations:
                if type(relation) is _Carried:
                    result = self._results.setdefault(self._result_key(j, relation), _ResultBuffer())
                    result.before = max(result.before, self._age(j, relation))
                    result.shifted = result.shifted or relation.step != 0
        for (j, k), result in self._results.items():
            result.members = [self._root(iteration, j, k) for iteration in range(-result.before, self.count)]
        plans = [(result, self._kind(j, k, result)) for (j, k), result in self._results.items()]
        if any([kind is None for _, kind in plans]):
            return False
        for result, kind in plans:
            self._assign(result, kind)
        return True

    def _result_key(self, j: int, relation: _Carried) -> tuple[int, int]:
        return (j - relation.distance) % self.period, relation.output

    def _age(self, j: int, relation: _Carried) -> int:
        """Return the number of iterations since a carried operand was written."""
        return (relation.distance - j + (j - relation.distance) % self.period) // self.period

    def _root(self, iteration: int, j: int, k: int) -> Buffer:
        return root_of(self._finder.kernel_calls[self.start + iteration * self.period + j].args[k][0])

    def _kind(self, j: int, k: int, result: _ResultBuffer) -> str | None:
        """Return "one", "ring" or "saved": the kind of buffer for a result; None if it would waste too much memory."""
        period, length = self.period, result.before + 1
        plain = type(self._finder.kernel_calls[self.start + j].args[k][0]) is Buffer
        late = []
        for iteration, member in enumerate(result.members, -result.before):
            end = self.start + (iteration + length) * period  # the iteration that would write its slot of a ring again
            if not plain or self._finder.last[member] >= end:
                late.append(iteration)
        if not late and not result.before:
            return "one"
        if (not late or late[0] >= self.count - length) and not (result.before and result.shifted):
            return "ring"  # the slots of the late ones are not written again
        nbytes = result.members[0].nbytes * len(result.members)
        return None if nbytes > MAX_UNREAD_BYTES and 2 * len(late) < len(result.members) else "saved"

    def _assign(self, result: _ResultBuffer, kind: str | None) -> None:
        if kind == "one":
            return
        result.stride = slot_nbytes(result.members[0].nbytes)
        slots = len(result.members)
        if kind == "ring":
            slots = result.ring = result.before + 1
        result.buffer = Buffer(ARENA, slots * result.stride)
        for iteration, member in enumerate(result.members, -result.before):
            member.parent = result.buffer
            member.parent_offset = (
                iteration % result.ring if result.ring else iteration + result.before
            ) * result.stride

    def local(self) -> set[Buffer]:
        """Return the buffers that share one allocation for all iterations: none of their values is live after its iteration."""
        return {result.members[0] for result in self._results.values() if result.buffer is None}

    # -- the body --------------------------------------------------------------------------------------------------------

    def body(self, depth: int) -> list[KernelCall]:
        """Return the kernel calls of one iteration, with moving locations."""
        kernel_calls = self._finder.kernel_calls[self.start : self.start + self.period]
        return [
            KernelCall(
                kernel_call.loop, [self._argument(j, k, relation, depth) for k, relation in enumerate(relations)]
            )
            for j, (kernel_call, relations) in enumerate(zip(kernel_calls, self._relations, strict=True))
        ]

    def _argument(self, j: int, k: int, relation: OperandRelation, depth: int) -> LoopArgument:
        location, offset, number = self._finder.kernel_calls[self.start + j].args[k]
        if type(relation) is _Strided:
            root, moves, offset = self._finder.canonical(location, offset)
            return moved(root, moves, (relation.step, 0, 0) if relation.step else None, depth), offset, None
        if type(relation) is _Carried:
            result, age = self._results[self._result_key(j, relation)], self._age(j, relation)
            moves = location.moves if type(location) is MovingBuffer else ()
            if result.buffer is None:
                move = (relation.step, 0, 0) if relation.step else None
                return moved(root_of(location), moves, move, depth), offset, None
            root, _, base = self._finder.canonical(result.buffer, 0)
            if result.ring > 1:
                return moved(root, moves, (result.stride, result.ring, -age % result.ring), depth), base + offset, None
            step = relation.step
            if not result.ring:
                offset += (result.before - age) * result.stride
                step += result.stride
            return moved(root, moves, (step, 0, 0) if step else None, depth), base + offset, None
        every = [
            self._finder.kernel_calls[self.start + iteration * self.period + j].args[k]
            for iteration in range(self.count)
        ]
        if relation == _CONSTANT:
            table, stride = table_of([arg[0].root.array for arg in every])
            return moved(table, (), (stride, 0, 0), depth), offset, None
        numbers = [arg[2] for arg in every]
        if all([other is number or other.tobytes() == number.tobytes() for other in numbers]):
            return location, offset, number
        table, stride = table_of(numbers)
        return moved(table, (), (stride, 0, 0), depth), offset, None


def moved(root: Buffer, moves: tuple[Move | None, ...], move: Move | None, depth: int) -> Any:
    """Return a location in a buffer that moves in the loops around, and by ``move`` in the loop at ``depth``."""
    if move is not None:
        moves = (*moves, *[None] * (depth - len(moves)), move)
    return MovingBuffer(root, moves) if moves else root


def _same_layout(x: BufferView, y: BufferView) -> bool:
    both = x.array, y.array
    if any([array is None or not (array.flags.c_contiguous or array.flags.f_contiguous) for array in both]):
        return False
    return (x.shape, x.strides, x.dtype) == (y.shape, y.strides, y.dtype)


def table_of(arrays: list[NumpyArray]) -> tuple[Buffer, int]:
    """Return a constant buffer with arrays one after the other, and the bytes from one to the next."""
    stride = -(-arrays[0].nbytes // 32) * 32
    memory = np.zeros(len(arrays) * stride + ALIGNMENT, np.uint8)
    start = -data_address(memory) % ALIGNMENT
    memory = memory[start : start + len(arrays) * stride]
    for k, array in enumerate(arrays):
        memory[k * stride : k * stride + array.nbytes] = np.frombuffer(array.tobytes("A"), np.uint8)
    buffer = Buffer(CONSTANT, memory.nbytes)
    buffer.root = BufferView(0, buffer, 0, memory.shape, memory.strides, memory.dtype)
    buffer.root.array = memory
    return buffer, stride


def _keys(kernel_calls: list[KernelCall]) -> list[int]:
    """Return a number for each kernel call. The numbers are equal for equal kernels, regardless of their operands."""
    numbers: dict[Any, int] = {}
    keys_by_loop: dict[int, int] = {}  # by identity
    keys = []
    for kernel_call in kernel_calls:
        loop = kernel_call.loop
        key = keys_by_loop.get(id(loop))
        if key is None:
            head, tail = loop.code_parts
            content = (*head, None, *tail, None, *loop.itemsizes, loop.outputs, loop.elementwise, loop.in_place)
            key = keys_by_loop[id(loop)] = numbers.setdefault(content, len(numbers))
        keys.append(key)
    return keys
