"""Functions with cached dispatch, and the entries of the cache: which primitives a function applies, with which parameters.

``declare`` wraps functions of tensors, and ``ops.array`` wraps functions of Arrays. The primitives and parameters of a function with
cached dispatch depend on shapes and static arguments only. ``native/operation.c`` calls ``make_entry`` after a call, and replays the entry
in later calls with the same cache key.

At the first call of a function of tensors, its entry is read from the nodes of the results: one primitive made each result. A function of
Arrays may apply several primitives. At its second call with a key, the function runs under a watch that records the primitives, C replays
them, and the entry is valid if both results agree in value, layout and history.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.api.watch import Watch
from chainrule._src.arrays.any_array import scalar_to_array
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.modes import grad_mode, is_recording
from chainrule._src.tape.node import Leaf, Node
from chainrule._src.tape.protocol import BY_SHAPE
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.view import View, has_origin

ndarray = np.ndarray
_STATIC = (int, float, bool, complex, str, slice, type(None), type(Ellipsis), np.dtype, type)
_UNCACHED_OPTIONS = frozenset({"out", "where", "dtype"})  # a call with one of these keywords has no entry
_TRIAL_SIZE = 65536  # maximum number of elements for which a function runs again because its results have no nodes


class _StepRecorder(Watch):
    """Records the operations of a call, except those called inside a primitive's value, and the nodes they made."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Any, dict[str, Any], Any]] = []
        self.nodes: list[Node] = []
        self.within = False

    def forward(self, prim: Any, datas: Any, params: Params) -> Any:
        if self.within:
            return super().forward(prim, datas, params)
        self.within = True
        try:
            out = scalar_to_array(super().forward(prim, datas, params))
        finally:
            self.within = False
        self.calls.append((prim, tuple(datas), params, out))
        return out

    def recorded(self, node: Node) -> None:
        self.nodes.append(node)
        super().recorded(node)


def with_cached_dispatch(call: Any, *, arrays: bool = False) -> Any:
    """Return a function with cached dispatch.

    Args:
        arrays: its operands are Arrays and plain arrays, and its result is an Array. Otherwise its operands are the tensors in its first
            argument, and the cache serves contiguous tensors of floats.
    """
    return call if LOOPS is None else functools.update_wrapper(LOOPS.Operation(call, LOOPS.CACHED, arrays), call)


def protocol_with_cached_dispatch(call: Any) -> Any:
    """Return ``__array_function__`` with cached dispatch for the functions in ``BY_SHAPE``."""
    return (
        call if LOOPS is None else functools.update_wrapper(LOOPS.Operation(call, LOOPS.CACHED, True, BY_SHAPE), call)
    )


def make_entry(
    call: AnyFunction,
    args: Sequence[Any],
    names: tuple[str, ...] | None,
    operands: Sequence[Any],
    result: object,
    arrays: bool,
) -> tuple[Any, ...] | None:
    """Return the dispatch cache entry of a call, in the format of ``native/dispatch_cache.c``; None if there is none.

    Args:
        args: the arguments, positional ones first.
        names: the names of the keyword arguments.
        operands: the distinct tensors and plain arrays among the arguments.
        result: the result of the call.
        arrays: as for ``with_cached_dispatch``.
    """
    count = len(args) - len(names or ())
    keywords = dict(zip(names or (), args[count:], strict=True))
    if arrays:
        options = args[4] if len(args) == 5 and type(args[4]) is dict else keywords
        if type(result) is not Array or not _UNCACHED_OPTIONS.isdisjoint(options):
            return None
        return _entry_of_array(functools.partial(call, *args[:count], **keywords), operands, result._tensor)
    was_recorded = is_recording() and any([x._edge is not None for x in operands])
    if not was_recorded or (type(result) is tuple and any([has_origin(x) for x in operands])):
        if sum([x._raw.size for x in operands]) > _TRIAL_SIZE:
            return None
        # The results have no nodes to read, so the function runs again on tensors of ones that require grad.
        substitutes = {id(x): _ones_like(x) for x in operands}
        args = _map_tensors(lambda x: substitutes[id(x)], args)
        try:
            with grad_mode(True), np.errstate(all="ignore"):  # warnings were shown by the first call
                result = call(*args[:count], **keywords)
        except RuntimeError:  # for example, from a function that writes into its argument
            return None
    first = args[0]
    return _entry_of_tensors(list(first) if type(first) is tuple else first, result)


