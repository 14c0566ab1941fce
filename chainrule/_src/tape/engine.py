"""The backward pass: one sweep over the reachable part of the tape, newest node first.

``backward``, ``grad`` and ``vjp`` call ``sweep`` with the edges of outputs and their cotangents. It returns the
cotangents of the targets, or accumulates the gradients of leaves into ``.grad``.

The VJP rule of each node runs once, when the cotangents of its outputs are complete. With ``create_graph`` the rules get
tensors instead of raw arrays, so their operations are recorded; nothing else differs.

The gradients of leaves are collected during the sweep and written to ``.grad`` at its end, in one step that no
exception and no other thread can interrupt.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from operator import add, attrgetter
from sys import _getframe
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import is_recorded, scalar_to_array
from chainrule._src.arrays.types import AnyArray, Cotangents
from chainrule._src.messages import errors
from chainrule._src.messages.source_locations import note_frame
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.accumulate import leaf_gradients, write_grads, write_plain
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.foreign import zeros_on_device_of
from chainrule._src.tape.fp_warnings import at_users_line, is_ours
from chainrule._src.tape.hooks import post_hooks, pre_hooks, tensor_hooks
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, switch_mode
from chainrule._src.tape.node import Edge, Edges, Freed, Leaf, Node, Output, Pending, leading_to
from chainrule._src.tape.saved import check_saved, saved_tensors
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.ties import add_zeros_at_ties, tied_cotangents, visited_ties
from chainrule._src.tape.versions import CLOCK, GUARDED, check_guarded

ndarray = np.ndarray
_by_seq = attrgetter("seq")
REGION_SIZE = 65_536  # minimum number of elements of a region (``tape.regions``, which is imported with the first one)
_LARGE = 1000  # number of elements above which adding in place is faster than allocating a sum


def reachable(roots: Iterable[Edge], leaves: bool = True) -> list[Edge]:
    """Return all nodes and outputs (and leaves) that the roots depend on, oldest first."""
    excluded = None if leaves else Leaf
    seen = {root for root in roots if type(root) is not excluded}
    found = list(seen)
    for node in found:  # the list grows during the loop
        for edge in node.edges:
            if edge is not None and type(edge) is not excluded and edge not in seen:
                seen.add(edge)
                found.append(edge)
    found.sort(key=_by_seq)
    return found


def reaches_outside(roots: list[Edge], start_seq: int, excluded: list[Edge]) -> bool:
    """Return whether the roots depend on a leaf that is older than sequence number ``start_seq`` and is not in ``excluded``."""
    found = None if LOOPS is None else LOOPS.reaches_outside(roots, start_seq, excluded)
    if found is None:
        found = any([type(edge) is Leaf and edge.seq < start_seq and edge not in excluded for edge in reachable(roots)])
    return found


#: a C function that adds two traced values; None without the extension
TRACE_SUM = None if LOOPS is None else LOOPS.trace_sum


class Sweep:
    """The state of one backward pass. ``LOCAL.sweep`` is the running pass of the thread.

    Attributes:
        roots, cotangents: the edges of the outputs, and the cotangent of each.
        order: the edges to visit, oldest first, if the caller passed them; None: all edges that the roots depend on.
        wanted: the edges whose cotangents are returned, or None.
        captured: the cotangents of the wanted edges.
        retained: pairs (tensor, gradient) of the tensors that retain their gradients.
        retain_graph, create_graph: as in ``backward``.
        ties: cotangents of primitives with ``tied=True`` are tied to the operands (see ``ties``).
        escaped: ids of arrays to which the user may have references: none of them becomes a ``.grad``.
        notes: data that other modules keep for the duration of the pass.
        freed: the value that replaces freed saved values; it records where the pass was called.
        node: the node whose VJP rules run in C while the thread is traced, for the source lines of warnings.
    """

    __slots__ = (
        "_useful", "captured", "cotangents", "create_graph", "escaped", "freed", "node", "notes", "order", "retain_graph", "retained",
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
    node: Edge | None

    @property
    def useful(self) -> set[Edge] | None:
        """The edges from which a wanted edge can be reached; None: the sweep visits all edges."""
        if self.wanted is None:
            return None
        try:
            return self._useful
        except AttributeError:
            self._useful: set[Edge] = leading_to(self.nodes(), self.wanted)
            return self._useful

    def nodes(self) -> list[Any]:
        """Return the nodes and outputs to visit, oldest first."""
        return reachable(self.roots, leaves=False) if self.order is None else list(self.order)

    def visit(self, node: Node | Output, g: Any, edges: Edges | None = None) -> tuple[Edges, Any] | None:
        """Run the hooks and the VJP rule of a node. Return its edges and a cotangent for each; None: propagate nothing.

        For an Output, return its one cotangent, which goes into its slot of the node's cotangents.

        Args:
            edges: the node's edges, with None for those from which no wanted edge can be reached; None: compute them.
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
            if ACTIVE_MODES and (recorder := trace_hooks.current_recorder()) is not None and recorder.overwritten:
                recorder.check_saved(saved)
            if create_graph:
                saved = saved_tensors(node)
            elif not self.retain_graph:
                node.saved = self.freed
        elif type(saved) is Freed:
            raise errors.second_backward(node)
        if type(g) is list:
            g = _fill_missing_cotangents(node, g)
        watch = LOCAL.watch if ACTIVE_MODES else None
        rule = node.pullback if watch is None else watch.backward
        if not is_ours(node.prim):
            grads = rule(node, g, saved, edges)
        elif ACTIVE_MODES and watch is None and not create_graph and trace_hooks.is_tracing():
            grads = at_users_line(trace_hooks.current_recorder().pull_back, node, g, saved, edges, self.freed)
        else:
            grads = at_users_line(rule, node, g, saved, edges)
        if create_graph and self.ties and node.prim.tied:
            grads = tied_cotangents(node, grads)
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
        targets: the edges whose cotangents are returned; only paths to them are visited. None: all leaves.
        retain_graph: keep the saved values for another sweep.
        create_graph: record the operations of the rules.
        accumulate: add the gradients of leaves to their tensors' ``.grad``.
        retain_grads: set ``.grad`` of non-leaf tensors that retain their gradients.
        ties: follow PyTorch's API, where a gradient may depend on a tensor with derivative zero; see ``ties``.
        order: ``reachable(roots)``, or a part of it, if the caller has it already.

    Returns:
        The cotangents of the targets. A target that no path reaches has None. A target that only ties reach has zeros
        if it is a leaf. If it is no leaf it has ``ZERO`` with ``ties``, and otherwise None.
    """
    if GUARDED:
        check_guarded()
    state = Sweep()
    state.roots, state.cotangents = roots, cotangents
    state.order = None if order is None else [edge for edge in order if type(edge) is not Leaf]
    state.wanted = None if targets is None else set(targets)
    state.captured, state.retained, state.notes = {}, [], {}
    state.retain_graph, state.create_graph = retain_graph, create_graph
    state.ties = ties and create_graph
    state.escaped = set(map(id, cotangents))
    if ACTIVE_MODES and trace_hooks.is_tracing():
        state.escaped.update([id(g.array) for g in cotangents if is_recorded(g)])
    state.freed, state.node = Freed(), None
    note_frame(state.freed, _getframe(1))
    outer_sweep, outer_mode, outer_hooks = LOCAL.sweep, LOCAL.mode, LOCAL.saved_hooks
    try:
        LOCAL.sweep = state
        if create_graph:
            switch_mode(outer_mode.with_grad(True))
        leaf_cotangents = _visit(state)
        if ACTIVE_MODES and LOCAL.watch is not None:
            LOCAL.watch.leaf_gradients(leaf_cotangents)
        plain = accumulate and targets is None and not (create_graph or state.retained or state.notes)
        if not (plain and write_plain(leaf_cotangents, state.escaped)):
            leaves = leaf_gradients(state, leaf_cotangents, accumulate)
            if state.notes:
                add_zeros_at_ties(state, reachable(visited_ties(state.notes)), leaves, accumulate, ties)
            if not retain_grads:
                state.retained.clear()
            if leaves or state.retained:
                write_grads(leaves, state.retained, state.captured, state.escaped, create_graph)
    finally:
        mode, hooks = LOCAL.mode, LOCAL.saved_hooks
        LOCAL.sweep, LOCAL.mode, LOCAL.saved_hooks = outer_sweep, outer_mode, outer_hooks
        if mode.records is not outer_mode.records:
            ACTIVE_MODES.pop() if outer_mode.records else ACTIVE_MODES.append(None)
        if hooks is not outer_hooks:  # Ctrl-C interrupted the exit of a context
            del ACTIVE_MODES[: max(0, len(hooks) - len(outer_hooks))]
    return [] if targets is None else list(map(state.captured.get, targets))


def _visit(state: Sweep) -> Pending:
    """Run the rules of the nodes, newest first. Return the cotangents of the leaves, and of roots that lead to no target."""
    traced = ACTIVE_MODES and trace_hooks.is_tracing() and LOCAL.watch is None and not state.create_graph
    if LOOPS is not None and (traced or not ACTIVE_MODES):
        arrived: Pending | None = LOOPS.sweep(
            list(state.roots), list(state.cotangents), state.order, state.wanted, state.captured, state.freed, bool(state.retain_graph),
            bool(state.create_graph), check_saved, state.visit, Tensor.__add__ if state.create_graph else _sum, state if traced else None,
        )  # fmt: skip
        if arrived is not None:
            return arrived
    pending: Pending = {}
    owned: set[Edge] = set()  # edges whose pending cotangent was allocated here, so that it can be added to in place
    order: list[Any] = state.nodes()
    useful = state.useful
    if useful is not None:
        order = [edge for edge in order if edge in useful]
    for root, g in zip(state.roots, state.cotangents, strict=True):
        _accumulate(pending, owned, root, g)
    outside_regions: set[Edge] = set()  # nodes with large cotangents that are in no region of two nodes
    while order:
        node = order.pop()
        g = pending.pop(node, None)
        if g is None:
            continue
        if type(g) is ndarray and g.size >= REGION_SIZE:
            regions = importlib.import_module("chainrule._src.tape.regions")
            if regions.sweep_region(state, node, g, order, pending, owned, outside_regions):
                continue
        found = state.visit(node, g)
        if found is None:
            continue
        edges, grads = found
        if type(node) is Output:
            parts = pending.setdefault(node.node, [None] * len(node.node.params["_outputs"]))
            before = parts[node.index]
            parts[node.index] = grads if before is None else _sum(before, grads)
            continue
        for edge, grad in zip(edges, grads):
            if edge is not None and grad is not None:
                _accumulate(pending, owned, edge, grad)
    return pending


def _accumulate(pending: Pending, owned: set[Edge], edge: Edge, g: AnyArray) -> None:
    """Add a cotangent to the pending one of an edge."""
    before = pending.get(edge)
    if before is None:
        # NumPy rounds complex scalars and arrays differently, so complex scalars stay scalars
        pending[edge] = np.asarray(g) if isinstance(g, np.floating) else g
    elif edge in owned and type(g) is ndarray:
        np.add(before, g, before)
    else:
        pending[edge] = _sum(before, g)
        if type(before) is ndarray and before.size > _LARGE:
            owned.add(edge)


def _sum(x: AnyArray, y: AnyArray) -> AnyArray:
    if TRACE_SUM is not None and is_recorded(x):
        total = at_users_line(TRACE_SUM, x, y, LOCAL.sweep.freed)
        if total is not None:
            return total
    total = at_users_line(add, x, y)
    return total if type(total) is ndarray else scalar_to_array(total)


def _fill_missing_cotangents(node: Node, parts: list[AnyArray | None]) -> Cotangents:
    """Return the cotangents of a node with several outputs, with zeros for outputs without a cotangent."""
    avals = node.params["_outputs"]
    first = next((part for part in parts if part is not None), None)
    return tuple(
        zeros_on_device_of(first, *aval) if part is None and aval else part
        for part, aval in zip(parts, avals, strict=True)
    )
