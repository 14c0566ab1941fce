"""The backward pass: one sweep over the reachable part of the tape, newest node first.

Every node's rule runs once, when all cotangents of its outputs have arrived. With ``create_graph`` the rules get
tensors instead of raw arrays, so what they compute is recorded; nothing else differs.

Gradients of leaves are collected during the sweep and written to ``.grad`` at its end, in one step that neither an
exception nor another thread can divide.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core import regions
from chainrule.core.modes import LOCAL, STATE, _set_grad
from chainrule.core.node import FREED, Leaf, Node, Output
from chainrule.core.saved import Packed, unpack
from chainrule.core.tensor import Tensor, wrap
from chainrule.core.versions import CLOCK, writes_of

ndarray = np.ndarray
_by_seq = attrgetter("seq")
_ACCUMULATE = threading.RLock()
_LARGE = 1000  # elements from which adding in place beats allocating a sum


def reachable(roots: Iterable[Any]) -> list[Any]:
    """All nodes, outputs and leaves that the roots depend on, oldest first."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=_by_seq)


def leading_to(order: list[Any], targets: set[Any]) -> set[Any]:
    """The members of ``order`` (oldest first) from which a target can be reached, targets included."""
    useful = set(targets)
    for edge in order:
        if edge not in useful:
            for below in edge.edges:
                if below in useful:
                    useful.add(edge)
                    break
    return useful


def sweep(
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    targets: Sequence[Any] | None = None,
    *,
    retain_graph: bool,
    create_graph: bool,
    accumulate: bool = True,
    order: list[Any] | None = None,
) -> list[Any]:
    """Run backward from ``roots``.

    Args:
        roots: the edges of the outputs.
        cotangents: one for each: raw data, or tensors with ``create_graph``.
        targets: edges whose cotangents are wanted; only paths to them are visited. None: all leaves.
        retain_graph: keep the saved values for another sweep.
        create_graph: record what the rules compute.
        accumulate: add the gradients of leaves to their tensors' ``.grad``.
        order: ``reachable(roots)``, where the caller has it already; it is used up.

    Returns:
        The cotangents of the targets, None where no path led to one.
    """
    if order is None:
        order = reachable(roots)
    wanted = None if targets is None else set(targets)
    useful = None if wanted is None else leading_to(order, wanted)
    if not create_graph:
        return _visit(order, roots, cotangents, targets, wanted, useful, retain_graph, False, accumulate)
    previous = LOCAL.grad
    _set_grad(True)
    try:
        return _visit(order, roots, cotangents, targets, wanted, useful, retain_graph, True, accumulate)
    finally:
        _set_grad(previous)


def _visit(
    order: list[Any],
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    targets: Sequence[Any] | None,
    wanted: set[Any] | None,
    useful: set[Any] | None,
    retain_graph: bool,
    create_graph: bool,
    accumulate: bool,
) -> list[Any]:
    pending: dict[Any, Any] = {}
    owned: set[Any] = set()  # edges whose pending cotangent is a sum made here, so may be added to in place
    for root, g in zip(roots, cotangents, strict=True):
        _add(pending, owned, root, g)
    captured: dict[Any, Any] = {}
    leaves: list[tuple[Leaf, Any]] = []
    retained: list[tuple[Tensor, Any]] = []
    latest_write = CLOCK.latest
    watch = LOCAL.watch if STATE.special else None
    arrived = pending.pop
    while order:
        node = order.pop()
        g = arrived(node, None)
        if g is None:
            continue
        kind = type(node)
        hooks = node.hooks
        if hooks is not None and kind is not Leaf:
            g = _before(node, g, hooks, retained, create_graph)
        if kind is Node:
            if (
                type(g) is ndarray
                and g.size >= regions.LARGE
                and useful is None
                and not create_graph
                and hooks is None
                and watch is None
                and node.prim.kind == "elementwise"
                and g.flags.c_contiguous
            ):
                members = regions.find(node, g, order, pending, latest_write)
                if len(members) > 1:
                    del order[1 - len(members) :]
                    for edge, grad in regions.sweep(members, g, pending).items():
                        _add(pending, owned, edge, grad)
                        owned.add(edge)
                    if not retain_graph:
                        for member in members:
                            if member.saved:
                                member.saved = FREED
                    continue
            edges = node.edges
            if useful is not None:
                if node in wanted:  # type: ignore[operator]
                    captured[node] = g
                edges = tuple([edge if edge in useful else None for edge in edges])
                if not any(edges):
                    continue
            saved = node.saved
            if saved:
                if latest_write > node.seq:
                    check_saved(node)
                if create_graph:
                    saved = saved_tensors(node)
                elif not retain_graph:
                    node.saved = FREED
            elif saved is FREED:
                raise errors.second_backward(node)
            if type(g) is list:
                g = _all_outputs(node, g)
            if watch is None:
                grads = node.pullback(node, g, saved, edges)
            else:
                grads = watch.backward(node, g, saved, edges)
            if hooks is not None and hooks.post:
                grads = _after(grads, g, hooks, create_graph)
            if len(edges) == 1:
                edge = edges[0]
                if edge is not None:
                    if edge in pending:
                        _add(pending, owned, edge, grads[0])
                    else:
                        pending[edge] = grads[0]
                continue
            for edge, grad in zip(edges, grads):
                if edge is not None and grad is not None:
                    if edge in pending:
                        _add(pending, owned, edge, grad)
                    else:
                        pending[edge] = grad
        elif kind is Leaf:
            if hooks is not None:
                g = _leaf_hooks(node, g, hooks, create_graph)
            if wanted is not None and node in wanted:
                captured[node] = g
            leaves.append((node, g))
        else:  # an Output
            if wanted is not None and node in wanted:
                captured[node] = g
            parts = pending.get(node.node)
            if parts is None:
                parts = pending[node.node] = [None] * len(node.node.params["_outputs"])
            have = parts[node.index]
            parts[node.index] = g if have is None else have + g
    if accumulate:
        if wanted is not None:
            leaves = [(leaf, g) for leaf, g in leaves if leaf in wanted]
        _write(leaves, retained, captured, cotangents, create_graph)
    elif retained:
        _write([], retained, captured, cotangents, create_graph)
    return [] if targets is None else [captured.get(target) for target in targets]


