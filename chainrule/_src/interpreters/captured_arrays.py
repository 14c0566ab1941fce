"""The arrays and tensors of a trace, and the writes into them: the base class of ``Recorder``.

A traced function may use tensors of the surrounding program. ``lift`` brings them to the trace's level, so that operations
on them are recorded. At the end of the trace they get their arrays back. Writes that a replay cannot repeat raise
``Unrecordable`` here. *Eager code* below is the same function without ``compile``.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.any_array import overlaps_itself, with_strides
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.interpreters.trace_types import Forms, Unrecordable, ValueGuard, Var
from chainrule._src.interpreters.traced import Traced
from chainrule._src.tape.inplace import edge_through, has_function_step, replay_view
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import digest, owner
from chainrule._src.tape.view import views_of

ndarray = np.ndarray


def hook_keys(edge: Any) -> tuple[Any, ...]:
    """Return pairs (number of the handle, id of the hook) for the hooks of an edge."""
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
    """A tensor of the surrounding program that was lifted to the trace's level, and its previous state.

    Attributes:
        raw, edge, grad, hooks: the state of the tensor before the trace.
        trace_edge: its edge during the trace.
        var: the Var of its array; None for a view of another tensor.
        history_changed: whether the trace changed its history.
    """

    __slots__ = ("edge", "grad", "history_changed", "hooks", "raw", "ref", "trace_edge", "var")

    def __init__(self, tensor: Tensor, var: Var | None) -> None:
        self.ref = weakref.ref(tensor)
        self.raw = tensor._raw
        self.edge = self.trace_edge = tensor._edge
        self.hooks = hook_keys(tensor._edge)
        self.history_changed = False
        self.grad = tensor._grad
        self.var = var


class CapturedArrays:
    """The arrays and tensors of a trace.

    Attributes:
        calls, guards: the recorded calls and the guards.
        arrays: id of a plain array from outside (an argument, global or constant) -> its Var.
        views: memory key of a view from outside -> its Var.
        bases: id of an array from outside of which parts are used -> its Var.
        parts: memory key of a view of a base -> its Var, the result of a call on the base's Var.
        checksums: the Vars of arrays from outside, with checksums of their contents.
        cells: id of a tensor -> a weak reference to it, and the Var of its memory.
        lifted: id of a tensor from outside -> its previous state.
        written: the tensors with memory in ``arrays`` that got new values.
        rebound: the tensors whose ``data`` was assigned.
        holders: weak references to the tensors that got values of the trace, until ``_sharing`` lists them.
        grad_read_tensors: the tensors whose ``.grad`` was read.
        starts: for each tensor from outside that requires grad, its Leaf, and whether the trace made that Leaf.
        hooks_before: the edges of tensors from outside, before and during the trace, with their hooks before the trace.
        exported_arrays: plain arrays that ``np.asarray`` returned for tensors, with their checksums and the tensors.
        boxed: id of a tensor -> the tensor, for Arrays that NumPy put into an object array.
        object_arrays: these object arrays, with copies of them.
        narrow: whether the trace has arrays of a dtype below float64 (float32, float16, complex64).
        argument_numbers: numbers of the Vars of arguments.
        plain_arrays: id of a plain array of the program -> the array.
        elements: the Var of a number in a container -> the source of the number.
        backward_begin: the number of calls before those of the backward pass, which is a separate program; None before it begins.
        overwritten: id of the owner of memory -> the owner, if several tensors have the memory (as by ``.data``) and one wrote into it.
    """

    #: slots of the attributes that ``native/trace.c`` uses
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_count",
        "boxed",
        "calls",
        "holders",
        "level",
        "narrow",
        "overwritten",
    )

    def __init__(self) -> None:
        self.level: Any = None
        self.calls: Any = [] if native.LOOPS is None else native.LOOPS.CallList(Forms())
        self.guards: list[ValueGuard] = []
        self.arrays: dict[int, Var] = {}
        self.views: dict[Any, Var] = {}
        self.bases: dict[int, Var] = {}
        self.parts: dict[Any, Var] = {}
        self.plain_arrays: dict[int, NumpyArray] = {}
        self.lifted: dict[int, Lifted] = {}
        self.cells: dict[int, tuple[weakref.ref[Tensor], Var]] = {}
        self.written: dict[int, tuple[Any, Var]] = {}
        self.rebound: list[Tensor] = []
        self.holders: list[weakref.ref[Tensor]] = []
        self._sharing: defaultdict[int, list[weakref.ref[Any]]] = defaultdict(list)
        self.grad_read_tensors: list[Tensor] = []
        self.starts: list[tuple[Tensor, Leaf, bool]] = []
        self.hooks_before: list[tuple[object, tuple[Any, ...]]] = []
        self.checksums: list[tuple[Var, int]] = []
        self.exported_arrays: list[tuple[NumpyArray, int, weakref.ref[Tensor]]] = []
        self.boxed: dict[int, Tensor] = {}
        self.object_arrays: list[tuple[NumpyArray, Any]] = []
        self.narrow = False
        self.argument_numbers: set[int] = set()
        self.elements: dict[Var, Any] = {}
        self.overwritten: dict[int, Any] = {}
        self._count = 0
        self.backward_begin: int | None = None

    def new(self, array: NumpyArray) -> Var:
        self._count += 1
        if array.dtype.char in "efF":
            self.narrow = True
        if native.LOOPS is not None:
            native.LOOPS.note_new_value(self, array)
        return Var(self._count, array)

    def boundaries(self) -> list[int]:
        """Return the numbers of calls before which the trace may be divided into programs with plans of their own.

        The second program has the recorded values of the first one as inputs.
        """
        begin = () if self.backward_begin is None else (self.backward_begin,)
        return sorted([*[guard.call_index for guard in self.guards], *begin])

    def pack_calls(self) -> None:
        """Pack the calls of a long trace, at its end. ``new`` does so while it runs (see ``native/call_list.c``)."""
        if native.LOOPS is not None:
            native.LOOPS.pack_calls(self)

    def var_of(self, array: NumpyArray) -> Var:
        """Return the Var of an array from outside. Views with the same memory key (``M.T`` and ``M.T``) have one Var."""
        var = self.arrays.get(id(array))
        if var is not None:
            return var
        key = None
        if isinstance(array.base, ndarray) and not array.dtype.hasobject:
            key = memory_key(array)
            if key in self.views:
                return self.views[key]
        var = self.arrays[id(array)] = self.new(array)
        if key is not None:
            self.views[key] = var
        self.checksums.append((var, digest(array)))
        return var

    def _make_root(self, var: Var) -> None:
        """Make a part of another array an input of the program, because it is written."""
        key = memory_key(var.array)
        if self.parts.get(key) is not var:
            return
        del self.parts[key]
        self.arrays[id(var.array)] = var
        if native.LOOPS is None:
            index = next(i for i, call in enumerate(self.calls) if call.results == (var,))
        else:
            index = self.calls.producer(var)
        del self.calls[index]
        for guard in self.guards:
            guard.call_index -= guard.call_index > index

    def reads(self, array: NumpyArray) -> bool:
        """Return whether the recorded calls have an array, or an array that shares its memory, among their operands."""
        if id(array) in self.arrays or (array.base is not None and memory_key(array) in self.parts):
            return True
        return any([np.may_share_memory(var.array, array) for var in (*self.arrays.values(), *self.parts.values())])

    def memory_of(self, var: Var) -> list[NumpyArray]:
        """Return the arrays that the program reads of an input: the input itself, or the used parts of it."""
        if id(var.array) in self.arrays or self.bases.get(id(var.array)) is not var:
            return [var.array]
        return [part.array for part in self.parts.values() if part.array.base is var.array]

    def element(self, source: Any, number: NumpyArray) -> Traced:
        """Return a value for a number in a container, which is read again in each call."""
        for var, known_source in self.elements.items():
            if all([x is y for x, y in zip(known_source, source, strict=True)]):
                return Traced(var, self.level)
        var = self.arrays[id(number)] = self.new(number)
        self.elements[var] = source
        return Traced(var, self.level)

    def roots(self) -> list[Var]:
        """Return the Vars of the inputs: the arrays from outside, and the bases of used views."""
        return list({**dict.fromkeys(self.arrays.values()), **dict.fromkeys(self.bases.values())})

    def drop_tensors(self) -> None:
        """Drop the references to tensors."""
        for table in (self.lifted, self.cells, self.written, self._sharing, self.overwritten):
            table.clear()
        self.holders.clear()
        self.rebound.clear()
        self.grad_read_tensors.clear()
        self.boxed.clear()
        self.object_arrays.clear()
        self.starts.clear()
        self.hooks_before.clear()

    def end(self) -> None:
        """Drop the trace: values of the level may keep the recorder alive."""
        self.calls, self.guards, self.arrays, self.checksums, self.exported_arrays = [], [], {}, [], []
        self.views, self.bases, self.parts = {}, {}, {}

    def check_arrays(self) -> None:
        """Raise if code that is not recorded has written into an input of the program."""
        for var, content in self.checksums:
            if digest(var.array) != content:
                raise Unrecordable(
                    f"an array of shape {var.shape} is written by code that is not recorded: make it an argument, or write "
                    "with operations on values of the function"
                )
        if any(
            x is not y for holder, before in self.object_arrays for x, y in zip(holder.flat, before.flat, strict=True)
        ):
            raise Unrecordable("the result of np.asarray for a 0-d array is written: write into the array itself")
        for array, content, _ in self.exported_arrays:
            if digest(array) != content:
                raise Unrecordable(
                    f"the result of np.asarray for an array of shape {array.shape} is written by code that is not "
                    "recorded: write into the array itself"
                )

    def export_array(self, tensor: Tensor, array: NumpyArray) -> NumpyArray:
        """Return a plain array of a tensor's memory for code that is not recorded, and register it in ``exported_arrays``."""
        view, data = tensor._view, tensor._raw
        if type(data) is Traced:
            data = data.var.array
        elif type(data) is not ndarray:
            raise Unrecordable("it converts a tensor with a tangent, or of a batch, to a NumPy array")
        if array.strides != data.strides:
            array = with_strides(data, data.strides)
        array.flags.writeable = data.flags.writeable
        self.exported_arrays.append((array, digest(array), weakref.ref(tensor if view is None else view.base)))
        return array

    def lift(self, tensor: Tensor) -> None:
        """Lift a tensor of the surrounding program to this level, with its base and all views of the base."""
        if type(tensor._raw) is not ndarray:
            return
        view = tensor._view
        base = tensor if view is None else view.base
        if type(base._raw) is ndarray:
            var = self.var_of(base._raw)
            self.cells[id(base)] = (weakref.ref(base), var)
            entry = self.lifted[id(base)] = Lifted(base, var)
            base._raw = Traced(var, self.level)
            base._edge = entry.trace_edge = self.start(base)
            self.note_holder(base)
        for each in {id(t): t for t in (*views_of(base), tensor)}.values():
            if type(each._raw) is ndarray:
                if has_function_step(each._view.steps):
                    raise Unrecordable("it uses a view that no recorded operation takes")
                entry = self.lifted[id(each)] = Lifted(each, None)
                each._raw = replay_view(base._raw, each._view.steps)
                if type(each._edge) is Leaf:
                    self.hooks_before.append((each._edge, hook_keys(each._edge)))
                elif each._edge is not None:
                    each._edge = entry.trace_edge = edge_through(base, each._view.steps)

    def start(self, tensor: Tensor) -> Any:
        """Return the Leaf of a tensor from outside during the trace, where gradients end; None if it requires no grad."""
        edge = tensor._edge
        if edge is None:
            return None
        if any(edge is leaf for _, leaf, _ in self.starts):
            raise Unrecordable("it uses a tensor both as an argument and from outside")
        fresh = type(edge) is not Leaf
        start = Leaf(tensor) if fresh else edge
        self.hooks_before += {id(each): (each, hook_keys(each)) for each in (edge, start)}.values()
        self.starts.append((tensor, start, fresh))
        return start

    def check_hooks(self) -> None:
        """Raise if hooks of tensors from outside were registered or removed."""
        if any([hook_keys(edge) != hooks for edge, hooks in self.hooks_before]):
            raise Unrecordable("it registers a hook on a tensor from outside: register it once, before the call")

    def drop_hooks(self) -> None:
        """Remove the hooks that the trace registered on tensors from outside, because the function runs again eagerly."""
        edge: Any
        for edge, before in self.hooks_before:
            if hook_keys(edge) != before:
                numbers = {key for key, _ in before}
                for table in (edge.hooks.tensor, edge.hooks.pre, edge.hooks.post, edge.hooks.post_accumulate):
                    for key in [key for key in table if key not in numbers]:
                        del table[key]

    def note_grad_read(self, tensor: Tensor) -> None:
        """Note that the program reads a tensor's ``.grad``."""
        self.lift(tensor)
        self.grad_read_tensors.append(tensor)

    def check_writable(self, data: AnyArray) -> None:
        """Raise for a write that fails in eager code: into a read-only array, or one whose elements share memory."""
        if type(data) is not Traced:
            return
        array, is_argument = data.var.array, data.var.number in self.argument_numbers
        if (is_argument and not array.flags.writeable) or (
            (is_argument or 0 in array.strides) and overlaps_itself(array)
        ):
            raise Unrecordable("it writes into an array that is read-only, or whose elements share memory")

    def check_whole(self, data: object) -> None:
        """Raise if the program depends on whether an argument is a view, which its signature does not include."""
        if type(data) is Traced and (data.var.number in self.argument_numbers or data.is_view):
            raise Unrecordable("it reads the base of an array argument")

    def note_holder(self, tensor: Tensor) -> None:
        """Note that a tensor holds values of the trace, perhaps inside values of a transformation."""
        self.holders.append(weakref.ref(tensor))

    def note_values(self, array: NumpyArray, values: NumpyArray) -> None:
        """Note that Python has an array that is the memory of another one in eager code."""
        self._sharing[id(owner(array))].append(weakref.ref(values))

    def _holders_of(self, memory: object) -> list[weakref.ref[Any]]:
        """Return references to the tensors and arrays that may hold some memory."""
        for ref in self.holders:
            tensor = ref()
            for value in () if tensor is None else _lowest(tensor._raw):
                self._sharing[id(owner(value.var.array))].append(ref)
        self.holders.clear()
        return self._sharing.get(id(memory), [])

    def check_shared(self, tensor: Tensor) -> None:
        """Raise if a written tensor shares memory with another tensor, which does not get the new values.

        A transformation may return its input arrays in other tensors.
        """
        whole = whole_of(tensor)
        if type(whole._raw) is not Traced:
            return
        memory = owner(whole._raw.var.array)
        joined = [whole] if whole._memory is None else [base for base, _ in whole._memory[0].families()]
        if len(joined) > 1:
            self.overwritten[id(memory)] = memory
        for ref in self._holders_of(memory):
            other = ref()
            if type(other) is ndarray:
                raise Unrecordable(
                    "it writes into a tensor of which it has an array (as by np.asarray): copy that array"
                )
            if other is None or any([whole_of(other) is base for base in joined]):
                continue
            if any([owner(value.var.array) is memory for value in _lowest(other._raw)]):
                raise Unrecordable(
                    "it writes into a tensor that shares memory with a result of a transformation (as of "
                    "vmap(lambda a: a)(x)): write into a copy, x.clone()"
                )

    def check_saved(self, saved: Any) -> None:
        """Raise if a node saved memory that was written through ``.data``: eager code reads the new values, the trace the old ones."""
        if isinstance(saved, tuple):
            for part in saved:
                self.check_saved(part)
        elif any([id(owner(value.var.array)) in self.overwritten for value in _lowest(saved)]):
            raise Unrecordable("it writes through .data or detach() into memory that the backward pass reads")

    def check_reshaped(self, tensor: Tensor) -> None:
        """Raise if a tensor of the program that has views is given another shape."""
        cell = self.cells.get(id(tensor))
        if cell is not None and cell[0]() is tensor:
            raise Unrecordable("it changes the shape of a tensor that has views")

    def rebind(self, tensor: Tensor, value: Tensor) -> None:
        """Note that a tensor's ``data`` is assigned."""
        self.lift(tensor)
        self.lift(value)
        if tensor._view is not None or tensor._views is not None:
            raise Unrecordable("it assigns the data of a tensor that has views")
        if id(tensor) in self.lifted and not any(tensor is other for other in self.rebound):
            self.rebound.append(tensor)

    def check_unboxed(self, tensor: Tensor) -> None:
        """Raise for an element of an object array.

        NumPy computes with an object array element by element. Eager code has a numeric array there, with other inner loops.
        """
        if self.boxed and id(tensor) in self.boxed:
            raise Unrecordable("it computes with np.array([...]) of its values: np.stack([...]) has them in one array")


def whole_of(tensor: Tensor) -> Tensor:
    """Return the base of a view, or the tensor itself."""
    return tensor if tensor._view is None else tensor._view.base


def _lowest(data: AnyArray | None) -> list[Traced]:
    """Return the traced values inside a value of any transformation, except those in inner tensors."""
    if type(data) is Traced:
        return [data]
    if not isinstance(data, ArrayLike):
        return []
    return [*_lowest(data.inside), *_lowest(getattr(data, "tangent", None))]


def memory_key(array: NumpyArray) -> tuple[Any, ...]:
    """Return a key of an array's memory layout: address, shape, strides and dtype."""
    return array.__array_interface__["data"], array.shape, array.strides, array.dtype
