"""Divide gradients into parts that add up to them: by the terms of a loss, the lines of a program, or its modules.

A backward pass is linear in its seeds, and adds cotangents at each value that is used more than once. So the division is exact:
"term" runs one pass for each term of the loss, and "line" groups the cotangents that arrive at a leaf by the line they come from.
``Explanation.contributions`` calls ``contributions_of``, and the page shows the resulting table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule._src.arrays.types import JSONObject, NumpyArray
from chainrule._src.explaining.calls import frames_of
from chainrule._src.explaining.diagnosis.names import place_of
from chainrule._src.explaining.diagnosis.source import SourceLine, line_of
from chainrule._src.explaining.exports import shorten
from chainrule._src.explaining.json_values import finite_or_none
from chainrule._src.explaining.recorded_pass import RecordedPass
from chainrule._src.explaining.shares import DEFINITION, part_title, table_html
from chainrule._src.explaining.steps import Step
from chainrule._src.explaining.text_columns import WIDTH, pad_text, text_columns
from chainrule._src.explaining.values import node_outputs
from chainrule._src.messages import errors
from chainrule._src.rules import kinds
from chainrule._src.tape.node import Edge, Output
from chainrule.nn.parameter import Parameter

WAYS = ("term", "line", "module")
_MOST = 40  # most parts; further terms are combined into one part
_ROWS = 12  # most rows of a leaf in the text
_LEAVES = 6  # most leaves with rows of their own in the text
_NAME = 30  # most characters of a part's name


@dataclass(frozen=True, slots=True)
class GradientPart:
    """A part of a gradient.

    Attributes:
        name: a term's variable or expression, a line's location, a module's name.
        gradients: maps a leaf's name to this part of its gradient; leaves that the part does not reach are missing.
        line: the line of the program, if the part has one.
        count: number of terms in the part (more than one for an expression in a loop).
    """

    name: str
    gradients: dict[str, NumpyArray]
    line: SourceLine | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Contribution:
    """The contribution of a part to the gradient of a leaf (or of all leaves together: then ``leaf`` is "").

    Attributes:
        leaf, part: their names.
        norm: norm of the part.
        share: ⟨part, gradient⟩ / ⟨gradient, gradient⟩, negative if the part opposes the gradient. The shares of a leaf add up
            to 1; nan if the gradient is 0.
        cosine: cosine of the angle between part and gradient; nan if one of them is 0.
    """

    leaf: str
    part: str
    norm: float
    share: float
    cosine: float


Contribution.__module__ = "chainrule.explaining"  # set afterwards: the dataclass decorator looks up the real module


class Contributions:
    """Parts that add up to the gradients of a pass, returned by ``explain(loss, by=...)``. Printing it shows a table.

    Attributes:
        by: "term", "line" or "module".
        title: the names of the outputs.
        parts: the :class:`GradientPart` objects.
        gradients: maps a leaf's name to its whole gradient.
        table: a :class:`Contribution` for each part, first for all leaves together (""), then for each leaf that it reaches.
    """

    __module__ = "chainrule.explaining"

    def __init__(self, by: str, title: str, parts: Sequence[GradientPart], gradients: dict[str, NumpyArray]) -> None:
        self.by, self.title, self.gradients = by, title, gradients
        self.parts = [*parts, *_rest(parts, gradients)]
        self.table = [_contribution("", part, part.gradients, gradients) for part in self.parts]
        for leaf, g in gradients.items():
            for part in self.parts:
                if leaf in part.gradients:
                    self.table.append(_contribution(leaf, part, {leaf: part.gradients[leaf]}, {leaf: g}))

    def rows(self, leaf: str = "") -> list[Contribution]:
        """Return the contributions to the gradient of a leaf; by default, of all leaves together."""
        return [row for row in self.table if row.leaf == leaf]

    def norm(self, leaf: str = "") -> float:
        """Return the norm of a leaf's gradient; by default, of all gradients together."""
        return joint_norm(self.gradients.values() if not leaf else [self.gradients[leaf]])

    def to_dict(self) -> JSONObject:
        """Return names and numbers as plain values, for JSON; numbers that are not finite are None."""
        return {
            "by": self.by,
            "title": self.title,
            "parts": [
                {"name": p.name, "count": p.count, "line": None if p.line is None else p.line._asdict()}
                for p in self.parts
            ],
            "norms": {leaf: finite_or_none(self.norm(leaf)) for leaf in ["", *self.gradients]},
            "table": [
                {
                    "leaf": r.leaf,
                    "part": r.part,
                    **{k: finite_or_none(getattr(r, k)) for k in ("norm", "share", "cosine")},
                }
                for r in self.table
            ],
        }

    def __str__(self) -> str:
        return "\n".join(_text(self))

    def __repr__(self) -> str:
        return f"<contributions to the gradient of {self.title} by {self.by}: {len(self.parts)} parts>"

    def _repr_html_(self) -> str:
        return table_html(self.to_dict(), style=True)


