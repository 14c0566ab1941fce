"""Recording: an array-like whose NumPy calls are written down.

``Traced(var, level)`` stands for one array of a program that is being recorded. It has a value, so the program runs as it
would, and every NumPy call on it is noted with that value as its result: NumPy's own semantics, so a replay of the calls gives
the same bits. Rows of the table are recorded as the NumPy calls that their ``value`` makes, wherever that comes to the same;
otherwise as one call of ``value``.

What Python reads of a value (``if x > 0``, ``float(x)``) is a :class:`ValueRead`: the recording holds for as long as it reads the
same. Tensors of the surrounding program that the recorded function meets are brought to the level, so that operations on them
are recorded, too; when the recording ends they have their arrays again.
"""

from __future__ import annotations

import dis
import functools
import operator
import sys
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.any_array import lying_at, with_strides
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, NumpyDType, Params, TensorLike
from chainrule._src.interpreters.rebuilt import ARITHMETIC, SAME_AS_UFUNC, Place, Rebuilt
from chainrule._src.messages import errors
from chainrule._src.messages.places import note_frame
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape import warned
from chainrule._src.tape.dispatch import INTERPRETERS
from chainrule._src.tape.inplace import edge_through, passes_through, replay_view
from chainrule._src.tape.levels import STACK, Level, escaped
from chainrule._src.tape.modes import LOCAL, leave_watched, set_watched
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.protocol import ArrayLike, array_function, array_ufunc
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import digest, owner
from chainrule._src.tape.view import views_of

ndarray = np.ndarray
_NUMBERS = (int, float, complex, np.generic)


class Var:
    """One array of a recorded program.

    Attributes:
        number: its place among all arrays of the recording.
        shape, dtype: those of the array.
        array: the recorded value; None once it is not needed.
    """

    __slots__ = ("array", "dtype", "number", "shape")

    def __init__(self, number: int, array: NumpyArray) -> None:
        self.number = number
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def forget(self) -> None:
        """Let go of the recorded value."""
        self.array = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"%{self.number}"


class TracedCall:
    """One NumPy call of a recorded program.

    Attributes:
        function, method: a ufunc and its method ("__call__", "reduce" ...), or any function and "".
        args, kwargs: what it is called with: Vars, numbers and other constants, nested in tuples, lists and slices.
        results: a Var for each array that it returns.
        row: the operation of ours that it belongs to; "" if none.
        code, lasti: the place in the user's program.
        pure: whether nothing but its results matters; random draws and functions of the user's are not.
        kept: whether it is to be made though nobody needs its results: an exception that it meets may be handled.
    """

    __slots__ = ("args", "code", "function", "kept", "kwargs", "lasti", "method", "pure", "results", "row")

    function: Any
    method: str
    args: tuple[Any, ...]
    kwargs: Params
    results: tuple[Var, ...]
    row: str
    code: Any
    lasti: int
    pure: bool
    kept: bool

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", str(self.function))
        return f"{', '.join(map(repr, self.results))} = {name}{self.args}"


class Program(NamedTuple):
    """What a plan is made of.

    Attributes:
        inputs: the arrays that are known when it is called.
        constants: arrays that never change; their content is the Vars'.
        calls: the NumPy calls.
        outputs: the arrays that it makes.
        writes: (input, value): when all is computed, the value is written to the input's memory.
    """

    inputs: list[Var]
    constants: list[Var]
    calls: list[TracedCall]
    outputs: list[Var]
    writes: list[tuple[Var, Var]]


class ValueRead:
    """What Python read of a value, and so what a recording relies on.

    Attributes:
        at: how many calls were recorded before it.
        var: the array that was read.
        code, lasti: where.
    """

    __slots__ = ("at", "code", "lasti", "var")

    code: Any
    lasti: int

    def __init__(self, at: int, var: Var) -> None:
        self.at = at
        self.var = var


class Unrecordable(Exception):
    """The function does something that no recording can repeat; the text says what.

    Attributes:
        perhaps_later: whether it may do so in its first calls alone.
    """

    perhaps_later = False

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        recorder = LOCAL.recorder
        if isinstance(recorder, Recorder) and recorder.refusal is None:  # the function may catch it
            recorder.refusal = self


class ByValue(Unrecordable):
    """A float of Python's takes part in what is not known to take it as one: it has to be itself, and not an array."""


class _ReadInRow(Exception):
    """A row's value looked at numbers: it can only be called whole."""


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


