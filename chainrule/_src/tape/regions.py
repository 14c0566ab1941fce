"""Elementwise regions of the backward pass, swept block by block.

On large arrays the time of an elementwise rule is the time its temporaries take through memory. But element i of all
the cotangents in a run of elementwise nodes depends on element i only. So the run is done for one block of elements
after the other: the block's cotangents stay in cache from the first node to the last, and only what leaves the run
is written to memory. The rules are the same; they just get slices.

A run that comes again and again is handed to a floor above (``COMPILE``), which makes native loops of its rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from sys import maxsize
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, NumpyArray, NumpyDType
from chainrule._src.tape.modes import LOCAL, SPECIAL
from chainrule._src.tape.node import Edge, Edges, Freed, Node, Output, Pending
from chainrule._src.tape.versions import CLOCK
from chainrule._src.tape.warned import at_users_line

ndarray = np.ndarray
Arrays = list[NumpyArray]

#: elements from which runs are looked for: long ones, those of two nodes, and single nodes
NOTICED, SHORT, SINGLE = 512, 32_768, 262_144
#: elements from which Python's blocks are worth it, and about how many are in one
LARGE = 65_536
BLOCK = 40_000

#: what makes a program of a region: arrays -> what leaves it, or None where Python has to do it. Entered from above
COMPILE: Callable[[Region], RegionRun | None] | None = None
RegionRun = Callable[[Arrays], Arrays | None]
#: for each region's key how often it was met; from ``OFTEN`` times on its program, None if there can be none
_PROGRAMS: dict[tuple[object, ...], Any] = {}
OFTEN, _MOST = 3, 256

#: parameters of rows that read the same have the same value
_PLAIN = frozenset({bool, int, float, str, type(None)})
_MASK = np.dtype(bool)


class Region:
    """A run of elementwise nodes, whose cotangents have one shape and dtype.

    Args:
        useful: the edges that the sweep is confined to; None: it goes everywhere.

    Attributes:
        members: the nodes, newest first. Each gets its cotangent from those before it, from outside, or both.
        arriving: the members that get a cotangent from outside, with it.
        arrays: what the rules read, each array once.
        key: all else that decides what they compute.
    """

    __slots__ = ("_numbers", "_places", "_useful", "arrays", "arriving", "dtype", "key", "members", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: NumpyDType, useful: set[Edge] | None) -> None:
        self.shape, self.dtype = shape, dtype
        self.members: list[Node] = []
        self.arriving: dict[Edge, NumpyArray] = {}
        self.arrays: Arrays = []
        self.key: list[object] = []
        self._useful = useful
        self._places: dict[int, int] = {}  # of arrays, by identity
        self._numbers: dict[Edge | None, int | None] = {None: None}  # of edges

    def leads_to(self, node: Node) -> bool:
        return node in self._numbers

    def take(self, node: Node, g: NumpyArray) -> bool:
        """Make a node a member, if it is elementwise. ``g`` is the cotangent that arrives from outside, if there is one."""
        prim, saved, params = node.prim, node.saved, node.params
        if (
            prim.kind != "elementwise"
            or not prim.listed  # a rule of the user's may want whole arrays
            or node.in_avals is not None
            or node.hooks is not None
            or type(saved) is Freed
            or (saved and CLOCK.latest > node.seq)
            or (params and not all([type(value) in _PLAIN for value in params.values()]))
        ):
            return False
        places, known = self._places, len(self._places)
        key: list[object] = [prim, repr(params) if params else None]
        for value in saved if g is None else (g, *saved):
            if type(value) is ndarray:
                place = places.get(id(value))
                if place is None:
                    if not self._fits(value):
                        del self.arrays[known:]
                        return False
                    place = places[id(value)] = len(places)
                    self.arrays.append(value)
                    key.append(value.dtype)
                key.append(place)
            elif value is None or type(value) is float or type(value) is int:
                key.append(repr(value))
            else:
                del self.arrays[known:]
                return False
        numbers = self._numbers
        key.append(numbers.setdefault(node, len(numbers)))
        for edge in self.edges_of(node):
            key.append(numbers.setdefault(edge, len(numbers)))
        self.key += key
        self.members.append(node)
        if g is not None:
            self.arriving[node] = g
        return True

    def _fits(self, array: NumpyArray) -> bool:
        dtype = array.dtype
        return array.shape == self.shape and (dtype is self.dtype or dtype is _MASK) and array.flags.c_contiguous

    def edges_of(self, node: Node) -> Edges:
        """Where a member's cotangents are wanted: None where they are not."""
        useful, edges = self._useful, node.edges
        return edges if useful is None else tuple([edge if edge in useful else None for edge in edges])

    def leaving(self) -> list[Edge]:
        """The edges that lead out of the run."""
        members = set(self.members)
        return [edge for edge in self._numbers if edge is not None and edge not in members]

    def sweep(self, pending: Pending) -> Pending | None:
        """The cotangents of the edges that leave, in arrays that nobody else has; None: it is not worth it.

        What is pending at these edges is part of the sums, which so have the order and the bits of a plain sweep.
        """
        if len(self.members) < _fewest(math.prod(self.shape)):
            return None
        leaving = self.leaving()
        for edge in leaving:
            if edge in pending and not self._add_to(edge, pending[edge]):
                return None
        grads = None if COMPILE is None or LOCAL.recorder is not None else self._natively()
        if grads is None:
            if len(self.members) < 2 or math.prod(self.shape) < LARGE:
                return None
            grads = self._in_blocks(leaving)
        return dict(zip(leaving, grads, strict=True))

    def _add_to(self, edge: Edge, g: AnyArray) -> bool:
        """Have a pending cotangent added to; whether it can be."""
        if type(g) is not ndarray or g.shape != self.shape or g.dtype is not self.dtype:
            return False
        self.arriving[edge] = g = np.ascontiguousarray(g)
        place = self._places.setdefault(id(g), len(self._places))
        if place == len(self.arrays):
            self.arrays.append(g)
        self.key += (self._numbers[edge], place)
        return True

    def _natively(self) -> Arrays | None:
        """By the program for regions like this one, from when it has been met often enough to be worth making."""
        key = tuple(self.key)
        known = _PROGRAMS.get(key, 0)
        if type(known) is int:
            if known == 0 and len(_PROGRAMS) >= _MOST:
                _PROGRAMS.clear()
            known = _PROGRAMS[key] = known + 1 if known < OFTEN or COMPILE is None else COMPILE(self)
        return None if known is None or type(known) is int else known(self.arrays)

    def _in_blocks(self, leaving: list[Edge]) -> Arrays:
        """By the rules, on one block of elements after the other."""
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
        """Run the members' rules with others in the place of the arrays: blocks of them, or what records."""
        places = self._places
        waiting: Pending = {node: arrays[places[id(g)]] for node, g in self.arriving.items()}
        sums: set[Edge] = set()
        for node in self.members:
            saved = tuple([arrays[places[id(value)]] if type(value) is ndarray else value for value in node.saved])
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


