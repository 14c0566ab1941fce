"""Record a trace: run a function once and note its array calls, reads, results and effects.

``trace_function`` takes the function with its arguments and returns a ``FunctionTrace``. ``compiled`` calls it when no trace
holds for a call. ``tree`` plans the trace.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chainrule._src import native
from chainrule._src.api.array import Array, array_of, as_arrays, plain_or_stacked
from chainrule._src.arrays.any_array import overlaps_itself, same_strides
from chainrule._src.arrays.tree import TreeSpec, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyFunction, NumpyArray, TensorLike
from chainrule._src.compiling.encoding import EncodedCalls, operand_vars
from chainrule._src.compiling.fingerprints import Fingerprint
from chainrule._src.compiling.generators import Generators, one_thread
from chainrule._src.compiling.guards import frames
from chainrule._src.compiling.guards.guards import GuardSets
from chainrule._src.compiling.guards.log import StateLog, TraceRefused
from chainrule._src.compiling.guards.watch import StateWatch, TypeWatch
from chainrule._src.compiling.policy import ReplaySpeed
from chainrule._src.interpreters.captured_arrays import Lifted, hook_keys
from chainrule._src.interpreters.recorder import Recorder
from chainrule._src.interpreters.trace_types import CallRange, TracedCall, Unrecordable, ValueGuard, Var, calls_between
from chainrule._src.interpreters.traced import Traced
from chainrule._src.messages.errors import GRADIENT
from chainrule._src.messages.message_parts import counted
from chainrule._src.tape.engine import reachable, sweep
from chainrule._src.tape.levels import open_level
from chainrule._src.tape.modes import LOCAL, switch_mode
from chainrule._src.tape.node import Edge, Freed, Leaf
from chainrule._src.tape.tensor import Tensor, set_grad, set_tensor_data, wrap
from chainrule._src.tape.versions import owner

if TYPE_CHECKING:
    from chainrule._src.compiling.plan import ExecutionPlan

ndarray = np.ndarray
#: one trace at a time is recorded: meanwhile, captured tensors hold traced values
LOCK = threading.RLock()


def rewind_generators(states: list[tuple[Any, Any]]) -> None:
    """Restore the states of random number generators."""
    for generator, state in states:
        generator._set_state(state)


class BadResult(TypeError):
    """A function returned an object that a compiled function cannot return."""


class Argument(NamedTuple):
    """A source of an array: the argument leaf at an index."""

    at: int

    def array(self, arrays: tuple[NumpyArray, ...] | list[NumpyArray | None], leaves: Sequence[object]) -> Any:
        return arrays[self.at]


class TensorData(NamedTuple):
    """A source of an array: the data of a captured tensor at the time of the call."""

    tensor: Tensor

    def array(self, arrays: list[NumpyArray | None], leaves: Sequence[object]) -> Any:
        return self.tensor._raw


class GradOf(NamedTuple):
    """A source of an array: the ``.grad`` of a tensor at the time of the call."""

    leaf: LeafRef

    def array(self, arrays: list[NumpyArray], leaves: list[Tensor]) -> Any:
        grad = self.leaf.tensor(leaves)._grad
        return None if grad is None else grad._raw


class Captured(NamedTuple):
    """A source of an array: a captured array, read in place."""

    content: NumpyArray

    def array(
        self,
        arrays: tuple[NumpyArray, ...] | list[NumpyArray | None],
        leaves: list[TensorLike | AnyFunction] | tuple[NumpyArray, ...],
    ) -> Any:
        return self.content


class LeafRef(NamedTuple):
    """A tensor that may have a ``.grad``: a captured tensor, or the argument leaf at an index."""

    captured: Tensor | None
    at: int

    def tensor(self, leaves: list[Any]) -> Tensor:
        if self.captured is not None:
            return self.captured
        leaf = leaves[self.at]
        return leaf._tensor if type(leaf) is Array else leaf


class TracedOutput(NamedTuple):
    """A result: an array of the trace, or an object that is the same in each call.

    Attributes:
        kind: the form of the result: "tensor", "array", "scalar" or "float"; "object", or a "copy" or "view" of the object.
        var: the array of the trace; None for an object.
        content: the object.
    """

    kind: str
    var: Var | None
    content: Any


class NewGrad(NamedTuple):
    """An effect: a leaf gets a new ``.grad``, or None."""

    leaf: LeafRef
    var: Var | None

    def apply(self, array: object, leaves: list[Any]) -> None:
        tensor = self.leaf.tensor(leaves)
        if array is None:
            set_grad(tensor, None)
        else:
            grad = wrap(array)
            grad._cut = GRADIENT
            set_grad(tensor, grad)


class NewData(NamedTuple):
    """An effect: a captured tensor gets another array as its data."""

    tensor: Tensor
    var: Var

    def apply(self, array: object, leaves: Sequence[Tensor]) -> None:
        set_tensor_data(self.tensor, array)
        if type(self.tensor._edge) is Leaf:
            self.tensor._edge.data = array


class TensorStateGuard(NamedTuple):
    """A guard on the autograd state of a tensor with a history. ``has_grad`` is None where the trace does not depend on it."""

    leaf: LeafRef
    requires_grad: bool
    has_grad: bool | None
    hooks: tuple[Any, ...]

    def holds(self, leaves: list[object]) -> bool:
        tensor = self.leaf.tensor(leaves)
        if (tensor._edge is not None) is not self.requires_grad or hook_keys(tensor._edge) != self.hooks:
            return False
        return self.has_grad is None or (tensor._grad is not None) is self.has_grad


class Backward:
    """The backward pass of a trace: from cotangents of results to gradients of leaves.

    Attributes:
        results: the positions of the results that have cotangents.
        cotangents: the Var of each cotangent.
        encoded: the calls of the backward pass, until they are planned; residuals: the arrays of the forward pass that these read.
        fingerprint: the fingerprint of the calls.
        takes_repeated: whether the calls give the same bits for broadcast cotangents and for copies of them.
        leaves, grads: the tensors that gradients flow to, and the Var of each gradient or None.
    """

    def __init__(
        self, results: list[int], cotangents: list[Var], leaves: list[LeafRef], grads: list[Var | None]
    ) -> None:
        self.results, self.cotangents, self.leaves, self.grads = results, cotangents, leaves, grads
        self.encoded: EncodedCalls | None = None
        self.residuals: list[Var] = []
        self.plan: Any = None
        self.fingerprint: Fingerprint | None = None
        self.takes_repeated = True

    @property
    def calls(self) -> Sequence[TracedCall]:
        """The calls, until they are planned."""
        return [] if self.encoded is None else self.encoded.calls

    def set_plan(self, plan: ExecutionPlan) -> None:
        """Set the plan, and release the calls that it was made from."""
        for var in (*self.residuals, *self.cotangents, *_results_of(self.calls)):
            var.drop_array()
        self.plan, self.encoded = plan, None


class FunctionTrace:
    """The trace of one run of a function.

    Attributes:
        calls, guards: the calls and value reads noted by :class:`~chainrule._src.interpreters.recorder.Recorder`; count: the
            number of calls.
        reads: the bytes of the values that Python reads.
        sources: the source of each input array, by Var.
        constants: input arrays that nothing else refers to.
        results, spec: the leaves of the result, and its structure.
        writes: pairs (Var of a source, Var of its new value), for memory that the function writes.
        effects: other changes of tensors.
        states: guards on tensors with a history.
        generator_states: the random number generators that it drew from, and their states before.
        ignored: the kinds of floating-point exceptions that the function ignores in some part.
        handled: the kinds that the function may handle itself.
        guard_sets: guards on Python state.
        backward: the backward pass, if gradients can flow through the function.
        speed: the speed of replays compared with eager calls.
        proven: whether a replay was faster than an eager call.
        runs: the number of replays when traces were last evicted.
        nbytes: the approximate bytes that only this trace keeps alive.
    """

    def __init__(self) -> None:
        self.proven = False
        self.runs = self.nbytes = 0
        self.speed = ReplaySpeed()
        self.calls: Sequence[TracedCall] = []
        self.count = 0
        self.guards: list[ValueGuard] = []
        self.reads: list[bytes] = []
        self.sources: dict[Var, Any] = {}
        self.constants: list[Var] = []
        self.results: list[TracedOutput] = []
        self.spec: TreeSpec = None  # type: ignore[assignment]
        self.writes: list[tuple[Var, Var]] = []
        self.effects: list[NewGrad | NewData] = []
        self.states: list[TensorStateGuard] = []
        self.generator_states: list[tuple[Any, Any]] = []
        self.backward: Backward | None = None
        self.guard_sets: GuardSets | None = None
        self.ignored: frozenset[str] = frozenset()
        self.handled: frozenset[str] = frozenset()

    def outputs(self) -> list[Var]:
        """Return the arrays that a replay computes: results, effects, then residuals of the backward pass."""
        outputs = [x.var for x in (*self.results, *self.effects) if x.var is not None]
        return outputs if self.backward is None else [*outputs, *self.backward.residuals]

    def describe(self) -> str:
        """Return a short text that lists the input arrays."""
        kinds = [
            ("" if type(source) is Argument else "captured ") + f"{var.dtype}{list(var.shape)}"
            for var, source in self.sources.items()
        ]
        return f"trace for {', '.join(kinds) or 'no arrays'}"

    def __repr__(self) -> str:
        return f"<{self.describe()}: {counted(len(self.calls) or self.count, 'call')}, {counted(len(self.guards), 'value')} read>"

    def release_calls(self) -> None:
        """Release the calls and their values, except values that the backward pass is still to be planned with."""
        kept = set(self.constants)
        if self.backward is not None:
            kept |= {*self.backward.residuals, *self.backward.cotangents}
            kept |= set(_results_of(self.backward.calls))
        results: Iterable[Var] = ()
        if native.LOOPS is None:
            results = _results_of(self.calls)
        else:
            native.LOOPS.drop_results(_calls_or_results(self.calls), kept)
        for var in (*self.sources, *results):
            if var not in kept:
                var.drop_array()
        self.count, self.calls = len(self.calls) or self.count, []


def _results_of(calls: Sequence[TracedCall]) -> list[Var]:
    """Return the results of calls. Of packed calls, return the results whose Vars exist."""
    return calls.live_results() if type(calls) is CallRange else [var for call in calls for var in call.results]


def _calls_or_results(calls: Sequence[TracedCall]) -> list[Any]:
    """Return the calls, or the results of packed calls, as the functions of ``native/passes.c`` take them."""
    return calls.live_results() if type(calls) is CallRange else list(calls)


def trace_function(
    function: AnyFunction,
    leaves: list[Any],
    spec: TreeSpec,
    arrays: list[Any],
    name: str,
    pure: bool = False,
    recorder: Recorder | None = None,
) -> FunctionTrace:
    """Run a function on traced values and return the trace.

    Args:
        leaves: the leaves of its arguments: arrays, tensors and other objects.
        spec: the structure of ``(args, kwargs)``.
        arrays: the array of each leaf, or None.
        name: the name of the function, for messages.
        pure: whether the caller has promised that the function reads and changes no Python state.
        recorder: a special recorder, if any.

    Raises:
        Unrecordable: the function does something that cannot be replayed.
    """
    inside = LOCAL.recorder is not None  # within another trace, which already watches the instructions
    recorder = Recorder() if recorder is None else recorder
    unwatched = frames.why_unwatchable()
    watch = TypeWatch(recorder) if pure else StateWatch(recorder)
    if not pure and unwatched:
        raise Unrecordable(
            f"compile cannot watch which Python state it reads: {unwatched}. `compile(f, pure=True)` promises that it reads "
            "none that changes"
        )
    unseen = Generators()
    mode, errors_of_floats = LOCAL.mode, np.geterr()
    try:
        trace = None
        try:
            trace = _trace_in_level(recorder, function, leaves, spec, arrays, name, watch, not (unwatched or inside))
        except TraceRefused:
            watch.check()
            raise
        except MemoryError:
            pass  # the frames of its traceback keep values alive
        if trace is None:
            raise Unrecordable("its trace needs more memory than there is: write its loops with scan")
        watch.check()
        if LOCAL.mode is not mode or np.geterr() != errors_of_floats:
            raise Unrecordable(
                "it changes a global mode (set_grad_enabled, np.seterr) and does not restore it: use `with`"
            )
        trace.guard_sets = GuardSets(watch.guards(trace.constants))
        _check_overlaps(trace, recorder, trace.guard_sets.arrays)
        if unseen.has_drawn(watch.unwatched, pure):
            refusal = Unrecordable(
                "it draws random numbers from a generator of NumPy or Python: draw with chainrule (rand, randn ...), or "
                "pass the numbers as an argument"
            )
            refusal.perhaps_later = not one_thread()  # another thread may have drawn them
            raise refusal
    except BaseException:
        rewind_generators(recorder.generator_states)
        recorder.drop_hooks()
        if unseen.has_drawn(watch.unwatched, pure):
            unseen.rewind()
        switch_mode(mode)
        np.seterr(**errors_of_floats)
        watch.undo()
        raise
    finally:
        recorder.end()
    return trace


def _trace_in_level(
    recorder: Recorder,
    function: AnyFunction,
    leaves: list[Any],
    spec: TreeSpec,
    arrays: list[Any],
    name: str,
    watch: StateWatch,
    watched: bool,
) -> FunctionTrace:
    trace = FunctionTrace()
    with LOCK, open_level("compile", Traced) as level:
        recorder.level = level
        level.recorder = recorder
        with recorder:
            arguments = _Arguments(recorder, leaves, arrays)
            try:
                args, kwargs = tree_unflatten(arguments.traced_leaves, spec)
                result = watch.call(function, args, kwargs) if watched else function(*args, **kwargs)
                _check_not_generator(result)
                recorder.check_refused()
                arguments.check_containers(args, kwargs, spec)
                arguments.check_histories()
                outputs, trace.spec = tree_flatten(result)
                trace.results = [_traced_output(recorder, x, name) for x in outputs]
                finals = [(var, _var(recorder, tensor)) for tensor, var in recorder.written.values()]
                if not all(final.shape == var.shape and same_strides(final.array, var.array) for var, final in finals):
                    raise Unrecordable("it changes the shape, or the order of the axes, of a captured tensor")
                assigned = [NewData(tensor, _var(recorder, tensor)) for tensor in recorder.rebound]
                grads = _changed_grads(recorder, arguments)
                forward = recorder.backward_begin = len(recorder.calls)
                trace.backward = _backward(recorder, arguments, outputs)
            finally:
                arguments.restore()
                _restore_grads(recorder)
        lifted = list(recorder.lifted.values())
        if any(entry.history_changed for entry in lifted):
            raise Unrecordable("it changes the history, or requires_grad, of a captured tensor")
        recorder.check_arrays()
    trace.ignored, trace.handled = frozenset(recorder.ignored), frozenset(recorder.handled)
    trace.guards, trace.generator_states = recorder.guards, recorder.generator_states
    trace.reads = [guard.var.array.tobytes() for guard in trace.guards]
    trace.effects = [*[NewGrad(leaf, var) for leaf, var in grads], *assigned]
    trace.states = _state_guards(recorder, arguments, lifted, [leaf for leaf, _ in grads])
    del args, kwargs, result, outputs
    arguments.release()
    recorder.pack_calls()
    trace.calls = calls_between(recorder.calls, 0, forward)
    _find_sources(trace, recorder, arguments, lifted, watch)
    if trace.backward is not None:
        _find_residuals(trace, trace.backward, calls_between(recorder.calls, forward, len(recorder.calls)))
    reassigned = {id(effect.tensor) for effect in assigned}
    own = {entry.var for entry in lifted if entry.var is not None and id(entry.ref()) in reassigned}
    trace.writes = [
        (var, final) for var, final in finals if final is not var and var in trace.sources and var not in own
    ]
    return trace


def _check_not_generator(result: object) -> None:
    """Raise if a function returned a generator or coroutine: its body runs after the trace has ended."""
    if isinstance(result, (AsyncGeneratorType, CoroutineType, GeneratorType)):
        if isinstance(result, CoroutineType):
            result.close()  # else Python warns that it was never awaited
        kind = type(result).__name__.replace("_", " ")
        raise Unrecordable(
            f"it returns {'an' if kind[0] == 'a' else 'a'} {kind}, whose body runs later: compile a function that the body calls"
        )


class _Arguments:
    """The traced arguments: tensors and Arrays around traced values.

    Attributes:
        vars: the index and the Var of each leaf that is an array.
        traced_leaves: the leaves that the function is called with.
        histories: for each tensor with an edge or a ``.grad``: its LeafRef, whether it has an edge, and the ``.grad``.
        stand_ins: for each of these: the caller's tensor, the traced tensor, and its edge during the trace.
    """

    def __init__(self, recorder: Recorder, leaves: Sequence[object], arrays: list[Any]) -> None:
        self.vars: list[tuple[int, Var]] = []
        self.traced_leaves: list[Any] = []
        self.histories: list[tuple[LeafRef, bool, Any]] = []
        self.hooks: list[tuple[Any, ...]] = []
        self.stand_ins: list[tuple[Tensor, Tensor, Any]] = []
        self._edges_before: list[tuple[Tensor, Any]] = []  # each traced tensor, and its edge before the run
        for index, (leaf, array) in enumerate(zip(leaves, arrays, strict=True)):
            if array is None:
                self.traced_leaves.append(leaf)
                continue
            var = recorder.new(array)
            self.vars.append((index, var))
            recorder.argument_numbers.add(var.number)
            tensor = wrap(Traced(var, recorder.level, isinstance(leaf, (np.ndarray, np.generic, float))))
            source = leaf._tensor if type(leaf) is Array else leaf
            recorder.with_arrays = recorder.with_arrays or type(leaf) is Array
            if isinstance(leaf, np.generic):
                recorder.scalars.add(var.number)
            elif type(leaf) is float:
                recorder.weak.add(var.number)
            if isinstance(source, Tensor) and (source._edge is not None or source._grad is not None):
                self._with_history(recorder, source, tensor, index)
            recorder.cells[id(tensor)] = (weakref.ref(tensor), var)
            self._edges_before.append((tensor, tensor._edge))
            self.traced_leaves.append(tensor if isinstance(leaf, Tensor) else array_of(tensor))

    def _with_history(self, recorder: Recorder, source: Tensor, tensor: Tensor, index: int) -> None:
        """Replace the caller's tensor on the tape by a traced tensor, which receives its ``.grad``."""
        tensor._edge = source._edge
        start = recorder.start(tensor)
        tensor._edge, tensor._grad = start, source._grad
        if start is not None:
            start.tensor = weakref.ref(tensor)
        self.histories.append((LeafRef(None, index), source._edge is not None, source._grad))
        self.hooks.append(hook_keys(source._edge))
        self.stand_ins.append((source, tensor, start))

    def check_containers(self, args: object, kwargs: dict[str, TensorLike], spec: TreeSpec) -> None:
        """Raise if the function changed the elements of a container among its arguments."""
        leaves, now = tree_flatten((args, kwargs))
        if now != spec or any(x is not y for x, y in zip(leaves, self.traced_leaves, strict=True)):
            refusal = Unrecordable(
                "it changes a list, dictionary or other container among its arguments: return the new elements, or write into "
                "the arrays in it"
            )
            refusal.perhaps_later = True
            raise refusal

    def check_histories(self) -> None:
        """Raise if the function changed the history of an argument, or set the ``.grad`` of one without a history."""
        with_history = {id(tensor) for _, tensor, _ in self.stand_ins}
        for tensor, edge in self._edges_before:
            if tensor._edge is not edge or (tensor._grad is not None and id(tensor) not in with_history):
                raise Unrecordable("it changes the history, requires_grad or .grad of an argument: return a new tensor")

    def restore(self) -> None:
        for source, _, start in self.stand_ins:
            if start is not None and start is source._edge:
                start.tensor = weakref.ref(source)

    def release(self) -> None:
        self.traced_leaves.clear()
        self.stand_ins.clear()
        self._edges_before.clear()