class Recorder:
    """Writes down the calls on the values of one level. It is this thread's ``LOCAL.recorder`` while it does.

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
        sources: generators that random numbers were drawn from, and their states before.
        lent: plain arrays that stand for the memory of a tensor, with their content.
        boxed: the tensors, by identity, of Arrays that NumPy put into an array of objects; holders: these arrays.
        ignored: the kinds of floating-point exceptions that a part of the function ignores.
        handled: those that a part of it has treated in another way than what is around it: it may look whether there are any.
        refusal: why the function cannot be recorded, once that is known; raised: what a call of NumPy's raised.
        failed: the type of what the last such call raised, be it only because of the shapes.
        unviewed: a function whose result is a view in plain code, and here is none.
        narrow: whether there are numbers that floats of Python's are narrowed to.
        depth: how many transformations the code that runs is inside of, of those without a level.
        with_arrays: whether Arrays are among the arguments.
        given: numbers of the Vars of arguments.
        scalars: numbers of Vars that plain code has as scalars of NumPy's.
        weak: numbers of Vars that plain code has as floats of Python's, whose dtype is that of what they meet.
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
        self.lifted: dict[int, Lifted] = {}
        self.cells: dict[int, tuple[weakref.ref[Tensor], Var]] = {}
        self.written: dict[int, tuple[Any, Var]] = {}
        self.rebound: list[Tensor] = []
        self.sharing: defaultdict[int, list[weakref.ref[Any]]] = defaultdict(list)
        self.looked_at: list[Tensor] = []
        self.starts: list[tuple[Tensor, Leaf, bool]] = []
        self.hooked: list[tuple[object, tuple[Any, ...]]] = []
        self.sources: list[tuple[Any, Any]] = []
        self.contents: list[tuple[Var, int]] = []
        self.lent: list[tuple[NumpyArray, int, weakref.ref[Tensor]]] = []
        self.ignored: set[str] = set()
        self.boxed: dict[int, Tensor] = {}
        self.holders: list[tuple[NumpyArray, Any]] = []
        self.handled: set[str] = set()
        self.refusal: Unrecordable | None = None
        self.raised: Exception | None = None
        self.failed: type | None = None
        self.narrow = False
        self.unviewed = ""
        self._viewed: Any = None
        self._around = _Treatment()
        self.depth = 0
        self.with_arrays = False
        self.given: set[int] = set()
        self.scalars: set[int] = set()
        self.weak: set[int] = set()
        self.elements: dict[Var, Any] = {}
        self._count = 0
        self._row: str = ""
        self._inside_row = 0
        self._drawing = False
        self._read: set[int] = set()

    def __enter__(self) -> Recorder:
        set_watched()
        LOCAL.recorder = self
        return self

    def __exit__(self, *exc: object) -> None:
        LOCAL.recorder = None
        leave_watched()
        for entry in self.lifted.values():
            tensor = entry.ref()
            if tensor is not None and type(tensor._raw) is not ndarray:
                tensor._raw = entry.raw
                entry.moved = tensor._edge is not entry.here
                tensor._edge = entry.edge

    # -- arrays ------------------------------------------------------------------------------------------------------

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
            lies = _lies(array)
            if lies in self.views:
                return self.views[lies]
        var = self.arrays[id(array)] = self.new(array)
        if lies is not None:
            self.views[lies] = var
        self.contents.append((var, digest(array)))
        return var

    def var_of_plain(self, array: NumpyArray) -> Var:
        """A plain array as an array of the program: a view, as a row of data, is one there, too."""
        var = self.arrays.get(id(array))
        base: Any = array.base
        if var is not None or not _is_part(array, base):
            return var or self.bases.get(id(array)) or self.var_of(array)
        lies = _lies(array)
        var = self.parts.get(lies)
        if var is None:
            whole = self.bases.get(id(base)) or self.arrays.get(id(base))
            if whole is None or any([entry.var is whole for entry in self.lifted.values()]):  # that may get other data
                whole = self.bases[id(base)] = self.new(base)
            place = lies[0][0] - base.__array_interface__["data"][0], array.shape, array.strides
            given = Traced(whole, self.level), *place
            var = self.parts[lies] = self.note(lying_at, "", given, {}, (array,), False).var
            self.contents.append((var, digest(array)))
        return var

    def drop(self, begin: int) -> None:
        """Forget the calls from here on, but for views of arrays from outside, which may be used again."""
        self.calls[begin:] = [call for call in self.calls[begin:] if call.function is lying_at]

    def _set_apart(self, var: Var) -> None:
        """Have an array that is written as one that the program starts from, though it is a part of another one."""
        lies = _lies(var.array)
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
        if id(array) in self.arrays or (array.base is not None and _lies(array) in self.parts):
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

    def traced(self, data: object) -> Any:
        return data if type(data) is Traced else Traced(self.var_of_plain(np.asarray(data)), self.level)

    def made(self, tensor: Tensor, data: NumpyArray) -> Any:
        """What a tensor that is made while recording holds in the place of an array."""
        if self._drawing:
            return data
        var = self.var_of_plain(data)
        self.cells[id(tensor)] = (weakref.ref(tensor), var)
        value = Traced(var, self.level)
        self.note_holder(tensor, value)
        return value

    def bring_all(self, operands: Sequence[TensorLike]) -> None:
        for x in operands:
            if type(x) is not Traced and isinstance(x, Tensor) and type(x._raw) is ndarray:
                self.bring(x)

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
            self.sharing[id(array if array.base is None else owner(array))].append(_weakly(tensor))
        else:
            for value in _lowest(data):
                self.note_holder(tensor, value)

    def check_shared(self, tensor: Tensor) -> None:
        """Raise if memory that is written is that of a tensor, too, which will not be given the new values.

        A transformation hands on the arrays that it was given, in other tensors.
        """
        whole = _whole(tensor)
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
            if other is None or any([_whole(other) is base for base in joined]):
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

    def held(self, tensor: Tensor, data: AnyArray) -> Any:
        """Note that a tensor is given other values: if its memory is an array of the program, that is to change.

        Returns:
            What it is to hold.
        """
        view = tensor._view
        base = tensor if view is None else view.base
        if self.lent and any(ref() is base and sys.getrefcount(array) > _LENT for array, _, ref in self.lent):
            raise Unrecordable("it writes into an array that np.asarray was called with before")
        if self.unviewed:
            raise Unrecordable(f"it writes into arrays, and {self.unviewed} gives a view that is not recorded as one")
        cell = self.cells.get(id(base))
        if cell is not None and cell[0]() is base:
            if not cell[1].array.flags.writeable:
                self.raised = ValueError("assignment destination is read-only")
                raise self.raised
            self._set_apart(cell[1])
            self.written[cell[1].number] = (base, cell[1])
        old = getattr(tensor, "_raw", None)
        if type(data) is Traced and not data.shape and self.is_array(old) and not self.is_array(data):
            return self.call(np.copy, "", (data.as_array(),), {})  # an array that a number is written into is still one
        return data

    def check_view(self, function: AnyFunction, result: object) -> None:
        """Look whether what is a view in plain code is one here."""
        expected, self._viewed = self._viewed, None
        if expected is function and isinstance(result, Tensor) and result._view is None:
            self.unviewed = self.unviewed or f"np.{function.__name__}"

    def rebind(self, tensor: Tensor, value: Tensor) -> None:
        """Note that a tensor's ``data`` is assigned."""
        self.bring(tensor)
        self.bring(value)
        if tensor._view is not None or tensor._views is not None:
            raise Unrecordable("the data of a tensor with views is assigned")
        if id(tensor) in self.lifted and not any(tensor is other for other in self.rebound):
            self.rebound.append(tensor)

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(
        self,
        function: Any,
        method: str,
        args: tuple[object, ...],
        kwargs: Params,
        pure: bool = True,
        row: str = "",
    ) -> Any:
        """TracedCall a function of NumPy's arrays, and note it. Results that are arrays are values of this level."""
        strong = not (self.weak and self.narrow) or function in _OF_FLOATS or type(function) is Rebuilt
        if not strong and any(map(self._is_weak, _flat(args))):
            raise ByValue("a float of Python's takes part in what is not NumPy's")
        if function is np.square and type(args[0]) is Traced and args[0].dtype.kind == "c" and args[0].scalar:
            function, method = _scalar_square, ""
        elif type(function) is not np.ufunc:
            if function in _TELL_SCALARS and type(args[0]) is Traced and args[0].scalar:
                function, method, args, kwargs = self.rebuilt(function, args, kwargs)
            if function in _DOTS and len(args) == 2 and not kwargs and _multiplies_alike(function, *_arrays(args)):
                function, method = np.matmul, "__call__"
        if method == "__call__" and not kwargs and type(function) is np.ufunc:
            given = tuple([x.var.array if type(x) is Traced and not x.scalar else _arrays(x) for x in args])
            out = self._called(function, given, kwargs)
            if type(out) is ndarray:
                return self.note(function, method, args, kwargs, (out,), False, pure, row)
        else:
            given = _arrays(
                _without_scalars(args) if function in _OF_ARRAYS and not _drops_axes(function, args) else args
            )
            named = _arrays(kwargs) if kwargs else kwargs
            out = self._called(getattr(function, method) if method else function, given, named)
        several = type(out) is not ndarray and isinstance(out, (tuple, list))
        parts = tuple(out) if several else (out,)
        if type(out) is ndarray:
            for x, y in zip(args, given, strict=False):
                if y is out:
                    return x if type(x) is Traced else self.traced(x)
        elif not all([isinstance(part, (ndarray, np.generic)) for part in parts]):
            return self._plain_result(function, method, args, kwargs, out)
        if not isinstance(function, np.ufunc):
            parts = tuple([_spread(part, given) for part in parts])
        return self.note(function, method, args, kwargs, parts, several, pure, row)

    def _called(self, function: Any, args: tuple[object, ...], kwargs: Params) -> Any:
        """What a function gives. The program may handle what it raises, and then goes another way than with other numbers."""
        self._around.looked_at = False
        if self._around.changed():
            self._look_for_exceptions(function, args, kwargs)
        self.failed = None
        try:
            return function(*args, **kwargs)
        except (TypeError, np.exceptions.AxisError) as error:  # follows from shapes and dtypes
            self.failed = type(error)
            raise
        except Exception as error:
            self.failed = type(error)
            if not isinstance(error, IndexError) or sum([type(x) is ndarray for x in _flat(args)]) > 1:
                self.raised = self.raised or error  # one array has no element beyond its shape
            raise

    def _look_for_exceptions(self, function: Any, args: tuple[object, ...], kwargs: Params) -> None:
        """Note how floating-point exceptions are treated here, and refuse if one comes that the program may look at."""
        ignored, handled = self._around.differences()
        self.ignored |= ignored
        self.handled |= handled
        self._around.looked_at = bool(handled)
        if not handled or self._drawing or (type(function) is RowCallable and not function.prim.listed):
            return
        met: list[str] = []
        with np.errstate(all="call", call=lambda kind, flag: met.append(kind)):
            try:
                function(*args, **kwargs)
            except Exception:  # it will be raised again
                return
        if any(FLOATING_POINT[kind] in handled for kind in met):
            self.refuse_for_now("it handles a floating-point exception itself")

    def handles(self, error: Any) -> None:
        """Note that the program is about to handle an exception: one of ours may be another one in plain code."""
        modules, trace = set(), error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is Recorder._called.__code__:
                return  # it is NumPy's
            modules.add(trace.tb_frame.f_globals.get("__name__"))
            trace = trace.tb_next
        alike = isinstance(error, (TypeError, AttributeError)) if self.failed is None else type(error) is self.failed
        if not alike and not modules.isdisjoint(_FACES):
            self.raised = self.raised or error

    def refuse_for_now(self, reason: str) -> None:
        """Have the function not recorded this time."""
        if self.refusal is None:
            self.refusal = Unrecordable(reason)
            self.refusal.perhaps_later = True

    def check_refused(self) -> None:
        """Raise if the function did, and perhaps caught, what cannot be recorded."""
        if self.raised is not None:
            self.refuse_for_now(f"it handles an exception ({type(self.raised).__name__}) itself")
        if self.refusal is not None:
            raise self.refusal

    # -- floats of Python's ------------------------------------------------------------------------------------------

    def on_floats(self, operation: AnyFunction, *operands: TensorLike) -> Any:
        """An operator on floats of Python's alone, which gives one of Python's; None: it is something else."""
        known = ARITHMETIC.get(operation)
        if known is None or not all(self._is_weak(x) or type(x) in (int, float, bool, complex) for x in operands):
            return None
        out = self._called(known, _arrays(operands), {})
        function: Any = known
        method = ""
        if operation in SAME_AS_UFUNC and all([type(x) is not int or abs(x) < 1 << 53 for x in operands]):
            function, method = SAME_AS_UFUNC[operation], "__call__"
        traced = self.note(function, method, operands, {}, (np.asarray(out),), False)
        if type(out) is not float:
            return self.read(traced).item()
        self.weak.add(traced.var.number)
        return traced

    def _as_strong(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Operands of a ufunc with Python's floats as arrays of the dtype that they take among the others."""
        if not any(map(self._is_weak, args)):
            return args
        target = self._dtype_of_floats(args)
        strong = [x.astype(target, copy=True) if self._is_weak(x) else x for x in args]
        self.scalars.update([x.var.number for x, given in zip(strong, args, strict=True) if x is not given])
        return tuple([self._plain_value(x) if type(x) is Traced else x for x in strong])

    def _dtype_of_floats(self, args: Sequence[TensorLike]) -> NumpyDType:
        """The dtype that Python's floats take among the operands of a ufunc."""
        others = [x.dtype for x in args if hasattr(x, "dtype") and not self._is_weak(x)]
        return np.zeros(0, np.result_type(*others, 0.0)).real.dtype

    def strong(self, ufunc: np.ufunc, args: Any) -> list[Any]:
        """Operands of a ufunc of any values, with Python's floats as arrays of the dtype that they take among the others."""
        weak = [self._is_weak(x) for x in args]
        if all(weak) or not any(weak):
            return list(args)
        if ufunc is np.power and weak[1]:
            raise ByValue("a float of Python's is an exponent where a derivative is taken")
        target = self._dtype_of_floats(args)
        return [x.astype(target, copy=False) if k else x for x, k in zip(args, weak, strict=True)]

    def _with_floats(
        self, function: AnyFunction, method: str, args: tuple[object, ...], kwargs: Params
    ) -> tuple[Any, str, Any, Any]:
        """A call in which Python's floats are what they are for the function."""
        if not self.weak or not any(map(self._is_weak, _flat((args, kwargs)))):
            return function, method, args, kwargs
        if method == "__call__" and not kwargs:
            return function, method, self._as_strong(args), kwargs
        if function is np.clip and not kwargs:
            return function, method, self._as_strong(args), kwargs
        if function is np.where and len(args) == 3 and not kwargs and not self._is_weak(args[0]):
            return function, method, (args[0], *self._as_strong(args[1:])), kwargs
        return self.rebuilt(getattr(function, method) if method else function, args, kwargs)

    def rebuilt(
        self, function: AnyFunction, args: Any, kwargs: Any, written: tuple[Traced, ...] = ()
    ) -> tuple[Any, str, Any, Any]:
        """A call as one of arrays alone, for ``call``."""
        arrays: list[Traced] = []

        args, kwargs = self._places(args, arrays), self._places(kwargs, arrays)
        floats = tuple([i for i, x in enumerate(arrays) if self._is_weak(x)])
        scalars = tuple([i for i, x in enumerate(arrays) if self.is_scalar(x) and i not in floats])
        places = tuple([self._places(x, arrays).at for x in written])
        return Rebuilt(function, args, kwargs, floats, scalars, places), "", tuple(arrays), {}

    def _places(self, x: Any, arrays: list[Traced]) -> Any:
        """An argument with places in ``arrays`` instead of its arrays, which are put there."""
        kind = type(x)
        if kind is ndarray:
            x, kind = self.traced(x), Traced
        if kind is Traced:
            known = next((i for i, other in enumerate(arrays) if other.var is x.var), None)
            if known is None:
                arrays.append(x)
            return Place(len(arrays) - 1 if known is None else known)
        if kind is tuple or kind is list:
            return kind([self._places(item, arrays) for item in x])
        if kind is dict:
            return {name: self._places(item, arrays) for name, item in x.items()}
        return slice(*[self._places(item, arrays) for item in (x.start, x.stop, x.step)]) if kind is slice else x

    def _is_weak(self, x: object) -> bool:
        return type(x) is Traced and x.var.number in self.weak

    def note(
        self,
        function: Any,
        method: str,
        args: tuple[object, ...],
        kwargs: Params,
        parts: tuple[Any, ...],
        several: bool,
        pure: bool = True,
        row: str = "",
    ) -> Any:
        """Note a call whose results are known."""
        call = _new(TracedCall)
        call.function = function
        call.method = method
        call.args = tuple([x.var if type(x) is Traced else x if type(x) in _SIMPLE else self._vars(x) for x in args])
        call.kwargs = {name: self._vars(x) for name, x in kwargs.items()} if kwargs else kwargs
        call.row = row or self._row
        call.pure = pure
        note_frame(call, sys._getframe(1))
        code = call.code
        call.kept = self._around.looked_at or bool(
            code is not None and code.co_exceptiontable and is_tried(code, call.lasti)
        )
        self.calls.append(call)
        alike = self.plain or self.are_plain((args, kwargs) if kwargs else args)
        variables, results = [], []
        for part in parts:
            var = self.new(part if type(part) is ndarray else np.asarray(part))
            result = Traced(var, self.level, alike)
            if not var.shape:
                result.scalar = isinstance(part, np.generic)
                if alike and (result.scalar or function in _OF_ELEMENTS or type(function) is RowCallable):
                    self.scalars.add(var.number)
            variables.append(var)
            results.append(result)
        call.results = tuple(variables)
        return tuple(results) if several else results[0]

    def _plain_result(self, function: AnyFunction, method: str, args: Any, kwargs: Any, out: Any) -> Any:
        """What a call returned that is no array: it follows from shapes and dtypes, or it is a value that Python reads."""
        if function in _OF_SHAPES:
            return out
        if not isinstance(out, (bool, int, float, complex)):
            kind = type(getattr(out, "payload", out))  # another library's array
            raise Unrecordable(f"{getattr(function, '__name__', function)} returns {kind.__module__}.{kind.__name__}")
        function = getattr(function, method) if method else function
        traced = self.note(AsArray(function), "", args, kwargs, (np.asarray(out),), False)
        return type(out)(self.read(traced).item())

    def _vars(self, x: Any) -> Any:
        """Arguments with Vars in the place of arrays."""
        kind = type(x)
        if kind is Traced:
            return x.var
        if kind is ndarray:
            return self.var_of_plain(x)
        if kind is tuple or kind is list:
            return kind([self._vars(item) for item in x])
        if kind is dict:
            return {key: self._vars(item) for key, item in x.items()}
        if kind is slice and x.start.__class__ is Traced:
            raise Unrecordable("a slice between traced numbers")
        return x

    @property
    def plain(self) -> bool:
        """Whether the code that runs would compute with plain arrays if nothing was recorded."""
        nothing_around = not self.depth and LOCAL.sweep is None and STACK.levels[-1] is self.level
        return nothing_around and not self.with_arrays

    def are_plain(self, operands: Any) -> bool:
        """Whether what is recorded among operands are arrays in plain code, though derivatives of others may be taken."""
        if self.with_arrays or LOCAL.sweep is not None:
            return False
        found, todo = False, [*operands]
        for x in todo:
            kind = type(x)
            if kind is Traced:
                if not x.plain:
                    return False
                found = True
            elif kind is tuple or kind is list:
                todo += x
            elif kind is dict:
                todo += x.values()
        return found

    def stands_for(self, data: AnyArray) -> type | None:
        """The type that plain code has in the place of a value: ``float``, a scalar of NumPy's, ``ndarray``. None: its own."""
        if type(data) is not Traced or not (self.plain or self.are_plain((data,))):
            return None
        if data.var.number in self.weak:
            return float
        return data.dtype.type if data.var.number in self.scalars else ndarray

    def is_array(self, data: AnyArray | None) -> bool:
        """Whether what has no dimension is an array in plain code, and no scalar of NumPy's or float of Python's."""
        return type(data) is Traced and self.plain and data.var.number not in self.scalars | self.weak

    def keep_scalar(self, data: AnyArray) -> None:
        """Note that what has no dimension is a scalar: a method of one gave it."""
        if type(data) is Traced and not data.shape:
            self.scalars.add(data.var.number)

    def is_scalar(self, data: AnyArray) -> bool:
        return type(data) is Traced and self.plain and data.var.number in self.scalars

    def keep_array(self, data: AnyArray) -> None:
        """Note that an element is an array without axes: it was asked for with an Ellipsis."""
        if type(data) is Traced:
            self.scalars.discard(data.var.number)

    def as_numpy(self, function: AnyFunction, method: str, args: tuple[object, ...], kwargs: Params) -> Any:
        """Have a function of NumPy's recorded as it is. None: it fails, or its results are views, read-only, or no arrays."""
        begin, read, refusal = len(self.calls), len(self.guards), self.refusal
        try:
            function, method, args, kwargs = self._with_floats(function, method, args, kwargs)
            found = self.call(function, method, self._plain_values(args), kwargs)
        except ByValue:
            raise
        except Exception:  # ours says why
            found, self.refusal = None, refusal
        self._viewed = None
        if type(found) in (bool, int, float, complex):  # which was read
            return found
        parts = found if type(found) is tuple else (found,)
        memory = [x for x in _flat(_arrays((args, kwargs))) if type(x) is ndarray]
        if not all(
            type(p) is Traced
            and p.var.array.flags.writeable
            and not any(np.may_share_memory(p.var.array, x) for x in memory)
            for p in parts
        ):
            self.drop(begin)
            del self.guards[read:]
            same = type(found) is Traced and any(x is found.var.array for x in memory)
            self._viewed = None if found is None or same else function
            return None
        return found

    def written_by(
        self, function: AnyFunction, args: tuple[TensorLike, ...], kwargs: Params, targets: tuple[Traced, ...]
    ) -> Any:
        """What is in arrays that a function of NumPy's wrote into (``out=``, ``**=``), as its other operands are."""
        operands = [x for x in _flat((args, kwargs)) if type(x) in (Traced, ndarray)]
        for target in targets:
            for x in operands:
                apart = x is target or (type(x) is Traced and x.var is target.var)
                if not apart and np.may_share_memory(_arrays(x), target.var.array):
                    raise Unrecordable("it has NumPy write into an operand that overlaps another one")
            if overlaps_itself(target.var.array):
                raise Unrecordable("it has NumPy write into an array whose elements share memory")
        return self.call(*self.rebuilt(function, args, kwargs, targets))

    def computes_alike(self, ufunc: np.ufunc, operands: tuple[TensorLike, ...], targets: Any) -> bool:
        """Whether a ufunc that writes into an array gives what it gives in an array of its own."""
        if len(targets) != 1 or ufunc.signature is not None or ufunc not in _EXACT:
            return False
        (target,) = targets
        dtypes = [x.dtype for x in (*operands, target) if not self._is_weak(x) and hasattr(x, "dtype")]
        return target.dtype.kind in "fiub" and all([dtype == target.dtype for dtype in dtypes])

    def as_operator(self, operation: AnyFunction, x: TensorLike, *other: TensorLike) -> Any:
        """Have an operator recorded as plain code computes it, with scalars and floats where that has some."""
        if not other:
            return operation(self._plain_value(x))
        (y,) = other
        is_array = type(x) is ndarray or (type(x) is Traced and x.var.number not in self.scalars)
        if operation is operator.pow and self._is_weak(y) and is_array:
            return self.call(_power_by_float, "", (x, y), {})
        x, y = self._as_strong((x, y))
        return operation(self._plain_value(x), self._plain_value(y))

    def are_integers(self, operands: tuple[TensorLike, ...]) -> bool:
        """Whether these are scalars of NumPy's and integers alone: of these, unlike of arrays, overflows are warned of."""
        return all(
            [self.is_scalar(x) if type(x) is Traced else isinstance(x, (int, np.integer)) for x in operands]
        ) and all([x.dtype.kind in "iub" for x in operands if type(x) is Traced])

    def of_integers(self, operation: AnyFunction, operands: tuple[TensorLike, ...]) -> Any:
        """Have an operator on integers recorded as it is."""
        found = self.call(*self.rebuilt(operation, operands, {}, ()))
        self.keep_scalar(found)
        return found

    def _plain_values(self, x: Any) -> Any:
        """Arguments with scalars where plain code has some."""
        kind = type(x)
        if kind is tuple or kind is list:
            return kind([self._plain_values(item) for item in x])
        return self._plain_value(x)

    def _plain_value(self, x: TensorLike) -> Any:
        if type(x) is Traced and x.var.number in self.scalars:
            x = Traced(x.var, x.level, x.plain)
            x.scalar = True
        return x

    # -- rows --------------------------------------------------------------------------------------------------------

    def row(self, prim: Primitive, operands: Sequence[TensorLike], params: Params) -> Any:
        """An operation of ours: the NumPy calls that compute it, or one call of its value."""
        value = prim.value
        if isinstance(value, np.ufunc) and not params:
            return self.call(value, "__call__", tuple(operands), {}, row=prim.name)
        if not prim.listed and prim.kind != "function":
            return self._whole(prim, operands, params, pure=False)
        if prim.kind == "function":
            return value(*operands, **params)
        key = _key(prim, operands, params)
        known = _AS_CALLS.get(key)
        if known is False:
            return self._whole(prim, operands, params)
        try:
            found = self._as_calls(prim, operands, params)
        except np.linalg.LinAlgError:  # these numbers say nothing about others
            return self._whole(prim, operands, params)
        if known is None and not self._inside_row:
            if len(_AS_CALLS) > _MOST:
                _AS_CALLS.clear()
            _AS_CALLS[key] = known = found is not None and _same(found, value(*_arrays(operands), **params))
            if not known and found is not None:
                self.drop(found[1])
        if found is None or known is False:
            return self._whole(prim, operands, params)
        return found[0]

    def _as_calls(self, prim: Primitive, operands: Sequence[TensorLike], params: Params) -> Any:
        """Compute a row's value on the values of this level; the result, and where its calls begin. None: it is not possible."""
        begin, outer = len(self.calls), self._row
        refusal, raised = self.refusal, self.raised
        self._row = outer or prim.name
        self._inside_row += 1
        try:
            out = prim.value(*operands, **params)
        except ByValue:
            raise
        except Exception as error:  # whatever it was: calling it whole says it again, if it is the user's
            self.drop(begin)
            first = self.raised or error
            self.refusal, self.raised = refusal, raised
            if isinstance(first, np.linalg.LinAlgError):
                raise first from None
            del first  # whose frames, this one among them, hold the operands
            return None
        finally:
            self._row = outer
            self._inside_row -= 1
        parts = out if isinstance(out, tuple) else (out,)
        if not all(type(part) is Traced for part in parts):  # it went by the numbers, by another way
            self.drop(begin)
            return None
        return out, begin

    def _whole(self, prim: Primitive, operands: Any, params: Params, pure: bool = True) -> Any:
        return self.call(RowCallable(prim, params), "", tuple(operands), {}, pure, row=prim.name)

    # -- reading, drawing --------------------------------------------------------------------------------------------

    def read(self, traced: Traced) -> NumpyArray:
        """The numbers, for Python: the recording relies on them from here on."""
        if self._inside_row:
            raise _ReadInRow
        var = traced.var
        if var.number not in self._read:
            self._read.add(var.number)
            guard = ValueRead(len(self.calls), var)
            note_frame(guard, sys._getframe(1))
            self.guards.append(guard)
        values = with_strides(var.array, var.array.strides)  # a sum of them depends on it
        values.flags.writeable = False
        self.sharing[id(owner(var.array))].append(_weakly(values))  # in eager it is that memory
        return values

    @property
    def draws(self) -> bool:
        """Whether random numbers are being drawn, by a call that is repeated."""
        return self._drawing

    def drawn(self, draw: AnyFunction, *given: object) -> Any:
        """Random numbers of a shape, or of arrays: drawn anew whenever the recording is replayed."""
        self._drawing = True
        try:
            return self.call(draw, "", given, {}, pure=False, row="random")
        finally:
            self._drawing = False

    def drawing_from(self, source: Any) -> None:
        """Called when a generator is about to be used."""
        if not self._drawing:
            raise Unrecordable("random numbers are drawn that depend on values")
        if not any(source is known for known, _ in self.sources):
            self.sources.append((source, source._get_state()))

    def check_unboxed(self, tensor: Tensor) -> None:
        """Raise for an element of an array of objects.

        NumPy computes with that element by element, where without recording it has an array of numbers, and other loops.
        """
        if self.boxed and id(tensor) in self.boxed:
            raise Unrecordable("it computes with np.array([...]) of its values: np.stack([...]) has them in one array")


class AsArray:
    """A function that returns a Python number, as one that returns an array."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return np.asarray(self.function(*args, **kwargs))


class RowCallable:
    """A row's value with its parameters, as a function of the operands."""

    __slots__ = ("__name__", "params", "prim")

    def __init__(self, prim: Primitive, params: Params) -> None:
        self.prim = prim
        self.params = params
        self.__name__ = prim.name

    def __call__(self, *operands: Any) -> Any:
        return self.prim.value(*operands, **self.params)


class _Treatment:
    """How floating-point exceptions are treated where a recording begins, and whether that is so still.

    Attributes:
        looked_at: whether the program may look at those of the call that is being made.
    """

    __slots__ = ("_errors", "_filters", "_how", "_known", "_shown", "looked_at")

    def __init__(self) -> None:
        self.looked_at = False
        self._errors = warned.given()
        self._known: object = None  # what stood in NumPy's variable when all was as it was at the beginning
        self._how = warned.modes()
        self._filters = warnings.filters
        self._shown = _shown()

    def changed(self) -> bool:
        if warnings.filters is not self._filters or _shown() is not self._shown:
            return True
        now = None if warned.VARIABLE is None else warned.VARIABLE.get()
        if now is not None and now is self._known:
            return False
        if warned.given() is not self._errors:
            return True
        self._known = now
        return False

    def differences(self) -> tuple[set[str], set[str]]:
        """The kinds of exceptions that are ignored, and those that are treated in another way than at the beginning."""
        if warnings.filters is not self._filters or _shown() is not self._shown:
            return set(), set(self._how)
        how = warned.modes()
        if warned.given() is self._errors:
            return set(), set()
        ignored = {kind for kind, way in how.items() if way == "ignore"}
        ours = self._how
        return ignored, {
            kind
            for kind, way in how.items()
            if way not in ("ignore", "warn") or (way != ours[kind] and way != "ignore")
        }


def is_tried(code: CodeType, lasti: int) -> bool:
    """Whether a place in the user's program is in a ``try`` (or ``with``)."""
    if code is None or not code.co_exceptiontable:
        return False
    ranges = _TRIED.get(code)
    if ranges is None:
        ranges = _TRIED[code] = [(entry.start, entry.end) for entry in dis._parse_exception_table(code)]  # type: ignore[attr-defined]
    return any([start <= lasti < end for start, end in ranges])


_TRIED: weakref.WeakKeyDictionary[Any, list[tuple[int, int]]] = weakref.WeakKeyDictionary()


def _shown() -> Any:
    return warnings._showwarnmsg_impl  # type: ignore[attr-defined]


def _references_of_lent() -> int:
    """What ``sys.getrefcount`` says of a lent array that nobody else has."""
    (count,) = [sys.getrefcount(array) for array, _ in [(np.empty(1), 0)]]
    return count


_LENT = _references_of_lent()
#: NumPy's names of floating-point exceptions for those that handle them, and for ``np.errstate``
FLOATING_POINT = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}

