"""One run of a function, recorded: its calls, what it read, what it returned, and what it changed."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import Counter, defaultdict
from collections.abc import Sequence
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chainrule._src.api.array import Array, array_of, as_arrays, plain_or_stacked
from chainrule._src.arrays.any_array import overlaps_itself, same_strides
from chainrule._src.arrays.tree import TreeSpec, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyFunction, NumpyArray, TensorLike
from chainrule._src.compiling.generators import Generators, one_thread
from chainrule._src.compiling.policy import ReplaySpeed
from chainrule._src.compiling.prints import Prints
from chainrule._src.compiling.simplify import operands
from chainrule._src.compiling.state import frames
from chainrule._src.compiling.state.guards import References
from chainrule._src.compiling.state.log import Log, Refused
from chainrule._src.compiling.state.watch import StateWatch, TypeWatch
from chainrule._src.interpreters.known_arrays import Lifted, hooks_of
from chainrule._src.interpreters.recorded import TracedCall, Unrecordable, ValueRead, Var
from chainrule._src.interpreters.recorder import Recorder
from chainrule._src.interpreters.traced import Traced
from chainrule._src.messages.errors import GRADIENT
from chainrule._src.tape.engine import reachable, sweep
from chainrule._src.tape.levels import open_level
from chainrule._src.tape.modes import LOCAL, switch
from chainrule._src.tape.node import Edge, Freed, Leaf
from chainrule._src.tape.tensor import Tensor, hold, set_grad, wrap
from chainrule._src.tape.versions import owner

if TYPE_CHECKING:
    from chainrule._src.compiling.plan import ExecutionPlan

ndarray = np.ndarray
#: one recording at a time: while it runs, the tensors that it meets hold its values
LOCK = threading.RLock()


def rewind(drawn: list[tuple[Any, Any]]) -> None:
    """Have generators of random numbers in these states."""
    for generator, state in drawn:
        generator._set_state(state)


class BadResult(TypeError):
    """A function returned what cannot be returned again."""


class Argument(NamedTuple):
    """A source of an array: the argument leaf at an index."""

    at: int

    def array(self, arrays: tuple[NumpyArray, ...] | list[NumpyArray | None], leaves: Sequence[object]) -> Any:
        return arrays[self.at]


class Held(NamedTuple):
    """A source of an array: what a tensor of the surrounding program holds when the function is called."""

    tensor: Tensor

    def array(self, arrays: list[NumpyArray | None], leaves: Sequence[object]) -> Any:
        return self.tensor._raw


class GradOf(NamedTuple):
    """A source of an array: the ``.grad`` of a tensor when the function is called."""

    leaf: Leafed

    def array(self, arrays: list[NumpyArray], leaves: list[Tensor]) -> Any:
        grad = self.leaf.tensor(leaves)._grad
        return None if grad is None else grad._raw


class Captured(NamedTuple):
    """A source of an array: an array of the surrounding program, read where it lies."""

    content: NumpyArray

    def array(
        self,
        arrays: tuple[NumpyArray, ...] | list[NumpyArray | None],
        leaves: list[TensorLike | AnyFunction] | tuple[NumpyArray, ...],
    ) -> Any:
        return self.content


class Leafed(NamedTuple):
    """A tensor that may have a ``.grad``: one of the surrounding program, or the argument leaf at an index."""

    held: Tensor | None
    at: int

    def tensor(self, leaves: list[Any]) -> Tensor:
        if self.held is not None:
            return self.held
        leaf = leaves[self.at]
        return leaf._tensor if type(leaf) is Array else leaf


class RecordedOutput(NamedTuple):
    """An output: an array of the program, or an object that is the same in each call.

    Attributes:
        face: what users get: "tensor", "array", "scalar" or "float"; "object", or a "copy" or "view" of the object.
        var: the array of the program; None for an object.
        content: the object.
    """

    face: str
    var: Var | None
    content: Any


class NewGrad(NamedTuple):
    """An effect: a leaf gets a new ``.grad``; None: it loses it."""

    leaf: Leafed
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
    """An effect: a tensor of the surrounding program gets another array as its data."""

    tensor: Tensor
    var: Var

    def apply(self, array: object, leaves: Sequence[Tensor]) -> None:
        hold(self.tensor, array)
        if type(self.tensor._edge) is Leaf:
            self.tensor._edge.data = array


class State(NamedTuple):
    """How a tensor with a history was: a recording holds where it is so again. ``has_grad`` None: that does not matter."""

    leaf: Leafed
    requires_grad: bool
    has_grad: bool | None
    hooks: tuple[Any, ...]

    def holds(self, leaves: list[object]) -> bool:
        tensor = self.leaf.tensor(leaves)
        if (tensor._edge is not None) is not self.requires_grad or hooks_of(tensor._edge) != self.hooks:
            return False
        return self.has_grad is None or (tensor._grad is not None) is self.has_grad


class Backward:
    """How the cotangents of results become those of the tensors that gradients flow to.

    Attributes:
        results: the positions of the results that have cotangents.
        cotangents: for each the Var that stands for it.
        calls: what is to be computed; ``residuals``: what it needs of the forward computation.
        prints: the calls in short.
        takes_repeated: whether they give the same bits for cotangents that are broadcast and for copies of them.
        leaves, grads: the tensors that gradients flow to, and what arrives there; None: nothing.
    """

    def __init__(
        self, results: list[int], cotangents: list[Var], leaves: list[Leafed], grads: list[Var | None]
    ) -> None:
        self.results, self.cotangents, self.leaves, self.grads = results, cotangents, leaves, grads
        self.calls: list[TracedCall] = []
        self.residuals: list[Var] = []
        self.plan: Any = None
        self.prints = Prints([])
        self.takes_repeated = True

    def planned(self, plan: ExecutionPlan) -> None:
        """Take over a plan, and let go of what it was made of."""
        for var in (*self.residuals, *self.cotangents, *[var for call in self.calls for var in call.results]):
            var.forget()
        self.plan, self.calls = plan, []


class Recording:
    """What one run of a function came to.

    Attributes:
        calls, guards: as :class:`~chainrule._src.interpreters.recorder.Recorder` noted them; count: how many calls there were.
        sources: where each array that the program starts from is found, by Var.
        constants: arrays that nobody else has.
        results, spec: the leaves that it returned, and their structure.
        writes: (source's Var, value's Var): memory that it wrote.
        effects: what else it changed.
        states: what it relies on about the tensors with a history.
        drawn: the generators that it drew random numbers from, and their states before.
        ignored: the kinds of floating-point exceptions that it ignores somewhere itself.
        handled: those that it may go another way for.
        references: what it read of Python's state.
        backward: how gradients flow to what it was given, where they can.
        speed: how replays compare with eager calls.
        proven: whether a replay was faster than an eager call.
        runs: how often it had been run when traces were dropped last.
        nbytes: what it keeps alive, about, besides what it shares with other traces.
    """

    def __init__(self) -> None:
        self.proven = False
        self.runs = self.nbytes = 0
        self.speed = ReplaySpeed()
        self.calls: list[TracedCall] = []
        self.count = 0
        self.guards: list[ValueRead] = []
        self.sources: dict[Var, Any] = {}
        self.constants: list[Var] = []
        self.results: list[RecordedOutput] = []
        self.spec: TreeSpec = None  # type: ignore[assignment]
        self.writes: list[tuple[Var, Var]] = []
        self.effects: list[NewGrad | NewData] = []
        self.states: list[State] = []
        self.drawn: list[tuple[Any, Any]] = []
        self.backward: Backward | None = None
        self.references: References | None = None
        self.ignored: frozenset[str] = frozenset()
        self.handled: frozenset[str] = frozenset()

    def outputs(self) -> list[Var]:
        """The arrays that are to be made: results, effects, then what the backward computation needs."""
        made = [x.var for x in (*self.results, *self.effects) if x.var is not None]
        return made if self.backward is None else [*made, *self.backward.residuals]

    def describe(self) -> str:
        """The arrays that it starts from, in few words."""
        kinds = [
            f"{var.dtype}{list(var.shape)}" + ("" if type(source) is Argument else " of the program")
            for var, source in self.sources.items()
        ]
        return f"recording at {', '.join(kinds) or 'no arrays'}"

    def __repr__(self) -> str:
        return f"<{self.describe()}: {len(self.calls) or self.count} calls, {len(self.guards)} values read>"

    def forget(self) -> None:
        """Let go of the calls and their values, but for those that the backward computation is still to be planned with."""
        kept = set(self.constants)
        if self.backward is not None:
            kept |= {*self.backward.residuals, *self.backward.cotangents}
            kept |= {var for call in self.backward.calls for var in call.results}
        for var in (*self.sources, *[var for call in self.calls for var in call.results]):
            if var not in kept:
                var.forget()
        self.count, self.calls = len(self.calls) or self.count, []


def record(
    function: AnyFunction,
    leaves: list[Any],
    spec: TreeSpec,
    arrays: list[Any],
    name: str,
    pure: bool = False,
    recorder: Recorder | None = None,
) -> Recording:
    """Run a function on values that are recorded.

    Args:
        leaves: those of its arguments: arrays, tensors, and whatever else.
        spec: the structure that they are the leaves of: ``(args, kwargs)``.
        arrays: for each leaf its array; None for what is no array.
        name: of the function, for messages.
        pure: whether the caller has promised that it reads and changes no state of Python's.
        recorder: what writes the calls down, if it is a special one.

    Raises:
        Unrecordable: what it does cannot be repeated.
    """
    inside = LOCAL.recorder is not None  # another recording, whose watch goes on
    recorder = Recorder() if recorder is None else recorder
    unwatched = frames.why_not()
    reads = TypeWatch(recorder) if pure else StateWatch(recorder)
    if not pure and unwatched:
        raise Unrecordable(
            f"what it reads of Python's state cannot be seen here: {unwatched}. `compile(f, pure=True)` is your word that it "
            "reads none that changes"
        )
    unseen = Generators()
    mode, errors_of_floats = LOCAL.mode, np.geterr()
    try:
        try:
            found = _run(recorder, function, leaves, spec, arrays, name, reads, not (unwatched or inside))
        except Refused:
            reads.check()
            raise
        reads.check()
        if LOCAL.mode is not mode or np.geterr() != errors_of_floats:
            raise Unrecordable("it leaves another mode behind than it found (set_grad_enabled, np.seterr): use `with`")
        found.references = References(reads.guards(found.constants))
        _check_overlaps(found, recorder, found.references.arrays)
        if unseen.drawn(reads.unwatched, pure):
            refusal = Unrecordable(
                "it draws random numbers from a generator of NumPy's or Python's: draw with chainrule (rand, randn ...), or "
                "pass the numbers as an argument"
            )
            refusal.perhaps_later = not one_thread()  # where another one may have drawn them
            raise refusal
    except BaseException:
        rewind(recorder.sources)
        recorder.drop_hooks()
        if unseen.drawn(reads.unwatched, pure):
            unseen.rewind()
        switch(mode)
        np.seterr(**errors_of_floats)
        reads.undo()
        raise
    recorder.end()
    return found


def _run(
    recorder: Recorder,
    function: AnyFunction,
    leaves: list[Any],
    spec: TreeSpec,
    arrays: list[Any],
    name: str,
    reads: StateWatch,
    watched: bool,
) -> Recording:
    found = Recording()
    with LOCK, open_level("compile", Traced) as level:
        recorder.level = level
        level.recorder = recorder
        with recorder:
            arguments = _Arguments(recorder, leaves, arrays)
            try:
                args, kwargs = tree_unflatten(arguments.faces, spec)
                result = reads.call(function, args, kwargs) if watched else function(*args, **kwargs)
                _check_not_later(result)
                recorder.check_refused()
                arguments.check_containers(args, kwargs, spec)
                arguments.check_histories()
                outputs, found.spec = tree_flatten(result)
                found.results = [_result(recorder, x, name) for x in outputs]
                finals = [(var, _var(recorder, tensor)) for tensor, var in recorder.written.values()]
                if not all(final.shape == var.shape and same_strides(final.array, var.array) for var, final in finals):
                    raise Unrecordable("it changes the shape, or the order of the axes, of a tensor from outside")
                assigned = [NewData(tensor, _var(recorder, tensor)) for tensor in recorder.rebound]
                grads = _changed_grads(recorder, arguments)
                forward = len(recorder.calls)
                found.backward = _backward(recorder, arguments, outputs)
            finally:
                arguments.restore()
                _restore_grads(recorder)
        lifted = list(recorder.lifted.values())
        if any(entry.moved for entry in lifted):
            raise Unrecordable("it changes the history, or requires_grad, of a tensor from outside")
        recorder.check_arrays()
    found.ignored, found.handled = frozenset(recorder.ignored), frozenset(recorder.handled)
    found.calls, found.guards, found.drawn = recorder.calls[:forward], recorder.guards, recorder.sources
    found.effects = [*[NewGrad(leaf, var) for leaf, var in grads], *assigned]
    found.states = _states(recorder, arguments, lifted, [leaf for leaf, _ in grads])
    del args, kwargs, result, outputs
    arguments.release()
    _find_sources(found, recorder, arguments, lifted, reads)
    if found.backward is not None:
        _find_residuals(found, found.backward, recorder.calls[forward:])
    reassigned = {id(effect.tensor) for effect in assigned}
    own = {entry.var for entry in lifted if entry.var is not None and id(entry.ref()) in reassigned}
    found.writes = [
        (var, final) for var, final in finals if final is not var and var in found.sources and var not in own
    ]
    return found


def _check_not_later(result: object) -> None:
    """Raise if a function gave a generator or coroutine, which runs its body when no recording sees it."""
    if isinstance(result, (AsyncGeneratorType, CoroutineType, GeneratorType)):
        if isinstance(result, CoroutineType):
            result.close()  # which is never awaited
        kind = type(result).__name__.replace("_", " ")
        raise Unrecordable(
            f"it returns {'an' if kind[0] == 'a' else 'a'} {kind}, whose body runs later: compile a function that the body calls"
        )


class _Arguments:
    """The arguments as the function gets them: tensors and Arrays around values of the level.

    Attributes:
        vars: the Var of each argument that is an array.
        faces: what the function gets, for each leaf.
        histories: of those with an edge or a ``.grad``: where they are, whether they have an edge, and the ``.grad``.
        stand_ins: (the caller's tensor, the function's, its place on the tape) of those.
    """

    def __init__(self, recorder: Recorder, leaves: Sequence[object], arrays: list[Any]) -> None:
        self.vars: list[tuple[int, Var]] = []
        self.faces: list[Any] = []
        self.histories: list[tuple[Leafed, bool, Any]] = []
        self.hooks: list[tuple[Any, ...]] = []
        self.stand_ins: list[tuple[Tensor, Tensor, Any]] = []
        self._began: list[tuple[Tensor, Any]] = []  # and where each was on the tape
        for index, (leaf, array) in enumerate(zip(leaves, arrays, strict=True)):
            if array is None:
                self.faces.append(leaf)
                continue
            var = recorder.new(array)
            self.vars.append((index, var))
            recorder.given.add(var.number)
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
            self._began.append((tensor, tensor._edge))
            self.faces.append(tensor if isinstance(leaf, Tensor) else array_of(tensor))

    def _with_history(self, recorder: Recorder, source: Tensor, tensor: Tensor, index: int) -> None:
        """Let a tensor take the place of the caller's on the tape, and where ``.grad`` is written."""
        tensor._edge = source._edge
        start = recorder.start(tensor)
        tensor._edge, tensor._grad = start, source._grad
        if start is not None:
            start.tensor = weakref.ref(tensor)
        self.histories.append((Leafed(None, index), source._edge is not None, source._grad))
        self.hooks.append(hooks_of(source._edge))
        self.stand_ins.append((source, tensor, start))

    def check_containers(self, args: object, kwargs: dict[str, TensorLike], spec: TreeSpec) -> None:
        """Raise if a list, dictionary or other container among the arguments has other elements than before."""
        leaves, now = tree_flatten((args, kwargs))
        if now != spec or any(x is not y for x, y in zip(leaves, self.faces, strict=True)):
            refusal = Unrecordable(
                "it changes a list, dictionary or other container among its arguments: return what is new, or write into the "
                "arrays that are in it"
            )
            refusal.perhaps_later = True
            raise refusal

    def check_histories(self) -> None:
        """Raise if an argument has another history than before, or a ``.grad`` though it had neither."""
        known = {id(tensor) for _, tensor, _ in self.stand_ins}
        for tensor, edge in self._began:
            if tensor._edge is not edge or (tensor._grad is not None and id(tensor) not in known):
                raise Unrecordable("it changes the history, requires_grad or .grad of an argument: return what is new")

    def restore(self) -> None:
        for source, _, start in self.stand_ins:
            if start is not None and start is source._edge:
                start.tensor = weakref.ref(source)

    def release(self) -> None:
        self.faces.clear()
        self.stand_ins.clear()
        self._began.clear()


