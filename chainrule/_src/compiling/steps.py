"""The steps of a plan: calls with their arrays as views of buffers.

A call that only gives another view of its argument's memory is no step. Every other call is one: it writes its results into
their buffers, where its function can be told to (``out=``), and otherwise they are loose arrays, which the function makes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from chainrule._src.arrays.any_array import lying_at
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, NumpyArray, NumpyDType, Params, Shape
from chainrule._src.compiling.iteration import dense_strides, size
from chainrule._src.compiling.layout import (
    ARENA,
    CONSTANT,
    INPUT,
    LOOSE,
    OUTPUT,
    Buffer,
    BufferView,
    address,
    is_dense,
    same_memory,
    span,
)
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.interpreters.recorded import Program, TracedCall, Var

if TYPE_CHECKING:
    pass

ndarray = np.ndarray
#: bytes up to which constants are compared
SAME = 1 << 12


class PlanStep:
    """A call of a plan.

    Attributes:
        call: the recorded call; None for what the plan adds: copies to outputs, writes to inputs.
        function, args, kwargs: what Python calls, with Values in the place of arrays. Values that are written are among them.
        reads, writes: the Values that it uses and makes.
        loose: whether the function returns what it makes, instead of writing it.
        view: whether it only gives a view, which native code does not need.
        template: its inner loops, whose operands are ``reads`` and ``writes``; None if they are not known.
    """

    __slots__ = ("args", "call", "function", "kwargs", "loose", "reads", "template", "view", "writes")

    def __init__(
        self,
        call: TracedCall | None,
        function: AnyFunction,
        args: tuple[object, ...],
        kwargs: Params,
        reads: list[BufferView],
        writes: list[BufferView],
        loose: bool = False,
        view: bool = False,
        template: Any = None,
    ) -> None:
        self.call = call
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.reads = reads
        self.writes = writes
        self.loose = loose
        self.view = view
        self.template = template

    @property
    def touched(self) -> set[Buffer]:
        """All buffers that it uses."""
        return {value.buffer for value in self.reads + self.writes}

    @property
    def name(self) -> str:
        """What the step computes, in NumPy's names."""
        if self.call is None:
            return "copy"
        method = self.call.method
        name = getattr(self.call.function, "__name__", None) or type(self.call.function).__name__
        return name if method in ("", "__call__") else f"{name}.{method}"

    def __repr__(self) -> str:
        return f"{', '.join(map(repr, self.writes))} = {self.name}({', '.join(map(repr, self.reads))})"


class ResultLayout(NamedTuple):
    """What an array is like that a call makes."""

    shape: Shape
    strides: Shape
    dtype: NumpyDType
    layout: int


class Lowerer(Protocol):
    """What knows the inner loops of calls and of copies."""

    def known(self, call: TracedCall, reads: list[BufferView]) -> tuple[Any, list[ResultLayout]] | None:
        """The loops of a call, and what its results are like."""

    def copy(self, value: BufferView, target: BufferView) -> Any:
        """The loops of a copy; None if there are none."""