def _add(pending: dict[Any, Any], owned: set[Any], edge: Any, g: Any) -> None:
    before = pending.get(edge)
    if before is None:
        pending[edge] = g
    elif type(before) is ndarray and before.size > _LARGE:
        if edge in owned and type(g) is ndarray:
            np.add(before, g, before)
        else:
            pending[edge] = before + g
            owned.add(edge)
    else:
        total = before + g
        pending[edge] = np.asarray(total) if isinstance(total, np.generic) else total


def _all_outputs(node: Node, parts: list[Any]) -> tuple[Any, ...]:
    """The cotangents of a node with several outputs; zeros for those nothing arrived at."""
    outputs = node.params["_outputs"]
    return tuple(np.zeros(*about) if part is None else part for part, about in zip(parts, outputs, strict=True))


def saved_tensors(node: Node) -> tuple[Any, ...]:
    """The saved values as tensors that know where they came from, for rules that are to be recorded."""
    prim = node.prim
    tensors: list[Any] = []
    for name, value in zip(prim.saves, unpack(node.saved), strict=True):
        if prim.variadic and name == prim.operands[-1]:
            tensors.append(tuple(_rewrap(v, edge) for v, edge in zip(value, node.edges, strict=True)))
        elif name in prim.operands:
            tensors.append(_rewrap(value, node.edges[prim.operands.index(name)]))
        elif len(prim.outputs) == 1:
            tensors.append(_rewrap(value, node))
        else:
            index = prim.outputs.index(name)
            tensors.append(_rewrap(value, Output(node, index, node.seq + 1)) if value is not None else None)
    return tuple(tensors)


def _rewrap(value: Any, edge: Any) -> Any:
    if value is None or isinstance(value, (Tensor, int, float, complex)):
        return value
    if getattr(value, "dtype", None) is None or value.dtype.kind not in "fc":
        return value
    return wrap(value, edge)


def check_saved(node: Node) -> None:
    """Raise if memory that this node saved was written in place since."""
    if type(node.saved) is Packed:  # it is the hooks' business what they keep
        return
    for name, value in zip(node.prim.saves, node.saved, strict=True):
        for array in value if type(value) in (tuple, list) else (value,):
            written = writes_of(array)
            if written is not None and written.times[-1] > node.seq:
                raise errors.saved_was_written(node, name, array, written)


# -- hooks -----------------------------------------------------------------------------------------------------------


