"""Which memory was written in place, when, and by what.

A write is remembered under the array that owns the memory, so tensors that share storage (views, ``detach()``)
share the record. Writes take their time from the same counter as nodes, so "was this saved value overwritten?" is
"was its memory written after the node's number?": saving costs nothing, and while nothing was written since a node was made
(the normal case), checking costs one comparison.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from chainrule.core.node import next_seq

_KEPT = 64  # the times of that many last writes are kept exactly


class Written:
    """The writes to one piece of memory."""

    __slots__ = ("count", "guard", "last", "times")

    def __init__(self, guard: Any) -> None:
        self.count = 0
        self.times: list[int] = []
        self.last: tuple[str, Any] = ("", None)
        self.guard = guard

    def since(self, seq: int) -> int:
        return sum(time > seq for time in self.times)


class _Forget:
    """Drops the record of a piece of memory when its owner dies."""

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key

    def __call__(self, _: Any) -> None:
        _WRITES.pop(self.key, None)


class _Clock:
    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest = 0


#: ``CLOCK.latest`` is the time of the last write to anything.
CLOCK = _Clock()
_WRITES: dict[int, Written] = {}


def owner(array: np.ndarray[Any, Any]) -> Any:
    """The object that owns the array's memory."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def wrote(array: Any, op: str, where: Any) -> None:
    """Record that ``op``, at source line ``where``, wrote into the array's memory."""
    if not isinstance(array, np.ndarray):
        return
    memory = owner(array)
    key = id(memory)
    written = _WRITES.get(key)
    if written is None:
        written = _WRITES[key] = Written(weakref.ref(memory, _Forget(key)))
    time = next_seq()
    written.count += 1
    written.times.append(time)
    del written.times[:-_KEPT]
    written.last = (op, where)
    CLOCK.latest = time


def writes_of(array: Any) -> Written | None:
    return _WRITES.get(id(owner(array))) if isinstance(array, np.ndarray) else None


def version_of(array: Any) -> int:
    """How often the array's memory was written in place."""
    written = writes_of(array)
    return written.count if written else 0
