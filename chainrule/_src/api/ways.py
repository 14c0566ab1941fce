"""Learning the way of a call: which rows a function of NumPy's applies to which values, with which parameters.

Functions that are declared ``by_shape`` depend on shapes and static arguments alone. When such a call comes for the second time, it is
watched here once more; what it recorded is done again by C (``native/dispatch_cache.c``), and compared with what Python left. If they
are the same in every respect, such calls go this way from then on.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.api.watch import Watch
from chainrule._src.arrays.any_array import unscalar
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.modes import SPECIAL
from chainrule._src.tape.node import Node
from chainrule._src.tape.protocol import BY_SHAPE
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.view import has_origin

ndarray = np.ndarray
_STATIC = (int, float, bool, complex, str, slice, type(None), type(Ellipsis), np.dtype, type)
_INTO = frozenset({"out", "where", "dtype"})


class _Steps(Watch):
    """Notes the operations of a call, those of rows' values left out, and the nodes that they leave."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Any, dict[str, Any], Any]] = []
        self.nodes: list[Node] = []
        self.within = False

    def forward(self, prim: Any, datas: Any, params: Params) -> Any:
        if self.within:
            return super().forward(prim, datas, params)
        self.within = True
        try:
            out = unscalar(super().forward(prim, datas, params))
        finally:
            self.within = False
        self.calls.append((prim, tuple(datas), params, out))
        return out

    def recorded(self, node: Node) -> None:
        self.nodes.append(node)
        super().recorded(node)


def by_way(call: Any) -> Any:
    """A method of Arrays that depends on shapes and static arguments alone."""
    return (
        call
        if LOOPS is None
        else functools.update_wrapper(LOOPS.Operation(call, LOOPS.CACHED_METHOD, make_entry=learn), call)
    )


def functions_by_way(call: Any) -> Any:
    """``__array_function__``, for the functions that are ``BY_SHAPE``."""
    return (
        call
        if LOOPS is None
        else functools.update_wrapper(
            LOOPS.Operation(call, LOOPS.ARRAY_FUNCTION, table=BY_SHAPE, make_entry=learn), call
        )
    )


def learn(
    call: AnyFunction,
    args: tuple[object, ...],
    names: tuple[str, ...] | None,
    operands: tuple[AnyArray, ...],
    result: Array,
) -> tuple[Any, ...] | None:
    """The way of a call, as ``native/dispatch_cache.c`` has it; None if there is none that leaves the same.

    Args:
        names: those of the last arguments.
        operands: the tensors and plain arrays among the arguments.
        result: what the call gave.
    """
    tensor = result._tensor if type(result) is Array else None
    given = dict(zip(names, args[len(args) - len(names) :], strict=True)) if names else {}
    options = args[4] if len(args) == 5 and type(args[4]) is dict else given
    if type(tensor) is not Tensor or type(tensor._edge) is not Node or SPECIAL or not _INTO.isdisjoint(options):
        return None
    if any([tensor is x or tensor._raw is getattr(x, "_raw", x) for x in operands]):
        return None
    if any([type(x) is Tensor and has_origin(x) for x in operands]):
        return None
    steps = _Steps()
    with np.errstate(all="ignore"), steps:  # it has warned already
        again = call(*args[: len(args) - len(given)], **given)
    way = _way(steps, operands, again._tensor)
    if way is None or SPECIAL:
        return None
    with np.errstate(all="ignore"):
        found = LOOPS.replay(way, operands)
    return way if found is not None and _same(tensor, found, operands) else None


def _way(steps: _Steps, operands: tuple[AnyArray, ...], end: Tensor) -> tuple[Any, ...] | None:
    """What was noted, with the numbers of values in the place of arrays."""
    if not steps.calls or len(steps.nodes) != len(steps.calls) or end._edge is not steps.nodes[-1]:
        return None
    numbers = {id(getattr(x, "_raw", x)): i for i, x in enumerate(operands)}
    # If there are arrays, others may be made of them, else of static arguments alone.
    arrays = any([type(x) is ndarray for x in operands])
    way = []
    for prim, datas, params, out in steps.calls:
        unknown = [x for x in datas if id(x) not in numbers and type(x) not in (int, float)]
        if (unknown and arrays) or not _is_static(params) or type(out) is not ndarray or id(out) in numbers:
            return None
        way.append((prim, params, tuple([numbers.get(id(x), (x,)) for x in datas])))
        numbers[id(out)] = len(numbers)
    is_number = end._raw is not steps.calls[-1][3] and steps.calls[-1][0].view
    return tuple(way), is_number, end._view.origin if end._view is not None and type(end._view.origin) is str else ""


def _is_static(x: object) -> bool:
    if type(x) is dict:
        return all([_is_static(value) for value in x.values()])
    if type(x) is tuple:
        return all([_is_static(item) for item in x])
    return isinstance(x, _STATIC)


def _same(x: Tensor, y: Tensor, operands: tuple[AnyArray, ...]) -> bool:
    """Whether two tensors are the same, and all that was left on the tape from the operands to them."""
    if x._cut is not y._cut or not _alike(x._raw, y._raw):
        return False
    pairs = [(x._edge, y._edge)]
    if x._view is not None or y._view is not None:
        if not _same_view(x._view, y._view):
            return False
        pairs.append((x._view.base._edge, y._view.base._edge))
    ends = {id(t._edge) for t in operands if type(t) is Tensor}
    for a, b in pairs:  # which grows as it is walked
        if a is b:
            continue
        if type(a) is not Node or type(b) is not Node or id(a) in ends or len(pairs) > 500:
            return False
        about = [(n.prim, n.pullback, n.params, n.in_avals, n.hooks, n.code, n.lasti, len(n.edges)) for n in (a, b)]
        if about[0] != about[1] or len(a.saved) != len(b.saved):
            return False
        for p, q in zip(a.saved, b.saved, strict=True):
            if (p is x._raw) is not (q is y._raw) or not (p is q or _alike(p, q)):
                return False
        pairs += zip(a.edges, b.edges, strict=True)
    return True


def _alike(x: object, y: object) -> bool:
    if type(x) is not ndarray or type(y) is not ndarray:
        return type(x) is type(y) and type(x) in (int, float, type(None)) and repr(x) == repr(y)
    about = [(z.dtype, z.shape, z.strides, z.flags.writeable, z.base is None, z.tobytes()) for z in (x, y)]
    return about[0] == about[1]


def _same_view(x: Any, y: Any) -> bool:
    if x is None or y is None:
        return False
    same_base = x.base is y.base or _alike(x.base._raw, y.base._raw)  # else a result on the way, whose node is compared
    return bool(same_base and x.steps == y.steps and x.origin == y.origin and (x.before is None) is (y.before is None))
