"""Loops of a program, rolled up again.

A recording has the calls of a loop once for each time round. Where the inner loops that they came to repeat, the body is kept once,
with a count. Two times round are alike if the same inner loops follow each other and each operand is one of these:

- *its own*: written as many inner loops before, in this time round or one of the last few. What nobody reads later has one place;
  what the next times round read has a ring of places; what is read after the loop (saved values, by a backward pass) has a place for
  each time, one after the other: a *stack*.
- *fixed*: in one array, where it moves by a constant stride, which may be none: a row of data, a slot of another loop's stack.
- *numbers*, or constants of one layout: a table.

Nothing is taken for granted: each operand of each time round is looked at. What is not alike stays as it was, so the first or last
times round may differ. The body is rolled up in the same way, if it repeats something itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.grouping import LARGE, LoopArgument, LoopGroup, Work, grouped
from chainrule._src.compiling.layout import (
    ALIGNMENT,
    ARENA,
    CONSTANT,
    Buffer,
    BufferView,
    Move,
    MovingBuffer,
    address,
    packed,
    root_of,
)
from chainrule._src.compiling.loops import Loop

#: times round, and inner loops, that are worth rolling up
FEWEST, SHORTEST = 4, 24
#: times round that an operand may be old: fewer than there are, so that what is written in the loop is read in it
FARTHEST = FEWEST - 1
#: inner loops by whose sequence a repetition is looked for, and how many of its places are tried
WINDOW, TRIED, OUTER_TRIED = 4, 64, 16
#: bytes of a stack of which half is not used that are too many
WASTED = 1 << 26


class Rolled:
    """A body that is done again and again.

    Args:
        works: its inner loops, whose places move.
        start, period: where it was found, if it was.

    Attributes:
        items: its loops, groups, and loops that are rolled up.
        count: how often it is done.
        depth: how many loops are around it.
        local: the buffers that are written anew each time round, before they are read.
        moving: the places that move, as its operands have them.
        touched, writes: all buffers that it uses, and those that it writes.
    """

    def __init__(
        self, works: list[Work], count: int, depth: int, local: set[Buffer], start: int = 0, period: int = 0
    ) -> None:
        self.start, self.period, self.count = start, period, count
        self.depth, self.local = depth, local
        self.touched = {root_of(location) for work in works for location, _, _ in work.args if location is not None}
        self.writes = list(dict.fromkeys([buffer for work in works for buffer in work.writes]))
        self.items = rolled_up(works, frozenset(self.touched - local), depth + 1)
        self.moving = dict.fromkeys(
            [location for location in (*_locations(works), *_locations(self.items)) if type(location) is MovingBuffer]
        )
        within = {buffer for item in self.items for buffer in item.touched}
        self.touched |= {buffer for buffer in within if buffer.kind == CONSTANT}  # tables of loops within


def _locations(items: Sequence[Item]) -> Iterator[Any]:
    """The places of the operands of loops, of what is rolled up those that move."""
    for item in items:
        if type(item) is Rolled:
            yield from item.moving
        elif type(item) is Work:
            yield from [location for location, _, _ in item.args]
        elif type(item) is LoopGroup:
            yield from _locations(item.works)


Item = Work | LoopGroup | Rolled


def rolled_up(works: list[Work], elsewhere: frozenset[Buffer], depth: int = 0) -> list[Item]:
    """Loops in order, with those that repeat rolled up, whole loops among them as what they are, and others in groups.

    Args:
        elsewhere: buffers that something else uses, too.
        depth: how many loops there are around.
    """
    whole = [x for x, work in enumerate(works) if type(work.loop) is not Loop]
    if not whole:
        return _rolled_up(works, elsewhere, depth)
    items: list[Item] = []
    begin = 0
    for end in (*whole, len(works)):
        part = works[begin:end]
        used_elsewhere = {buffer for work in (*works[:begin], *works[end:]) for buffer in work.touched}
        found = _rolled_up(part, elsewhere | used_elsewhere, depth)
        for item in found:
            if type(item) is Rolled:
                item.start += begin
        items += found
        if end < len(works):
            items += works[end].loop.items(works[end].args, depth)
        begin = end + 1
    return items


def _rolled_up(works: list[Work], elsewhere: frozenset[Buffer], depth: int) -> list[Item]:
    items: list[Item] = []
    at = 0
    for run in _RepeatFinder(works, elsewhere, depth).runs() if len(works) >= SHORTEST else ():
        items += grouped(works[at : run.start])
        items.append(Rolled(run.body(depth), run.count, depth, run.local(), run.start, run.period))
        at = run.stop
    return items + grouped(works[at:])


class _Strided(NamedTuple):
    """Relation of an operand to that of the last time round: it lies in the same array, some bytes further."""

    step: int


class _Carried(NamedTuple):
    """It is in what the same of the loops' outputs wrote first, as many loops before, but some bytes further."""

    distance: int
    output: int
    step: int


