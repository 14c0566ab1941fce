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
from chainrule._src.tape.modes import grad_mode
from chainrule._src.tape.node import Leaf, Node
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.view import has_origin

ndarray = np.ndarray


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
        LOOPS.BOOL * ("b" in exact_kinds) + LOOPS.INT64 * ("i" in exact_kinds),
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
    nin = 2 if value is None else 1
    return functools.update_wrapper(
        LOOPS.Operation(call, LOOPS.ASSIGN, operands=nin, label=label, direct=numbers, assigned=value), call
    )


def dispatch_by_rank(rows: dict[tuple[int, int], Primitive], call: Any) -> Any:
    """Return a function of two tensors whose fast path is a primitive selected by the operands' ranks."""
    return (
        with_user_location(call)
        if LOOPS is None
        else functools.update_wrapper(LOOPS.Operation(call, LOOPS.BY_NDIM, table=rows), call)
    )


def with_cached_dispatch(call: Any) -> Any:
    """Return a function of one tensor (or a list of them) and static arguments whose dispatch to a primitive is cached.

    The primitive and its parameters must depend only on the arguments and the tensor's shape and dtype. The cache serves
    contiguous tensors.
    """
    return (
        call
        if LOOPS is None
        else functools.update_wrapper(LOOPS.Operation(call, LOOPS.CACHED, make_entry=_make_entry), call)
    )


def _make_entry(result: Any, call: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a dispatch cache entry: the primitive and parameters of the one node that made the result, or None.

    The entry of a view also has its layout (shape, strides and offset), which is the same for all contiguous arrays of a shape
    and dtype. The entry of several views of one tensor is a list, with each view's origin last (see ``tape.view.View``).
    Without a result, the function is called on tensors that are recorded.
    """
    several = type(first) is not Tensor
    tensors = list(first) if several else [first]
    if type(result) is tuple and any([has_origin(x) for x in tensors]):
        result = None  # the base has an origin, so the views do, too
    if result is None:
        tensors = [wrap(np.ones(x._raw.shape, x._raw.dtype)) for x in tensors]
        for x in tensors:
            x._edge = Leaf(x)
        try:
            with grad_mode(True), np.errstate(all="ignore"):  # warnings were shown by the first call
                result = call(tensors if several else tensors[0], *args, **kwargs)
        except RuntimeError:  # for example, from a function that writes into its argument
            return None
    if type(result) is not tuple:
        return _step(tensors, result, several)
    steps = [] if several else [_step(tensors, x, False) for x in result]
    if not steps or any([step is None or len(step) != 3 for step in steps]):
        return None
    origins, order = [x._view.origin for x in result], [x._edge.seq for x in result]
    if not all([type(origin) is tuple for origin in origins]) or order != sorted(order):
        return None
    return [(*step, origin) for step, origin in zip(steps, origins, strict=True)]  # type: ignore[misc]


def _step(tensors: list[Any], result: Any, several: bool) -> tuple[Any, ...] | None:
    node = result._edge if type(result) is Tensor else None
    if type(node) is not Node or node.edges != tuple([x._edge for x in tensors]):
        return None
    prim, datas = node.prim, [x._raw for x in tensors]
    plain = node.pullback is prim.pullback and prim.listed and prim.variadic == several
    values = [*datas, result._raw]
    if (
        not plain
        or (not several and len(prim.operands) != 1)
        or any(not any(v is x for x in values) for v in node.saved)
    ):
        return None
    return (prim, node.params, _layout(datas[0], result._raw)) if prim.view and not several else (prim, node.params)


def _layout(x: Any, view: Any) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """Return shape, strides and offset of a view in an array's memory; None if it is not an ordinary view."""
    if type(view) is not ndarray or x.strides != np.empty(x.shape, x.dtype).strides:
        return None
    offset = view.ctypes.data - x.ctypes.data
    inside = np.may_share_memory(x, view) and 0 <= offset < max(x.nbytes, 1)
    same = inside and view is not x and view.dtype == x.dtype and view.flags.writeable == x.flags.writeable and x.size
    return (view.shape, view.strides, offset) if same else None


def ufunc_protocol(operations: dict[tuple[np.ufunc, bool], Any], call: Any) -> Any:
    """Return ``__array_ufunc__``, whose fast path is the operation of the ufunc."""
    if LOOPS is None:
        return with_user_location(call)
    return functools.update_wrapper(LOOPS.Operation(call, LOOPS.ARRAY_UFUNC, table=operations), call)


def index_operation(row: Primitive, at_arrays: Primitive, call: Any) -> Any:
    """Return ``array[index]``, whose fast path is a primitive for basic indices, and another for integer arrays."""
    if LOOPS is None:
        return call
    return functools.update_wrapper(LOOPS.Operation(call, LOOPS.INDEX, row, table=at_arrays), call)
