"""A tree of traces of one function, which branches where Python reads a value.

``Compiled`` keeps trees per signature. ``inputs_of`` checks the guards of a tree for a call and collects its input arrays.
``reach_end`` then runs the segments up to the last one. ``with_branch`` adds a trace.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.encoding import EncodedCalls, operand_vars
from chainrule._src.compiling.fingerprints import Fingerprint
from chainrule._src.compiling.function_trace import Argument, Backward, FunctionTrace, LeafRef, TracedOutput, same_leaf
from chainrule._src.compiling.guards.guards import same_value
from chainrule._src.compiling.keys import keys_within
from chainrule._src.compiling.memory_use import reachable_nbytes
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.compiling.value_checks import ValueCheck, ValueDiffers, is_checked_in_plan, reads_up_to, with_checks
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.interpreters.trace_types import Program, TracedCall, ValueGuard, Var, results_by_number
from chainrule._src.messages.source_locations import Where

ndarray = np.ndarray
OBJECTS = 8000, 1000, 2000  # estimated bytes of a trace, of a segment and of a step, without their arrays


class UntracedBranch(Exception):
    """A call reads a value that no trace has read.

    Attributes:
        where: the source location that reads it.
        reads: the bytes of the values that Python reads, up to this one; None for one of more than 16 bytes.
        iteration: for a line that reads several values, the number of this one; else 0.
    """

    def __init__(self, where: Where, reads: list[bytes | None], iteration: int = 0) -> None:
        self.where, self.reads, self.iteration = where, reads, iteration


class Segment:
    """The part of a trace from one value read to the next.

    Attributes:
        encoded: the recorded calls as EncodedCalls, None once they are planned; fingerprint: the fingerprint of the calls.
        checks: the values read before its end that the plan compares with the recorded ones.
        guard: the value that Python reads at the end; None at the end of the function.
        branches: the following segments, by the bytes of the value.
        trace: the trace that ends here, or None.
        plan: computes ``outputs`` from ``inputs``, both numbers of Vars. Sources have negative numbers, because a Var of one path
            and a source of another path may have the same number.
        strides: the strides of outputs for following segments.
        needs: the numbers of Vars of earlier segments that this segment and its branches read.
    """

    __slots__ = (
        "branches",
        "checks",
        "encoded",
        "fingerprint",
        "guard",
        "inputs",
        "needs",
        "outputs",
        "plan",
        "strides",
        "trace",
    )

    def __init__(self, calls: Sequence[TracedCall], guard: ValueGuard | None, checks: list[ValueCheck]) -> None:
        self.checks = checks
        self.encoded: Any = EncodedCalls(calls)
        self.fingerprint = Fingerprint(self.encoded)
        self.guard = guard
        self.branches: dict[bytes, Segment] = {}
        self.trace: FunctionTrace | None = None
        self.plan: Any = None
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.strides: list[tuple[int, tuple[int, ...]]] = []
        self.needs: frozenset[int] = frozenset()

    def run(self, values: dict[int, Any], reads: list[bytes | None], report: Callable[[Any], None] | None) -> list[Any]:
        """Run the plan on its inputs among the values, and return the outputs.

        Args:
            reads: the bytes of the values that Python has read in earlier segments.

        Raises:
            UntracedBranch: a check failed.
        """
        try:
            return self.plan.run([values[n] for n in self.inputs], report)
        except ValueDiffers as differs:
            check = self.checks[differs.ordinal]
            reads = reads_up_to(reads, self.checks, differs.ordinal, differs.value)
            iteration = [(c.code, c.lasti) for c in self.checks[: differs.ordinal + 1]].count((check.code, check.lasti))
            raise UntracedBranch(Where(check.code, check.lasti), reads, iteration) from None

    def copy(self) -> Segment:
        """Return a copy with the same branches."""
        other = copy.copy(self)
        other.branches = dict(self.branches)
        return other


class Tree:
    """Traces that hold for the same inputs and guards, and differ in the values that Python reads.

    A tree is immutable, because other threads may be running it: a new branch makes a new tree.

    Attributes:
        root: the first segment of all traces.
        sources: the sources of input arrays, by the negative numbers of their Vars.
        guard_sets: the guards on Python state.
        states: the guards on tensors with a history.
        generators: the random number generators that the traces draw from.
        writes: the numbers of the arrays that some of the traces write.
        ignored: the kinds of floating-point exceptions that some of the traces ignore.
        handled: the kinds that the function may handle itself.
        newest: the segments of the trace that was added last.
        hits: the number of lookups in a row that found a trace.
        nbytes: the approximate bytes that the tree keeps alive.
        shortcut: the shortcut into the tree; None if not tried, False if impossible.
    """

    def __init__(self, trace: FunctionTrace) -> None:
        path = _segments(trace)
        self.root = path[0]
        assert trace.guard_sets is not None
        self.guard_sets = trace.guard_sets
        self.sources: dict[int, Any] = {}
        self.states: list[Any] = []
        self.generators: list[Any] = []
        self.writes: set[int] = set()
        self.ignored: frozenset[str] = frozenset()
        self.handled: frozenset[str] = frozenset()
        self._layouts: dict[int, tuple[Any, ...]] = {}
        self._add_inputs(trace)
        _plan_path(list(zip(path, path, strict=True)), trace)
        self.newest = path
        self.hits = 0
        self.shortcut: Any = None
        self._measure()
        trace.nbytes = self.nbytes

    def segments(self) -> list[Segment]:
        """Return all segments, parents first."""
        found = [self.root]
        for segment in found:
            found += segment.branches.values()
        return found

    def paths(self) -> list[list[Segment]]:
        """Return the path of segments of each trace."""
        found = [[self.root]]
        for path in found:
            found += [[*path, after] for after in path[-1].branches.values()]
        return [path for path in found if path[-1].trace is not None]

    def path_to(self, last: Segment) -> list[Segment]:
        return next(path for path in self.paths() if path[-1] is last)

    def _measure(self) -> None:
        """Estimate the bytes that the tree keeps alive, and note the values that Python reads in each trace."""
        segments = self.segments()
        of_trace, of_segment, of_step = OBJECTS
        self.nbytes = reachable_nbytes(self.guard_sets) + of_segment * len(segments)
        for segment in segments:
            self.nbytes += of_step * len(segment.plan.steps) + segment.plan.memory + segment.plan.constant_bytes
            self.nbytes += of_trace * (segment.trace is not None)
        self._reads = [trace.reads for trace in self.traces]

    def ends(self) -> list[tuple[Segment, FunctionTrace]]:
        """Return pairs of (last segment, trace)."""
        return [(segment, segment.trace) for segment in self.segments() if segment.trace is not None]

    @property
    def traces(self) -> list[FunctionTrace]:
        return [trace for _, trace in self.ends()]

    def generator_states(self) -> list[tuple[Any, Any]]:
        """Return the generators that traces draw from, with their states."""
        return [(generator, generator._get_state()) for generator in self.generators]

    # -- growing -----------------------------------------------------------------------------------------------------

    def with_branch(self, trace: FunctionTrace) -> Tree | None:
        """Return the tree with another trace as a branch; None if the trace does not begin like the others."""
        _number_alike(trace, self.sources)
        pairs = self._branch_off(_segments(trace))
        if pairs is None:
            return None
        assert trace.guard_sets is not None
        self.guard_sets.extend(trace.guard_sets)
        tree = copy.copy(self)
        tree.root = pairs[0][0]
        tree._add_inputs(trace)
        _plan_path(pairs, trace)
        tree.newest = [segment for segment, _ in pairs]
        tree.shortcut = None
        tree._measure()
        trace.nbytes = max(tree.nbytes - self.nbytes, 0)
        return tree

    def without(self, evicted: Collection[FunctionTrace]) -> Tree | None:
        """Return the tree without some traces; None if nothing is left."""
        kept: dict[Segment, Segment] = {}
        for segment in reversed(self.segments()):
            branches = {key: kept[after] for key, after in segment.branches.items() if after in kept}
            if branches or (segment.trace is not None and segment.trace not in evicted):
                kept[segment] = segment.copy()
                kept[segment].branches = branches
        if self.root not in kept:
            return None
        tree = copy.copy(self)
        tree.root = kept[self.root]
        tree.newest, tree.shortcut = [], None
        tree._measure()
        return tree

    def _branch_off(self, path: list[Segment]) -> list[tuple[Segment, Segment]] | None:
        """Copy the segments that a new path shares with the tree, and attach its rest where it reads a new value.

        Returns:
            Pairs of (segment of the new tree, segment of the path), or None if no branch is possible.
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
        return None  # the tree has this path already, so the function depends on state that is not guarded

    def _add_inputs(self, trace: FunctionTrace) -> None:
        """Add the sources, guards and effects of a trace."""
        new = {-var.number: source for var, source in trace.sources.items() if -var.number not in self.sources}
        self.sources = self.sources | new
        self._layouts = _layouts_of(trace) | self._layouts
        self.states = self.states + [
            state for state in trace.states if not any(_same_source(state, s) for s in self.states)
        ]
        self.ignored, self.handled = self.ignored | trace.ignored, self.handled | trace.handled
        self.writes = self.writes | {-var.number for var, _ in trace.writes}
        self.generators = self.generators + [
            g for g, _ in trace.generator_states if not any(g is other for other in self.generators)
        ]

    def absorb(self, trace: FunctionTrace) -> bool:
        """Return whether a trace is equal to the only trace of the tree, although guards failed. If so, loosen these guards.

        Then names refer to other objects, or arrays have other contents, without an effect on the trace: their guards are not needed.
        """
        (old, *others) = self.traces
        if others or trace.guards or self.root.guard is not None:
            return False
        same = (
            len(old.constants) == len(trace.constants)
            and all(same_bits(x.array, y.array) for x, y in zip(old.constants, trace.constants, strict=True))
            and self.root.fingerprint == Fingerprint(EncodedCalls(trace.calls))
            and self.sources.keys() == {-var.number for var in trace.sources}
            and all(_same_source(self.sources[-var.number], source) for var, source in trace.sources.items())
            and self._layouts == _layouts_of(trace)
            and _same_outcome(old, trace)
        )
        if same and trace.guard_sets is not None:
            self.guard_sets.add_alternatives(trace.guard_sets)
        return same

    # -- running -----------------------------------------------------------------------------------------------------

    def inputs_of(self, leaves: Sequence[object], arrays: Sequence[object]) -> dict[int, Any] | None:
        """Return the input arrays of a call, by the numbers of their Vars; None if the traces do not hold for the call."""
        if not self.guard_sets.hold():
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

    def reach_end(
        self, values: dict[int, NumpyArray], report: Callable[[Any], None] | None = None
    ) -> tuple[Segment, list[bytes | None]]:
        """Run the segments on the path of the values that Python reads, except the last one.

        Only the last segment has effects, so the caller runs it.

        Returns:
            The last segment, and the bytes of the values that Python has read before it.

        Raises:
            UntracedBranch: no trace has a branch for one of the values.
        """
        segment = self.root
        reads: list[bytes | None] = []
        while segment.guard is not None:
            outputs = segment.run(values, reads, report)
            key = outputs[segment.outputs.index(segment.guard.var.number)].tobytes()
            values.update(zip(segment.outputs, outputs, strict=True))
            for number, strides in segment.strides:
                if values[number].strides != strides:
                    values[number] = with_strides(values[number], strides)
            reads += [*[check.content for check in segment.checks], key]
            follows = segment.branches.get(key)
            if follows is None:
                raise UntracedBranch(Where(segment.guard.code, segment.guard.lasti), reads)
            segment = follows
        return segment, reads

    @property
    def reads_values(self) -> bool:
        """Whether Python reads values, so that the traces do not hold for all calls with these guards."""
        return self.root.guard is not None or bool(self.root.checks)

    def reads_beginning_with(self, reads: list[bytes | None]) -> int:
        """Return the number of reads of the longest trace that begins with these reads; 0 if there is none."""
        return max([len(found) for found in self._reads if found[: len(reads)] == reads], default=0)


