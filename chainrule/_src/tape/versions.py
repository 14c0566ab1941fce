"""Version counters: the time and the operation of in-place writes to memory.

In-place operations call ``note_write``, and the backward pass compares the times of writes with the nodes' sequence numbers.
A write is recorded under the array that owns the memory, so tensors that share storage (views, ``detach()``) share one
record; ``tensor.data`` has a separate record. Writes and nodes take their numbers from one counter. A saved value was
overwritten if its memory was written after the node was made. Saving is therefore free. If nothing was written since a
node was made, the check is one comparison.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src import config
from chainrule._src.arrays.any_array import copy_alike
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.locks import new_lock
from chainrule._src.tape.node import next_seq

_MAX_TIMES = 64  # number of latest writes whose times are kept


class WriteRecord:
    """The writes to the memory of one array: their number, the times of the latest, and the last operation."""

    __slots__ = ("count", "guard", "last", "times")

    def __init__(self, guard: object) -> None:
        self.count = 0
        self.times: list[int] = []
        self.last: tuple[str, Any] = ("", None)
        self.guard = guard  # a weak reference that removes the record when the owner of the memory is freed

    def since(self, seq: int) -> int:
        """Return the number of writes after a sequence number."""
        return sum(time > seq for time in self.times)


class _Clock:
    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest = 0


#: ``CLOCK.latest`` is the time of the last write to any memory.
CLOCK = _Clock()
#: callbacks that run with an array before an in-place operation overwrites it
BEFORE_WRITE: list[Callable[[Any], None]] = []
#: id of the array that owns the memory -> the writes to it
WRITES: dict[int, WriteRecord] = {}
WRITING = new_lock()


class Lender:
    """The base of an array that uses the memory of another array with a different shape, strides or write record.

    ``array`` is the array that owns the memory and shares its write record. If the writes are to be counted separately,
    ``array`` is None and ``kept`` keeps the memory alive.
    """

    __slots__ = ("__array_interface__", "array", "kept")

    def __init__(self, interface: dict[str, object], array: AnyArray | None, kept: object) -> None:
        self.__array_interface__ = interface
        self.array = array
        self.kept = kept


def owner(array: NumpyArray) -> Any:
    """Return the object that owns the array's memory."""
    base: Any = array.base
    while base is not None:
        if type(base) is Lender:
            base = base.array
            if base is None:
                break
        if not isinstance(base, np.ndarray):
            break
        array, base = base, base.base
    return array


def alias_with_own_versions(array: NumpyArray) -> NumpyArray:
    """Return an array of the same memory with a write record of its own (for ``tensor.data``)."""
    lender = owner(array).base
    if type(lender) is memoryview:  # repeated calls must not build a chain
        return np.asarray(Lender(array.__array_interface__, None, lender.obj))
    if type(lender) is Lender:
        return np.asarray(Lender(array.__array_interface__, None, lender.kept))
    buffer: Any = array  # ``Any``: stubs declare ndarray a buffer only for Python 3.12 and later
    return np.asarray(memoryview(buffer))


def strided_view(array: NumpyArray, shape: tuple[int, ...], strides: tuple[int, ...]) -> NumpyArray:
    """Return a view of an array's memory with this shape and these strides (in bytes)."""
    interface = {**array.__array_interface__, "shape": shape, "strides": strides}
    return np.asarray(Lender(interface, array, None))


def about_to_write(array: AnyArray) -> None:
    """Run the callbacks in ``BEFORE_WRITE`` for an array that is going to be overwritten."""
    for callback in BEFORE_WRITE:
        callback(array)


def note_write(array: AnyArray, op: str, where: object) -> None:
    """Record that ``op``, at source line ``where``, wrote into the array's memory."""
    if not isinstance(array, np.ndarray):
        return
    with WRITING:  # otherwise another thread could set the clock back
        CLOCK.latest = time = next_seq()
        written = record_of(array)
        written.count += 1
        written.times.append(time)
        del written.times[:-_MAX_TIMES]
        written.last = (op, where)


