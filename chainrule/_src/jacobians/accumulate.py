"""Jacobians of the results of a trace: terms are carried from the inputs through its steps, oldest first.

A value's terms grow along a program: each step of a time stepping scheme multiplies how many there are. So where they have
become many and several operations use the value, the computation is *cut* there: the value becomes a variable of its own,
whose Jacobian is kept aside, and the terms start anew from the identity. The chain rule puts the factors together at the
end, as products of sparse matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray
from chainrule._src.interpreters.jac import Jac, JacStep
from chainrule._src.jacobians.compaction import (
    FEW_SLOTS,
    MOST_TERMS,
    MOST_WITH_ROWS,
    SMALL,
    by_source,
    compacted,
    dense,
)
from chainrule._src.jacobians.mixing import mixing, unvarying
from chainrule._src.jacobians.moves import Moves
from chainrule._src.jacobians.terms import Term, Variable
from chainrule._src.rules.structure import structure_of
from chainrule._src.tape.modes import LOCAL, SPECIAL

#: A value is cut where the slots of its terms are more than so many.
MOST_SLOTS = 64


def steps_of(results: Sequence[object]) -> list[JacStep]:
    """The steps that results came from, oldest first."""
    found: dict[int, JacStep] = {}
    todo = [x.origin[0] for x in results if type(x) is Jac and type(x.origin) is tuple]
    while todo:
        step = todo.pop()
        if step.seq not in found:
            found[step.seq] = step
            todo += [origin[0] for origin in step.origins if type(origin) is tuple and origin[0].seq not in found]
    return [found[seq] for seq in sorted(found)]


class TermOrigins(NamedTuple):
    """In anomaly mode: for each value whose terms are not finite where that arose.

    Attributes:
        nans: the errors to raise, where such a value is a result.
        infinities: texts.
    """

    nans: dict[Any, Exception]
    infinities: dict[Any, str]


class Accumulation:
    """The terms of a trace's values, each known for as long as something is still to be made of it.

    Args:
        results: the values that terms are wanted of.
        limit: the number of entries that one step may make.
        moves: what moves terms, if somebody is to see it.
        steps: those of the results, if they are known.
    """

    def __init__(
        self, results: Sequence[Jac], limit: int, moves: Moves | None = None, steps: list[JacStep] | None = None
    ) -> None:
        self.moves = Moves(limit) if moves is None else moves
        self.steps = steps_of(results) if steps is None else steps
        self.uses: dict[Any, int] = {}
        self.known: dict[Any, list[Term]] = {None: []}
        self.origins = TermOrigins({}, {})
        for origins in [*[step.origins for step in self.steps], [x.origin for x in results]]:
            for origin in origins:
                self.uses[origin] = self.uses.get(origin, 0) + 1
                if type(origin) is Variable:
                    self.known[origin] = origin.start()
        self.uses[None] = -1  # constants stay known
        for step in self.steps:
            self._walk(step)

    def terms_of(self, result: Jac) -> list[Term]:
        """The terms of a result."""
        if result.origin in self.origins.nans:
            raise self.origins.nans[result.origin]
        return self.known[result.origin]

    def _walk(self, step: JacStep) -> None:
        """Carry the terms of a step's operands to its outputs, and let go of what nothing else needs."""
        step.check_unwritten()
        known, uses = self.known, self.uses
        operands = [known[origin] for origin in step.origins]
        if step.prim.kind != "elementwise" and not step.prim.moves:
            for i, terms in enumerate(operands):
                if terms and _mixes(step, i):
                    operands[i] = known[step.origins[i]] = self._mixable(step, i, terms)
        outs = self.moves.through(step, operands)
        if SPECIAL and LOCAL.watch is not None:
            LOCAL.watch.jacobian_terms(step, outs, self.origins)
        for origin in step.origins:
            uses[origin] -= 1
            if not uses[origin]:
                del known[origin]
        for index, terms in enumerate(outs):
            origin = (step, index)
            count = uses.get(origin)
            if count is not None:
                known[origin] = _settled(terms, step.outs[index], count)

    def _mixable(self, step: JacStep, i: int, terms: list[Term]) -> list[Term]:
        """The terms of an operand whose elements a step mixes: each has a row for every element.

        Where mixing would give an element more entries than there are columns, there is a slot for every column already.
        """
        shape = shape_of(step.operands[i])
        size = math.prod(shape)
        ins = mixing(step, i)[0]
        structure = structure_of(step.prim, i, step.params)
        mixed = math.prod([shape[a] for a in ins])
        found: list[Term] = []
        for source, group in by_source(terms).items():
            scattered = any([term.rows is not None for term in group])
            entries = sum([term.cols.size for term in group])
            most = source.size * size
            if structure in ("windows", "scan", "entries"):
                keep = True
            else:
                keep = not scattered and all([unvarying(term.cols, ins) for term in group])
            few_columns = entries * mixed > most or (scattered and source.size <= mixed)
            if not keep and few_columns and most <= self.moves.limit:
                found.append(dense(group, source, shape))
            elif scattered and not keep:
                return _cut(terms, step.operands[i])
            else:
                found += group
        return found


def _settled(terms: list[Term], value: AnyArray, uses: int) -> list[Term]:
    """The terms that operations on a value go on with: fewer ones where there have come to be many."""
    slots = 0
    plain = len(terms) <= MOST_TERMS
    for term in terms:
        slots += len(term.cols)
        if term.rows is not None or not term.cols.size:
            plain = False
    few = FEW_SLOTS if len(terms) > 2 else MOST_SLOTS
    if plain and (slots < 2 or (slots <= few and slots < terms[0].source.size)):
        return terms
    terms = compacted([term for term in terms if term.cols.size], shape_of(value))
    return _cut(terms, value) if uses > 1 and _many(terms) else terms


def _cut(terms: list[Term], value: Any) -> list[Term]:
    """The terms of a value that becomes a variable of its own; a complex one becomes two, of its parts."""
    shape, dtype = shape_of(value), dtype_of(value)
    if dtype.kind != "c":
        return [Variable(shape, dtype, terms).identity()]
    part = np.empty(0, dtype).real.dtype
    real = Variable(shape, part, [Term(t.source, t.cols, np.real(t.vals), t.rows) for t in terms])
    imag = Variable(shape, part, [Term(t.source, t.cols, np.imag(t.vals), t.rows) for t in terms])
    return [real.identity(), Term(imag, imag.seed[None], 1j)]


def _many(terms: list[Term]) -> bool:
    """Whether each further operation on terms costs more than starting anew."""
    if len(terms) < 2 or sum([term.cols.size for term in terms]) <= SMALL:
        return False
    with_rows = sum([term.rows is not None for term in terms])
    return len(terms) > MOST_TERMS or with_rows > MOST_WITH_ROWS or sum([term.slots for term in terms]) > MOST_SLOTS


_KEEPS_ROWS = {"diagonal", "selection", "scatter", "sum", "mean"}


def _mixes(step: JacStep, i: int) -> bool:
    """Whether a step combines elements of operand i, so that terms need a row for each."""
    return structure_of(step.prim, i, step.params) not in _KEEPS_ROWS
