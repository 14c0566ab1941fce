"""Sort the entries of terms by row and column. ``EntryPattern`` calls ``entries_in_order``; only integers are used.

Usually several terms have entries in the same rows, and in most rows the columns of the slots have the same order. So the slots
are sorted by a typical row, for all rows at once, and the few rows with another order (at the edges of a grid) are sorted
separately. If the terms have different rows, all entries are sorted together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.jacobians.terms import IndexArray, Term

#: terms of one block of a larger matrix: ``(terms, rows, first row, first column)``
TermBlock = tuple[Sequence[Term], int, int, int]


class SortedEntries(NamedTuple):
    """Entries in row order, with ascending columns in each row; columns of a row may be equal.

    Attributes:
        columns: the column of each entry.
        sources: the index of each entry's number in the pool; None if the pool is in order.
        indptr: the index of the first entry of each row, and the number of entries.
        pool: length of the pool.
    """

    columns: Any
    sources: IndexArray | None
    indptr: Any
    pool: int


class MatrixTerm(NamedTuple):
    """A term in a matrix: ``rows`` are matrix rows, ``column`` is its first column, ``first`` the pool index of its numbers."""

    term: Term
    rows: IndexArray
    column: int
    first: int

    def numbers(self) -> IndexArray:
        """Return the pool index of each number of vals, in a shape that broadcasts to that of cols."""
        shape = tuple(shape_of(self.term.vals))
        aligned = (1,) * (self.term.cols.ndim - len(shape)) + shape
        return np.arange(self.first, self.first + math.prod(shape)).reshape(aligned)


def entries_in_order(blocks: Sequence[TermBlock], shape: tuple[int, int]) -> SortedEntries:
    parts, pool = _parts(blocks)
    count = sum([part.term.cols.size for part in parts])
    kind = np.int32 if max(*shape, count) < 2**31 else np.int64
    if len(parts) == 1 and pool == count and _is_in_order(parts[0], count):
        return _as_it_is(parts[0], pool, shape[0], kind)
    groups = _groups(parts, shape[0])
    if groups is None:
        return _all_sorted(parts, pool, count, shape, kind)
    return _slot_by_slot(groups, pool, count, shape[0], kind)


def _parts(blocks: Sequence[TermBlock]) -> tuple[list[MatrixTerm], int]:
    """Return all terms that have entries, and the length of the pool."""
    parts, pool = [], 0
    known: dict[Any, IndexArray] = {}
    for terms, m, first_row, first_column in blocks:
        for term in terms:
            key = (id(term.rows), m, first_row)
            if key not in known:
                known[key] = np.arange(first_row, first_row + m) if term.rows is None else term.rows + first_row
            if term.cols.size:
                parts.append(MatrixTerm(term, known[key], first_column, pool))
            pool += math.prod(shape_of(term.vals))
    return parts, pool


def _is_in_order(part: MatrixTerm, count: int) -> bool:
    """Return whether a single-slot term has its entries in order, each with its own number."""
    rows, cols = part.rows, part.term.cols
    if len(cols) > 1 or math.prod(shape_of(part.term.vals)) != count or (rows[1:] < rows[:-1]).any():
        return False
    cols = cols.reshape(-1)
    return bool(((cols[1:] >= cols[:-1]) | (rows[1:] > rows[:-1])).all())


def _as_it_is(part: MatrixTerm, pool: int, m: int, kind: Any) -> SortedEntries:
    columns = part.term.cols.reshape(-1).astype(kind)
    columns += kind(part.column)
    return SortedEntries(columns, None, part.rows.searchsorted(np.arange(m + 1)).astype(kind), pool)


# -- slot by slot ------------------------------------------------------------------------------------------------------


def _groups(parts: list[MatrixTerm], m: int) -> list[list[MatrixTerm]] | None:
    """Group terms by their rows; return None if a row is in several groups, or repeated in one."""
    by_rows: dict[int, list[MatrixTerm]] = {}
    for part in parts:
        by_rows.setdefault(id(part.rows), []).append(part)
    groups: list[list[MatrixTerm]] = []
    for group in by_rows.values():
        rows = group[0].rows
        equal = [other for other in groups if np.array_equal(other[0].rows, rows)]
        if equal:
            equal[0].extend(group)
            continue
        groups.append(group)
        if len(groups) > _MOST_GROUPS or (rows[1:] <= rows[:-1]).any():
            return None
    marked = np.zeros(m, bool)
    for group in groups:
        marked[group[0].rows] = True
    return groups if sum([len(group[0].rows) for group in groups]) == np.count_nonzero(marked) else None


_MOST_GROUPS = 16


def _slot_by_slot(groups: list[list[MatrixTerm]], pool: int, count: int, m: int, kind: Any) -> SortedEntries:
    counts = np.zeros(m, kind)
    for group in groups:
        counts[group[0].rows] = sum([part.term.slots for part in group])
    indptr = _starts_of(counts)
    columns, sources = np.empty(count, kind), np.empty(count, np.intp)
    for group in groups:
        rows = group[0].rows
        cols, numbers = _rows_in_order(*_slots(group, len(rows), kind))
        slots = len(cols)
        if rows[-1] - rows[0] == len(rows) - 1:
            begin = int(indptr[rows[0]])
            here: Any = slice(begin, begin + cols.size)
            _transpose(cols, columns[here].reshape(-1, slots))
            _transpose(numbers, sources[here].reshape(-1, slots))
        else:
            here = indptr[rows][:, None] + np.arange(slots)
            columns[here], sources[here] = cols.T, numbers.T
    return SortedEntries(columns, sources, indptr, pool)


def _transpose(x: NumpyArray, out: NumpyArray) -> None:
    if len(x) > _FEW:
        out[...] = x.T
        return
    for k, row in enumerate(x):  # NumPy's inner loop would run along the shorter axis
        out[:, k] = row


_FEW = 32


def _slots(group: list[MatrixTerm], count: int, kind: Any) -> tuple[Any, IndexArray]:
    """Return the columns and sources of terms with the same rows, ``(slots, rows)`` each."""
    slots = sum([part.term.slots for part in group])
    columns, sources = np.empty((slots, count), kind), np.empty((slots, count), np.intp)
    begin = 0
    for part in group:
        end = begin + part.term.slots
        _fill(part, columns[begin:end], sources[begin:end])
        begin = end
    return columns, sources


def _fill(part: MatrixTerm, columns: NumpyArray, sources: NumpyArray) -> None:
    """Write the columns of a term's entries, and the pool indices of their numbers."""
    cols = part.term.cols
    columns = columns.reshape(cols.shape)
    columns[...] = cols
    if part.column:
        columns += part.column
    if shape_of(part.term.vals):
        sources.reshape(cols.shape)[...] = part.numbers()
    else:
        sources[...] = part.first