def _traced_output(recorder: Recorder, x: object, name: str) -> TracedOutput:
    """Return the record of a leaf of the function's result."""
    if type(x) is ndarray:  # np.array([x[0], x[1]]) is an object array of traced elements
        stacked = plain_or_stacked(x)
        x = as_arrays(stacked) if isinstance(stacked, Tensor) else x
    tensor = x._tensor if type(x) is Array else x
    if isinstance(tensor, Tensor):
        recorder.check_unboxed(tensor)  # an element or a reduction, which is a scalar in plain NumPy code
        var = _var(recorder, tensor)
        if type(x) is not Array:
            kind = "tensor"
        elif var.number in recorder.weak:
            kind = "float"
        else:
            kind = "scalar" if var.number in recorder.scalars else "array"
        return TracedOutput(kind, var, None)
    check_result(x, name)
    return TracedOutput("object", None, x)


def check_result(x: object, name: str) -> None:
    """Check that a compiled function can return a leaf.

    Raises:
        BadResult: it cannot.
    """
    if x is not None and not isinstance(x, (Tensor, Array, ndarray, np.generic, bool, int, float, complex, str, bytes)):
        raise BadResult(
            f"compile: {name} returned {type(x).__name__}; a compiled function returns arrays, tensors or numbers, or "
            "containers of them"
        )


