"""HIPS autograd's low-level tracing API: ``trace``, ``new_box``, ``backward_pass``, and node classes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from chainrule._src.api.array import Array, array_of
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.tree import tree_map
from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule._src.tape.engine import reachable, reaches_outside, sweep
from chainrule._src.transforms.arguments import as_caller_type
from chainrule._src.transforms.trace import fresh_leaf
from chainrule.compat.autograd.builtins import SequenceBox
from chainrule.compat.autograd.extend import Box, notrace_primitive, primitive, register_notrace
from chainrule.compat.autograd.runs import ACTIVE, STARTS, Run
from chainrule.compat.autograd.tracing import as_differentiable, make_jvp, record_run, vjp_from_trace
from chainrule.compat.autograd.util import toposort
from chainrule.compat.autograd.values import conjugate, getval, isbox, to_scalars

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
    """The node of an Array (``x._node``), or a new root for ``new_box``."""

    def __init__(self, array: Array | None = None, pull: Callable[[Any], Any] | None = None) -> None:
        self.array = array
        self.pull = pull

    @classmethod
    def new_root(cls) -> VJPNode:
        return cls()


class JVPNode:
    """A node of forward mode, with its tangent ``node.g``."""

    def __init__(self, g: Any) -> None:
        self.g = g

    @classmethod
    def new_root(cls, g: object) -> JVPNode:
        return cls(g)


class TraceStack:
    """The stack of active runs. ``top`` is the number of the innermost one, -1 for none."""

    @property
    def top(self) -> int:
        return len(ACTIVE.runs) - 1

    @contextmanager
    def new_trace(self) -> Iterator[int]:
        """Start a run for the block, in which the program calls a function with values from ``new_box``."""
        with Run() as run:
            yield run.depth


trace_stack = TraceStack()


def new_box(value: object, trace: int, node: VJPNode) -> Any:
    """Return an Array (or a container of Arrays) as a new input, with respect to which ``backward_pass`` differentiates."""
    run = next((run for run in ACTIVE.runs if run.depth == trace and run.fun is None), None) or _unscoped_run(trace)
    boxes = tree_map(lambda x: _new_start(x, run), as_differentiable(value))
    if isinstance(value, (tuple, list)):
        boxes = SequenceBox(boxes)
        boxes._trace = trace
    node.array = boxes
    return boxes


#: The runs of boxes created outside of ``new_trace``, by trace number and enclosing run.
_UNSCOPED_RUNS: weakref.WeakValueDictionary[tuple[int, int | None], Run] = weakref.WeakValueDictionary()


def _unscoped_run(trace: int) -> Run:
    """Return the run of boxes created outside of ``new_trace``; boxes with the same trace number share a run."""
    key = trace, ACTIVE.runs[-1].start_seq if ACTIVE.runs else None
    run = _UNSCOPED_RUNS.get(key)
    if run is None:
        _UNSCOPED_RUNS[key] = run = Run()
        run.depth = max(trace, len(ACTIVE.runs))
    return run


def _new_start(x: AnyArray, run: Run) -> Array:
    start = array_of(fresh_leaf(x))
    run.start(start)
    return start


def backward_pass(g: TensorLike, end_node: VJPNode) -> Any:
    """Return the gradient with respect to the innermost input (from ``new_box`` or ``trace``) of an Array's node."""
    if end_node.pull is not None:
        return end_node.pull(g)
    end = end_node.array
    if end is None:
        raise TypeError("backward_pass() of a node without a value: pass the _node of a function's result")
    edge = end.tensor._edge
    order = [] if edge is None else reachable([edge])
    starts = [start for start in order if start in STARTS]
    run = max((STARTS[start] for start in starts), key=lambda run: run.start_seq, default=None)
    targets = [start for start in starts if STARTS[start] is run]
    if run is None or len(targets) != 1:
        raise TypeError(
            f"backward_pass(): the value depends on {len(targets)} inputs of new_box(), but must depend on one"
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
    return to_scalars(conjugate(as_caller_type(found, False)))


class Node:
    """The base of user-defined node classes for :func:`trace`."""

    @classmethod
    def new_root(cls, *args: object, **kwargs: object) -> Node:
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)  # type: ignore[attr-defined]
        return root


def trace(start_node: object, fun: AnyFunction, x: object) -> tuple[Any, Any]:
    """Return ``(value, node)`` of a function. ``backward_pass`` of the node, or ``g`` of a JVPNode, is the derivative."""
    if isinstance(start_node, JVPNode):
        value, tangent = make_jvp(fun, x)(start_node.g)
        return value, JVPNode(tangent)
    if not isinstance(start_node, VJPNode):
        raise NotImplementedError(
            "autograd.tracer.trace(): chainrule records its own nodes. Use chainrule.func.vjp to differentiate, x.graph() to draw "
            "a graph, chainrule.explain to show its values, and a chainrule._src.api.watch.Watch to observe operations"
        )
    run, recording = record_run("trace(start_node, fun, x)", fun, x)
    pull, value = vjp_from_trace(run, recording, x)
    return value, None if run.is_constant else VJPNode(pull=pull)


show(globals())