def may_start(size: int, order: list[Any]) -> bool:
    """Whether a run that pays may start before ``order``: what is as far ahead as it has to reach is elementwise."""
    more = _fewest(size) - 1
    if not more:
        return True
    ahead = order[-more] if len(order) >= more else None
    return ahead is not None and type(ahead) is not Output and ahead.prim.kind == "elementwise"


def find(
    node: Node, g: NumpyArray, order: list[object], pending: Pending, wanted: set[Edge] | None, useful: set[Edge] | None
) -> Region:
    """The run of elementwise nodes that starts with ``node`` and goes on at the end of ``order``.

    Each member gets a cotangent of one shape, from the members before it or from ``pending``. None of them is ``wanted``:
    their cotangents are not to be had.
    """
    region = Region(g.shape, g.dtype, useful)
    following: Any = node
    waiting: Any = g
    while type(following) is not Output and (wanted is None or following not in wanted):
        if not region.take(following, waiting) or len(region.members) > len(order):
            break
        following = order[-len(region.members)]
        waiting = pending.get(following)
        if type(waiting) is not ndarray and (waiting is not None or not region.leads_to(following)):
            break
    return region


def _fewest(size: int) -> int:
    """How many nodes there have to be for a run to pay."""
    if COMPILE is None:
        return 2 if size >= LARGE else maxsize
    return 1 if size >= SINGLE else 2 if size >= SHORT else 6


def sweep_together(
    this: Any,
    node: Node | Output,
    g: NumpyArray,
    order: list[Any],
    pending: Pending,
    owned: set[Edge],
    alone: set[Edge],
) -> bool:
    """Run the elementwise nodes that start here together, if that pays; whether it did."""
    if (
        this.create_graph
        or node.hooks is not None
        or (SPECIAL and LOCAL.watch is not None)
        or type(node) is Output
        or node.prim.kind != "elementwise"
        or not may_start(g.size, order)
        or node in alone
        or not g.flags.c_contiguous
    ):
        return False
    region = find(node, g, order, pending, this.wanted, this.useful)
    grads = region.sweep(pending)
    if grads is None:
        alone.update(region.members)
        return False
    for member in region.members[1:]:
        order.pop()
        pending.pop(member, None)
    pending.update(grads)
    owned.update(grads)
    if not this.retain_graph:
        for member in region.members:
            if member.saved:
                member.saved = this.freed
    return True
