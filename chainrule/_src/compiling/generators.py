"""Detect draws from the global random number generators of Python and NumPy during a trace.

Their numbers are plain values, which a trace would contain as constants. ``function_trace`` refuses such a trace.

To read a state takes as long as to trace ten calls, since NumPy copies 624 numbers one by one. So states are compared by the memory of the
generators, and read again only if that memory has changed.
"""

from __future__ import annotations

import functools
import random
import sys
import time
from typing import Any

import numpy as np

try:
    import ctypes
except ImportError:  # a Python built without it
    ctypes = None  # type: ignore[assignment]

#: the base of ``random.Random`` in C
_RANDOM: type = random.Random.__base__  # type: ignore[assignment]


class Generators:
    """The states of the global generators before a trace. All threads of the process share the generators."""

    def __init__(self) -> None:
        self._alone = one_thread()
        self._with_numpy = "numpy.random" in sys.modules
        self._memory = _memory(self._with_numpy)
        read = _states if self._memory is None else _states_of
        self._states = read(self._with_numpy, self._memory)

    def has_drawn(self, unwatched: bool, promised: bool) -> bool:
        """Return whether this thread, rather than another one, has drawn numbers since the trace began.

        Args:
            unwatched: whether it has run code whose calls are not watched, and which may have drawn.
            promised: whether the caller promised (``pure=True``) that it does not draw. The promise counts while another thread draws.
        """
        if unwatched or (self._alone and one_thread()):
            return self._changed()
        return promised and self._changed() and not _changing()

    def _changed(self) -> bool:
        if self._memory is None:
            return not _same(_states(self._with_numpy), self._states)
        return _memory(self._with_numpy) != self._memory

    def rewind(self) -> None:
        python, of_numpy = self._states
        random.setstate(python)
        if of_numpy is not None:
            np.random.set_state(of_numpy)


def _changing() -> bool:
    """Return whether another thread draws numbers now."""
    now = Generators()
    time.sleep(0.001)
    return now._changed()


def one_thread() -> bool:
    """Return whether no other Python thread is alive."""
    return len(sys._current_frames()) == 1


def _states(with_numpy: bool, memory: object = None) -> tuple[Any, Any]:
    """Return the states of Python's generator, and of NumPy's or None.

    Args:
        with_numpy: whether NumPy's generator is loaded.
        memory: the content of their memory, by which ``_states_of`` caches the result.
    """
    return random.getstate(), np.random.get_state(legacy=False) if with_numpy else None


_states_of = functools.lru_cache(maxsize=1)(_states)


def _memory(with_numpy: bool) -> tuple[object, ...] | None:
    """Return the content of the memory of the generators; None if their states are not known to be in it."""
    of_numpy = np.random.mtrand._rand if with_numpy else None
    return _memory_of(random._inst, of_numpy) if _has_state_in_memory(with_numpy) else None


def _memory_of(python: Any, of_numpy: Any) -> tuple[object, ...] | None:
    """Return the content of the memory of a generator of Python and one of NumPy or None; None if they are of other types."""
    parts = [(python, _RANDOM)]
    if of_numpy is not None:
        bits = of_numpy._bit_generator
        if type(of_numpy) is not np.random.RandomState or type(bits) is not np.random.MT19937:
            return None
        parts += [(of_numpy, np.random.RandomState), (bits, np.random.MT19937)]
    start = object.__basicsize__
    contents = [ctypes.string_at(id(x) + start, kind.__basicsize__ - start) for x, kind in parts]
    return python.gauss_next, *map(id, (python, of_numpy)), *contents


@functools.cache
def _has_state_in_memory(with_numpy: bool) -> bool:
    """Return whether each draw changes the memory of a generator, on this interpreter and with this version of NumPy."""
    if ctypes is None or sys.implementation.name != "cpython":
        return False
    python, of_numpy = random.Random(0), np.random.RandomState(0) if with_numpy else None
    draws: list[Any] = [python.random, lambda: python.gauss(0, 1), lambda: python.gauss(0, 1)]
    if of_numpy is not None:
        draws += [of_numpy.random_sample, of_numpy.standard_normal, of_numpy.standard_normal]
    seen = [_memory_of(python, of_numpy)]
    for draw in draws:
        draw()
        seen.append(_memory_of(python, of_numpy))
    return None not in seen and len(set(seen)) == len(seen)


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, dict):
        return all(_same(x[key], y[key]) for key in x)
    if isinstance(x, tuple):
        return len(x) == len(y) and all(map(_same, x, y))
    return bool(np.array_equal(x, y)) if isinstance(x, np.ndarray) else bool(x == y)
