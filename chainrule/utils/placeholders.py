"""What a checkpointed function's nodes save: placeholders, which a second run of the function fills."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from chainrule._src.api.watch import Watch
from chainrule._src.arrays.types import Params
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape import saved
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.node import next_seq
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import CLOCK, writes_of

Taken = tuple[Tensor, int]  # a saved value, and the time of the last write to anything before


class Placeholder:
    """One value that the first run saved: its number."""

    __slots__ = ("__weakref__", "frame", "index")

    def __init__(self, frame: Frame, index: int) -> None:
        self.frame = frame
        self.index = index


class _Enough(BaseException):
    """Ends a second run that has saved all that is needed. (Not an Exception: the function must not catch it.)"""


class Frame:
    """One call of a checkpointed function."""

    __slots__ = (
        "__weakref__",
        "about",
        "again",
        "check",
        "debug",
        "early_stop",
        "ended",
        "level",
        "log",
        "placeholders",
    )

    def __init__(self, again: Callable[[], None], early_stop: bool, check: bool, debug: bool) -> None:
        self.again = again
        self.early_stop = early_stop
        self.check = check
        self.debug = debug
        self.placeholders: list[weakref.ref[Placeholder]] = []
        self.about: list[tuple[Any, Any]] = []
        self.log: list[str] = []
        self.ended = 0  # until the first run is over
        self.level = STACK.levels[-1] if STACK.levels else 0

    @contextmanager
    def first_run(self) -> Iterator[None]:
        """Put placeholders for what operations save."""
        saved.push(self._reserve, fill)
        try:
            if self.debug:
                with _Log(self.log):
                    yield
            else:
                yield
        finally:
            saved.pop()
            self.ended = next_seq()

    def inside(self, tensor: Tensor) -> bool:
        """Whether a value is one of a transformation that the function itself uses, and is over when it returns."""
        data = tensor._raw
        return isinstance(data, ArrayLike) and data.level > self.level

    def _reserve(self, tensor: Tensor) -> Placeholder | Tensor:
        if self.inside(tensor):
            return tensor
        placeholder = Placeholder(self, len(self.placeholders))
        self.placeholders.append(weakref.ref(placeholder))
        self.about.append((tensor._raw.shape, tensor._raw.dtype))
        return placeholder

    def second_run(self) -> dict[int, Taken]:
        """Run the function again: the values of all placeholders that are still there."""
        run = _SecondRun(self)
        saved.push(run.take, _same)
        try:
            if self.debug:
                with _Log(run.log):
                    self.again()
            else:
                self.again()
        except _Enough as enough:
            if enough.args[0] is not run:
                raise
        finally:
            saved.pop()
        run.verify()
        return run.values


def fill(placeholder: Placeholder | Tensor) -> Tensor:
    """The value a placeholder stands for."""
    if isinstance(placeholder, Tensor):
        return placeholder
    frame, index = placeholder.frame, placeholder.index
    runs = _runs()
    values = runs.get(frame)
    if values is None or index not in values:
        values = runs[frame] = frame.second_run()
    value, time = values.pop(index)
    if CLOCK.latest > time:
        written = writes_of(value._raw)
        if written is not None and written.times[-1] > time:
            raise errors.recomputed_was_written(value, written)
    return value


def _runs() -> weakref.WeakKeyDictionary[Frame, dict[int, Taken]]:
    """What second runs have saved for the backward pass that is running; it goes with that, or with the frame."""
    notes: dict[Any, Any] = {} if LOCAL.sweep is None else LOCAL.sweep.notes
    runs: weakref.WeakKeyDictionary[Frame, dict[int, Taken]] | None = notes.get(_runs)
    if runs is None:
        runs = notes[_runs] = weakref.WeakKeyDictionary()
    return runs


def _same(tensor: Tensor) -> Tensor:
    return tensor


class _SecondRun:
    """Takes what the second run saves."""

    __slots__ = ("count", "differing", "frame", "last", "log", "started", "values", "wanted")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.wanted = [ref() is not None for ref in frame.placeholders]
        self.last = max((i for i, wanted in enumerate(self.wanted) if wanted), default=-1)
        self.count = 0
        self.values: dict[int, Taken] = {}
        self.differing: list[tuple[int, Any, Any]] = []
        self.log: list[str] = []
        self.started = next_seq()

    def take(self, tensor: Tensor) -> Tensor:
        if self.frame.inside(tensor):
            return tensor
        index = self.count
        self.count += 1
        if index >= len(self.wanted):
            if not self.frame.ended:  # a backward pass inside the first run wants this: that will save more later
                return tensor
            raise errors.checkpoint_saved_more(self.frame, self)
        data = tensor._raw
        found = (data.shape, data.dtype)
        if found != self.frame.about[index]:
            self.differing.append((index, self.frame.about[index], found))
        if 0 < self.frame.ended < CLOCK.latest:
            written = writes_of(data)
            if written is not None and any(self.frame.ended < time < self.started for time in written.times):
                raise errors.argument_was_written(tensor, written)
        if self.wanted[index]:
            self.values[index] = (tensor, CLOCK.latest)
        if index == self.last and self.frame.early_stop:
            raise _Enough(self)
        return tensor

    def verify(self) -> None:
        """Raise unless the run saved what the first one did."""
        complete = self.frame.ended and not self.frame.early_stop
        if self.count <= self.last or (complete and self.count != len(self.wanted)):
            raise errors.checkpoint_saved_fewer(self.frame, self)
        if self.frame.check and self.differing:
            raise errors.checkpoint_saved_others(self.frame, self)


class _Log(Watch):
    """Lists the operations of a run, each with the line that called it."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def forward(self, prim: Primitive, datas: object, params: Params) -> Any:
        where = errors.user_line()
        self.lines.append(f"{prim.name} at {where}" if where else prim.name)
        return super().forward(prim, datas, params)