_TABLED = -1  # the place of numbers and constants, of which there may be a table
_NUMBER, _CONSTANT = "number", "constant"  # it is another one, of the same kind
OperandRelation = _Strided | _Carried | str


class _RepeatFinder:
    """Finds what repeats in a list of loops."""

    def __init__(self, works: list[Work], elsewhere: frozenset[Buffer], depth: int) -> None:
        self.works = works
        self.writers: dict[
            Buffer, tuple[int, int]
        ] = {}  # the loop that writes a buffer first, and which argument it is
        self.last: dict[Buffer, float] = dict.fromkeys(elsewhere, np.inf)  # the last loop that uses one
        for x, work in enumerate(works):
            first = len(work.args) - work.loop.outputs
            for k, (location, _, _) in enumerate(work.args):
                if location is not None:
                    root = location.root if type(location) is MovingBuffer else location
                    if k >= first and root not in self.writers and not (root.slots and depth == 0):
                        self.writers[root] = x, k
                    if root not in elsewhere:
                        self.last[root] = x
        keys = _keys(works)
        self._note_operands(keys)
        self._windows = self._window_starts(keys)
        self._bad: dict[int, int] = {}  # by period: up to where nothing begins

    def _note_operands(self, keys: list[int]) -> None:
        """Note in numbers what ``relation`` asks of loops, to find most of those that are not alike all at once.

        Loops may be alike where in each column the places are the same, or what they are relative to the loop is.
        """
        width = 1 + max([len(work.args) for work in self.works], default=0)
        roots: dict[Buffer, int] = {}
        move_numbers: dict[Any, int] = {}
        locations, move_indices, relative = [], [], []
        for x, work in enumerate(self.works):
            for location, _, _ in work.args:
                root, moves = (location.root, location.moves) if type(location) is MovingBuffer else (location, ())
                if root is None or root.kind == CONSTANT:
                    locations.append(_TABLED)
                    relative.append(-1)
                else:
                    locations.append(roots.setdefault(root, len(roots)))
                    written = self.writers.get(root) if root.kind == ARENA else None
                    relative.append(-1 if written is None else (x - written[0]) * width + written[1])
                move_indices.append(move_numbers.setdefault(moves, len(move_numbers)))
            missing = width - 1 - len(work.args)
            locations += [_TABLED] * missing
            relative += [-1] * missing
            move_indices += [0] * missing
        shape = len(keys), width - 1
        self._roots = roots
        self._numbers = np.array(locations, np.intp).reshape(shape)
        self._moves = np.array(move_indices, np.intp).reshape(shape)
        self._keys = np.array(keys, np.intp)
        self._relative = np.array(relative, np.intp).reshape(shape)
        self._relative[self._relative < 0] = -2 - np.arange(np.count_nonzero(self._relative < 0))  # like no other
        self._number_locations()

    def _number_locations(self) -> None:
        """Note where operands are, now that some of them may lie in stacks: there they are in one array."""
        numbers = dict(self._roots)
        moved = np.arange(len(numbers) + 1)
        for root, number in self._roots.items():
            parent = root
            while parent.parent is not None:
                parent = parent.parent
            if parent is not root:
                moved[number] = numbers.setdefault(parent, len(numbers))
        moved[-1] = _TABLED
        self._location_numbers = moved[self._numbers] * (1 + self._moves.max(initial=0)) + self._moves
        self._own = np.where(moved[self._numbers] == self._numbers, self._relative, self._location_numbers)

    def _may_repeat(self, x: int | slice, y: NumpyArray | slice) -> Any:
        """Whether loops may be alike: False is certain."""
        same = (self._location_numbers[x] == self._location_numbers[y]) | (self._own[x] == self._own[y])
        return (self._keys[x] == self._keys[y]) & same.all(-1)

    def runs(self, at: int = 0, end: int | None = None) -> list[_Repeat]:
        """What repeats from one loop to another, in order, with places for what it writes."""
        found: list[_Repeat] = []
        end = len(self.works) if end is None else end
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
        """For each loop the starts where it, and those that follow, are."""
        starts: dict[Any, list[int]] = {}
        windows = []
        for x in range(len(keys) - WINDOW + 1):
            same = starts.setdefault(tuple(keys[x : x + WINDOW]), [])
            same.append(x)
            windows.append(same)
        return windows

    def _best(self, at: int, end: int) -> _Repeat | None:
        """The repetition from here on that covers most; one around others rather than these, though it may begin later."""
        starts = self._windows[at]
        best = self._first(at, end, starts)
        while best is not None:
            around = self._around(best, end, starts)
            if around is None:
                return best
            best = around
        return None

    def _first(self, at: int, end: int, starts: list[int]) -> _Repeat | None:
        k = bisect_left(starts, at + 1)
        tried = np.array(starts[k : k + TRIED], np.intp)
        tried = tried[at + FEWEST * (tried - at) <= end]
        for period in (tried[self._may_repeat(at, tried)] - at).tolist() if len(tried) else ():
            run = self._tried(at, end, period)
            if run is not None:
                return run
        return None

    def _tried(self, at: int, end: int, period: int) -> _Repeat | None:
        if self._bad.get(period, -1) >= at:
            return None
        run = _Repeat(self, at, period, min(self._alike(at, period), end - period - at))
        if run.count >= FEWEST and run.count * period >= SHORTEST:
            return run
        self._bad[period] = at + run.alike
        return None

    def _around(self, inner: _Repeat, end: int, starts: list[int]) -> _Repeat | None:
        """A repetition of which another one is a part. It may take its first time round to come into step."""
        k = bisect_left(starts, inner.stop)
        for start in starts[k : k + OUTER_TRIED]:
            period, at = start - inner.start, inner.start
            while at <= inner.start + 2 * period and at + FEWEST * period <= end:
                run = self._tried(at, end, period)
                if run is not None and run.stop > inner.stop:
                    return run
                at = self._bad.get(period, at) + 1
        return None

    def _alike(self, at: int, period: int) -> int:
        """How many inner loops from here on may be alike those a period later."""
        count = len(self.works) - period - at
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
        """Where a place is: in which buffer that has no stack, how it moves, and its offset."""
        root, moves = (location.root, location.moves) if type(location) is MovingBuffer else (location, ())
        while root.parent is not None:
            offset += root.parent_offset
            root = root.parent
        return root, moves, offset

    def relation(self, x: int, y: int, k: int) -> OperandRelation | None:
        """What an argument of a later loop is to that of an earlier one; None: nothing that is known."""
        location, offset, number = self.works[x].args[k]
        other, other_offset, other_number = self.works[y].args[k]
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
        """Whether ``relation`` is as expected; what most operands are is seen at a glance."""
        location, offset, _ = self.works[x].args[k]
        other, other_offset, _ = self.works[y].args[k]
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
    """What a body writes into a buffer, each time round into another one.

    Attributes:
        shifted: whether it is used at another place in it each time round.
        members: the buffers; the first ``before`` of them were written before the loop began.
        stack: where they lie, if more than one of them is needed; ring: how many places that has, if they are used again.
    """

    def __init__(self) -> None:
        self.before = 0
        self.shifted = False
        self.members: list[Buffer] = []
        self.buffer: Buffer | None = None
        self.stride = self.ring = 0


