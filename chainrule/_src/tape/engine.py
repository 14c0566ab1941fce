"""The backward pass: one sweep over the reachable part of the tape, newest node first.

Every node's rule runs once, when all cotangents of its outputs have arrived. With ``create_graph`` the rules get
tensors instead of raw arrays, so what they compute is recorded; nothing else differs.

Gradients of leaves are collected during the sweep and written to ``.grad`` at its end, in one step that neither an
exception nor another thread can divide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add, attrgetter
from sys import _getframe
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import is_recorded, unscalar
from chainrule._src.arrays.types import AnyArray, Cotangents
from chainrule._src.messages import errors
from chainrule._src.messages.places import note_frame
from chainrule._src.tape import regions
from chainrule._src.tape.accumulate import arrivals, write_grads, write_plain
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.foreign import zeros_beside
from chainrule._src.tape.hooks import post_hooks, pre_hooks, tensor_hooks
from chainrule._src.tape.modes import LOCAL, SPECIAL, switch
from chainrule._src.tape.node import Edge, Edges, Freed, Leaf, Node, Output, Pending, leading_to
from chainrule._src.tape.saved import check_saved, saved_tensors
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.ties import at_ties, met, tied
from chainrule._src.tape.versions import CLOCK, GUARDED, check_guarded
from chainrule._src.tape.warned import at_users_line, is_ours

ndarray = np.ndarray
_by_seq = attrgetter("seq")
_LARGE = 1000  # elements from which adding in place beats allocating a sum


def reachable(roots: Iterable[Edge], leaves: bool = True) -> list[Edge]:
    """All nodes and outputs (and leaves) that the roots depend on, oldest first."""
    left_out = None if leaves else Leaf
    seen = {root for root in roots if type(root) is not left_out}
    found = list(seen)
    for node in found:  # which grows as it is walked
        for edge in node.edges:
            if edge is not None and type(edge) is not left_out and edge not in seen:
                seen.add(edge)
                found.append(edge)
    found.sort(key=_by_seq)
    return found


def reaches_outside(roots: list[Edge], began: int, own: list[Edge]) -> bool:
    """Whether the roots depend on a leaf that was there before the time ``began``, and is none of one's ``own``."""
    found = None if LOOPS is None else LOOPS.reaches_outside(roots, began, own)
    if found is None:
        found = any([type(edge) is Leaf and edge.seq < began and edge not in own for edge in reachable(roots)])
    return found


#: call a VJP rule on traced values, and add two of them, in C; None without the extension
TRACE_RULE, TRACE_SUM = (None, None) if LOOPS is None else (LOOPS.trace_rule, LOOPS.trace_sum)


