"""Replace many small terms of a Jacobian by fewer equivalent terms. ``accumulate`` calls ``compact_terms``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.jacobians import assemble
from chainrule._src.jacobians.components import merge_by_components
from chainrule._src.jacobians.terms import IndexArray, Term, Variable

#: up to this number of entries, the cost of an operation depends on the number of terms, not of entries
SMALL = 8192
MOST_TERMS = 16
#: with more slots, search for slots with equal columns
FEW_SLOTS = 8
MOST_WITH_ROWS = 4
_FEW_COLUMNS = 16
_FEW = 256  # one or two terms with at most this number of entries are never merged
_NEARLY_ALL = 0.25  # density above which many terms are merged


def compact_terms(terms: list[Term], shape: tuple[int, ...]) -> list[Term]:
    """Return the terms of a value, with respect to any variables, merged where this reduces the cost."""
    return [term for source, group in group_by_source(terms).items() for term in _compact_group(group, source, shape)]


def group_by_source(terms: list[Term]) -> dict[Variable, list[Term]]:
    """Group terms by their variable."""
    groups: dict[Variable, list[Term]] = {}
    for term in terms:
        groups.setdefault(term.source, []).append(term)
    return groups


def _compact_group(terms: list[Term], source: Variable, shape: tuple[int, ...]) -> list[Term]:
    entries = sum([term.cols.size for term in terms])
    most = source.size * math.prod(shape)
    if len(terms) < 3 and entries <= max(most, _FEW) and all([term.slots <= source.size for term in terms]):
        return terms
    if entries > SMALL and len(terms) > 2 and sum([term.slots for term in terms]) > FEW_SLOTS:
        found = merge_by_components(terms, source, shape)
        if found is not None:
            return _compact_group(found, source, shape)
    with_rows = sum([term.rows is not None for term in terms])
    many = with_rows > MOST_WITH_ROWS or len(terms) > MOST_TERMS
    if entries >= most or (many and (entries <= SMALL or entries > _NEARLY_ALL * most)):
        few = source.size <= _FEW_COLUMNS and not with_rows
        return [merge_by_columns(terms, source, shape) if few else merge_to_one_term(terms, source, shape)]
    return terms


def merge_by_columns(terms: list[Term], source: Variable, shape: tuple[int, ...]) -> Term:
    """Merge terms into one term with a slot for each column, for few columns."""
    every = all_columns(source, shape)
    ndim = len(shape)
    total: Any = 0
    for term in terms:
        vals = term.vals
        if term.slots == source.size and all([s == 0 for s in term.cols.strides[1:]]) and _ascend(term.cols):
            total = total + (vals if shape_of(vals) else np.full((1,) * (1 + ndim), vals))
            continue
        for slot in range(term.slots):
            here = vals if not shape_of(vals) else vals[slot if shape_of(vals)[0] > 1 else 0]
            total = total + np.where(term.cols[slot] == every, here, 0)
    return Term(source, every, total)


def _ascend(cols: IndexArray) -> bool:
    return bool((cols.reshape(cols.shape[0], -1)[:, 0] == np.arange(cols.shape[0])).all())


def merge_to_one_term(terms: list[Term], source: Variable, shape: tuple[int, ...]) -> Term:
    """Merge terms into one term without duplicate positions."""
    if assemble.has_plain_vals(terms) and any([_is_full(term, source) for term in terms]):
        return merge_to_all_columns(terms, source, shape)
    pattern = assemble.EntryPattern.of(terms, shape, source.size)
    data: Any = pattern.data(terms)
    if pattern.nnz == source.size * math.prod(shape):
        vals = np.moveaxis(np.reshape(data, (*shape, source.size)), -1, 0)
        return Term(source, all_columns(source, shape), vals)
    cols = pattern.indices.astype(np.intp, copy=False)[None]
    return Term(source, cols, np.reshape(data, (1, -1)), pattern.row_numbers())


def _is_full(term: Term, source: Variable) -> bool:
    """Return whether every row has each column once."""
    first, *others = term.cols.strides
    return term.rows is None and term.affine and term.slots == source.size and first != 0 and not any(others)


def merge_to_all_columns(terms: list[Term], source: Variable, shape: tuple[int, ...]) -> Term:
    """Merge terms into one term with a slot for every column."""
    vals: Any = assemble.dense_of_terms(terms, shape, (source.size,))
    return Term(source, all_columns(source, shape), np.moveaxis(vals, -1, 0))


def all_columns(source: Variable, shape: tuple[int, ...]) -> IndexArray:
    """Return all columns, for each row of a value."""
    column = source.seed.reshape(source.size, *(1,) * len(shape))
    return np.broadcast_to(column, (source.size, *shape))
