"""``chainrule.compile``: what users call, and which recording a call runs."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, array_of
from chainrule._src.arrays.memory import collector_at_rest
from chainrule._src.arrays.tree import tree_flatten, tree_leaves, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, TensorLike
from chainrule._src.compiling import causes
from chainrule._src.compiling.branched import Branched, branched_of
from chainrule._src.compiling.differentiable import CompiledFunction, Replay
from chainrule._src.compiling.direct import Direct, direct_of
from chainrule._src.compiling.floating_point import Handled, reporter
from chainrule._src.compiling.footprint import footprint
from chainrule._src.compiling.inspection import EXECUTOR, PlanOfCall, account, python_steps
from chainrule._src.compiling.keys import key_of, keys_within
from chainrule._src.compiling.low_level import arguments_of, low_level_callable
from chainrule._src.compiling.policy import ReplaySpeed, TraceBudget
from chainrule._src.compiling.recording import LOCK, BadResult, Recording, check_result, record, rewind
from chainrule._src.compiling.state.frames import occupied
from chainrule._src.compiling.tree import Missing, Segment, Tree
from chainrule._src.interpreters.recorded import ByValue, Unrecordable
from chainrule._src.messages import errors
from chainrule._src.native import AVAILABLE
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import LOCAL, SPECIAL
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import BEFORE_WRITE, about_to_write, wrote

ndarray = np.ndarray
MAX_BYTES = 1 << 28
TRIES = 3  # calls after which what a function changes for Python alone is taken for what it always does
PATIENCE = 5.0  # seconds that a call waits for a recording in another thread
TREES = 64  # for one signature: states of .grad and requires_grad, and functions that are not the same twice
REPEATED = 64  # times that a line has a step in one call, from which it is one in a loop


class CompiledCall:
    """One call, and what is known about it.

    Attributes:
        leaves, spec: its arguments; arrays: for each leaf its array, None for others.
        signature: what has to be the same for a trace to serve.
        again: runs it eagerly.
        begin: when its lookup began.
    """

    __slots__ = ("again", "arrays", "begin", "leaves", "signature", "spec")

    def __init__(self, function: AnyFunction, args: tuple[object, ...], kwargs: dict[str, Any], begin: float) -> None:
        self.again = functools.partial(function, *args, **kwargs)
        self.leaves, self.spec = tree_flatten((args, kwargs))
        self.begin = begin
        self.signature: Any = None
        self.arrays: list[Any] = []


class Compiled:
    """A function that is recorded when it is first called, and replayed as a plan afterwards. ``chainrule.compile`` makes it.

    Attributes:
        function: what was compiled; calling it is what eager computes.
        recordings: every run that was recorded.
        pure: whether the caller has promised that it reads and changes no state of Python's.
    """

    __module__ = "chainrule.compiler"

    def __init__(
        self,
        function: AnyFunction,
        name: str,
        pure: bool = False,
        max_slowdown: float | None = 2.0,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.function = function
        self.name = name
        self.pure = pure
        self.max_bytes = max_bytes
        self.budget = TraceBudget(max_slowdown)
        code = getattr(inspect.unwrap(function), "__code__", None)
        self.where = errors.Where(code, 0) if code is not None else None
        self._trees: dict[object, list[Tree]] = {}
        self._eager: dict[object, str] = {}  # signatures that are not recorded, and why
        self._slower: set[object] = set()  # those among them whose plan takes longer
        self._by_value: set[object] = set()  # signatures with numbers that cannot be arrays
        self._tried: dict[object, int] = {}  # how often one was not recorded that may be later
        self._shortcuts: dict[Any, Any] = {}  # the short ways into traces, by ``_layouts`` of arguments
        self._shortcut: Any = None  # the one that is tried first
        self._previous: Any = None  # the one that was tried last by layouts
        self._causes: Counter[Any] = Counter()  # of new traces
        self._last: Any = None  # the signature of the last trace
        self._warned = False  # of a step in a loop that is not native
        self._warned_of_waste = False
        functools.update_wrapper(self, function, updated=())

    def _options(self) -> tuple[object, ...]:
        return self.name, self.pure, self.budget.max_slowdown, self.max_bytes

    def renewed(self) -> Compiled:
        """The same function without its traces, which have been paid for all the same."""
        other = copy.copy(self)
        other.budget = self.budget
        return other

    def __repr__(self) -> str:
        return f"<compiled {self.name}, {len(self.recordings)} recordings>"

    def _repr_html_(self) -> str:
        return importlib.import_module("chainrule._src.explaining.notebooks").compiled_html(self)

    def __reduce__(self) -> str | tuple[object, ...]:
        name = getattr(self.function, "__qualname__", "")
        found = _by_name(self.function)
        if found is self:
            return name  # a decorated function is found by its name
        if isinstance(self.function, FunctionType) and found is not self.function:
            raise errors.compile_not_pickled(self.name)
        return Compiled, (self.function, *self._options())

    def __copy__(self) -> Compiled:
        return Compiled(self.function, *self._options())  # type: ignore[arg-type]

    def __deepcopy__(self, memo: dict[int, object]) -> Compiled:
        return Compiled(copy.deepcopy(self.function, memo), *self._options())  # type: ignore[arg-type]

    def __get__(self, instance: object, owner: object = None) -> AnyFunction | Compiled:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        shortcut = self._shortcut
        if (shortcut is not None or self._shortcuts) and not kwargs and not SPECIAL and not STACK.levels:
            try:
                result = None if shortcut is None else shortcut.call(args)
                if result is None:
                    result = self._by_layouts(shortcut, args)
                if result is not None:
                    return result
            except Exception:  # a floating-point exception that is more than a warning
                return self.function(*args)
        if STACK.levels or (SPECIAL and (LOCAL.watch is not None or LOCAL.recorder is not None)):
            return self.function(*args, **kwargs)  # part of another transformation, which sees the operations
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
            return self._missed(None, call, hash(call.signature))
        return self._replay(tree, values, call)

    def _by_layouts(self, tried: Any, args: tuple[Any, ...]) -> Any:
        """What the shortcut for such arguments returns; None if there is none, or it was tried."""
        layouts = _layouts(args)
        shortcut = self._shortcuts.get(layouts)
        result = None if shortcut is None or shortcut is tried else shortcut.call(args)
        if result is None and type(shortcut) is Branched:
            self._shortcuts.pop(layouts, None)  # it computed something in vain, before a value that is new
        self._shortcut = shortcut if result is not None and shortcut is self._previous else None
        self._previous = shortcut
        return result

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CompiledCall:
        call = CompiledCall(self.function, args, kwargs, self.budget.clock())
        call.signature, call.arrays = self._signature(call.leaves, call.spec)
        return call

    def _find(self, call: CompiledCall) -> tuple[Tree | None, dict[int, NumpyArray]]:
        """The tree whose recordings hold for a call, and the arrays that it starts from."""
        for tree in self._trees.get(call.signature, ()):
            values = tree.start(call.leaves, call.arrays)
            if values is not None:
                return tree, values
        return None, {}

    def _run_eagerly(
        self, call: CompiledCall, kind: int | None = None, speed: ReplaySpeed | None = None, own: bool = True
    ) -> Any:
        """Run a call eagerly.

        Args:
            kind: where it could be traced: equal for calls that one trace would serve.
            speed: what it is to be compared with.
            own: whether its results are to be like those of a replay; calls that cannot be traced return what they return.
        """
        start = self.budget.start_eager()
        try:
            result = call.again()
        finally:
            seconds = self.budget.end_eager(start, start[0] - call.begin, kind)
        if speed is not None:
            self.budget.compared(speed, seconds)
        if own:
            result = own_results(result, self.name, call.leaves)
        self.budget.end_call()
        return result

    # -- what a call is like -----------------------------------------------------------------------------------------

    def _signature(self, leaves: list[Any], spec: object) -> tuple[Any, list[Any]]:
        """What has to be the same for a recording to serve again, and the arrays among the leaves.

        The signature is None for calls that are not to be recorded.
        """
        signature, arrays = self._described(leaves, spec, any(isinstance(x, Tensor) for x in leaves))
        if self._by_value and signature in self._by_value:
            return self._described(leaves, spec, True)
        return signature, arrays

    def _described(self, leaves: list[Any], spec: Any, by_value: bool) -> tuple[Any, list[Any]]:
        """``_signature``, where numbers (but integers of Python's) are arrays, or by value."""
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
                if type(array) is not ndarray:  # of another library's class, which computes as it likes
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
                except TypeError:  # it may be another one without anybody noticing
                    return None, []
        key.append(keys_within(spec))
        return tuple(key), arrays

    # -- recording ---------------------------------------------------------------------------------------------------

    def _missed(self, tree: Tree | None, call: CompiledCall, kind: int, missing: Missing | None = None) -> Any:
        """Trace a call that has no trace, where the budget allows it; else run it eagerly.

        Args:
            tree: where it is a new branch, and ``missing`` says of which value.
            kind: equal for calls that one trace would serve.
        """
        budget = self.budget
        if budget.is_wasted and not self._warned_of_waste:
            self._warn_of_waste(call, missing)
        if (
            not budget.may_trace(kind) and budget.misses % (budget.traces + 1) == 0
        ):  # it takes longer the more traces there are
            self._count_savings()
        if not budget.may_trace(kind) or (occupied() and not self.pure):
            return self._run_eagerly(call, kind)
        if not LOCK.acquire(
            timeout=PATIENCE
        ):  # a function that is being recorded waits for this call, in all likelihood
            return self._run_eagerly(call, kind)
        try:
            found, values = self._find(call)  # another thread may have recorded it
            if found is None or found is tree:
                self._note_cause(call, missing)
                return self._record(found, call, kind)
        finally:
            LOCK.release()
        return self._replay(found, values, call)

    def _count_savings(self) -> None:
        """Book what replays have saved, those by shortcuts, too."""
        for tree in [tree for trees in self._trees.values() for tree in trees]:
            for segment, recording in tree.ends():
                self.budget.count_savings(recording.speed, segment.plan.runs, recording.count)
                if recording.speed.asked:
                    self._clear_shortcuts()

    def _note_cause(self, call: CompiledCall, missing: Missing | None) -> None:
        """Count why a call has no trace."""
        if self._last is None or self._warned_of_waste:
            return
        trees = self._trees.get(call.signature)
        if missing is not None:
            self._causes[causes.branch(missing.where)] += 1
        elif trees:
            self._causes[causes.state(self.function, trees[-1], call.leaves)] += 1
        else:
            self._causes[causes.arguments(self.function, self._last, call.signature)] += 1

    def _warn_of_waste(self, call: CompiledCall, missing: Missing | None) -> None:
        """Say once why so many calls have no trace."""
        self._note_cause(call, missing)
        self._warned_of_waste = True
        for cause, _ in self._causes.most_common(1):
            errors.warn_compile_wasted(self.name, self.where, *cause)

    def _record(self, tree: Tree | None, call: CompiledCall, kind: int) -> Any:
        """Run the function once on values that are recorded: for a new tree, or as a branch of one."""
        signature = call.signature
        try:
            recording, _, new, made = self._recorded(tree, call, kind)
        except BadResult:
            raise
        except Unrecordable as reason:
            if isinstance(reason, ByValue) and signature not in self._by_value:
                return self._record_by_value(call)
            if reason.perhaps_later and self._tried.setdefault(signature, 0) < TRIES:
                self._tried[signature] += 1
            else:
                self._run_as_it_is(signature, str(reason))
            return self._run_eagerly(call, own=False)
        except Exception as error:
            if signature not in self._by_value and any(isinstance(x, (float, np.generic)) for x in call.leaves):
                return self._record_by_value(call)
            result = self._run_eagerly(call, own=False)  # which says what is wrong, if it is the function's
            self._run_as_it_is(signature, f"{type(error).__name__}: {error}")
            return result
        _about_to_write([memory for memory, _ in new])
        for memory, values in new:
            memory[...] = values
        return _finish(recording, made, call.leaves, call.again)

    def _warn_of_python(self, path: list[Segment]) -> None:
        """Say once that a line in a loop has a step that is not native."""
        if self._warned or not AVAILABLE:
            return
        for (name, code, lasti), count in python_steps(PlanOfCall(path).steps).most_common(1):
            if count >= REPEATED:
                self._warned = True
                errors.warn_compile_by_python(self.name, errors.Where(code, lasti), name, count)

    def _record_by_value(self, call: CompiledCall) -> Any:
        """Record a function whose numbers cannot be arrays, with what they are."""
        self._by_value.add(call.signature)
        call.signature, call.arrays = self._signature(call.leaves, call.spec)
        if call.signature is None or call.signature in self._eager:
            return self._run_eagerly(call, own=False)
        tree, values = self._find(call)
        if tree is not None:
            return self._replay(tree, values, call)
        return self._record(None, call, hash(call.signature))

    def _recorded(
        self, tree: Tree | None, call: CompiledCall, kind: int
    ) -> tuple[Recording, list[Segment], list[tuple[Any, Any]], list[Any]]:
        """A new recording and its segments; memory that it writes, with the values; the arrays that it made. Its calls are gone."""
        begin, kept = self.budget.clock(), None
        try:
            with (
                LOCK,
                collector_at_rest(),
            ):  # looking through what a recording makes, again and again, is half of its time
                recording, path = self._added(tree, call, kind)
                new = [(memory.array, value.array.copy("K")) for memory, value in recording.writes]
                made = [var.array.copy("K") for var in recording.outputs()]
                recording.forget()
            self._warn_of_python(path)
            self._evict(recording)
            kept = kind
            return recording, path, new, made
        finally:
            self.budget.traced(self.budget.clock() - begin, kept)

    def _added(self, tree: Tree | None, call: CompiledCall, kind: int) -> tuple[Recording, list[Segment]]:
        """A new recording, in its tree, and its segments."""
        signature = call.signature
        recording = record(self.function, call.leaves, call.spec, call.arrays, self.name, self.pure)
        trees = self._trees.get(signature, [])
        try:
            at = [k for k, other in enumerate(trees) if tree is not None and other.references is tree.references]
            grown = trees[at[0]].grown(recording) if at else None
            if grown is not None:
                trees = [*trees[: at[0]], grown, *trees[at[0] + 1 :]]
            else:
                same = [other for other in trees if other.learns_from(recording)]
                grown = same[0] if same else Tree(recording)
                trees = trees if same else [*trees, grown]
        except Exception:
            rewind(recording.drawn)
            raise
        recording.speed = self.budget.speed_of(kind)
        self._trees[signature], self._last = trees, signature
        return recording, grown.newest

    def _evict(self, newest: Recording) -> None:
        """Drop the traces that were used least lately, where all keep too many bytes, or one signature has too many trees."""
        trees = [tree for trees in self._trees.values() for tree in trees]
        excess = sum([tree.nbytes for tree in trees]) - self.max_bytes
        crowded = [trees for trees in self._trees.values() if len(trees) > TREES] if len(trees) > TREES else []
        if excess <= 0 and not crowded:
            return
        uses = {recording: segment.plan.runs for tree in trees for segment, recording in tree.ends()}
        lately = {recording: runs - recording.runs for recording, runs in uses.items() if recording is not newest}
        evicted = {
            recording
            for same in crowded
            for recording in min(same[:-1], key=lambda tree: max([lately[r] for r in tree.recordings])).recordings
        }
        excess += self.max_bytes // 8 if excess > 0 else 0  # so that it is not done for each new trace
        for recording in sorted(lately, key=lambda recording: lately[recording]):
            if excess > 0:
                evicted.add(recording)
                excess -= recording.nbytes
        for recording, runs in uses.items():
            recording.runs = runs
        self._clear_shortcuts()
        for signature, same in list(self._trees.items()):
            kept = [tree if evicted.isdisjoint(tree.recordings) else tree.without(evicted) for tree in same]
            self._trees[signature] = [tree for tree in kept if tree is not None]
            if not self._trees[signature]:
                del self._trees[signature]

    def _run_as_it_is(self, signature: object, reason: str) -> None:
        """Have calls that cannot be traced run eagerly from now on."""
        errors.warn_compile_failed(self.name, self.where, reason)
        self._drop(signature, reason)

    def _drop(self, signature: object, reason: str) -> None:
        self._eager[signature] = reason
        self._trees.pop(signature, None)
        self._clear_shortcuts()

    # -- replaying ---------------------------------------------------------------------------------------------------

    def _replay(self, tree: Tree, values: dict[int, NumpyArray], call: CompiledCall) -> Any:
        """Replay a trace that holds for a call, if the values that Python reads lead to one."""
        budget = self.budget
        before = tree.generator_states()
        try:
            report = reporter(self.name, tree.ignored, tree.handled)
            last = tree.reach(values, report)
            recording = last.recording
            assert recording is not None
            if budget.wants_eager_run(recording.speed) or (recording.speed.is_slower and tree.root.guard is None):
                rewind(before)
                return self._compare(tree, recording, call)
            if tree.writes:
                read_only = not all([values[number].flags.writeable for number in tree.writes])
                if read_only or _overlap(tree.writes, values, tree.references.arrays):
                    rewind(before)
                    return self._run_eagerly(call)
                _about_to_write([values[number] for number in tree.writes])
            made = last.plan.run([values[n] for n in last.takes], report)
        except Missing as missing:
            rewind(before)
            tree.hits = 0
            self._remove_shortcut(call)
            return self._missed(tree, call, missing.kind, missing)
        except Exception:  # of a step in Python, or a floating-point exception: eager says what and where
            rewind(before)
            return self._run_eagerly(call)
        result = _finish(recording, made, call.leaves, call.again)
        budget.replayed(recording.speed, budget.clock() - call.begin, recording.count)
        if not recording.proven and recording.speed.is_faster(recording.count):
            recording.proven = True
            budget.proved()
        tree.hits += 1
        if not SPECIAL and (
            tree.root.guard is None or tree.hits > 1
        ):  # it costs a call that reads a new value twice the time
            self._add_shortcut(tree, recording, call)
        return result

    def _compare(self, tree: Tree, recording: Recording, call: CompiledCall) -> Any:
        """Run a call eagerly that has a trace, to compare their speed."""
        result = self._run_eagerly(call, speed=recording.speed)
        if tree.root.guard is None and recording.speed.is_slower:
            self._slower.add(call.signature)
            self._drop(call.signature, "its plan takes longer than the function itself")
        return result

    def _add_shortcut(self, tree: Tree, recording: Recording, call: CompiledCall) -> None:
        """Let the next calls like this one take the short way into a tree, if there is one."""
        if tree.shortcut is None:
            short = direct_of if tree.root.guard is None else branched_of
            report = reporter(self.name, tree.ignored, tree.handled)
            tree.shortcut = (not call.again.keywords and short(tree, call.again.args, report)) or False
        shortcut = tree.shortcut
        if shortcut and not recording.speed.is_faster(recording.count):
            shortcut = Timed(shortcut, self, recording) if tree.root.guard is None else None
        if shortcut:
            self._shortcuts[_layouts(call.again.args)] = self._shortcut = shortcut

    def _remove_shortcut(self, call: CompiledCall) -> None:
        if self._shortcuts.pop(_layouts(call.again.args), None) is self._shortcut:
            self._shortcut = None

    def _clear_shortcuts(self) -> None:
        self._shortcut, self._previous, self._shortcuts = None, None, {}

    def into(self, out: object, *args: AnyArray, **kwargs: object) -> Any:
        """Call it, and have the results written into arrays of the caller's.

        Args:
            out: arrays (or tensors) of the results' shapes and dtypes, in their structure.
            args, kwargs: the function's.

        Returns:
            ``out``.

        Raises:
            ValueError: ``out`` has another structure, or an array in it another shape or dtype; nothing is written then.

        >>> import numpy as np
        >>> import chainrule as cr
        >>> g = cr.compile(cr.grad(lambda x: np.sum(x ** 2)))
        >>> memory = np.empty(2)
        >>> g.into(memory, np.array([1., 2.])) is memory, memory
        (True, array([2., 4.]))
        """
        targets, spec = tree_flatten(out)
        memories = [x._raw if isinstance(x, Tensor) else x for x in targets]
        ordinary = not kwargs and not SPECIAL and not STACK.levels and all([type(x) is ndarray for x in targets])
        shortcut = self._shortcut
        if ordinary and shortcut is not None and shortcut.spec == spec:
            with contextlib.suppress(Handled):  # eager says what it is
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
        """The function as a ``scipy.LowLevelCallable``, which SciPy calls without Python in between.

        Arrays that the function captures are read where they are now, also when they are changed in place later.
        Floating-point exceptions are not reported.

        Args:
            examples: arguments of the shapes that it will have. Numbers, one for each argument, are for
                ``scipy.integrate.quad`` and its like, which pass float64; an array of one dimension is for
                ``scipy.ndimage.generic_filter`` (with a number as the result) and ``generic_filter1d`` (with an array). The
                function is called with them once.

        Raises:
            TypeError: there are no such functions of these arguments.
            RuntimeError: it takes Python to call it: Python reads a value, a step of the plan is Python's, the result is not
                one float64 array, the extension is not there.
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
            self._record(None, call, hash(call.signature))  # it is asked for, so no budget is
            tree, _ = self._find(call)
        if tree is None:
            raise errors.compile_not_low_level(self.name, self._eager.get(call.signature, "it was not recorded"))
        return low_level_callable(self.name, tree, arrays)

    # -- looking at it -----------------------------------------------------------------------------------------------

    def plan(self, *args: AnyArray, **kwargs: object) -> PlanOfCall:
        """What is computed for such arguments, to print: one line a step, with where its result lies and your line.

        The function is recorded for them if it was not, which changes nothing outside of it.

        Raises:
            RuntimeError: calls with such arguments are not recorded; the message says why.

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
        if tree is not None:
            before = tree.generator_states()
            try:
                return PlanOfCall(tree.path_to(tree.reach(values)))
            except Missing:
                pass
            finally:
                rewind(before)
        try:
            recording, path, *_ = self._recorded(tree, call, hash(call.signature))
        except Unrecordable as reason:
            raise errors.compile_no_plan(self.name, str(reason)) from None
        rewind(recording.drawn)
        return PlanOfCall(path)

    def explain(self) -> str:
        """An account of all recordings: what each holds for and reads, how it runs, and what is not recorded, and why."""
        trees = [tree for trees in self._trees.values() for tree in trees]
        text = account(self.name, trees, self._eager.values())
        return f"{text}\n- {self.budget.describe()}" if self.budget.misses else text

    @property
    def recordings(self) -> list[Recording]:
        """Every run that was recorded."""
        return [recording for trees in self._trees.values() for tree in trees for recording in tree.recordings]

    @property
    def memory(self) -> int:
        """Bytes that it keeps alive: plans with their buffers, constants and code, and what is left of recordings."""
        return footprint(self._trees, self._shortcut, self._shortcuts)


class Timed:
    """A shortcut whose calls are measured, as long as it is not known whether they are faster than eager calls."""

    __slots__ = ("_compiled", "_recording", "inner", "spec")

    def __init__(self, inner: Direct, compiled: Compiled, recording: Recording) -> None:
        self.inner, self.spec = inner, inner.spec
        self._compiled, self._recording = compiled, recording

    def call(self, args: tuple[object, ...]) -> Any:
        """As the shortcut's; None also where the next call is to be another way."""
        recording, budget = self._recording, self._compiled.budget
        speed = recording.speed
        if budget.wants_eager_run(speed) or speed.is_slower or speed.is_faster(recording.count):
            return None  # the long way sees to it
        begin = budget.clock()
        result = self.inner.call(args)
        if result is not None:
            budget.replayed(speed, budget.clock() - begin, recording.count)
        return result

    def into(self, args: tuple[object, ...], out: Any) -> bool:
        return self.inner.into(args, out)


def _layouts(args: tuple[Any, ...]) -> tuple[object, ...]:
    """What tells arguments apart that take different shortcuts."""
    return tuple([(x.shape, x.dtype.char) if type(x) is ndarray else type(x) for x in args])


def own_results(result: Any, name: str, args: object = ()) -> Any:
    """Return the result of an eager call as a replay returns it: in memory and containers of its own.

    Raises:
        BadResult: it has leaves that a compiled function cannot return.
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


#: how often a result that nobody else has is referred to within ``own_results``: in a container, and alone
_REFERENCES = [0, 0]


def _is_returned(alone: bool) -> bool:
    """Whether ``own_results`` returns a new array itself."""
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
    """Return how often ``own_results`` finds a result to be referred to that nobody else has."""
    result = np.empty(1)
    return _references_to(result, "")


_NEW = _references_to_new()


def _by_name(function: object) -> Any:
    """What pickle finds under a function's name; None if it finds nothing."""
    found: Any = sys.modules.get(getattr(function, "__module__", ""))
    for part in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found


def _without_values(signature: Any) -> tuple[object, ...]:
    """A signature in which floats may have any value."""
    return tuple(
        [
            float if type(part) is tuple and len(part) == 3 and part[0] in (float, np.float64) else part
            for part in signature
        ]
    )


def _about_to_write(memories: list[NumpyArray]) -> None:
    """Have the tape know that these arrays are written."""
    for memory in memories:
        if BEFORE_WRITE:
            about_to_write(memory)
        wrote(memory, "compile", errors.user_line())


def _overlap(written: set[int], values: dict[int, NumpyArray], outside: list[ndarray]) -> bool:
    """Whether what is written is memory of another array, too: the recording was made where that was not so."""
    return any(
        any([k != n and np.may_share_memory(values[n], other) for k, other in values.items()])
        or any([np.may_share_memory(values[n], other) for other in outside])
        for n in written
    )


def _finish(recording: Recording, made: list[NumpyArray], leaves: list[Any], again: Callable[[], Any]) -> Any:
    """Put what a call computed in its places, and return what the function returns.

    Args:
        made: the arrays of ``recording.outputs()``, which nobody else has.
        leaves: those of the arguments.
    """
    rest = iter(made)
    results = [
        _faced(result.content if result.var is None else next(rest), result.face) for result in recording.results
    ]
    for effect in recording.effects:
        effect.apply(None if effect.var is None else next(rest), leaves)
    if recording.backward is not None:
        _record_call(recording, results, list(rest), leaves, again)
    return tree_unflatten(results, recording.spec)


def _faced(array: NumpyArray, face: str) -> TensorLike:
    """An array as the function returned it: a tensor, an array, a scalar of NumPy's, or a float; an object as it is."""
    if face == "tensor":
        return wrap(array)
    if face == "copy":
        return array.copy("K")
    if face == "view":
        return array.view()
    return array.item() if face == "float" else array[()] if face == "scalar" else array


def _record_call(
    recording: Recording, results: list[Any], residuals: list[NumpyArray], leaves: list[Any], again: Callable[[], Any]
) -> None:
    """Put a call on the tape, whose results gradients flow through."""
    backward = recording.backward
    assert backward is not None
    arrays = [results[i]._raw if isinstance(results[i], Tensor) else results[i] for i in backward.results]
    replay = Replay(recording, arrays, residuals, again)
    outputs = CompiledFunction.apply(replay, *replay.tensors(leaves))
    for i, tensor in zip(backward.results, outputs, strict=True):
        results[i] = tensor if isinstance(results[i], Tensor) else array_of(tensor)


#: what ``torch.compile`` takes, and what would change how it computes there
_OF_TORCH = ("mode", "fullgraph", "dynamic", "backend", "options")


def compile(
    function: Any = None,
    *,
    pure: bool = False,
    max_slowdown: float | None = 2.0,
    max_bytes: int = MAX_BYTES,
    **options: object,
) -> Any:
    """A function that computes what ``function`` does, faster: recorded when first called, then replayed.

    Other kinds of calls are traced when eager calls have taken as long as all traces so far: whatever calls come, they take at most
    ``max_slowdown`` times as long as eager calls, plus the longest trace and a tenth of a second.

    Everything that it reads of Python's state while it is recorded is looked at again in each call: names, attributes, elements,
    contents of arrays; if something is another one, it is recorded again. What cannot be looked at again (files, clocks, other
    generators of random numbers, ``print``) or is changed (a list that grows, a counter) makes it run as it is, with a warning that
    names the line.

    Args:
        function: of arrays, tensors, numbers and containers of them; it may contain, or be, any transformation,
            ``backward()``, and control flow on values. Without it, a decorator. A module gives a module that has its parameters
            and all else.
        pure: your word that it depends on its arguments and on arrays and tensors of the surrounding program alone, and changes
            nothing else, as ``jax.jit`` takes it for granted: nothing but these is looked at, and calls cost nothing for it.
        max_slowdown: at most how many times as long as eager calls all calls may take, besides the longest trace. None: each new
            kind of call is traced when it first comes, whatever that costs.
        max_bytes: about how many bytes traces may keep. Beyond it, those that were used least lately are dropped.
        mode, fullgraph, dynamic, backend, options: accepted, as of ``torch.compile``, and a warning says that they change
            nothing: there is one way to compute, whose bits are those of the function itself.
        disable: True gives back the function as it is.

    Returns:
        A function of the same arguments, with results of the same bits. A recording holds for one combination of shapes,
        dtypes and values of arguments that are no arrays.

    Raises:
        TypeError: it is not callable, or there are other options: it needs none of JAX's.
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
    told = [f"{name}={options.pop(name)!r}" for name in _OF_TORCH if name in options]
    if options:
        raise errors.compile_options(next(iter(options)))
    if told:
        errors.warn(
            f"compile: {', '.join(told)} changes nothing: there is one way to compute, with the function's own bits"
        )
    errors.check_function("compile", function)
    name = getattr(function, "__name__", type(function).__name__)
    compiled = Compiled(function, name, pure, max_slowdown, max_bytes)
    finish = getattr(type(function), "_of_compiled", None)  # of modules, which are above
    return compiled if finish is None else finish(compiled)


#: how plans run: "native", or "python" and why
compile.executor = EXECUTOR  # type: ignore[attr-defined]