def _var(recorder: Recorder, tensor: Tensor) -> Var:
    recorder.lift(tensor)
    data = tensor._raw
    if type(data) is not Traced:
        raise Unrecordable("it returns or writes a value of another transformation")
    return data.var


def _changed_grads(recorder: Recorder, arguments: _Arguments) -> list[tuple[LeafRef, Var | None]]:
    """Return the leaves whose ``.grad`` the function changed, with the Var of the new one or None."""
    before_and_after = [
        (leaf, t, grad) for (leaf, _, grad), (_, t, _) in zip(arguments.histories, arguments.stand_ins, strict=True)
    ]
    before_and_after += [(LeafRef(t, -1), t, e.grad) for e in recorder.lifted.values() if (t := e.ref()) is not None]
    changed = [(leaf, tensor._grad) for leaf, tensor, before in before_and_after if tensor._grad is not before]
    for _, start, fresh in recorder.starts:
        if fresh and start.added:
            raise Unrecordable("gradients flow through it to tensors that were computed before the call")
    return [(leaf, None if grad is None else _var(recorder, grad)) for leaf, grad in changed]


def _state_guards(
    recorder: Recorder, arguments: _Arguments, lifted: list[Lifted], changed: list[LeafRef]
) -> list[TensorStateGuard]:
    """Return the guards on arguments and captured tensors that have a history."""
    given = zip(arguments.histories, arguments.stand_ins, arguments.hooks, strict=True)
    candidates = [(leaf, tensor, edge, grad, hooks) for (leaf, edge, grad), (_, tensor, _), hooks in given]
    candidates += [
        (LeafRef(t, -1), t, e.edge is not None, e.grad, e.hooks) for e in lifted if (t := e.ref()) is not None
    ]
    recorder.check_hooks()
    states = []
    for leaf, tensor, edge, grad, hooks in candidates:
        matters = any(tensor is t for t in recorder.grad_read_tensors) or any(
            same_leaf(leaf, other) for other in changed
        )
        states.append(TensorStateGuard(leaf, edge, grad is not None if matters else None, hooks))
    return states


