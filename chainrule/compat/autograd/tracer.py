"""What programs ask about traced values, and the steps that operators are made of there."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from chainrule._src.api.array import Array, array_of
from chainrule._src.arrays.tree import tree_map
from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule._src.tape.engine import reachable, reaches_outside, sweep
from chainrule._src.transforms.arguments import as_caller_type
from chainrule._src.transforms.trace import fresh_leaf
from chainrule.compat.autograd.builtins import SequenceBox
from chainrule.compat.autograd.extend import Box, notrace_primitive, primitive, register_notrace
from chainrule.compat.autograd.runs import GOING, STARTS, Run
from chainrule.compat.autograd.tracing import make_jvp, points, recorded, vjp_of
from chainrule.compat.autograd.util import toposort
from chainrule.compat.autograd.values import conjugate, getval, isbox, shown

__all__ = [
    "Box",
    "JVPNode",
    "Node",
    "TraceStack",
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
    "trace_stack",
]


class VJPNode:
    """The place of an Array on the tape: ``x._node``. A new root is the place of what ``new_box`` makes."""

    def __init__(self, array: Array | None = None, pull: Callable[[Any], Any] | None = None) -> None:
        self.array = array
        self.pull = pull

    @classmethod
    def new_root(cls) -> VJPNode:
        return cls()


class JVPNode:
    """Where a tangent starts, or ends: ``node.g``."""

    def __init__(self, g: Any) -> None:
        self.g = g

    @classmethod
    def new_root(cls, g: object) -> JVPNode:
        return cls(g)


class TraceStack:
    """The functions that are being differentiated. ``top`` is the number of the innermost one, -1 for none."""

    @property
    def top(self) -> int:
        return len(GOING.runs) - 1

    @contextmanager
    def new_trace(self) -> Iterator[int]:
        """Return a function that the program calls by itself, in the block, with what ``new_box`` makes."""
        with Run() as run:
            yield run.depth


trace_stack = TraceStack()


def new_box(value: object, trace: int, node: VJPNode) -> Any:
    """Return an Array (Arrays, for a tuple or list) to call a function with; ``backward_pass`` gives gradients with respect to it."""
    run = next((run for run in GOING.runs if run.depth == trace and run.fun is None), None) or _loose(trace)
    boxes = tree_map(lambda x: _started(x, run), points(value))
    if isinstance(value, (tuple, list)):
        boxes = SequenceBox(boxes)
        boxes._trace = trace
    node.array = boxes
    return boxes


#: the runs of boxes that were made outside of ``new_trace``, by their number and the run around them
_LOOSE: weakref.WeakValueDictionary[tuple[int, int | None], Run] = weakref.WeakValueDictionary()


def _loose(trace: int) -> Run:
    """Boxes of one number are of one run, whose derivatives ``_value`` leaves behind together."""
    key = trace, GOING.runs[-1].began if GOING.runs else None
    run = _LOOSE.get(key)
    if run is None:
        _LOOSE[key] = run = Run()
    return run


def _started(x: AnyArray, run: Run) -> Array:
    start = array_of(fresh_leaf(x))
    run.start(start)
    return start


def backward_pass(g: TensorLike, end_node: VJPNode) -> Any:
    """Return the gradient with respect to what an Array was computed from, the innermost start of ``new_box`` or ``trace``."""
    if end_node.pull is not None:
        return end_node.pull(g)
    end = end_node.array
    if end is None:
        raise TypeError("backward_pass() of a node without a value: pass the _node of what a function returned")
    edge = end.tensor._edge
    order = [] if edge is None else reachable([edge])
    starts = [start for start in order if start in STARTS]
    run = max((STARTS[start] for start in starts), key=lambda run: run.began, default=None)
    targets = [start for start in starts if STARTS[start] is run]
    if run is None or len(targets) != 1:
        raise TypeError(
            f"backward_pass(): the value was computed from {len(targets)} starts of new_box(), not from one"
        )
    cotangent = Array(conjugate(g), end.dtype).tensor
    nested = cotangent.requires_grad or reaches_outside([edge], targets[0].seq, targets)
    (found,) = sweep(
        [edge],
        [cotangent if nested else cotangent._raw],
        targets,
        retain_graph=True,
        create_graph=nested,
        accumulate=False,
        order=[edge for edge in order if edge not in run.hidden],
    )
    return shown(conjugate(as_caller_type(found, False)))


class Node:
    """The base of a program's own classes of nodes, for :func:`trace`."""

    @classmethod
    def new_root(cls, *args: object, **kwargs: object) -> Node:
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)  # type: ignore[attr-defined]
        return root


def trace(start_node: object, fun: AnyFunction, x: object) -> tuple[Any, Any]:
    """``(value, node)`` of a function: the node's ``backward_pass`` or, of a JVPNode, its ``g`` is the derivative."""
    if isinstance(start_node, JVPNode):
        value, tangent = make_jvp(fun, x)(start_node.g)
        return value, JVPNode(tangent)
    if not isinstance(start_node, VJPNode):
        raise NotImplementedError(
            "autograd.tracer.trace(): chainrule puts nodes of its own on the tape. chainrule.func.vjp differentiates, x.graph() draws "
            "a graph, chainrule.explain shows its numbers, and a chainrule._src.api.watch.Watch sees each operation"
        )
    run, recording = recorded("trace(start_node, fun, x)", fun, x)
    pull, value = vjp_of(run, recording, x)
    return value, None if run.is_constant else VJPNode(pull=pull)
