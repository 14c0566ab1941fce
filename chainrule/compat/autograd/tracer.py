"""What programs ask about traced values, and the steps that operators are made of there."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from chainrule.api.array import Array, array_of
from chainrule.autograd.backward import grad
from chainrule.compat.autograd.extend import Box, notrace_primitive, primitive, register_notrace
from chainrule.compat.autograd.tracing import conjugate, differentiable, getval, isbox
from chainrule.compat.autograd.util import toposort

__all__ = [
    "Box",
    "Node",
    "VJPNode",
    "backward_pass",
    "getval",
    "isbox",
    "new_box",
    "notrace_primitive",
    "primitive",
    "register_notrace",
    "toposort",
    "trace",
]


class VJPNode:
    """The place of an Array on the tape: ``x._node``. A new root is the place of what ``new_box`` makes."""

    def __init__(self, array: Array | None = None) -> None:
        self.array = array

    @classmethod
    def new_root(cls) -> VJPNode:
        return cls()


#: the Arrays that ``new_box`` made: what ``backward_pass`` goes back to
_ROOTS: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()


def new_box(value: Any, trace: Any, node: VJPNode) -> Array:
    """An Array to call a function with; ``backward_pass`` gives gradients with respect to it."""
    node.array = box = Array(differentiable(getval(value)), requires_grad=True)
    _ROOTS[id(box)] = box
    return box


def backward_pass(g: Any, end_node: VJPNode) -> Any:
    """The gradient with respect to the root that an Array was computed from, given the Array's."""
    roots = [root.tensor for root in _ROOTS.values()]
    end = end_node.array
    if end is None:
        raise TypeError("backward_pass() of a node without a value: pass the _node of what a function returned")
    cotangent = Array(np.asarray(conjugate(getval(g)), end.dtype)).tensor
    found = [x for x in grad(end.tensor, roots, cotangent, retain_graph=True, allow_unused=True) if x is not None]
    if len(found) != 1:
        raise TypeError(f"backward_pass(): the value was computed from {len(found)} roots of new_box(), not from one")
    return conjugate(array_of(found[0]))


class Node:
    """The base of a program's own classes of nodes, for :func:`trace`."""

    @classmethod
    def new_root(cls, *args: Any, **kwargs: Any) -> Node:
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)  # type: ignore[attr-defined]
        return root


def trace(start_node: Any, fun: Any, x: Any) -> Any:
    raise NotImplementedError(
        "autograd.tracer.trace(): chainrule puts nodes of its own on the tape. chainrule.func.vjp differentiates, x.graph() draws a "
        "graph, chainrule.explain shows its numbers, and a chainrule.api.watch.Watch sees each operation"
    )