#: ufuncs that give the one right result for each element, wherever the elements lie
_EXACT = frozenset(
    [np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.absolute, np.sqrt, np.square]
)
#: functions whose results of no dimension are scalars of NumPy's in plain code, though they are arrays here
_OF_ELEMENTS = frozenset({operator.getitem})
#: functions that give for a scalar of NumPy's (if not to be without axes again) what they give for an array, which is a view
_OF_ARRAYS = frozenset(
    {
        operator.getitem, np.broadcast_to, np.reshape, np.ravel, np.expand_dims, np.atleast_1d, np.atleast_2d, np.atleast_3d,
    }
)  # fmt: skip
#: where Arrays do what plain arrays do
_FACES = frozenset({"chainrule._src.api.array", "chainrule._src.ops.array"})
#: functions that give another result for a scalar of NumPy's than for an array
_TELL_SCALARS = frozenset({np.nanmax, np.nanmin})
#: functions whose result follows from shapes and dtypes
_OF_SHAPES = frozenset(
    {
        np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.iscomplexobj, np.isrealobj, np.common_type,
        np.may_share_memory, np.shares_memory, np.min_scalar_type,
    }
)  # fmt: skip
#: whether a row at operands of certain shapes and dtypes can be recorded as the NumPy calls that its value makes
_AS_CALLS: dict[Any, bool] = {}
_MOST = 4096


