"""Which loops are done block by block.

On large arrays the time of an elementwise loop is the time its operands take through memory. So loops that go through the same
elements form a group: all of them are done for one block of elements before the next, and what they hand to each other stays in
cache. Loops that are in between, and that the group does not wait for, are done before or after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainrule._src.compiling.layout import Buffer, root_of

if TYPE_CHECKING:
    pass

#: elements from which a loop is worth a group, and loops that may wait for the end of one
LARGE = 4096
WAITING = 64

#: where the elements of an argument are: offset, stride within a row, stride from row to row, length of a row
ElementPattern = tuple[int, int, int, int]


#: an argument of a loop: a buffer, or place that moves in one (None: a number), an offset in it, the number
LoopArgument = tuple[Any, int, Any]


class Work:
    """A loop (:class:`~chainrule._src.compiling.loops.Loop`, or a whole one: ``IteratedLoop``) and its arguments."""

    __slots__ = ("args", "loop")

    def __init__(self, loop: Any, args: list[LoopArgument]) -> None:
        self.loop = loop
        self.args = args

    @property
    def reads(self) -> list[Buffer]:
        return [root_of(location) for location, _, _ in self.args[: -self.loop.outputs] if location is not None]

    @property
    def writes(self) -> list[Buffer]:
        return [root_of(location) for location, _, _ in self.args[-self.loop.outputs :]]

    @property
    def touched(self) -> set[Buffer]:
        """All buffers that it uses."""
        return {root_of(location) for location, _, _ in self.args if location is not None}

    def pattern(self, k: int) -> ElementPattern:
        """Where the elements of an argument are; one that a single stride goes through has rows of no length."""
        axes = self.loop.axes
        stride = axes[0].strides[k]
        if len(axes) == 1 or axes[1].strides[k] == stride * axes[0].length:
            return self.args[k][1], stride, 0, 0
        return self.args[k][1], stride, axes[1].strides[k], axes[0].length


class LoopGroup:
    """Loops over the same elements, done block by block.

    Attributes:
        works: in order.
        total, row: how many elements there are, and the length of a row (0: any).
        reads, written: the buffers that it uses, and where in those that it writes; places: how these move.
    """

    def __init__(self, total: int) -> None:
        self.works: list[Work] = []
        self.total = total
        self.row = 0
        self.reads: set[Buffer] = set()
        self.written: dict[Buffer, ElementPattern] = {}
        self.locations: dict[Buffer, Any] = {}

    def takes(self, work: Work) -> bool:
        """Whether a loop goes through the same elements, and uses of the group's only what is in its own block."""
        loop = work.loop
        if loop.total != self.total or (loop.row and self.row and loop.row != self.row):
            return False
        for k, (location, _, _) in enumerate(work.args):
            buffer = root_of(location)
            if buffer in self.written:
                pattern = work.pattern(k)
                if pattern != self.written[buffer] or pattern[3] or location != self.locations[buffer]:
                    return False
        return self.reads.isdisjoint(work.writes)

    def add(self, work: Work) -> None:
        self.works.append(work)
        self.row = self.row or work.loop.row
        self.reads.update(work.reads)
        first = len(work.args) - work.loop.outputs
        for k in range(first, len(work.args)):
            buffer = root_of(work.args[k][0])
            self.written[buffer] = work.pattern(k)
            self.locations[buffer] = work.args[k][0]

    @property
    def touched(self) -> set[Buffer]:
        """All buffers that it uses."""
        return self.reads | self.written.keys()

    @property
    def writes(self) -> list[Buffer]:
        return list(self.written)

    def is_needed_by(self, work: Work) -> bool:
        """Whether a loop has to come after the group."""
        return (
            not self.written.keys().isdisjoint(work.reads)
            or not self.written.keys().isdisjoint(work.writes)
            or not self.reads.isdisjoint(work.writes)
        )


class _Waiting:
    """Loops that come after the open group."""

    def __init__(self) -> None:
        self.works: list[Work] = []
        self.reads: set[Buffer] = set()
        self.writes: set[Buffer] = set()

    def add(self, work: Work) -> None:
        self.works.append(work)
        self.reads.update(work.reads)
        self.writes.update(work.writes)

    def hold_up(self, work: Work) -> bool:
        """Whether a loop has to come after one of these."""
        return not (
            self.writes.isdisjoint(work.reads)
            and self.writes.isdisjoint(work.writes)
            and self.reads.isdisjoint(work.writes)
        )


def grouped(works: list[Work]) -> list[Work | LoopGroup]:
    """The loops in an order that gives the same results, with groups of large ones."""
    if not any([work.loop.total >= LARGE for work in works]):
        return list(works)
    done: list[Work | LoopGroup] = []
    pending = works[::-1]
    group: LoopGroup | None = None
    waiting = _Waiting()
    while pending or group is not None:
        if not pending or len(waiting.works) >= WAITING:
            assert group is not None
            done.append(group)
            group = None
            pending.extend(reversed(waiting.works))
            waiting = _Waiting()
            continue
        work = pending.pop()
        if group is None:
            if work.loop.total >= LARGE:
                group = LoopGroup(work.loop.total)
                group.add(work)
            else:
                done.append(work)
        elif waiting.hold_up(work):
            waiting.add(work)
        elif group.takes(work):
            group.add(work)
        elif work.loop.total >= LARGE or group.is_needed_by(work):
            waiting.add(work)
        else:
            done.append(work)
    return done
