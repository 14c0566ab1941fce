"""Placeholders for the saved values of a checkpointed function, and the second run that recomputes the values.

:func:`~chainrule.utils.checkpoint.checkpoint` creates a :class:`Frame` for each call. Saved-tensor hooks pack values to
:class:`Placeholder` objects; :func:`fill` unpacks them in the backward pass.
"""

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

SavedValue = tuple[Tensor, int]  # a saved value, and the write clock when it was saved


class Placeholder:
    """A value saved by the first run, identified by its index."""

    __slots__ = ("__weakref__", "frame", "index")

    def __init__(self, frame: Frame, index: int) -> None:
        self.frame = frame
        self.index = index


class _StopRecomputation(BaseException):
    """Stops a second run after the last value needed. (Not an Exception: the function must not catch it.)"""


class Frame:
    """One call of a checkpointed function."""

    __slots__ = (
        "__weakref__",
        "about",
        "check",
        "debug",
        "early_stop",
        "ended",
        "level",
        "log",
        "placeholders",
        "recompute",
    )

    def __init__(self, recompute: Callable[[], None], early_stop: bool, check: bool, debug: bool) -> None:
        self.recompute = recompute
        self.early_stop = early_stop
        self.check = check
        self.debug = debug
        self.placeholders: list[weakref.ref[Placeholder]] = []
        self.about: list[tuple[Any, Any]] = []
        self.log: list[str] = []
        self.ended = 0  # sequence number at the end of the first run
        self.level = STACK.levels[-1] if STACK.levels else 0

    @contextmanager
    def first_run(self) -> Iterator[None]:
        """Replace saved values by placeholders in the block."""
        saved.push_hooks(self._reserve, fill)
        try:
            if self.debug:
                with _Log(self.log):
                    yield
            else:
                yield
        finally:
            saved.pop_hooks()
            self.ended = next_seq()

    def inside(self, tensor: Tensor) -> bool:
        """Return whether a value belongs to a transformation inside the function, which ends before the function returns."""
        data = tensor._raw
        return isinstance(data, ArrayLike) and data.level > self.level

    def _reserve(self, tensor: Tensor) -> Placeholder | Tensor:
        if self.inside(tensor):
            return tensor
        placeholder = Placeholder(self, len(self.placeholders))
        self.placeholders.append(weakref.ref(placeholder))
        self.about.append((tensor._raw.shape, tensor._raw.dtype))
        return placeholder

    def second_run(self) -> dict[int, SavedValue]:
        """Run the function again; return the values of all placeholders that are still referenced."""
        run = _SecondRun(self)
        saved.push_hooks(run.pack, _identity)
        try:
            if self.debug:
                with _Log(run.log):
                    self.recompute()
            else:
                self.recompute()
        except _StopRecomputation as stop:
            if stop.args[0] is not run:
                raise
        finally:
            saved.pop_hooks()
        run.verify()
        return run.values


def fill(placeholder: Placeholder | Tensor) -> Tensor:
    """Return the value of a placeholder, from a second run that is started if necessary."""
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


def _runs() -> weakref.WeakKeyDictionary[Frame, dict[int, SavedValue]]:
    """Return the values of second runs in the current backward pass, by frame. They live as long as both."""
    notes: dict[Any, Any] = {} if LOCAL.sweep is None else LOCAL.sweep.notes
    runs: weakref.WeakKeyDictionary[Frame, dict[int, SavedValue]] | None = notes.get(_runs)
    if runs is None:
        runs = notes[_runs] = weakref.WeakKeyDictionary()
    return runs


def _identity(tensor: Tensor) -> Tensor:
    return tensor


class _SecondRun:
    """A second run: collects the saved values and compares them with those of the first run."""

    __slots__ = ("count", "differing", "frame", "last", "log", "started", "values", "wanted")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.wanted = [ref() is not None for ref in frame.placeholders]
        self.last = max((i for i, wanted in enumerate(self.wanted) if wanted), default=-1)
        self.count = 0
        self.values: dict[int, SavedValue] = {}
        self.differing: list[tuple[int, Any, Any]] = []
        self.log: list[str] = []
        self.started = next_seq()

    def pack(self, tensor: Tensor) -> Tensor:
        if self.frame.inside(tensor):
            return tensor
        index = self.count
        self.count += 1
        if index >= len(self.wanted):
            if not self.frame.ended:  # a backward pass inside the first run, which will save more values later
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
            raise _StopRecomputation(self)
        return tensor

    def verify(self) -> None:
        """Raise if the run saved other values than the first one."""
        complete = self.frame.ended and not self.frame.early_stop
        if self.count <= self.last or (complete and self.count != len(self.wanted)):
            raise errors.checkpoint_saved_fewer(self.frame, self)
        if self.frame.check and self.differing:
            raise errors.checkpoint_saved_others(self.frame, self)


class _Log(Watch):
    """An observer that lists the operations of a run, with their source lines."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def forward(self, prim: Primitive, datas: object, params: Params) -> Any:
        where = errors.user_line()
        self.lines.append(f"{prim.name} at {where}" if where else prim.name)
        return super().forward(prim, datas, params)
