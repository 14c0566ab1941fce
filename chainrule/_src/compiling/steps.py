"""Lower the calls of a program to steps, whose arrays are views of buffers.

``plan`` makes a ``Lowering``. Each call becomes a ``PlanStep``. A step writes its results into buffers if its function can (``out=``).
Otherwise the function returns new ("loose") arrays. Calls that only return views of their argument become view steps.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from chainrule._src.arrays.any_array import view_at_offset
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, NumpyArray, NumpyDType, Params, Shape
from chainrule._src.compiling.iteration import dense_strides, size_of_shape
from chainrule._src.compiling.layout import (
    ARENA,
    CONSTANT,
    INPUT,
    LOOSE,
    OUTPUT,
    Buffer,
    BufferView,
    data_address,
    is_dense,
    memory_span,
    same_memory,
)
from chainrule._src.compiling.simplify import RemainingCalls, Simplified
from chainrule._src.interpreters.trace_types import Program, TracedCall, Var, map_vars

if TYPE_CHECKING:
    pass

ndarray = np.ndarray
#: the maximum bytes of constants that are compared, to store equal ones once
SAME = 1 << 12


class PlanStep:
    """A call of a plan.

    Attributes:
        call: the recorded call; None for copies to outputs and writes to inputs, which the plan adds.
        function, args, kwargs: the call that Python makes, with BufferViews in place of arrays, including output arrays.
        reads, writes: the BufferViews of operands and results.
        loose: whether the function returns new arrays, instead of writing into buffers.
        view: whether the step only makes a view. Native code skips it.
        template: the kernel calls of the step, whose operands are ``reads`` and ``writes``; None if Python runs it.
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
        """The NumPy name of the step's function."""
        if self.call is None:
            return "copy"
        method = self.call.method
        name = getattr(self.call.function, "__name__", None) or type(self.call.function).__name__
        return name if method in ("", "__call__") else f"{name}.{method}"

    def __repr__(self) -> str:
        return f"{', '.join(map(repr, self.writes))} = {self.name}({', '.join(map(repr, self.reads))})"


class ResultLayout(NamedTuple):
    """The shape, strides and dtype of a result, and the number of this layout."""

    shape: Shape
    strides: Shape
    dtype: NumpyDType
    layout: int


class Lowerer(Protocol):
    """Finds the kernel calls of calls and copies."""

    def template_of(self, call: TracedCall, reads: list[BufferView]) -> tuple[Any, list[ResultLayout]] | None:
        """Return the template of a call and the layouts of its results, or None."""

    def copy(self, value: BufferView, target: BufferView) -> Any:
        """Return the template of a copy, or None."""


