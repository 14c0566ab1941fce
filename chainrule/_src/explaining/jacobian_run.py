"""The run of a function that an explanation of its Jacobian is made of: on moves that note what goes in and what comes out.

To know which of an operand's terms a result's term came from, each of them is carried through the operation once more, alone.
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
from chainrule._src.jacobians.moves import Moves
from chainrule._src.jacobians.reverse import backward_of
from chainrule._src.jacobians.strategy import FORWARD, REVERSE
from chainrule._src.jacobians.terms import Term, Variable
from chainrule._src.jacobians.trace import JacobianTrace, Recipe
from chainrule._src.jacobians.ways import ITEMSIZE
from chainrule._src.messages.places import Where
from chainrule._src.tape.node import Node, next_seq
from chainrule._src.transforms.trace import Trace


class Told(Moves):
    """Moves that note what they did.

    Attributes:
        records: one for each step, in their order.
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
                        origins[_place(part, out)].append(OperandTerm(i, j))
        self.records.append(TermRecord(step, [list(terms) for terms in operands], outs, came))
        return outs


class OperandTerm(NamedTuple):
    """A term of an operand: which operand, and which of its terms."""

    operand: int
    term: int


class TermRecord(NamedTuple):
    """What one step did to terms: those of its operands, those of its outputs, and where each of the latter came from."""

    step: JacStep
    operands: list[list[Term]]
    outs: list[list[Term]]
    came: list[list[list[OperandTerm]]]


def _place(part: Term, terms: list[Term]) -> int:
    """Which of the terms has a part's entries."""
    for same in (_is_same, _equal):
        for k, term in enumerate(terms):
            if term.source is part.source and same(term.cols, part.cols) and same(term.rows, part.rows):
                return k
    raise AssertionError("a term of one operand is in none of the result's")


def _is_same(a: object, b: object) -> bool:
    return a is b


def _equal(a: Any, b: Any) -> bool:
    return (a is None) == (b is None) and bool(np.array_equal(a, b))


# -- which operations a term went through ------------------------------------------------------------------------------


class OutputTerms(NamedTuple):
    """A step's output, and its terms with respect to what matters."""

    step: JacStep
    output: int
    operands: list[list[Term]]
    terms: list[Term]

    @property
    def shape(self) -> Shape:
        return tuple(shape_of(self.step.outs[self.output]))


def parts_of(variable: Variable) -> tuple[Variable, ...]:
    """The variables that the terms of a complex one are with respect to."""
    return variable.parts if variable.dtype.kind == "c" else ()


class Story:
    """Which operations each term went through.

    Attributes:
        lines: the steps on the way from the variable.
        cuts: the values that became variables: what they are as such, and where they came from; oldest first.
        merged: where values came from whose terms were put together, because they were many and small.
        relevant: the variables whose Jacobians lead to the variable, itself, and its parts, if it is complex.
        final, lineage: the terms of the result, and for each the numbers of its steps.
        settled: the terms of the result as they went on: those, or fewer ones that they were put together to.
    """

    def __init__(self, records: Sequence[TermRecord], result: object, variable: Variable, final: list[Term]) -> None:
        self.relevant = {variable, *parts_of(variable)}
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
    def without_terms(cls, result: Jac, variable: Variable) -> Story:
        """Of a result whose Jacobian was computed as products: the steps alone."""
        story = cls([], result.origin, variable, [])
        on_the_way: set[object] = {variable}
        for step in steps_of([result]):
            if not on_the_way.isdisjoint(step.origins):
                on_the_way |= {(step, k) for k in range(len(step.outs))}
                reached = [[variable.identity()] if origin in on_the_way else [] for origin in step.origins]
                story.lines.append(OutputTerms(step, 0, reached, []))
        return story

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
        """The steps of a value's terms; none, where it was cut since it was made."""
        made, lineage = self.values.get(origin, ([], []))
        known = {id(term): steps for term, steps in zip(made, lineage, strict=True)}
        return [known[id(t)] if id(t) in known else self._new(origin, t, made, lineage) for t in terms]

    def _new(self, origin: object, term: Term, made: list[Term], lineage: list[frozenset[int]]) -> frozenset[int]:
        """The steps of a term that an operand has and its value had not, when it was made."""
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
    """Whether terms have an entry at one place."""
    if a.source is not b.source:
        return False
    (rows, cols, _), (others, places, _) = a.entries(), b.entries()
    n = a.source.size
    return bool(np.isin(rows * n + cols, others * n + places).any())


