"""Group elementwise kernel calls on large arrays, to run them block by block.

The time of an elementwise loop on large arrays is the memory traffic of its operands. So kernel calls over the same elements form a
group (``LoopGroup.can_add``). The group runs all its calls on one block of elements before the next block, and intermediate values stay in
cache. A reduction of the rows of a result can join the group (``LoopGroup.can_reduce``): the sum of a product then needs no memory for
the product. Kernel calls between the members of a group are moved before or after the group, if that does not change the results.
``kernel_loops`` calls ``group_kernel_calls``.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.compiling.layout import Buffer, root_of

#: the minimum number of elements of a grouped kernel call, and the maximum number of calls that wait for the end of a group
LARGE = 4096
WAITING = 64

#: the access pattern of an argument: offset, stride within a row, stride from row to row, length of a row
ElementPattern = tuple[int, int, int, int]


#: an argument of a kernel call: a buffer or MovingBuffer (None for a number), an offset in it, the number
LoopArgument = tuple[Any, int, Any]


class KernelCall:
    """A kernel call: a :class:`~chainrule._src.compiling.loops.InnerLoop` (or a ``ScanLoop``) and its arguments."""

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
    def roots(self) -> list[Buffer]:
        """The buffers of its arguments, with repetitions."""
        return [root_of(location) for location, _, _ in self.args if location is not None]

    @property
    def touched(self) -> set[Buffer]:
        """All buffers that it uses."""
        return {*self.roots}

    def pattern(self, k: int) -> ElementPattern:
        """Return the access pattern of an argument. The row length is 0 if a single stride goes through all elements."""
        axes = self.loop.axes
        if len(axes) == 1:
            return self.args[k][1], axes[0].strides[k], 0, 0
        stride, length, single = axes[0].strides[k], axes[0].length, True
        for axis in axes[1:]:
            single = single and axis.strides[k] == stride * length
            length *= axis.length
        if single:
            return self.args[k][1], stride, 0, 0
        return self.args[k][1], stride, axes[-1].strides[k], length // axes[-1].length


class LoopGroup:
    """Kernel calls over the same elements, which run block by block.

    Attributes:
        kernel_calls: the kernel calls, in order.
        total, row: the number of elements, and the length of a row (0: any).
        reads: the buffers that it reads; written, locations: the access pattern and the location of each buffer that it writes.
    """

    def __init__(self, total: int) -> None:
        self.kernel_calls: list[KernelCall] = []
        self.total = total
        self.row = 0
        self.reads: set[Buffer] = set()
        self.written: dict[Buffer, ElementPattern] = {}
        self.locations: dict[Buffer, Any] = {}

    def can_add(self, kernel_call: KernelCall) -> bool:
        """Return whether a kernel call can join: it has the same elements, and reads results of the group within its block only."""
        loop = kernel_call.loop
        if loop.total != self.total or (loop.row and self.row and loop.row != self.row):
            return False
        for k, (location, _, _) in enumerate(kernel_call.args):
            buffer = root_of(location)
            if buffer in self.written:
                pattern = kernel_call.pattern(k)
                if pattern != self.written[buffer] or pattern[3] or location != self.locations[buffer]:
                    return False
        return self.reads.isdisjoint(kernel_call.writes)

    def can_reduce(self, kernel_call: KernelCall) -> bool:
        """Return whether a kernel call can join the group as a reduction of the rows of one of its results."""
        loop = kernel_call.loop
        if not loop.reduces or (self.row and self.row != loop.row) or loop.row * loop.axes[-1].length != self.total:
            return False
        operand, result = kernel_call.args[1][0], root_of(kernel_call.args[2][0])
        buffer, pattern = root_of(operand), kernel_call.pattern(1)
        if self.written.get(buffer) != pattern or pattern[3] or self.locations[buffer] != operand:
            return False
        return result not in self.reads and result not in self.written

    def add(self, kernel_call: KernelCall) -> None:
        self.kernel_calls.append(kernel_call)
        self.row = self.row or kernel_call.loop.row
        self.reads.update(kernel_call.reads)
        first = len(kernel_call.args) - kernel_call.loop.outputs
        for k in range(first, len(kernel_call.args)):
            buffer = root_of(kernel_call.args[k][0])
            self.written[buffer] = kernel_call.pattern(k)
            self.locations[buffer] = kernel_call.args[k][0]

    @property
    def touched(self) -> set[Buffer]:
        """All buffers that it uses."""
        return self.reads | self.written.keys()

    @property
    def writes(self) -> list[Buffer]:
        return list(self.written)

    def is_needed_by(self, kernel_call: KernelCall) -> bool:
        """Return whether a kernel call has to come after the group."""
        return (
            not self.written.keys().isdisjoint(kernel_call.reads)
            or not self.written.keys().isdisjoint(kernel_call.writes)
            or not self.reads.isdisjoint(kernel_call.writes)
        )


class _Waiting:
    """Kernel calls that come after the open group."""

    def __init__(self) -> None:
        self.kernel_calls: list[KernelCall] = []
        self.reads: set[Buffer] = set()
        self.writes: set[Buffer] = set()

    def add(self, kernel_call: KernelCall) -> None:
        self.kernel_calls.append(kernel_call)
        self.reads.update(kernel_call.reads)
        self.writes.update(kernel_call.writes)

    def blocks(self, kernel_call: KernelCall) -> bool:
        """Return whether a kernel call has to come after one of these."""
        return not (
            self.writes.isdisjoint(kernel_call.reads)
            and self.writes.isdisjoint(kernel_call.writes)
            and self.reads.isdisjoint(kernel_call.writes)
        )


def group_kernel_calls(kernel_calls: list[KernelCall]) -> list[KernelCall | LoopGroup]:
    """Return kernel calls in an order that gives the same results, with large ones in groups."""
    if not any([kernel_call.loop.total >= LARGE for kernel_call in kernel_calls]):
        return list(kernel_calls)
    done: list[KernelCall | LoopGroup] = []
    pending = kernel_calls[::-1]
    group: LoopGroup | None = None
    waiting = _Waiting()
    while pending or group is not None:
        if not pending or len(waiting.kernel_calls) >= WAITING:
            assert group is not None
            done.append(group)
            group = None
            pending.extend(reversed(waiting.kernel_calls))
            waiting = _Waiting()
            continue
        kernel_call = pending.pop()
        if group is None:
            if kernel_call.loop.total >= LARGE:
                group = LoopGroup(kernel_call.loop.total)
                group.add(kernel_call)
            else:
                done.append(kernel_call)
        elif waiting.blocks(kernel_call):
            waiting.add(kernel_call)
        elif group.can_add(kernel_call) or group.can_reduce(kernel_call):
            group.add(kernel_call)
        elif group.is_needed_by(kernel_call) or (
            kernel_call.loop.total >= LARGE and not _is_initial_value(kernel_call, pending, group)
        ):
            waiting.add(kernel_call)
        else:
            done.append(kernel_call)
    return done


def _is_initial_value(kernel_call: KernelCall, pending: list[KernelCall], group: LoopGroup) -> bool:
    """Return whether a kernel call writes the initial value of the next kernel call, a reduction that can join the group."""
    return bool(pending) and kernel_call.writes == pending[-1].writes and group.can_reduce(pending[-1])
