"""The signature of a trace: a hashable key of everything, except numbers, that determines the terms of its Jacobian.

``term_plans`` looks up plans by it. Two traces with equal signatures have the same primitives with the same parameters, the same
origins, and arrays of the same shapes, dtypes and strides. The same NumPy calls therefore compute the numbers of their terms. The
content of arrays among the parameters (indices) is part of the signature, as a digest of 128 bits.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Hashable
from types import CodeType, EllipsisType, MethodType
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.interpreters.jac import Jac
from chainrule._src.jacobians.terms import Variable
from chainrule._src.jacobians.trace import JacobianTrace
from chainrule._src.tape.fp_warnings import is_ours
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.trace_hooks import is_tracing

ndarray = np.ndarray
#: a trace with more steps has no signature
MOST_STEPS = 400
#: the maximum number of wrappers that ``code_of`` unwraps
_MOST_WRAPPERS = 32


class TraceSignature(NamedTuple):
    """The signature of a trace, and its numbers.

    Attributes:
        key: equal for traces with the same terms, except for their numbers.
        arrays: the distinct arrays among the operands and results of the steps, in the order of their first use.
    """

    key: Hashable
    arrays: list[NumpyArray]


class _NoSignature(Exception):
    """Raised for values whose content is not comparable."""


def signature_of(trace: JacobianTrace) -> TraceSignature | None:
    """Return the signature of a trace; None if it has none.

    A trace has no signature inside other transformations, with values on the tape, with primitives of the user (whose rules may
    read any state), and with parameters that are functions or other objects.
    """
    if trace.create_graph or STACK.levels or LOCAL.watch is not None or is_tracing():
        return None
    try:
        steps = trace.steps
        return None if len(steps) > MOST_STEPS else _SignatureBuilder(trace).signature()
    except _NoSignature:
        return None


def digest_of(x: NumpyArray) -> bytes:
    """Return a digest of an array's content."""
    return hashlib.blake2b(np.ascontiguousarray(x).data, digest_size=16).digest()


def code_of(function: Any) -> CodeType | None:
    """Return the code object that a call of a function runs; None if there is none."""
    for _ in range(_MOST_WRAPPERS):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            break
    code = getattr(function, "__code__", None)
    if code is None:
        code = getattr(getattr(type(function), "__call__", None), "__code__", None)  # noqa: B004
    return code if type(code) is CodeType else None


class _SignatureBuilder:
    """Builds the signature of one trace. Steps, variables and arrays are numbered in the order of their first use."""

    def __init__(self, trace: JacobianTrace) -> None:
        self.trace = trace
        self.arrays: list[NumpyArray] = []
        self.number_of: dict[int, int] = {}  # by the id of an array, a step or a variable

    def signature(self) -> TraceSignature:
        trace, number_of = self.trace, self.number_of
        for k, variable in enumerate(trace.variables):
            number_of[id(variable)] = k
        parts: list[Hashable] = [tuple([(v.shape, v.dtype) for v in trace.variables])]
        for k, step in enumerate(trace.steps):
            if not is_ours(step.prim):
                raise _NoSignature
            number_of[id(step)] = k
            parts.append(
                (
                    step.prim,
                    _key_of(step.params) if step.params else None,
                    tuple([self._origin(origin) for origin in step.origins]),
                    tuple([self._value(x) for x in step.operands]),
                    tuple([self._value(x) for x in step.outs]),
                )
            )
        for y in trace.results:
            if type(y) is not Jac or type(y.primal) is not ndarray:
                raise _NoSignature
            parts.append((self._origin(y.origin), y.primal.shape, y.primal.dtype))
        return TraceSignature(tuple(parts), self.arrays)

    def _origin(self, origin: Any) -> Hashable:
        if origin is None:
            return None
        if type(origin) is Variable:
            return self.number_of[id(origin)]
        step, index = origin
        return self.number_of[id(step)], index

    def _value(self, x: Any) -> Hashable:
        """Return the key of an operand or result: the layout of an array, or a number itself."""
        if type(x) is not ndarray:
            return _key_of(x)
        number = self.number_of.get(id(x))
        if number is not None:
            return number
        if not (x.dtype.kind in "biufc" and x.dtype.isnative and x.flags.aligned):
            raise _NoSignature
        self.number_of[id(x)] = len(self.arrays)
        self.arrays.append(x)
        return x.shape, x.dtype, x.strides


def _key_of(x: Any) -> Hashable:
    """Return a key that is equal only for values of the same type and content."""
    kind = type(x)
    if kind in _COMPARABLE:
        return kind, x
    if kind is float or kind is complex:
        return kind, repr(x)  # distinguishes the signs of zeros
    if kind is tuple or kind is list:
        return kind, *[_key_of(item) for item in x]
    if kind is dict:
        return kind, *[(name, _key_of(item)) for name, item in x.items()]
    if kind is slice:
        return kind, _key_of(x.start), _key_of(x.stop), _key_of(x.step)
    if kind is ndarray and x.dtype.kind in "biufc":
        return kind, x.dtype.str, x.shape, x.strides, digest_of(x)
    if isinstance(x, np.generic) and x.dtype.kind in "biufc":
        return kind, x.dtype, x.tobytes()
    if isinstance(x, (np.dtype, np.ufunc)) or kind is type:
        return kind, x
    raise _NoSignature


#: types whose values are equal only if their contents are
_COMPARABLE = frozenset({bool, int, str, bytes, type(None), EllipsisType})
