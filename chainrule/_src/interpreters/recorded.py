"""What a recording is made of: arrays (``Var``), the NumPy calls on them, and the values that Python read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyFunction, NumpyArray, Params
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL


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
        if recorder is not None and recorder.refusal is None:  # the function may catch it
            recorder.refusal = self


class ByValue(Unrecordable):
    """A float of Python's takes part in what is not known to take it as one: it has to be itself, and not an array."""


class AsArray:
    """A function that returns a Python number, as one that returns an array."""

    def __init__(self, function: AnyFunction) -> None:
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
