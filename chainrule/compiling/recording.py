"""One run of a function, recorded: its calls, what it read, what it returned, and what it changed."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule.api.array import Array, array_of
from chainrule.core.engine import reachable
from chainrule.core.levels import open_level
from chainrule.core.node import Freed, Leaf
from chainrule.core.tensor import Tensor, hold, wrap
from chainrule.core.versions import about_to_write, owner, wrote
from chainrule.errors import GRADIENT
from chainrule.interpreters.traced import Call, Guard, Lifted, Recorder, Traced, Unrecordable, Var
from chainrule.tree import TreeSpec, tree_flatten, tree_unflatten

ndarray = np.ndarray
#: one recording at a time: while it runs, the tensors that it meets hold its values
LOCK = threading.RLock()


class Argument(NamedTuple):
    """A source of an array: the argument leaf at an index."""

    at: int

    def array(self, arrays: list[Any], leaves: list[Any]) -> Any:
        return arrays[self.at]


class Held(NamedTuple):
    """A source of an array: what a tensor of the surrounding program holds when the function is called."""

    tensor: Tensor

    def array(self, arrays: list[Any], leaves: list[Any]) -> Any:
        return self.tensor._raw


class GradOf(NamedTuple):
    """A source of an array: the ``.grad`` of a tensor when the function is called."""

    leaf: Leafed

    def array(self, arrays: list[Any], leaves: list[Any]) -> Any:
        grad = self.leaf.tensor(leaves)._grad
        return None if grad is None else grad._raw


class Captured(NamedTuple):
    """A source of an array: an array of the surrounding program, read where it lies."""

    content: np.ndarray[Any, Any]

    def array(self, arrays: list[Any], leaves: list[Any]) -> Any:
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


class Result(NamedTuple):
    """An output: an array of the program in a face ("tensor", "array"), or an object that is what it is."""

    face: str
    var: Var | None
    content: Any


class NewGrad(NamedTuple):
    """An effect: a leaf gets a new ``.grad``; None: it loses it."""

    leaf: Leafed
    var: Var | None

    def apply(self, array: Any, leaves: list[Any]) -> None:
        tensor = self.leaf.tensor(leaves)
        if array is None:
            tensor._grad = None
        else:
            tensor._grad = grad = wrap(array)
            grad._cut = GRADIENT


class NewData(NamedTuple):
    """An effect: a tensor of the surrounding program gets another array as its data."""

    tensor: Tensor
    var: Var

    def apply(self, array: Any, leaves: list[Any]) -> None:
        hold(self.tensor, array)
        if type(self.tensor._edge) is Leaf:
            self.tensor._edge.data = array


class State(NamedTuple):
    """How a tensor with a history was: a recording holds where it is so again."""

    leaf: Leafed
    requires_grad: bool
    has_grad: bool

    def holds(self, leaves: list[Any]) -> bool:
        tensor = self.leaf.tensor(leaves)
        return (tensor._edge is not None) is self.requires_grad and (tensor._grad is not None) is self.has_grad


class Recording:
    """What one run of a function came to.

    Attributes:
        calls, guards: as :class:`~chainrule.interpreters.traced.Recorder` noted them.
        sources: where each array that the program starts from is found, by Var.
        constants: arrays that nobody else has.
        results, spec: the leaves that it returned, and their structure.
        writes: (source's Var, value's Var): memory that it wrote.
        effects: what else it changed.
        states: what it relies on about the tensors with a history.
        generators: what it drew random numbers from.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.guards: list[Guard] = []
        self.sources: dict[Var, Any] = {}
        self.constants: list[Var] = []
        self.results: list[Result] = []
        self.spec: TreeSpec = None  # type: ignore[assignment]
        self.writes: list[tuple[Var, Var]] = []
        self.effects: list[NewGrad | NewData] = []
        self.states: list[State] = []
        self.generators: list[Any] = []

    def outputs(self) -> list[Var]:
        """The arrays that are to be made for the caller: results, then effects."""
        return [x.var for x in (*self.results, *self.effects) if x.var is not None]

    def finish(self, arrays: list[Any], leaves: list[Any]) -> Any:
        """Put what a call computed in its places, and return what the function returns.

        Args:
            arrays: one for each of ``outputs()``, which nobody else has.
            leaves: those of the arguments.
        """
        rest = iter(arrays)
        made = [
            result.content if result.var is None else wrap(next(rest)) if result.face == "tensor" else next(rest)
            for result in self.results
        ]
        for effect in self.effects:
            effect.apply(None if effect.var is None else next(rest), leaves)
        return tree_unflatten(made, self.spec)

    def recorded_value(self, leaves: list[Any]) -> Any:
        """What the recorded run itself returns, with its effects done."""
        new = [value.array.copy() for _, value in self.writes]
        arrays = [var.array.copy() for var in self.outputs()]
        for (target, _), values in zip(self.writes, new, strict=True):
            about_to_write(target.array)
            target.array[...] = values
            wrote(target.array, "compile", None)
        return self.finish(arrays, leaves)