def count_shape_change(array: AnyArray) -> None:
    """Count an in-place change of shape: the version increases, but no saved value is overwritten."""
    if isinstance(array, np.ndarray):
        with WRITING:
            written = record_of(array)
            written.count += 1
            written.times.insert(0, 0)


def entry_remover(entries: dict[int, Any], key: int) -> Callable[[object], object]:
    """Return a callback of a weak reference that removes an entry: ``entries.pop(key, reference)``.

    The callback runs in C only. In a Python callback a KeyboardInterrupt would be printed and lost.
    """
    return functools.partial(entries.pop, key)


def record_of(array: NumpyArray) -> WriteRecord:
    """Return the record of writes to an array's memory; make one if there is none."""
    memory = owner(array)
    key = id(memory)
    written = WRITES.get(key)
    if written is None:
        written = WRITES[key] = WriteRecord(weakref.ref(memory, entry_remover(WRITES, key)))
    return written


def writes_of(array: object) -> WriteRecord | None:
    """Return the record of writes to an array's memory; None if there were no writes."""
    return WRITES.get(id(owner(array))) if isinstance(array, np.ndarray) else None


def version_of(array: AnyArray) -> int:
    """Return the number of in-place writes to the array's memory."""
    written = writes_of(array)
    return written.count if written else 0


# -- plain arrays on the tape ------------------------------------------------------------------------------------------
#
# NumPy does not report writes to plain arrays. The tape therefore saves copies of small arrays. For a large array it keeps
# a fingerprint, which is compared before the next sweep and when the same array is saved again.

COPIED = 1 << 16  # number of bytes up to which arrays are copied; a copy takes about as long as one multiplication
_SAMPLES = 256
#: id of an array that was saved without a copy -> a weak reference to the array, and its fingerprint
GUARDED: dict[int, tuple[weakref.ref[Any], int]] = {}


def saveable_array(array: Any) -> Any:
    """Return a plain array that the tape can save: a copy, or the array itself with its fingerprint registered."""
    if trace_hooks.is_tracing():  # a trace reads the array in place in each call, and checks it itself
        return array
    if array.nbytes <= COPIED or config.STRICT_ARRAYS:
        return copy_alike(array)
    key = id(array)
    current = fingerprint(array)
    entry = GUARDED.get(key)
    if entry is None:
        GUARDED[key] = (weakref.ref(array, entry_remover(GUARDED, key)), current)
    elif entry[1] != current:
        GUARDED[key] = (entry[0], current)
        note_write(array, "a NumPy array", None)
    return array


def check_guarded() -> None:
    """Record a write to each guarded plain array whose fingerprint has changed."""
    for key, (ref, before) in list(GUARDED.items()):
        array = ref()
        if array is None:
            continue
        current = fingerprint(array)
        if current != before:
            GUARDED[key] = (ref, current)
            note_write(array, "a NumPy array", None)


def sample_elements(array: NumpyArray) -> NumpyArray:
    """Return a view of about ``_SAMPLES`` evenly spaced elements of the array."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        flat = array.reshape(-1, order="A")
        return flat[:: max(1, flat.size // _SAMPLES)]
    steps = [slice(None)] * array.ndim
    remaining = float(_SAMPLES)
    # shortest axis first: the longer axes get the samples that it has no elements for
    for done, axis in enumerate(sorted(range(array.ndim), key=array.shape.__getitem__)):
        per_axis = int(remaining ** (1 / (array.ndim - done))) + 1
        steps[axis] = slice(None, None, max(1, array.shape[axis] // per_axis))
        remaining = max(1.0, remaining / min(per_axis, max(1, array.shape[axis])))
    return array[tuple(steps)]


def fingerprint(array: NumpyArray) -> int:
    """Return a hash of ``sample_elements(array)``."""
    return hash(sample_elements(array).tobytes())


def digest(array: NumpyArray) -> int:
    """Return a checksum of all elements of an array."""
    import zlib

    return zlib.crc32(np.ascontiguousarray(array).data.cast("B")) if array.size else 0
