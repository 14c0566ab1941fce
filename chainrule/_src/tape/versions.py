"""Which memory was written in place, when, and by what.

A write is remembered under the array that owns the memory, so tensors that share storage (views, ``detach()``)
share the record; ``tensor.data`` has one of its own. Writes take their time from the same counter as nodes, so "was
this saved value overwritten?" is "was its memory written after the node's number?": saving costs nothing, and while
nothing was written since a node was made (the normal case), checking costs one comparison.
"""

from __future__ import annotations

import functools
import weakref
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src import config
from chainrule._src.arrays.any_array import copy_alike
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.tape.locks import new_lock
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.node import next_seq

_KEPT = 64  # the times of that many last writes are kept exactly


class Written:
    """The writes to one piece of memory."""

    __slots__ = ("count", "guard", "last", "times")

    def __init__(self, guard: object) -> None:
        self.count = 0
        self.times: list[int] = []
        self.last: tuple[str, Any] = ("", None)
        self.guard = guard

    def since(self, seq: int) -> int:
        return sum(time > seq for time in self.times)


class _Clock:
    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest = 0


#: ``CLOCK.latest`` is the time of the last write to anything.
CLOCK = _Clock()
#: called with an array that an in-place operation is about to overwrite
BEFORE_WRITE: list[Callable[[Any], None]] = []
#: id of the owner of some memory -> what was written there
WRITES: dict[int, Written] = {}
WRITING = new_lock()


class Lender:
    """Lends memory to an array without being an array.

    ``array`` is what the memory was taken from. If the two are to count their writes separately it is hidden in ``kept``.
    """

    __slots__ = ("__array_interface__", "array", "kept")

    def __init__(self, interface: dict[str, object], array: AnyArray | None, kept: object) -> None:
        self.__array_interface__ = interface
        self.array = array
        self.kept = kept


def owner(array: NumpyArray) -> Any:
    """The object that owns the array's memory."""
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


def apart(array: NumpyArray) -> NumpyArray:
    """The same memory under another owner: writes through it are not recorded for this one (``tensor.data``)."""
    lender = owner(array).base
    if type(lender) is memoryview:  # do not let a chain grow when this is done again and again
        return np.asarray(Lender(array.__array_interface__, None, lender.obj))
    if type(lender) is Lender:
        return np.asarray(Lender(array.__array_interface__, None, lender.kept))
    lent: Any = array  # a buffer only to the stubs of Python 3.12 and later
    return np.asarray(memoryview(lent))


def strided(array: NumpyArray, shape: tuple[int, ...], strides: tuple[int, ...]) -> NumpyArray:
    """A view of an array's memory with any shape and strides (in bytes)."""
    interface = {**array.__array_interface__, "shape": shape, "strides": strides}
    return np.asarray(Lender(interface, array, None))


def about_to_write(array: AnyArray) -> None:
    """Tell those who want to know (see ``BEFORE_WRITE``) that an array is going to be overwritten."""
    for tell in BEFORE_WRITE:
        tell(array)


def wrote(array: AnyArray, op: str, where: object) -> None:
    """Record that ``op``, at source line ``where``, wrote into the array's memory."""
    if not isinstance(array, np.ndarray):
        return
    with WRITING:  # so that the clock never goes back
        CLOCK.latest = time = next_seq()
        written = record_of(array)
        written.count += 1
        written.times.append(time)
        del written.times[:-_KEPT]
        written.last = (op, where)


def moved(array: AnyArray) -> None:
    """Count an in-place change of shape: a new version, though nothing that was saved is overwritten."""
    if isinstance(array, np.ndarray):
        with WRITING:
            written = record_of(array)
            written.count += 1
            written.times.insert(0, 0)


def dropping(entries: dict[int, Any], key: int) -> Callable[[object], object]:
    """Return a callback of a weak reference that removes an entry: ``entries.pop(key, reference)``.

    It runs in C alone. In a callback that is written in Python, Ctrl-C would be printed and lost.
    """
    return functools.partial(entries.pop, key)


def record_of(array: NumpyArray) -> Written:
    """The record of the memory of an array, a new one if nothing was written there yet."""
    memory = owner(array)
    key = id(memory)
    written = WRITES.get(key)
    if written is None:
        written = WRITES[key] = Written(weakref.ref(memory, dropping(WRITES, key)))
    return written


def writes_of(array: object) -> Written | None:
    return WRITES.get(id(owner(array))) if isinstance(array, np.ndarray) else None


def version_of(array: AnyArray) -> int:
    """How often the array's memory was written in place."""
    written = writes_of(array)
    return written.count if written else 0


# -- plain arrays on the tape ------------------------------------------------------------------------------------------
#
# Nothing tells when a plain NumPy array is written to. So the tape saves copies of small ones, and of large ones it keeps a
# fingerprint, which is compared before the next sweep, and when the same array is saved again.

COPIED = 1 << 16  # bytes up to which a copy is made: it costs about what one multiplication does
_SAMPLES = 256
#: id of an array that was saved without a copy -> the array, and its fingerprint
GUARDED: dict[int, tuple[weakref.ref[Any], int]] = {}


def protected(array: Any) -> Any:
    """A plain array as the tape may save it: what is written to it later does not change a derivative silently."""
    if LOCAL.recorder is not None:  # which reads it where it lies, and looks itself
        return array
    if array.nbytes <= COPIED or config.STRICT_ARRAYS:
        return copy_alike(array)
    key = id(array)
    now = fingerprint(array)
    before = GUARDED.get(key)
    if before is None:
        GUARDED[key] = (weakref.ref(array, dropping(GUARDED, key)), now)
    elif before[1] != now:
        GUARDED[key] = (before[0], now)
        wrote(array, "a NumPy array", None)
    return array


def check_guarded() -> None:
    """Record the writes to plain arrays that the tape saved without a copy, as far as their fingerprints tell."""
    for key, (ref, before) in list(GUARDED.items()):
        array = ref()
        if array is None:
            continue
        now = fingerprint(array)
        if now != before:
            GUARDED[key] = (ref, now)
            wrote(array, "a NumPy array", None)


def samples(array: NumpyArray) -> NumpyArray:
    """A view of elements taken evenly from the whole array."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        flat = array.reshape(-1, order="A")
        return flat[:: max(1, flat.size // _SAMPLES)]
    steps = [slice(None)] * array.ndim
    left = float(_SAMPLES)
    for done, axis in enumerate(sorted(range(array.ndim), key=array.shape.__getitem__)):  # what a short axis lacks,
        each = int(left ** (1 / (array.ndim - done))) + 1  # the longer ones after it make up
        steps[axis] = slice(None, None, max(1, array.shape[axis] // each))
        left = max(1.0, left / min(each, max(1, array.shape[axis])))
    return array[tuple(steps)]


def fingerprint(array: NumpyArray) -> int:
    """A hash of some of an array's elements."""
    return hash(samples(array).tobytes())


def digest(array: NumpyArray) -> int:
    """A number that changes when any of an array's elements does."""
    return zlib.crc32(np.ascontiguousarray(array).data.cast("B")) if array.size else 0