def _result(recorder: Recorder, x: object, name: str) -> RecordedOutput:
    """A leaf of what the function returned."""
    if type(x) is ndarray:  # np.array([x[0], x[1]]) holds the elements themselves
        stacked = plain_or_stacked(x)
        x = as_arrays(stacked) if isinstance(stacked, Tensor) else x
    tensor = x._tensor if type(x) is Array else x
    if isinstance(tensor, Tensor):
        recorder.check_unboxed(tensor)  # an element, or a reduction of one, which is a scalar in plain code
        var = _var(recorder, tensor)
        if type(x) is not Array:
            face = "tensor"
        elif var.number in recorder.weak:
            face = "float"
        else:
            face = "scalar" if var.number in recorder.scalars else "array"
        return RecordedOutput(face, var, None)
    check_result(x, name)
    return RecordedOutput("object", None, x)


def check_result(x: object, name: str) -> None:
    """Raise unless a compiled function can return such a leaf.

    Raises:
        BadResult: it cannot.
    """
    if x is not None and not isinstance(x, (Tensor, Array, ndarray, np.generic, bool, int, float, complex, str, bytes)):
        raise BadResult(
            f"compile: {name} returned {type(x).__name__}; a compiled function returns arrays, tensors or numbers, or "
            "containers of them"
        )