def _contribution(leaf: str, part: GradientPart, parts: JSONObject, wholes: JSONObject) -> Contribution:
    size, whole = joint_norm(parts.values()), joint_norm(wholes.values())
    dot = sum(inner_product(parts[name], g) for name, g in wholes.items() if name in parts)
    with np.errstate(all="ignore"):
        return Contribution(
            leaf, part.name, size, float(np.divide(dot, whole * whole)), float(np.divide(dot, size * whole))
        )


def inner_product(x: NumpyArray, y: NumpyArray) -> float:
    """Return the real part of ⟨x, y⟩."""
    with np.errstate(all="ignore"):
        return float(np.real(np.vdot(x, y)).astype(float))


def joint_norm(arrays: Iterable[NumpyArray]) -> float:
    """Return the norm of several arrays together."""
    return math.sqrt(sum(inner_product(x, x) for x in arrays))


def _rest(parts: Sequence[GradientPart], gradients: dict[str, NumpyArray]) -> Iterator[GradientPart]:
    """Yield a part with the difference that hooks made to the sums, unless it is only rounding."""
    found = {}
    for leaf, g in gradients.items():
        pieces = [part.gradients[leaf] for part in parts if leaf in part.gradients]
        with np.errstate(all="ignore"):
            rest = g - sum(pieces)
        scale = max([joint_norm([p]) for p in [g, *pieces]])
        if joint_norm([rest]) > 100 * np.finfo(g.dtype).eps * scale:
            found[leaf] = rest
    if found:
        yield GradientPart("changed by hooks", found)


# -- dividing ----------------------------------------------------------------------------------------------------------


def contributions_of(e: RecordedPass, by: str) -> Contributions:
    """Implement ``Explanation.contributions``."""
    if by not in WAYS:
        raise errors.explained_by(by, WAYS)
    gradients = {v.name: v.gradient for v in e.wrt if v.gradient is not None}
    parts = {"term": _by_term, "line": _by_line, "module": _by_module}[by](e)
    return Contributions(by, ", ".join(v.name for v in e.outputs), parts, gradients)


def _by_line(e: RecordedPass) -> list[GradientPart]:
    """Group the cotangents of each leaf by the line of the operation that read the leaf."""
    found: dict[SourceLine | None, dict[str, NumpyArray]] = {}
    for value in e.wrt:
        for index, _, g in e.terms_of(value):
            gradients = found.setdefault(e.steps[index - 1].source_line if index else None, {})
            gradients[value.name] = gradients[value.name] + g if value.name in gradients else g
    order = sorted(found, key=lambda line: (line is None, line or ("", 0)))
    return [GradientPart("elsewhere" if line is None else str(line), found[line], line) for line in order]


