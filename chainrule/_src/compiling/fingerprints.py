"""Fingerprints of recorded calls.

The calls of a trace are released once it is planned. ``tree`` keeps a fingerprint of them, to compare them with the calls of other traces.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from chainrule._src.compiling.encoding import EncodedCalls
from chainrule._src.interpreters.rebuilt import Rebuilt
from chainrule._src.interpreters.same_bits import number_key
from chainrule._src.interpreters.trace_types import AsArray, PrimitiveFunction, TracedCall, Var

ndarray = np.ndarray


class Fingerprint:
    """The fingerprint of the calls of a trace. It is equal if another trace with the same numbers of arrays makes equal calls.

    Args:
        encoded: the calls.
    """

    __slots__ = ("_alive", "_digest")

    def __init__(self, encoded: EncodedCalls) -> None:
        self._alive: dict[int, Any] = {}  # objects that are compared by id, kept alive
        first = [encoded.calls[i] for i in encoded.first_of_form.tolist()]
        general = len(first) - len(encoded.hashes)
        for call in first[general:]:
            self._identity(call.function)
        structures = np.append(np.array([self._structure(call) for call in first[:general]], np.int64), encoded.hashes)
        digest = hashlib.blake2b()
        number = encoded.number
        for part in (
            structures[encoded.form],
            number[encoded.operands],
            number[encoded.results],
            encoded.result_starts,
        ):
            digest.update(part)
        self._digest = digest.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fingerprint) and self._digest == other._digest

    __hash__ = None  # type: ignore[assignment]

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
        return number_key(x) if isinstance(x, (float, complex, np.generic)) else (kind.__name__, repr(x))