def _var(recorder: Recorder, tensor: Tensor) -> Var:
    recorder.bring(tensor)
    data = tensor._raw
    if type(data) is not Traced:
        raise Unrecordable("it returns or writes a value of another transformation")
    return data.var


def _changed_grads(recorder: Recorder, arguments: _Arguments) -> list[tuple[Leafed, Var | None]]:
    """The leaves that have another ``.grad`` than before, and what it is."""
    known = [
        (leaf, t, grad) for (leaf, _, grad), (_, t, _) in zip(arguments.histories, arguments.stand_ins, strict=True)
    ]
    known += [(Leafed(t, -1), t, e.grad) for e in recorder.lifted.values() if (t := e.ref()) is not None]
    changed = [(leaf, tensor._grad) for leaf, tensor, before in known if tensor._grad is not before]
    for _, start, fresh in recorder.starts:
        if fresh and start.added:
            raise Unrecordable("gradients flow through it to what was computed before it")
    return [(leaf, None if grad is None else _var(recorder, grad)) for leaf, grad in changed]


def _states(recorder: Recorder, arguments: _Arguments, lifted: list[Lifted], changed: list[Leafed]) -> list[State]:
    """What the recording relies on about the tensors from outside that have a history."""
    given = zip(arguments.histories, arguments.stand_ins, arguments.hooks, strict=True)
    known = [(leaf, tensor, edge, grad, hooks) for (leaf, edge, grad), (_, tensor, _), hooks in given]
    known += [(Leafed(t, -1), t, e.edge is not None, e.grad, e.hooks) for e in lifted if (t := e.ref()) is not None]
    recorder.check_hooks()
    states = []
    for leaf, tensor, edge, grad, hooks in known:
        matters = any(tensor is t for t in recorder.looked_at) or any(same_leaf(leaf, other) for other in changed)
        states.append(State(leaf, edge, grad is not None if matters else None, hooks))
    return states