class Lowering:
    """Turns the calls of a program into steps.

    Attributes:
        steps: the steps, in order.
        values: Var -> BufferView.
        inputs, outputs: the Values that are given, and those that are returned.
        buffers: all buffers of the arena, of outputs and of loose arrays.
        owners: the outputs, each once: what is made for each call, in order of their buffers.
        constants: the Values whose content is known.
        commits: how many steps at the end write to inputs.
        repeated: how many constants have the content of another one.
    """

    def __init__(self, program: Program, simplified: Simplified, lowerer: Lowerer | None = None) -> None:
        self.steps: list[PlanStep] = []
        self.values: dict[Var, BufferView] = {}
        self.buffers: list[Buffer] = []
        self.owners: list[BufferView] = []
        self.constants: list[BufferView] = []
        self._simplified = simplified
        self._lowerer = lowerer
        self.loops: dict[int, Any] = {}
        self._count = 0
        self._known: dict[Any, BufferView] = {}  # constants by their content
        self.repeated = 0
        self.inputs = [self._root(var, INPUT, i) for i, var in enumerate(program.inputs)]
        self._add_calls(simplified.calls)
        written = [(self.values[var], self._settled(self._value(value))) for var, value in program.writes]
        self.outputs = self._take_outputs([self._value(var) for var in program.outputs])
        self.commits = len(written)
        for target, value in written:
            self._copy(value, target)

    # -- values ------------------------------------------------------------------------------------------------------

    def _new(self, kind: str, shape: Shape, strides: Shape, dtype: NumpyDType, layout: int = 0) -> BufferView:
        """A value in a buffer of its own."""
        start, nbytes = span(shape, strides, dtype.itemsize)
        buffer = Buffer(kind, nbytes)
        self._count += 1
        value = buffer.root = BufferView(
            self._count, buffer, start if kind == ARENA else 0, shape, strides, dtype, layout
        )
        return value

    def _root(self, var: Var, kind: str, index: int = 0) -> BufferView:
        """The value of a Var that has a buffer of its own."""
        array = var.array
        value = self.values[var] = self._new(kind, array.shape, array.strides, array.dtype)
        value.buffer.index = index
        return value

    def _view(self, buffer: Buffer, offset: int, like: BufferView | NumpyArray) -> BufferView:
        """A value that lies in a buffer."""
        self._count += 1
        return BufferView(self._count, buffer, offset, like.shape, like.strides, like.dtype)

    def _value(self, var: Var) -> BufferView:
        value = self.values.get(var)
        if value is None:
            known = self._simplified.same.get(var, var)
            value = self.values.get(known)
            if value is None:
                value = self._constant(known)
            self.values[var] = value
        return value

    def _constant(self, var: Var) -> BufferView:
        """The value of a constant; small ones of the same content are one."""
        array = self._simplified.constants[var]
        key = None
        if array.nbytes <= SAME and not array.dtype.hasobject:
            key = array.shape, array.strides, array.dtype, array.tobytes()
            value = self._known.get(key)
            if value is not None:
                self.repeated += 1
                return value
        value = self._root(var, CONSTANT)
        self.constants.append(value)
        value.array = array
        if key is not None:
            self._known[key] = value
        return value

    def _resolved(self, x: Any) -> Any:
        """Arguments with Values in the place of Vars."""
        kind = type(x)
        if kind is Var:
            return self._value(x)
        if kind is tuple or kind is list:
            return kind([self._resolved(item) for item in x])
        if kind is slice:
            return slice(self._resolved(x.start), self._resolved(x.stop), self._resolved(x.step))
        if kind is dict:
            return {name: self._resolved(item) for name, item in x.items()}
        return x

    # -- calls -------------------------------------------------------------------------------------------------------

    def _add_calls(self, calls: list[tuple[TracedCall, list[Var]]]) -> None:
        for call, used in calls:
            self._add(call, used)

    def _result(self, var: Var, made: ResultLayout) -> BufferView:
        """The value of an array that native loops compute, in a buffer of its own."""
        return self._new(ARENA, made.shape, made.strides, made.dtype, made.layout)

    def _add(self, call: TracedCall, used: list[Var]) -> None:
        values = self.values
        reads = [values.get(var) or self._value(var) for var in used]
        if len(used) > 1 and (self._simplified.merged or self.repeated) and not is_elementwise(call):
            self._keep_apart(used, reads)
        if len(used) == 1 and call.function in VIEWS and self._add_view(call, used[0].array, reads):
            return
        known = None if self._lowerer is None else self._lowerer.known(call, reads)
        if known is None:
            self._add_call(call, reads)
            return
        template, made = known
        writes = [self._result(var, x) for var, x in zip(call.results, made, strict=True)]
        values.update(zip(call.results, writes, strict=True))
        self.steps.append(PlanStep(call, _in_loops, (), {}, reads, writes, template=template))

    def _add_call(self, call: TracedCall, reads: list[BufferView]) -> None:
        """A step that Python runs."""
        args, kwargs = self._resolved(call.args), self._resolved(call.kwargs)
        form = written_form(call, args, kwargs)
        writes = [self._root(var, LOOSE if form is None else ARENA) for var in call.results]
        self.buffers.extend([value.buffer for value in writes])
        if form is not None:
            function, args, kwargs = form
            self.steps.append(PlanStep(call, function, (*args, *writes), kwargs, reads, writes))
            return
        self.steps.append(PlanStep(call, called(call), args, kwargs, reads, writes, loose=True))

    def _keep_apart(self, used: list[Var], reads: list[BufferView]) -> None:
        """Copy operands that were separate arrays before equal calls were merged.

        A function may do something else where two arguments are one array: BLAS has another routine for ``A @ A.T``.
        """
        for i, value in enumerate(reads):
            together = [
                k for k in range(i) if reads[k].buffer is value.buffer and not self._are_separate(used[k], used[i])
            ]
            if all(share_memory(used[i].array, used[k].array) for k in together):
                continue
            root = value.buffer.root
            if is_dense(root.shape, root.strides, root.dtype.itemsize) and not value.buffer.slots:
                copy = self._new(ARENA, root.shape, root.strides, root.dtype)
                self._copy(root, copy)
                reads[i] = copy if value is root else self._view(copy.buffer, value.offset, value)
            else:
                reads[i] = self._fresh(value, ARENA)
                self._copy(value, reads[i])
            self.buffers.append(reads[i].buffer)
            self.values[used[i]] = reads[i]

    def _are_separate(self, x: Var, y: Var) -> bool:
        """Whether two operands in one buffer are one array, or arrays that are separate in it."""
        return x is y

    def _add_view(self, call: TracedCall, given: NumpyArray, reads: list[BufferView]) -> bool:
        """Have the results of a call be views of its argument's memory, if they are."""
        (viewed,) = reads
        found = views_of(call, given)
        if found is None:
            return False
        function, arrays = found
        start = address(given)
        for var, array in zip(call.results, arrays, strict=True):
            offset = viewed.offset + (address(array) - start if array.size else 0)
            self.values[var] = self._view(viewed.buffer, offset, array)
        writes = [self.values[var] for var in call.results]
        args, kwargs = self._resolved(call.args), self._resolved(call.kwargs)
        self.steps.append(PlanStep(call, function, args, kwargs, reads, writes, view=True))
        return True

    # -- results -----------------------------------------------------------------------------------------------------

    def _take_outputs(self, values: list[BufferView]) -> list[BufferView]:
        """For each output a value that is the caller's own: a buffer that becomes an output, or a copy."""
        taken: dict[BufferView, BufferView] = {}
        buffers: set[Buffer] = set()
        for value in values:
            if value in taken:
                continue
            buffer, itemsize = value.buffer, value.dtype.itemsize
            whole = (
                buffer.nbytes == itemsize * size(value.shape) and value.dtype == buffer.root.dtype and not value.offset
            )
            if (
                buffer.kind == ARENA
                and whole
                and is_dense(value.shape, value.strides, itemsize)
                and buffer not in buffers
            ):
                self._own(value)
                taken[value] = value
            else:
                taken[value] = copy = self._fresh(value, OUTPUT)
                self._own(copy)
                self._copy(value, copy)
            buffers.add(buffer)
        return [taken[value] for value in values]

    def _own(self, value: BufferView) -> None:
        """Have the buffer of a value be made for each call."""
        value.buffer.kind = OUTPUT
        value.buffer.index = len(self.owners)
        self.owners.append(value)

    def _settled(self, value: BufferView) -> BufferView:
        """A value that is to be written to an input, as one that no such write changes."""
        if value.buffer.kind not in (INPUT, LOOSE):
            return value
        settled = self._fresh(value, ARENA)
        self._copy(value, settled)
        return settled

    def _fresh(self, value: BufferView, kind: str) -> BufferView:
        """A value with the shape of another one, dense in its order or in C's, in a buffer of its own."""
        strides = value.strides
        if not is_dense(value.shape, strides, value.dtype.itemsize):
            order = list(range(len(value.shape) - 1, -1, -1))
            strides = dense_strides(value.shape, order, value.dtype.itemsize)
        fresh = self._new(kind, value.shape, strides, value.dtype)
        self.buffers.append(fresh.buffer)
        return fresh

    def _copy(self, value: BufferView, target: BufferView) -> None:
        """A step that copies a value."""
        template = None if self._lowerer is None else self._lowerer.copy(value, target)
        self.steps.append(PlanStep(None, copied, (value, target), {}, [value], [target], template=template))


