"""The recordings of one function as a tree: where Python read a value, each value that it read leads to a branch."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.footprint import footprint
from chainrule._src.compiling.keys import keys_within
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.compiling.prints import Prints
from chainrule._src.compiling.recording import Argument, Backward, Leafed, RecordedOutput, Recording, same_leaf
from chainrule._src.compiling.simplify import operands
from chainrule._src.compiling.state.guards import same_value
from chainrule._src.interpreters.recorded import Program, TracedCall, ValueRead, Var
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.messages.places import Where

ndarray = np.ndarray
OBJECTS = 8000, 1000, 2000  # bytes of a trace, of a segment and of a step, about, without their arrays


class Missing(Exception):
    """A call reads a value that no trace has read.

    Attributes:
        where: the source location that reads it.
        kind: equal for calls that have read the same values so far.
    """

    def __init__(self, where: Where, kind: int) -> None:
        self.where, self.kind = where, kind


class Segment:
    """What is computed between one read and the next.

    Attributes:
        calls: what is recorded, until it is planned; prints: the same in short.
        guard: what Python reads at its end; None at the end of the function.
        branches: what follows, by the bytes that were read.
        recording: at the end of the function, what it came to.
        plan: computes ``makes`` from ``takes``: numbers of Vars, and with a minus those of sources. (A Var of one path and a
            source of another may have one number.)
        strides: of those of ``makes`` that what follows wants in another order than C's.
        needs: the numbers of what is needed from before it, here or in what follows.
    """

    __slots__ = ("branches", "calls", "guard", "makes", "needs", "plan", "prints", "recording", "strides", "takes")

    def __init__(self, calls: list[TracedCall], guard: ValueRead | None) -> None:
        self.calls = calls
        self.prints = Prints(calls)
        self.guard = guard
        self.branches: dict[bytes, Segment] = {}
        self.recording: Recording | None = None
        self.plan: Any = None
        self.takes: list[int] = []
        self.makes: list[int] = []
        self.strides: list[tuple[int, tuple[int, ...]]] = []
        self.needs: frozenset[int] = frozenset()

    def copy(self) -> Segment:
        """Another segment like this one, with the same ones behind it."""
        other = copy.copy(self)
        other.branches = dict(self.branches)
        return other


class Tree:
    """Recordings that agree in what they start from, and differ in what they read.

    A tree does not change, so that calls in other threads go on: with another branch it is another tree.

    Attributes:
        root: where all of them begin.
        sources: where the arrays that they start from are found, by the numbers of their Vars, with a minus.
        references: what they read of Python's state.
        states: what else has to be so for any of them to hold.
        generators: what they draw random numbers from.
        writes: the numbers of the arrays that some of them write.
        ignored: the kinds of floating-point exceptions that some of them ignore in a part.
        handled: those that some of them may go another way for.
        newest: the segments of the trace that was added last.
        hits: how many lookups in a row have found a trace.
        nbytes: what it keeps alive, about.
        shortcut: the short way into it, once there is one.
    """

    def __init__(self, recording: Recording) -> None:
        path = _segments(recording)
        self.root = path[0]
        assert recording.references is not None
        self.references = recording.references
        self.sources: dict[int, Any] = {}
        self.states: list[Any] = []
        self.generators: list[Any] = []
        self.writes: set[int] = set()
        self.ignored: frozenset[str] = frozenset()
        self.handled: frozenset[str] = frozenset()
        self._layouts: dict[int, tuple[Any, ...]] = {}
        self._extend(recording)
        _plan_path(list(zip(path, path, strict=True)), recording)
        self.newest = path
        self.hits = 0
        self.shortcut: Any = None
        self._measure()
        recording.nbytes = self.nbytes

    def segments(self) -> list[Segment]:
        """All of them, parents first."""
        found = [self.root]
        for segment in found:
            found += segment.branches.values()
        return found

    def paths(self) -> list[list[Segment]]:
        """The way to the end of each recording."""
        found = [[self.root]]
        for path in found:
            found += [[*path, after] for after in path[-1].branches.values()]
        return [path for path in found if path[-1].recording is not None]

    def path_to(self, last: Segment) -> list[Segment]:
        return next(path for path in self.paths() if path[-1] is last)

    def _measure(self) -> None:
        """Count the bytes that it keeps alive."""
        segments = self.segments()
        of_trace, of_segment, of_step = OBJECTS
        self.nbytes = footprint(self.references) + of_segment * len(segments)
        for segment in segments:
            self.nbytes += of_step * len(segment.plan.steps) + segment.plan.memory + segment.plan.constant_bytes
            self.nbytes += of_trace * (segment.recording is not None)

    def ends(self) -> list[tuple[Segment, Recording]]:
        """The last segment of each recording, and the recording."""
        return [(segment, segment.recording) for segment in self.segments() if segment.recording is not None]

    @property
    def recordings(self) -> list[Recording]:
        return [recording for _, recording in self.ends()]

    def generator_states(self) -> list[tuple[Any, Any]]:
        """The generators that recordings draw from, and where they are."""
        return [(generator, generator._get_state()) for generator in self.generators]

    # -- growing -----------------------------------------------------------------------------------------------------

    def grown(self, recording: Recording) -> Tree | None:
        """The tree with another recording as a branch; None if it does not begin like the others."""
        _number_alike(recording, self.sources)
        pairs = self._branched(_segments(recording))
        if pairs is None:
            return None
        assert recording.references is not None
        self.references.extend(recording.references)
        tree = copy.copy(self)
        tree.root = pairs[0][0]
        tree._extend(recording)
        _plan_path(pairs, recording)
        tree.newest = [segment for segment, _ in pairs]
        tree.shortcut = None
        tree._measure()
        recording.nbytes = max(tree.nbytes - self.nbytes, 0)
        return tree

    def without(self, evicted: Collection[Recording]) -> Tree | None:
        """Return the tree without some traces; None if nothing is left."""
        kept: dict[Segment, Segment] = {}
        for segment in reversed(self.segments()):
            branches = {key: kept[after] for key, after in segment.branches.items() if after in kept}
            if branches or (segment.recording is not None and segment.recording not in evicted):
                kept[segment] = segment.copy()
                kept[segment].branches = branches
        if self.root not in kept:
            return None
        tree = copy.copy(self)
        tree.root = kept[self.root]
        tree.newest, tree.shortcut = [], None
        tree._measure()
        return tree

    def _branched(self, path: list[Segment]) -> list[tuple[Segment, Segment]] | None:
        """Let a path branch off where it reads something new: for each of its segments the one in the new tree.

        None: it cannot.
        """
        at = self.root.copy()
        pairs = []
        for new, after in itertools.pairwise(path):
            if not _equal(at, new):
                return None
            pairs.append((at, new))
            assert new.guard is not None
            key = new.guard.var.array.tobytes()
            if key not in at.branches:
                at.branches[key] = after
                rest = path[len(pairs) :]
                return [*pairs, *zip(rest, rest, strict=True)]
            at.branches[key] = at = at.branches[key].copy()
        return None  # all that it reads was read before, so what it does depends on something else

    def _extend(self, recording: Recording) -> None:
        """Take over what a recording starts from and relies on."""
        new = {-var.number: source for var, source in recording.sources.items() if -var.number not in self.sources}
        self.sources = self.sources | new
        self._layouts = _layouts_of(recording) | self._layouts
        self.states = self.states + [
            state for state in recording.states if not any(_same_source(state, s) for s in self.states)
        ]
        self.ignored, self.handled = self.ignored | recording.ignored, self.handled | recording.handled
        self.writes = self.writes | {-var.number for var, _ in recording.writes}
        self.generators = self.generators + [
            g for g, _ in recording.drawn if not any(g is known for known in self.generators)
        ]

    def learns_from(self, recording: Recording) -> bool:
        """Whether a recording is what the tree has, though names stand for something else, or arrays have other contents.

        These then do not matter, as far as is known.
        """
        (old, *others) = self.recordings
        if others or recording.guards or self.root.guard is not None:
            return False
        same = (
            len(old.constants) == len(recording.constants)
            and all(same_bits(x.array, y.array) for x, y in zip(old.constants, recording.constants, strict=True))
            and self.root.prints == Prints(recording.calls)
            and self.sources.keys() == {-var.number for var in recording.sources}
            and all(_same_source(self.sources[-var.number], source) for var, source in recording.sources.items())
            and self._layouts == _layouts_of(recording)
            and _same_outcome(old, recording)
        )
        if same and recording.references is not None:
            self.references.adopt(recording.references)
        return same

    # -- running -----------------------------------------------------------------------------------------------------

    def start(self, leaves: Sequence[object], arrays: Sequence[object]) -> dict[int, Any] | None:
        """The arrays that a call starts from, by the numbers of their Vars; None if the recordings do not hold for it."""
        if not self.references.hold():
            return None
        for state in self.states:
            if not state.holds(leaves):
                return None
        values = {number: source.array(arrays, leaves) for number, source in self.sources.items()}
        for number, layout in self._layouts.items():
            array = values[number]
            if type(array) is not ndarray or (array.shape, array.dtype, array.strides) != layout:
                return None
        return values

    def reach(self, values: dict[int, NumpyArray], report: Callable[[Any], None] | None = None) -> Segment:
        """Compute what is read on the way; the last segment, which is not run, and alone changes anything.

        Raises:
            Missing: no recording has read it.
        """
        segment = self.root
        kind = hash(id(self.references))
        while segment.guard is not None:
            made = segment.plan.run([values[n] for n in segment.takes], report)
            key = made[segment.makes.index(segment.guard.var.number)].tobytes()
            values.update(zip(segment.makes, made, strict=True))
            for number, strides in segment.strides:
                if values[number].strides != strides:
                    values[number] = with_strides(values[number], strides)
            kind = hash((kind, key))
            follows = segment.branches.get(key)
            if follows is None:
                raise Missing(Where(segment.guard.code, segment.guard.lasti), kind)
            segment = follows
        return segment


def _layouts_of(recording: Recording) -> dict[int, tuple[Any, ...]]:
    """Return the shape, dtype and strides of each array that a recording starts from, but for its arguments."""
    return {
        -var.number: (var.shape, var.dtype, var.array.strides)
        for var, source in recording.sources.items()
        if type(source) is not Argument
    }


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


_APART = 1 << 40  # between the number of an array and its other one, where the first is another array's in the tree


def _number_alike(recording: Recording, sources: dict[int, object]) -> None:
    """Give the arrays that a recording starts from the numbers that they have in a tree; others, which are in the way, get new ones.

    Where two recordings have gone different ways before they met an array, it has two numbers.
    """
    every = [*recording.sources, *recording.constants, *[var for call in recording.calls for var in call.results]]
    numbered = {var.number: var for var in every}
    wanted = {
        var: next(
            (-number for number, known in sources.items() if _same_source(known, source)), _unused(var.number, sources)
        )
        for var, source in recording.sources.items()
        if not _same_source(sources.get(-var.number), source)
    }
    for var, number in wanted.items():
        other = numbered.get(number)
        if other is not None and other not in wanted:
            other.number += _APART
        var.number = number


def _unused(number: int, sources: dict[int, object]) -> int:
    """Another number, that no array has which any recording of the tree starts from."""
    number += _APART
    while -number in sources:
        number += _APART
    return number


def _same_source(x: Any, y: Any) -> bool:
    """Whether two records of where something is are the same."""
    return type(x) is type(y) and len(x) == len(y) and all(map(_same_part, x, y))


def _same_part(x: object, y: object) -> bool:
    if type(x) is Leafed and type(y) is Leafed:
        return same_leaf(x, y)
    if type(x) is Var and type(y) is Var:
        return x.number == y.number
    return x is y or (type(x) in (int, tuple) and type(x) is type(y) and bool(x == y))


def _same_outcome(x: Recording, y: Recording) -> bool:
    """Whether two recordings with the same calls return, write and change the same, and have the same backward pass."""
    a, b = x.backward, y.backward
    return (
        x.spec == y.spec
        and keys_within(x.spec) == keys_within(y.spec)
        and all(map(_same_result, x.results, y.results))
        and _same_sources(x.writes, y.writes)
        and _same_sources(x.effects, y.effects)
        and _same_sources(x.states, y.states)
        and [generator for generator, _ in x.drawn] == [generator for generator, _ in y.drawn]
        and (x.ignored, x.handled) == (y.ignored, y.handled)
        and (a is b is None or (a is not None and b is not None and _same_backward(a, b)))
    )


def _same_result(x: RecordedOutput, y: RecordedOutput) -> bool:
    """Whether two results are the same array of the program, the same object, or arrays with the same numbers."""
    if type(x.content) is type(y.content) is ndarray:
        return x.face == y.face and (x.content is y.content or same_bits(x.content, y.content))
    return x.face == y.face and _same_part(x.var, y.var) and same_value(x.content, y.content)


def _same_backward(x: Backward, y: Backward) -> bool:
    return (
        x.results == y.results
        and x.prints == y.prints
        and _same_sources([x.cotangents, x.residuals, x.grads], [y.cotangents, y.residuals, y.grads])
        and _same_sources(x.leaves, y.leaves)
    )


def _same_sources(x: Sequence[Any], y: Sequence[Any]) -> bool:
    return len(x) == len(y) and all(map(_same_source, x, y))


def _equal(old: Segment, new: Segment) -> bool:
    """Whether two segments do the same."""
    if old.guard is None or new.guard is None:
        return False
    return old.guard.var.number == new.guard.var.number and old.prints == new.prints


def _plan_path(pairs: list[tuple[Segment, Segment]], recording: Recording) -> None:
    """ExecutionPlan the segments along a path, last first: each makes what is read at its end, and what those behind it need.

    Args:
        pairs: each segment of the tree, and the one of the recording, which has the recorded values.
    """
    constants = {var.number: var for var in recording.constants}
    known = {var.number: var for var in recording.sources} | constants
    known.update([(var.number, var) for call in recording.calls for var in call.results])
    sources = {var.number for var in recording.sources}
    arguments = [var.number for var, source in recording.sources.items() if type(source) is Argument]
    views = {}
    if len(pairs) > 1:  # what one segment hands to another
        views = {var.number: call for call in recording.calls for var in call.results if _is_view(call, var)}
    for segment, new in reversed(pairs):
        calls = _with_views(new, views) if views else new.calls
        defined = {var.number for call in calls for var in call.results}
        used = {var.number for call in calls for var in operands(call) if var.number not in defined}
        after = frozenset().union(*[follows.needs for follows in segment.branches.values()])
        writes: list[tuple[Var, Var]] = []
        if new.guard is None:
            makes = [var.number for var in recording.outputs()]
            writes = recording.writes
            used |= {var.number for pair in writes for var in pair}
        else:
            read = new.guard.var.number
            makes = sorted({n for n in after if n in defined} | {read})
        used |= set(makes)
        segment.needs = frozenset((used | after) - defined - constants.keys() - sources)
        if segment.plan is None or makes != segment.makes:
            taken = [*arguments, *sorted(used - defined - constants.keys() - set(arguments))]
            segment.takes = [-n if n in sources else n for n in taken]
            segment.makes = makes
            if new.guard is not None:
                segment.strides = [(n, known[n].array.strides) for n in makes if known[n].shape]
            segment.plan = ExecutionPlan(
                Program(
                    [known[n] for n in taken],
                    [constants[n] for n in sorted(used & constants.keys())],
                    calls,
                    [known[n] for n in makes],
                    writes,
                )
            )
    for segment, new in pairs:
        segment.calls = new.calls = []


def _is_view(call: TracedCall, var: Var) -> bool:
    """Whether an array of a call is memory of one that it was given."""
    return len(call.results) == 1 and any(np.may_share_memory(var.array, x.array) for x in operands(call))


def _with_views(segment: Segment, views: dict[int, TracedCall]) -> list[TracedCall]:
    """The calls of a segment, after those that gave views of what was computed before: these are taken again.

    What one segment hands to another has a layout of its own; a view has that of what it shows.
    """
    own = {var.number for call in segment.calls for var in call.results}
    missing = [var.number for call in segment.calls for var in operands(call) if var.number not in own]
    if segment.recording is not None:
        missing += [var.number for var in segment.recording.outputs() if var.number not in own]
    taken: dict[int, TracedCall] = {}
    for number in missing:
        if number in views and number not in taken:
            taken[number] = views[number]
            missing += [var.number for var in operands(views[number])]
    return [*[taken[number] for number in sorted(taken)], *segment.calls]