class Lowering:
    """Turns the calls of a program into steps.

    Attributes:
        steps: the steps, in order.
        values: the BufferView of each Var.
        inputs, outputs: the BufferViews of inputs and outputs.
        buffers: all buffers of the arena, of outputs and of loose arrays.
        owners: the BufferViews of output buffers, which each run allocates, in order.
        constants: the BufferViews of constants.
        commits: the number of steps at the end that write to inputs.
        repeated: the number of constants with the content of another one.
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
        self._constants_by_content: dict[Any, BufferView] = {}  # constants by their content
        self.repeated = 0
        self.inputs = [self._root(var, INPUT, i) for i, var in enumerate(program.inputs)]
        self._add_calls(simplified.calls)
        written = [(self.values[var], self._stable_value(self._value(value))) for var, value in program.writes]
        self.outputs = self._take_outputs([self._value(var) for var in program.outputs])
        self.commits = len(written)
        for target, value in written:
            self._copy(value, target)

    # -- values ------------------------------------------------------------------------------------------------------

    def _new(self, kind: str, shape: Shape, strides: Shape, dtype: NumpyDType, layout: int = 0) -> BufferView:
        """Return a BufferView of a new buffer."""
        start, nbytes = memory_span(shape, strides, dtype.itemsize)
        buffer = Buffer(kind, nbytes)
        self._count += 1
        value = buffer.root = BufferView(
            self._count, buffer, start if kind == ARENA else 0, shape, strides, dtype, layout
        )
        return value

    def _root(self, var: Var, kind: str, index: int = 0) -> BufferView:
        """Make a new buffer for a Var, and return its BufferView."""
        array = var.array
        value = self.values[var] = self._new(kind, array.shape, array.strides, array.dtype)
        value.buffer.index = index
        return value

    def _view(self, buffer: Buffer, offset: int, like: BufferView | NumpyArray) -> BufferView:
        """Return another BufferView of a buffer."""
        self._count += 1
        return BufferView(self._count, buffer, offset, like.shape, like.strides, like.dtype)

    def _value(self, var: Var) -> BufferView:
        value = self.values.get(var)
        if value is None:
            original = self._simplified.original(var)
            value = self.values.get(original)
            if value is None:
                value = self._constant(original)
            self.values[var] = value
        return value

    def _constant(self, var: Var) -> BufferView:
        """Return the BufferView of a constant. Small constants with the same content share one."""
        array = self._simplified.constants[var]
        key = None
        if array.nbytes <= SAME and not array.dtype.hasobject:
            key = array.shape, array.strides, array.dtype, array.tobytes()
            value = self._constants_by_content.get(key)
            if value is not None:
                self.repeated += 1
                return value
        value = self._root(var, CONSTANT)
        self.constants.append(value)
        value.array = array
        if key is not None:
            self._constants_by_content[key] = value
        return value

    # -- calls -------------------------------------------------------------------------------------------------------

    def _add_calls(self, calls: RemainingCalls) -> None:
        for call, used in calls:
            self._add(call, used)

    def _result(self, var: Var, layout: ResultLayout) -> BufferView:
        """Return a BufferView of a new buffer for an array that native code computes."""
        return self._new(ARENA, layout.shape, layout.strides, layout.dtype, layout.layout)

    def _add(self, call: TracedCall, used: list[Var]) -> None:
        values = self.values
        reads = [values.get(var) or self._value(var) for var in used]
        if len(used) > 1 and (self._simplified.merged or self.repeated) and not is_elementwise(call):
            self._keep_apart(used, reads)
        if len(used) == 1 and call.function in VIEWS and self._add_view(call, used[0].array, reads):
            return
        lowered = None if self._lowerer is None else self._lowerer.template_of(call, reads)
        if lowered is None:
            self._add_call(call, reads)
            return
        template, layouts = lowered
        writes = [self._result(var, x) for var, x in zip(call.results, layouts, strict=True)]
        values.update(zip(call.results, writes, strict=True))
        self.steps.append(PlanStep(call, _in_native_code, (), {}, reads, writes, template=template))

    def _add_call(self, call: TracedCall, reads: list[BufferView]) -> None:
        """Add a step that Python runs."""
        args, kwargs = map_vars((call.args, call.kwargs), self._value)
        form = written_form(call, args, kwargs)
        writes = [self._root(var, LOOSE if form is None else ARENA) for var in call.results]
        self.buffers.extend([value.buffer for value in writes])
        if form is not None:
            function, args, kwargs = form
            self.steps.append(PlanStep(call, function, (*args, *writes), kwargs, reads, writes))
            return
        self.steps.append(PlanStep(call, call.callee, args, kwargs, reads, writes, loose=True))

    def _keep_apart(self, used: list[Var], reads: list[BufferView]) -> None:
        """Copy operands that were separate arrays before equal calls were merged.

        A function may compute differently if two arguments are the same array: BLAS has another routine for ``A @ A.T``.
        """
        earlier: defaultdict[tuple[Buffer, int | None], list[Var]] = defaultdict(list)
        for i, value in enumerate(reads):
            var, buffer, region = used[i], value.buffer, self._region(used[i])
            together = [x for key in {None, region} for x in earlier[buffer, key] if x is not var]
            if all(share_memory(var.array, x.array) for x in together):
                earlier[buffer, region].append(var)
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
            self.values[var] = reads[i]

    def _region(self, var: Var) -> int | None:
        """Return a number that differs for operands in one buffer if they do not overlap, or None if they may overlap any other."""
        return None

    def _add_view(self, call: TracedCall, given: NumpyArray, reads: list[BufferView]) -> bool:
        """Add a view step if the results of a call are views of its argument; return whether they are."""
        (viewed,) = reads
        found = views_of(call, given)
        if found is None:
            return False
        function, arrays = found
        start = data_address(given)
        for var, array in zip(call.results, arrays, strict=True):
            offset = viewed.offset + (data_address(array) - start if array.size else 0)
            self.values[var] = self._view(viewed.buffer, offset, array)
        writes = [self.values[var] for var in call.results]
        args, kwargs = map_vars((call.args, call.kwargs), self._value)
        self.steps.append(PlanStep(call, function, args, kwargs, reads, writes, view=True))
        return True

    # -- results -----------------------------------------------------------------------------------------------------

    def _take_outputs(self, values: list[BufferView]) -> list[BufferView]:
        """Return a BufferView of an output buffer for each output: the value's own buffer if possible, else a copy."""
        outputs: dict[BufferView, BufferView] = {}
        buffers: set[Buffer] = set()
        for value in values:
            if value in outputs:
                continue
            buffer, itemsize = value.buffer, value.dtype.itemsize
            whole = (
                buffer.nbytes == itemsize * size_of_shape(value.shape)
                and value.dtype == buffer.root.dtype
                and not value.offset
            )
            if (
                buffer.kind == ARENA
                and whole
                and is_dense(value.shape, value.strides, itemsize)
                and buffer not in buffers
            ):
                self._make_output(value)
                outputs[value] = value
            else:
                outputs[value] = copy = self._fresh(value, OUTPUT)
                self._make_output(copy)
                self._copy(value, copy)
            buffers.add(buffer)
        return [outputs[value] for value in values]

    def _make_output(self, value: BufferView) -> None:
        """Make the buffer of a value an output, which each run allocates."""
        value.buffer.kind = OUTPUT
        value.buffer.index = len(self.owners)
        self.owners.append(value)

    def _stable_value(self, value: BufferView) -> BufferView:
        """Return a value that is to be written to an input, copied if writes to inputs could change it before."""
        if value.buffer.kind not in (INPUT, LOOSE):
            return value
        settled = self._fresh(value, ARENA)
        self._copy(value, settled)
        return settled

    def _fresh(self, value: BufferView, kind: str) -> BufferView:
        """Return a new value with the shape of another one, dense in its order of axes if that is dense, else in C order."""
        strides = value.strides
        if not is_dense(value.shape, strides, value.dtype.itemsize):
            order = list(range(len(value.shape) - 1, -1, -1))
            strides = dense_strides(value.shape, order, value.dtype.itemsize)
        fresh = self._new(kind, value.shape, strides, value.dtype)
        self.buffers.append(fresh.buffer)
        return fresh

    def _copy(self, value: BufferView, target: BufferView) -> None:
        """Add a step that copies a value."""
        template = None if self._lowerer is None else self._lowerer.copy(value, target)
        self.steps.append(PlanStep(None, copy_cast, (value, target), {}, [value], [target], template=template))


