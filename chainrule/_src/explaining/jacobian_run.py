"""Run a function again to explain its structured Jacobian, and record for each term the operations that it went through.

``JacobianExplanation`` calls ``run_call`` with the call that computed a Jacobian. ``RecordingPropagation`` records the terms of each step's
operands and results. To find the operand's term that a result's term comes from, it propagates each operand's term separately.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.api.watch import Watch
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import Shape
from chainrule._src.interpreters.jac import Jac, JacStep
from chainrule._src.jacobians.accumulate import Accumulation, steps_of
from chainrule._src.jacobians.compute_terms import ITEMSIZE
from chainrule._src.jacobians.propagation import Propagation
from chainrule._src.jacobians.reverse import backward_of
from chainrule._src.jacobians.strategy import FORWARD, REVERSE
from chainrule._src.jacobians.terms import Term, Variable
from chainrule._src.jacobians.trace import JacobianCall, JacobianTrace
from chainrule._src.messages.source_locations import Where
from chainrule._src.tape.node import Node, next_seq
from chainrule._src.transforms.trace import Trace


class RecordingPropagation(Propagation):
    """Propagates terms, and records those of each step.

    Attributes:
        records: one for each step, in order.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.records: list[TermRecord] = []

    def through(self, step: JacStep, operands: Sequence[list[Term]]) -> list[list[Term]]:
        outs = super().through(step, operands)
        came: list[list[list[OperandTerm]]] = [[[] for _ in out] for out in outs]
        for i, terms in enumerate(operands):
            for j, term in enumerate(terms):
                alone: list[list[Term]] = [[] for _ in operands]
                alone[i] = [term]
                for out, found, origins in zip(outs, super().through(step, alone), came, strict=True):
                    for part in found:
                        origins[_index_of(part, out)].append(OperandTerm(i, j))
        self.records.append(TermRecord(step, [list(terms) for terms in operands], outs, came))
        return outs


class OperandTerm(NamedTuple):
    """A term of an operand: the indices of the operand and of the term."""

    operand: int
    term: int


class TermRecord(NamedTuple):
    """The terms of a step's operands and of its outputs, and for each output term the operand terms it comes from (``came``)."""

    step: JacStep
    operands: list[list[Term]]
    outs: list[list[Term]]
    came: list[list[list[OperandTerm]]]


def _index_of(part: Term, terms: list[Term]) -> int:
    """Return the index of the term that has a part's entries."""
    for same in (_is_same, _equal):
        for k, term in enumerate(terms):
            if term.source is part.source and same(term.cols, part.cols) and same(term.rows, part.rows):
                return k
    raise AssertionError("no term of the result has the entries of an operand's term")


def _is_same(a: object, b: object) -> bool:
    return a is b


def _equal(a: Any, b: Any) -> bool:
    return (a is None) == (b is None) and bool(np.array_equal(a, b))


# -- the operations of each term ---------------------------------------------------------------------------------------


class OutputTerms(NamedTuple):
    """A step's output, and its terms with respect to the relevant variables (see ``TermHistory``)."""

    step: JacStep
    output: int
    operands: list[list[Term]]
    terms: list[Term]

    @property
    def shape(self) -> Shape:
        return tuple(shape_of(self.step.outs[self.output]))


def complex_parts(variable: Variable) -> tuple[Variable, ...]:
    """Return the real and imaginary part of a complex variable, with respect to which its terms are; else nothing."""
    return variable.parts if variable.dtype.kind == "c" else ()


class TermHistory:
    """The operations that each term went through.

    Attributes:
        lines: the steps on paths from the variable.
        cuts: maps the intermediate variables of values that were cut to the origins of these values; oldest first.
        merged: the origins of values whose many small terms were merged.
        relevant: the variable, its real and imaginary part, and the intermediate variables that depend on it.
        final, lineage: the terms of the result, and for each the numbers of its steps.
        settled: the terms of the result after merging.
    """

    def __init__(self, records: Sequence[TermRecord], result: object, variable: Variable, final: list[Term]) -> None:
        self.relevant = {variable, *complex_parts(variable)}
        self.cuts: dict[Variable, Any] = {}
        self.merged: set[object] = set()
        self.lines: list[OutputTerms] = []
        self.values: dict[object, tuple[list[Term], list[frozenset[int]]]] = {}
        for record in records:
            self._add(record)
        self.settled = [term for term in final if term.source in self.relevant]
        terms, lineage = self.values.get(result, (final, [frozenset()] * len(final)))
        kept = [term.source in self.relevant and term.cols.size > 0 for term in terms]
        self.final = list(itertools.compress(terms, kept))
        self.lineage = list(itertools.compress(lineage, kept))

    @classmethod
    def without_terms(cls, result: Jac, variable: Variable) -> TermHistory:
        """Return the history of a result whose Jacobian was computed by products: only the steps."""
        history = cls([], result.origin, variable, [])
        on_the_way: set[object] = {variable}
        for step in steps_of([result]):
            if not on_the_way.isdisjoint(step.origins):
                on_the_way |= {(step, k) for k in range(len(step.outs))}
                reached = [[variable.identity()] if origin in on_the_way else [] for origin in step.origins]
                history.lines.append(OutputTerms(step, 0, reached, []))
        return history

    def _add(self, record: TermRecord) -> None:
        step = record.step
        before = [self._lineage(o, terms) for o, terms in zip(step.origins, record.operands, strict=True)]
        operands = [[t for t in terms if t.source in self.relevant] for terms in record.operands]
        for k, (terms, came) in enumerate(zip(record.outs, record.came, strict=True)):
            shown = [t for t in terms if t.source in self.relevant]
            own = set()
            if shown or any(operands):
                self.lines.append(OutputTerms(step, k, operands, shown))
                own = {len(self.lines)}
            lineage = [frozenset(own.union(*[before[o.operand][o.term] for o in origins])) for origins in came]
            self.values[step, k] = (terms, lineage)

    def _lineage(self, origin: object, terms: list[Term]) -> list[frozenset[int]]:
        """Return the steps of each of a value's terms; none if the value was cut after it was computed."""
        made, lineage = self.values.get(origin, ([], []))
        known = {id(term): steps for term, steps in zip(made, lineage, strict=True)}
        return [known[id(t)] if id(t) in known else self._new(origin, t, made, lineage) for t in terms]

    def _new(self, origin: object, term: Term, made: list[Term], lineage: list[frozenset[int]]) -> frozenset[int]:
        """Return the steps of an operand's term that its value did not have when it was computed (after a cut or a merge)."""
        own = term.source.terms
        if own is not None and all([other.source is not term.source for other in made]):
            if term.source not in self.cuts:
                self.cuts[term.source] = origin
                if any([other.source in self.relevant for other in own]):
                    self.relevant.add(term.source)
            return frozenset()
        if made:
            self.merged.add(origin)
        return frozenset().union(*[steps for part, steps in zip(made, lineage, strict=True) if _meet(part, term)])


