"""The steps of a backward pass: one for every operation, with one arrow for every operand that a gradient flows to."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

from chainrule._src.arrays.types import AnyArray, NumpyArray, Params, Saved
from chainrule._src.explaining import rules, structure
from chainrule._src.explaining.diagnosis.source import SourceLine
from chainrule._src.explaining.sweep import RuleRecord
from chainrule._src.explaining.values import Value, Values
from chainrule._src.rules.primitive import Primitive

_MARKS = re.compile(r":\w+:`~?([^`]*)`|``?([^`]*)``?")  # of reStructuredText


def _of_rule(attribute: str, doc: str) -> property:
    return property(lambda arrow: getattr(arrow._rule, attribute), doc=doc)


class Arrow:
    """What one rule sends to one operand.

    Attributes:
        step: the step it belongs to.
        position: which operand, counted from 0.
        operand: the row's name for it: "x", "y" ...
        input: the operand's value.
        downstream: the cotangent that the rule computed for it, of its shape.
        sign: "=", or "+=" if other terms of the operand's cotangent came before.
        built: whether the local Jacobian was ever in memory: False.
    """

    __module__ = "chainrule.explaining"
    built = False

    def __init__(self, step: Step, position: int, operand: str, value: Value, downstream: NumpyArray) -> None:
        self.step = step
        self.position = position
        self.operand = operand
        self.input = value
        self.downstream = downstream
        self.sign = "="

    @functools.cached_property
    def _rule(self) -> rules.ArrowRule:
        return rules.ArrowRule(self)

    rule_numpy = _of_rule(
        "numpy", "The rule in NumPy, to be run in ``environment()``; None where the row has no formula."
    )
    rule_latex = _of_rule("latex", "The rule in LaTeX.")
    rule_mathml = _of_rule("mathml", "The rule in MathML.")
    rule_index = _of_rule(
        "index", "The rule for one element: ``Xˉ[i,k] = Σ_j Zˉ[i,j]·W[k,j]``; None if it has no such form."
    )
    numbers = _of_rule("numbers", "The rule for one element, with the numbers put in.")
    words = _of_rule("words", "The rule in words, where it has no formula.")

    @property
    def jacobian_shape(self) -> tuple[int, ...]:
        """The local Jacobian's: ``(*output.shape, *input.shape)``."""
        return (*self.step.output.shape, *self.input.shape)

    @property
    def jacobian_size(self) -> int:
        """How many numbers the local Jacobian has."""
        return math.prod(self.jacobian_shape)

    def environment(self) -> Params:
        """The namespace that ``rule_numpy`` runs in."""
        return self._rule.environment()

    @property
    def unbroadcast(self) -> str | None:
        """How broadcasting was undone, if there was any."""
        return structure.unbroadcast(self)

    @property
    def structure(self) -> str:
        """What the local Jacobian looks like: "diagonal", "I ⊗ Wᵀ", "selection" ..."""
        return structure.of(self)[0]

    @property
    def structure_text(self) -> str:
        """The same in a sentence."""
        return structure.of(self)[1]

    def jacobian(self, limit: int = 4096) -> Any:
        """The local Jacobian's values, for looking at; None if it has more than ``limit`` numbers."""
        return structure.jacobian(self, limit)

    def __repr__(self) -> str:
        return f"<arrow {self.step.output.name} → {self.input.name}: {self.rule_numpy or self.words}>"


def _of_arrows(attribute: str, doc: str) -> property:
    """What the only arrow has; for several a dict by their inputs' names, or by operands where these are equal."""

    def get(step: Step) -> object:
        arrows = step.arrows
        if len(arrows) == 1:
            return getattr(arrows[0], attribute)
        by_name = len({arrow.input.name for arrow in arrows}) == len(arrows)
        return {arrow.input.name if by_name else arrow.operand: getattr(arrow, attribute) for arrow in arrows}

    return property(get, doc=doc)