def note_uses(steps: list[PlanStep]) -> None:
    """Set the first and last use of each buffer."""
    for time, step in enumerate(steps):
        if not step.view:
            for value in step.reads + step.writes:
                buffer = value.buffer
                buffer.last = time
                if buffer.first < 0:
                    buffer.first = time


def views_of(call: TracedCall, given: NumpyArray) -> tuple[AnyFunction, list[NumpyArray]] | None:
    """Return the function of a call whose results are views of its argument, and the views; None for other calls."""
    function, arrays = call.callee, [var.array for var in call.results]
    if function is operator.getitem and not arrays[0].shape:  # NumPy copies an element; a 0-d view has the same value
        function, arrays = element_view, [element_view(given, call.args[1])]
    return (function, arrays) if all([same_memory(array, given) for array in arrays]) else None


def element_view(x: NumpyArray, index: object) -> NumpyArray:
    """Return ``x[index]``, as a 0-d view if NumPy returns a scalar."""
    items = index if type(index) is tuple else (index,)
    return x[items] if any([item is Ellipsis for item in items]) else x[(*items, Ellipsis)]


def _in_native_code(*args: object) -> Any:
    raise AssertionError("Python called a step of native code")


def is_elementwise(call: TracedCall) -> bool:
    """Return whether a call is of an elementwise ufunc, whose results do not depend on the addresses of its arguments."""
    function = call.function
    return isinstance(function, np.ufunc) and function.signature is None and call.method == "__call__"


def share_memory(x: NumpyArray, y: NumpyArray) -> bool:
    """Return whether two arrays share their memory: one is the other, or a view of it or of its base."""
    return same_memory(x, y) or y.base is x


# -- calls with output arguments ---------------------------------------------------------------------------------------


def _maximum(x: NumpyArray, y: NumpyArray, out: NumpyArray) -> NumpyArray:
    return np.maximum(x, y, out=out)


def _minimum(x: Any, y: Any, out: Any) -> Any:
    return np.minimum(x, y, out=out)


#: ufuncs whose output has to be passed by keyword
_OUT_BY_KEYWORD: dict[np.ufunc, AnyFunction] = {np.maximum: _maximum, np.minimum: _minimum}


def written_form(
    call: TracedCall, args: tuple[object, ...], kwargs: Params
) -> tuple[AnyFunction, tuple[Any, ...], dict[str, Any]] | None:
    """Return a call as a function that takes its output arrays as last arguments; None if there is no such function."""
    function, method = call.function, call.method
    if isinstance(function, np.ufunc):
        if kwargs.get("out") is not None or any(var.dtype.hasobject for var in call.results):
            return None
        if method == "__call__":
            return (_OUT_BY_KEYWORD.get(function, function), args, kwargs) if len(args) == function.nin else None
        if method == "reduce":
            return _reduction(function, args, kwargs)
        if method == "accumulate":
            given = dict(zip(("array", "axis", "dtype"), args, strict=False)) | kwargs
            if set(given) <= {"array", "axis", "dtype"}:
                return function.accumulate, (given["array"], given.get("axis", 0), given.get("dtype")), {}
        return None
    if function in REDUCTIONS:
        return _reduction(
            REDUCTIONS[function],
            args,
            {"axis": None, **_reduce_keywords(kwargs)} if len(args) < 2 else _reduce_keywords(kwargs),
        )
    form = _OUTPUT_FORMS.get(function)
    return None if form is None else form(args, kwargs)


