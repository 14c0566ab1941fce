"""The transformations that the running code is inside of.

``vmap`` and ``jvp`` enter a level for their duration. Levels are numbers that grow with time, so a transformation
inside another has the higher one, and no two ever share one: a value whose level has ended escaped from its
transformation, and can be told from those of a later one.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from typing import Any, TypeVar

from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.messages import errors

F = TypeVar("F", bound=AnyFunction)
_next_level = itertools.count(1).__next__


class Level(int):
    """One use of a transformation: a number, and what is to be known about it."""

    name: str  # as the user calls it
    where: Any  # the user's line that called it
    alive: bool = True
    size: int | None  # of the mapped axis, under vmap
    randomness: str
    interpreter: Any  # the class of its values
    recorder: Any  # of its operations, under compile
    lift_leaves: bool
    lifted: tuple[tuple[weakref.ref[Any], AnyArray], ...] = ()
    unmapped: tuple[object, ...] = ()  # the tensors among the arguments that all examples share

    def constant(self, data: object) -> Any:
        """A value of this level that stands for a lower one: all examples share it, or it has no tangent."""
        return self.interpreter.constant(data, self)

    def close(self) -> None:
        """Leave the level. Its values are dead from now on; leaves that were brought to it get their own data back."""
        self.alive = False
        levels = STACK.levels
        STACK.levels = levels[:-1] if levels and levels[-1] is self else [x for x in levels if x is not self]
        for ref, data in self.lifted:
            tensor = ref()
            if tensor is not None and getattr(tensor._raw, "level", None) == self:
                tensor._raw = data

    def __enter__(self) -> Level:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Stack(threading.local):
    def __init__(self) -> None:
        self.levels: list[Level] = []


STACK = _Stack()


def open_level(
    name: str,
    interpreter: object,
    size: int | None = None,
    randomness: str = "same",
    lift_leaves: bool = True,
) -> Level:
    """Enter a new level of this thread: for good, or for the duration of a ``with`` block.

    Args:
        name: what the user called.
        interpreter: the class of the level's values; ``interpreter.constant(data, level)`` stands for a lower one.
        size: the length of the mapped axis, for vmap.
        randomness: what random functions do inside: "error", "different", "same".
        lift_leaves: whether tensors that are made to require grad inside are brought to this level.
    """
    level = Level(_next_level())
    level.name = name
    level.interpreter = interpreter
    level.size = size
    level.randomness = randomness
    level.lift_leaves = lift_leaves
    level.where = errors.user_line()
    STACK.levels = [*STACK.levels, level]
    return level


def within(function: F) -> F:
    """A function that calls the user's: if it raises, this thread's levels are as they were, also if Ctrl-C comes as one is to be
    left, and errors of NumPy's say what made them.
    """

    @functools.wraps(function)
    def called(*args: object, **kwargs: object) -> Any:
        levels = STACK.levels
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            STACK.levels = levels
            errors.noted(error)
            raise

    return called  # type: ignore[return-value]


def innermost() -> Level | None:
    """The level that a tape started now belongs to; None outside of all."""
    for level in reversed(STACK.levels):
        if level.lift_leaves:
            return level
    return None


def lift_leaf(tensor: Any) -> None:
    """Bring a tensor that becomes a leaf inside a transformation to its level, where its tape will be.

    What is computed from it there is mixed with values of the level; a tape of a lower level would end at them. When
    the level ends the tensor has its own data again.
    """
    level = innermost()
    data = tensor._raw
    if level is not None and getattr(data, "level", 0) < level:
        level.lifted += ((weakref.ref(tensor), data),)
        tensor._raw = level.constant(data)


def escaped(value: Any) -> bool:
    """Whether an interpreter's value is used after its transformation ended."""
    level = value.level
    return type(level) is Level and not level.alive
