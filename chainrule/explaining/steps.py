"""Explanations of a backward pass: one step for every operation, one arrow for every operand that a gradient flows to."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.core.node import Leaf
from chainrule.core.tensor import Tensor
from chainrule.errors.source import SourceLine
from chainrule.explaining import rules, structure
from chainrule.explaining.check import Check, checked
from chainrule.explaining.lessons import Lesson, lessons_of
from chainrule.explaining.notebook import bundle, html
from chainrule.explaining.sweep import Record
from chainrule.explaining.text import rich_console, text
from chainrule.explaining.to_dict import to_dict
from chainrule.explaining.values import Value, Values, outputs_of
from chainrule.explaining.whole import WholeJacobian, jacobians_of

ndarray = np.ndarray


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

    built = False

    def __init__(self, step: Step, position: int, operand: str, value: Value, downstream: Any) -> None:
        self.step = step
        self.position = position
        self.operand = operand
        self.input = value
        self.downstream = downstream
        self.sign = "="

    @property
    def jacobian_shape(self) -> tuple[int, ...]:
        """The local Jacobian's: ``(*output.shape, *input.shape)``."""
        return (*self.step.output.shape, *self.input.shape)

    @property
    def jacobian_size(self) -> int:
        """How many numbers the local Jacobian has."""
        size = 1
        for n in self.jacobian_shape:
            size *= n
        return size

    @functools.cached_property
    def _rule(self) -> rules.Rule:
        return rules.Rule(self)

    @property
    def rule_numpy(self) -> str | None:
        """The rule in NumPy and the user's names, to be run in ``environment()``; None where the row has no formula."""
        return self._rule.numpy

    @property
    def rule_latex(self) -> str | None:
        """The rule in LaTeX."""
        return self._rule.latex

    @property
    def rule_mathml(self) -> str | None:
        """The rule in MathML."""
        return self._rule.mathml

    @property
    def rule_index(self) -> str | None:
        """The rule for one element, as in ``X̄[i,k] = Σ_j Z̄[i,j]·W[k,j]``; None where it has no such form."""
        return self._rule.index

    @property
    def numbers(self) -> str | None:
        """The rule for one element, with the numbers put in."""
        return self._rule.numbers

    @property
    def words(self) -> str:
        """The rule in words, where it has no formula."""
        return self._rule.words

    def environment(self) -> dict[str, Any]:
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


class Step:
    """One operation of the backward pass.

    Attributes:
        index: counted from 1, in the order in which the backward pass visits them.
        op: the row's name: "exp", "mm".
        node_name: the node's: "ExpBackward0".
        doc: the row's description.
        source_line: the line of the program that called it, if known.
        output: its result; the first one that a cotangent arrived at, where there are several.
        outputs, upstreams: all results with their cotangents (None: nothing arrived).
        upstream: the cotangent that arrived at ``output``.
        terms: what ``upstream`` is the sum of: ``(step index, operand, array)``, with 0 for the gradient that was given.
        arrows: one for each operand that a gradient flows to.
        constants: the other operands, as far as the rule reads them.
        params: the operation's parameters.
        notes: what else there is to say.
    """

    def __init__(self, index: int, record: Record) -> None:
        self.index = index
        self.record = record
        node = record.node
        self.op: str = node.prim.name
        self.node_name: str = node.name()
        self.doc: str = (node.prim.doc or "").strip().split("\n")[0]
        self.source_line: SourceLine | None = None
        self.outputs: list[Value] = []
        self.upstreams: list[Any] = []
        self.output: Value
        self.upstream: Any = None
        self.terms: list[tuple[int, str, Any]] = []
        self.arrows: list[Arrow] = []
        self.constants: list[Value] = []
        self.params = {k: v for k, v in node.params.items() if k != "_outputs" and node.prim.kind != "function"}
        self.notes: list[str] = []

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of its result."""
        return self.output.shape

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of its operands, by their names; constants are among them."""
        return {value.name: value.shape for _, value in sorted(self.operand_values.items())}

    def _of_arrows(self, attribute: str) -> Any:
        """What the only arrow has; for several a dict by their inputs' names, or by operands where these are equal."""
        if len(self.arrows) == 1:
            return getattr(self.arrows[0], attribute)
        several = len({arrow.input.name for arrow in self.arrows}) == len(self.arrows)
        return {(a.input.name if several else a.operand): getattr(a, attribute) for a in self.arrows}

    @property
    def jacobian_shape(self) -> Any:
        """The local Jacobian's shape ``(*output_shape, *input_shape)``.

        This, and ``structure``, ``rule_numpy``, ``rule_index``, ``rule_latex`` and ``downstream``, is the thing itself if a
        gradient flows to one operand, and a dict if to several: by their names, or by the row's names for operands
        ("x", "y") where one value comes twice.

        >>> import chainrule as cr
        >>> X, W = cr.ones(2, 3, requires_grad=True), cr.ones(3, 4, requires_grad=True)
        >>> exp, mm = cr.explain(cr.exp(X @ W)).steps
        >>> exp.jacobian_shape, exp.structure
        ((2, 4, 2, 4), 'diagonal')
        >>> mm.jacobian_shape
        {'X': (2, 4, 2, 3), 'W': (2, 4, 3, 4)}
        """
        return self._of_arrows("jacobian_shape")

    @property
    def structure(self) -> Any:
        """What the local Jacobian looks like: "diagonal", "I ⊗ Wᵀ" ...; a dict for several operands."""
        return self._of_arrows("structure")

    @property
    def rule_numpy(self) -> Any:
        """The rule in NumPy; a dict for several operands."""
        return self._of_arrows("rule_numpy")

    @property
    def rule_index(self) -> Any:
        """The rule for one element; a dict for several operands."""
        return self._of_arrows("rule_index")

    @property
    def rule_latex(self) -> Any:
        """The rule in LaTeX; a dict for several operands."""
        return self._of_arrows("rule_latex")

    @property
    def downstream(self) -> Any:
        """What the rule sends on; a dict for several operands."""
        return self._of_arrows("downstream")

    def __repr__(self) -> str:
        return f"<step {self.index}: {self.op} {self.output.name}>"


