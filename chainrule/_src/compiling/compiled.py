"""``chainrule.compile`` and ``Compiled``, the callable that it returns.

``Compiled.__call__`` replays a trace that holds for the arguments (``tree``). If there is none, it records a trace
(``function_trace``) or runs the function eagerly, as the budget allows (``policy``). Repeated calls replay through a shortcut
(``direct``, ``branched``).
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from chainrule._src.api.array import Array, array_of
from chainrule._src.arrays.memory import paused_collector
from chainrule._src.arrays.tree import tree_flatten, tree_leaves, tree_unflatten
from chainrule._src.arrays.types import AnyFunction, NumpyArray, P, R, TensorLike
from chainrule._src.compiling import causes
from chainrule._src.compiling.branched import Branched, branched_of
from chainrule._src.compiling.differentiable import CompiledFunction, Replay
from chainrule._src.compiling.direct import Direct, direct_of
from chainrule._src.compiling.floating_point import NeedsEagerRun, exception_reporter
from chainrule._src.compiling.function_trace import (
    LOCK,
    BadResult,
    FunctionTrace,
    check_result,
    rewind_generators,
    trace_function,
)
from chainrule._src.compiling.guards.frames import is_thread_traced
from chainrule._src.compiling.inspection import EXECUTOR, PlanOfCall, describe_traces, python_steps
from chainrule._src.compiling.internal_errors import describe_error, is_internal
from chainrule._src.compiling.keys import key_of, keys_within
from chainrule._src.compiling.low_level import arguments_of, low_level_callable
from chainrule._src.compiling.memory_use import reachable_nbytes
from chainrule._src.compiling.policy import ReplaySpeed, TraceBudget
from chainrule._src.compiling.tree import Segment, Tree, UntracedBranch
from chainrule._src.interpreters.trace_types import ByValue, Unrecordable
from chainrule._src.messages import errors
from chainrule._src.messages.message_parts import counted
from chainrule._src.native import AVAILABLE
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import BEFORE_WRITE, about_to_write, note_write

ndarray = np.ndarray
MAX_BYTES = 1 << 28
TRIES = 3  # traces attempted for a function that changes Python state; then its calls run eagerly
PATIENCE = 5.0  # seconds that a call waits for a trace being recorded in another thread
TREES = 64  # maximum number of trees per signature: one per state of .grad, requires_grad and captured objects
REPEATED = 64  # a line with this many steps in one call counts as a loop


S = TypeVar("S")
T = TypeVar("T")
Q = ParamSpec("Q")


class CompiledCall:
    """The arguments and the signature of one call.

    Attributes:
        leaves, spec: the flattened arguments; arrays: the array of each leaf, or None.
        signature: the key of the traces that may hold for the call.
        eager_call: runs the call eagerly.
        begin: the clock when the lookup began.
    """

    __slots__ = ("arrays", "begin", "eager_call", "leaves", "signature", "spec")

    def __init__(self, function: AnyFunction, args: tuple[object, ...], kwargs: dict[str, Any], begin: float) -> None:
        self.eager_call = functools.partial(function, *args, **kwargs)
        self.leaves, self.spec = tree_flatten((args, kwargs))
        self.begin = begin
        self.signature: Any = None
        self.arrays: list[Any] = []


class Compiled(Generic[P, R]):
    """A function that is traced when it is first called and replayed as a plan afterwards. ``chainrule.compile`` makes it.

    Attributes:
        function: the original function, which runs eagerly.
        recordings: the traces.
        pure: whether the caller has promised that the function reads and changes no Python state.
    """

    __module__ = "chainrule.compiler"

    def __init__(
        self,
        function: Callable[P, R],
        name: str,
        pure: bool = False,
        max_slowdown: float | None = 2.0,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.function: AnyFunction = function
        self.name = name
        self.pure = pure
        self.max_bytes = max_bytes
        self.budget = TraceBudget(max_slowdown)
        code = getattr(inspect.unwrap(function), "__code__", None)
        self.where = errors.Where(code, 0) if code is not None else None
        self._trees: dict[object, list[Tree]] = {}
        self._eager: dict[object, str] = {}  # signatures that always run eagerly, and the reasons
        self._slower: set[object] = set()  # signatures in ``_eager`` whose plan was slower than the function
        self._by_value: set[object] = set()  # signatures whose floats are part of the signature by value
        self._attempts: dict[object, int] = {}  # failed traces by signature, where a later one may succeed
        self._shortcuts: dict[Any, Any] = {}  # shortcuts into traces, by ``_layouts`` of arguments
        self._shortcut: Any = None  # the shortcut that is tried first
        self._last_by_layout: Any = None  # the shortcut that was last found by layouts
        self._causes: Counter[Any] = Counter()  # causes of new traces
        self._last_signature: Any = None  # the signature of the last trace
        self._warned = False  # whether the warning about a Python step in a loop was given
        self._warned_of_waste = False
        self._warned_of_error = False
        functools.update_wrapper(self, function, updated=())

    def _options(self) -> tuple[object, ...]:
        return self.name, self.pure, self.budget.max_slowdown, self.max_bytes

    def renewed(self) -> Compiled[P, R]:
        """Return the function without its traces. The budget keeps the seconds that they cost."""
        other = copy.copy(self)
        other.budget = self.budget
        return other

    def __repr__(self) -> str:
        return f"<compiled {self.name}, {counted(len(self.recordings), 'trace')}>"

    def _repr_html_(self) -> str:
        return importlib.import_module("chainrule._src.explaining.notebooks").compiled_html(self)

    def __reduce__(self) -> str | tuple[object, ...]:
        name = getattr(self.function, "__qualname__", "")
        found = _by_name(self.function)
        if found is self:
            return name  # pickle finds a decorated function by its name
        if isinstance(self.function, FunctionType) and found is not self.function:
            raise errors.compile_not_pickled(self.name)
        return Compiled, (self.function, *self._options())

    def __copy__(self) -> Compiled[P, R]:
        return Compiled(self.function, *self._options())  # type: ignore[arg-type]

    def __deepcopy__(self, memo: dict[int, object]) -> Compiled[P, R]:
        return Compiled(copy.deepcopy(self.function, memo), *self._options())  # type: ignore[arg-type]

    @overload
    def __get__(self, instance: None, owner: object = None) -> Compiled[P, R]: ...
    @overload
    def __get__(self: Compiled[Concatenate[S, Q], R], instance: S, owner: object = None) -> Callable[Q, R]: ...
    def __get__(self, instance: object, owner: object = None) -> Any:
        call: AnyFunction = self
        return call if instance is None else functools.partial(call, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        shortcut = self._shortcut
        if (shortcut is not None or self._shortcuts) and not kwargs and not ACTIVE_MODES and not STACK.levels:
            try:
                result = None if shortcut is None else shortcut.call(args)
                if result is None:
                    result = self._call_by_layout(shortcut, args)
                if result is not None:
                    return result
            except Exception as error:  # mostly a floating-point exception that eager code has to handle or raise
                result = self.function(*args)
                self._report_if_internal(error)
                return result
        if STACK.levels or (ACTIVE_MODES and (LOCAL.watch is not None or LOCAL.recorder is not None)):
            return self.function(*args, **kwargs)  # the surrounding transformation has to see the operations
        budget = self.budget
        if not budget.may_look_up():
            start = budget.start_eager()
            try:
                result = self.function(*args, **kwargs)
            finally:
                budget.end_eager(start)
            if budget.traces or not self._eager:
                result = own_results(result, self.name, (args, kwargs))
            budget.end_call()
            return result
        call = self._call(args, kwargs)
        if call.signature is None or (self._eager and call.signature in self._eager):
            return self._run_eagerly(call, own=call.signature in self._slower)
        tree, values = self._find(call)
        if tree is None:
            return self._trace_or_run_eagerly((), call, hash(call.signature))
        return self._replay(tree, values, call)

    def _call_by_layout(self, tried: Any, args: tuple[Any, ...]) -> Any:
        """Call the shortcut for the layouts of these arguments; return None if there is none or it is ``tried``."""
        layouts = _layouts(args)
        shortcut = self._shortcuts.get(layouts)
        result = None if shortcut is None or shortcut is tried else shortcut.call(args)
        if result is None and type(shortcut) is Branched:
            self._shortcuts.pop(layouts, None)  # Python reads a new value: the work of the shortcut was wasted
        self._shortcut = shortcut if result is not None and shortcut is self._last_by_layout else None
        self._last_by_layout = shortcut
        return result

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CompiledCall:
        call = CompiledCall(self.function, args, kwargs, self.budget.clock())
        call.signature, call.arrays = self._signature(call.leaves, call.spec)
        return call

    def _find(self, call: CompiledCall) -> tuple[Tree | None, dict[int, NumpyArray]]:
        """Return the tree whose traces hold for a call, and the input arrays of its traces; None and {} if there is none."""
        for tree in self._trees.get(call.signature, ()):
            values = tree.inputs_of(call.leaves, call.arrays)
            if values is not None:
                return tree, values
        return None, {}

    def _find_other(
        self, call: CompiledCall, reads: list[bytes | None], tried: tuple[Tree, ...]
    ) -> tuple[Tree | None, dict[int, NumpyArray]]:
        """Return an untried tree with a trace that begins with these reads, and its input arrays; None and {} if there is none."""
        trees = [tree for tree in self._trees.get(call.signature, ()) if tree not in tried]
        lengths = {tree: tree.reads_beginning_with(reads) for tree in trees}
        for tree in sorted(trees, key=lambda tree: -lengths[tree]):
            values = tree.inputs_of(call.leaves, call.arrays) if lengths[tree] else None
            if values is not None:
                return tree, values
        return None, {}

    def _try_first(self, tree: Tree, signature: Any) -> None:
        """Move a tree to the front of the trees of its signature. Do nothing while another thread records a trace."""
        if LOCK.acquire(blocking=False):
            try:
                trees = self._trees.get(signature, [])
                if tree in trees:
                    self._trees[signature] = [tree, *[other for other in trees if other is not tree]]
            finally:
                LOCK.release()

    def _run_eagerly(
        self, call: CompiledCall, kind: int | None = None, speed: ReplaySpeed | None = None, own: bool = True
    ) -> Any:
        """Run a call eagerly.

        Args:
            kind: a key that is equal for calls that could share a trace; None for calls that cannot be traced.
            speed: the speed of the trace that the eager call is compared with.
            own: whether results are copied into new memory and containers (``own_results``), as a replay returns them. False for
                calls that cannot be traced.
        """
        start = self.budget.start_eager()
        try:
            result = call.eager_call()
        finally:
            seconds = self.budget.end_eager(start, start[0] - call.begin, kind)
        if speed is not None:
            self.budget.record_comparison(speed, seconds)
        if own:
            result = own_results(result, self.name, call.leaves)
        self.budget.end_call()
        return result

    # -- signatures --------------------------------------------------------------------------------------------------

    def _signature(self, leaves: list[Any], spec: object) -> tuple[Any, list[Any]]:
        """Return the signature of a call, and the array of each leaf or None.

        The signature is None for calls that cannot be traced.
        """
        signature, arrays = self._signature_by(leaves, spec, any(isinstance(x, Tensor) for x in leaves))
        if self._by_value and signature in self._by_value:
            return self._signature_by(leaves, spec, True)
        return signature, arrays

    def _signature_by(self, leaves: list[Any], spec: Any, by_value: bool) -> tuple[Any, list[Any]]:
        """Return ``_signature``, with floats and NumPy scalars by value or as arrays. Python integers are always by value."""
        key: list[object] = [spec, LOCAL.mode]
        arrays: list[Any] = []
        for x in leaves:
            kind = type(x)
            if kind is ndarray:
                array = x if x.dtype.kind in "fciub" else None
                if not (x.dtype.isnative and x.flags.aligned):
                    return None, []
            elif kind is Tensor or kind is Array:
                array = x._raw if kind is Tensor else x._tensor._raw
                if type(array) is not ndarray:
                    return None, []
            elif isinstance(x, (Tensor, ndarray)):
                array = np.asarray(x) if isinstance(x, np.memmap) else getattr(x, "_raw", None)
                if type(array) is not ndarray:  # subclasses of other libraries may override any operation
                    return None, []
            elif not by_value and (kind is float or (isinstance(x, np.generic) and x.dtype.kind in "fciub")):
                array = np.asarray(x)
            else:
                array = None
            arrays.append(array)
            if array is not None:
                layout = None if array.flags.c_contiguous else array.strides
                history = x.requires_grad if kind is Tensor or kind is Array else False
                key.append((kind, array.dtype, array.shape, layout, history))
            else:
                try:
                    key.append((kind, key_of(x), None))
                except TypeError:  # mutable objects without a hash can change unnoticed
                    return None, []
        key.append(keys_within(spec))
        return tuple(key), arrays

    # -- tracing -----------------------------------------------------------------------------------------------------

    def _trace_or_run_eagerly(
        self, tried: tuple[Tree, ...], call: CompiledCall, kind: int, missing: UntracedBranch | None = None
    ) -> Any:
        """Trace a call that has no trace if the budget allows it; else run the call eagerly.

        Args:
            tried: the trees that the call has tried; a new trace may become a branch of one of them.
            kind: a key that is equal for calls that could share a trace.
            missing: the exception that ``Tree.reach_end`` raised for a value without a branch.
        """
        budget = self.budget
        if budget.is_wasted and not self._warned_of_waste:
            self._warn_of_waste(call, missing)
        if (
            not budget.may_trace(kind) and budget.misses % (budget.traces + 1) == 0
        ):  # seldom: its time grows with the number of traces
            self._count_savings()
        if not budget.may_trace(kind) or (is_thread_traced() and not self.pure):
            return self._run_eagerly(call, kind)
        if not LOCK.acquire(timeout=PATIENCE):  # the function that another thread records may be waiting for this call
            return self._run_eagerly(call, kind)
        try:
            found, values = self._find(call)  # another thread may have traced the call by now
            if found is None or found in tried:
                self._note_cause(call, missing)
                return self._record(tried, call, kind)
        finally:
            LOCK.release()
        return self._replay(found, values, call)

    def _count_savings(self) -> None:
        """Add the seconds that replays have saved, including replays by shortcuts, to the budget."""
        for tree in [tree for trees in self._trees.values() for tree in trees]:
            for segment, trace in tree.ends():
                self.budget.count_savings(trace.speed, segment.plan.runs, trace.count)
                if trace.speed.needs_eager_call:
                    self._clear_shortcuts()

    def _note_cause(self, call: CompiledCall, missing: UntracedBranch | None) -> None:
        """Count the cause of a missing trace."""
        if self._last_signature is None or self._warned_of_waste:
            return
        trees = self._trees.get(call.signature)
        if missing is not None:
            self._causes[causes.missing_branch_cause(missing.where)] += 1
        elif trees:
            self._causes[causes.changed_state_cause(self.function, trees[-1], call.leaves)] += 1
        else:
            self._causes[causes.changed_arguments_cause(self.function, self._last_signature, call.signature)] += 1

    def _warn_of_waste(self, call: CompiledCall, missing: UntracedBranch | None) -> None:
        """Warn with the most common cause of missing traces. Callers check that it is done once."""
        self._note_cause(call, missing)
        self._warned_of_waste = True
        for cause, _ in self._causes.most_common(1):
            difference, advice = cause
            if missing is not None and missing.iteration and cause == causes.missing_branch_cause(missing.where):
                difference += f" (in this call from iteration {missing.iteration} on)"
            errors.warn_compile_wasted(self.name, self.where, difference, advice)

    def _record(self, tried: Sequence[Tree], call: CompiledCall, kind: int) -> Any:
        """Trace a call, into a new tree or as a branch of one, and return its result."""
        signature = call.signature
        try:
            trace, _, new, outputs = self._new_trace(tried, call, kind)
        except BadResult:
            raise
        except Unrecordable as reason:
            if isinstance(reason, ByValue) and signature not in self._by_value:
                return self._record_by_value(call)
            if reason.perhaps_later and self._attempts.setdefault(signature, 0) < TRIES:
                self._attempts[signature] += 1
            else:
                self._refuse(signature, str(reason))
            return self._run_eagerly(call, own=False)
        except Exception as error:
            if signature not in self._by_value and any(isinstance(x, (float, np.generic)) for x in call.leaves):
                self._report_if_internal(error)
                return self._record_by_value(call)
            result = self._run_eagerly(call, own=False)  # raises the function's own error if it has one
            if is_internal(error):
                self._drop(signature, f"internal error: {describe_error(error)}")
                self._report_if_internal(error)
            else:
                self._refuse(signature, f"{type(error).__name__}: {error}")
            return result
        _about_to_write([memory for memory, _ in new])
        for memory, values in new:
            memory[...] = values
        return _finish(trace, outputs, call.leaves, call.eager_call)

    def _warn_of_python(self, path: list[Segment]) -> None:
        """Warn once if a line in a loop has a step that Python runs."""
        if self._warned or not AVAILABLE:
            return
        for (name, code, lasti), count in python_steps(PlanOfCall(path).steps).most_common(1):
            if count >= REPEATED:
                self._warned = True
                errors.warn_compile_by_python(self.name, errors.Where(code, lasti), name, count)

    def _record_by_value(self, call: CompiledCall) -> Any:
        """Trace a call whose floats cannot be arrays, with their values as constants."""
        self._by_value.add(call.signature)
        call.signature, call.arrays = self._signature(call.leaves, call.spec)
        if call.signature is None or call.signature in self._eager:
            return self._run_eagerly(call, own=False)
        tree, values = self._find(call)
        if tree is not None:
            return self._replay(tree, values, call)
        return self._record((), call, hash(call.signature))

    def _new_trace(
        self, tried: Sequence[Tree], call: CompiledCall, kind: int
    ) -> tuple[FunctionTrace, list[Segment], list[tuple[Any, Any]], list[Any]]:
        """Trace a call, add the trace to its tree, and drop the trace's recorded calls.

        Returns:
            The trace, its segments, pairs of (memory to write, values), and copies of the trace's outputs.
        """
        begin, kept = self.budget.clock(), None
        try:
            with (
                LOCK,
                paused_collector(),
            ):  # garbage collections take half of the time of a trace
                trace, path = self._add_to_tree(tried, call, kind)
                new = [(memory.array, value.array.copy("K")) for memory, value in trace.writes]
                outputs = [var.array.copy("K") for var in trace.outputs()]
                trace.release_calls()
            self._warn_of_python(path)
            self._evict(trace)
            kept = kind
            return trace, path, new, outputs
        finally:
            self.budget.record_trace(self.budget.clock() - begin, kept)

    def _add_to_tree(self, tried: Sequence[Tree], call: CompiledCall, kind: int) -> tuple[FunctionTrace, list[Segment]]:
        """Record a trace and add it to one of these trees, or to a new one; return the trace and its segments."""
        signature = call.signature
        trace = trace_function(self.function, call.leaves, call.spec, call.arrays, self.name, self.pure)
        trees = self._trees.get(signature, [])
        try:
            guard_sets = [tree.guard_sets for tree in tried]
            grown = None
            for k, tree in enumerate(trees):
                if tree.guard_sets in guard_sets and (grown := tree.with_branch(trace)) is not None:
                    trees = [*trees[:k], grown, *trees[k + 1 :]]
                    break
            if grown is None:
                same = [other for other in trees if other.absorb(trace)]
                grown = same[0] if same else Tree(trace)
                trees = trees if same else [*trees, grown]
        except Exception:
            rewind_generators(trace.generator_states)
            raise
        trace.speed = self.budget.speed_of(kind)
        self._trees[signature], self._last_signature = trees, signature
        return trace, grown.newest

    def _evict(self, newest: FunctionTrace) -> None:
        """Drop the least used traces if the traces keep too many bytes, or if one signature has too many trees."""
        trees = [tree for trees in self._trees.values() for tree in trees]
        excess = sum([tree.nbytes for tree in trees]) - self.max_bytes
        crowded = [trees for trees in self._trees.values() if len(trees) > TREES] if len(trees) > TREES else []
        if excess <= 0 and not crowded:
            return
        uses = {trace: segment.plan.runs for tree in trees for segment, trace in tree.ends()}
        lately = {trace: runs - trace.runs for trace, runs in uses.items() if trace is not newest}
        evicted = {
            trace
            for same in crowded
            for trace in min(same[:-1], key=lambda tree: max([lately[r] for r in tree.traces])).traces
        }
        excess += self.max_bytes // 8 if excess > 0 else 0  # some more, so that eviction is rare
        for trace in sorted(lately, key=lambda trace: lately[trace]):
            if excess > 0:
                evicted.add(trace)
                excess -= trace.nbytes
        for trace, runs in uses.items():
            trace.runs = runs
        self._clear_shortcuts()
        for signature, same in list(self._trees.items()):
            kept = [tree if evicted.isdisjoint(tree.traces) else tree.without(evicted) for tree in same]
            self._trees[signature] = [tree for tree in kept if tree is not None]
            if not self._trees[signature]:
                del self._trees[signature]

    def _refuse(self, signature: object, reason: str) -> None:
        """Warn that calls with a signature cannot be traced, and run them eagerly from now on."""
        errors.warn_compile_failed(self.name, self.where, reason)
        self._drop(signature, reason)

    def _report_if_internal(self, error: Exception) -> None:
        """Warn once about an exception that shows a defect of the compiler. Callers check that the call succeeds eagerly."""
        if is_internal(error) and not self._warned_of_error:
            self._warned_of_error = True
            errors.warn_compile_internal_error(self.name, self.where, describe_error(error))

    def _drop(self, signature: object, reason: str) -> None:
        self._eager[signature] = reason
        self._trees.pop(signature, None)
        self._clear_shortcuts()

    # -- replaying ---------------------------------------------------------------------------------------------------

    def _replay(
        self, tree: Tree, values: dict[int, NumpyArray], call: CompiledCall, tried: tuple[Tree, ...] = ()
    ) -> Any:
        """Replay the trace whose branches match the values that Python reads. If there is none, trace or run eagerly.

        Args:
            tried: the trees that have no branch for the values that Python reads.
        """
        budget = self.budget
        before = tree.generator_states()
        try:
            report = exception_reporter(self.name, tree.ignored, tree.handled)
            last, reads = tree.reach_end(values, report)
            trace = last.trace
            assert trace is not None
            if budget.wants_eager_run(trace.speed) or (trace.speed.is_slower and not tree.reads_values):
                rewind_generators(before)
                return self._compare(tree, trace, call)
            if tree.writes:
                read_only = not all([values[number].flags.writeable for number in tree.writes])
                if read_only or _overlap(tree.writes, values, tree.guard_sets.arrays):
                    rewind_generators(before)
                    return self._run_eagerly(call)
                _about_to_write([values[number] for number in tree.writes])
            outputs = last.run(values, reads, report)
        except UntracedBranch as missing:
            rewind_generators(before)
            tried = (*tried, tree)
            other, values = self._find_other(call, missing.reads, tried)
            if other is not None:
                other.hits = tree.hits
                return self._replay(other, values, call, tried)
            tree.hits = 0
            self._remove_shortcut(call)
            kind = hash((call.signature, *missing.reads))
            return self._trace_or_run_eagerly(tried, call, kind, missing)
        except (
            Exception
        ) as error:  # mostly an error of a Python step or a floating-point exception, which the eager call raises, too
            rewind_generators(before)
            result = self._run_eagerly(call)
            self._report_if_internal(error)
            return result
        result = _finish(trace, outputs, call.leaves, call.eager_call)
        budget.record_replay(trace.speed, budget.clock() - call.begin, trace.count)
        if not trace.proven and trace.speed.is_faster(trace.count):
            trace.proven = True
            budget.record_faster_replay()
        tree.hits += 1
        if tried:
            self._try_first(tree, call.signature)
        if not ACTIVE_MODES and (
            not tree.reads_values or tree.hits > 1
        ):  # if a new value is read, the work of the shortcut is wasted and the call takes twice as long
            self._add_shortcut(tree, trace, call)
        return result

    def _compare(self, tree: Tree, trace: FunctionTrace, call: CompiledCall) -> Any:
        """Run a call that has a trace eagerly, to compare the speeds. Drop the trace if it is slower."""
        result = self._run_eagerly(call, speed=trace.speed)
        if not tree.reads_values and trace.speed.is_slower:
            self._slower.add(call.signature)
            self._drop(call.signature, "its plan takes longer than the function itself")
        return result

    def _add_shortcut(self, tree: Tree, trace: FunctionTrace, call: CompiledCall) -> None:
        """Make the shortcut into a tree, if the tree can have one, and use it for calls with such layouts."""

        def report_of(tree: Tree) -> Any:
            return exception_reporter(self.name, tree.ignored, tree.handled)

        args = call.eager_call.args
        shortcut: Any = None
        if call.eager_call.keywords:
            return
        if tree.reads_values:
            if trace.speed.is_faster(trace.count):
                trees = [tree, *[other for other in self._trees.get(call.signature, ()) if other is not tree]]
                shortcut = branched_of([other for other in trees if other.reads_values], args, report_of)
        else:
            if tree.shortcut is None:
                tree.shortcut = direct_of(tree, args, report_of(tree)) or False
            shortcut = tree.shortcut
            if shortcut and not trace.speed.is_faster(trace.count):
                shortcut = Timed(shortcut, self, trace)
        if shortcut:
            self._shortcuts[_layouts(args)] = self._shortcut = shortcut

    def _remove_shortcut(self, call: CompiledCall) -> None:
        if self._shortcuts.pop(_layouts(call.eager_call.args), None) is self._shortcut:
            self._shortcut = None

    def _clear_shortcuts(self) -> None:
        self._shortcut, self._last_by_layout, self._shortcuts = None, None, {}

    def into(self, out: T, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function and write the results into the caller's arrays.

        Args:
            out: arrays or tensors with the structure, shapes and dtypes of the results.
            args, kwargs: the function's arguments.

        Returns:
            ``out``.

        Raises:
            ValueError: ``out`` has another structure, or one of its arrays another shape or dtype. Nothing is written then.

        >>> import numpy as np
        >>> import chainrule as cr
        >>> g = cr.compile(cr.grad(lambda x: np.sum(x ** 2)))
        >>> memory = np.empty(2)
        >>> g.into(memory, np.array([1., 2.])) is memory, memory
        (True, array([2., 4.]))
        """
        targets, spec = tree_flatten(out)
        memories = [x._raw if isinstance(x, Tensor) else x for x in targets]
        ordinary = not kwargs and not ACTIVE_MODES and not STACK.levels and all([type(x) is ndarray for x in targets])
        shortcut = self._shortcut
        if ordinary and shortcut is not None and shortcut.spec == spec:
            with contextlib.suppress(NeedsEagerRun):  # the call below raises the error or handles it
                if shortcut.into(args, memories):
                    return out
        results, found = tree_flatten(self(*args, **kwargs))
        values = [np.asarray(x._raw if isinstance(x, Tensor) else x) for x in results]
        if found != spec or any(
            (a.shape, a.dtype) != (b.shape, b.dtype) for a, b in zip(values, memories, strict=True)
        ):
            raise errors.compile_into(self.name, found, values)
        for memory, value in zip(memories, values, strict=True):
            _about_to_write([memory])
            memory[...] = value
        return out

    # -- other callers -----------------------------------------------------------------------------------------------

    def as_low_level_callable(self, *examples: object) -> Any:
        """Return the function as a ``scipy.LowLevelCallable``, which SciPy calls without running Python.

        Captured arrays are read in place, so later in-place changes are seen. Floating-point exceptions are not reported.

        Args:
            examples: arguments of the shapes that SciPy will pass. Pass one number per argument for ``scipy.integrate.quad``
                and similar functions, which pass float64. Pass one 1-D array for ``scipy.ndimage.generic_filter`` (the result
                is a number) and ``generic_filter1d`` (the result is an array). The function is called with them once.

        Raises:
            TypeError: SciPy has no callback of such arguments.
            RuntimeError: calls need Python: Python reads a value, the plan has a Python step, the result is not one float64
                array, or the extension is missing.
            ImportError: SciPy is not installed.

        >>> import numpy as np
        >>> import chainrule as cr
        >>> from scipy.integrate import quad  # doctest: +SKIP
        >>> f = cr.compile(lambda x, a: np.exp(-a * x * x))
        >>> round(quad(f.as_low_level_callable(0.0, 1.0), -np.inf, np.inf, args=(1.0,))[0] ** 2, 10)  # doctest: +SKIP
        3.1415926536
        """
        arrays = arguments_of(self.name, examples)
        call = self._call(arrays, {})
        tree, _ = self._find(call)
        if tree is None and call.signature not in self._eager:
            self._record((), call, hash(call.signature))  # an explicit request: the budget is not checked
            tree, _ = self._find(call)
        if tree is None:
            raise errors.compile_not_low_level(self.name, self._eager.get(call.signature, "it was not recorded"))
        return low_level_callable(self.name, tree, arrays)

    # -- inspection --------------------------------------------------------------------------------------------------

    def plan(self, *args: P.args, **kwargs: P.kwargs) -> PlanOfCall:
        """Return the plan for these arguments, to print: one line per step, with its buffer and its source line.

        If there is no trace for such arguments, one is recorded. This changes nothing outside of the function.

        Raises:
            RuntimeError: calls with such arguments cannot be traced. The message says why.

        >>> import numpy as np
        >>> import chainrule as cr
        >>> print(cr.compile(np.tanh).plan(np.ones(3)).executor in ("native", "python"))
        True
        """
        call = self._call(args, kwargs)
        if call.signature is None or call.signature in self._eager:
            reason = self._eager.get(call.signature, "it is part of another transformation")
            raise errors.compile_no_plan(self.name, reason)
        tree, values = self._find(call)
        found, tried = tree, [] if tree is None else [tree]
        while found is not None:
            before = found.generator_states()
            try:
                last, reads = found.reach_end(values)
                if last.checks:
                    last.run(values, reads, None)
                return PlanOfCall(found.path_to(last))
            except UntracedBranch as missing:
                found, values = self._find_other(call, missing.reads, tuple(tried))
                tried += [] if found is None else [found]
            finally:
                rewind_generators(before)
        try:
            trace, path, *_ = self._new_trace(tried, call, hash(call.signature))
        except Unrecordable as reason:
            raise errors.compile_no_plan(self.name, str(reason)) from None
        rewind_generators(trace.generator_states)
        return PlanOfCall(path)

    def explain(self) -> str:
        """Return a text about all traces: the inputs and reads of each, how it runs, and why other calls run eagerly."""
        trees = [tree for trees in self._trees.values() for tree in trees]
        text = describe_traces(self.name, trees, self._eager.values())
        return f"{text}\n- {self.budget.describe()}" if self.budget.misses else text

    @property
    def recordings(self) -> list[FunctionTrace]:
        """The traces of the function."""
        return [trace for trees in self._trees.values() for tree in trees for trace in tree.traces]

    @property
    def memory(self) -> int:
        """Return the bytes of the traces: plans with their buffers, constants and code."""
        return reachable_nbytes(self._trees, self._shortcut, self._shortcuts)