def _by_module(e: RecordedPass) -> list[GradientPart]:
    """Group the gradients of parameters by their module; each other leaf is a part."""
    found: dict[str, dict[str, NumpyArray]] = {}
    for tensor, value in zip(e._wanted, e.wrt):
        if value.gradient is not None:
            owner = value.name.rpartition(".")[0] if isinstance(tensor, Parameter) else ""
            found.setdefault(owner or value.name, {})[value.name] = value.gradient
    return [GradientPart(name, gradients) for name, gradients in found.items()]


def grouped_terms(e: RecordedPass) -> list[tuple[str, SourceLine | None, list[tuple[Edge, NumpyArray]]]]:
    """Return the terms of the outputs, grouped by source location: name, line, and edges with cotangents."""
    groups: dict[Any, list[tuple[Edge, NumpyArray]]] = {}
    for edge, g in gradient_terms(e):
        node = edge.node if isinstance(edge, Output) else edge
        alone = node.code is None or e.is_named(e._values.by_edge[edge])
        groups.setdefault(edge if alone else frames_of(node, e._values.stacks), []).append((edge, g))
    found = [(*_called(e, group[0][0]), group) for group in groups.values()]
    if len(found) > _MOST:
        others = [one for *_, group in found[_MOST - 1 :] for one in group]
        found[_MOST - 1 :] = [(f"{len(others)} other terms", None, others)]
    return found


def _by_term(e: RecordedPass) -> list[GradientPart]:
    """Run a pass from each group of terms."""
    parts: dict[str, GradientPart] = {}
    for name, line, group in grouped_terms(e):
        name = next(n for k in itertools.count(1) if (n := f"{name} ({k})" if k > 1 else name) not in parts)
        parts[name] = GradientPart(name, rerun_rules(e, group), line, len(group))
    return list(parts.values())


def _called(e: RecordedPass, edge: Edge) -> tuple[str, SourceLine | None]:
    """Return a term's name (its variable, or its expression in the program) and its line."""
    value, where = e._values.by_edge[edge], place_of(edge)
    written = "" if where is None or e.is_named(value) else " ".join(where.expression.split())
    return shorten(written, _NAME) or value.name, line_of(where)


def gradient_terms(e: RecordedPass) -> list[tuple[Edge, NumpyArray]]:
    """Return the edges whose sum the outputs are, in program order, each with its cotangent.

    Linear operations on the path (constant factors, means) are skipped. A variable of the program is one term, unless it is
    the only term.
    """
    steps = {step.output.edge: step for step in e.steps if len(node_outputs(step.record.node)) == 1}
    given = [(v.edge, seed) for v, seed in zip(e.outputs, e.seeds)]
    while True:
        whole, found, looked = {edge for edge, _ in given}, [], given[::-1]
        while looked:
            edge, g = looked.pop()
            below = []
            if edge in whole or not e.is_named(e._values.by_edge[edge]):
                below = _summands(e, steps, edge) or _shifted(steps.get(edge), edge in whole)
            looked += below[::-1]
            found += [(edge, g)] * (not below)
        if len(found) != 1 or found[0][0] in whole:
            return found
        given = found


def _summands(e: RecordedPass, steps: Mapping[Edge, Step], edge: Edge) -> list[tuple[Edge, NumpyArray]]:
    """Return the summands of a value, up to constant factors: edges with their cotangents; empty if the value is not a sum."""
    first = edge
    while True:
        step = steps.get(edge)
        if step is None or len(step.terms) != 1 or (edge is not first and e.is_named(e._values.by_edge[edge])):
            return []
        arrows = step.arrows if _linear(step) else []
        if len(arrows) != 1:
            return [(arrow.input.edge, arrow.downstream) for arrow in arrows]
        edge = arrows[0].input.edge


def _shifted(step: Any, whole: bool) -> list[tuple[Edge, NumpyArray]]:
    """Return a term without an added constant: ``0 + x`` becomes x."""
    shifts = not whole and step is not None and len(step.arrows) == 1 and step.prim.name == "add" and _linear(step)
    return [(step.arrows[0].input.edge, step.arrows[0].downstream)] if shifts and len(step.terms) == 1 else []