class Sweep:
    """One backward pass: where it starts, and what is asked of it. ``LOCAL.sweep`` is the one that is running.

    Attributes:
        roots, cotangents: the edges of the outputs, and for each its cotangent.
        order: what it visits, oldest first, where the caller says so; None: all that the roots depend on.
        wanted: edges whose cotangents are to be returned, or None.
        captured: what arrived at them.
        retained: the tensors that retain their gradients, with these.
        retain_graph, create_graph: as in ``backward``.
        ties: cotangents of tied rows are tied to the operands (see ``ties``).
        escaped: the ids of arrays that somebody else holds, or may hold: none of them becomes a ``.grad``.
        notes: what others keep for as long as it runs.
        freed: what the saved values that it used up become, which knows where it was called.
    """

    __slots__ = (
        "_useful", "captured", "cotangents", "create_graph", "escaped", "freed", "notes", "order", "retain_graph", "retained",
        "roots", "ties", "wanted",
    )  # fmt: skip

    roots: Sequence[Edge]
    cotangents: Sequence[Any]
    order: list[Edge] | None
    wanted: set[Edge] | None
    captured: dict[Edge, AnyArray]
    retained: list[tuple[Tensor, AnyArray]]
    retain_graph: bool
    create_graph: bool
    ties: bool
    escaped: set[int]
    notes: dict[object, Any]
    freed: Freed

    @property
    def useful(self) -> set[Edge] | None:
        """The edges it is confined to, from which a wanted one can be reached; None: it goes everywhere."""
        if self.wanted is None:
            return None
        try:
            return self._useful
        except AttributeError:
            self._useful: set[Edge] = leading_to(self.nodes(), self.wanted)
            return self._useful

    def nodes(self) -> list[Any]:
        """What it visits, oldest first, as far as that is of use."""
        return reachable(self.roots, leaves=False) if self.order is None else list(self.order)

    def visit(self, node: Node | Output, g: Any, edges: Edges | None = None) -> tuple[Edges, Any] | None:
        """Run the hooks and the rule of a node: its edges, and what arrives at each. None: nothing goes on from here.

        What arrives at an output is one cotangent, which goes to its place among the node's.

        Args:
            edges: the node's, with None in the place of those that are of no use, where the caller knows.
        """
        create_graph, hooks = self.create_graph, node.hooks
        if hooks is not None:
            g = tensor_hooks(node, g, hooks, self.retained, create_graph)
        if self.wanted is not None and node in self.wanted:
            self.captured[node] = g
        if type(node) is Output:
            return node.edges, g
        if edges is None:
            useful = self.useful
            edges = node.edges if useful is None else tuple([edge if edge in useful else None for edge in node.edges])
        if self.wanted is not None and not any(edges):
            return None
        if hooks is not None and hooks.pre:
            g = pre_hooks(g, hooks, create_graph)
            if g is None:
                return None
        saved = node.saved
        if saved:
            if CLOCK.latest > node.seq:
                check_saved(node)
            if create_graph:
                saved = saved_tensors(node)
            elif not self.retain_graph:
                node.saved = self.freed
        elif type(saved) is Freed:
            raise errors.second_backward(node)
        if type(g) is list:
            g = _fill_missing_cotangents(node, g)
        watch = LOCAL.watch if SPECIAL else None
        if (
            TRACE_RULE is not None
            and LOCAL.recorder is not None
            and not create_graph
            and hooks is None
            and watch is None
        ):
            grads = TRACE_RULE(node, g, saved, edges, self.freed)
            if grads is not None:
                return edges, grads
        rule = node.pullback if watch is None else watch.backward
        grads = at_users_line(rule, node, g, saved, edges) if is_ours(node.prim) else rule(node, g, saved, edges)
        if create_graph and self.ties and node.prim.tied:
            grads = tied(node, grads)
        if hooks is not None and hooks.post:
            grads = post_hooks(grads, g, hooks, create_graph)
            if len(grads) == 1 and grads[0] is None:
                return None
        return edges, grads


def sweep(
    roots: Sequence[Edge],
    cotangents: Sequence[Any],
    targets: Sequence[Edge] | None = None,
    *,
    retain_graph: bool,
    create_graph: bool,
    accumulate: bool = True,
    retain_grads: bool = True,
    ties: bool = False,
    order: list[Edge] | None = None,
) -> list[Any]:
    """Run backward from ``roots``.

    Args:
        roots, cotangents: the edges of the outputs, and for each raw data, or a tensor with ``create_graph``.
        targets: edges whose cotangents are wanted; only paths to them are visited. None: all leaves.
        retain_graph: keep the saved values for another sweep.
        create_graph: record what the rules compute.
        accumulate: add the gradients of leaves to their tensors' ``.grad``.
        retain_grads: set ``.grad`` of the tensors on the way that retain theirs.
        ties: the caller is PyTorch's face, where a gradient may depend on what it has no derivative by; see ``ties``.
        order: ``reachable(roots)``, where the caller has it already, or a part of it.

    Returns:
        The cotangents of the targets, None where no path led to one. Where ties alone did it is zeros, for a leaf, and
        otherwise ``ZERO`` if ``ties`` says that it is known here, else None.
    """
    if GUARDED:
        check_guarded()
    this = Sweep()
    this.roots, this.cotangents = roots, cotangents
    this.order = None if order is None else [edge for edge in order if type(edge) is not Leaf]
    this.wanted = None if targets is None else set(targets)
    this.captured, this.retained, this.notes = {}, [], {}
    this.retain_graph, this.create_graph = retain_graph, create_graph
    this.ties = ties and create_graph
    this.escaped = set(map(id, cotangents))
    if LOCAL.recorder is not None:
        this.escaped.update([id(g.array) for g in cotangents if is_recorded(g)])
    this.freed = Freed()
    note_frame(this.freed, _getframe(1))
    outer, outside, packing = LOCAL.sweep, LOCAL.mode, LOCAL.saved_hooks
    try:
        LOCAL.sweep = this
        if create_graph:
            switch(outside.with_grad(True))
        arrived = _visit(this)
        if SPECIAL and LOCAL.watch is not None:
            LOCAL.watch.leaf_gradients(arrived)
        plain = accumulate and targets is None and not (create_graph or this.retained or this.notes)
        if not (plain and write_plain(arrived, this.escaped)):
            leaves = arrivals(this, arrived, accumulate)
            if this.notes:
                at_ties(this, reachable(met(this.notes)), leaves, accumulate, ties)
            if not retain_grads:
                this.retained.clear()
            if leaves or this.retained:
                write_grads(leaves, this.retained, this.captured, this.escaped, create_graph)
    finally:
        left, hooks = LOCAL.mode, LOCAL.saved_hooks
        LOCAL.sweep, LOCAL.mode, LOCAL.saved_hooks = outer, outside, packing
        if left.records is not outside.records:
            SPECIAL.pop() if outside.records else SPECIAL.append(None)
        if hooks is not packing:  # Ctrl-C came as a context was to be left
            del SPECIAL[: max(0, len(hooks) - len(packing))]
    return [] if targets is None else list(map(this.captured.get, targets))


