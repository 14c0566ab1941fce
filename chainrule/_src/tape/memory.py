"""Memory that tensors share inside transformations, where their data is not an array that could be written.

``z.detach()`` and ``z.data`` have the numbers of ``z`` and derivatives of their own. Outside transformations both hold
one array, so a write into either reaches the other. The values of a transformation are never written: each write makes
new ones, and whoever shares the memory is given the new numbers, and keeps its own derivatives.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.protocol import detached

ndarray = np.ndarray


class Memory:
    """Numbers that several families of tensors (a base and its views) share: where each family lies in them."""

    __slots__ = ("holders", "numbers")

    def __init__(self, numbers: AnyArray) -> None:
        self.numbers = numbers
        self.holders: list[tuple[weakref.ref[Any], tuple[Any, ...]]] = []

    def families(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """The base of each family that is still here, and the steps that lead to its part."""
        alive = [(ref(), steps) for ref, steps in self.holders]
        return [
            (base, steps)
            for base, steps in alive
            if base is not None and base._memory is not None and base._memory[0] is self and base._memory[1] is steps
        ]

    def join(self, tensor: Any, steps: tuple[Any, ...]) -> None:
        """Let a tensor, the base of its family, have the part of the numbers that the steps lead to."""
        tensor._memory = (self, steps)
        self.holders = [(weakref.ref(base), at) for base, at in self.families() if base is not tensor]
        self.holders.append((weakref.ref(tensor), steps))


def share_memory(tensor: Any, source: Any) -> None:
    """Note that a tensor made of ``source`` has its memory, if a transformation could part the two."""
    if type(source._raw) is ndarray and not STACK.levels:
        return
    view = source._view
    base = source if view is None else view.base
    if base._memory is None:
        Memory(detached(base._raw)).join(base, ())
    memory, steps = base._memory
    memory.join(tensor, steps if view is None else (*steps, *view.steps))