def same_leaf(x: LeafRef, y: LeafRef) -> bool:
    return x.captured is y.captured and x.at == y.at


def _restore_grads(recorder: Recorder) -> None:
    for entry in recorder.lifted.values():
        tensor = entry.ref()
        if tensor is not None and tensor._grad is not entry.grad:
            set_grad(tensor, entry.grad)


def _backward(recorder: Recorder, arguments: _Arguments, outputs: list[Any]) -> Backward | None:
    """Record the backward pass from the results; return None if no gradient can flow back."""
    tensors = [x._tensor if type(x) is Array else x for x in outputs]
    live = [
        i
        for i, t in enumerate(tensors)
        if isinstance(t, Tensor) and t._edge is not None and not _is_graph_freed(t._edge)
    ]
    if not live:
        return None
    if any(start.hooks is not None for _, start, _ in recorder.starts):
        raise Unrecordable("it returns tensors whose gradients flow to leaves with hooks")
    read = len(recorder.guards)
    indices = {id(t): leaf for (leaf, _, _), (_, t, _) in zip(arguments.histories, arguments.stand_ins, strict=True)}
    seeds = [Traced(recorder.new(np.ones(tensors[i]._raw.shape, tensors[i]._raw.dtype)), recorder.level) for i in live]
    edges = [tensors[i]._edge for i in live]
    starts = [start for _, start, _ in recorder.starts]
    grads = sweep(edges, seeds, starts, retain_graph=False, create_graph=False, accumulate=False, retain_grads=False)
    if len(recorder.guards) > read:
        raise Unrecordable("Python reads values in its backward pass")
    leaves = [indices.get(id(tensor)) or LeafRef(tensor, -1) for tensor, _, _ in recorder.starts]
    arrived = [None if g is None else recorder.traced(g).var for g in grads]
    return Backward(live, [seed.var for seed in seeds], leaves, arrived)


