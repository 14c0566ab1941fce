"""Emulation of shared memory inside transformations, where values are immutable.

``z.detach()`` and ``z.data`` share the memory of ``z`` but not its derivatives. Outside transformations both have the
same array, so a write into one changes the other. Inside a transformation each write makes a new value. All tensors
that share the memory then get the new values and keep their own derivatives (see ``inplace.reach_holders``).
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.protocol import strip_derivatives

ndarray = np.ndarray


class Memory:
    """Values that several families of tensors share. A family is a base and its views.

    Attributes:
        numbers: the values.
        holders: for each family, a weak reference to its base and the view steps to its part of the values.
    """

    __slots__ = ("holders", "numbers")

    def __init__(self, numbers: AnyArray) -> None:
        self.numbers = numbers
        self.holders: list[tuple[weakref.ref[Any], tuple[Any, ...]]] = []

    def families(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return the base of each family that is alive, and the steps to its part."""
        alive = [(ref(), steps) for ref, steps in self.holders]
        return [
            (base, steps)
            for base, steps in alive
            if base is not None and base._memory is not None and base._memory[0] is self and base._memory[1] is steps
        ]

    def join(self, tensor: Any, steps: tuple[Any, ...]) -> None:
        """Add the family of a base, whose part of the values the steps lead to."""
        tensor._memory = (self, steps)
        self.holders = [(weakref.ref(base), base_steps) for base, base_steps in self.families() if base is not tensor]
        self.holders.append((weakref.ref(tensor), steps))


def share_memory(tensor: Any, source: Any) -> None:
    """Record that a tensor shares the memory of ``source``, if a transformation is running or ``source`` is its value."""
    if type(source._raw) is ndarray and not STACK.levels:
        return
    view = source._view
    base = source if view is None else view.base
    if base._memory is None:
        Memory(strip_derivatives(base._raw)).join(base, ())
    memory, steps = base._memory
    memory.join(tensor, steps if view is None else (*steps, *view.steps))
