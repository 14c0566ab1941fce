"""Merge terms of fields of numbers or small vectors: add slots with the same columns.

The components of a vector are often computed separately, as in a rotation. Then many terms have the same columns, some of them for
only one component. Columns from the same gather, or from the variable itself, are the same memory. So equal columns are found by
address, without sorting. ``compaction`` calls ``merge_by_components``.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.jacobians.terms import IndexArray, Term, Variable

#: Most components of a small vector.
_MOST_COMPONENTS = 8
#: The merged terms must have fewer slots than this fraction of the original ones.
_WORTH = 0.8


class _MemoryLocation(NamedTuple):
    """The memory location of columns; columns with equal locations are equal."""

    address: int
    strides: tuple[int, ...]
    owner: int


class _ComponentSlot(NamedTuple):
    """The columns and numbers of one slot in one component."""

    cols: IndexArray
    vals: Any

    @property
    def location(self) -> _MemoryLocation:
        return _MemoryLocation(_address(self.cols), self.cols.strides, id(_owner(self.cols)))


def _address(x: IndexArray) -> int:
    return int(x.__array_interface__["data"][0])


def _owner(x: IndexArray) -> IndexArray:
    while type(x.base) is np.ndarray:
        x = x.base
    return x


def merge_by_components(terms: list[Term], source: Variable, shape: tuple[int, ...]) -> list[Term] | None:
    """Merge slots with the same columns; return None if this does not remove enough of them.

    Args:
        terms: of a value, with respect to one variable.
        source: the variable.
        shape: the value's shape. If its last axis is short, it is the component axis.
    """
    lead, count = (shape[:-1], shape[-1]) if len(shape) > 1 and shape[-1] <= _MOST_COMPONENTS else (shape, 1)
    found = _by_location(terms, shape, lead, count)
    if found is None:
        return None
    locations = sorted(found[0], key=lambda location: _first(found[0][location][0].cols))
    slots = sum([len(same) for own in found for same in own.values()])
    if len(locations) * count > _WORTH * slots or any([own.keys() != found[0].keys() for own in found]):
        return None
    sums = [_sum(own[location], lead) for own in found for location in locations]
    vals = np.moveaxis(np.reshape(np.stack(sums), (count, len(locations), *lead)), 0, -1)
    made = []
    for begin, end in _runs(locations):
        cols = _side_by_side([found[0][location][0].cols for location in locations[begin:end]], locations[begin:end])
        full, here = (end - begin, *lead, count), (end - begin, *shape)
        made.append(
            Term(source, np.broadcast_to(cols[..., None], full).reshape(here), np.reshape(vals[begin:end], here))
        )
    return made


def _by_location(
    terms: list[Term], shape: tuple[int, ...], lead: tuple[int, ...], count: int
) -> list[dict[_MemoryLocation, list[_ComponentSlot]]] | None:
    """Return for each component the slots by their columns; None if a term's rows are neither one component nor all rows."""
    found: list[dict[_MemoryLocation, list[_ComponentSlot]]] = [{} for _ in range(count)]
    known: dict[int, int | None] = {}
    for term in terms:
        if term.rows is None:
            for component in range(count):
                for slot in _slots(term, component if len(lead) < len(shape) else None):
                    found[component].setdefault(slot.location, []).append(slot)
            continue
        if id(term.rows) not in known:
            known[id(term.rows)] = _component(term.rows, shape, count)
        own = known[id(term.rows)]
        if own is None:
            return None
        for slot in _slots_of_one(term, lead):
            found[own].setdefault(slot.location, []).append(slot)
    return found


def _component(rows: IndexArray, shape: tuple[int, ...], count: int) -> int | None:
    """Return the component whose rows these are; None if they are not exactly one component of all vectors."""
    if count == 1:
        return None
    first = int(rows[0])
    return first if first < count and np.array_equal(rows, np.arange(first, math.prod(shape), count)) else None


def _slots(term: Term, component: int | None) -> Iterator[_ComponentSlot]:
    """Yield the slots of a term with a row for every element, restricted to one component."""
    cols, vals = term.cols, term.vals
    known = shape_of(vals)
    if component is not None:
        cols = cols[..., component]
        vals = vals[..., component if known[-1] > 1 else 0] if known else vals
    for slot in range(term.slots):
        yield _ComponentSlot(cols[slot], vals[slot if known[0] > 1 else 0] if known else vals)


def _slots_of_one(term: Term, lead: tuple[int, ...]) -> Iterator[_ComponentSlot]:
    """Yield the slots of a term with the rows of one component."""
    known = shape_of(term.vals)
    for slot in range(term.slots):
        vals = term.vals[slot if known[0] > 1 else 0] if known else term.vals
        yield _ComponentSlot(
            term.cols[slot].reshape(lead), np.reshape(vals, lead if known[1] > 1 else ()) if known else vals
        )


def _first(cols: IndexArray) -> int:
    return int(cols[(0,) * cols.ndim])


def _sum(same: list[_ComponentSlot], lead: tuple[int, ...]) -> Any:
    total = functools.reduce(operator.add, [slot.vals for slot in same])
    return total if shape_of(total) == lead else np.broadcast_to(total, lead)


def _runs(locations: list[_MemoryLocation]) -> Iterator[tuple[int, int]]:
    """Yield ranges of slots whose columns are at equal distances in one array's memory."""
    begin = 0
    for end in range(1, len(locations) + 1):
        if end < len(locations) and locations[end][1:] == locations[begin][1:]:
            step = locations[end].address - locations[end - 1].address
            if end - begin == 1 or step == locations[begin + 1].address - locations[begin].address:
                continue
        yield begin, end
        begin = end


def _side_by_side(columns: list[IndexArray], locations: list[_MemoryLocation]) -> IndexArray:
    """Return columns at equal distances as one strided view, so that later merges recognize them by address."""
    first = columns[0]
    if len(columns) == 1:
        return first[None]
    owner = _owner(first)
    if not owner.flags.c_contiguous:
        return np.stack(columns)
    shape, step = (len(columns), *first.shape), locations[1].address - locations[0].address
    return np.ndarray(shape, first.dtype, owner, locations[0].address - _address(owner), (step, *first.strides))