# -- the run -----------------------------------------------------------------------------------------------------------


class JacobianRun(NamedTuple):
    """A run of the function.

    Attributes:
        trace: of the call.
        result: the value whose terms they are: the output; or the input's gradient, if ``backward``.
        variable: with respect to which: the input; or the output's cotangent.
        story: how the terms came about.
        with_terms: whether there are any: products with unit vectors have none.
        backward: whether the transpose was carried back from the output.
        nodes: what the operations of backward passes belong to.
    """

    trace: JacobianTrace
    result: Jac
    variable: Variable
    story: Story
    with_terms: bool
    backward: bool
    nodes: dict[JacStep, Any]

    def place(self, step: JacStep) -> Where:
        """Where in the program a step comes from: one of a backward pass, from the operation that it goes back through."""
        node = self.nodes.get(step, step)
        return Where(node.code, node.lasti)


def run(recipe: Recipe) -> JacobianRun:
    """The run that a recipe tells."""
    with Rules() as rules:
        trace = JacobianTrace(recipe.function, recipe.x, False)
    if recipe.strategy == REVERSE:
        return _backward(recipe, trace)
    result, variable = trace.results[recipe.output], trace.variables[recipe.input]
    nodes = rules.nodes_of(steps_of([result]))
    if recipe.strategy == FORWARD:
        return JacobianRun(
            trace, result, variable, _story(result, variable, recipe.memory // ITEMSIZE), True, False, nodes
        )
    return JacobianRun(trace, result, variable, Story.without_terms(result, variable), False, False, nodes)


def _story(result: Jac, variable: Variable, limit: int) -> Story:
    told = Told(limit)
    final = Accumulation([result], limit, told).terms_of(result)
    return Story(told.records, result.origin, variable, final)


def _backward(recipe: Recipe, forward: JacobianTrace) -> JacobianRun:
    """The backward pass, on a cotangent that notes where its Jacobian comes from."""
    args = recipe.x if type(recipe.x) is tuple else (recipe.x,)
    trace = Trace("jacobian", recipe.function, range(len(args)), args, {})
    outputs, _ = trace.outputs()
    with Rules() as rules:
        cotangent, gradients = backward_of(trace, outputs[recipe.output], False)
    gradient = gradients[recipe.input]
    if type(gradient) is not Jac:  # nothing leads there
        nothing = Jac(np.zeros(forward.variables[recipe.input].shape), None, 0)
        return JacobianRun(forward, nothing, cotangent, Story([], None, cotangent, []), True, True, {})
    story = _story(gradient, cotangent, recipe.memory // ITEMSIZE)
    return JacobianRun(forward, gradient, cotangent, story, True, True, rules.nodes_of(steps_of([gradient])))


class Rules(Watch):
    """Notes which node's rule ran when."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, int, Any]] = []

    def backward(self, node: Node, g: object, saved: tuple[object, ...], edges: tuple[object, ...]) -> tuple[Any, ...]:
        began = next_seq()
        grads = super().backward(node, g, saved, edges)
        self.ran.append((began, next_seq(), node))
        return grads

    def nodes_of(self, steps: Sequence[JacStep]) -> dict[JacStep, Any]:
        """The nodes whose rules took the steps."""
        return {step: node for step in steps for began, ended, node in self.ran if began < step.seq < ended}