def _key(prim: Primitive, operands: Sequence[TensorLike], params: Params) -> Any:
    parts: list[Any] = [prim.name]
    for x in operands:
        if type(x) is Traced:
            parts.append((x.var.shape, x.var.dtype, x.var.array.strides))
        elif type(x) is ndarray:
            parts.append((x.shape, x.dtype, x.strides))
        else:
            parts.append(type(x))
    for name, value in params.items():
        parts.append((name, repr(value) if type(value) is not ndarray else (value.shape, value.dtype)))
    return tuple(parts)


def _arrays(x: Any) -> Any:
    """Arguments with arrays in the place of values of the level."""
    kind = type(x)
    if kind is Traced:
        return x.var.array[()] if x.scalar else x.var.array
    if kind is tuple or kind is list:
        return kind([x.var.array if type(x) is Traced and not x.scalar else _arrays(x) for x in x])
    if kind is dict:
        return {key: _arrays(item) for key, item in x.items()}
    return x


def _without_scalars(args: tuple[object, ...]) -> tuple[Any, ...]:
    """Arguments with arrays without axes in the place of NumPy's scalars."""
    return tuple([x.as_array() if type(x) is Traced else x for x in args])


def _drops_axes(function: AnyFunction, args: tuple[object, ...]) -> bool:
    """Whether the result has no axes whatever the operand is like."""
    return function is np.reshape and any(type(x) is tuple and not x for x in args[1:])


