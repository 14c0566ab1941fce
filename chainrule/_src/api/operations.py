"""Factories of functions whose fast path runs in C (``native/operation.c``); without the extension they return the Python function.

``functions`` calls ``operation``; ``declare`` and ``ops`` call the other factories.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.fp_warnings import with_user_location


def operation(call: AnyFunction, prim: Primitive, **forms: object) -> Any:
    """Return the function of a primitive with up to three operands; its fast path runs in C where possible.

    The first operand may be a Python number only if the value is a ufunc, which treats it as weak. Other values need numbers
    as arrays (``arrays_of_numbers``).

    Args:
        masks: a bit for each operand that is a mask.
        arrays_of_numbers: numbers are converted to 0-d arrays.
        parameters: the primitive's numeric parameters, by keyword, with their defaults.
    """
    if LOOPS is None:
        return with_user_location(call)
    number_first = isinstance(prim.value, np.ufunc) or forms.get("arrays_of_numbers", False)
    exact_kinds = "" if prim.promotion == "float" or len(prim.operands) > 2 else prim.accepts
    function = LOOPS.Operation(
        call,
        LOOPS.ELEMENTWISE,
        prim,
        len(prim.operands),
        number_first,
        "f" in prim.accepts,
        LOOPS.DISCRETE_BOOL * ("b" in exact_kinds) + LOOPS.DISCRETE_INT64 * ("i" in exact_kinds),
        **forms,
    )
    return functools.update_wrapper(function, call)


def with_fast_path(operation: Any, call: Any, **forms: Any) -> Any:
    """Return a function that uses an operation's fast path, and ``call`` for all other calls."""
    if LOOPS is None or type(operation) is not LOOPS.Operation:
        return call
    return functools.update_wrapper(operation.with_fallback(call, **forms), call)


def in_place_operation(label: str, operation: Any, call: Any, direct: bool) -> Any:
    """Return an in-place method with an elementwise operation's fast path.

    Args:
        label: its name in the record of in-place writes.
        direct: outside of autograd, it is one ufunc call with the tensor's array as ``out``.
    """
    if (
        LOOPS is None
        or type(operation) is not LOOPS.Operation
        or operation.form != LOOPS.ELEMENTWISE
        or operation.swapped
    ):
        return call
    if operation.parameters is not None or operation.prim.kind == "discrete":
        return call
    form = LOOPS.Operation(
        call,
        LOOPS.IN_PLACE,
        operation.prim,
        operation.operands,
        False,
        True,
        label=label,
        direct=direct,
        factor=operation.factor,
    )
    return functools.update_wrapper(form, call)


def assignment_operation(label: str, call: Any, value: Any = None, *, numbers: bool = True) -> Any:
    """Return a method that assigns numbers (or other tensors' elements) to a tensor; ``value``: a constant to assign."""
    if LOOPS is None:
        return call
    return functools.update_wrapper(LOOPS.Operation(call, LOOPS.ASSIGN, label, numbers, value), call)


def dispatch_by_rank(rows: dict[tuple[int, int], Primitive], call: Any) -> Any:
    """Return a function of two tensors whose fast path is a primitive selected by the operands' ranks."""
    return (
        with_user_location(call)
        if LOOPS is None
        else functools.update_wrapper(LOOPS.Operation(call, LOOPS.BY_NDIM, rows), call)
    )


def ufunc_protocol(operations: dict[tuple[np.ufunc, bool], Any], call: Any) -> Any:
    """Return ``__array_ufunc__``, whose fast path is the operation of the ufunc."""
    if LOOPS is None:
        return with_user_location(call)
    return functools.update_wrapper(LOOPS.Operation(call, LOOPS.ARRAY_UFUNC, operations), call)


def index_operation(row: Primitive, at_arrays: Primitive, call: Any) -> Any:
    """Return ``array[index]``, whose fast path is a primitive for basic indices, and another for integer arrays."""
    if LOOPS is None:
        return call
    return functools.update_wrapper(LOOPS.Operation(call, LOOPS.INDEX, row, at_arrays), call)