def _is_graph_freed(edge: Edge) -> bool:
    """Return whether a backward pass has freed the graph already."""
    return any(type(getattr(each, "saved", None)) is Freed for each in reachable([edge]))


def _takes_repeated(call: TracedCall) -> bool:
    """Return whether a call gives the same bits for broadcast arrays and for copies of them.

    Ufunc loops and sums read both in the same order. Products of two matrices call ``np.dot``, which copies broadcast operands;
    ``np.matmul`` does not use BLAS for these.
    """
    function = call.function
    if not isinstance(function, np.ufunc) or function.signature is None:
        return True
    return function is np.matmul and all([len(var.shape) == 2 for var in operand_vars(call)])


def _find_residuals(trace: FunctionTrace, backward: Backward, calls: Sequence[TracedCall]) -> None:
    """Set the calls of the backward pass, and the arrays of the forward pass that these read."""
    backward.encoded = encoded = EncodedCalls(calls)
    backward.fingerprint = Fingerprint(encoded)
    backward.takes_repeated = all([_takes_repeated(calls[i]) for i in encoded.first.tolist()])
    inputs = encoded.inputs()
    available = {*backward.cotangents, *trace.constants}
    grads = [g for g in backward.grads if g is not None]
    computed = encoded.computed([g.number for g in grads])
    used = [*inputs, *[g for g in grads if computed.get(g.number) is not g]]
    backward.residuals = [var for var in dict.fromkeys(used) if var not in available]