def _linear(step: Step) -> bool:
    """Return whether an operation is jointly linear in all operands that gradients flow to."""
    prim, flows = step.prim, [arrow.position for arrow in step.arrows]
    if prim.kind == "linear":
        return True
    if prim.kind != "elementwise":
        return False
    constant = all(isinstance(prim.partials.get(prim.operands[i]), (int, float)) for i in flows)
    return constant or (prim.name, flows) in (("mul", [0]), ("mul", [1]), ("div", [0]))


def rerun_rules(e: RecordedPass, starts: Sequence[tuple[Edge, NumpyArray]]) -> dict[str, NumpyArray]:
    """Run the rules of an explanation again from other cotangents, without hooks; return the gradients of the leaves."""
    values, cotangents = e._values.by_edge, dict[Edge, Any]()

    def add(edge: Edge, g: object) -> None:
        shape, dtype = values[edge].shape, values[edge].dtype
        g = kinds.unbroadcast(np.asarray(g), shape, dtype)
        cotangents[edge] = cotangents[edge] + g if edge in cotangents else g

    for edge, start in starts:
        add(edge, start)
    for step in e.steps:
        record = step.record
        edges = node_outputs(record.node)
        gs = [cotangents.get(edge) for edge in edges]
        if all(g is None for g in gs):
            continue
        g: Any = gs[0]
        if edges != [record.node]:
            parts = [None if part is None else np.zeros_like(part) for part in record.g]
            for edge, one in zip(edges, gs):
                parts[edge.index] = parts[edge.index] if one is None else one
            g = tuple(parts)
        with np.errstate(all="ignore"):
            grads = record.node.pullback(record.node, g, step.saved(), record.edges)
        for below, part in zip(record.edges, grads):
            if below is not None and part is not None:
                add(below, part)
    return {v.name: cotangents[v.edge] for v in e.wrt if v.edge in cotangents}


# -- showing -----------------------------------------------------------------------------------------------------------


def _text(c: Contributions) -> Iterator[str]:
    yield f"The gradient of {c.title} by {c.by}: {len(c.parts)} part{'s' * (len(c.parts) != 1)}"
    yield DEFINITION
    yield ""
    lines = {part.name: part.line for part in c.parts if part.line is not None}
    yield f"{pad_text('', _NAME + 2)}{'norm':>10}{'share':>10}{'cosine':>8}{'  line' * bool(lines)}"
    titles = {p.name: p.line.text if c.by == "line" and p.line else part_title(p.name, p.count) for p in c.parts}
    leaves = sorted(c.gradients, key=c.norm, reverse=True)
    shown = [leaf for leaf in c.gradients if leaf in leaves[:_LEAVES]] if c.by != "module" else []
    for leaf in ["", *shown] if len(c.gradients) > 1 or not shown else shown:
        name = f"{leaf} {tuple(c.gradients[leaf].shape)}" if leaf else f"all {len(c.gradients)} together"
        yield f"{pad_text(shorten(name, _NAME + 2), _NAME + 2)}{c.norm(leaf):>10.4g}"
        rows = c.rows(leaf)
        large = sorted(rows, key=lambda row: -abs(row.share))[:_ROWS]
        for row in rows:
            if row in large:
                share = f"{row.share + 0.0:.2%}".replace("-0.00%", "0.00%")
                line = f"  {pad_text(shorten(titles[row.part], _NAME), _NAME)}{row.norm:>10.4g}{share:>10}{row.cosine:>8.2f}"
                line += f"  {lines[row.part]}" if row.part in lines else ""
                yield line if text_columns(line) <= WIDTH else line[: WIDTH - 1] + "…"
        if len(rows) > _ROWS:
            yield f"  … {len(rows) - _ROWS} more, {sum(r.share for r in rows if r not in large):.2%} together"
    if len(shown) < len(c.gradients) and c.by != "module":
        yield f"… and {len(c.gradients) - len(shown)} leaves with smaller gradients (.table has all)"
