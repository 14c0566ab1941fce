"""Loops of kernel calls: the form in which loops of a trace and recorded loops (``scan``) are encoded.

``looped_lowering`` and ``scan_lowering`` make ``RepeatedCalls``: the kernel calls of a body, with locations that move. ``arranged``
returns them as ``KernelLoop`` objects, expands recorded loops, and groups large kernel calls. ``native_executor`` encodes the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.grouping import KernelCall, LoopGroup, group_kernel_calls
from chainrule._src.compiling.layout import (
    ALIGNMENT,
    CONSTANT,
    Buffer,
    BufferView,
    Move,
    MovingBuffer,
    data_address,
    root_of,
)
from chainrule._src.compiling.loops import InnerLoop


class RepeatedCalls:
    """The body of a loop, before kernel calls are grouped.

    Attributes:
        calls: the kernel calls and inner loops of the body. The loop of a kernel call may be a ``ScanLoop``.
        count: the number of iterations.
        local: the buffers that each iteration writes before it reads them.
    """

    def __init__(self, calls: list[BodyCall], count: int, local: set[Buffer]) -> None:
        self.calls, self.count, self.local = calls, count, local

    @property
    def touched(self) -> set[Buffer]:
        """All buffers that it uses."""
        return set().union(*[call.touched for call in self.calls])

    @property
    def writes(self) -> list[Buffer]:
        return list(dict.fromkeys([buffer for call in self.calls for buffer in call.writes]))


#: a kernel call, or a loop of kernel calls
BodyCall = KernelCall | RepeatedCalls


class KernelLoop:
    """A loop of kernel calls.

    Args:
        body: its body.
        depth: the number of loops around it.

    Attributes:
        items: the kernel calls, groups and inner loops of the body.
        count, local: see ``RepeatedCalls``.
        moving: the moving locations of operands.
        touched, writes: all buffers that it uses, and the buffers that it writes.
    """

    def __init__(self, body: RepeatedCalls, depth: int) -> None:
        self.count, self.local, self.depth = body.count, body.local, depth
        self.items = arranged(body.calls, depth + 1)
        self.moving = dict.fromkeys(
            [
                location
                for location in (*_locations(body.calls), *_locations(self.items))
                if type(location) is MovingBuffer
            ]
        )
        self.touched, self.writes = body.touched, body.writes
        within = {buffer for item in self.items for buffer in item.touched}
        self.touched |= {buffer for buffer in within if buffer.kind == CONSTANT}  # constants of recorded loops


def _locations(items: Sequence[Any]) -> list[Any]:
    """Return the locations of the operands of kernel calls, and the moving locations of loops."""
    locations: list[Any] = []
    for item in items:
        if type(item) is KernelLoop:
            locations += item.moving
        elif type(item) is KernelCall:
            locations += [location for location, _, _ in item.args]
        elif type(item) is LoopGroup:
            locations += _locations(item.kernel_calls)
    return locations


Item = KernelCall | LoopGroup | KernelLoop


def arranged(calls: Sequence[BodyCall], depth: int) -> list[Item]:
    """Return kernel calls and loops in order, with recorded loops expanded, and large kernel calls in groups.

    Args:
        depth: the number of loops around them.
    """
    items: list[Item] = []
    plain: list[KernelCall] = []  # since the last loop
    for call in calls:
        if isinstance(call, KernelCall) and type(call.loop) is InnerLoop:
            plain.append(call)
            continue
        items += group_kernel_calls(plain)
        items += [KernelLoop(call, depth)] if isinstance(call, RepeatedCalls) else call.loop.items(call.args, depth)
        plain = []
    return items + group_kernel_calls(plain)


def within_loops(location: Any, depth: int, moves: tuple[Move | None, ...]) -> Any:
    """Return a location that also moves in loops whose outermost one is at ``depth``."""
    before = location.moves if type(location) is MovingBuffer else ()
    return moving(root_of(location), (*before, *[None] * (depth - len(before)), *moves))


def moving(root: Buffer, moves: Sequence[Move | None]) -> Any:
    """Return a location in a buffer with a move in each loop around it, outermost first; None for loops in which it does not move."""
    moves = tuple(moves)
    while moves and moves[-1] is None:
        moves = moves[:-1]
    return MovingBuffer(root, moves) if moves else root


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
