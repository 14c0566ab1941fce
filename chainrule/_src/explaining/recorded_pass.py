"""``RecordedPass``: the steps, values and gradients of a backward pass, from the records of ``sweep.record_sweep``.

``ExplanationData`` adds the results that are computed from them, and ``Explanation`` the methods that display everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.explaining import rules
from chainrule._src.explaining.calls import calls_of
from chainrule._src.explaining.diagnosis.anomalies import advice_of
from chainrule._src.explaining.notation import bar
from chainrule._src.explaining.steps import Arrow, Step
from chainrule._src.explaining.sweep import RuleRecord
from chainrule._src.explaining.values import Value, Values, node_outputs
from chainrule._src.tape.node import Edge, Leaf
from chainrule._src.tape.tensor import Tensor


class RecordedPass:
    """A backward pass, step by step. The class ``Explanation`` describes the attributes.

    Args:
        tensors, seeds: the outputs, and the gradients at which the pass starts.
        wanted, found: the inputs, and their gradients (None: the outputs do not depend on it).
        values: the values of the pass and their names.
        records: one for each rule that ran, in order.
        default_seed: whether the seeds are the default, ones.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        seeds: Sequence[NumpyArray],
        wanted: Sequence[Tensor],
        values: Values,
        records: Sequence[RuleRecord],
        found: Sequence[NumpyArray | None],
        default_seed: bool,
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
        self._note_nan()

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

    def _note_nan(self) -> None:
        """Add a note to the step whose rule computes the first NaN of the pass."""
        for step in self.steps:
            if any(_has_nan(g) for g in step.upstreams):
                return
            found = next((arrow for arrow in step.arrows if _has_nan(arrow.downstream)), None)
            if found is not None:
                step.notes.append(_about_nan(found))
                return

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

    def is_named(self, value: Value) -> bool:
        """Return whether a variable of the program holds the value."""
        return value.edge in self._values.held


def _has_nan(x: object) -> bool:
    return type(x) is np.ndarray and x.dtype.kind in "fc" and bool(np.isnan(x).any())


def _about_nan(arrow: Arrow) -> str:
    """Return where an arrow has its first NaN, from which numbers, and how to avoid it."""
    step, down = arrow.step, arrow.downstream
    index = tuple(int(i) for i in np.argwhere(np.isnan(down))[0])
    note = f"{bar(arrow.input.identifier)}{list(index) if index else ''} is the first nan of this pass"
    numbers: dict[str, float] = {}
    for name, x in zip(step.prim.operands, step.operands):
        if step.prim.kind == "elementwise" and getattr(x, "shape", None) == down.shape:
            numbers[name] = np.asarray(x)[index].item()
    if any(x != x for x in numbers.values()):
        return f"{note}: an operand is nan"
    if numbers and step.upstream.shape == down.shape and step.upstream[index] == 0:
        note += f": there {bar(step.output.identifier)} is 0 and the slope of {step.op} is infinite, and 0 · ∞ is nan"
    advice = advice_of(step.prim, numbers)
    return f"{note}.{advice}" if advice else note