def note_uses(steps: list[PlanStep]) -> None:
    """Note for each buffer when it is used."""
    for time, step in enumerate(steps):
        if not step.view:
            for value in step.reads + step.writes:
                buffer = value.buffer
                buffer.last = time
                if buffer.first < 0:
                    buffer.first = time


def called(call: TracedCall) -> AnyFunction:
    """What a call calls."""
    return getattr(call.function, call.method) if call.method else call.function


def views_of(call: TracedCall, given: NumpyArray) -> tuple[AnyFunction, list[NumpyArray]] | None:
    """The function of a call whose results are views of its argument's memory, and these views; None for other calls."""
    function, arrays = called(call), [var.array for var in call.results]
    if function is operator.getitem and not arrays[0].shape:  # a number, but of an element that stays where it is
        function, arrays = element, [element(given, call.args[1])]
    return (function, arrays) if all([same_memory(array, given) for array in arrays]) else None


def element(x: NumpyArray, index: object) -> NumpyArray:
    """``x[index]``, as an array of no dimension where NumPy gives a number."""
    items = index if type(index) is tuple else (index,)
    return x[items] if any([item is Ellipsis for item in items]) else x[(*items, Ellipsis)]


def _in_loops(*args: object) -> Any:
    raise AssertionError("a step that is native loops was called by Python")