def _find_sources(
    trace: FunctionTrace,
    recorder: Recorder,
    arguments: _Arguments,
    lifted: list[Lifted],
    watch: StateLog,
) -> None:
    """Set the source of each input array: an argument, a tensor, a ``.grad`` or a captured array.

    Arrays that nothing else refers to are constants.
    """
    by_grad = {id(grad): leaf for leaf, _, grad in arguments.histories if grad is not None}
    for entry in lifted:
        tensor = entry.ref()
        if tensor is not None and entry.grad is not None:
            by_grad[id(entry.grad)] = LeafRef(tensor, -1)
    for index, var in arguments.vars:
        trace.sources[var] = Argument(index)
    holders: dict[Var, Any] = dict(recorder.elements)
    for entry in lifted:
        tensor = entry.ref()
        if entry.var is not None and tensor is not None:
            leaf = by_grad.get(id(tensor))
            holders[entry.var] = TensorData(tensor) if leaf is None else GradOf(leaf)
    recorder.drop_tensors()
    returned = [result.content for result in trace.results if isinstance(result.content, ndarray)]
    references = _references_of(recorder, [*watch.arrays(), *returned])
    returned.clear()
    own = _own_arrays(references)
    watch.drop_own_views(own)
    trace.results = [
        result._replace(kind="copy" if _is_memory_own(result.content, own) else "view")
        if id(result.content) in own
        else result
        for result in trace.results
    ]
    for var in recorder.roots():
        source = holders.get(var)
        if source is not None:
            trace.sources[var] = source
        elif _is_memory_own(var.array, own):
            trace.constants.append(var)
        else:
            trace.sources[var] = Captured(var.array)