def _layouts_of(trace: FunctionTrace) -> dict[int, tuple[Any, ...]]:
    """Return the shape, dtype and strides of each input array of a trace, except arguments (the signature has these)."""
    return {
        -var.number: (var.shape, var.dtype, var.array.strides)
        for var, source in trace.sources.items()
        if type(source) is not Argument
    }


def _segments(trace: FunctionTrace) -> list[Segment]:
    """Return the segments of a trace, cut where Python reads values that plans do not check."""
    path: list[Segment] = []
    checks: list[ValueCheck] = []
    begin = 0
    # writes to inputs cannot be undone when a check fails
    in_plan = [False] * len(trace.guards) if trace.writes else is_checked_in_plan(trace.guards)
    for guard, content, is_check in zip(trace.guards, trace.reads, in_plan, strict=True):
        if is_check:
            checks.append(ValueCheck(guard.call_index - begin, guard.var.number, content, guard.code, guard.lasti))
            continue
        path.append(Segment(trace.calls[begin : guard.call_index], guard, checks))
        begin, checks = guard.call_index, []
    path.append(Segment(trace.calls[begin:], None, checks))
    path[-1].trace = trace
    for before, after in itertools.pairwise(path):
        assert before.guard is not None
        before.branches[before.guard.var.array.tobytes()] = after
    return path