def record(function: Callable[..., Any], leaves: list[Any], spec: TreeSpec, arrays: list[Any], name: str) -> Recording:
    """Run a function on values that are recorded.

    Args:
        leaves: those of its arguments: arrays, tensors, and whatever else.
        spec: the structure that they are the leaves of: ``(args, kwargs)``.
        arrays: for each leaf its array; None for what is no array.
        name: of the function, for messages.

    Raises:
        Unrecordable: what it does cannot be repeated.
    """
    recorder = Recorder()
    found = Recording()
    with LOCK, open_level("compile", Traced) as level:
        recorder.level = level
        level.recorder = recorder
        arguments = _Arguments(recorder, leaves, arrays)
        with recorder:
            try:
                args, kwargs = tree_unflatten(arguments.faces, spec)
                result = function(*args, **kwargs)
                outputs, found.spec = tree_flatten(result)
                found.results = [_result(recorder, x, name) for x in outputs]
                finals = [(var, _var(recorder, tensor)) for tensor, var in recorder.written.values()]
                assigned = [NewData(tensor, _var(recorder, tensor)) for tensor in recorder.rebound]
            finally:
                grads = _grads_before(recorder, arguments, leaves)
        lifted = list(recorder.lifted.values())
        _check_edges(lifted)
        recorder.check_arrays()
    found.calls, found.guards, found.generators = recorder.calls, recorder.guards, recorder.sources
    found.effects = [*[NewGrad(leaf, var) for leaf, var in grads], *assigned]
    found.states = [State(leaf, edge, grad is not None) for leaf, edge, grad in arguments.leaves]
    found.states += [
        State(Leafed(tensor, -1), entry.edge is not None, entry.grad is not None)
        for entry in lifted
        if (tensor := entry.ref()) is not None and (entry.edge is not None or entry.grad is not None)
    ]
    del args, kwargs, result, outputs
    arguments.faces.clear()
    _find_sources(found, recorder, arguments, lifted)
    reassigned = {id(effect.tensor) for effect in assigned}
    own = {entry.var for entry in lifted if entry.var is not None and id(entry.ref()) in reassigned}
    found.writes = [
        (var, final) for var, final in finals if final is not var and var in found.sources and var not in own
    ]
    _check_overlaps(found)
    return found


class _Arguments:
    """The arguments as the function gets them: tensors and Arrays around values of the level."""

    def __init__(self, recorder: Recorder, leaves: list[Any], arrays: list[Any]) -> None:
        self.vars: list[tuple[int, Var]] = []
        self.faces: list[Any] = []
        self.leaves: list[tuple[Leafed, bool, Any]] = []  # those with a history: whether they have an edge; their .grad
        for index, (leaf, array) in enumerate(zip(leaves, arrays, strict=True)):
            if array is None:
                self.faces.append(leaf)
                continue
            var = recorder.new(array)
            self.vars.append((index, var))
            tensor = wrap(Traced(var, recorder.level))
            source = leaf._tensor if type(leaf) is Array else leaf
            if isinstance(source, Tensor) and (source._edge is not None or source._grad is not None):
                tensor._edge = source._edge
                self.leaves.append((Leafed(None, index), source._edge is not None, source._grad))
            recorder.cells[id(tensor)] = (weakref.ref(tensor), var)
            self.faces.append(tensor if isinstance(leaf, Tensor) else array_of(tensor))