def _is_memory_own(array: NumpyArray, own: set[int]) -> bool:
    """Return whether only the trace refers to the memory of an array. Return False for memory of buffers, which other code may write."""
    root = owner(array)
    return id(root) in own and isinstance(root.base, (bytes, type(None)))


def _references_of(recorder: Recorder, noted: list[NumpyArray]) -> list[NumpyArray]:
    """Return an entry for each reference of a trace to an array from outside, or to an array that shares its memory.

    Args:
        noted: an entry for each other reference of the trace to an array from outside.
    """
    outside = [*[var.array for var in recorder.roots()], *[array for array, _, _ in recorder.exported_arrays], *noted]
    ids = {id(x) for array in outside for x in (array, owner(array))}
    roots = set(recorder.roots())
    if native.LOOPS is None:
        results = [var for call in recorder.calls for var in call.results]
    else:
        calls = calls_between(recorder.calls, 0, len(recorder.calls))
        results = native.LOOPS.results_in_memory(_calls_or_results(calls), np.array(sorted(ids), np.int64))
    shared = [var for var in dict.fromkeys(results) if id(var.array) in ids or id(owner(var.array)) in ids]
    return [*outside, *[var.array for var in shared if var not in roots]]


def _own_arrays(references: list[Any], extra: int | None = None) -> set[int]:
    """Return the ids of the arrays, and of their bases, that only the trace refers to.

    A view counts as a reference of the trace to its base only if nothing else refers to the view.

    Args:
        references: an entry for each reference of the trace to an array. The list is emptied.
        extra: the number of references that this function itself has.
    """
    extra = _REFERENCES if extra is None else extra
    counts = Counter(map(id, references))
    by_id: dict[int, tuple[Any]] = {}
    views: defaultdict[int, set[int]] = defaultdict(set)  # by the id of a base
    depths: dict[int, int] = {}  # the length of the chain of bases
    while references:
        _register_with_bases(references.pop(), by_id, views, depths)
    own: set[int] = set()
    for key in sorted(by_id, key=depths.__getitem__, reverse=True):
        if sys.getrefcount(by_id[key][0]) == extra + counts[key] + len(views[key] & own):
            own.add(key)
    return own


