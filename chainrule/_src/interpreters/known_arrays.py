"""The arrays and tensors that a recording has met, and what is written into them.

Tensors of the surrounding program that the recorded function meets are brought to the level of the recording, so that operations
on them are recorded, too; when it ends they have their arrays again. What no replay can write rightly is refused here.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import overlaps_itself, with_strides
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.interpreters.recorded import TracedCall, Unrecordable, ValueRead, Var
from chainrule._src.interpreters.traced import Traced
from chainrule._src.tape.inplace import edge_through, passes_through, replay_view
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import digest, owner
from chainrule._src.tape.view import views_of

ndarray = np.ndarray


def hooks_of(edge: Any) -> tuple[Any, ...]:
    """The hooks of a place on the tape, by the numbers of their handles."""
    hooks = getattr(edge, "hooks", None)
    if hooks is None:
        return ()
    return tuple(
        [
            (key, id(hook))
            for table in (hooks.tensor, hooks.pre, hooks.post, hooks.post_accumulate)
            for key, hook in table.items()
        ]
    )


class Lifted:
    """A tensor of the surrounding program that was brought to the level, and how it was before.

    Attributes:
        raw, edge, grad, hooks: what it had; ``here``: its edge while it is recorded.
        var: the array that it stands for; None for a view of another tensor.
        moved: whether its history changed meanwhile.
    """

    __slots__ = ("edge", "grad", "here", "hooks", "moved", "raw", "ref", "var")

    def __init__(self, tensor: Tensor, var: Var | None) -> None:
        self.ref = weakref.ref(tensor)
        self.raw = tensor._raw
        self.edge = self.here = tensor._edge
        self.hooks = hooks_of(tensor._edge)
        self.moved = False
        self.grad = tensor._grad
        self.var = var


class KnownArrays:
    """What a recorder knows of arrays and tensors.

    Attributes:
        calls, guards: what was recorded.
        arrays: the plain arrays that were met, by identity: arguments, arrays of the program, constants.
        bases: those that others are views of, by identity; parts: the views, by how they lie in memory.
        lifted: the tensors that were brought to the level.
        written: tensors whose memory is one of ``arrays`` and that were given new values.
        rebound: tensors whose ``data`` was assigned.
        sharing: the tensors (and arrays that Python reads), weakly, that were made on one memory, by the number of its owner.
        looked_at: the tensors whose ``.grad`` was asked for.
        starts: the tensors from outside that gradients can flow to, where they are on the tape, and whether that place
            was made for the recording.
        hooked: where tensors from outside are on the tape, before and while they are recorded, and the hooks that they had.
        lent: plain arrays that stand for the memory of a tensor, with their content.
        boxed: the tensors, by identity, of Arrays that NumPy put into an array of objects; holders: these arrays.
        narrow: whether there are numbers that floats of Python's are narrowed to.
        given: numbers of the Vars of arguments.
        met: the plain arrays of the program, by identity.
        elements: for the Vars of numbers that lie in containers, where they are found.
    """

    def __init__(self) -> None:
        self.level: Any = None
        self.calls: list[TracedCall] = []
        self.guards: list[ValueRead] = []
        self.arrays: dict[int, Var] = {}
        self.views: dict[Any, Var] = {}  # of these, by how they lie in memory
        self.bases: dict[int, Var] = {}
        self.parts: dict[Any, Var] = {}
        self.met: dict[int, NumpyArray] = {}
        self.lifted: dict[int, Lifted] = {}
        self.cells: dict[int, tuple[weakref.ref[Tensor], Var]] = {}
        self.written: dict[int, tuple[Any, Var]] = {}
        self.rebound: list[Tensor] = []
        self.sharing: defaultdict[int, list[weakref.ref[Any]]] = defaultdict(list)
        self.looked_at: list[Tensor] = []
        self.starts: list[tuple[Tensor, Leaf, bool]] = []
        self.hooked: list[tuple[object, tuple[Any, ...]]] = []
        self.contents: list[tuple[Var, int]] = []
        self.lent: list[tuple[NumpyArray, int, weakref.ref[Tensor]]] = []
        self.boxed: dict[int, Tensor] = {}
        self.holders: list[tuple[NumpyArray, Any]] = []
        self.narrow = False
        self.given: set[int] = set()
        self.elements: dict[Var, Any] = {}
        self._count = 0

    def new(self, array: NumpyArray) -> Var:
        self._count += 1
        if array.dtype.char in "efF":
            self.narrow = True
        return Var(self._count, array)

    def var_of(self, array: NumpyArray) -> Var:
        """The array of a tensor as one of the program. Views of one memory that lie alike, as ``M.T`` and ``M.T``, are one."""
        var = self.arrays.get(id(array))
        if var is not None:
            return var
        lies = None
        if isinstance(array.base, ndarray) and not array.dtype.hasobject:
            lies = memory_key(array)
            if lies in self.views:
                return self.views[lies]
        var = self.arrays[id(array)] = self.new(array)
        if lies is not None:
            self.views[lies] = var
        self.contents.append((var, digest(array)))
        return var

    def _set_apart(self, var: Var) -> None:
        """Have an array that is written as one that the program starts from, though it is a part of another one."""
        lies = memory_key(var.array)
        if self.parts.get(lies) is not var:
            return
        del self.parts[lies]
        self.arrays[id(var.array)] = var
        at = next(i for i, call in enumerate(self.calls) if call.results == (var,))
        del self.calls[at]
        for guard in self.guards:
            guard.at -= guard.at > at

    def reads(self, array: NumpyArray) -> bool:
        """Whether the recorded calls have an array among their operands, or one of the same memory."""
        if id(array) in self.arrays or (array.base is not None and memory_key(array) in self.parts):
            return True
        return any([np.may_share_memory(var.array, array) for var in (*self.arrays.values(), *self.parts.values())])

    def memory_of(self, var: Var) -> list[NumpyArray]:
        """What is read of an array that the program starts from."""
        if id(var.array) in self.arrays or self.bases.get(id(var.array)) is not var:
            return [var.array]
        return [part.array for part in self.parts.values() if part.array.base is var.array]

    def element(self, source: Any, number: NumpyArray) -> Traced:
        """A number that lies in a container, which is looked at again in each call."""
        for var, known in self.elements.items():
            if all([x is y for x, y in zip(known, source, strict=True)]):
                return Traced(var, self.level)
        var = self.arrays[id(number)] = self.new(number)
        self.elements[var] = source
        return Traced(var, self.level)

    def roots(self) -> list[Var]:
        """The plain arrays that were met, and what those are views of that are views."""
        return list({**dict.fromkeys(self.arrays.values()), **dict.fromkeys(self.bases.values())})

    def forget(self) -> None:
        """Let go of the tensors."""
        for table in (self.lifted, self.cells, self.written, self.sharing):
            table.clear()
        self.rebound.clear()
        self.looked_at.clear()
        self.boxed.clear()
        self.holders.clear()
        self.starts.clear()
        self.hooked.clear()

    def end(self) -> None:
        """Let go of what was recorded: values of the level may outlive it."""
        self.calls, self.guards, self.arrays, self.contents, self.lent = [], [], {}, [], []
        self.views, self.bases, self.parts = {}, {}, {}

    def check_arrays(self) -> None:
        """Raise if a plain array that the program starts from was written meanwhile: not by what is recorded."""
        for var, content in self.contents:
            if digest(var.array) != content:
                raise Unrecordable(
                    f"an array of shape {var.shape} is written by code that is not recorded: make it an argument, or write "
                    "with operations on values of the function"
                )
        if any(x is not y for holder, before in self.holders for x, y in zip(holder.flat, before.flat, strict=True)):
            raise Unrecordable(
                "what np.asarray gives for an array without axes is written: write into the array itself"
            )
        for array, content, _ in self.lent:
            if digest(array) != content:
                raise Unrecordable(
                    f"what np.asarray gives for an array of shape {array.shape} is written by code that is not recorded: "
                    "write into the array itself"
                )

    def lend(self, tensor: Tensor, array: NumpyArray) -> NumpyArray:
        """Note that a plain array stands for the memory of a tensor, in code that is not recorded."""
        view = tensor._view
        own = tensor._raw if type(tensor._raw) is ndarray else tensor._raw.var.array
        if array.strides != own.strides:
            array = with_strides(own, own.strides)
        array.flags.writeable = own.flags.writeable
        self.lent.append((array, digest(array), weakref.ref(tensor if view is None else view.base)))
        return array

    def bring(self, tensor: Tensor) -> None:
        """Have a tensor of the surrounding program at this level, with all that shares its history of writes."""
        if type(tensor._raw) is not ndarray:
            return
        view = tensor._view
        base = tensor if view is None else view.base
        if type(base._raw) is ndarray:
            var = self.var_of(base._raw)
            self.cells[id(base)] = (weakref.ref(base), var)
            entry = self.lifted[id(base)] = Lifted(base, var)
            base._raw = Traced(var, self.level)
            base._edge = entry.here = self.start(base)
            self.note_holder(base, base._raw)
        for each in {id(t): t for t in (*views_of(base), tensor)}.values():
            if type(each._raw) is ndarray:
                if passes_through(each._view.steps):
                    raise Unrecordable("it uses a view that is no row of the table")
                entry = self.lifted[id(each)] = Lifted(each, None)
                each._raw = replay_view(base._raw, each._view.steps)
                if type(each._edge) is Leaf:
                    self.hooked.append((each._edge, hooks_of(each._edge)))
                elif each._edge is not None:
                    each._edge = entry.here = edge_through(base, each._view.steps)

    def start(self, tensor: Tensor) -> Any:
        """Where a tensor from outside is on the tape of the recording: gradients go no further than to it."""
        edge = tensor._edge
        if edge is None:
            return None
        if any(edge is known for _, known, _ in self.starts):
            raise Unrecordable("it uses a tensor that is an argument as well")
        fresh = type(edge) is not Leaf
        start = Leaf(tensor) if fresh else edge
        self.hooked += {id(place): (place, hooks_of(place)) for place in (edge, start)}.values()
        self.starts.append((tensor, start, fresh))
        return start

    def check_hooks(self) -> None:
        """Raise if hooks of tensors from outside were registered, or taken away."""
        if any([hooks_of(edge) != hooks for edge, hooks in self.hooked]):
            raise Unrecordable("it registers a hook of a tensor from outside: do that once, before it is called")

    def drop_hooks(self) -> None:
        """Take the hooks away that were registered of tensors from outside: the function runs again, as it is."""
        edge: Any
        for edge, kept in self.hooked:
            if hooks_of(edge) != kept:
                numbers = {key for key, _ in kept}
                for table in (edge.hooks.tensor, edge.hooks.pre, edge.hooks.post, edge.hooks.post_accumulate):
                    for key in [key for key in table if key not in numbers]:
                        del table[key]

    def grad_read(self, tensor: Tensor) -> None:
        """Note that the program looks whether a tensor has a ``.grad``."""
        self.bring(tensor)
        self.looked_at.append(tensor)

    def check_writable(self, data: AnyArray) -> None:
        """Raise where eager may not write: into what is read-only, or has elements that share memory."""
        if type(data) is not Traced:
            return
        array, given = data.var.array, data.var.number in self.given
        if (given and not array.flags.writeable) or ((given or 0 in array.strides) and overlaps_itself(array)):
            raise Unrecordable("it writes an array that is read-only, or whose elements share memory")

    def check_whole(self, data: object) -> None:
        """Raise where it is not known whether an array is a view: calls with either are one kind of call."""
        if type(data) is Traced and (data.var.number in self.given or data.is_view):
            raise Unrecordable("it asks for the base of an array that it was given")

    def note_holder(self, tensor: Tensor, data: AnyArray) -> None:
        """Note whose memory a tensor has, be it inside a value of a transformation."""
        if type(data) is Traced:
            array = data.var.array
            self.sharing[id(array if array.base is None else owner(array))].append(weakref.ref(tensor))
        else:
            for value in _lowest(data):
                self.note_holder(tensor, value)

    def check_shared(self, tensor: Tensor) -> None:
        """Raise if memory that is written is that of a tensor, too, which will not be given the new values.

        A transformation hands on the arrays that it was given, in other tensors.
        """
        whole = whole_of(tensor)
        if type(whole._raw) is not Traced:
            return
        memory = owner(whole._raw.var.array)
        joined = [whole] if whole._memory is None else [base for base, _ in whole._memory[0].families()]
        for ref in self.sharing.get(id(memory), ()):
            other = ref()
            if type(other) is ndarray:
                raise Unrecordable(
                    "it writes into a tensor whose numbers Python has in an array (as by np.asarray): copy them"
                )
            if other is None or any([whole_of(other) is base for base in joined]):
                continue
            if any([owner(value.var.array) is memory for value in _lowest(other._raw)]):
                raise Unrecordable(
                    "it writes into a tensor whose memory another tensor has that was handed through a transformation (as by "
                    "vmap(lambda a: a)(x)): write into a copy, x.clone()"
                )

    def check_reshaped(self, tensor: Tensor) -> None:
        """Raise if a tensor that is to have another shape, and has views, stands for an array of the program."""
        cell = self.cells.get(id(tensor))
        if cell is not None and cell[0]() is tensor:
            raise Unrecordable("it changes the shape of a tensor that has views")

    def rebind(self, tensor: Tensor, value: Tensor) -> None:
        """Note that a tensor's ``data`` is assigned."""
        self.bring(tensor)
        self.bring(value)
        if tensor._view is not None or tensor._views is not None:
            raise Unrecordable("the data of a tensor with views is assigned")
        if id(tensor) in self.lifted and not any(tensor is other for other in self.rebound):
            self.rebound.append(tensor)

    def check_unboxed(self, tensor: Tensor) -> None:
        """Raise for an element of an array of objects.

        NumPy computes with that element by element, where without recording it has an array of numbers, and other loops.
        """
        if self.boxed and id(tensor) in self.boxed:
            raise Unrecordable("it computes with np.array([...]) of its values: np.stack([...]) has them in one array")


def whole_of(tensor: Tensor) -> Tensor:
    """The tensor that this is a view of, or itself."""
    return tensor if tensor._view is None else tensor._view.base


def _lowest(data: AnyArray | None) -> list[Traced]:
    """The values of the recording that a value of any transformation is made of, but for those in tensors of their own."""
    if type(data) is Traced:
        return [data]
    if not isinstance(data, ArrayLike):
        return []
    return [*_lowest(data.inside), *_lowest(getattr(data, "tangent", None))]


def memory_key(array: NumpyArray) -> tuple[Any, ...]:
    """How an array lies in memory."""
    return array.__array_interface__["data"], array.shape, array.strides, array.dtype