def call_with_arrays(operation: AnyFunction, args: tuple[object, ...], names: tuple[str, ...] | None) -> None:
    """Call an operation with arrays instead of traced values, outside of their trace. It stores the entry of the call."""
    args = _map_tensors(functools.cache(_without_trace), args)  # operands that are one tensor stay one
    count = len(args) - len(names or ())
    with np.errstate(all="ignore"):
        operation(*args[:count], **dict(zip(names or (), args[count:], strict=True)))


if LOOPS is not None:
    LOOPS.connect_dispatch_cache(make_entry, call_with_arrays)


def _map_tensors(function: AnyFunction, x: Any) -> Any:
    """Apply a function to each tensor in an argument."""
    if type(x) is Array:
        array = object.__new__(Array)
        array._tensor = function(x._tensor)
        return array
    if type(x) is Tensor:
        return function(x)
    if type(x) is tuple or type(x) is list:
        return type(x)([_map_tensors(function, item) for item in x])
    return {name: _map_tensors(function, item) for name, item in x.items()} if type(x) is dict else x


def _ones_like(x: Tensor) -> Tensor:
    """Return a tensor that requires grad, of equal shape and dtype."""
    tensor = wrap(np.ones(x._raw.shape, x._raw.dtype))
    tensor._edge = Leaf(tensor)
    return tensor


def _without_trace(x: Tensor) -> Tensor:
    """Return a tensor of the array of a traced value, with a history and a base if it has them."""
    if type(x._raw) is ndarray:
        return x
    tensor = wrap(x._raw.array)
    if x._edge is not None:
        tensor._edge = Leaf(tensor)
    if x._view is not None:
        tensor._view = View(_without_trace(x._view.base), (), x._view.origin)
    return tensor


# -- functions of tensors --------------------------------------------------------------------------------------------


def _entry_of_tensors(first: Any, result: Any) -> tuple[Any, ...] | None:
    """Return the entry of a function whose results are made by one primitive each, from the tensors of its first argument.

    Several results are views of one tensor.
    """
    if type(result) is not tuple:
        step = _step_of_node(first, result)
        return None if step is None else ((step,), False, "")
    steps = [_step_of_node(first, x) for x in result]
    if type(first) is list or not steps or any([step is None or not step[0].view for step in steps]):
        return None
    origins, order = [x._view.origin for x in result], [x._edge.seq for x in result]
    if not all([type(origin) is tuple for origin in origins]) or order != sorted(order):
        return None
    return tuple(steps), False, tuple(origins)


def _step_of_node(first: Any, result: Any) -> tuple[Any, ...] | None:
    """Return the step that made a result; None if the result is not one primitive applied to the given tensors."""
    several = type(first) is list
    tensors = first if several else [first]
    node = result._edge if type(result) is Tensor else None
    if type(node) is not Node or node.edges != tuple([x._edge for x in tensors]):
        return None
    prim, datas = node.prim, [x._raw for x in tensors]
    values = [*datas, result._raw]
    if node.pullback is not prim.pullback or not prim.listed or prim.variadic != several:
        return None
    if (not several and len(prim.operands) != 1) or any([not any([v is x for x in values]) for v in node.saved]):
        return None
    indices: dict[int, int] = {}
    for x in tensors:
        indices.setdefault(id(x), len(indices))
    layout = _layout(datas[0], result._raw) if prim.view and not several else None
    return prim, node.params, tuple([indices[id(x)] for x in tensors]), layout


def _layout(x: Any, view: Any) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """Return the shape, strides and offset (in bytes) of a view of an array in C order; None for other results."""
    if type(view) is not ndarray or x.strides != np.empty(x.shape, x.dtype).strides:
        return None
    offset = view.ctypes.data - x.ctypes.data
    inside = np.may_share_memory(x, view) and 0 <= offset < max(x.nbytes, 1)
    same = inside and view is not x and view.dtype == x.dtype and view.flags.writeable == x.flags.writeable and x.size
    return (view.shape, view.strides, offset) if same else None


# -- functions of Arrays ---------------------------------------------------------------------------------------------