class Step:
    """One operation of the backward pass.

    ``jacobian_shape``, ``structure``, ``rule_numpy``, ``rule_index``, ``rule_latex`` and ``downstream`` are those of its
    arrow if a gradient flows to one operand, and dicts if to several: by the operands' names, or by the row's names for
    operands ("x", "y") where one value comes twice.

    >>> import chainrule as cr
    >>> X, W = cr.ones(2, 3, requires_grad=True), cr.ones(3, 4, requires_grad=True)
    >>> exp, mm = cr.explain(cr.exp(X @ W)).steps
    >>> exp.jacobian_shape, exp.structure
    ((2, 4, 2, 4), 'diagonal')
    >>> mm.jacobian_shape
    {'X': (2, 4, 2, 3), 'W': (2, 4, 3, 4)}

    Attributes:
        record: what the sweep saw of it.
        all_values: the values of the whole explanation.
        index: counted from 1, in the order in which the backward pass visits them.
        op: the row's name: "exp", "mm".
        node_name: the node's: "ExpBackward0".
        call: the function that the program called, if this operation is one of several that it consists of: "outer"; or "".
        doc: the row's description.
        source_line: the line of the program that called it, if known.
        output: its result; the first one that a cotangent arrived at, where there are several.
        outputs, upstreams: all results with their cotangents (None: nothing arrived).
        upstream: the cotangent that arrived at ``output``.
        terms: what ``upstream`` is the sum of: ``(step index, operand, array)``, with 0 for the gradient that was given.
        arrows: one for each operand that a gradient flows to.
        constants: the other operands, as far as the rule reads them.
        operands, operand_values: the data of all operands (None: not known), and by position what is known about them.
        params: the operation's parameters.
        notes: what else there is to say.
    """

    __module__ = "chainrule.explaining"

    def __init__(self, index: int, record: RuleRecord, values: Values) -> None:
        node = record.node
        self.index = index
        self.record = record
        self.all_values = values
        self.op: str = node.prim.name
        self.node_name: str = node.name()
        self.call = ""
        self.doc: str = _MARKS.sub(r"\1\2", (node.prim.doc or "").strip().split("\n")[0])
        self.source_line: SourceLine | None = None
        self.outputs: list[Value] = []
        self.upstreams: list[NumpyArray] = []
        self.output: Value
        self.upstream: Any = None
        self.terms: list[tuple[int, str, NumpyArray]] = []
        self.arrows: list[Arrow] = []
        self.constants: list[Value] = []
        self.operands: list[AnyArray | None] = []
        self.operand_values: dict[int, Value] = {}
        self.params = {k: v for k, v in node.params.items() if k != "_outputs" and node.prim.kind != "function"}
        self.notes: list[str] = []

    jacobian_shape = _of_arrows("jacobian_shape", "The local Jacobian's shape ``(*output_shape, *input_shape)``.")
    structure = _of_arrows("structure", 'What the local Jacobian looks like: "diagonal", "I ⊗ Wᵀ" ...')
    rule_numpy = _of_arrows("rule_numpy", "The rule in NumPy.")
    rule_index = _of_arrows("rule_index", "The rule for one element.")
    rule_latex = _of_arrows("rule_latex", "The rule in LaTeX.")
    downstream = _of_arrows("downstream", "What the rule sends on.")

    @property
    def prim(self) -> Primitive:
        """The row."""
        return self.record.node.prim

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of its result."""
        return self.output.shape

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of its operands, by their names; constants are among them."""
        return {value.name: value.shape for _, value in sorted(self.operand_values.items())}

    def saved(self) -> Saved:
        """What its rule reads, as it was: copies, where there was room for them."""
        copy = self.all_values.copy
        return tuple(tuple(map(copy, v)) if type(v) is tuple else copy(v) for v in self.record.saved)

    def __repr__(self) -> str:
        return f"<step {self.index}: {self.op} {self.output.name}>"