def _result(recorder: Recorder, x: Any, name: str) -> Result:
    """A leaf of what the function returned."""
    tensor = x._tensor if type(x) is Array else x
    if isinstance(tensor, Tensor):
        if tensor._edge is not None and not _used_up(tensor._edge):
            raise Unrecordable("it returns a tensor that gradients can flow to")
        return Result("array" if type(x) is Array else "tensor", _var(recorder, tensor), None)
    if x is None or isinstance(x, (ndarray, np.generic, bool, int, float, complex, str, bytes)):
        return Result("object", None, x)
    raise TypeError(
        f"compile: {name} returned {type(x).__name__}; a compiled function returns arrays, tensors or numbers, or "
        "containers of them"
    )


def _used_up(edge: Any) -> bool:
    """Whether a backward pass went over the graph already."""
    return any(type(getattr(each, "saved", None)) is Freed for each in reachable([edge]))


def _var(recorder: Recorder, tensor: Tensor) -> Var:
    recorder.bring(tensor)
    data = tensor._raw
    if type(data) is not Traced:
        raise Unrecordable("it returns or writes a value of another transformation")
    return data.var


def _grads_before(recorder: Recorder, arguments: _Arguments, leaves: list[Any]) -> list[tuple[Leafed, Var | None]]:
    """Give leaves the ``.grad`` that they had before; what they were to get."""
    known = [(leaf, leaf.tensor(leaves), grad) for leaf, _, grad in arguments.leaves]
    known += [(Leafed(t, -1), t, e.grad) for e in recorder.lifted.values() if (t := e.ref()) is not None]
    changed: list[tuple[Leafed, Var | None]] = []
    for leaf, tensor, before in known:
        after = tensor._grad
        if after is not before:
            tensor._grad = before
            changed.append((leaf, None if after is None else _var(recorder, after)))
    return changed


def _check_edges(lifted: list[Any]) -> None:
    """Raise if a tensor from outside has another history than before."""
    changed = [(t, entry) for entry in lifted if (t := entry.ref()) is not None and t._edge is not entry.edge]
    for tensor, entry in changed:
        tensor._edge = entry.edge
    if changed:
        raise Unrecordable("it changes the history, or requires_grad, of a tensor from outside")


def _find_sources(found: Recording, recorder: Recorder, arguments: _Arguments, lifted: list[Lifted]) -> None:
    """Where the arrays that the program starts from are in the next call: with an argument, with a tensor, or by themselves.

    What nobody else can reach is constant.
    """
    by_grad = {id(grad): leaf for leaf, _, grad in arguments.leaves if grad is not None}
    for entry in lifted:
        tensor = entry.ref()
        if tensor is not None and entry.grad is not None:
            by_grad[id(entry.grad)] = Leafed(tensor, -1)
    for index, var in arguments.vars:
        found.sources[var] = Argument(index)
    holders: dict[Var, Any] = {}
    for entry in lifted:
        tensor = entry.ref()
        if entry.var is not None and tensor is not None:
            leaf = by_grad.get(id(tensor))
            holders[entry.var] = Held(tensor) if leaf is None else GradOf(leaf)
    counts = _references(found.calls, recorder)
    recorder.forget()
    for var in recorder.roots():
        source = holders.get(var)
        if source is not None:
            found.sources[var] = source
        elif _alone(var, counts):
            found.constants.append(var)
        else:
            found.sources[var] = Captured(var.array)


def _references(calls: list[Call], recorder: Recorder) -> Counter[int]:
    """How often the recording itself refers to an array: as the content of a Var, or as the memory of one."""
    counts: Counter[int] = Counter()
    for var in (*recorder.roots(), *[var for call in calls for var in call.results]):
        counts[id(var.array)] += 1
        if var.array.base is not None:
            counts[id(var.array.base)] += 1
    return counts


def _alone(var: Var, counts: Counter[int]) -> bool:
    """Whether nothing but the recording refers to the memory of an array."""
    own = owner(var.array)
    return sys.getrefcount(own) - counts[id(own)] == _OWN


def _own_references() -> int:
    """What ``_alone`` counts for an array that only its Var has, besides the Var."""
    var = Var(0, np.empty(1))
    own = owner(var.array)
    return sys.getrefcount(own) - 1


_OWN = _own_references()


def _check_overlaps(found: Recording) -> None:
    """Raise if memory that is written is memory of another array, too."""
    for target, _ in found.writes:
        for other in found.sources:
            if other is not target and np.may_share_memory(target.array, other.array):
                raise Unrecordable("it writes memory that two of its arrays share")
