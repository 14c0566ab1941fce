"""Describe the terms of a structured Jacobian as NumPy indexing: a row of ``∂y/∂x`` reads ``x[i, :]``, ``x[i-1]``.

A term stores its columns as numbers. If they are a linear function of the row's indices (checked for all entries), the
description is that function; else it gives shifts or counts. ``jacobian_terms`` calls the functions
``describe_state``, ``describe_columns`` and ``describe_values``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import NumpyArray, Shape
from chainrule._src.explaining.elements import LETTERS
from chainrule._src.jacobians.terms import Term, Variable

#: the index of a row, if it has no index for each axis of the value
_ROW = "r"
#: most differences between column and row that are listed
_SHIFTS = 2


def describe_state(terms: Sequence[Term], shape: Shape, name_of: Callable[[Variable], str], most: int = 40) -> str:
    """Describe the Jacobian of a value of a shape: "diagonal", "u[i], u[i+1]", "12 terms".

    Args:
        name_of: returns the name of a variable.
        most: longest list of elements, in characters.
    """
    if not terms:
        return "zero"
    if len(terms) == 1 and is_identity_term(terms[0], shape):
        return _of_identity(terms[0])
    reads = ", ".join(dict.fromkeys([describe_columns(term, shape, name_of(term.source)) for term in terms]))
    if len(reads) <= most:
        return reads
    every = ", affine" if all([term.affine for term in terms]) else ""
    return f"{_count(len(terms), 'term')}{every}"


def is_identity_term(term: Term, shape: Shape) -> bool:
    """Return whether each row s has a single entry, in column s."""
    seed = term.source.cols
    cols = term.cols
    return (
        term.rows is None
        and shape == term.source.shape
        and (cols is seed or (cols.shape == seed.shape and bool(np.array_equal(cols, seed))))
    )


def _of_identity(term: Term) -> str:
    number = one_number(term.vals)
    if number is None:
        return "diagonal"
    return "identity" if number == 1 else f"{number_text(number)} × identity"


def one_number(vals: object) -> Any:
    """Return the number that all entries share, or None."""
    if not shape_of(vals):
        return vals if isinstance(vals, (int, float, complex)) else np.asarray(vals).item()
    return None


def number_text(number: Any) -> str:
    return f"{number + 0:.4g}"  # -0 is 0


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def entries_in_a_row(terms: Sequence[Term], size: int) -> int:
    """Return the number of entries in the fullest row; each slot counts."""
    every = sum([term.slots for term in terms if term.rows is None])
    scattered = [(term.rows, term.slots) for term in terms if term.rows is not None]
    if not scattered or not size:
        return every if size else 0
    counts = np.zeros(size, np.intp)
    for rows, slots in scattered:
        counts += np.bincount(rows, minlength=size) * slots
    return every + int(counts.max())


def describe_values(term: Term) -> str:
    """Describe the numbers of a term: the value that all share, or their range."""
    number = one_number(term.vals)
    if number is not None:
        return number_text(number)
    data = np.asarray(term.vals)
    if not data.size:
        return ""
    if data.dtype.kind == "c":
        return "complex numbers"
    low, high = data.min(), data.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        return "with nan or inf"
    return number_text(low) if low == high else f"{number_text(low)} … {number_text(high)}"


# -- the elements that a row reads -------------------------------------------------------------------------------------


def describe_columns(term: Term, shape: Shape, name: str) -> str:
    """Describe the elements of the variable that a row of a value reads, such as ``u[i+1]`` or ``X[i, :]``."""
    if not term.cols.size:
        return "nothing"
    if term.rows is not None:
        return _of_rows(term, term.rows, len(shape), name)
    letters = [LETTERS[k] if k < len(LETTERS) else "…" for k in range(len(shape))]
    found = _linear(term, letters, name)
    if found is None and term.slots == 1:
        found = _periodic(term, letters, name) if shape == term.source.shape else None
        found = found or _shifted(term, np.arange(term.cols.size), len(shape), name)
    return found or f"{_some(term.slots)} of {name}"


def _some(slots: int) -> str:
    return "one" if slots == 1 else f"{slots:,}"


def _of_rows(term: Term, rows: NumpyArray, ndim: int, name: str) -> str:
    """Describe the columns of a term that has entries only in some rows; the index is the number of the row."""
    letter = LETTERS[0] if ndim == 1 else _ROW
    in_order = bool((np.diff(rows) == 1).all())
    found = _linear(term, [letter], name, int(rows[0])) if in_order else None
    if found is None and term.slots == 1:
        found = _shifted(term, rows, ndim, name)
    different, counts = np.unique(rows, return_counts=True)
    where = f"rows {rows[0]}:{rows[-1] + 1}" if in_order else _count(len(different), "row")
    if counts.max() > 1:
        return f"up to {term.slots * counts.max():,} of {name} in {where}"
    return f"{found or f'{_some(term.slots)} of {name}'} in {where}"


def _shifted(term: Term, rows: NumpyArray, ndim: int, name: str) -> str | None:
    """Describe columns that differ from the row's number by one of a few shifts; the most frequent shift first."""
    shifts, counts = np.unique(term.cols.reshape(-1) - rows, return_counts=True)
    if len(shifts) > _SHIFTS:
        return None
    letter = LETTERS[0] if ndim == 1 else _ROW
    flat = name if len(term.source.shape) == 1 else f"{name}.flat"
    order = np.argsort(-counts, kind="stable")
    return " or ".join([f"{flat}[{_sum(int(shifts[k]), [(letter, 1)])}]" for k in order])


