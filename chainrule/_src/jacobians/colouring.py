"""Compute sparse Jacobians with a known pattern by graph colouring: few products with vectors.

Columns that share no row can be computed together: the product with the sum of their unit vectors contains the entries of all of
them, in different rows. So columns that share a row get different colours, and there is one product (a JVP) for each colour. Rows
are coloured in the same way, for VJPs. ``compute_terms.terms_by_colours`` calls the functions of this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyArray, DTypeLike
from chainrule._src.jacobians.terms import IndexArray, Term, Variable, flatten_array

ndarray = np.ndarray
#: maps a batch of vectors (along a leading axis) to the batch of products
Products = Callable[[Any], Any]


class Pattern(NamedTuple):
    """The sparsity pattern of a matrix: the positions of entries, in row-major order, without duplicates."""

    rows: IndexArray
    cols: IndexArray
    shape: tuple[int, int]


class Colouring(NamedTuple):
    """Colours of columns (or rows), so that columns of one colour share no row (or rows share no column).

    Attributes:
        colours: the colour of each column (or row); 0 for those without entries.
        number: number of colours.
        of_rows: whether rows are coloured.
    """

    colours: IndexArray
    number: int
    of_rows: bool


def pattern_of(sparsity: Any, shape: tuple[int, int]) -> Pattern:
    """Convert the pattern that the user passed.

    Args:
        sparsity: a sparse array (of ``scipy.sparse``, or with a method ``tocoo``), whose stored entries are the pattern; or an
            array, whose nonzero elements are the pattern.
        shape: of the matrix: (elements of the output, elements of the input).

    Raises:
        ValueError: ``sparsity`` has another shape.
    """
    found = tuple(sparsity.shape) if hasattr(sparsity, "shape") else np.shape(sparsity)
    if found != shape:
        raise ValueError(
            f"sparsity has shape {found}, but the Jacobian is a matrix of shape {shape}: a row for each element of the "
            "output, a column for each element of the input"
        )
    if hasattr(sparsity, "tocoo"):
        coo = sparsity.tocoo()
        rows, cols = coo.row, coo.col
    else:
        rows, cols = np.nonzero(np.asarray(sparsity))
    positions = np.unique(np.asarray(rows, np.intp) * max(shape[1], 1) + np.asarray(cols, np.intp))
    return Pattern(positions // max(shape[1], 1), positions % max(shape[1], 1), shape)


def colour_pattern(pattern: Pattern, of_rows: bool | None = None) -> Colouring:
    """Return a colouring of columns or rows (``of_rows``); by default, of the side that needs fewer colours."""
    if of_rows is None:
        columns, rows = colour_pattern(pattern, False), colour_pattern(pattern, True)
        return rows if rows.number < columns.number else columns
    own, other = (pattern.rows, pattern.cols) if of_rows else (pattern.cols, pattern.rows)
    size, others = pattern.shape if of_rows else pattern.shape[::-1]
    return _greedy(own, other, size, others, of_rows)


def _greedy(own: IndexArray, other: IndexArray, size: int, others: int, of_rows: bool) -> Colouring:
    """Colour columns (or rows) greedily, with the first colour not used by a column in the same row; most neighbours first."""
    by_column = np.argsort(own, kind="stable")
    met = other[by_column].tolist()
    counts = np.bincount(own, minlength=size)
    ends = np.cumsum(counts).tolist()
    neighbours = np.bincount(own, np.bincount(other, minlength=others)[other], size)
    taken = [0] * others  # for each row, the colours of its columns as a bit set
    colours = np.zeros(size, np.intp)
    most = 0
    for column in np.argsort(-neighbours, kind="stable").tolist():
        rows = met[ends[column] - counts[column] : ends[column]]
        used = 0
        for row in rows:
            used |= taken[row]
        free = ~used & (used + 1)  # the lowest bit that is not set
        for row in rows:
            taken[row] |= free
        colours[column] = colour = free.bit_length() - 1
        most = max(most, colour)
    return Colouring(colours, most + 1 if len(own) else 0, of_rows)


def compute_entries(
    pattern: Pattern, colouring: Colouring, products: Products, shape: tuple[int, ...], dtype: DTypeLike, step: int
) -> Any:
    """Compute the values of a pattern's entries.

    Args:
        products: the JVP of a batch of tangents if columns are coloured; the VJP of a batch of cotangents if rows are.
        shape, dtype: of one tangent, or cotangent.
        step: number of products in one batch.
    """
    own, other = (pattern.rows, pattern.cols) if colouring.of_rows else (pattern.cols, pattern.rows)
    colour_of = colouring.colours[own]
    size, others = pattern.shape if colouring.of_rows else pattern.shape[::-1]
    if not len(own):
        return np.zeros(0, dtype)
    has_entries = np.zeros(size, bool)
    has_entries[own] = True
    order = np.argsort(colour_of, kind="stable")
    parts = []
    for first in range(0, colouring.number, step):
        last = min(first + step, colouring.number)
        seeds = (colouring.colours == np.arange(first, last)[:, None]) & has_entries
        found = products(seeds.astype(dtype).reshape(last - first, *shape))
        low, high = np.searchsorted(colour_of[order], (first, last))
        chosen = order[low:high]
        parts.append(np.take(flatten_array(found), (colour_of[chosen] - first) * others + other[chosen]))
    values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    back = np.empty(len(order), np.intp)
    back[order] = np.arange(len(order))
    return np.take(values, back)


def term_of(pattern: Pattern, source: Variable, values: AnyArray) -> Term:
    """Return the entries of a pattern as a term of a Jacobian."""
    return Term(source, pattern.cols[None], values.reshape(1, -1), pattern.rows)
