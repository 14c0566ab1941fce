"""Elementwise regions of the backward pass, swept block by block.

``engine._visit`` calls ``sweep_region`` at nodes with large cotangents (from ``engine.REGION_SIZE`` elements). A
region is a run of elementwise nodes, newest first. On large arrays an elementwise rule takes as long as memory
traffic for its temporaries. In a region, element i of each cotangent depends on element i of the others only, so the
rules run on one block of elements after the other. The cotangents of a block stay in cache from the first node to the
last. Only cotangents that leave the region are written to memory. The rules are the same; their arguments are slices.

The extension does the same for all regions in ``native/regions.c``. This module serves passes that run in Python.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, NumpyArray, NumpyDType
from chainrule._src.tape.fp_warnings import at_users_line
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule._src.tape.node import Edge, Edges, Freed, Node, Output, Pending
from chainrule._src.tape.versions import CLOCK

ndarray = np.ndarray
Arrays = list[NumpyArray]

BLOCK = 40_000  # the approximate number of elements in a block

#: types of parameters that do not depend on the element
_STATIC_TYPES = frozenset({bool, int, float, str, type(None)})
_MASK = np.dtype(bool)


class Region:
    """A run of elementwise nodes whose cotangents have one shape and dtype.

    Args:
        useful: the edges that the sweep visits; None: all.

    Attributes:
        members: the nodes, newest first. Each gets its cotangent from earlier members, from outside, or both.
        arriving: the cotangents from outside, by member.
        arrays: the distinct arrays that the rules read.
    """

    __slots__ = ("_array_indices", "_edges", "_useful", "arrays", "arriving", "dtype", "members", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: NumpyDType, useful: set[Edge] | None) -> None:
        self.shape, self.dtype = shape, dtype
        self.members: list[Node] = []
        self.arriving: dict[Edge, NumpyArray] = {}
        self.arrays: Arrays = []
        self._useful = useful
        self._array_indices: dict[int, int] = {}  # id of an array -> its index in ``arrays``
        self._edges: dict[Edge, None] = {}  # the members and the edges that they lead to, in order

    def leads_to(self, node: Node) -> bool:
        return node in self._edges

    def append(self, node: Node, g: NumpyArray | None) -> bool:
        """Append a node to the region and return True, if the region can contain it.

        Args:
            g: the cotangent that arrives from outside the region; None: there is none.
        """
        prim, saved, params = node.prim, node.saved, node.params
        if (
            prim.kind != "elementwise"
            or not prim.listed  # a user's rule may need whole arrays
            or node.in_avals is not None
            or node.hooks is not None
            or type(saved) is Freed
            or (saved and CLOCK.latest > node.seq)
            or (params and not all([type(value) in _STATIC_TYPES for value in params.values()]))
        ):
            return False
        indices, array_count = self._array_indices, len(self._array_indices)
        for value in saved if g is None else (g, *saved):
            if type(value) is ndarray:
                index = indices.get(id(value))
                if index is None:
                    if not self._fits(value):
                        del self.arrays[array_count:]
                        return False
                    index = indices[id(value)] = len(indices)
                    self.arrays.append(value)
            elif not (value is None or type(value) is float or type(value) is int):
                del self.arrays[array_count:]
                return False
        self._edges |= dict.fromkeys([node, *[edge for edge in self.edges_of(node) if edge is not None]])
        self.members.append(node)
        if g is not None:
            self.arriving[node] = g
        return True

    def _fits(self, array: NumpyArray) -> bool:
        dtype = array.dtype
        return array.shape == self.shape and (dtype is self.dtype or dtype is _MASK) and array.flags.c_contiguous

    def edges_of(self, node: Node) -> Edges:
        """Return a member's edges, with None for edges that the sweep does not visit."""
        useful, edges = self._useful, node.edges
        return edges if useful is None else tuple([edge if edge in useful else None for edge in edges])

    def leaving(self) -> list[Edge]:
        """Return the edges that lead out of the region."""
        members = set(self.members)
        return [edge for edge in self._edges if edge not in members]

    def sweep(self, pending: Pending) -> Pending | None:
        """Return the cotangents of the leaving edges, in new arrays; None if the region is too small to gain.

        Pending cotangents of these edges are the first terms of the sums, so order and bits equal those of a plain sweep.
        """
        if len(self.members) < 2:
            return None
        leaving = self.leaving()
        for edge in leaving:
            if edge in pending and not self._add_to(edge, pending[edge]):
                return None
        return dict(zip(leaving, self._run_blocks(leaving), strict=True))

    def _add_to(self, edge: Edge, g: AnyArray) -> bool:
        """Make a pending cotangent the first term of an edge's sum and return True, if shape and dtype fit."""
        if type(g) is not ndarray or g.shape != self.shape or g.dtype is not self.dtype:
            return False
        self.arriving[edge] = g = np.ascontiguousarray(g)
        index = self._array_indices.setdefault(id(g), len(self._array_indices))
        if index == len(self.arrays):
            self.arrays.append(g)
        return True

    def _run_blocks(self, leaving: list[Edge]) -> Arrays:
        """Run the rules in Python, on one block of elements after the other."""
        size = math.prod(self.shape)
        results = [np.empty(self.shape, self.dtype) for _ in leaving]
        flat = [array.reshape(-1) for array in self.arrays]
        step = -(-size // max(1, round(size / BLOCK)))
        for start in range(0, size, step):
            block = slice(start, start + step)
            for out, part in zip(results, self.rules([array[block] for array in flat], leaving), strict=True):
                out.reshape(-1)[block] = part
        return results

    def rules(self, arrays: Sequence[AnyArray], leaving: list[Edge]) -> list[Any]:
        """Run the members' rules on blocks of ``self.arrays``."""
        indices = self._array_indices
        waiting: Pending = {node: arrays[indices[id(g)]] for node, g in self.arriving.items()}
        sums: set[Edge] = set()
        for node in self.members:
            saved = tuple([arrays[indices[id(value)]] if type(value) is ndarray else value for value in node.saved])
            edges = self.edges_of(node)
            for edge, grad in zip(
                edges, at_users_line(node.pullback, node, waiting.pop(node), saved, edges), strict=True
            ):
                if edge is None:
                    continue
                before = waiting.get(edge)
                if before is None:
                    waiting[edge] = grad
                elif edge in sums:
                    np.add(before, grad, before)
                else:
                    total = waiting[edge] = before + grad
                    if type(total) is ndarray:
                        sums.add(edge)
        return [waiting[edge] for edge in leaving]


def find_region(
    node: Node, g: NumpyArray, order: list[object], pending: Pending, wanted: set[Edge] | None, useful: set[Edge] | None
) -> Region:
    """Return the run of elementwise nodes that starts with ``node`` and continues at the end of ``order``.

    Each member gets a cotangent of one shape, from earlier members or from ``pending``. No member is ``wanted``, because
    the sweep of a region does not compute the complete cotangents of its members.
    """
    region = Region(g.shape, g.dtype, useful)
    following: Any = node
    waiting: Any = g
    while type(following) is not Output and (wanted is None or following not in wanted):
        if not region.append(following, waiting) or len(region.members) > len(order):
            break
        following = order[-len(region.members)]
        waiting = pending.get(following)
        if type(waiting) is not ndarray and (waiting is not None or not region.leads_to(following)):
            break
    return region


def sweep_region(
    state: Any,
    node: Node | Output,
    g: NumpyArray,
    order: list[Any],
    pending: Pending,
    owned: set[Edge],
    outside_regions: set[Edge],
) -> bool:
    """Sweep the elementwise region that starts at ``node`` and return True, if that is faster than single nodes."""
    if (
        state.create_graph
        or node.hooks is not None
        or (ACTIVE_MODES and LOCAL.watch is not None)
        or type(node) is Output
        or node.prim.kind != "elementwise"
        or node in outside_regions
        or not g.flags.c_contiguous
    ):
        return False
    region = find_region(node, g, order, pending, state.wanted, state.useful)
    grads = region.sweep(pending)
    if grads is None:
        outside_regions.update(region.members)
        return False
    for member in region.members[1:]:
        order.pop()
        pending.pop(member, None)
    pending.update(grads)
    owned.update(grads)
    if not state.retain_graph:
        for member in region.members:
            if member.saved:
                member.saved = state.freed
    return True