class _Repeat:
    """A body and how often it is repeated.

    Args:
        finder: where.
        start: of the first time round; period: of the body; alike: how many inner loops are the same a period later.

    Attributes:
        count: the times round whose operands are in the same relations; ``stop``: the end of the last one.
        alike: how many loops have operands in the same relation to those a period later.
    """

    def __init__(self, finder: _RepeatFinder, start: int, period: int, alike: int) -> None:
        self._finder = finder
        self.start, self.period = start, period
        self._relations: list[list[OperandRelation]] = []
        self._slots: dict[tuple[int, int], _ResultBuffer] = {}
        if alike < (FEWEST - 1) * period:
            self.alike, self.count = alike, 1
        else:
            self.alike = self._verified(alike)
            self.count = self.alike // period + 1
        self.stop = start + self.count * period

    def _verified(self, alike: int) -> int:
        finder, start, period = self._finder, self.start, self.period
        works, farthest = finder.works, FARTHEST * period
        for x in range(start, start + min(alike, period)):
            found = []
            for k in range(len(works[x].args)):
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

    # -- where what it writes lies ---------------------------------------------------------------------------------------

    def lay_out(self) -> bool:
        """Have the buffers of all times round in stacks; False if they would take too much memory."""
        works = self._finder.works[self.start : self.start + self.period]
        if all([work.loop.total >= LARGE for work in works]):
            return False  # one group does all times round for a block of elements, and what is between stays in cache
        for j, relations in enumerate(self._relations):
            for relation in relations:
                if type(relation) is _Carried:
                    slot = self._slots.setdefault(self._slot_of(j, relation), _ResultBuffer())
                    slot.before = max(slot.before, self._age(j, relation))
                    slot.shifted = slot.shifted or relation.step != 0
        for (j, k), slot in self._slots.items():
            slot.members = [self._root(time, j, k) for time in range(-slot.before, self.count)]
        plans = [(slot, self._kind(j, k, slot)) for (j, k), slot in self._slots.items()]
        if any([kind is None for _, kind in plans]):
            return False
        for slot, kind in plans:
            self._assign(slot, kind)
        return True

    def _slot_of(self, j: int, relation: _Carried) -> tuple[int, int]:
        return (j - relation.distance) % self.period, relation.output

    def _age(self, j: int, relation: _Carried) -> int:
        """How many times round before it was written."""
        return (relation.distance - j + (j - relation.distance) % self.period) // self.period

    def _root(self, time: int, j: int, k: int) -> Buffer:
        return root_of(self._finder.works[self.start + time * self.period + j].args[k][0])

    def _kind(self, j: int, k: int, slot: _ResultBuffer) -> str | None:
        """Whether one place serves all times round, a ring does, or each has its own."""
        period, length = self.period, slot.before + 1
        plain = type(self._finder.works[self.start + j].args[k][0]) is Buffer
        late = []
        for time, member in enumerate(slot.members, -slot.before):
            end = self.start + (time + length) * period  # then a place of the ring is written again
            if not plain or self._finder.last[member] >= end:
                late.append(time)
        if not late and not slot.before:
            return "one"
        if (not late or late[0] >= self.count - length) and not (slot.before and slot.shifted):
            return "ring"  # nothing is written into these places any more
        nbytes = slot.members[0].nbytes * len(slot.members)
        return None if nbytes > WASTED and 2 * len(late) < len(slot.members) else "stack"

    def _assign(self, slot: _ResultBuffer, kind: str | None) -> None:
        if kind == "one":
            return
        slot.stride = packed(slot.members[0].nbytes)
        locations = len(slot.members)
        if kind == "ring":
            locations = slot.ring = slot.before + 1
        slot.buffer = Buffer(ARENA, locations * slot.stride)
        for time, member in enumerate(slot.members, -slot.before):
            member.parent = slot.buffer
            member.parent_offset = (time % slot.ring if slot.ring else time + slot.before) * slot.stride

    def local(self) -> set[Buffer]:
        """The buffers that one place serves for, and nobody needs after the time round."""
        return {slot.members[0] for slot in self._slots.values() if slot.buffer is None}

    # -- its body ----------------------------------------------------------------------------------------------------------

    def body(self, depth: int) -> list[Work]:
        """The loops of one time round, with places that move."""
        works = self._finder.works[self.start : self.start + self.period]
        return [
            Work(work.loop, [self._argument(j, k, relation, depth) for k, relation in enumerate(relations)])
            for j, (work, relations) in enumerate(zip(works, self._relations, strict=True))
        ]

    def _argument(self, j: int, k: int, relation: OperandRelation, depth: int) -> LoopArgument:
        location, offset, number = self._finder.works[self.start + j].args[k]
        if type(relation) is _Strided:
            root, moves, offset = self._finder.canonical(location, offset)
            return moved(root, moves, (relation.step, 0, 0) if relation.step else None, depth), offset, None
        if type(relation) is _Carried:
            slot, age = self._slots[self._slot_of(j, relation)], self._age(j, relation)
            moves = location.moves if type(location) is MovingBuffer else ()
            if slot.buffer is None:
                move = (relation.step, 0, 0) if relation.step else None
                return moved(root_of(location), moves, move, depth), offset, None
            root, _, base = self._finder.canonical(slot.buffer, 0)
            if slot.ring > 1:
                return moved(root, moves, (slot.stride, slot.ring, -age % slot.ring), depth), base + offset, None
            step = relation.step
            if not slot.ring:
                offset += (slot.before - age) * slot.stride
                step += slot.stride
            return moved(root, moves, (step, 0, 0) if step else None, depth), base + offset, None
        every = [self._finder.works[self.start + time * self.period + j].args[k] for time in range(self.count)]
        if relation == _CONSTANT:
            table, stride = table_of([arg[0].root.array for arg in every])
            return moved(table, (), (stride, 0, 0), depth), offset, None
        numbers = [arg[2] for arg in every]
        if all([other is number or other.tobytes() == number.tobytes() for other in numbers]):
            return location, offset, number
        table, stride = table_of(numbers)
        return moved(table, (), (stride, 0, 0), depth), offset, None