def _meet(a: Term, b: Term) -> bool:
    """Return whether two terms have an entry at the same position."""
    if a.source is not b.source:
        return False
    (rows, cols, _), (others, positions, _) = a.entries(), b.entries()
    n = a.source.size
    return bool(np.isin(rows * n + cols, others * n + positions).any())


# -- the run -----------------------------------------------------------------------------------------------------------


class JacobianRun(NamedTuple):
    """A run of the function.

    Attributes:
        trace: of the call.
        result: the value that the terms belong to: the output, or the input's gradient if ``backward``.
        variable: the variable of the terms: the input, or the output's cotangent if ``backward``.
        history: the operations of each term.
        with_terms: whether terms were propagated; a Jacobian computed by products with unit vectors has none.
        backward: whether the transpose was propagated back from the output.
        nodes: maps the operations of backward passes to the nodes whose rules ran them.
    """

    trace: JacobianTrace
    result: Jac
    variable: Variable
    history: TermHistory
    with_terms: bool
    backward: bool
    nodes: dict[JacStep, Any]

    def place(self, step: JacStep) -> Where:
        """Return the source location of a step; for a step of a backward pass, of the operation that is differentiated."""
        node = self.nodes.get(step, step)
        return Where(node.code, node.lasti)


def run_call(call: JacobianCall) -> JacobianRun:
    """Run the function of a Jacobian's call again, with the same strategy."""
    with Rules() as rules:
        trace = JacobianTrace(call.function, call.x, False)
    if call.strategy == REVERSE:
        return _backward(call, trace)
    result, variable = trace.results[call.output], trace.variables[call.input]
    nodes = rules.nodes_of(steps_of([result]))
    if call.strategy == FORWARD:
        return JacobianRun(
            trace, result, variable, _history_of(result, variable, call.memory // ITEMSIZE), True, False, nodes
        )
    return JacobianRun(trace, result, variable, TermHistory.without_terms(result, variable), False, False, nodes)


def _history_of(result: Jac, variable: Variable, limit: int) -> TermHistory:
    propagation = RecordingPropagation(limit)
    final = Accumulation([result], limit, propagation).terms_of(result)
    return TermHistory(propagation.records, result.origin, variable, final)


def _backward(call: JacobianCall, forward: JacobianTrace) -> JacobianRun:
    """Run the backward pass on a cotangent whose Jacobian is traced."""
    args = call.x if type(call.x) is tuple else (call.x,)
    trace = Trace("jacobian", call.function, range(len(args)), args, {})
    outputs, _ = trace.outputs()
    with Rules() as rules:
        cotangent, gradients = backward_of(trace, outputs[call.output], False)
    gradient = gradients[call.input]
    if type(gradient) is not Jac:  # the output does not depend on the input
        nothing = Jac(np.zeros(forward.variables[call.input].shape), None, 0)
        return JacobianRun(forward, nothing, cotangent, TermHistory([], None, cotangent, []), True, True, {})
    history = _history_of(gradient, cotangent, call.memory // ITEMSIZE)
    return JacobianRun(forward, gradient, cotangent, history, True, True, rules.nodes_of(steps_of([gradient])))


class Rules(Watch):
    """Records for each node the sequence numbers at which its rule began and ended."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, int, Any]] = []

    def backward(self, node: Node, g: object, saved: tuple[object, ...], edges: tuple[object, ...]) -> tuple[Any, ...]:
        began = next_seq()
        grads = super().backward(node, g, saved, edges)
        self.ran.append((began, next_seq(), node))
        return grads

    def nodes_of(self, steps: Sequence[JacStep]) -> dict[JacStep, Any]:
        """Map each step to the node whose rule ran it."""
        return {step: node for step in steps for began, ended, node in self.ran if began < step.seq < ended}