def _rows_in_order(columns: Any, sources: IndexArray) -> tuple[Any, IndexArray]:
    """Sort both along the first axis, so that the columns of each row ascend."""
    count = columns.shape[1]
    for share in _TYPICAL:
        order = columns[:, int(share * count)].argsort(kind="stable")
        alike = bool((order[1:] > order[:-1]).all())
        ordered = columns if alike else columns[order]
        wrong = (ordered[1:] < ordered[:-1]).any(axis=0).nonzero()[0]
        if 2 * len(wrong) <= count:
            break
    sources = sources if alike else sources[order]
    if wrong.size:
        order = ordered[:, wrong].argsort(axis=0, kind="stable")
        ordered[:, wrong], sources[:, wrong] = ordered[order, wrong], sources[order, wrong]
    return ordered, sources


#: positions at which a typical row is chosen: not at the edges of a grid, nor in its middle, where edges may meet
_TYPICAL = (0.382, 0.71)


# -- sorting all entries -----------------------------------------------------------------------------------------------


def _all_sorted(parts: list[MatrixTerm], pool: int, count: int, shape: tuple[int, int], kind: Any) -> SortedEntries:
    m, n = shape
    columns, positions, sources = np.empty(count, kind), np.empty(count, np.intp), np.empty(count, np.intp)
    counts = np.zeros(m, kind)
    begin = 0
    for part in parts:
        cols, end = part.term.cols, begin + part.term.cols.size
        _fill(part, columns[begin:end], sources[begin:end])
        first_positions = (part.rows * n + part.column).reshape(cols.shape[1:])
        np.add(first_positions, cols, out=positions[begin:end].reshape(cols.shape))
        counts += np.bincount(part.rows, minlength=m).astype(kind) * kind(part.term.slots)
        begin = end
    if not (positions[1:] >= positions[:-1]).all():
        order = positions.argsort(kind="stable")  # merges ascending runs: slots are ascending
        columns, sources = columns.take(order), sources.take(order)
    return SortedEntries(columns, sources, _starts_of(counts), pool)


def _starts_of(counts: NumpyArray) -> Any:
    indptr = np.zeros(len(counts) + 1, counts.dtype)
    counts.cumsum(out=indptr[1:])
    return indptr
