"""Jacobians of the results of a trace: terms are carried from the inputs through its steps, oldest first.

A value's terms grow along a program: each step of a time stepping scheme multiplies how many there are. So where they have
become many and several operations use the value, the computation is *cut* there: the value becomes a variable of its own,
whose Jacobian is kept aside, and the terms start anew from the identity. The chain rule puts the factors together at the
end, as products of sparse matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.interpreters.jac import Jac, Step
from chainrule.jacobians.moves import Moves, Terms
from chainrule.jacobians.terms import Variable
from chainrule.rows.structure import structure_of
from chainrule.types.shapes import dtype_of, shape_of

#: A value is cut where its terms, or their slots, are more than so many.
MOST_TERMS = 16
MOST_SLOTS = 64


def steps_of(results: Sequence[Any]) -> list[Step]:
    """The steps that results came from, oldest first."""
    found: dict[int, Step] = {}
    todo = [x.origin[0] for x in results if type(x) is Jac and type(x.origin) is tuple]
    while todo:
        step = todo.pop()
        if step.seq not in found:
            found[step.seq] = step
            todo += [origin[0] for origin in step.origins if type(origin) is tuple and origin[0].seq not in found]
    return [found[seq] for seq in sorted(found)]


class Accumulation:
    """The terms of a trace's values.

    Args:
        results: the values that terms are wanted of.
        limit: the number of entries that one step may make.
    """

    def __init__(self, results: Sequence[Any], limit: int) -> None:
        self.moves = Moves(limit)
        self.steps = steps_of(results)
        self.uses: dict[Any, int] = {}
        self.known: dict[Any, Terms] = {}
        for step in self.steps:
            for origin in step.origins:
                if type(origin) is tuple:
                    key = (origin[0].seq, origin[1])
                    self.uses[key] = self.uses.get(key, 0) + 1
        for x in results:
            if type(x) is Jac and type(x.origin) is tuple:
                key = (x.origin[0].seq, x.origin[1])
                self.uses[key] = self.uses.get(key, 0) + 1
        for step in self.steps:
            self._walk(step)

    def terms_of(self, result: Any) -> Terms:
        """The terms of a result."""
        return self._terms(result.origin) if type(result) is Jac else []

    def _terms(self, origin: Any) -> Terms:
        if origin is None:
            return []
        if type(origin) is tuple:
            return self.known[origin[0].seq, origin[1]]
        return [origin.identity()]

    def _walk(self, step: Step) -> None:
        step.check_unwritten()
        operands = [self._terms(origin) for origin in step.origins]
        for i, terms in enumerate(operands):
            if any(t.rows is not None for t in terms) and _mixes(step, i):
                operands[i] = self._cut(terms, step.operands[i])
                self._replace(step.origins[i], operands[i])
        outs = self.moves.through(step, operands)
        for origin in step.origins:
            if type(origin) is tuple:
                key = (origin[0].seq, origin[1])
                self.uses[key] -= 1
                if not self.uses[key]:
                    del self.known[key]
        for index, (out, terms) in enumerate(zip(step.outs, outs, strict=True)):
            uses = self.uses.get((step.seq, index), 0)
            if uses:
                cut = uses > 1 and _many(terms)
                self.known[step.seq, index] = self._cut(terms, out) if cut else terms

    def _cut(self, terms: Terms, value: Any) -> Terms:
        return [Variable(shape_of(value), dtype_of(value), terms).identity()]

    def _replace(self, origin: Any, terms: Terms) -> None:
        if type(origin) is tuple:
            self.known[origin[0].seq, origin[1]] = terms


def _many(terms: Terms) -> bool:
    """Whether each further operation on terms costs more than starting anew."""
    return len(terms) > MOST_TERMS or (len(terms) > 1 and sum([t.slots for t in terms]) > MOST_SLOTS)


_KEEPS_ROWS = {"diagonal", "selection", "sum", "mean"}


def _mixes(step: Step, i: int) -> bool:
    """Whether a step combines elements of operand i, so that terms need a row for each."""
    return not step.prim.moves and structure_of(step.prim, i, step.params) not in _KEEPS_ROWS