def moved(root: Buffer, moves: tuple[Move | None, ...], move: Move | None, depth: int) -> Any:
    """A place that moves in the loops around, and in this one."""
    if move is not None:
        moves = (*moves, *[None] * (depth - len(moves)), move)
    return MovingBuffer(root, moves) if moves else root


def _same_layout(x: BufferView, y: BufferView) -> bool:
    both = x.array, y.array
    if any([array is None or not (array.flags.c_contiguous or array.flags.f_contiguous) for array in both]):
        return False
    return (x.shape, x.strides, x.dtype) == (y.shape, y.strides, y.dtype)


def table_of(arrays: list[NumpyArray]) -> tuple[Buffer, int]:
    """Constants one after the other, as one; how far they are apart."""
    stride = -(-arrays[0].nbytes // 32) * 32
    memory = np.zeros(len(arrays) * stride + ALIGNMENT, np.uint8)
    start = -address(memory) % ALIGNMENT
    memory = memory[start : start + len(arrays) * stride]
    for k, array in enumerate(arrays):
        memory[k * stride : k * stride + array.nbytes] = np.frombuffer(array.tobytes("A"), np.uint8)
    buffer = Buffer(CONSTANT, memory.nbytes)
    buffer.root = BufferView(0, buffer, 0, memory.shape, memory.strides, memory.dtype)
    buffer.root.array = memory
    return buffer, stride


def _keys(works: list[Work]) -> list[int]:
    """A number for what each loop does, whatever its operands are."""
    numbers: dict[Any, int] = {}
    known: dict[int, int] = {}  # by identity
    keys = []
    for work in works:
        loop = work.loop
        key = known.get(id(loop))
        if key is None:
            head, tail = loop.words
            what = (*head, None, *tail, None, *loop.itemsizes, loop.outputs, loop.elementwise, loop.in_place)
            key = known[id(loop)] = numbers.setdefault(what, len(numbers))
        keys.append(key)
    return keys