def _whole(tensor: Tensor) -> Tensor:
    """The tensor that this is a view of, or itself."""
    return tensor if tensor._view is None else tensor._view.base


def _lowest(data: AnyArray | None) -> list[Traced]:
    """The values of the recording that a value of any transformation is made of, but for those in tensors of their own."""
    if type(data) is Traced:
        return [data]
    if not isinstance(data, ArrayLike):
        return []
    return [*_lowest(data.inside), *_lowest(getattr(data, "tangent", None))]


def _flat(x: Any) -> list[Any]:
    """What is in containers."""
    if type(x) is dict:
        x = tuple(x.values())
    return [y for item in x for y in _flat(item)] if type(x) in (tuple, list) else [x]


def _lies(array: NumpyArray) -> tuple[Any, ...]:
    """How an array lies in memory."""
    return array.__array_interface__["data"], array.shape, array.strides, array.dtype


def _is_part(array: NumpyArray, base: object) -> bool:
    """Whether an array is a view of one that has its memory to itself, without gaps."""
    if type(base) is not ndarray or base.base is not None or base.dtype != array.dtype or base.dtype.hasobject:
        return False
    return base.flags.forc and base.flags.aligned


def _spread(part: AnyArray, given: object) -> Any:
    """An array with a place in memory for every element, unless it is a view of an operand.

    Elements that a function gives one place today may be different ones tomorrow.
    """
    if type(part) is not ndarray or 0 not in part.strides or part.size < 2:
        return part
    if any(type(x) is ndarray and np.may_share_memory(part, x) for x in _flat(given)):
        return part
    return part.copy()


