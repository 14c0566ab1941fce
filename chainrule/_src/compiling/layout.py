"""Memory layout of a plan: buffers, views of buffers, and the arena.

Every array of a plan is a view of a buffer: an input, a constant, an output, an array that a Python function returned, or a
part of the arena. The arena is one block of memory that all temporaries share. ``assign_arena_offsets`` gives buffers offsets
in it by their lifetimes.
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
#: kinds of buffers: memory of the caller, a constant, a part of the arena, a new output of each run, an array that Python returned
INPUT, CONSTANT, ARENA, OUTPUT, LOOSE = "input", "constant", "arena", "output", "loose"


class Buffer:
    """Memory of arrays of a plan.

    Attributes:
        kind, index: its kind, and its index among inputs or outputs.
        nbytes: its size.
        root: the array that it was made for.
        first, last: the first and last times at which it is used.
        offset: its offset in the arena.
        slots: whether a detected loop writes it: one slot per iteration, or a ring of slots.
    """

    __slots__ = ("first", "index", "kind", "last", "nbytes", "offset", "root", "slots")

    root: BufferView

    def __init__(self, kind: str, nbytes: int, index: int = 0) -> None:
        self.kind = kind
        self.nbytes = nbytes
        self.index = index
        self.first = self.last = -1
        self.offset = 0
        self.slots = False


#: (bytes per iteration, number of slots of a ring buffer or 0, first slot)
Move = tuple[int, int, int]


class MovingBuffer(NamedTuple):
    """A location in a buffer that moves while loops run: one move for each loop around it, outermost first."""

    root: Buffer
    moves: tuple[Move | None, ...]

    kind: str = "moving"


def root_of(location: Any) -> Buffer:
    """Return the buffer of a location."""
    return location.root if type(location) is MovingBuffer else location


class BufferView:
    """One array: a view of a buffer.

    Attributes:
        number: its number in printed plans.
        buffer, offset: the location of its first element, in bytes: from the beginning of a buffer of the arena, else from the
            first element of the buffer's root.
        shape, strides, dtype: the recorded ones.
        layout: a number for these three; 0 if not yet set.
        array: the content of a constant.
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


def data_address(array: NumpyArray) -> int:
    return array.__array_interface__["data"][0]


def same_memory(array: NumpyArray, other: NumpyArray) -> bool:
    """Return whether an array is another one, a view of it, or a view of the same base."""
    base = array.base
    if array is other or base is None:
        return array is other
    if not isinstance(base, np.ndarray):  # a view made from an address
        return np.may_share_memory(array, other)
    return base is other or base is other.base


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether the elements fill their memory without gaps, in some order of the axes, with positive strides."""
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
def memory_span(shape: Shape, strides: Shape, itemsize: int) -> tuple[int, int]:
    """Return the offset of the first element in the memory that an array spans, and the bytes of that memory."""
    if 0 in shape:
        return 0, 0
    reaches = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    before = -sum([reach for reach in reaches if reach < 0])
    return before, before + sum([reach for reach in reaches if reach > 0]) + itemsize


def assign_arena_offsets(buffers: Iterable[Buffer]) -> int:
    """Assign offsets in the arena, so that buffers with overlapping lifetimes do not overlap; return the size of the arena."""
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
    """A best-fit allocator of offsets, which merges free blocks.

    Free blocks are indexed by start and by end, to merge neighbours, and by size in a sorted list.
    """

    def __init__(self) -> None:
        self.size = 0
        self._end = 0  # the end of the last allocated block
        self._sizes: dict[int, int] = {}  # start -> size of free blocks
        self._starts: dict[int, int] = {}  # end -> start of free blocks
        self._free: dict[int, dict[int, None]] = {}  # size -> starts of free blocks; no empty entries
        self._sorted: list[int] = []  # the keys of ``_free``

    def take(self, nbytes: int) -> int:
        size = free = arena_nbytes(nbytes)
        if size not in self._free:
            position = bisect_left(self._sorted, size)
            if position == len(self._sorted):
                self._end += size
                self.size = max(self.size, self._end)
                return self._end - size
            free = self._sorted[position]
        start = next(reversed(self._free[free]))
        self._remove(start, free)
        if free > size:
            self._add(start + size, free - size)
        return start

    def release(self, start: int, nbytes: int) -> None:
        size = arena_nbytes(nbytes)
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


def arena_nbytes(nbytes: int) -> int:
    """Return the bytes that an array takes in the arena: a multiple of the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT or ALIGNMENT


def slot_nbytes(nbytes: int) -> int:
    """Return the bytes from one slot of a buffer to the next. Small slots share a cache line, and none crosses two."""
    return arena_nbytes(nbytes) if nbytes > ALIGNMENT // 2 else 1 << max(nbytes - 1, 7).bit_length()
