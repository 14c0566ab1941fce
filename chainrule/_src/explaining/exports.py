"""Export a graph as text: a list of values and operations (``to_text``), and Graphviz's DOT language (``to_dot``).

The methods of ``Graph`` call these functions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from chainrule._src.explaining.diagnosis.source import SourceLine
from chainrule._src.explaining.parts import GraphData, GraphEdge, GraphNode


def write_text(text: str, path: str | os.PathLike[str] | None) -> str:
    """Write a text to a file, if there is a path. Return the text."""
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return text


def shape_text(shape: tuple[int, ...] | None) -> str:
    return "" if shape is None else str(tuple(shape))


def bytes_text(count: float) -> str:
    """Format a number of bytes: ``12 B``, ``3.2 kB``."""
    if count < 1000:
        return f"{count} B"
    power = min((len(str(int(count))) - 1) // 3, 3)
    return f"{count / 1000**power:.3g} {'kMG'[power - 1]}B"


def one_line(text: str) -> str:
    """Replace line breaks and other control characters by spaces."""
    return "".join(c if c.isprintable() else " " for c in text)


def shorten(text: str, most: int) -> str:
    """Shorten a text to at most ``most`` characters by cutting out the middle."""
    text = one_line(text)
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return text[:head] + "…" + text[len(text) - (most - 1 - head) :]


def location_text(line: SourceLine | None) -> str:
    """Format a line with its location: ``t.py:7  y = exp(x)``."""
    if line is None:
        return ""
    return f"{line}  {line.text}" if line.text else str(line)


def mimebundle(makers: Mapping[str, Callable[[], str]], include: Any, exclude: Any) -> dict[str, str]:
    """Return the MIME types that a notebook requests, with their contents."""
    chosen = [kind for kind in makers if (not include or kind in include) and kind not in (exclude or ())]
    return {kind: makers[kind]() for kind in chosen}


# -- a list ------------------------------------------------------------------------------------------------------------


def to_text(graph: GraphData) -> str:
    """Return one line for each value and operation; every operand is listed before the operation that reads it."""
    ids = {node.id: node for node in graph.nodes}
    into: dict[str, list[Any]] = {}
    out: dict[str, list[Any]] = {}
    for edge in graph.edges:
        into.setdefault(edge.target, []).append(edge)
        out.setdefault(edge.source, []).append(edge)
    rows = []
    for node in graph.nodes:
        came = into.get(node.id, [])
        if node.kind == "op":
            ends = [(ids[edge.target], edge.value) for edge in out.get(node.id, ())]
            made = [one_line(end.label if end.kind == "value" else value) or "?" for end, value in ends]
            rows.append((", ".join(dict.fromkeys(made)), node, _computed(node, came, ids)))
        elif not any(ids[edge.source].kind == "op" for edge in came):
            rows.append((node.label, node, _given(node, came, ids)))
    count = f"{graph.operations} operation{'s' * (graph.operations != 1)}, {graph.leaves} {'leaf' if graph.leaves == 1 else 'leaves'}"
    memory = f"{graph.saved_bytes} bytes" if graph.saved_bytes < 1000 else bytes_text(graph.saved_bytes)
    head = f"graph of {one_line(graph.title)}: {count}, {memory} saved for backward"
    cells = [(shorten(name, 24), shape_text(node.shape), what) for name, node, what in rows]
    names, shapes = (max([len(cell[i]) for cell in cells], default=0) for i in range(2))
    return "\n".join([head, *(f"  {name:<{names}}  {shape:<{shapes}}  {what}".rstrip() for name, shape, what in cells)])


def _given(node: GraphNode, into: list[GraphEdge], ids: dict[str, GraphNode]) -> str:
    what = node.role if node.role != "output" else "constant"
    if node.why or node.detail:
        what += f": {one_line(node.why or node.detail)}"
    cuts = [f", from {one_line(ids[edge.source].label)}: {one_line(edge.why)}" for edge in into if edge.kind == "cut"]
    return what + "".join(cuts)


def _computed(node: GraphNode, into: list[GraphEdge], ids: dict[str, GraphNode]) -> str:
    sources = [
        (edge.operand, ids[edge.source].label if ids[edge.source].kind == "value" else edge.value) for edge in into
    ]
    saves = f"  saves {bytes_text(node.saved_bytes)}" if node.saved_bytes else ""
    if node.role == "fold":
        operands = ", ".join(dict.fromkeys(one_line(name) or "?" for _, name in sources))
        return f"= {node.label} of {operands}" + (f"  ({node.detail})" if node.detail else "") + saves
    places = {at: one_line(name) or "?" for at, name in sources} | node.numbers
    parameters = node.detail.removeprefix(", ".join(n for n in node.numbers.values() if n != "…")).removeprefix(", ")
    operands = ", ".join([places[at] for at in sorted(places)] + [parameters] * bool(parameters))
    return f"= {node.label}({operands}){saves}"


# -- Graphviz ----------------------------------------------------------------------------------------------------------

_FILL = {"output": "#d8f0e0", "leaf": "#dbe8fb", "constant": "#eeeeee", "intermediate": "#ffffff"}


def _quoted(*lines: str) -> str:
    r"""Return a Graphviz string, with its ``\n`` between lines. Escape backslashes in the lines."""
    safe = [one_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines if line]
    return '"' + "\\n".join(safe) + '"'


def _texts(node: Any) -> tuple[str, ...]:
    return (node.label, shape_text(node.shape), node.detail) if node.kind == "value" else (node.label, node.detail)


def to_dot(graph: GraphData) -> str:
    """Return the graph in Graphviz's DOT language."""
    defaults = 'node [fontname="monospace" fontsize=11]; edge [fontname="monospace" fontsize=10];'
    rows = ["digraph {", f"  label={_quoted(graph.title)};", f"  {defaults}"]
    for node in graph.nodes:
        tip = _quoted(
            location_text(node.line), node.why, f"saves {bytes_text(node.saved_bytes)}" if node.saved_bytes else ""
        )
        style = 'shape=ellipse style=filled fillcolor="#f6ead2"'
        if node.kind == "value":
            dashed = ",dashed" * (not node.requires_grad)
            style = f'shape=box style="rounded,filled{dashed}" fillcolor="{_FILL[node.role]}"'
        rows.append(f"  {node.id} [label={_quoted(*_texts(node))} tooltip={tip} {style}];")
    for edge in graph.edges:
        options = [f"label={_quoted(edge.label)}"] if edge.label else []
        if edge.kind == "cut":
            options.append(f"style=dashed color=firebrick tooltip={_quoted(edge.why)}")
        rows.append(f"  {edge.source} -> {edge.target}" + (f" [{' '.join(options)}]" if options else "") + ";")
    return "\n".join([*rows, "}"]) + "\n"
