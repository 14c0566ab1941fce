"""The recordings of one function as a tree: where Python read a value, each value that it read leads to a branch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.compiling.plan import Plan
from chainrule.compiling.recording import Captured, Recording
from chainrule.compiling.simplify import operands
from chainrule.errors.places import Where
from chainrule.interpreters.traced import Call, Guard, Program, same_call

ndarray = np.ndarray
BRANCHES = 32  # at one place; a value that changes more often is not worth recording


class Missing(Exception):
    """A call reads something that no recording has read; ``segment`` is where."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment


class TooMany(Exception):
    """A value that Python reads changes from call to call."""

    def __init__(self, where: Where) -> None:
        self.where = where


class Segment:
    """What is computed between one read and the next.

    Attributes:
        calls: what is recorded.
        guard: what Python reads at its end; None at the end of the function.
        branches: what follows, by the bytes that were read.
        recording: at the end of the function, what it came to.
        plan: computes ``makes`` from ``takes`` (numbers of Vars).
    """

    __slots__ = ("branches", "calls", "guard", "makes", "needs", "plan", "recording", "takes")

    def __init__(self, calls: list[Call], guard: Guard | None) -> None:
        self.calls = calls
        self.guard = guard
        self.branches: dict[bytes, Segment] = {}
        self.recording: Recording | None = None
        self.plan: Any = None
        self.takes: list[int] = []
        self.makes: list[int] = []
        self.needs: frozenset[int] = frozenset()

    def walk(self) -> list[Segment]:
        """This segment and all that can follow it."""
        found = [self]
        for segment in found:
            found += segment.branches.values()
        return found


class Tree:
    """Recordings that agree in what they start from, and differ in what they read."""

    def __init__(self, recording: Recording) -> None:
        self.sources = {var.number: source for var, source in recording.sources.items()}
        self.states = recording.states
        self.generators = recording.generators
        self.root: Segment = None  # type: ignore[assignment]
        self.add(recording)

    @property
    def recordings(self) -> list[Recording]:
        return [segment.recording for segment in self.root.walk() if segment.recording is not None]

    @property
    def memory(self) -> int:
        """Bytes that the plans hold."""
        return sum(segment.plan.memory for segment in self.root.walk())

    # -- growing -----------------------------------------------------------------------------------------------------

    def add(self, recording: Recording) -> bool:
        """Add a recording; False if it does not begin like the others."""
        path = _segments(recording)
        new = path[0]
        if self.root is None:
            self.root = new
        elif not self._join(path, recording):
            return False
        _plan_path(self._path(path), recording)
        return True

    def _join(self, path: list[Segment], recording: Recording) -> bool:
        """Let a path branch off where it reads something else."""
        for var, source in recording.sources.items():
            if not _same_source(self.sources.get(var.number, source), source):
                return False
        old = self.root
        for k, new in enumerate(path):
            if not _equal(old, new):
                return False
            if new.guard is None:
                return False  # it is recorded already, so what it does depends on something that is not read
            key = new.guard.var.array.tobytes()
            follows = old.branches.get(key)
            if follows is None:
                if len(old.branches) >= BRANCHES:
                    raise TooMany(_where(new.guard))
                old.branches[key] = path[k + 1]
                self.sources.update({var.number: source for var, source in recording.sources.items()})
                self.states = [*self.states, *[s for s in recording.states if s not in self.states]]
                return True
            old = follows
        return False

    def _path(self, new: list[Segment]) -> list[tuple[Segment, Segment]]:
        """The segments of the tree along a new path, and the new ones, which have the recorded values."""
        at = self.root
        pairs = [(at, new[0])]
        for before, after in itertools.pairwise(new):
            assert before.guard is not None
            at = at.branches.setdefault(before.guard.var.array.tobytes(), after)
            pairs.append((at, after))
        return pairs

    # -- running -----------------------------------------------------------------------------------------------------

    def run(self, leaves: list[Any], arrays: list[Any], report: Callable[[Any], None]) -> tuple[Recording, list[Any]]:
        """Compute; which recording it was, and the arrays of its outputs.

        Raises:
            Missing: there is none.
        """
        values = {n: source.array(arrays, leaves) for n, source in self.sources.items()}
        segment = self.root
        while True:
            made = segment.plan.run([values[n] for n in segment.takes], report)
            if segment.guard is None:
                recording = segment.recording
                assert recording is not None
                return recording, made
            values.update(zip(segment.makes, made, strict=True))
            follows = segment.branches.get(values[segment.guard.var.number].tobytes())
            if follows is None:
                raise Missing(segment)
            segment = follows


def _where(guard: Guard) -> Where:
    return Where(guard.code, guard.lasti)


def _segments(recording: Recording) -> list[Segment]:
    """A recording cut where Python read."""
    path: list[Segment] = []
    begin = 0
    for guard in recording.guards:
        path.append(Segment(recording.calls[begin : guard.at], guard))
        begin = guard.at
    path.append(Segment(recording.calls[begin:], None))
    path[-1].recording = recording
    for before, after in itertools.pairwise(path):
        assert before.guard is not None
        before.branches[before.guard.var.array.tobytes()] = after
    return path


def _same_source(x: Any, y: Any) -> bool:
    if type(x) is Captured and type(y) is Captured:
        return x.content is y.content
    return type(x) is type(y) and all(a is b or a == b for a, b in zip(x, y, strict=True))


def _equal(old: Segment, new: Segment) -> bool:
    """Whether two segments do the same."""
    if len(old.calls) != len(new.calls) or (old.guard is None) is not (new.guard is None):
        return False
    if old.guard is not None and new.guard is not None and old.guard.var.number != new.guard.var.number:
        return False
    return all(map(same_call, old.calls, new.calls))


def _plan_path(pairs: list[tuple[Segment, Segment]], recording: Recording) -> None:
    """Plan the segments of a path, last first: each makes what it reads and what those behind it need."""
    known = {var.number: var for var in (*recording.sources, *recording.constants)}
    constants = {var.number for var in recording.constants}
    for call in recording.calls:
        for var in call.results:
            known[var.number] = var
    for segment, new in reversed(pairs):
        defined = {var.number for call in new.calls for var in call.results}
        used = {var.number for call in new.calls for var in operands(call)}
        after: set[int] = set()
        for follows in segment.branches.values():
            after |= follows.needs
        if new.guard is None:
            makes = [var.number for var in recording.outputs()]
            writes = recording.writes
            used |= {n for pair in writes for n in (pair[0].number, pair[1].number)}
        else:
            read = new.guard.var.number
            writes = []
            makes = [n for n in sorted(after | {read}) if n in defined or n == read or n in constants]
        segment.needs = frozenset((used | after | set(makes)) - defined - constants)
        if segment.plan is None or makes != segment.makes:
            takes = sorted(segment.needs & (used | set(makes)))
            program = Program(
                [known[n] for n in takes],
                [known[n] for n in sorted((used | set(makes)) & constants)],
                new.calls,
                [known[n] for n in makes],
                writes,
            )
            segment.takes, segment.makes = takes, makes
            segment.plan = Plan(program)