def _same(found: Any, expected: AnyArray) -> bool:
    """Whether a recorded result has the bits of what the row's value gives for arrays."""
    results = found[0] if isinstance(found[0], tuple) else (found[0],)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    return len(results) == len(wanted) and all(
        same_bits(r.var.array, np.asarray(w)) and laid_alike(r.var.array, np.asarray(w))
        for r, w in zip(results, wanted, strict=True)
    )


def laid_alike(x: NumpyArray, y: NumpyArray) -> bool:
    """Whether two arrays of one shape have the same strides, where that matters."""
    if not x.size:
        return True
    pairs = zip(x.strides, y.strides, x.shape, strict=True)  # of one complex number a loop rounds otherwise backwards
    return all([a == b or (n == 1 and (a < 0) == (b < 0)) for a, b, n in pairs])


def overlaps_itself(x: NumpyArray) -> bool:
    """Whether elements of an array may be one place in memory."""
    extent = 0
    for step, length in sorted(zip(map(abs, x.strides), x.shape, strict=True)):
        if length > 1:
            if step < extent + x.itemsize:
                return bool(x.size)
            extent += step * (length - 1)
    return False


def same_bits(x: NumpyArray, y: NumpyArray) -> bool:
    """Whether two arrays have one shape, dtype and content, to the sign of a zero; any nan is like any other."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    if x.dtype.kind == "c":
        return same_bits(x.real, y.real) and same_bits(x.imag, y.imag)
    return bool(((x == y) & (np.signbit(x) == np.signbit(y)) | ((x != x) & (y != y))).all())


_NONE: Any = object()
_weakly = weakref.ref
_new = object.__new__
#: types of arguments that have no arrays in them
_SIMPLE = frozenset({int, float, complex, bool, str, type(None), type(Ellipsis)})


class Traced(ArrayLike):
    """An array-like that stands for one array of the program that is being recorded, or one of NumPy's scalars."""

    __slots__ = ("dtype", "level", "plain", "scalar", "shape", "var")

    def __init__(self, var: Var, level: Any, plain: bool = False) -> None:
        self.var = var
        self.scalar = False
        self.plain = plain  # whether plain code has a plain array here, in functions that are differentiated, too
        self.level = level
        self.shape = var.shape
        self.dtype = var.dtype

    @classmethod
    def constant(cls, data: AnyArray, level: Level) -> Any:
        """An array of the surrounding program."""
        return level.recorder.traced(data)

    @property
    def inside(self) -> Any:
        return self.var.array

    @property
    def recorder(self) -> Recorder:
        level: Any = self.level
        if not level.alive:
            raise errors.escaped_recording(level)
        if level.recorder is not LOCAL.recorder:
            raise errors.recorded_elsewhere(level)
        return level.recorder

    def detached(self) -> Traced:
        return self

    def as_variable(self) -> Traced:
        variable = Traced(self.var, self.level)
        variable.scalar = self.scalar
        return variable

    def as_argument(self) -> Any:
        recorder = self.recorder
        if self.var.number not in recorder.weak:
            return self
        return recorder.note(np.positive, "__call__", (self,), {}, (self.var.array,), False)

    def on_numbers(self, function: Callable[[Any], object]) -> Any:
        if type(function) is functools.partial and not function.args:
            return self.recorder.call(function.func, "", (self,), function.keywords)
        return self.recorder.call(function, "", (self,), {})

    @classmethod
    def with_numbers(cls, x: AnyArray, numbers: AnyArray, level: Level) -> Any:
        return level.recorder.traced(numbers)

    readable = True

    def read(self) -> NumpyArray:
        return self.recorder.read(self)

    @property
    def shown(self) -> Any:
        if escaped(self):
            return None
        as_plain = self.recorder.stands_for(self)
        values: Any = self.read()
        return values if as_plain in (None, ndarray) else values.item() if as_plain is float else values[()]

    def __repr__(self) -> str:
        return f"Traced({self.var!r}, {self.var.array!r})" if escaped(self) else repr(self.read())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: object) -> Any:
        if out is None and method != "at" and all(map(_is_ours, inputs)) and not (kwargs and _foreign(kwargs)):
            return self.recorder.call(ufunc, method, inputs, kwargs)
        return array_ufunc(self, ufunc, method, *inputs, out=out, **kwargs)

    def __array_function__(self, function: AnyFunction, types: Any, args: tuple[object, ...], kwargs: Params) -> Any:
        if kwargs.get("out") is None and function not in _WRITERS and all(map(_is_plain_type, types)):
            return self.recorder.call(function, "", args, kwargs)
        return array_function(self, function, types, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        if _foreign(index if type(index) is tuple else (index,)):
            return super().__getitem__(index)
        return self.recorder.call(operator.getitem, "", (self, index), {})

    def __pow__(self, other: TensorLike) -> Any:
        if not _is_ours(other):
            return super().__pow__(other)
        if self.scalar and _is_scalar(other):
            return self.recorder.call(scalar_pow, "", (self, other), {})
        is_number = type(other) in (int, float)
        if self.dtype.kind in "fc" and (is_number or np.ndim(other)):  # NumPy looks at the value of a 0-d exponent
            ufunc = _POWERS.get(other, np.power) if is_number else np.power
            operands = (self, other)[: ufunc.nin]
            given = _arrays(operands)
            if same_bits(np.asarray(ufunc(*given)), np.asarray(self.var.array ** _arrays(other))):
                return self.recorder.call(ufunc, "__call__", operands, {})
        return self.recorder.call(operator.pow, "", (self, other), {})

    def __rpow__(self, other: Any) -> Any:
        if not _is_ours(other):
            return super().__rpow__(other)
        return self.recorder.call(
            scalar_pow if self.scalar and _is_scalar(other) else operator.pow, "", (other, self), {}
        )

    def as_array(self) -> Traced:
        return Traced(self.var, self.level, self.plain) if self.scalar else self

    def laid_as(self, other: Traced) -> Traced:
        """The same numbers, with the strides of another array."""
        if laid_alike(self.var.array, other.var.array) or overlaps_itself(other.var.array):
            return self
        return self.recorder.call(with_strides, "", (self, other.strides), {})

    notes_holders = True

    def held_by(self, tensor: Any) -> None:
        if self.scalar:  # a tensor's data are an array
            tensor._raw = self.as_array()

    def astype(self, dtype: NumpyDType, copy: bool = True) -> Any:
        return self if self.dtype == dtype and not copy else self.recorder.call(np.astype, "", (self, dtype), {})

    def reshape(self, *shape: Any) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)

    # what rules ask of an array

    stands_for_array = True

    @property
    def flags(self) -> Any:
        return self.var.array.flags

    @property
    def array(self) -> np.ndarray[Any, Any]:
        return self.var.array

    @property
    def is_view(self) -> bool:
        base = self.var.array.base
        return isinstance(base, ndarray) and base.dtype == self.dtype  # of a layout that was asked for: bytes

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def real(self) -> Any:
        return np.real(self)

    @property
    def imag(self) -> Any:
        return np.imag(self)

    def dot(self, other: Any) -> Any:
        return np.dot(self, other)

    def take(self, indices: AnyArray, axis: Any = None) -> Any:
        return np.take(self, indices, axis)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return np.swapaxes(self, axis1, axis2)

    def ravel(self) -> Any:
        return np.ravel(self)

    def copy(self, order: Any = "C") -> Any:
        return np.copy(self, order)

    def view(self, dtype: Any) -> Any:
        return self.recorder.call(_viewed, "", (self, dtype), {})

    def nonzero(self) -> Any:
        return np.nonzero(self)

    def any(self, axis: Any = None) -> Any:
        return np.logical_or.reduce(self, axis=axis)

    def all(self, axis: Any = None) -> Any:
        return np.logical_and.reduce(self, axis=axis)

    def min(self, axis: Any = None, initial: Any = _NONE) -> Any:
        return np.minimum.reduce(self, axis=axis, **({} if initial is _NONE else {"initial": initial}))

    def max(self, axis: Any = None, initial: Any = _NONE) -> Any:
        return np.maximum.reduce(self, axis=axis, **({} if initial is _NONE else {"initial": initial}))

    def sum(self, axis: Any = None) -> Any:
        return np.add.reduce(self, axis=axis)

    def __bool__(self) -> bool:
        return bool(self.recorder.read(self))

    def __int__(self) -> int:
        return int(self.recorder.read(self))

    def __float__(self) -> float:
        return float(self.recorder.read(self))

    def __index__(self) -> int:
        return self.recorder.read(self).__index__()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


