"""Accumulate the Jacobians of a trace's results: propagate terms from the inputs through its steps, oldest first.

``JacobianTrace`` and ``reverse`` call ``Accumulation``. The number of a value's terms grows along a program; each step of a time
stepping scheme multiplies it. If a value has many terms and several operations use it, it is *cut*: it becomes an intermediate
variable, whose Jacobian is stored, and its terms restart from the identity. ``products.resolve_to_inputs`` multiplies the factors at
the end, as sparse matrices.
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
    compact_terms,
    group_by_source,
    merge_to_all_columns,
)
from chainrule._src.jacobians.mixing import is_constant_along, mixed_axes
from chainrule._src.jacobians.propagation import Propagation
from chainrule._src.jacobians.terms import Term, Variable
from chainrule._src.rules.structure import structure_of
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL

#: A value is cut if its terms have more slots in total.
MOST_SLOTS = 64


def steps_of(results: Sequence[object]) -> list[JacStep]:
    """Return the steps that results depend on, oldest first."""
    found: dict[int, JacStep] = {}
    todo = [x.origin[0] for x in results if type(x) is Jac and type(x.origin) is tuple]
    while todo:
        step = todo.pop()
        if step.seq not in found:
            found[step.seq] = step
            todo += [origin[0] for origin in step.origins if type(origin) is tuple and origin[0].seq not in found]
    return [found[seq] for seq in sorted(found)]


class TermOrigins(NamedTuple):
    """In anomaly mode: the origins of terms that are not finite, by value.

    Attributes:
        nans: the errors to raise if the value is a result.
        infinities: messages about infinite terms.
    """

    nans: dict[Any, Exception]
    infinities: dict[Any, str]


class Accumulation:
    """Computes the terms of a trace's values; a value's terms are freed after the last step that reads them.

    Args:
        results: the values whose terms are computed.
        limit: most entries that one step may make.
        propagation: propagates terms through steps; a subclass can record them.
        steps: the steps of the results, if known.
    """

    def __init__(
        self,
        results: Sequence[Jac],
        limit: int,
        propagation: Propagation | None = None,
        steps: list[JacStep] | None = None,
    ) -> None:
        self.propagation = Propagation(limit) if propagation is None else propagation
        self.steps = steps_of(results) if steps is None else steps
        self.uses: dict[Any, int] = {}
        self.known: dict[Any, list[Term]] = {None: []}
        self.origins = TermOrigins({}, {})
        for origins in [*[step.origins for step in self.steps], [x.origin for x in results]]:
            for origin in origins:
                self.uses[origin] = self.uses.get(origin, 0) + 1
                if type(origin) is Variable:
                    self.known[origin] = origin.start()
        self.uses[None] = -1  # constants are never freed
        for step in self.steps:
            self._walk(step)

    def terms_of(self, result: Jac) -> list[Term]:
        """Return the terms of a result."""
        if result.origin in self.origins.nans:
            raise self.origins.nans[result.origin]
        return self.known[result.origin]

    def _walk(self, step: JacStep) -> None:
        """Propagate the terms of a step's operands to its outputs, and free the terms that no later step reads."""
        step.check_unwritten()
        known, uses = self.known, self.uses
        operands = [known[origin] for origin in step.origins]
        if step.prim.kind != "elementwise" and not step.prim.moves:
            for i, terms in enumerate(operands):
                if terms and _mixes(step, i):
                    operands[i] = known[step.origins[i]] = self._mixable(step, i, terms)
        outs = self.propagation.through(step, operands)
        if ACTIVE_MODES and LOCAL.watch is not None:
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
        """Prepare the terms of an operand whose elements a step mixes, so that each has a row for every element.

        If mixing would give an element more entries than there are columns, make the terms dense first.
        """
        shape = shape_of(step.operands[i])
        size = math.prod(shape)
        ins = mixed_axes(step, i)[0]
        structure = structure_of(step.prim, i, step.params)
        mixed = math.prod([shape[a] for a in ins])
        found: list[Term] = []
        for source, group in group_by_source(terms).items():
            scattered = any([term.rows is not None for term in group])
            entries = sum([term.cols.size for term in group])
            most = source.size * size
            if structure in ("windows", "scan", "entries"):
                keep = True
            else:
                keep = not scattered and all([is_constant_along(term.cols, ins) for term in group])
            few_columns = entries * mixed > most or (scattered and source.size <= mixed)
            if not keep and few_columns and most <= self.propagation.limit:
                found.append(merge_to_all_columns(group, source, shape))
            elif scattered and not keep:
                return _cut(terms, step.operands[i])
            else:
                found += group
        return found


def _settled(terms: list[Term], value: AnyArray, uses: int) -> list[Term]:
    """Return the terms with which later steps continue: compacted or cut if there are many."""
    slots = 0
    plain = len(terms) <= MOST_TERMS
    for term in terms:
        slots += len(term.cols)
        if term.rows is not None or not term.cols.size:
            plain = False
    few = FEW_SLOTS if len(terms) > 2 else MOST_SLOTS
    if plain and (slots < 2 or (slots <= few and slots < terms[0].source.size)):
        return terms
    terms = compact_terms([term for term in terms if term.cols.size], shape_of(value))
    return _cut(terms, value) if uses > 1 and _many(terms) else terms


def _cut(terms: list[Term], value: Any) -> list[Term]:
    """Make a value an intermediate variable (two for the parts of a complex value), and return its identity terms."""
    shape, dtype = shape_of(value), dtype_of(value)
    if dtype.kind != "c":
        return [Variable(shape, dtype, terms).identity()]
    part = np.empty(0, dtype).real.dtype
    real = Variable(shape, part, [Term(t.source, t.cols, np.real(t.vals), t.rows) for t in terms])
    imag = Variable(shape, part, [Term(t.source, t.cols, np.imag(t.vals), t.rows) for t in terms])
    return [real.identity(), Term(imag, imag.seed[None], 1j)]


def _many(terms: list[Term]) -> bool:
    """Return whether propagating the terms further costs more than cutting."""
    if len(terms) < 2 or sum([term.cols.size for term in terms]) <= SMALL:
        return False
    with_rows = sum([term.rows is not None for term in terms])
    return len(terms) > MOST_TERMS or with_rows > MOST_WITH_ROWS or sum([term.slots for term in terms]) > MOST_SLOTS


_KEEPS_ROWS = {"diagonal", "selection", "scatter", "sum", "mean"}


def _mixes(step: JacStep, i: int) -> bool:
    """Return whether a step combines elements of operand i, so that its terms need a row for each."""
    return structure_of(step.prim, i, step.params) not in _KEEPS_ROWS
