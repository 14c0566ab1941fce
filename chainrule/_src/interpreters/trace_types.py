"""The data structures of a trace: arrays (``Var``), NumPy calls on them (``TracedCall``), and guards (``ValueGuard``).

``recorder.Recorder`` makes them and ``compiling`` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, overload

import numpy as np

from chainrule._src.arrays.types import AnyFunction, NumpyArray, Params, TensorLike
from chainrule._src.interpreters.same_bits import number_key
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL


class Var:
    """One array of a traced program.

    Attributes:
        number: its number among the arrays of the trace.
        shape, dtype: the shape and dtype of the array.
        array: the value during tracing; None after ``drop_array``.
    """

    __slots__ = ("array", "dtype", "number", "shape")

    def __init__(self, number: int, array: NumpyArray) -> None:
        self.number = number
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def drop_array(self) -> None:
        """Drop the value."""
        self.array = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"%{self.number}"


class TracedCall:
    """One NumPy call of a traced program.

    Attributes:
        function, method: a ufunc and its method ("__call__", "reduce" ...), or any function and "".
        args, kwargs: the arguments: Vars, numbers and other constants, nested in tuples, lists and slices.
        results: a Var for each array that it returns.
        op_name: the name of the primitive that it belongs to; "" if none.
        code, lasti: the source location in the user's program.
        pure: whether it has no side effects; random draws and user functions may have some.
        kept: whether it must run even if its results are unused, because the program may handle its exception.
        step: the step of a template that it was appended from (see ``templates``), or None.
    """

    __slots__ = ("args", "code", "function", "kept", "kwargs", "lasti", "method", "op_name", "pure", "results", "step")

    function: Any
    method: str
    args: tuple[Any, ...]
    kwargs: Params
    results: tuple[Var, ...]
    op_name: str
    code: Any
    lasti: int
    pure: bool
    kept: bool
    step: Any

    @property
    def callee(self) -> AnyFunction:
        """The function, or the method of a ufunc, that is called."""
        return getattr(self.function, self.method) if self.method else self.function

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", str(self.function))
        return f"{', '.join(map(repr, self.results))} = {name}{self.args}"


def new_call(function: AnyFunction, method: str, args: tuple[Any, ...], results: tuple[Var, ...]) -> TracedCall:
    """Return a pure call without a source location, which the compiler adds to a program."""
    call = TracedCall()
    call.function, call.method, call.args, call.kwargs, call.results = function, method, args, {}, results
    call.op_name, call.code, call.lasti, call.pure, call.kept, call.step = "", None, -1, True, False, None
    return call


class CallRange(Sequence[TracedCall]):
    """Packed calls of a trace (see ``native/call_list.c``). Each access makes a new TracedCall.

    Attributes:
        calls: the ``CallList`` that has them; begin, end: the range of the calls in it.
    """

    __slots__ = ("begin", "calls", "end")

    def __init__(self, calls: Any, begin: int, end: int) -> None:
        self.calls, self.begin, self.end = calls, begin, end

    def __len__(self) -> int:
        return self.end - self.begin

    @overload
    def __getitem__(self, at: int) -> TracedCall: ...
    @overload
    def __getitem__(self, at: slice) -> CallRange: ...
    def __getitem__(self, at: int | slice) -> TracedCall | CallRange:
        if isinstance(at, slice):
            begin, end, step = at.indices(len(self))
            if step != 1:
                raise ValueError("a slice of packed calls has no step")
            return CallRange(self.calls, self.begin + begin, self.begin + max(begin, end))
        found: TracedCall = self.calls[range(self.begin, self.end)[at]]
        return found

    def __iter__(self) -> Iterator[TracedCall]:
        return map(self.calls.__getitem__, range(self.begin, self.end))

    def encode(self) -> tuple[Any, ...]:
        """Return the slots of the Vars, then the attributes of ``EncodedCalls``."""
        encoded: tuple[Any, ...] = self.calls.encode(self.begin, self.end)
        return encoded

    def live_results(self) -> list[Var]:
        """Return the results whose Vars exist. The values of all others are released."""
        found: list[Var] = self.calls.live_results(self.begin, self.end)
        return found

    def result(self, number: int) -> Var | None:
        """Return the result with a number, or None."""
        found: Var | None = self.calls.result_with_number(number, self.begin, self.end)
        return found


def calls_between(calls: Any, begin: int, end: int) -> Sequence[TracedCall]:
    """Return some calls of a recorder: a CallRange if all of its calls are packed, else a list."""
    is_packed = type(calls) is not list and 0 < calls.packed() == len(calls)
    return CallRange(calls, begin, end) if is_packed else calls[begin:end]


def results_by_number(calls: Sequence[TracedCall], numbers: Collection[int]) -> dict[int, Var]:
    """Return the results of calls that have some numbers, by number."""
    if type(calls) is CallRange:
        return {number: var for number in numbers if (var := calls.result(number)) is not None}
    return {var.number: var for call in calls for var in call.results if var.number in numbers}


class Forms:
    """Numbers the *forms* of calls: function and arguments without arrays. Calls of one form compute equal results from equal operands."""

    def __init__(self) -> None:
        self._forms: dict[Any, int] = {}
        self._count = 0

    def __call__(self, call: TracedCall) -> int:
        """Return the form of a call. A call whose arguments have no hash has a form of its own."""
        function = call.function
        try:
            if type(function) is PrimitiveFunction:
                function = function.prim, argument_key(function.params, type)
            key = function, call.method, argument_key(call.args, type), argument_key(call.kwargs, type)
            form = self._forms.setdefault(key, self._count)
        except TypeError:
            form = self._count
        self._count += form == self._count
        return form


class Program(NamedTuple):
    """The program that a plan compiles.

    Attributes:
        inputs: the arrays that are passed in each call.
        constants: arrays that never change; their values are in the Vars.
        calls: the NumPy calls.
        outputs: the resulting arrays.
        writes: pairs (input, value): at the end, the value is written to the input's memory.
    """

    inputs: list[Var]
    constants: list[Var]
    calls: Sequence[TracedCall]
    outputs: list[Var]
    writes: list[tuple[Var, Var]]


class ValueGuard:
    """A guard: a value that Python read, for which the trace is valid.

    Attributes:
        call_index: the number of calls that were recorded before the read.
        var: the array that was read.
        code, lasti: the source location.
    """

    __slots__ = ("call_index", "code", "lasti", "var")

    code: Any
    lasti: int

    def __init__(self, call_index: int, var: Var) -> None:
        self.call_index = call_index
        self.var = var


def collect_instances(x: Any, kind: type, found: list[Any]) -> None:
    """Append the objects of a type in nested containers: values of tuples, lists and dicts, bounds and step of slices."""
    container = type(x)
    if container is kind:
        found.append(x)
    elif container is tuple or container is list:
        for item in x:
            collect_instances(item, kind, found)
    elif container is dict:
        for item in x.values():
            collect_instances(item, kind, found)
    elif container is slice:
        collect_instances((x.start, x.stop, x.step), kind, found)


def map_vars(x: Any, function: Callable[[Var], Any]) -> Any:
    """Return arguments with each Var replaced by the result of a function."""
    kind = type(x)
    if kind is Var:
        return function(x)
    if kind is tuple or kind is list:
        return kind([map_vars(item, function) for item in x])
    if kind is dict:
        return {name: map_vars(item, function) for name, item in x.items()}
    return slice(*[map_vars(item, function) for item in (x.start, x.stop, x.step)]) if kind is slice else x


def argument_key(x: Any, key_of_var: Callable[[Var], object]) -> Any:
    """Return a hashable key of arguments. Keys are equal only for equal arguments, and for numbers with the same bits.

    Args:
        key_of_var: returns the part of the key for a Var.
    """
    kind = type(x)
    if kind is Var:
        return key_of_var(x)
    if kind is tuple or kind is list:
        return (kind, *[argument_key(item, key_of_var) for item in x])
    if kind is dict:
        return (kind, *[(name, argument_key(item, key_of_var)) for name, item in x.items()])
    if kind is slice:
        return (kind, *[argument_key(item, key_of_var) for item in (x.start, x.stop, x.step)])
    return number_key(x)


class CallRecorder(Protocol):
    """The methods that operations of traced values call; :class:`~chainrule._src.interpreters.recorder.Recorder` has them."""

    weak: set[int]

    def call(
        self,
        function: AnyFunction,
        method: str,
        args: tuple[object, ...],
        kwargs: Params,
        pure: bool = ...,
        op_name: str = ...,
    ) -> Any: ...
    def append_call(
        self,
        function: AnyFunction,
        method: str,
        args: tuple[object, ...],
        kwargs: Params,
        parts: tuple[Any, ...],
        several: bool,
    ) -> Any: ...
    def traced(self, data: object) -> Any: ...
    def read(self, traced: Any) -> NumpyArray: ...
    def eager_type(self, data: Any) -> type | None: ...
    def keep_array(self, data: Any) -> None: ...
    def record_primitive(self, prim: Primitive, operands: Sequence[TensorLike], params: Params) -> Any: ...


class Unrecordable(Exception):
    """Raised if the function does something that a replay cannot repeat. The message is the reason.

    Attributes:
        perhaps_later: whether the reason may apply to the first calls only.
    """

    perhaps_later = False

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        recorder = LOCAL.recorder
        if recorder is not None and recorder.refusal is None:  # the function may catch it
            recorder.refusal = self


class ByValue(Unrecordable):
    """Raised if a Python float is an operand of a function that may treat it differently from an array.

    The float must then be a constant of the trace, with a guard on its value.
    """


class AsArray:
    """A wrapper of a function that returns a Python number: it returns a 0-d array."""

    def __init__(self, function: AnyFunction) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return np.asarray(self.function(*args, **kwargs))


class PrimitiveFunction:
    """A primitive's value function with its parameters, as a function of the operands."""

    __slots__ = ("__name__", "params", "prim")

    def __init__(self, prim: Primitive, params: Params) -> None:
        self.prim = prim
        self.params = params
        self.__name__ = prim.name

    def __call__(self, *operands: Any) -> Any:
        return self.prim.value(*operands, **self.params)