def _viewed(x: NumpyArray, dtype: object) -> Any:
    """The same memory as elements of another dtype."""
    return x.view(dtype)


def _anew(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """An operator that would write in place: the same numbers, in an array of their own."""

    def operate(self: Traced, other: object) -> Any:
        return ufunc(self, other).astype(self.dtype, copy=False)

    return operate


for _name, _ufunc in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("truediv", np.true_divide)):
    setattr(Traced, f"__i{_name}__", _anew(_ufunc))


class _OfScalars:
    """An operator on NumPy's scalars, which computes complex numbers and powers otherwise than a ufunc does."""

    def __init__(self, operator: AnyFunction, name: str) -> None:
        self.operator = operator
        self.__name__ = name

    def __call__(self, *operands: TensorLike) -> Any:
        # a number of Python's on the left may make one of Python's
        return np.asarray(self.operator(*[x[()] if type(x) is ndarray else x for x in operands]))[()]

    def __eq__(self, other: object) -> bool:
        return type(other) is _OfScalars and other.operator is self.operator

    def __hash__(self) -> int:
        return hash(self.operator)


def _is_scalar(x: TensorLike) -> bool:
    return bool(x.scalar) if type(x) is Traced else isinstance(x, _NUMBERS)


def _as_scalars_do(operator: AnyFunction, name: str) -> None:
    """Let an operator of two scalars be that, where they are complex."""
    of_scalars = _OfScalars(operator, name)
    of_arrays, of_arrays_exchanged = getattr(Traced, f"__{name}__"), getattr(Traced, f"__r{name}__")

    def operate(self: Traced, other: TensorLike) -> Any:
        if self.scalar and _is_scalar(other) and _is_complex(self, other):
            return self.recorder.call(of_scalars, "", (self, other), {})
        return of_arrays(self, other)

    def exchanged(self: Traced, other: Any) -> Any:
        if self.scalar and _is_scalar(other) and _is_complex(self, other):
            return self.recorder.call(of_scalars, "", (other, self), {})
        return of_arrays_exchanged(self, other)

    setattr(Traced, f"__{name}__", operate)
    setattr(Traced, f"__r{name}__", exchanged)