def _periodic(term: Term, letters: Sequence[str], name: str) -> str | None:
    """Describe columns whose index is shifted cyclically along axes."""
    shape = term.source.shape
    if not shape or len(shape) > len(LETTERS):
        return None
    here = np.unravel_index(term.cols[0], shape)
    parts = []
    for axis, (place, n, letter) in enumerate(zip(here, shape, letters, strict=True)):
        own = np.arange(n).reshape([n if k == axis else 1 for k in range(len(shape))])
        shift = (place - own) % n
        first = int(shift.flat[0])
        if not (shift == first).all():
            return None
        near = first if first <= n // 2 else first - n
        parts.append(f"({_sum(near, [(letter, 1)])})%{n}" if near else letter)
    return f"{name}[{', '.join(parts)}]"


# -- linear functions --------------------------------------------------------------------------------------------------


def _linear(term: Term, letters: Sequence[str], name: str, first: int = 0) -> str | None:
    """Return the index of a term whose columns are a linear function of the row's indices and of the slot; else None.

    Args:
        letters: the row's indices.
        first: the first value of the first index.
    """
    cols = term.cols
    offset = int(cols.flat[0])
    steps = [int(np.take(cols, 1, k).flat[0]) - offset if n > 1 else 0 for k, n in enumerate(cols.shape)]
    if not term.affine:
        axes = [
            np.arange(n).reshape([n if k == at else 1 for at in range(cols.ndim)]) for k, n in enumerate(cols.shape)
        ]
        if not (cols == offset + sum([axis * step for axis, step in zip(axes, steps, strict=True)])).all():
            return None
    for shape, called in ((term.source.shape, name), ((term.source.size,), f"{name}.flat")):
        found = _index(cols.shape, steps, offset, shape, letters, first)
        if found is not None:
            return f"{called}[{', '.join(found)}]" if found else called
    return None


def _index(
    lengths: Shape, steps: Sequence[int], offset: int, shape: Shape, letters: Sequence[str], first: int
) -> list[str] | None:
    """Return the index for each axis of an array of a shape; None if an axis of cols runs across several axes."""
    weights = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    start = [int(k) for k in np.unravel_index(offset, shape)] if shape else []
    parts: list[list[tuple[str, int]]] = [[] for _ in shape]
    low, high = list(start), list(start)
    slot: dict[int, tuple[int, int]] = {}  # axis -> step, length
    for at, (n, step) in enumerate(zip(lengths, steps, strict=True)):
        if n == 1 or step == 0:
            continue
        moves = [(k, c, n) for k, c in _split(step, weights, shape)]
        if at == 0:
            whole = _whole_axes(n, step, shape, weights)
            if whole is None and len(moves) > 1:
                return None  # slots along several axes at once, such as a diagonal
            moves = whole or moves
        for k, factor, count in moves:
            low[k] += min(0, factor * (count - 1))
            high[k] += max(0, factor * (count - 1))
            if at:
                parts[k].append((letters[at - 1], factor))
            else:
                slot[k] = (factor, count)
    if any([a < 0 or b >= n for a, b, n in zip(low, high, shape, strict=True)]):
        return None
    begin = [
        k - first * sum([c for letter, c in own if letter == letters[0]]) for k, own in zip(start, parts, strict=True)
    ]
    return [_one_axis(begin[k], parts[k], slot.get(k), n) for k, n in enumerate(shape)]


def _split(step: int, weights: Sequence[int], shape: Shape) -> Iterator[tuple[int, int]]:
    """Yield a flat step as steps along axes."""
    rest, sign = abs(step), 1 if step > 0 else -1
    for k, weight in enumerate(weights):
        if shape[k] > 1 and rest >= weight:
            yield k, sign * (rest // weight)
            rest %= weight


def _whole_axes(n: int, step: int, shape: Shape, weights: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Return the axes that the slots cover completely, as (axis, step, length); None if they do not."""
    for last in range(len(shape)):
        if weights[last] != step:
            continue
        for first in range(last, -1, -1):
            if math.prod(shape[first : last + 1]) == n:
                return [(k, 1, shape[k]) for k in range(first, last + 1) if shape[k] > 1]
    return None


def _one_axis(start: int, parts: list[tuple[str, int]], slot: tuple[int, int] | None, n: int) -> str:
    """Return an index, or a slice over the slots."""
    if slot is None:
        return _sum(start, parts)
    factor, count = slot
    if not parts and abs(factor) == 1 and count == n:
        return ":"
    if factor < 0:
        start, factor = start + factor * (count - 1), -factor
    end = _sum(start + factor * (count - 1) + 1, parts)
    return f"{_sum(start, parts)}:{end}" + f":{factor}" * (factor != 1)


def _sum(start: int, parts: Sequence[tuple[str, int]]) -> str:
    """Format a linear function: ``2i+j+1``."""
    text = ""
    for letter, factor in sorted(parts, key=lambda part: part[1] < 0):
        size = "" if abs(factor) == 1 else str(abs(factor))
        text += ("-" if factor < 0 else "+" if text else "") + size + letter
    if text.startswith("-") and start:
        return f"{start}{text}"
    return text + f"{start:+d}" * bool(start) if text else str(start)
