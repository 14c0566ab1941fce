"""Group elementwise kernel calls on large arrays, to run them block by block.

The time of an elementwise loop on large arrays is the memory traffic of its operands. So kernel calls over the same elements form a
group. The group runs all its calls on one block of elements before the next block, and intermediate values stay in cache. Calls
between them that the group does not depend on run before or after it. ``rolling`` and ``scan_lowering`` call ``grouped``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainrule._src.compiling.layout import Buffer, root_of

if TYPE_CHECKING:
    pass

#: the minimum number of elements of a grouped kernel call, and the maximum number of calls that wait for the end of a group
LARGE = 4096
WAITING = 64

#: the access pattern of an argument: offset, stride within a row, stride from row to row, length of a row
ElementPattern = tuple[int, int, int, int]


#: an argument of a kernel call: a buffer or MovingBuffer (None for a number), an offset in it, the number
LoopArgument = tuple[Any, int, Any]


class Work:
    """A kernel call: a :class:`~chainrule._src.compiling.loops.Loop` (or an ``IteratedLoop``) and its arguments."""

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
        """Return the access pattern of an argument. The row length is 0 if a single stride goes through all elements."""
        axes = self.loop.axes
        stride = axes[0].strides[k]
        if len(axes) == 1 or axes[1].strides[k] == stride * axes[0].length:
            return self.args[k][1], stride, 0, 0
        return self.args[k][1], stride, axes[1].strides[k], axes[0].length


class LoopGroup:
    """Kernel calls over the same elements, which run block by block.

    Attributes:
        works: the kernel calls, in order.
        total, row: the number of elements, and the length of a row (0: any).
        reads: the buffers that it reads; written: the access pattern of each buffer that it writes; locations: their locations.
    """

    def __init__(self, total: int) -> None:
        self.works: list[Work] = []
        self.total = total
        self.row = 0
        self.reads: set[Buffer] = set()
        self.written: dict[Buffer, ElementPattern] = {}
        self.locations: dict[Buffer, Any] = {}

    def can_add(self, work: Work) -> bool:
        """Return whether a kernel call can join: it has the same elements, and reads results of the group only in its own block."""
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
        """Return whether a kernel call has to come after the group."""
        return (
            not self.written.keys().isdisjoint(work.reads)
            or not self.written.keys().isdisjoint(work.writes)
            or not self.reads.isdisjoint(work.writes)
        )


class _Waiting:
    """Kernel calls that come after the open group."""

    def __init__(self) -> None:
        self.works: list[Work] = []
        self.reads: set[Buffer] = set()
        self.writes: set[Buffer] = set()

    def add(self, work: Work) -> None:
        self.works.append(work)
        self.reads.update(work.reads)
        self.writes.update(work.writes)

    def blocks(self, work: Work) -> bool:
        """Return whether a kernel call has to come after one of these."""
        return not (
            self.writes.isdisjoint(work.reads)
            and self.writes.isdisjoint(work.writes)
            and self.reads.isdisjoint(work.writes)
        )


def grouped(works: list[Work]) -> list[Work | LoopGroup]:
    """Return kernel calls in an order that gives the same results, with large ones in groups."""
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
        elif waiting.blocks(work):
            waiting.add(work)
        elif group.can_add(work):
            group.add(work)
        elif work.loop.total >= LARGE or group.is_needed_by(work):
            waiting.add(work)
        else:
            done.append(work)
    return done