_OFFSET = 1 << 40  # added to the number of an array if another array of the tree has the same number


def _number_alike(trace: FunctionTrace, sources: dict[int, object]) -> None:
    """Renumber the inputs of a trace as in a tree. Other arrays of the trace with these numbers get new ones.

    An array that two traces met in different branches may have two numbers.
    """
    new_numbers = {
        var: next(
            (-number for number, other in sources.items() if _same_source(other, source)),
            _unused_number(var.number, sources),
        )
        for var, source in trace.sources.items()
        if not _same_source(sources.get(-var.number), source)
    }
    numbered = {var.number: var for var in (*trace.sources, *trace.constants)}
    numbered |= results_by_number(trace.calls, set(new_numbers.values()))
    for var, number in new_numbers.items():
        other = numbered.get(number)
        if other is not None and other not in new_numbers:
            other.number += _OFFSET
        var.number = number


def _unused_number(number: int, sources: dict[int, object]) -> int:
    """Return a number that no input array of the tree has."""
    number += _OFFSET
    while -number in sources:
        number += _OFFSET
    return number


def _same_source(x: Any, y: Any) -> bool:
    """Return whether two sources, or tuples of the same fields, are equal."""
    return type(x) is type(y) and len(x) == len(y) and all(map(_same_part, x, y))