class Timed:
    """A shortcut that measures its calls until they are proven faster than eager calls."""

    __slots__ = ("_compiled", "_trace", "inner", "spec")

    def __init__(self, inner: Direct, compiled: Compiled[..., Any], trace: FunctionTrace) -> None:
        self.inner, self.spec = inner, inner.spec
        self._compiled, self._trace = compiled, trace

    def call(self, args: tuple[object, ...]) -> Any:
        """Call the shortcut. Return None if the shortcut returns None, or if ``Compiled._replay`` must handle the call."""
        trace, budget = self._trace, self._compiled.budget
        speed = trace.speed
        if budget.wants_eager_run(speed) or speed.is_slower or speed.is_faster(trace.count):
            return None  # ``_replay`` compares with an eager call, drops the trace, or adds the unmeasured shortcut
        begin = budget.clock()
        result = self.inner.call(args)
        if result is not None:
            budget.record_replay(speed, budget.clock() - begin, trace.count)
        return result

    def into(self, args: tuple[object, ...], out: Any) -> bool:
        return self.inner.into(args, out)


def _layouts(args: tuple[Any, ...]) -> tuple[object, ...]:
    """Return the key of the shortcut for arguments: shapes and dtypes of arrays, types of others."""
    return tuple([(x.shape, x.dtype.char) if type(x) is ndarray else type(x) for x in args])


