"""Terms of fields of numbers or small vectors: slots that show the same columns are added up.

A vector's components are often computed one by one from those of others, as in a rotation. Then many terms have the same
columns, some of them in one component alone. Columns that came from one gather, or from the variable itself, are the same
memory: so entries that meet are found by addresses, without sorting them.
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

#: Vectors of more components than this are no small ones.
_MOST_COMPONENTS = 8
#: It must leave less than so much of the entries.
_WORTH = 0.8


class _Place(NamedTuple):
    """Where columns are in memory: equal ones are the same columns."""

    address: int
    strides: tuple[int, ...]
    owner: int


class _ComponentSlot(NamedTuple):
    """The columns and numbers of one slot in one component."""

    cols: IndexArray
    vals: Any

    @property
    def place(self) -> _Place:
        return _Place(_address(self.cols), self.cols.strides, id(_owner(self.cols)))


def _address(x: IndexArray) -> int:
    return int(x.__array_interface__["data"][0])


def _owner(x: IndexArray) -> IndexArray:
    while type(x.base) is np.ndarray:
        x = x.base
    return x


def by_components(terms: list[Term], source: Variable, shape: tuple[int, ...]) -> list[Term] | None:
    """Terms in which slots with the same columns are one; None where that leaves not much less of them.

    Args:
        terms: of a value, with respect to one variable.
        source: the variable.
        shape: the value's. If its last axis is short, it is that of components.
    """
    lead, count = (shape[:-1], shape[-1]) if len(shape) > 1 and shape[-1] <= _MOST_COMPONENTS else (shape, 1)
    found = _by_place(terms, shape, lead, count)
    if found is None:
        return None
    places = sorted(found[0], key=lambda place: _first(found[0][place][0].cols))
    slots = sum([len(same) for own in found for same in own.values()])
    if len(places) * count > _WORTH * slots or any([own.keys() != found[0].keys() for own in found]):
        return None
    sums = [_sum(own[place], lead) for own in found for place in places]
    vals = np.moveaxis(np.reshape(np.stack(sums), (count, len(places), *lead)), 0, -1)
    made = []
    for begin, end in _runs(places):
        cols = _side_by_side([found[0][place][0].cols for place in places[begin:end]], places[begin:end])
        full, here = (end - begin, *lead, count), (end - begin, *shape)
        made.append(
            Term(source, np.broadcast_to(cols[..., None], full).reshape(here), np.reshape(vals[begin:end], here))
        )
    return made


def _by_place(
    terms: list[Term], shape: tuple[int, ...], lead: tuple[int, ...], count: int
) -> list[dict[_Place, list[_ComponentSlot]]] | None:
    """For each component, the slots by their columns; None where a term has other rows than those of one component, or all."""
    found: list[dict[_Place, list[_ComponentSlot]]] = [{} for _ in range(count)]
    known: dict[int, int | None] = {}
    for term in terms:
        if term.rows is None:
            for component in range(count):
                for slot in _slots(term, component if len(lead) < len(shape) else None):
                    found[component].setdefault(slot.place, []).append(slot)
            continue
        if id(term.rows) not in known:
            known[id(term.rows)] = _component(term.rows, shape, count)
        own = known[id(term.rows)]
        if own is None:
            return None
        for slot in _slots_of_one(term, lead):
            found[own].setdefault(slot.place, []).append(slot)
    return found


def _component(rows: IndexArray, shape: tuple[int, ...], count: int) -> int | None:
    """Which component of all vectors rows are."""
    if count == 1:
        return None
    first = int(rows[0])
    return first if first < count and np.array_equal(rows, np.arange(first, math.prod(shape), count)) else None


def _slots(term: Term, component: int | None) -> Iterator[_ComponentSlot]:
    """The slots of a term that has a row for every element, in one component."""
    cols, vals = term.cols, term.vals
    known = shape_of(vals)
    if component is not None:
        cols = cols[..., component]
        vals = vals[..., component if known[-1] > 1 else 0] if known else vals
    for slot in range(term.slots):
        yield _ComponentSlot(cols[slot], vals[slot if known[0] > 1 else 0] if known else vals)


def _slots_of_one(term: Term, lead: tuple[int, ...]) -> Iterator[_ComponentSlot]:
    """The slots of a term that has the rows of one component."""
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


def _runs(places: list[_Place]) -> Iterator[tuple[int, int]]:
    """Slots whose columns lie at even distances in one array's memory."""
    begin = 0
    for end in range(1, len(places) + 1):
        if end < len(places) and places[end][1:] == places[begin][1:]:
            step = places[end].address - places[end - 1].address
            if end - begin == 1 or step == places[begin + 1].address - places[begin].address:
                continue
        yield begin, end
        begin = end


def _side_by_side(columns: list[IndexArray], places: list[_Place]) -> IndexArray:
    """Columns at even distances as one array: a view, so that they are known as the same later."""
    first = columns[0]
    if len(columns) == 1:
        return first[None]
    owner = _owner(first)
    if not owner.flags.c_contiguous:
        return np.stack(columns)
    shape, step = (len(columns), *first.shape), places[1].address - places[0].address
    return np.ndarray(shape, first.dtype, owner, places[0].address - _address(owner), (step, *first.strides))