def _same_part(x: object, y: object) -> bool:
    if type(x) is LeafRef and type(y) is LeafRef:
        return same_leaf(x, y)
    if type(x) is Var and type(y) is Var:
        return x.number == y.number
    return x is y or (type(x) in (int, tuple) and type(x) is type(y) and bool(x == y))


def _same_outcome(x: FunctionTrace, y: FunctionTrace) -> bool:
    """Return whether two traces with equal calls have equal results, writes, effects and backward passes."""
    a, b = x.backward, y.backward
    return (
        x.spec == y.spec
        and keys_within(x.spec) == keys_within(y.spec)
        and all(map(_same_result, x.results, y.results))
        and _same_sources(x.writes, y.writes)
        and _same_sources(x.effects, y.effects)
        and _same_sources(x.states, y.states)
        and [generator for generator, _ in x.generator_states] == [generator for generator, _ in y.generator_states]
        and (x.ignored, x.handled) == (y.ignored, y.handled)
        and (a is b is None or (a is not None and b is not None and _same_backward(a, b)))
    )


def _same_result(x: TracedOutput, y: TracedOutput) -> bool:
    """Return whether two results are the same array of the trace, the same object, or arrays with the same bits."""
    if type(x.content) is type(y.content) is ndarray:
        return x.kind == y.kind and (x.content is y.content or same_bits(x.content, y.content))
    return x.kind == y.kind and _same_part(x.var, y.var) and same_value(x.content, y.content)


def _same_backward(x: Backward, y: Backward) -> bool:
    return (
        x.results == y.results
        and x.fingerprint == y.fingerprint
        and _same_sources([x.cotangents, x.residuals, x.grads], [y.cotangents, y.residuals, y.grads])
        and _same_sources(x.leaves, y.leaves)
    )