def is_elementwise(call: TracedCall) -> bool:
    """Whether the elements of a call's results do not depend on where its arguments are."""
    function = call.function
    return isinstance(function, np.ufunc) and function.signature is None and call.method == "__call__"


def share_memory(x: NumpyArray, y: NumpyArray) -> bool:
    """Whether two arrays are one, or views of one."""
    return same_memory(x, y) or y.base is x


# -- how functions write their results --------------------------------------------------------------------------------


def _maximum(x: NumpyArray, y: NumpyArray, out: NumpyArray) -> NumpyArray:
    return np.maximum(x, y, out=out)


def _minimum(x: Any, y: Any, out: Any) -> Any:
    return np.minimum(x, y, out=out)


#: ufuncs that want to be told by name what to write into
_WRITING: dict[np.ufunc, AnyFunction] = {np.maximum: _maximum, np.minimum: _minimum}


def written_form(
    call: TracedCall, args: tuple[object, ...], kwargs: Params
) -> tuple[AnyFunction, tuple[Any, ...], dict[str, Any]] | None:
    """A call as one that takes its results' arrays as its last arguments; None if its function can't write them."""
    function, method = call.function, call.method
    if isinstance(function, np.ufunc):
        if kwargs.get("out") is not None or any(var.dtype.hasobject for var in call.results):
            return None
        if method == "__call__":
            return (_WRITING.get(function, function), args, kwargs) if len(args) == function.nin else None
        if method == "reduce":
            return _reduction(function, args, kwargs)
        if method == "accumulate":
            given = dict(zip(("array", "axis", "dtype"), args, strict=False)) | kwargs
            if set(given) <= {"array", "axis", "dtype"}:
                return function.accumulate, (given["array"], given.get("axis", 0), given.get("dtype")), {}
        return None
    if function in REDUCTIONS:
        return _reduction(
            REDUCTIONS[function], args, {"axis": None, **_renamed(kwargs)} if len(args) < 2 else _renamed(kwargs)
        )
    known = _WRITTEN.get(function)
    return None if known is None else known(args, kwargs)