def same_leaf(x: Leafed, y: Leafed) -> bool:
    return x.held is y.held and x.at == y.at


def _restore_grads(recorder: Recorder) -> None:
    for entry in recorder.lifted.values():
        tensor = entry.ref()
        if tensor is not None and tensor._grad is not entry.grad:
            set_grad(tensor, entry.grad)


def _backward(recorder: Recorder, arguments: _Arguments, outputs: list[Any]) -> Backward | None:
    """Record how gradients flow back from the results, as far as they can."""
    tensors = [x._tensor if type(x) is Array else x for x in outputs]
    live = [i for i, t in enumerate(tensors) if isinstance(t, Tensor) and t._edge is not None and not _used_up(t._edge)]
    if not live:
        return None
    if any(start.hooks is not None for _, start, _ in recorder.starts):
        raise Unrecordable("it returns tensors that gradients can flow to, from leaves with hooks")
    read = len(recorder.guards)
    indices = {id(t): leaf for (leaf, _, _), (_, t, _) in zip(arguments.histories, arguments.stand_ins, strict=True)}
    seeds = [Traced(recorder.new(np.ones(tensors[i]._raw.shape, tensors[i]._raw.dtype)), recorder.level) for i in live]
    edges = [tensors[i]._edge for i in live]
    starts = [start for _, start, _ in recorder.starts]
    grads = sweep(edges, seeds, starts, retain_graph=False, create_graph=False, accumulate=False, retain_grads=False)
    if len(recorder.guards) > read:
        raise Unrecordable("its backward computation reads values")
    leaves = [indices.get(id(tensor)) or Leafed(tensor, -1) for tensor, _, _ in recorder.starts]
    arrived = [None if g is None else recorder.traced(g).var for g in grads]
    return Backward(live, [seed.var for seed in seeds], leaves, arrived)