def own_results(result: Any, name: str, args: object = ()) -> Any:
    """Return the result of an eager call as a replay returns it: in new containers, without shared memory.

    Raises:
        BadResult: the result has leaves that a compiled function cannot return.
    """
    if isinstance(result, np.generic) or (
        type(result) is ndarray and result.base is None and sys.getrefcount(result) == _NEW
    ):
        return result
    leaves, spec = tree_flatten(result)
    most = _REFERENCES[spec.kind is None]
    del result
    for i, x in enumerate(leaves):
        check_result(x, name)
        array = x._raw if isinstance(x, Tensor) else x._tensor._raw if type(x) is Array else x
        if type(array) is not ndarray or (array.base is None and sys.getrefcount(x) <= most):
            continue
        if isinstance(x, Tensor):
            leaves[i] = x.clone()
        elif type(x) is Array:
            leaves[i] = array_of(x._tensor.clone())
        elif any([type(y) is ndarray and np.may_share_memory(x, y) for y in tree_leaves(args)]):
            leaves[i] = x.copy("K")
    return tree_unflatten(leaves, spec)


#: the reference counts in ``own_results`` of a result that nothing else refers to: in a container, and alone
_REFERENCES = [0, 0]


def _is_returned(alone: bool) -> bool:
    """Return whether ``own_results`` returns a new tensor itself, not a copy."""
    tensor = wrap(np.empty(1))
    result: Any = tensor if alone else [tensor]
    del tensor
    found: Any = own_results(result, "")
    return (found if alone else found[0]) is (result if alone else result[0])