def _entry_of_array(repeat: AnyFunction, operands: Sequence[AnyArray], tensor: Tensor) -> tuple[Any, ...] | None:
    """Return the entry of a function of Arrays. ``tensor``: the tensor of its result; ``repeat``: calls the function again."""
    if type(tensor) is not Tensor or type(tensor._edge) is not Node:
        return None
    if any([tensor is x or tensor._raw is getattr(x, "_raw", x) for x in operands]):
        return None
    if any([type(x) is Tensor and has_origin(x) for x in operands]):
        return None
    steps = _StepRecorder()
    with np.errstate(all="ignore"), steps:  # the first call has warned already
        repeated = repeat()
    entry = _recorded_entry(steps, operands, repeated._tensor)
    if entry is None:
        return None
    with np.errstate(all="ignore"):
        replayed = LOOPS.replay(entry, operands)
    return entry if replayed is not None and _same_history(tensor, replayed, operands) else None


def _recorded_entry(steps: _StepRecorder, operands: Sequence[AnyArray], end: Tensor) -> tuple[Any, ...] | None:
    """Return the recorded steps, with value numbers in place of arrays."""
    if not steps.calls or len(steps.nodes) != len(steps.calls) or end._edge is not steps.nodes[-1]:
        return None
    numbers = {id(getattr(x, "_raw", x)): i for i, x in enumerate(operands)}
    # Other operands of a step may be made from static arguments, but not from given arrays.
    arrays = any([type(x) is ndarray for x in operands])
    entry = []
    for prim, datas, params, out in steps.calls:
        unknown = [x for x in datas if id(x) not in numbers and type(x) not in (int, float)]
        if (unknown and arrays) or not _is_static(params) or type(out) is not ndarray or id(out) in numbers:
            return None
        entry.append((prim, params, tuple([numbers.get(id(x), (x,)) for x in datas]), None))
        numbers[id(out)] = len(numbers)
    is_number = end._raw is not steps.calls[-1][3] and steps.calls[-1][0].view
    return tuple(entry), is_number, end._view.origin if end._view is not None and type(end._view.origin) is str else ""


def _is_static(x: object) -> bool:
    if type(x) is dict:
        return all([_is_static(value) for value in x.values()])
    if type(x) is tuple:
        return all([_is_static(item) for item in x])
    return isinstance(x, _STATIC)


def _same_history(x: Tensor, y: Tensor, operands: Sequence[AnyArray]) -> bool:
    """Return whether two tensors are equal in value, layout and recorded history from the operands."""
    if x._cut is not y._cut or not _same_value(x._raw, y._raw):
        return False
    pairs = [(x._edge, y._edge)]
    if x._view is not None or y._view is not None:
        if not _same_view(x._view, y._view):
            return False
        pairs.append((x._view.base._edge, y._view.base._edge))
    ends = {id(t._edge) for t in operands if type(t) is Tensor}
    for a, b in pairs:  # the loop appends to ``pairs``
        if a is b:
            continue
        if type(a) is not Node or type(b) is not Node or id(a) in ends or len(pairs) > 500:
            return False
        nodes = [(n.prim, n.pullback, n.params, n.in_avals, n.hooks, n.code, n.lasti, len(n.edges)) for n in (a, b)]
        if nodes[0] != nodes[1] or len(a.saved) != len(b.saved):
            return False
        for p, q in zip(a.saved, b.saved, strict=True):
            if (p is x._raw) is not (q is y._raw) or not (p is q or _same_value(p, q)):
                return False
        pairs += zip(a.edges, b.edges, strict=True)
    return True


def _same_value(x: object, y: object) -> bool:
    if type(x) is not ndarray or type(y) is not ndarray:
        return type(x) is type(y) and type(x) in (int, float, type(None)) and repr(x) == repr(y)
    attributes = [(z.dtype, z.shape, z.strides, z.flags.writeable, z.base is None, z.tobytes()) for z in (x, y)]
    return attributes[0] == attributes[1]


def _same_view(x: Any, y: Any) -> bool:
    if x is None or y is None:
        return False
    same_base = x.base is y.base or _same_value(
        x.base._raw, y.base._raw
    )  # an intermediate result; its node is compared, too
    return bool(same_base and x.steps == y.steps and x.origin == y.origin and (x.before is None) is (y.before is None))
