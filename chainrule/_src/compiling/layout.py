"""Where the arrays of a plan live.

Every array is a view of a buffer: of an input, of a constant, of an output, of an array that a Python function returned, or of
a stretch of the arena, the one block of memory in which all other arrays of a plan take turns.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import NumpyArray, NumpyDType, Shape

ALIGNMENT = 64
#: what a buffer is: memory of the caller's, of the plan, made anew for each call, returned by a Python function
INPUT, CONSTANT, ARENA, OUTPUT, LOOSE = "input", "constant", "arena", "output", "loose"


class Buffer:
    """Memory that arrays of a plan lie in.

    Attributes:
        kind, index: what it is, and which one of its kind.
        nbytes: its size.
        root: the array that it was made for.
        first, last: when it is used first and last.
        offset: where it begins in the arena.
        stack, at: the buffer that it is a part of, and from which byte on: one of those that a loop writes (``rolling``).
        slots: whether a detected loop writes it: one slot per iteration, or a ring of slots.
    """

    __slots__ = ("first", "index", "kind", "last", "nbytes", "offset", "parent", "parent_offset", "root", "slots")

    root: BufferView

    def __init__(self, kind: str, nbytes: int, index: int = 0) -> None:
        self.kind = kind
        self.nbytes = nbytes
        self.index = index
        self.first = self.last = -1
        self.offset = self.parent_offset = 0
        self.slots = False
        self.parent: Buffer | None = None


#: how far a place moves each time round, the length of the ring after which it is back (0: none), and where it begins in it
Move = tuple[int, int, int]


class MovingBuffer(NamedTuple):
    """A place that moves while a loop runs: in a buffer, along one way for each of the loops around it, the outermost first."""

    root: Buffer
    moves: tuple[Move | None, ...]

    kind: str = "moving"


def root_of(location: Any) -> Buffer:
    """The buffer that a place is in."""
    return location.root if type(location) is MovingBuffer else location


def enclosing_buffer(buffer: Buffer) -> tuple[Buffer, int]:
    """The buffer that one lies in, and where."""
    offset = 0
    while buffer.parent is not None:
        offset += buffer.parent_offset
        buffer = buffer.parent
    return buffer, offset


class BufferView:
    """One array: a view of a buffer.

    Attributes:
        number: how it is called in what is printed.
        buffer, offset: where its first element is, in bytes from the beginning of a buffer of the arena, and from the root's first
            element of others.
        shape, strides, dtype: as recorded.
        layout: a number for these three; 0 if it has none yet.
        array: its content, if it is a constant.
    """

    __slots__ = ("array", "buffer", "dtype", "layout", "number", "offset", "shape", "strides")

    def __init__(
        self,
        number: int,
        buffer: Buffer,
        offset: int,
        shape: Shape,
        strides: Shape,
        dtype: NumpyDType,
        layout: int = 0,
    ) -> None:
        self.number = number
        self.buffer = buffer
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.layout = layout
        self.array: NumpyArray | None = None

    def __repr__(self) -> str:
        return f"%{self.number}"


def address(array: NumpyArray) -> int:
    return array.__array_interface__["data"][0]


def same_memory(array: NumpyArray, other: NumpyArray) -> bool:
    """Whether an array is another one or a view of it (or of what that one is a view of)."""
    base = array.base
    if array is other or base is None:
        return array is other
    if not isinstance(base, np.ndarray):  # it was made by its address
        return np.may_share_memory(array, other)
    return base is other or base is other.base


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether the elements fill their memory, from the first on, in some order of the axes."""
    if len(shape) == 1:
        return strides[0] == itemsize or shape[0] < 2
    expected = itemsize
    for stride, length in sorted(zip(strides, shape, strict=True)):
        if length == 1:
            continue
        if stride != expected:
            return False
        expected *= length
    return True


@lru_cache(maxsize=4096)
def span(shape: Shape, strides: Shape, itemsize: int) -> tuple[int, int]:
    """Where the first element of an array is in the memory that its elements need, and the bytes of that memory."""
    if 0 in shape:
        return 0, 0
    reaches = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    before = -sum([reach for reach in reaches if reach < 0])
    return before, before + sum([reach for reach in reaches if reach > 0]) + itemsize


def arrange(buffers: Iterable[Buffer]) -> int:
    """Give the buffers places in the arena, so that those that are needed at the same time do not overlap; its size."""
    arena = Arena()
    ordered = sorted(buffers, key=attrgetter("first"))
    ending = sorted(ordered, key=attrgetter("last"))
    done = 0
    for buffer in ordered:
        while ending[done].last < buffer.first:
            arena.release(ending[done].offset, ending[done].nbytes)
            done += 1
        buffer.offset = arena.take(buffer.nbytes)
    return arena.size


class Arena:
    """Stretches of memory that are taken and released.

    A stretch that is free is joined with free neighbours at once. Each is found by its start and by its end; the smallest that is
    large enough is found in the sorted sizes of those that there are.
    """

    def __init__(self) -> None:
        self.size = 0
        self._end = 0  # from here on nothing is taken
        self._sizes: dict[int, int] = {}  # start -> size, of those that are free
        self._starts: dict[int, int] = {}  # end -> start
        self._free: dict[int, dict[int, None]] = {}  # size -> starts; without those that are empty
        self._sorted: list[int] = []  # its keys

    def take(self, nbytes: int) -> int:
        size = padded(nbytes)
        starts = self._free.get(size)
        if starts:
            start = next(reversed(starts))
            self._remove(start, size)
            return start
        position = bisect_left(self._sorted, size)
        if position == len(self._sorted):
            self._end += size
            self.size = max(self.size, self._end)
            return self._end - size
        free = self._sorted[position]
        start = next(reversed(self._free[free]))
        self._remove(start, free)
        self._add(start + size, free - size)
        return start

    def release(self, start: int, nbytes: int) -> None:
        size = padded(nbytes)
        after = self._sizes.get(start + size)
        if after is not None:
            self._remove(start + size, after)
            size += after
        before = self._starts.get(start)
        if before is not None:
            self._remove(before, start - before)
            start, size = before, size + start - before
        if start + size == self._end:
            self._end = start
        else:
            self._add(start, size)

    def _add(self, start: int, size: int) -> None:
        self._sizes[start] = size
        self._starts[start + size] = start
        starts = self._free.get(size)
        if starts is None:
            starts = self._free[size] = {}
            insort(self._sorted, size)
        starts[start] = None

    def _remove(self, start: int, size: int) -> None:
        del self._sizes[start], self._starts[start + size]
        starts = self._free[size]
        del starts[start]
        if not starts:
            del self._free[size], self._sorted[bisect_left(self._sorted, size)]


def padded(nbytes: int) -> int:
    """The bytes that an array takes in the arena."""
    return max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)


def packed(nbytes: int) -> int:
    """The bytes from one array to the next in a stack: small ones share a line of cache, and none lies in two."""
    return padded(nbytes) if nbytes > ALIGNMENT // 2 else 1 << max(nbytes - 1, 7).bit_length()
