"""``Explanation``: the steps, values and gradients of a backward pass, and the methods that show them.

``entry.explain`` makes it from the records of ``sweep.record_sweep``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import JSONObject, NumpyArray
from chainrule._src.explaining import rules
from chainrule._src.explaining.calls import calls_of
from chainrule._src.explaining.check import Check, check_explanation
from chainrule._src.explaining.contributions import Contributions, contributions_of
from chainrule._src.explaining.exports import mimebundle
from chainrule._src.explaining.graph import MOST_CARDS, Graph, graph_of
from chainrule._src.explaining.jacobian import IndexForm, jacobians_of
from chainrule._src.explaining.lessons import Lesson, lessons_of
from chainrule._src.explaining.page import explanation_html, notebook_fragment
from chainrule._src.explaining.picture import arrays_of_nodes
from chainrule._src.explaining.steps import Arrow, Step
from chainrule._src.explaining.sweep import RuleRecord
from chainrule._src.explaining.text import explanation_text, rich_console
from chainrule._src.explaining.to_dict import to_dict, value_dict
from chainrule._src.explaining.values import Value, Values, node_outputs
from chainrule._src.tape.node import Edge, Leaf
from chainrule._src.tape.tensor import Tensor


class Explanation:
    """A backward pass, step by step. Returned by :func:`chainrule.explain`.

    Attributes:
        outputs: the values at which the pass starts.
        wrt: the values whose gradients are explained.
        seeds: for each output, the gradient ∂L/∂output at which the pass starts.
        default_seed: whether the seeds are the default, ones.
        steps: one for each operation, in the order of the backward pass.
        values: maps the name of every array in the pass to its :class:`Value`.
        gradients: maps each name in ``wrt`` to its gradient; None if the outputs do not depend on it.
        lessons: remarks on common misunderstandings that apply to this call.
    """

    __module__ = "chainrule.explaining"

    def __init__(
        self,
        tensors: Sequence[Tensor],
        seeds: Sequence[NumpyArray],
        wanted: Sequence[Tensor],
        values: Values,
        records: Sequence[RuleRecord],
        found: Sequence[NumpyArray | None],
        default_seed: bool,
        given: Sequence[object],
    ) -> None:
        self._tensors = tuple(tensors)
        self._wanted = tuple(wanted)
        self._values = values
        self.default_seed = default_seed
        self.seeds = [np.array(seed) for seed in seeds]
        self.steps: list[Step] = []
        self._terms: dict[Edge, list[tuple[int, str, NumpyArray]]] = {}
        for tensor, seed in zip(tensors, self.seeds):
            self._terms.setdefault(tensor._edge, []).append((0, "", seed))
            value = values.at(tensor._edge, seed.shape, seed.dtype)
            value.role = "leaf" if type(tensor._edge) is Leaf else "output"
        for record in records:
            self._add(record)
        for tensor, g in zip(wanted, found):
            value = values.at(tensor._edge, tensor._raw.shape, tensor._raw.dtype)
            value.gradient = g
        values.finish(records)
        self.values: dict[str, Value] = {v.name: v for v in values.all()}
        self.outputs = [values.by_edge[t._edge] for t in tensors]
        self.wrt = [values.by_edge[t._edge] for t in wanted]
        self.gradients: dict[str, Any] = {v.name: v.gradient for v in self.wrt}
        for step in self.steps:
            step.source_line = values.names.line(step.record.node)
        oldest_first = self.steps[::-1]
        for call in calls_of([step.record.node for step in oldest_first]):
            for step in oldest_first[call.start : call.stop]:
                step.call = call.name
        self._note_hooks()
        self.lessons: list[Lesson] = list(lessons_of(self, given))

    def _add(self, record: RuleRecord) -> None:
        """Append the step of a rule that ran."""
        step = Step(len(self.steps) + 1, record, self._values)
        node, values = record.node, self._values
        edges = node_outputs(node)
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
            if edge is not None and asked is not None and g is not None:
                value = values.at(edge, g.shape, g.dtype)
                if value.gradient is None:
                    value.gradient = g
                terms = self._terms.setdefault(edge, [])
                arrow = Arrow(step, i, operands[i], value, g)
                arrow.sign = "+=" if terms else "="
                step.arrows.append(arrow)
                terms.append((step.index, operands[i], g))
        rules.set_constants(step)
        self.steps.append(step)

    def _note_hooks(self) -> None:
        made = "is the value that they returned for the sum"
        for step in self.steps:
            ran = [edge.hooks for edge in {step.record.node, step.output.edge} if edge.hooks is not None]
            if any(hooks.tensor or hooks.pre for hooks in ran):
                step.notes.append(f"hooks on {step.output.name} ran: its cotangent {made}")
            if any(hooks.post for hooks in ran):
                step.notes.append("hooks on this node ran after its rule: the values that they returned flow on")
        for value in self.wrt:
            last = max((index for index, *_ in self.terms_of(value)), default=0)
            if type(value.edge) is Leaf and last and value.edge.hooks is not None and value.edge.hooks.tensor:
                self.steps[last - 1].notes.append(f"hooks on {value.name} ran: its gradient {made}")

    def terms_of(self, value: Value) -> list[tuple[int, str, NumpyArray]]:
        """Return the terms of a value's cotangent: ``(step index, operand, array)``, with index 0 for the given gradient."""
        return self._terms.get(value.edge, [])

    @property
    def title(self) -> str:
        """The names of outputs and inputs, in one line."""
        outs = ", ".join(v.name for v in self.outputs)
        return f"{outs} → {', '.join(v.name for v in self.wrt)}" if self.wrt else outs

    @property
    def scalar(self) -> str:
        """The name of the differentiated scalar: the output if it is a scalar, else L, or another letter if L is in use."""
        if len(self.outputs) == 1 and self.default_seed and self.outputs[0].shape == ():
            return self.outputs[0].name
        names = {value.name for value in self.values.values()}
        return next((letter for letter in ("L", "ℒ", "ℓ") if letter not in names), "L′")

    @functools.cached_property
    def graph(self) -> Graph:
        """The graph of the pass, to draw (see ``Tensor.graph``)."""
        labels = {key: v.name for key, v in {**self._values.constants, **self._values.by_edge}.items()}
        small = len(labels) + len(self.steps) <= MOST_CARDS
        graph = graph_of(*self._tensors, names=self._values.names, labels=labels, every=small, composites=not small)
        graph.explain(self._values.all())
        graph.sideways = True
        graph._numbers = arrays_of_nodes(
            graph.nodes, {v.id: value_dict(v) for v in self._values.all()} if small else {}
        )
        return graph

    @functools.cached_property
    def _checked(self) -> Check:
        return check_explanation(self)

    @functools.cached_property
    def jacobians(self) -> list[IndexForm]:
        """The Jacobian of every output with respect to every value in ``wrt``, in index form if an exact form exists."""
        return jacobians_of(self)

    @property
    def jacobian_index(self) -> dict[tuple[str, str], str]:
        """The Jacobians that have an index form, as text, by the names of output and input.

        >>> import chainrule as cr
        >>> x = cr.tensor([1., 2., 3.], requires_grad=True)
        >>> y = cr.outer(x, x)
        >>> cr.explain(y).jacobian_index["y", "x"]
        '∂y[j,k]/∂x[i] = δ[i,j]·x[k] + δ[i,k]·x[j]'
        """
        return {(j.output.name, j.input.name): j.index for j in self.jacobians if j.index is not None}

    def is_named(self, value: Value) -> bool:
        """Return whether a variable of the program holds the value."""
        return value.edge in self._values.held

    def contributions(self, by: str = "term") -> Contributions:
        """Divide the gradients into parts that add up to them, each with its norm and its share.

        Args:
            by: "term": by the terms of the sum that the output is, with one pass from each. A variable of the program is one
                term, and so is an expression in a loop. "line": by the lines whose operations read the leaves.
                "module": by the modules that have the leaves as parameters.

        Returns:
            :class:`Contributions`, which print as a table.

        Raises:
            ValueError: ``by`` is unknown.

        >>> import chainrule as cr
        >>> w = cr.tensor([3., 4.], requires_grad=True)
        >>> fit, size = (w - 1).square().sum(), w.square().sum()
        >>> for row in cr.explain(fit + 0.5 * size).contributions("term").rows("w"):
        ...     print(f"{row.part}: norm {row.norm:.2f}, share {row.share:.1%}, cosine {row.cosine:.3f}")
        fit: norm 7.21, share 59.1%, cosine 1.000
        0.5 * size: norm 5.00, share 40.9%, cosine 0.999
        """
        return contributions_of(self, by)

    def check(self) -> Check:
        """Build the Jacobian of every output, contract it with the given gradient, and compare with the gradients.

        Returns:
            A :class:`Check`: true if they agree. It is also true, with a remark, if a Jacobian is too large to build.
        """
        return self._checked

    def to_dict(self) -> JSONObject:
        """Return the explanation as nested dicts and lists of plain Python values, for JSON."""
        return to_dict(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a self-contained HTML page; also write it to a file if ``path`` is given."""
        page = explanation_html(self)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def __str__(self) -> str:
        return explanation_text(self)

    def __repr__(self) -> str:
        return f"<explanation of {self.title}: {len(self.steps)} steps>"

    def __rich_console__(self, console: object, options: object) -> Iterator[object]:
        yield from rich_console(self, console, options)

    def _repr_html_(self) -> str:
        return notebook_fragment(self)

    def _repr_svg_(self) -> str:
        return str(self.graph.to_svg())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        makers = {"text/plain": self.__str__, "text/html": self._repr_html_, "image/svg+xml": self._repr_svg_}
        return mimebundle(makers, include, exclude)