for _alone in (False, True):
    while not _is_returned(_alone):
        _REFERENCES[_alone] += 1


def _references_to(result: object, name: str, args: object = ()) -> int:
    return sys.getrefcount(result)


def _references_to_new() -> int:
    """Return the reference count in ``own_results`` of a result that nothing else refers to."""
    result = np.empty(1)
    return _references_to(result, "")


_NEW = _references_to_new()


def _by_name(function: object) -> Any:
    """Return the object that pickle finds under a function's name, or None."""
    found: Any = sys.modules.get(getattr(function, "__module__", ""))
    for part in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found


def _without_values(signature: Any) -> tuple[object, ...]:
    """Return a signature with floats replaced by their type."""
    return tuple(
        [
            float if type(part) is tuple and len(part) == 3 and part[0] in (float, np.float64) else part
            for part in signature
        ]
    )


def _about_to_write(memories: list[NumpyArray]) -> None:
    """Note on the tape that these arrays are written in place."""
    for memory in memories:
        if BEFORE_WRITE:
            about_to_write(memory)
        note_write(memory, "compile", errors.user_line())


def _overlap(written: set[int], values: dict[int, NumpyArray], outside: list[ndarray]) -> bool:
    """Return whether a written array shares memory with another array, unlike in the recorded call."""
    return any(
        any([k != n and np.may_share_memory(values[n], other) for k, other in values.items()])
        or any([np.may_share_memory(values[n], other) for other in outside])
        for n in written
    )