def _visit(this: Sweep) -> Pending:
    """Run the rules of the nodes, newest first; what arrived at the leaves, and at roots from which nothing that is wanted is reached."""
    pending: Pending = {}
    order: list[Any] | None = None
    owned: set[Edge] = set()  # edges whose pending cotangent is a sum made here, so may be added to in place
    if LOOPS is not None and not SPECIAL:
        found = LOOPS.sweep(
            list(this.roots), list(this.cotangents), this.order, this.wanted, this.captured, this.freed, bool(this.retain_graph),
            bool(this.create_graph), check_saved, this.visit, Tensor.__add__ if this.create_graph else _sum,
        )  # fmt: skip
        if found is not None:
            pending, order = found  # all of it, or up to where a region may start
    if order is None:
        useful, order = this.useful, this.nodes()
        if useful is not None:
            order = [edge for edge in order if edge in useful]
        for root, g in zip(this.roots, this.cotangents, strict=True):
            _arrive(pending, owned, root, g)
    alone: set[Edge] = set()  # large nodes that are in no region
    while order:
        node = order.pop()
        g = pending.pop(node, None)
        if g is None:
            continue
        large = type(g) is ndarray and g.size >= regions.NOTICED
        if large and regions.sweep_together(this, node, g, order, pending, owned, alone):
            continue
        found = this.visit(node, g)
        if found is None:
            continue
        edges, grads = found
        if type(node) is Output:
            parts = pending.setdefault(node.node, [None] * len(node.node.params["_outputs"]))
            have = parts[node.index]
            parts[node.index] = grads if have is None else _sum(have, grads)
            continue
        for edge, grad in zip(edges, grads):
            if edge is not None and grad is not None:
                _arrive(pending, owned, edge, grad)
    return pending


def _arrive(pending: Pending, owned: set[Edge], edge: Edge, g: AnyArray) -> None:
    """A cotangent arrives at an edge, where another may be waiting."""
    before = pending.get(edge)
    if before is None:
        pending[edge] = np.asarray(g) if isinstance(g, np.floating) else g  # complex ones round otherwise in arrays
    elif edge in owned and type(g) is ndarray:
        np.add(before, g, before)
    else:
        pending[edge] = _sum(before, g)
        if type(before) is ndarray and before.size > _LARGE:
            owned.add(edge)


def _sum(x: AnyArray, y: AnyArray) -> AnyArray:
    if TRACE_SUM is not None and is_recorded(x):
        total = TRACE_SUM(x, y, LOCAL.sweep.freed)
        if total is not None:
            return total
    total = at_users_line(add, x, y)
    return total if type(total) is ndarray else unscalar(total)


def _fill_missing_cotangents(node: Node, parts: list[AnyArray | None]) -> Cotangents:
    """The cotangents of a node with several outputs; zeros for those nothing arrived at."""
    outputs = node.params["_outputs"]
    there = next((part for part in parts if part is not None), None)
    return tuple(
        zeros_beside(there, *about) if part is None and about else part
        for part, about in zip(parts, outputs, strict=True)
    )