def _reduction(function: np.ufunc, args: tuple[object, ...], kwargs: Params) -> Any:
    """Return a reduction as a function with its output as last argument."""
    given = dict(zip(("array", "axis", "dtype", "out", "keepdims"), args, strict=False)) | kwargs
    if not set(given) <= {"array", "axis", "dtype", "out", "keepdims"} or given.get("out") is not None:
        return None
    form = reduced_keeping if given.get("keepdims") else reduce_into
    return form, (function, given["array"], given.get("axis", 0), given.get("dtype")), {}


def _reduce_keywords(kwargs: Params) -> dict[str, Any]:
    """Return keywords of ``np.sum`` as those of ``np.add.reduce``."""
    return {"array" if name == "a" else name: value for name, value in kwargs.items()}


#: whether reductions with ``out`` go through reversed axes in another direction than those without
_REVERSED = np.lib.NumpyVersion(np.__version__) < "2.2.0"


def reduce_into(function: Any, x: Any, axis: object, dtype: DTypeLike, out: Any, keepdims: bool = False) -> None:
    if _REVERSED and min(x.strides, default=0) < 0:
        np.copyto(out, function.reduce(x, axis, dtype, None, keepdims))
    else:
        function.reduce(x, axis, dtype, out, keepdims)


def reduced_keeping(
    function: np.ufunc, x: NumpyArray, axis: int | tuple[int, ...] | None, dtype: DTypeLike, out: NumpyArray
) -> None:
    reduce_into(function, x, axis, dtype, out, True)


def copy_cast(x: NumpyArray, out: NumpyArray) -> None:
    """Copy and cast, without the warning for discarded imaginary parts: it was given in the traced call."""
    np.copyto(out, x.real if x.dtype.kind == "c" and out.dtype.kind in "fiu" else x, "unsafe")


def _as_type(args: tuple[BufferView, NumpyDType], kwargs: Params) -> Any:
    """Return ``np.astype(x, dtype)`` as a copy; the dtype is that of the output."""
    return (copy_cast, (args[0],), {}) if len(args) == 2 and set(kwargs) <= {"copy"} else None


def _as_copy(args: tuple[BufferView, str], kwargs: object) -> Any:
    return (copy_cast, (args[0],), {}) if len(args) == 1 and set(kwargs) <= {"order"} else None


def _concatenate_arguments(args: tuple[Sequence[BufferView], ...], kwargs: Params) -> Any:
    given = dict(zip(("arrays", "axis"), args, strict=False)) | kwargs
    return (concatenate_into, (given["arrays"], given.get("axis", 0)), {}) if set(given) <= {"arrays", "axis"} else None


def concatenate_into(arrays: Any, axis: Any, out: Any) -> None:
    np.concatenate(arrays, axis, out)


def _stack_arguments(args: tuple[list[BufferView], ...], kwargs: Params) -> Any:
    given = dict(zip(("arrays", "axis"), args, strict=False)) | kwargs
    return (stack_into, (given["arrays"], given.get("axis", 0)), {}) if set(given) <= {"arrays", "axis"} else None


def stack_into(arrays: Sequence[AnyArray], axis: Any, out: Any) -> None:
    np.stack(arrays, axis, out)


_OUTPUT_FORMS: dict[Any, Callable[[Any, Any], Any]] = {
    np.copy: _as_copy,
    np.concatenate: _concatenate_arguments,
    np.stack: _stack_arguments,
}
if hasattr(np, "astype"):
    _OUTPUT_FORMS[np.astype] = _as_type

_VIEWS = """
    reshape ravel transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis expand_dims squeeze broadcast_to real imag
    diagonal flip fliplr flipud rot90 split array_split hsplit vsplit dsplit unstack atleast_1d atleast_2d atleast_3d asarray
    ascontiguousarray asanyarray
"""
#: functions whose results can be views of their only array; shape and strides of the array decide
VIEWS = {getattr(np, name) for name in _VIEWS.split() if hasattr(np, name)} | {operator.getitem, view_at_offset}

#: NumPy functions that are reductions by a ufunc, and the ufunc
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