def _register_with_bases(
    x: Any, by_id: dict[int, tuple[Any]], views: dict[int, set[int]], depths: dict[int, int]
) -> int:
    """Enter an array and its bases into the tables of `_own_arrays`; return the length of its chain of bases."""
    if x is None:
        return -1
    if id(x) not in by_id:
        by_id[id(x)] = (x,)
        base = x.base if isinstance(x, ndarray) else getattr(x, "array", None)  # a view by address has a Lender as base
        views[id(base)].add(id(x))
        depths[id(x)] = 1 + _register_with_bases(base, by_id, views, depths)
    return depths[id(x)]


def _references_of_own_arrays() -> int:
    """Return the number of references to an array in `_own_arrays` itself, which depends on the version of Python."""
    holder = [np.empty(1)]
    return next(extra for extra in range(9) if _own_arrays([holder[0]], extra))


_REFERENCES = _references_of_own_arrays()


def _check_overlaps(trace: FunctionTrace, recorder: Recorder, outside: list[NumpyArray]) -> None:
    """Raise if memory that the function writes belongs to another array as well.

    Args:
        outside: captured plain arrays, which may have been read without being traced.
    """
    for target, _ in trace.writes:
        if overlaps_itself(target.array):
            raise Unrecordable("it writes an array whose elements share memory")
        for other in trace.sources:
            if other is not target and any(np.may_share_memory(target.array, x) for x in recorder.memory_of(other)):
                raise Unrecordable("it writes memory that two of its arrays share")
        if any(np.may_share_memory(target.array, x) for x in outside):
            raise Unrecordable("it writes memory of a captured plain array")
