"""Fewer terms for the same Jacobian, where there have come to be many small ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.jacobians import assemble
from chainrule.jacobians.terms import Index, Term, Variable

#: up to so many entries, it is the number of terms that operations on them take time for
SMALL = 8192
MOST_TERMS = 16
MOST_WITH_ROWS = 4


def compacted(terms: list[Term], shape: tuple[int, ...]) -> list[Term]:
    """Terms of a value of a shape, with respect to any variables, as few where many would cost more."""
    groups: dict[Variable, list[Term]] = {}
    for term in terms:
        groups.setdefault(term.source, []).append(term)
    return [term for source, group in groups.items() for term in _compacted(group, source, shape)]


def _compacted(terms: list[Term], source: Variable, shape: tuple[int, ...]) -> list[Term]:
    if len(terms) < 3:
        return terms
    entries = sum([term.cols.size for term in terms])
    most = source.size * math.prod(shape)
    with_rows = sum([term.rows is not None for term in terms])
    few = entries <= SMALL and (with_rows > MOST_WITH_ROWS or len(terms) > MOST_TERMS)
    if not few and entries < most:
        return terms
    pattern = assemble.Pattern.of(terms, shape, source.size)
    data: Any = pattern.data(terms)
    if pattern.nnz == most:
        vals = np.moveaxis(np.reshape(data, (*shape, source.size)), -1, 0)
        return [Term(source, columns(source, shape), vals)]
    cols = pattern.indices.astype(np.intp, copy=False)[None]
    return [Term(source, cols, np.reshape(data, (1, -1)), pattern.row_numbers())]


def columns(source: Variable, shape: tuple[int, ...]) -> Index:
    """All columns, in each row of a value."""
    column = source.seed.reshape(source.size, *(1,) * len(shape))
    return np.broadcast_to(column, (source.size, *shape))