def _used_up(edge: Edge) -> bool:
    """Whether a backward pass went over the graph already."""
    return any(type(getattr(each, "saved", None)) is Freed for each in reachable([edge]))


def _takes_repeated(call: TracedCall) -> bool:
    """Whether a call gives the same bits for arrays that are broadcast and for copies of them.

    Loops and sums go through both in one order. Products of two matrices are ``np.dot``'s, which copies what is broadcast;
    ``np.matmul`` takes such operands past BLAS.
    """
    function = call.function
    if not isinstance(function, np.ufunc) or function.signature is None:
        return True
    return function is np.matmul and all([len(var.shape) == 2 for var in operands(call)])


def _find_residuals(found: Recording, backward: Backward, calls: list[TracedCall]) -> None:
    """What the backward computation needs of the forward one."""
    backward.calls, backward.prints = calls, Prints(calls)
    backward.takes_repeated = all(map(_takes_repeated, calls))
    known = {var for call in calls for var in call.results} | set(backward.cotangents) | set(found.constants)
    used = [var for call in calls for var in operands(call)] + [g for g in backward.grads if g is not None]
    backward.residuals = [var for var in dict.fromkeys(used) if var not in known]


def _find_sources(
    found: Recording,
    recorder: Recorder,
    arguments: _Arguments,
    lifted: list[Lifted],
    reads: Log,
) -> None:
    """Where the arrays that the program starts from are in the next call: with an argument, with a tensor, or by themselves.

    What nobody else can reach is constant.
    """
    by_grad = {id(grad): leaf for leaf, _, grad in arguments.histories if grad is not None}
    for entry in lifted:
        tensor = entry.ref()
        if tensor is not None and entry.grad is not None:
            by_grad[id(entry.grad)] = Leafed(tensor, -1)
    for index, var in arguments.vars:
        found.sources[var] = Argument(index)
    holders: dict[Var, Any] = dict(recorder.elements)
    for entry in lifted:
        tensor = entry.ref()
        if entry.var is not None and tensor is not None:
            leaf = by_grad.get(id(tensor))
            holders[entry.var] = Held(tensor) if leaf is None else GradOf(leaf)
    recorder.forget()
    returned = [result.content for result in found.results if isinstance(result.content, ndarray)]
    references = [*_arrays_of(recorder), *reads.arrays(), *returned]
    returned.clear()
    own = _own_arrays(references)
    reads.forget_views(own)
    found.results = [
        result._replace(face="copy" if _is_memory_own(result.content, own) else "view")
        if id(result.content) in own
        else result
        for result in found.results
    ]
    for var in recorder.roots():
        source = holders.get(var)
        if source is not None:
            found.sources[var] = source
        elif _is_memory_own(var.array, own):
            found.constants.append(var)
        else:
            found.sources[var] = Captured(var.array)


