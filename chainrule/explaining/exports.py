"""A graph as text: a list of what was computed, Graphviz's language, and Mermaid's."""

from __future__ import annotations

from typing import Any

from chainrule.diagnosis.source import SourceLine


def shape_text(shape: Any) -> str:
    return "" if shape is None else str(tuple(shape))


def bytes_text(count: float) -> str:
    """A number of bytes, as people write it."""
    if count < 1000:
        return f"{count} B"
    power = min((len(str(int(count))) - 1) // 3, 3)
    return f"{count / 1000**power:.3g} {'kMG'[power - 1]}B"


def one_line(text: str) -> str:
    """Text without line breaks or other control characters."""
    return "".join(c if c.isprintable() else " " for c in text)


def short(text: str, most: int) -> str:
    """A text of at most so many characters, the middle left out."""
    text = one_line(text)
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return text[:head] + "…" + text[len(text) - (most - 1 - head) :]


def place_text(line: SourceLine | None) -> str:
    """A line with its place: ``t.py:7  y = exp(x)``."""
    if line is None:
        return ""
    return f"{line}  {line.text}" if line.text else str(line)


# -- a list ------------------------------------------------------------------------------------------------------------


def to_text(graph: Any) -> str:
    """One line for each value and operation, in an order in which everything is explained before it is used."""
    into: dict[str, list[Any]] = {}
    out: dict[str, list[Any]] = {}
    for edge in graph.edges:
        into.setdefault(edge.target, []).append(edge)
        out.setdefault(edge.source, []).append(edge)
    by_id = {node.id: node for node in graph.nodes}
    rows = []
    for node in graph.nodes:
        if node.kind == "value" and not any(by_id[e.source].kind == "op" for e in into.get(node.id, ())):
            rows.append(_given(node, into.get(node.id, ()), by_id))
        elif node.kind == "op":
            rows.append(_computed(node, into.get(node.id, ()), out.get(node.id, ()), by_id))
    count = f"{graph.operations} operation{'s' * (graph.operations != 1)}, {graph.leaves} {'leaf' if graph.leaves == 1 else 'leaves'}"
    head = f"graph of {one_line(graph.title)}: {count}, {_bytes_long(graph.saved_bytes)} saved for backward"
    names = max([len(row[0]) for row in rows], default=0)
    shapes = max([len(row[1]) for row in rows], default=0)
    return "\n".join([head, *(f"  {name:<{names}}  {shape:<{shapes}}  {what}".rstrip() for name, shape, what in rows)])


def _bytes_long(count: int) -> str:
    return f"{count} bytes" if count < 1000 else bytes_text(count)


def _given(node: Any, into: Any, by_id: dict[str, Any]) -> tuple[str, str, str]:
    what = node.role if node.role != "output" else "constant"
    if node.why or node.detail:
        what += f": {one_line(node.why or node.detail)}"
    for edge in into:
        if edge.kind == "cut":
            what += f", from {one_line(by_id[edge.source].label)}: {one_line(edge.why)}"
    return short(node.label, 24), shape_text(node.shape), what


def _computed(node: Any, into: Any, out: Any, by_id: dict[str, Any]) -> tuple[str, str, str]:
    places = {edge.operand: _value_name(edge, by_id) for edge in into} | node.numbers
    parameters = node.detail.removeprefix(", ".join(n for n in node.numbers.values() if n != "…")).removeprefix(", ")
    operands = [places[at] for at in sorted(places)] + [parameters] * bool(parameters)
    if node.role == "fold":
        operands = [_value_name(edge, by_id) for edge in into]
    named = dict.fromkeys(_value_name(edge, by_id, False) for edge in out)
    name = ", ".join(named)
    what = f"= {node.label}({', '.join(operands)})"
    if node.role == "fold":
        what = f"= {node.label} of {', '.join(dict.fromkeys(operands))}" + (f"  ({node.detail})" if node.detail else "")
    if node.saved_bytes:
        what += f"  saves {bytes_text(node.saved_bytes)}"
    return short(name, 24), shape_text(node.shape), what


def _value_name(edge: Any, by_id: dict[str, Any], source: bool = True) -> str:
    """The name of the value that goes along an arrow."""
    end = by_id[edge.source if source else edge.target]
    if end.kind == "value":
        return one_line(end.label)
    return edge.value or "?"


# -- Graphviz ----------------------------------------------------------------------------------------------------------


def _quoted(*lines: str) -> str:
    r"""A string of Graphviz, with its ``\n`` between lines. Backslashes of the user's stay backslashes."""
    safe = [one_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines if line]
    return '"' + "\\n".join(safe) + '"'


def to_dot(graph: Any) -> str:
    """The graph in Graphviz's language."""
    fill = {"output": "#d8f0e0", "leaf": "#dbe8fb", "constant": "#eeeeee", "intermediate": "#ffffff"}
    rows = [
        "digraph {",
        f"  label={_quoted(graph.title)};",
        '  node [fontname="monospace" fontsize=11]; edge [fontname="monospace" fontsize=10];',
    ]
    for node in graph.nodes:
        tip = _quoted(
            place_text(node.line), node.why, f"saves {bytes_text(node.saved_bytes)}" if node.saved_bytes else ""
        )
        if node.kind == "value":
            style = f'shape=box style="rounded,filled{",dashed" if not node.requires_grad else ""}" fillcolor="{fill[node.role]}"'
            text = _quoted(node.label, shape_text(node.shape), node.detail)
        else:
            style = 'shape=ellipse style=filled fillcolor="#f6ead2"'
            text = _quoted(node.label, node.detail)
        rows.append(f"  {node.id} [label={text} tooltip={tip} {style}];")
    for edge in graph.edges:
        options = [f"label={_quoted(edge.label)}"] if edge.label else []
        if edge.kind == "cut":
            options.append(f"style=dashed color=firebrick tooltip={_quoted(edge.why)}")
        rows.append(f"  {edge.source} -> {edge.target}" + (f" [{' '.join(options)}]" if options else "") + ";")
    return "\n".join([*rows, "}"]) + "\n"


# -- Mermaid -----------------------------------------------------------------------------------------------------------


def _entity(*lines: str) -> str:
    """A quoted text of Mermaid, in which only letters, digits and a little punctuation stand for themselves."""
    safe = [
        "".join(c if c.isalnum() or c in " ()[].,:=_+-/×…·" else f"#{ord(c)};" for c in one_line(t)) for t in lines if t
    ]
    return '"' + "<br/>".join(safe) + '"'


def to_mermaid(graph: Any) -> str:
    """The graph as a Mermaid flowchart."""
    rows = ["flowchart TB"]
    for node in graph.nodes:
        if node.kind == "value":
            text = _entity(node.label, shape_text(node.shape), node.detail)
            rows.append(f"  {node.id}[{text}]:::{node.role}")
        else:
            rows.append(f"  {node.id}([{_entity(node.label, node.detail)}]):::op")
    for edge in graph.edges:
        arrow = "-.->" if edge.kind == "cut" else "-->"
        rows.append(f"  {edge.source} {arrow}{f'|{_entity(edge.label)}|' if edge.label else ''} {edge.target}")
    rows += [
        "  classDef op fill:#f6ead2,stroke:#a8823a,color:#222",
        "  classDef leaf fill:#dbe8fb,stroke:#3d6fb4,color:#222",
        "  classDef output fill:#d8f0e0,stroke:#2f8554,color:#222",
        "  classDef intermediate fill:#fff,stroke:#888,color:#222",
        "  classDef constant fill:#eee,stroke:#888,color:#222,stroke-dasharray:4 3",
    ]
    return "\n".join(rows) + "\n"
