"""Where the arrays of a plan live.

Every array is a view of a buffer: of an input, of a constant, of an output, of an array that a Python function returned, or of
a stretch of the arena, the one block of memory in which all other arrays of a plan take turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

ALIGNMENT = 64
Shape = tuple[int, ...]
#: what a buffer is: memory of the caller's, of the plan, made anew for each call, returned by a Python function
INPUT, CONSTANT, ARENA, OUTPUT, LOOSE = "input", "constant", "arena", "output", "loose"


class Buffer:
    """Memory that arrays of a plan lie in.

    Attributes:
        kind, index: what it is, and which one of its kind.
        nbytes: its size.
        root: the array that it was made for.
        first, last: when it is written first and used last.
        uses: how many steps, or groups of loops, use it.
        offset: where it begins in the arena.
    """

    __slots__ = ("first", "index", "kind", "last", "nbytes", "offset", "root", "uses")

    root: Value

    def __init__(self, kind: str, nbytes: int, index: int = 0) -> None:
        self.kind = kind
        self.nbytes = nbytes
        self.index = index
        self.first = self.last = self.offset = self.uses = 0

    def used(self, time: int) -> None:
        if not self.uses:
            self.first = time
        self.last = time
        self.uses += 1


class Value:
    """One array: a view of a buffer.

    Attributes:
        number: how it is called in what is printed.
        buffer, offset: where its first element is, in bytes from the buffer's root's first element.
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
        dtype: np.dtype[Any],
        layout: int = 0,
    ) -> None:
        self.number = number
        self.buffer = buffer
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.layout = layout
        self.array: np.ndarray[Any, Any] | None = None

    def __repr__(self) -> str:
        return f"%{self.number}"


def address(array: np.ndarray[Any, Any]) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def same_memory(array: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether an array is another one or a view of it (or of what that one is a view of)."""
    base = array.base
    return array is other or (base is not None and (base is other or base is other.base))


def with_strides(array: np.ndarray[Any, Any], strides: Shape) -> np.ndarray[Any, Any]:
    """A copy with these strides."""
    spans = [(n - 1) * stride for n, stride in zip(array.shape, strides, strict=True)] if array.size else []
    low, high = sum([span for span in spans if span < 0]), sum([span for span in spans if span > 0])
    memory = np.empty(high - low + array.itemsize, np.uint8)
    copy: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, memory, -low, strides)
    copy[...] = array
    return copy


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


def arrange(buffers: Iterable[Buffer]) -> int:
    """Give the buffers places in the arena, so that those that are needed at the same time do not overlap; its size.

    In the order of their first steps, each gets the smallest free gap that holds it, or the end.
    """
    arena = Arena()
    ordered = sorted(buffers, key=_first)
    ending = sorted(ordered, key=_last)
    done = 0
    for buffer in ordered:
        while ending[done].last < buffer.first:
            arena.release(ending[done].offset, ending[done].nbytes)
            done += 1
        buffer.offset = arena.take(buffer.nbytes)
    return arena.size


def _first(buffer: Buffer) -> int:
    return buffer.first


def _last(buffer: Buffer) -> int:
    return buffer.last


class Arena:
    """Stretches of memory that are taken and released.

    Free stretches are kept by their size, and merged with their neighbours.
    """

    def __init__(self) -> None:
        self.size = 0
        self._starts: dict[int, int] = {}  # free stretches: start -> size
        self._ends: dict[int, int] = {}  # end -> start
        self._sized: dict[int, list[int]] = {}  # size -> starts, some of them outdated

    def take(self, nbytes: int) -> int:
        size = _padded(nbytes)
        fitting = (
            size if self._has(size) else min((s for s in list(self._sized) if s > size and self._has(s)), default=0)
        )
        if not fitting:
            start = self.size
            free = self._ends.get(start)
            if free is not None:  # the end of the arena is free: make it longer
                self._forget(free)
                start = free
            self.size = start + size
            return start
        start = self._sized[fitting].pop()
        self._forget(start)
        if fitting > size:
            self._add(start + size, fitting - size)
        return start

    def release(self, start: int, nbytes: int) -> None:
        size = _padded(nbytes)
        before = self._ends.get(start)
        if before is not None:
            size += self._starts[before]
            self._forget(before)
            start = before
        after = self._starts.get(start + size)
        if after is not None:
            self._forget(start + size)
            size += after
        self._add(start, size)

    def _has(self, size: int) -> bool:
        """Whether there is a free stretch of exactly this size."""
        starts = self._sized.get(size)
        while starts:
            if self._starts.get(starts[-1]) == size:
                return True
            starts.pop()
        self._sized.pop(size, None)
        return False

    def _add(self, start: int, size: int) -> None:
        self._starts[start] = size
        self._ends[start + size] = start
        self._sized.setdefault(size, []).append(start)

    def _forget(self, start: int) -> None:
        del self._ends[start + self._starts.pop(start)]


def _padded(nbytes: int) -> int:
    return max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