def _finish(trace: FunctionTrace, outputs: list[NumpyArray], leaves: list[Any], eager_call: Callable[[], Any]) -> Any:
    """Apply the effects of a replayed call and return the result of the function.

    Args:
        outputs: the arrays of ``trace.outputs()``, which nothing else refers to.
        leaves: the leaves of the arguments.
    """
    rest = iter(outputs)
    results = [
        _as_returned(result.content if result.var is None else next(rest), result.kind) for result in trace.results
    ]
    for effect in trace.effects:
        effect.apply(None if effect.var is None else next(rest), leaves)
    if trace.backward is not None:
        _record_call(trace, results, list(rest), leaves, eager_call)
    return tree_unflatten(results, trace.spec)


def _as_returned(array: NumpyArray, kind: str) -> TensorLike:
    """Return an output in the form that the function returned (see ``TracedOutput``)."""
    if kind == "tensor":
        return wrap(array)
    if kind == "copy":
        return array.copy("K")
    if kind == "view":
        return array.view()
    return array.item() if kind == "float" else array[()] if kind == "scalar" else array


def _record_call(
    trace: FunctionTrace,
    results: list[Any],
    residuals: list[NumpyArray],
    leaves: list[Any],
    eager_call: Callable[[], Any],
) -> None:
    """Put a call on the tape as one node, and replace its results by the outputs of the node."""
    backward = trace.backward
    assert backward is not None
    arrays = [results[i]._raw if isinstance(results[i], Tensor) else results[i] for i in backward.results]
    replay = Replay(trace, arrays, residuals, eager_call)
    outputs = CompiledFunction.apply(replay, *replay.tensors(leaves))
    for i, tensor in zip(backward.results, outputs, strict=True):
        results[i] = tensor if isinstance(results[i], Tensor) else array_of(tensor)