def _same_sources(x: Sequence[Any], y: Sequence[Any]) -> bool:
    return len(x) == len(y) and all(map(_same_source, x, y))


def _equal(old: Segment, new: Segment) -> bool:
    """Return whether two segments make the same calls and read the same value at their ends."""
    if old.guard is None or new.guard is None:
        return False
    same = old.guard.var.number == new.guard.var.number and old.fingerprint == new.fingerprint
    return same and [check[:3] for check in old.checks] == [check[:3] for check in new.checks]


def _plan_path(pairs: list[tuple[Segment, Segment]], trace: FunctionTrace) -> None:
    """Plan the segments along a path, last first: each outputs the value read at its end and arrays that later segments need.

    Args:
        pairs: segments of the tree, each with the segment of the trace, which has the recorded values.
        trace: the trace.
    """
    constants = {var.number: var for var in trace.constants}
    ends = [*trace.outputs(), *[var for pair in trace.writes for var in pair], *[guard.var for guard in trace.guards]]
    variables = {var.number: var for var in (*ends, *trace.sources)} | constants
    sources = {var.number for var in trace.sources}
    arguments = [var.number for var, source in trace.sources.items() if type(source) is Argument]
    views = {}
    if len(pairs) > 1:
        views = {call.results[0].number: call for _, new in pairs for call in new.encoded.views()}
    for segment, new in reversed(pairs):
        encoded = EncodedCalls(_with_views(new, views)) if views else new.encoded
        read = {var.number: var for var in encoded.inputs()}
        variables.update(read)
        used = {*read, *[check.number for check in new.checks]}
        after = frozenset().union(*[follows.needs for follows in segment.branches.values()])
        writes: list[tuple[Var, Var]] = []
        if new.guard is None:
            outputs = [var.number for var in trace.outputs()]
            writes = trace.writes
            used.update([var.number for pair in writes for var in pair])
        else:
            used.add(new.guard.var.number)
            outputs = sorted({*encoded.computed(after), new.guard.var.number})
        used.update(outputs)
        defined = encoded.computed(used | after)
        variables.update(defined)
        segment.needs = frozenset((used | after) - defined.keys() - constants.keys() - sources)
        if segment.plan is None or outputs != segment.outputs:
            input_numbers = [*arguments, *sorted(used - defined.keys() - constants.keys() - set(arguments))]
            segment.inputs = [-n if n in sources else n for n in input_numbers]
            segment.outputs = outputs
            if new.guard is not None:
                segment.strides = [(n, variables[n].array.strides) for n in outputs if variables[n].shape]
            all_constants = [constants[n] for n in sorted(used & constants.keys())]
            if new.checks:
                shift = len(encoded.calls) - len(new.encoded.calls)
                calls, expected = with_checks(encoded.calls, new.checks, shift, variables)
                encoded = EncodedCalls(calls)
                all_constants += expected
            inputs, results = [variables[n] for n in input_numbers], [variables[n] for n in outputs]
            segment.plan = ExecutionPlan(
                Program(inputs, all_constants, encoded.calls, results, writes), encoded=encoded
            )
    for segment, new in pairs:
        segment.encoded = new.encoded = None


def _with_views(segment: Segment, views: dict[int, TracedCall]) -> list[TracedCall]:
    """Return the calls of a segment, preceded by the calls of earlier segments that make its views.

    Views are made again in each segment: an array that one segment outputs to another gets a new layout, while the layout of
    a view depends on its base.
    """
    calls = segment.encoded.calls
    own = {var.number for call in calls for var in call.results}
    missing = [var.number for var in segment.encoded.inputs()]
    if segment.trace is not None:
        missing += [var.number for var in segment.trace.outputs() if var.number not in own]
    repeated: dict[int, TracedCall] = {}
    for number in missing:
        if number in views and number not in repeated:
            repeated[number] = views[number]
            missing += [var.number for var in operand_vars(views[number])]
    return [*[repeated[number] for number in sorted(repeated)], *calls]
