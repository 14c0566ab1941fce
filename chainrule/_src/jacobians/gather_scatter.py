"""Propagate terms through gathers (``Selection``), scatters (``scatter_term``) and sparse local Jacobians (``Entries``).

``propagation`` calls this module.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import Shape
from chainrule._src.interpreters.jac import JacStep
from chainrule._src.jacobians.terms import IndexArray, Term, Unstructured
from chainrule._src.rules.primitive import TABLE
from chainrule._src.rules.rules import call_rule, rule_arguments
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor


def flat_positions(shape: Shape) -> IndexArray:
    """Return for each element of an array of this shape its position in the flat array."""
    return np.arange(math.prod(shape)).reshape(shape)


def constant_operand(x: object) -> Any:
    """Return the numbers of a constant operand, which determine the destinations of elements."""
    data = x._raw if isinstance(x, Tensor) else x
    if isinstance(data, ArrayLike):
        data = data.read()
        if data is None:
            raise Unstructured("an index has a value for each example")
    return data


def source_positions(step: JacStep, i: int) -> IndexArray:
    """Return for every element of the output its position in operand i; −1 if it comes from elsewhere."""
    prim = step.prim
    given: list[Any] = []
    for k, x in enumerate(step.operands):
        name = prim.operands[min(k, len(prim.operands) - 1)]
        if k == i:
            given.append(flat_positions(shape_of(x)) + 1)
        elif prim.variadic or name in prim.vjps:
            given.append(np.zeros(shape_of(x), np.intp))
        else:
            given.append(constant_operand(x))
    params = {name: 0 if name == "value" else value for name, value in step.params.items()}
    src: IndexArray = np.asarray(prim.value(*given, **params), np.intp) - 1
    return src


def destination_positions(step: JacStep, i: int) -> IndexArray:
    """Return for every element of operand i its position in the output; −1 if it is dropped."""
    prim = TABLE[_SAME_DESTINATIONS.get(step.prim.name, step.prim.name)]
    given = [x if k == i else constant_operand(x) for k, x in enumerate(step.operands)]
    env = rule_arguments(prim, given, None, {name: step.params[name] for name in prim.parameters})
    rule = prim.vjps[prim.operands[i]]
    assert callable(rule)
    back = call_rule(prim, rule, {**env, "g": flat_positions(shape_of(step.outs[0])) + 1})
    to: IndexArray = np.asarray(back, np.intp) - 1
    return to


#: primitives that do not add elements -> the primitive that adds them at the same destinations
_SAME_DESTINATIONS = {"scatter_prod": "scatter_add", "scatter_best": "scatter_add"}


class Selection:
    """A gather: a value whose elements are elements of another value, or constants.

    Attributes:
        src: for each element the position in the other value; −1 for a constant.
        have: the shape of the other value.
        kept: the positions of elements that are not constants; None if there are no constants.
        at: the positions in the other value of the kept elements.
    """

    __slots__ = ("_joins", "at", "have", "kept", "src")

    def __init__(self, src: IndexArray, have: Shape) -> None:
        self.src = src
        self.have = have
        at = src.reshape(-1)
        self.kept = None if not at.size or at.min() >= 0 else np.flatnonzero(at >= 0)
        self.at = at if self.kept is None else at[self.kept]
        self._joins: dict[int, tuple[IndexArray, IndexArray]] = {}

    def of(self, term: Term) -> Term:
        """Return the term of the gathered value, from a term of the other value."""
        src, at, slots = self.src, self.at, term.slots
        if term.rows is None:
            flat_cols = term.cols.reshape(slots, -1)
            alike = flat_cols.strides[1] == 0
            if self.kept is None and alike and at.size:
                cols = np.broadcast_to(flat_cols[:, :1].reshape(slots, *(1,) * src.ndim), (slots, *src.shape))
                return Term(term.source, cols, take_vals(term, at, src.shape))
            if self.kept is None:
                cols = flat_cols.take(at, 1).reshape(slots, *src.shape)
                return Term(term.source, cols, take_vals(term, at, src.shape))
            return Term(term.source, flat_cols.take(at, 1), take_vals(term, at, at.shape), self.kept)
        join = self._joins.get(id(term.rows))
        if join is None:
            join = self._joins[id(term.rows)] = _join_rows(term.rows, src.reshape(-1), math.prod(self.have))
        rows, picks = join
        vals = term.vals[:, picks] if shape_of(term.vals)[1:] not in ((), (1,)) else term.vals
        cols = term.cols.take(picks, 1)
        if not len(rows) or len(rows) != src.size or not _is_every_row(rows):
            return Term(term.source, cols, vals, rows)
        if known := shape_of(vals):
            vals = np.reshape(vals, (known[0], *(src.shape if known[1] > 1 else (1,) * src.ndim)))
        return Term(term.source, cols.reshape(slots, *src.shape), vals)


def _is_every_row(rows: IndexArray) -> bool:
    """Return whether ascending rows are 0, 1, 2 ... without gaps or repetitions."""
    return bool((rows == np.arange(len(rows))).all())


def take_vals(term: Term, at: IndexArray, shape: Shape) -> Any:
    """Return the vals of the rows at some positions, in a shape."""
    vals = term.vals
    known = shape_of(vals)
    if not known:
        return vals
    slots = known[0]
    if max(known[1:], default=1) == 1:
        return np.reshape(vals, (slots, *(1,) * len(shape)))
    full = np.reshape(np.broadcast_to(vals, (slots, *term.cols.shape[1:])), (slots, -1))
    return np.reshape(full[:, at], (slots, *shape))


def _join_rows(rows: IndexArray, at: IndexArray, size: int) -> tuple[IndexArray, IndexArray]:
    """Join positions with entries: for all pairs with the same row, return the index of the position and of the entry."""
    counts = np.bincount(rows, minlength=size)
    if not counts.size or counts.max() <= 1:
        entry = np.full(size + 1, -1)  # the last element is for positions -1
        entry[rows] = np.arange(rows.size)
        picks = entry[at]
        wanted = np.flatnonzero(picks >= 0)
        return wanted, picks[wanted]
    order = np.argsort(rows, kind="stable")
    starts = np.cumsum(counts) - counts
    wanted = np.flatnonzero(at >= 0)
    each = counts[at[wanted]]
    first = np.repeat(starts[at[wanted]] - (np.cumsum(each) - each), each)
    return np.repeat(wanted, each), order[first + np.arange(first.size)]


def scatter_term(term: Term, dst: IndexArray) -> Term:
    """Return the term of a value into which the elements of another are added, at positions ``dst``."""
    to = dst.reshape(-1)
    if to.size and to.min() < 0:
        kept = np.flatnonzero(to >= 0)
        return scatter_term(Selection(kept, dst.shape).of(term), to[kept])
    return move_rows(term, to)


def move_rows(term: Term, to: IndexArray) -> Term:
    """Return a term with its rows moved to the positions ``to``."""
    if term.rows is not None:
        return Term(term.source, term.cols, term.vals, to[term.rows])
    slots = term.slots
    vals = term.vals
    if known := shape_of(vals):
        if max(known[1:], default=1) > 1:
            vals = np.broadcast_to(vals, (known[0], *term.cols.shape[1:]))
        vals = np.reshape(vals, (known[0], -1))
    return Term(term.source, term.cols.reshape(slots, -1), vals, to)


class Entries:
    """The entries of a sparse local Jacobian.

    Attributes:
        have: the shape of the operand.
        at, to: for each entry the position in the operand, and in the result.
        factors: the values, (1, entries), or a number; for complex operands a pair is possible: the images of 1 and of 1j.
    """

    def __init__(self, have: Shape, at: IndexArray, to: IndexArray, factors: Any) -> None:
        self.have = have
        self.at = at
        self.to = to
        self.factors = factors

    def of(self, term: Term) -> Term:
        """Return the term of the result, from a term of the operand."""
        if term.rows is None:
            cols = term.cols.reshape(term.slots, -1).take(self.at, 1)
            return Term(term.source, cols, self._times(take_vals(term, self.at, self.at.shape)), self.to)
        which, picks = _join_rows(term.rows, self.at, math.prod(self.have))
        vals = term.vals[:, picks] if shape_of(term.vals)[1:] not in ((), (1,)) else term.vals
        return Term(term.source, term.cols.take(picks, 1), self._times(vals, which), self.to[which])

    def _times(self, vals: Any, which: Any = slice(None)) -> Any:
        """Multiply values by the factors (of some of the entries)."""
        if isinstance(self.factors, tuple):
            one, turn = self.factors
            return np.real(vals) * one[:, which] + np.imag(vals) * turn[:, which]
        if isinstance(self.factors, int) and self.factors == 1:
            return vals
        return vals * self.factors[:, which]