def _abs(self: Traced) -> Any:
    if self.scalar and self.dtype.kind == "c":
        return self.recorder.call(_OfScalars(abs, "abs"), "", (self,), {})
    return np.absolute(self)


setattr(Traced, "__abs__", _abs)  # noqa: B010


def _is_complex(x: Traced, y: TensorLike) -> bool:
    return x.dtype.kind == "c" or isinstance(y, complex) or (hasattr(y, "dtype") and y.dtype.kind == "c")


def _power_by_float(x: AnyArray, exponent: object) -> Any:
    """``x ** exponent`` by a float of Python's, for some of which NumPy has functions of their own."""
    return x ** (exponent.item() if isinstance(exponent, (ndarray, np.generic)) else exponent)


#: what takes floats of Python's as such, or makes arrays of them
_OF_FLOATS = frozenset({np.astype, _power_by_float})

#: a power of scalars, which is that of C's library
scalar_pow = _OfScalars(operator.pow, "pow")
_scalar_square = _OfScalars(np.square, "square")
_as_scalars_do(operator.mul, "mul")
_as_scalars_do(operator.truediv, "truediv")

#: what NumPy makes of ``x ** n``
_POWERS: dict[Any, np.ufunc] = {2: np.square, -1: np.reciprocal, 0.5: np.sqrt, 1: np.positive}


#: functions that are `np.dot` of two vectors of numbers that are not complex
_DOTS = frozenset({np.dot, np.inner, np.vdot})


def _multiplies_alike(function: AnyFunction, x: AnyArray, y: AnyArray) -> bool:
    """Whether ``np.dot`` (or its like) hands two arrays to the very function of BLAS that ``np.matmul`` hands them to."""
    if not (type(x) is type(y) is ndarray and x.dtype == y.dtype and x.dtype.char in "fdFD" and x.size and y.size):
        return False
    if (
        x.ndim == y.ndim == 1
    ):  # np.dot copies what does not lie densely, and multiplies single numbers without adding to zero
        return (
            (x.size > 1 or function is np.vdot)
            and bool(x.shape == y.shape and x.strides[0] == y.strides[0] == x.itemsize)
            and (function is np.dot or x.dtype.kind == "f")
        )
    if function is not np.dot or (x.ndim, y.ndim) not in ((2, 2), (2, 1), (1, 2)) or x.shape[-1] != y.shape[0]:
        return False
    if 1 in (x.size, y.size) or (x.dtype.kind == "c" and 1 in x.shape + y.shape):
        return False  # np.dot adds a multiple of an array to zeros, or takes another routine for an outer product
    if not (_dense(x) and _dense(y)) or (x.ndim == 1 and y.size > _TRIED_PRODUCT):
        return False
    if (1 in x.shape + y.shape or x.ndim == 1 or x.size + y.size < _SMALL_PRODUCT) and not _rounds_alike(
        x.dtype, x.shape, x.strides, y.shape, y.strides
    ):
        return False
    return x.size + y.size < _SMALL_PRODUCT or same_bits(x.dot(y), x @ y)


#: elements of a matrix up to which products of a vector and it are tried
_TRIED_PRODUCT = 1 << 16
#: elements of two arrays below which products like theirs are tried once, and not each of them
_SMALL_PRODUCT = 1 << 12


@functools.lru_cache(maxsize=4096)
def _rounds_alike(dtype: NumpyDType, *layouts: tuple[int, ...]) -> bool:
    """Whether ``np.dot`` and ``np.matmul`` of a vector and a matrix round alike: tried with many numbers, and signs of zeros."""
    numbers = np.random.default_rng(0)
    for trial in range(12):
        operands = []
        for shape, strides in (layouts[:2], layouts[2:]):
            memory = numbers.standard_normal((*shape, 1 + (dtype.kind == "c")))
            memory = np.trunc(memory) if trial < 4 else memory
            values = (memory[..., 0] + 1j * memory[..., -1] if dtype.kind == "c" else memory[..., 0]).astype(dtype)
            rows_first = len(shape) == 1 or strides[0] >= strides[1]
            operands.append(np.asarray(values, order="C" if rows_first else "F"))
        x, y = operands
        if not same_bits(x.dot(y), x @ y):
            return False
    return True


def _dense(x: NumpyArray) -> bool:
    return bool(x.flags.forc)


_WRITERS = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis})


def _is_ours(x: TensorLike) -> bool:
    return type(x) is Traced or type(x) is ndarray or isinstance(x, _NUMBERS) or x is None


def _is_plain_type(kind: type) -> bool:
    return kind is Traced or kind is ndarray


def _foreign(x: Any) -> bool:
    """Whether there is a tensor, or a value of another level, among arguments."""
    if type(x) is dict:
        x = x.values()
    return any([type(item) is not Traced and isinstance(item, (Tensor, ArrayLike)) for item in x])


def _handle(prim: Primitive, operands: Sequence[TensorLike], params: Params, level: int) -> Any:
    for x in operands:
        if type(x) is Traced:
            return x.recorder.row(prim, operands, params)
    raise AssertionError("no operand is of this level")


INTERPRETERS[Traced] = _handle
