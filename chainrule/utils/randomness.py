"""Save the state of the random number generators, and run a function with the saved state.

``checkpoint`` saves a ``Randomness`` for the second run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from chainrule._src.ops.random import default_generator
from chainrule._src.tape.locks import new_lock

_LOCK = new_lock()  # threads share the generators: only one replay at a time


def _states() -> tuple[Any, Any]:
    """Return the states of the default generator and of NumPy's global one; None for a generator not used yet."""
    default_state = None if default_generator._state is None else default_generator._get_state()
    legacy = sys.modules.get("numpy.random.mtrand")
    return default_state, None if legacy is None else legacy.get_state()


def _restore(states: tuple[Any, Any]) -> None:
    default_state, numpy_state = states
    if default_state is not None:
        default_generator._set_state(default_state)
    elif default_generator._state is not None:
        default_generator.manual_seed(default_generator.initial_seed())
    if numpy_state is not None:
        sys.modules["numpy.random.mtrand"].set_state(numpy_state)


class Randomness:
    """The state of the generators at construction."""

    __slots__ = ("states",)

    def __init__(self) -> None:
        self.states = _states()

    def replay(self, run: Callable[[], Any]) -> Any:
        """Call a function with the saved state, then restore the current state; return the function's result.

        (Not a context manager: one interrupted by Ctrl-C could hold the lock until it is garbage-collected.)
        """
        with _LOCK:
            now = _states()
            try:
                _restore(self.states)
                return run()
            finally:
                _restore(now)