def _reduction(function: np.ufunc, args: tuple[object, ...], kwargs: Params) -> Any:
    """A reduction, whose result goes between its other arguments; those after it become part of the function."""
    given = dict(zip(("array", "axis", "dtype", "out", "keepdims"), args, strict=False)) | kwargs
    if not set(given) <= {"array", "axis", "dtype", "out", "keepdims"} or given.get("out") is not None:
        return None
    form = reduced_keeping if given.get("keepdims") else reduced
    return form, (function, given["array"], given.get("axis", 0), given.get("dtype")), {}


def _renamed(kwargs: Params) -> dict[str, Any]:
    """Keywords of ``np.sum`` as those of ``np.add.reduce``."""
    return {"array" if name == "a" else name: value for name, value in kwargs.items()}


#: whether reductions into an array that is given go through reversed axes the other way than those that make their result
_REVERSED = np.lib.NumpyVersion(np.__version__) < "2.2.0"


def reduced(function: Any, x: Any, axis: object, dtype: DTypeLike, out: Any, keepdims: bool = False) -> None:
    if _REVERSED and min(x.strides, default=0) < 0:
        np.copyto(out, function.reduce(x, axis, dtype, None, keepdims))
    else:
        function.reduce(x, axis, dtype, out, keepdims)


def reduced_keeping(
    function: np.ufunc, x: NumpyArray, axis: int | tuple[int, ...] | None, dtype: DTypeLike, out: NumpyArray
) -> None:
    reduced(function, x, axis, dtype, out, True)


def copied(x: NumpyArray, out: NumpyArray) -> None:
    """Copy and cast; what was warned of when it was recorded is not warned of again."""
    np.copyto(out, x.real if x.dtype.kind == "c" and out.dtype.kind in "fiu" else x, "unsafe")


def _as_type(args: tuple[BufferView, NumpyDType], kwargs: Params) -> Any:
    """``np.astype(x, dtype)``: the dtype is that of the result."""
    return (copied, (args[0],), {}) if len(args) == 2 and set(kwargs) <= {"copy"} else None


def _as_copy(args: tuple[BufferView, str], kwargs: object) -> Any:
    return (copied, (args[0],), {}) if len(args) == 1 and set(kwargs) <= {"order"} else None


def _joined(args: tuple[Sequence[BufferView], ...], kwargs: Params) -> Any:
    given = dict(zip(("arrays", "axis"), args, strict=False)) | kwargs
    return (joined, (given["arrays"], given.get("axis", 0)), {}) if set(given) <= {"arrays", "axis"} else None


def joined(arrays: Any, axis: Any, out: Any) -> None:
    np.concatenate(arrays, axis, out)


def _stacked(args: tuple[list[BufferView], ...], kwargs: Params) -> Any:
    given = dict(zip(("arrays", "axis"), args, strict=False)) | kwargs
    return (stacked, (given["arrays"], given.get("axis", 0)), {}) if set(given) <= {"arrays", "axis"} else None


def stacked(arrays: Sequence[AnyArray], axis: Any, out: Any) -> None:
    np.stack(arrays, axis, out)


_WRITTEN: dict[Any, Callable[[Any, Any], Any]] = {
    np.copy: _as_copy,
    np.concatenate: _joined,
    np.stack: _stacked,
}
if hasattr(np, "astype"):
    _WRITTEN[np.astype] = _as_type

_VIEWS = """
    reshape ravel transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis expand_dims squeeze broadcast_to real imag
    diagonal flip fliplr flipud rot90 split array_split hsplit vsplit dsplit unstack atleast_1d atleast_2d atleast_3d asarray
    ascontiguousarray asanyarray
"""
#: functions whose results can be views of their one array, which depends on its shape and strides alone
VIEWS = {getattr(np, name) for name in _VIEWS.split() if hasattr(np, name)} | {operator.getitem, lying_at}

#: NumPy's names for reductions by a ufunc, and that ufunc
REDUCTIONS = {
    np.sum: np.add,
    np.prod: np.multiply,
    np.max: np.maximum,
    np.amax: np.maximum,
    np.min: np.minimum,
    np.amin: np.minimum,
    np.any: np.logical_or,
    np.all: np.logical_and,
}