def _is_memory_own(array: NumpyArray, own: set[int]) -> bool:
    """Whether only the recording refers to the memory of an array: not to that of a buffer, which anything may write."""
    root = owner(array)
    return id(root) in own and isinstance(root.base, (bytes, type(None)))


def _arrays_of(recorder: Recorder) -> list[NumpyArray]:
    """Return the arrays that a recorder refers to, as often as it does."""
    results = [var for call in recorder.calls for var in call.results]
    lent = [array for array, _, _ in recorder.lent]
    return [*[var.array for var in dict.fromkeys([*recorder.roots(), *results])], *lent]


def _own_arrays(references: list[Any], extra: int | None = None) -> set[int]:
    """Return the ids of the arrays, and of the memory of arrays, that only the recording refers to.

    A view counts as a reference of the recording to its base only if nothing else refers to the view.

    Args:
        references: an array for each reference to it that the recording has. The list is emptied.
        extra: the references of this function itself.
    """
    extra = _REFERENCES if extra is None else extra
    counts = Counter(map(id, references))
    held: dict[int, tuple[Any]] = {}
    views: defaultdict[int, set[int]] = defaultdict(set)  # by the id of a base
    depths: dict[int, int] = {}  # how many bases it has, one behind the other
    while references:
        _hold(references.pop(), held, views, depths)
    own: set[int] = set()
    for key in sorted(held, key=depths.__getitem__, reverse=True):
        if sys.getrefcount(held[key][0]) == extra + counts[key] + len(views[key] & own):
            own.add(key)
    return own