def _before(node: Any, g: Any, hooks: Any, retained: list[Any], create_graph: bool) -> Any:
    if hooks.tensor:
        g = _through(hooks.tensor, g, create_graph)
    if hooks.retain is not None:
        tensor = hooks.retain()
        if tensor is not None:
            retained.append((tensor, g))
    if hooks.pre and type(node) is Node:
        parts = g if type(g) is list else [g]
        given = tuple(None if p is None else _tensor(p) for p in parts)
        for hook in list(hooks.pre.values()):
            result = hook(given)
            if result is not None:
                given = tuple(result) if isinstance(result, (tuple, list)) else (result,)
                if len(given) != len(parts):
                    raise errors.hook_count("prehook", len(given), len(parts))
        bare = [None if p is None else _bare(p, create_graph) for p in given]
        g = bare if type(g) is list else bare[0]
    return g


def _after(grads: Any, g: Any, hooks: Any, create_graph: bool) -> Any:
    given = tuple(None if r is None else _tensor(r) for r in grads)
    outs = tuple(_tensor(p) for p in (g if type(g) is tuple else (g,)))
    for hook in list(hooks.post.values()):
        result = hook(given, outs)
        if result is not None:
            given = tuple(result) if isinstance(result, (tuple, list)) else (result,)
            if len(given) != len(grads):
                raise errors.hook_count("hook", len(given), len(grads))
    return tuple(None if r is None else _bare(r, create_graph) for r in given)


def _leaf_hooks(leaf: Leaf, g: Any, hooks: Any, create_graph: bool) -> Any:
    if hooks.tensor:
        g = _through(hooks.tensor, g, create_graph)
    for hook in list(hooks.pre.values()):
        result = hook((_tensor(g),))
        if result is not None:
            g = _bare(result[0] if isinstance(result, (tuple, list)) else result, create_graph)
    return g


def _through(hooks: dict[int, Any], g: Any, create_graph: bool) -> Any:
    for hook in list(hooks.values()):
        result = hook(_tensor(g))
        if result is not None:
            if not isinstance(result, Tensor):
                raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
            if result._data.shape != g.shape:
                raise errors.hook_shape(g.shape, result._data.shape)
            g = _bare(result, create_graph)
    return g


def _tensor(g: Any) -> Tensor:
    return g if isinstance(g, Tensor) else wrap(g)


def _bare(g: Any, create_graph: bool) -> Any:
    return g if create_graph else g._data


# -- writing .grad ---------------------------------------------------------------------------------------------------


def _write(
    leaves: list[tuple[Leaf, Any]],
    retained: list[tuple[Tensor, Any]],
    captured: dict[Any, Any],
    given: Sequence[Any],
    create_graph: bool,
) -> None:
    """Add to ``.grad`` of every leaf and set it for tensors that retain theirs, all or nothing."""
    fresh: list[Tensor] = []
    fresh_grads: list[Tensor] = []
    sums: list[ndarray[Any, Any]] = []
    addends: list[Any] = []
    hooked: list[Any] = []
    taken = {id(g) for g in given}
    if captured:
        taken.update([id(g) for g in captured.values()])
    with _ACCUMULATE:
        for leaf, g in leaves:
            tensor = leaf.tensor()
            if tensor is None:
                continue
            if leaf.hooks is not None:
                hooked.append((leaf, tensor))
            old = tensor._grad
            if old is None:
                fresh.append(tensor)
                fresh_grads.append(_own(g, taken))
            elif (
                create_graph or type(old._data) is not ndarray or type(_raw(g)) is not ndarray or old._edge is not None
            ):
                fresh.append(tensor)
                fresh_grads.append(_tensor(old + g) if create_graph else wrap(old._data + _raw(g)))
            else:
                sums.append(old._data)
                addends.append(_raw(g))
        for tensor, g in retained:
            fresh.append(tensor)
            fresh_grads.append(_own(g, taken))
        # map() below runs in C from one end to the other: no signal handler and no other thread gets in between.
        if sums:
            deque(map(np.add, sums, addends, sums), 0)
        deque(map(setattr, fresh, repeat("_grad"), fresh_grads), 0)
    for leaf, tensor in hooked:
        for hook in list(leaf.hooks.post_accumulate.values()):
            hook(tensor)
        for hook in list(leaf.hooks.post.values()):
            hook((), (tensor._grad,))


def _raw(g: Any) -> Any:
    return g._data if isinstance(g, Tensor) else g


def _own(g: Any, taken: set[int]) -> Tensor:
    """A tensor for ``.grad`` that shares its memory with nothing else."""
    if type(g) is ndarray:
        if g.base is not None or id(g) in taken:
            g = g.copy()
        taken.add(id(g))
    return g if isinstance(g, Tensor) else wrap(g)
