"""The state of the random numbers, kept so that the same ones can be drawn again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from chainrule._src.ops.random import default_generator
from chainrule._src.tape.locks import new_lock

_LOCK = new_lock()  # generators are shared between threads: one second run at a time


def _states() -> tuple[Any, Any]:
    """The states of the default generator and of NumPy's global one; None where it was not used yet."""
    ours = None if default_generator._state is None else default_generator._get_state()
    legacy = sys.modules.get("numpy.random.mtrand")
    return ours, None if legacy is None else legacy.get_state()


def _restore(states: tuple[Any, Any]) -> None:
    ours, theirs = states
    if ours is not None:
        default_generator._set_state(ours)
    elif default_generator._state is not None:
        default_generator.manual_seed(default_generator.initial_seed())
    if theirs is not None:
        sys.modules["numpy.random.mtrand"].set_state(theirs)


class Randomness:
    """The state at the time this was made."""

    __slots__ = ("states",)

    def __init__(self) -> None:
        self.states = _states()

    def again(self, run: Callable[[], Any]) -> Any:
        """What a function gives whose random numbers are those that came after this was made; afterwards nothing has happened.

        (A context manager that Ctrl-C cuts off would keep the lock until somebody collects it, in whatever thread.)
        """
        with _LOCK:
            now = _states()
            try:
                _restore(self.states)
                return run()
            finally:
                _restore(now)
