"""Templates of recorded calls: the NumPy calls of a primitive's value function or VJP rule, to append again.

The first call of a primitive on traced values runs its value function, and ``Recorder`` appends each NumPy call. Later calls whose
operands have the same shapes, strides and dtypes append the same NumPy calls. ``template_of`` makes a template of them, and
``native/templates.c`` computes and appends the calls of a template.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import overlaps_itself, view_at_offset
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params
from chainrule._src.interpreters.rebuilt import Rebuilt
from chainrule._src.interpreters.trace_types import PrimitiveFunction, TracedCall, Var, collect_instances
from chainrule._src.interpreters.traced import Traced, flat_leaves

#: key of a primitive or VJP rule and its operands -> (steps, results, primitive); True after the first call, None if there is
#: no template
TEMPLATES: dict[bytes, tuple[Any, ...] | bool | None] = {}
MAX_TEMPLATES = 4096
_MAX_CONSTANT = 4096  # bytes of a constant array that a template may keep
_MAX_ITEMS = 128  # MAX_ITEMS in templates.c


#: functions whose result for a NumPy scalar, unless it is 0-d again, is the view that they return for a 0-d array
_VIEWS_OF_SCALARS = frozenset(
    {
        operator.getitem, np.broadcast_to, np.reshape, np.ravel, np.expand_dims, np.atleast_1d, np.atleast_2d, np.atleast_3d,
    }
)  # fmt: skip


class TemplateItem:
    """A reference, in a template, to an input or to a result of an earlier call.

    Attributes:
        index: its index among the inputs, which are followed by the results.
    """

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class TemplateStep:
    """One NumPy call of a template.

    Attributes:
        fields: the call, with a TemplateItem for each Var: see ``native/templates.c``.
    """

    __slots__ = ("fields",)

    def __init__(self, fields: tuple[Any, ...]) -> None:
        self.fields = fields


class _NoTemplate(Exception):
    """The calls depend on more than the key of a template."""


def clear_templates() -> None:
    """Remove all templates."""
    TEMPLATES.clear()


def template_of(calls: Sequence[TracedCall], operands: object, results: object, begin: int) -> tuple[Any, ...] | None:
    """Return a template of the calls from index ``begin`` on, which computed ``results`` from ``operands``, or None.

    Args:
        operands: the objects in the key of the template: traced values and others, nested in containers.
        results: traced values and None, nested in tuples.
    """
    indices: dict[Var, int] = {}
    inputs: list[Traced] = []
    collect_instances(operands, Traced, inputs)  # in the order of ``add_to_key`` in ``native/templates.c``
    for i, x in enumerate(inputs):
        indices.setdefault(x.var, i)
    count = len(inputs)
    steps = []
    try:
        for call in calls[begin:]:
            steps.append(_step(call, indices))
            for var in call.results:
                indices[var] = count
                count += 1
        template = tuple(steps), _output(results, indices)
    except _NoTemplate:
        return None
    if count > _MAX_ITEMS:
        return None
    for call, step in zip(calls[begin:], steps, strict=True):
        call.step = step
    return template


def passes_arrays(function: AnyFunction, args: tuple[object, ...]) -> bool:
    """Return whether NumPy scalars are passed as arrays, so that the result is a view in the trace, as in eager code."""
    drops_axes = function is np.reshape and any([type(x) is tuple and not x for x in args[1:]])
    return function in _VIEWS_OF_SCALARS and not drops_axes


def _step(call: TracedCall, indices: dict[Var, int]) -> TemplateStep:
    """Return a call with a TemplateItem for each Var, as ``native/templates.c`` reads it."""
    function = call.function
    if function is view_at_offset or type(function) is Rebuilt:
        raise _NoTemplate
    used: list[int] = []
    args, kwargs = _spec(call.args, indices, used), _spec(call.kwargs, indices, used)
    is_element = function is operator.getitem or type(function) is PrimitiveFunction
    target = call.callee
    params: Params = {}
    if type(function) is PrimitiveFunction:
        target, params = function.prim.value, function.params
    takes_arrays = passes_arrays(function, call.args)
    layouts = [(var.dtype, np.array((*var.shape, *var.array.strides), np.intp).tobytes()) for var in call.results]
    fields = (
        target, params, function, call.method, args, kwargs, call.op_name, call.pure, len(call.results), is_element, takes_arrays,
        tuple(used), tuple(layouts), _memory_of_result(call),
    )  # fmt: skip
    return TemplateStep(fields)


def _spec(x: Any, indices: dict[Var, int], used: list[int]) -> Any:
    """Return an argument with a TemplateItem for each Var of ``indices``, and an array for each constant. Append indices to ``used``."""
    kind = type(x)
    if kind is Var:
        index = indices.get(x)
        if index is not None:
            used.append(index)
            return TemplateItem(index)
        if x.array.nbytes > _MAX_CONSTANT:
            raise _NoTemplate
        return x.array
    if kind is tuple or kind is list:
        return kind([_spec(item, indices, used) for item in x])
    if kind is dict:
        return {name: _spec(item, indices, used) for name, item in x.items()}
    return x


def _memory_of_result(call: TracedCall) -> tuple[int, bool, bool] | None:
    """Return where the result of a call is in the memory of its only operand, if it is a view or one element of it; else None.

    Returns:
        The offset in bytes, whether the result is a copy, and whether it is writeable.
    """
    found: list[Var] = []
    collect_instances((call.args, call.kwargs), Var, found)
    if len(found) != 1 or len(call.results) != 1:
        return None
    operand, result = found[0].array, call.results[0].array
    copies = result.base is None
    if copies and call.function is operator.getitem and not result.shape:
        index = call.args[1]
        items = index if type(index) is tuple else (index,)
        if not all([type(item) is int for item in items]):
            return None
        view = operand[(*items, ...)]
    elif result.size and result.base is operand[...].base:
        view = result
    else:
        return None
    if view.dtype != operand.dtype or view.dtype.hasobject:
        return None
    offset = view.__array_interface__["data"][0] - operand.__array_interface__["data"][0]
    return offset, copies, bool(result.flags.writeable)


def _output(x: Any, indices: dict[Var, int]) -> Any:
    if type(x) is Traced and x.var in indices:
        return TemplateItem(indices[x.var])
    if type(x) is tuple:
        return tuple([_output(part, indices) for part in x])
    if x is None:
        return None
    raise _NoTemplate


def without_overlap(part: AnyArray, operands: object) -> AnyArray:
    """Copy a result whose elements share memory, unless it is a view of an operand. Its elements may differ in other calls."""
    if type(part) is not np.ndarray or not overlaps_itself(part):
        return part
    if any(type(x) is np.ndarray and np.may_share_memory(part, x) for x in flat_leaves(operands)):
        return part
    return part.copy()