class Explanation:
    """What a backward pass computes, step by step. Made by :func:`chainrule.explain`.

    Attributes:
        outputs: the values it starts from.
        wrt: the values whose gradients were asked for.
        seeds: for each output the gradient that it starts with: ∂L/∂output.
        default_seed: that was not given: ones.
        steps: one for each operation, in the order of the backward pass.
        values: every array that takes part, by name.
        gradients: for each name in ``wrt`` its gradient; None where the outputs do not depend on it.
        lessons: what is easily misread about this very call.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        seeds: Sequence[Any],
        wanted: Sequence[Tensor],
        values: Values,
        records: Sequence[Record],
        found: Sequence[Any],
        default_seed: bool,
        given: Sequence[Any],
    ) -> None:
        self._tensors = tuple(tensors)
        self._wanted = tuple(wanted)
        self._values = values
        self.default_seed = default_seed
        self.seeds = [np.array(seed) for seed in seeds]
        self.steps: list[Step] = []
        self._terms: dict[Any, list[tuple[int, str, Any]]] = {}
        for tensor, seed in zip(tensors, self.seeds):
            self._terms.setdefault(tensor._edge, []).append((0, "", seed))
            value = values.at(tensor._edge, seed.shape, seed.dtype)
            value.role = "leaf" if type(tensor._edge) is Leaf else "output"
        for record in records:
            self._add(record)
        for tensor, g in zip(wanted, found):
            value = values.at(tensor._edge, tensor._data.shape, tensor._data.dtype)
            value.gradient = g
        values.finish(records)
        self.values: dict[str, Value] = {v.name: v for v in values.all()}
        self.outputs = [values.by_edge[t._edge] for t in tensors]
        self.wrt = [values.by_edge[t._edge] for t in wanted]
        self.gradients: dict[str, Any] = {v.name: v.gradient for v in self.wrt}
        for step in self.steps:
            step.source_line = values.names.line(step.record.node)
        self._note_hooks()
        self.lessons: list[Lesson] = lessons_of(self, given)

    def _add(self, record: Record) -> None:
        """A step for a rule that ran."""
        step = Step(len(self.steps) + 1, record)
        node, values = record.node, self._values
        edges = outputs_of(node)
        gs = [record.g] if edges == [node] else [record.g[edge.index] for edge in edges]
        for edge, g in zip(edges, gs):
            terms = self._terms.get(edge)
            if not terms and edge is not node:
                continue
            value = values.at(edge, g.shape, g.dtype)
            value.gradient = g
            step.outputs.append(value)
            step.upstreams.append(g)
        step.output, step.upstream = step.outputs[0], step.upstreams[0]
        step.terms = self._terms.get(step.output.edge, [])
        operands = rules.operand_names(node)
        for i, (edge, asked, g) in enumerate(zip(node.edges, record.edges, record.grads)):
            if asked is not None and g is not None:
                value = values.at(edge, g.shape, g.dtype)
                if value.gradient is None:
                    value.gradient = g
                terms = self._terms.setdefault(edge, [])
                arrow = Arrow(step, i, operands[i], value, g)
                arrow.sign = "+=" if terms else "="
                step.arrows.append(arrow)
                terms.append((step.index, operands[i], g))
        rules.constants(step, values)
        self.steps.append(step)

    def _note_hooks(self) -> None:
        for step in self.steps:
            for edge in {step.record.node, step.output.edge}:
                hooks = edge.hooks
                if hooks is None:
                    continue
                if hooks.tensor or hooks.pre:
                    step.notes.append(f"hooks on {step.output.name} ran: its cotangent is what they made of the sum")
                if hooks.post:
                    step.notes.append("hooks on this node ran after its rule: what flows on is what they made of it")
        for value in self.wrt:
            hooks = getattr(value.edge, "hooks", None)
            if type(value.edge) is Leaf and hooks is not None and hooks.tensor and self.steps:
                last = max((t[0] for t in self._terms.get(value.edge, [])), default=0)
                if last:
                    self.steps[last - 1].notes.append(
                        f"hooks on {value.name} ran: its gradient is what they made of the sum"
                    )

    def terms_of(self, value: Value) -> list[tuple[int, str, Any]]:
        """What a value's cotangent is the sum of: ``(step index, operand, array)``, with 0 for the given gradient."""
        return self._terms.get(value.edge, [])

    @property
    def title(self) -> str:
        """One line that says what is explained."""
        outs = ", ".join(v.name for v in self.outputs)
        return f"{outs} → {', '.join(v.name for v in self.wrt)}" if self.wrt else outs

    @functools.cached_property
    def graph(self) -> Any:
        """The graph, to draw (see ``Tensor.graph``)."""
        labels = {value.edge: value.name for value in self._values.by_edge.values()}
        module = importlib.import_module("chainrule.explaining.graph")
        return module.graph_of(*self._tensors, names=self._values.names, labels=labels)

    @functools.cached_property
    def _checked(self) -> Check:
        return checked(self._tensors, self.outputs, self.seeds, self._wanted, self.wrt)

    @functools.cached_property
    def jacobians(self) -> list[WholeJacobian]:
        """The whole Jacobian of every output with respect to every value in ``wrt``, in index form where it has one."""
        return jacobians_of(self)

    @property
    def jacobian_index(self) -> dict[tuple[str, str], str]:
        """Those forms, by the names of output and input.

        >>> import chainrule as cr
        >>> x = cr.tensor([1., 2., 3.], requires_grad=True)
        >>> y = cr.outer(x, x)
        >>> cr.explain(y).jacobian_index["y", "x"]
        '∂y[j,k]/∂x[i] = δ[i,j]·x[k] + δ[i,k]·x[j]'
        """
        return {(j.output.name, j.input.name): j.index for j in self.jacobians if j.index is not None}

    def is_named(self, value: Value) -> bool:
        """Whether the program has a name for it."""
        return bool(self._values.given.get(value.edge) or self._values.names.of(value.edge))

    def check(self) -> Check:
        """Build the whole Jacobian of every output, contract it with the given gradient, and compare with the gradients.

        Returns:
            A :class:`Check`: true if they agree (or if the Jacobian is too large to build, which it then says).
        """
        return self._checked

    def to_dict(self) -> dict[str, Any]:
        """Everything as nested dicts and lists of plain Python values, for JSON."""
        return to_dict(self)

    def to_html(self, path: Any = None) -> str:
        """A page that needs nothing else; also written to a file, if ``path`` is given."""
        page: str = importlib.import_module("chainrule.explaining.page").to_html(self)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def __str__(self) -> str:
        return text(self)

    def __repr__(self) -> str:
        return f"<explanation of {self.title}: {len(self.steps)} steps>"

    def __rich_console__(self, console: Any, options: Any) -> Any:
        yield from rich_console(self, console, options)

    def _repr_html_(self) -> str:
        return html(self)

    def _repr_svg_(self) -> str:
        return str(self.graph.to_svg())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return bundle(self, include, exclude)
