"""Build entries of the dispatch cache: which primitives a NumPy function applies to which values, with which parameters.

``ops.array`` wraps the functions with cached dispatch.

A function declared ``by_shape`` depends on shapes and static arguments only. At the second call with a cache key, ``make_call_entry``
runs the function again under a watch. C then replays the recorded steps (``native/dispatch_cache.c``), and the result is compared with
Python's. If they agree in all respects, later calls with this key are replayed.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.api.watch import Watch
from chainrule._src.arrays.any_array import scalar_to_array
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, MODES
from chainrule._src.tape.node import Leaf, Node
from chainrule._src.tape.protocol import BY_SHAPE
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.view import View, has_origin

ndarray = np.ndarray
_STATIC = (int, float, bool, complex, str, slice, type(None), type(Ellipsis), np.dtype, type)
_INTO = frozenset({"out", "where", "dtype"})


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


def cached_by_shape(call: Any) -> Any:
    """Return a method of Arrays that depends on shapes and static arguments only, with cached dispatch."""
    return (
        call
        if LOOPS is None
        else functools.update_wrapper(LOOPS.Operation(call, LOOPS.CACHED_METHOD, make_entry=make_call_entry), call)
    )


def functions_cached_by_shape(call: Any) -> Any:
    """Return ``__array_function__`` with cached dispatch for the functions in ``BY_SHAPE``."""
    return (
        call
        if LOOPS is None
        else functools.update_wrapper(
            LOOPS.Operation(call, LOOPS.ARRAY_FUNCTION, table=BY_SHAPE, make_entry=make_call_entry), call
        )
    )


def make_call_entry(
    call: AnyFunction,
    args: tuple[object, ...],
    names: tuple[str, ...] | None,
    operands: tuple[AnyArray, ...],
    result: Array | None,
) -> tuple[Any, ...] | None:
    """Return the dispatch cache entry of a call, in the format of ``native/dispatch_cache.c``; None if a replay would differ.

    Args:
        names: the names of the keyword arguments, which come last.
        operands: the tensors and plain arrays among the arguments.
        result: the result of the call. None for a call in a trace: the operation ``call`` is called with arrays instead of
            traced values, and gets its entry from that call.
    """
    if result is None:
        plain = [_without_trace(x) for x in args]
        count = len(args) - len(names or ())
        with np.errstate(all="ignore"):
            call(*plain[:count], **dict(zip(names or (), plain[count:], strict=True)))
        return None
    tensor = result._tensor if type(result) is Array else None
    keywords = dict(zip(names, args[len(args) - len(names) :], strict=True)) if names else {}
    options = args[4] if len(args) == 5 and type(args[4]) is dict else keywords
    if type(tensor) is not Tensor or type(tensor._edge) is not Node or not _records() or not _INTO.isdisjoint(options):
        return None
    if any([tensor is x or tensor._raw is getattr(x, "_raw", x) for x in operands]):
        return None
    if any([type(x) is Tensor and has_origin(x) for x in operands]):
        return None
    steps = _StepRecorder()
    with np.errstate(all="ignore"), steps:  # the first call has warned already
        again = call(*args[: len(args) - len(keywords)], **keywords)
    entry = _cache_entry(steps, operands, again._tensor)
    if entry is None or not _records():
        return None
    with np.errstate(all="ignore"):
        replayed = LOOPS.replay(entry, operands)
    return entry if replayed is not None and _same_history(tensor, replayed, operands) else None


def _records() -> bool:
    """Return whether this thread is in the mode in which operations are recorded, without watches, hooks or a trace."""
    usual = LOCAL.watch is None and LOCAL.recorder is None and not LOCAL.saved_hooks
    return not ACTIVE_MODES or (usual and LOCAL.mode is MODES[True, False, False])


def _without_trace(x: Any) -> Any:
    """Return an argument in which each tensor of a traced value is a tensor of its array, with a history and a base if it has them."""
    if type(x) is Array:
        array = object.__new__(Array)
        array._tensor = _without_trace(x._tensor)
        return array
    if type(x) is Tensor and type(x._raw) is not ndarray:
        tensor = wrap(x._raw.array)
        if x._edge is not None:
            tensor._edge = Leaf(tensor)
        if x._view is not None:
            tensor._view = View(_without_trace(x._view.base), (), x._view.origin)
        return tensor
    if type(x) is tuple or type(x) is list:
        return type(x)([_without_trace(item) for item in x])
    return {name: _without_trace(item) for name, item in x.items()} if type(x) is dict else x


def _cache_entry(steps: _StepRecorder, operands: tuple[AnyArray, ...], end: Tensor) -> tuple[Any, ...] | None:
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
        entry.append((prim, params, tuple([numbers.get(id(x), (x,)) for x in datas])))
        numbers[id(out)] = len(numbers)
    is_number = end._raw is not steps.calls[-1][3] and steps.calls[-1][0].view
    return tuple(entry), is_number, end._view.origin if end._view is not None and type(end._view.origin) is str else ""


def _is_static(x: object) -> bool:
    if type(x) is dict:
        return all([_is_static(value) for value in x.values()])
    if type(x) is tuple:
        return all([_is_static(item) for item in x])
    return isinstance(x, _STATIC)


def _same_history(x: Tensor, y: Tensor, operands: tuple[AnyArray, ...]) -> bool:
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
