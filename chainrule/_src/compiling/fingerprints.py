"""Fingerprints of recorded calls.

The calls of a trace are released once it is planned. ``tree`` keeps their fingerprints, to compare them with the calls of other traces.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.compiling.simplify import operand_vars
from chainrule._src.interpreters.rebuilt import Rebuilt
from chainrule._src.interpreters.trace_types import AsArray, PrimitiveFunction, TracedCall, Var

ndarray = np.ndarray


class Fingerprints:
    """The fingerprints of the calls of a trace. They are equal if another trace with the same numbers of arrays makes equal calls.

    Args:
        calls: the calls, in order.
    """

    __slots__ = ("_alive", "_numbers")

    def __init__(self, calls: list[TracedCall]) -> None:
        self._alive: dict[int, Any] = {}  # objects that are compared by id, kept alive
        if native.LOOPS is None:
            self._numbers = np.array([self._of_call(call) for call in calls], np.int64)
        else:
            self._numbers = np.frombuffer(
                native.LOOPS.fingerprints(list(calls), self._alive, self._structure), np.int64
            )

    def __len__(self) -> int:
        return len(self._numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fingerprints) and np.array_equal(self._numbers, other._numbers)

    def _of_call(self, call: TracedCall) -> int:
        numbers = [var.number for var in call.results]
        return hash((self._structure(call), *[var.number for var in operand_vars(call)], None, *numbers))

    def _structure(self, call: TracedCall) -> int:
        """Return a fingerprint of a call without the numbers of its Vars."""
        return hash((self._of_function(call.function), call.method, self._of(call.args), self._of(call.kwargs)))

    def _of_function(self, function: Any) -> Any:
        kind = type(function)
        if kind is np.ufunc:
            return self._identity(function)
        if kind is AsArray:
            return "array", self._of_function(function.function)
        if kind is PrimitiveFunction:
            return self._identity(function.prim), self._of(function.params)
        if kind is Rebuilt:
            parts = function.args, function.kwargs, function.floats, function.scalars, function.written
            return self._of_function(function.function), *[self._of(part) for part in parts]
        # functions defined inside the traced one: their closures are not compared
        code = getattr(function, "__code__", None)
        if code is not None:
            return self._identity(code)
        try:
            return hash(self._alive.setdefault(id(function), function))
        except TypeError:
            return self._identity(function)

    def _identity(self, x: object) -> int:
        """Return the id of an object, and keep it alive."""
        self._alive[id(x)] = x
        return id(x)

    def _of(self, x: Any) -> Any:
        kind = type(x)
        if kind is Var:
            return "operand"
        if kind is tuple or kind is list:
            return kind.__name__, *[self._of(item) for item in x]
        if kind is dict:
            return "dict", *[(str(key), self._of(item)) for key, item in x.items()]
        if kind is ndarray:
            return x.shape, x.dtype.str, x.tobytes()
        return kind.__name__, repr(x)
