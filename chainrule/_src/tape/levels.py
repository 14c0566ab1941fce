"""Levels: one for each running transformation, on a thread-local stack.

``vmap`` and ``jvp`` open a level for their duration. Levels are unique integers that grow with time, so an inner
transformation has a higher level than the outer one. A value whose level is closed has escaped from its transformation
and differs from the values of later ones.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from typing import Any, TypeVar

from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.messages import errors
from chainrule._src.tape.modes import LOCAL

F = TypeVar("F", bound=AnyFunction)
_next_level = itertools.count(1).__next__


class Level(int):
    """One running transformation: its number and its properties."""

    name: str  # the function that the user called
    where: Any  # the user's line that called it
    alive: bool = True
    size: int | None  # of the mapped axis, under vmap
    randomness: str
    interpreter: Any  # the class of its values
    recorder: Any  # the recorder of its operations, under compile
    lift_leaves: bool
    lifted: tuple[tuple[weakref.ref[Any], AnyArray], ...] = ()
    unmapped: tuple[object, ...] = ()  # the tensor arguments that all examples share

    def constant(self, data: object) -> Any:
        """Return a value of this level for data of a lower one: all examples share it, or it has no tangent."""
        return self.interpreter.constant(data, self)

    def close(self) -> None:
        """Close the level. Its values become invalid, and lifted leaves get their original data back."""
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


def call_untraced(function: F, *args: Any, **kwargs: Any) -> Any:
    """Call a function outside of all transformations, and of the trace and the watches of this thread."""
    levels, recorder, watch = STACK.levels, LOCAL.recorder, LOCAL.watch
    STACK.levels, LOCAL.recorder, LOCAL.watch = [], None, None
    try:
        return function(*args, **kwargs)
    finally:
        STACK.levels, LOCAL.recorder, LOCAL.watch = levels, recorder, watch


def open_level(
    name: str,
    interpreter: object,
    size: int | None = None,
    randomness: str = "same",
    lift_leaves: bool = True,
) -> Level:
    """Open a new level of this thread, until ``close`` or the end of a ``with`` block.

    Args:
        name: the function that the user called.
        interpreter: the class of the level's values; ``interpreter.constant(data, level)`` lifts data of a lower level.
        size: the length of the mapped axis, for vmap.
        randomness: the behaviour of random functions inside: "error", "different", "same".
        lift_leaves: lift tensors to this level when they are made to require grad inside.
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


def restoring_levels(function: F) -> F:
    """Wrap a function that calls the user's function.

    If it raises, also by Ctrl-C while a level is being closed, restore this thread's levels. Add notes to NumPy's errors
    that name their cause.
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


def innermost_lifting_level() -> Level | None:
    """Return the innermost level that lifts leaves; None if there is none."""
    for level in reversed(STACK.levels):
        if level.lift_leaves:
            return level
    return None


def lift_leaf(tensor: Any) -> None:
    """Lift a tensor that becomes a leaf inside a transformation to the innermost level, so that its tape is there.

    Operations inside combine it with values of that level, and a tape of a lower level would end at them. The tensor
    gets its original data back when the level is closed.
    """
    level = innermost_lifting_level()
    data = tensor._raw
    if level is not None and getattr(data, "level", 0) < level:
        level.lifted += ((weakref.ref(tensor), data),)
        tensor._raw = level.constant(data)


def is_level_closed(value: Any) -> bool:
    """Return whether the transformation of an interpreter's value has ended."""
    level = value.level
    return type(level) is Level and not level.alive