def _hold(x: Any, held: dict[int, tuple[Any]], views: dict[int, set[int]], depths: dict[int, int]) -> int:
    """Enter an array and its bases into the tables of `_own_arrays`; return how many bases it has."""
    if x is None:
        return -1
    if id(x) not in held:
        held[id(x)] = (x,)
        base = x.base if isinstance(x, ndarray) else getattr(x, "array", None)  # a view by address has a Lender as base
        views[id(base)].add(id(x))
        depths[id(x)] = 1 + _hold(base, held, views, depths)
    return depths[id(x)]


def _references_of_own_arrays() -> int:
    """Return the references to an array that `_own_arrays` itself has: versions of Python count differently."""
    holder = [np.empty(1)]
    return next(extra for extra in range(9) if _own_arrays([holder[0]], extra))


_REFERENCES = _references_of_own_arrays()


def _check_overlaps(found: Recording, recorder: Recorder, outside: list[NumpyArray]) -> None:
    """Raise if memory that is written is memory of another array, too.

    Args:
        outside: plain arrays of the surrounding program, which code may have read unseen.
    """
    for target, _ in found.writes:
        if overlaps_itself(target.array):
            raise Unrecordable("it writes an array whose elements share memory")
        for other in found.sources:
            if other is not target and any(np.may_share_memory(target.array, x) for x in recorder.memory_of(other)):
                raise Unrecordable("it writes memory that two of its arrays share")
        if any(np.may_share_memory(target.array, x) for x in outside):
            raise Unrecordable("it writes memory of a plain array of the program")
