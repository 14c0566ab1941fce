"""Run a backward pass and record the arguments and results of every rule. ``entry.explain_tensors`` calls ``record_sweep``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.api.watch import Watch
from chainrule._src.arrays.types import NumpyArray, Saved
from chainrule._src.tape import engine
from chainrule._src.tape.node import Edge, Edges, Leaf, Node
from chainrule._src.tape.saved import Packed, unpack_saved

ndarray = np.ndarray


class RuleRecord(NamedTuple):
    """One rule that ran.

    Attributes:
        node: the node whose rule ran.
        g: the cotangent of its output; a tuple for several outputs.
        saved: its saved values, unpacked.
        edges: the edges that its results flow to; None for operands without a gradient.
        grads: its results.
    """

    node: Node
    g: Any
    saved: Saved
    edges: Edges
    grads: tuple[NumpyArray | None, ...]


class RuleRecorder(Watch):
    """Records every rule that runs."""

    def __init__(self) -> None:
        self.records: list[RuleRecord] = []

    def backward(self, node: Node, g: object, saved: Saved, edges: Edges) -> tuple[NumpyArray, ...]:
        saved = unpack_saved(saved) if type(saved) is Packed else saved
        grads = super().backward(node, g, saved, edges)
        self.records.append(
            RuleRecord(node, _arrays(g) if type(g) is tuple else np.asarray(g), saved, edges, _arrays(grads))
        )
        return grads


def _arrays(parts: tuple[NumpyArray, ...]) -> tuple[NumpyArray, ...]:
    return tuple(None if part is None else np.asarray(part) for part in parts)


def record_sweep(
    roots: Sequence[Edge], starts: Sequence[NumpyArray], targets: Sequence[Edge]
) -> tuple[list[RuleRecord], list[NumpyArray | None]]:
    """Run a sweep; return its records in order, and the targets' cotangents (None if no path leads to a target)."""
    recorder = RuleRecorder()
    with no_grad(), recorder:
        found = engine.sweep(
            roots, starts, targets, retain_graph=True, create_graph=False, accumulate=False, retain_grads=False
        )
    return recorder.records, [None if g is None else np.asarray(g) for g in found]


def leaves_below(roots: Sequence[Edge]) -> list[Leaf]:
    """Return the leaves that the roots depend on, in the order in which operations use them."""
    nodes = (edge for edge in engine.reachable(roots) if isinstance(edge, Node))  # oldest first
    return [e for e in dict.fromkeys([*(below for node in nodes for below in node.edges), *roots]) if type(e) is Leaf]
