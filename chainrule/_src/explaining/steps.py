"""``Step`` and ``Arrow``: a backward pass has a step for every operation, with an arrow for every operand with a gradient.

``recorded_pass`` makes them.
"""

from __future__ import annotations

import functools
from typing import Any

from chainrule._src.arrays.types import Params
from chainrule._src.explaining import rules, structure
from chainrule._src.explaining.step_data import ArrowData, StepData


def _of_rule(attribute: str, doc: str) -> property:
    return property(lambda arrow: getattr(arrow._rule, attribute), doc=doc)


class Arrow(ArrowData):
    """The cotangent that one rule computes for one operand.

    Attributes:
        step: the step that it belongs to.
        position: the index of the operand.
        operand: the primitive's name of the operand: "x", "y" ...
        input: the operand's value.
        downstream: the cotangent that the rule computed, of the operand's shape.
        sign: "=", or "+=" if earlier steps also contribute to the operand's cotangent.
        built: whether the local Jacobian was built in memory: False.
    """

    __module__ = "chainrule.explaining"
    built = False

    step: Step

    @functools.cached_property
    def _rule(self) -> rules.ArrowRule:
        return rules.ArrowRule(self)

    rule_numpy = _of_rule(
        "numpy", "The rule in NumPy, executable in ``environment()``; None if the rule has no formula."
    )
    rule_latex = _of_rule("latex", "The rule in LaTeX.")
    rule_mathml = _of_rule("mathml", "The rule in MathML.")
    rule_index = _of_rule(
        "index", "The rule for one element: ``Xˉ[i,k] = Σ_j Zˉ[i,j]·W[k,j]``; None if it has no such form."
    )
    numbers = _of_rule("numbers", "The rule for one element, with numbers.")
    words = _of_rule("words", "A sentence about the rule if it has no exact formula, else ''.")

    def environment(self) -> Params:
        """Return the namespace in which ``rule_numpy`` runs."""
        return self._rule.environment()

    @property
    def unbroadcast(self) -> str | None:
        """A sentence on the sum that undoes broadcasting; None if the operand was not broadcast."""
        return structure.broadcast_text(self)

    @property
    def structure(self) -> str:
        """The structure of the local Jacobian: "diagonal", "I ⊗ Wᵀ", "selection" ..."""
        return structure.describe_structure(self)[0]

    @property
    def structure_text(self) -> str:
        """A sentence on the structure of the local Jacobian."""
        return structure.describe_structure(self)[1]

    def jacobian(self, limit: int = 4096) -> Any:
        """Build the local Jacobian, for display; return None if it has more than ``limit`` elements."""
        return structure.local_jacobian(self, limit)

    def __repr__(self) -> str:
        return f"<arrow {self.step.output.name} → {self.input.name}: {self.rule_numpy or self.words}>"


def _of_arrows(attribute: str, doc: str) -> property:
    """Return the attribute of the only arrow; for several, a dict by the inputs' names (by operands if names are equal)."""

    def get(step: Step) -> object:
        arrows = step.arrows
        if len(arrows) == 1:
            return getattr(arrows[0], attribute)
        by_name = len({arrow.input.name for arrow in arrows}) == len(arrows)
        return {arrow.input.name if by_name else arrow.operand: getattr(arrow, attribute) for arrow in arrows}

    return property(get, doc=doc)


class Step(StepData):
    """One operation of the backward pass.

    ``jacobian_shape``, ``structure``, ``rule_numpy``, ``rule_index``, ``rule_latex`` and ``downstream`` are those of its
    arrow if a gradient flows to one operand. If it flows to several, they are dicts by the operands' names, or by the
    primitive's names of operands ("x", "y") if a value is used twice.

    >>> import chainrule as cr
    >>> X, W = cr.ones(2, 3, requires_grad=True), cr.ones(3, 4, requires_grad=True)
    >>> exp, mm = cr.explain(cr.exp(X @ W)).steps
    >>> exp.jacobian_shape, exp.structure
    ((2, 4, 2, 4), 'diagonal')
    >>> mm.jacobian_shape
    {'X': (2, 4, 2, 3), 'W': (2, 4, 3, 4)}

    Attributes:
        record: the record of the rule (see ``sweep``).
        all_values: the values of the whole explanation.
        index: counted from 1, in the order of the backward pass.
        op: the name of the primitive: "exp", "mm".
        node_name: the name of the node: "ExpBackward0".
        call: the function that the program called ("outer"), if it records several operations; else "".
        doc: the description of the primitive.
        source_line: the line of the program that called the operation, if known.
        output: the result; if there are several, the first one with a cotangent.
        outputs, upstreams: all results with their cotangents (None: no cotangent).
        upstream: the cotangent of ``output``.
        terms: the summands of ``upstream``: ``(step index, operand, array)``, with index 0 for the given gradient.
        arrows: one for each operand that a gradient flows to.
        constants: the other operands that the rule reads.
        operands, operand_values: the data of all operands (None: unknown), and their values by position.
        params: the operation's parameters.
        notes: further remarks.
    """

    __module__ = "chainrule.explaining"

    arrows: list[Arrow]

    jacobian_shape = _of_arrows("jacobian_shape", "The local Jacobian's shape ``(*output_shape, *input_shape)``.")
    structure = _of_arrows("structure", 'The structure of the local Jacobian: "diagonal", "I ⊗ Wᵀ" ...')
    rule_numpy = _of_arrows("rule_numpy", "The rule in NumPy.")
    rule_index = _of_arrows("rule_index", "The rule for one element.")
    rule_latex = _of_arrows("rule_latex", "The rule in LaTeX.")
    downstream = _of_arrows("downstream", "The cotangent that the rule computed.")

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.output.shape

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the operands (constants included), by their names."""
        return {value.name: value.shape for _, value in sorted(self.operand_values.items())}

    def __repr__(self) -> str:
        return f"<step {self.index}: {self.op} {self.output.name}>"
