"""Functions whose ordinary case is done in C, where the extension is there: the forms of ``native/operation.c``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction
from chainrule._src.rules.primitive import TABLE, Primitive
from chainrule._src.tape.eager import LOOPS, share
from chainrule._src.tape.modes import grad_mode
from chainrule._src.tape.node import Leaf, Node
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.view import has_origin
from chainrule._src.tape.warned import located

ndarray = np.ndarray


def operation(call: AnyFunction, prim: Primitive, **forms: object) -> Any:
    """The function of a row of three operands or fewer, whose ordinary case is done in C where that is possible.

    A number may come first where the value is a ufunc, which knows that it is weak; a function may make an array of it that is not.

    Args:
        masks: bits of the operands that are masks.
        arrays_of_numbers: numbers become arrays without dimensions.
        parameters: the row's numbers by their keywords, and what they are if they are not given.
    """
    if LOOPS is None:
        return located(call)
    number_first = isinstance(prim.value, np.ufunc) or forms.get("arrays_of_numbers", False)
    kept = "" if prim.promotion == "float" or len(prim.operands) > 2 else prim.accepts
    found = LOOPS.Operation(
        call,
        LOOPS.ELEMENTWISE,
        prim,
        len(prim.operands),
        number_first,
        "f" in prim.accepts,
        LOOPS.BOOL * ("b" in kept) + LOOPS.INT64 * ("i" in kept),
        **forms,
    )
    return functools.update_wrapper(found, call)


def instead(operation: Any, call: Any, **forms: Any) -> Any:
    """A function whose ordinary case is an operation's, and every other case its own."""
    if LOOPS is None or type(operation) is not LOOPS.Operation:
        return call
    return functools.update_wrapper(operation.with_fallback(call, **forms), call)


def written(label: str, operation: Any, call: Any, direct: bool) -> Any:
    """An in-place method whose ordinary case is an elementwise operation's.

    Args:
        label: what it is called in the record of writes.
        direct: outside the tape it is one call of a ufunc, which writes where the tensor is.
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


def assigning(label: str, call: Any, value: Any = None, *, numbers: bool = True) -> Any:
    """A method that writes numbers (or else other tensors' elements) into a tensor; ``value``: always the same number."""
    if LOOPS is None:
        return call
    nin = 2 if value is None else 1
    return functools.update_wrapper(
        LOOPS.Operation(call, LOOPS.ASSIGN, operands=nin, label=label, direct=numbers, assigned=value), call
    )


def call_instead(other: Callable[[np.ufunc], AnyFunction] | None) -> None:
    """Have operations call ``other(ufunc)`` where they call one of NumPy's ufuncs; it gives the same. None: as before."""
    for prim in TABLE.values():
        ufunc = prim.value
        if (
            isinstance(ufunc, np.ufunc)
            and ufunc.nin < 3
            and prim.kind == "elementwise"
            and vars(np).get(ufunc.__name__) == ufunc
        ):
            share(prim, ufunc if other is None else other(ufunc))


def by_ranks(rows: dict[tuple[int, int], Primitive], call: Any) -> Any:
    """A function of two tensors whose ordinary case is a row that depends on how many axes they have."""
    return (
        located(call)
        if LOOPS is None
        else functools.update_wrapper(LOOPS.Operation(call, LOOPS.BY_NDIM, table=rows), call)
    )


def remembering(call: Any) -> Any:
    """A function of one tensor (or a list of them) and static arguments, whose way from these to a row and its parameters is remembered.

    It must depend on nothing but the arguments, and the tensor's shape and dtype; the tensor is contiguous.
    """
    return (
        call
        if LOOPS is None
        else functools.update_wrapper(LOOPS.Operation(call, LOOPS.CACHED, make_entry=_learn), call)
    )


def _learn(result: Any, call: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
    """The row and parameters by which a result comes from one tensor or several, if it is one node with an edge to each.

    Of a view also how it lies: shape, strides and offset, which are the same for all contiguous arrays of a shape and dtype.
    Of several views of one tensor a list, each with the origin that it is given (see ``tape.view.View``) last.
    Without a result the function is called, on tensors that are recorded.
    """
    several = type(first) is not Tensor
    tensors = list(first) if several else [first]
    if type(result) is tuple and any([has_origin(x) for x in tensors]):
        result = None  # what it is a view of has an origin, which theirs are, too
    if result is None:
        tensors = [wrap(np.ones(x._raw.shape, x._raw.dtype)) for x in tensors]
        for x in tensors:
            x._edge = Leaf(x)
        try:
            with grad_mode(True), np.errstate(all="ignore"):  # it is heard once
                result = call(tensors if several else tensors[0], *args, **kwargs)
        except RuntimeError:  # as of a function that writes into its argument
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
    known = [*datas, result._raw]
    if (
        not plain
        or (not several and len(prim.operands) != 1)
        or any(not any(v is x for x in known) for v in node.saved)
    ):
        return None
    return (prim, node.params, _layout(datas[0], result._raw)) if prim.view and not several else (prim, node.params)


def _layout(x: Any, view: Any) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """Where a view's elements lie in an array's memory; None if it is not a view like others."""
    if type(view) is not ndarray or x.strides != np.empty(x.shape, x.dtype).strides:
        return None
    offset = view.ctypes.data - x.ctypes.data
    inside = np.may_share_memory(x, view) and 0 <= offset < max(x.nbytes, 1)
    same = inside and view is not x and view.dtype == x.dtype and view.flags.writeable == x.flags.writeable and x.size
    return (view.shape, view.strides, offset) if same else None


def by_protocol(operations: dict[tuple[np.ufunc, bool], Any], call: Any) -> Any:
    """``__array_ufunc__``, whose ordinary case is the operation of a ufunc."""
    if LOOPS is None:
        return located(call)
    return functools.update_wrapper(LOOPS.Operation(call, LOOPS.ARRAY_UFUNC, table=operations), call)


def at_index(row: Primitive, at_arrays: Primitive, call: Any) -> Any:
    """``array[index]``, whose ordinary case is a row with a basic index, or another with an array of integers."""
    if LOOPS is None:
        return call
    return functools.update_wrapper(LOOPS.Operation(call, LOOPS.INDEX, row, table=at_arrays), call)