#: options of ``torch.compile``, which are accepted and ignored
_TORCH_OPTIONS = ("mode", "fullgraph", "dynamic", "backend", "options")


class _Module(Protocol):
    """A module (``nn.Module``), which ``compile`` wraps in a module."""

    _of_compiled: ClassVar[Any]


M = TypeVar("M", bound=_Module)


class CompileDecorator(Protocol):
    """The type of ``compile(**options)``, a decorator."""

    @overload
    def __call__(self, function: M, /) -> M: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Compiled[P, R]: ...


@overload
def compile(
    function: None = None,
    *,
    pure: bool = ...,
    max_slowdown: float | None = ...,
    max_bytes: int = ...,
    **options: object,
) -> CompileDecorator: ...
@overload
def compile(
    function: M, *, pure: bool = ..., max_slowdown: float | None = ..., max_bytes: int = ..., **options: object
) -> M: ...
@overload
def compile(
    function: np.ufunc, *, pure: bool = ..., max_slowdown: float | None = ..., max_bytes: int = ..., **options: object
) -> Compiled[..., Any]: ...
@overload
def compile(
    function: Callable[P, R],
    *,
    pure: bool = ...,
    max_slowdown: float | None = ...,
    max_bytes: int = ...,
    **options: object,
) -> Compiled[P, R]: ...
def compile(
    function: Any = None,
    *,
    pure: bool = False,
    max_slowdown: float | None = 2.0,
    max_bytes: int = MAX_BYTES,
    **options: object,
) -> Any:
    """Return a faster function with the same results: the first call is traced, and later calls replay the trace.

    A new kind of call is traced when eager calls have taken as long as all traces so far. So all calls together take at most
    ``max_slowdown`` times as long as eager calls, plus the longest trace and a tenth of a second.

    A trace guards all Python state that the function has read: names, attributes, elements, contents of arrays. Each call checks
    these guards, and traces again if one fails. Some state cannot be guarded (files, clocks, other random number generators,
    ``print``), and some functions change Python state (a list that grows, a counter). Such functions run eagerly, with a warning
    that names the line.

    Args:
        function: a function of arrays, tensors, numbers and containers of them. It may contain, or be, any transformation,
            ``backward()``, and control flow on values. Without it, ``compile`` returns a decorator. For a module it returns a
            module with the same parameters.
        pure: your promise that the function depends only on its arguments and on captured arrays and tensors, and changes
            nothing else, as ``jax.jit`` assumes. Then no other state is guarded, and calls check no guards.
        max_slowdown: all calls may take this many times as long as eager calls, besides the longest trace. With None each
            new kind of call is traced at once.
        max_bytes: about how many bytes traces may keep. Above it, the least used traces are dropped.
        mode, fullgraph, dynamic, backend, options: options of ``torch.compile``, accepted with a warning that they have no
            effect: results always have the bits of the function itself.
        disable: True returns the function itself.

    Returns:
        A function of the same arguments, with results of the same bits. A trace holds for one combination of shapes, dtypes,
        and values of arguments that are not arrays.

    Raises:
        TypeError: ``function`` is not callable, or there are other options. Options of ``jax.jit`` are not needed.
        ValueError: ``max_slowdown`` is less than 1.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> g = cr.compile(cr.grad(lambda x: np.sum(np.tanh(x) ** 2)))
    >>> x = np.linspace(0., 1., 3)
    >>> np.array_equal(g(x), cr.grad(lambda x: np.sum(np.tanh(x) ** 2))(x))
    True
    >>> scale = {"by": 2.0}
    >>> scaled = cr.compile(lambda x: x * scale["by"])
    >>> scaled(x).sum(), scale.update(by=3.0), scaled(x).sum()
    (np.float64(3.0), None, np.float64(4.5))
    """
    if function is None:
        return functools.partial(compile, pure=pure, max_slowdown=max_slowdown, max_bytes=max_bytes, **options)
    if options.pop("disable", False):
        return function
    ignored_options = [f"{name}={options.pop(name)!r}" for name in _TORCH_OPTIONS if name in options]
    if options:
        raise errors.compile_options(next(iter(options)))
    if ignored_options:
        errors.warn(
            f"compile: {', '.join(ignored_options)} has no effect: results always have the bits of the function itself"
        )
    errors.check_function("compile", function)
    name = getattr(function, "__name__", type(function).__name__)
    compiled = Compiled(function, name, pure, max_slowdown, max_bytes)
    finish = getattr(type(function), "_of_compiled", None)  # a method of ``nn.Module``, which is higher-level
    return compiled if finish is None else finish(compiled)


#: how plans run: "native", or "python" with the reason
compile.executor = EXECUTOR  # type: ignore[attr-defined]
