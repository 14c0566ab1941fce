"""Elementwise regions of the backward pass, swept block by block.

On large arrays the time of an elementwise rule is the time its temporaries take through memory. But element i of all
the cotangents in a run of elementwise nodes depends on element i only. So the run is done for one block of elements
after the other: the block's cotangents stay in cache from the first node to the last, and only what leaves the run
is written to memory. The rules are the same; they just get slices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.core.node import Freed, Node, Output
from chainrule.core.versions import CLOCK

ndarray = np.ndarray

#: elements from which a region is worth its bookkeeping, and about how many are in a block
LARGE = 65_536
BLOCK = 40_000


def find(node: Node, g: Any, order: list[Any], pending: dict[Any, Any]) -> list[Node]:
    """The run of elementwise nodes that starts with ``node`` and goes on at the end of ``order``.

    Each member gets a cotangent of one shape, from the members before it or from ``pending``.
    """
    shape, dtype = g.shape, g.dtype
    if not _fits(node, shape, dtype):
        return []
    members = [node]
    fed = set(node.edges)
    for other in reversed(order):
        if type(other) is Output or not _fits(other, shape, dtype):
            break
        waiting = pending.get(other)
        if waiting is None:
            if other not in fed:
                break
        elif (
            type(waiting) is not ndarray
            or waiting.shape != shape
            or waiting.dtype != dtype
            or not waiting.flags.c_contiguous
        ):
            break
        members.append(other)
        fed.update(other.edges)
    return members


def _fits(node: Node, shape: Any, dtype: Any) -> bool:
    if (
        node.prim.kind != "elementwise"
        or node.in_avals is not None
        or node.hooks is not None
        or type(node.saved) is Freed
    ):
        return False
    if node.saved and CLOCK.latest > node.seq:
        return False
    for value in node.saved:
        if type(value) is ndarray:
            if value.shape != shape or value.dtype != dtype or not value.flags.c_contiguous:
                return False
        elif not (value is None or type(value) is float or type(value) is int):
            return False
    return True


def sweep(members: list[Node], g: Any, pending: dict[Any, Any]) -> dict[Any, Any]:
    """Run the members' rules on every block; the cotangents of the edges that leave the region.

    Cotangents of members that were pending are used up.
    """
    shape, dtype, size = g.shape, g.dtype, g.size
    inside = set(members)
    arriving = {members[0]: g.reshape(-1)}
    for node in members[1:]:
        waiting = pending.pop(node, None)
        if waiting is not None:
            arriving[node] = waiting.reshape(-1)
    leaving = {
        edge: np.empty(shape, dtype)
        for node in members
        for edge in node.edges
        if edge is not None and edge not in inside
    }
    flat = {edge: out.reshape(-1) for edge, out in leaving.items()}
    plan = [
        (node, node.pullback, tuple([v.reshape(-1) if type(v) is ndarray else v for v in node.saved]), node.edges)
        for node in members
    ]
    step = -(-size // max(1, round(size / BLOCK)))
    for start in range(0, size, step):
        stop = start + step
        block = {node: whole[start:stop] for node, whole in arriving.items()}
        summed: set[Any] = set()
        for node, pullback, saved, edges in plan:
            parts = tuple([v[start:stop] if type(v) is ndarray else v for v in saved])
            grads = pullback(node, block.pop(node), parts, edges)
            for edge, grad in zip(edges, grads):
                if edge is None:
                    continue
                before = block.get(edge)
                if before is None:
                    block[edge] = grad
                elif edge in summed:
                    np.add(before, grad, before)
                else:
                    block[edge] = before + grad
                    summed.add(edge)
        for edge, out in flat.items():
            out[start:stop] = block[edge]
    return leaving
