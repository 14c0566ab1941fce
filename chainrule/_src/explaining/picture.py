"""Draw a graph as one self-contained SVG: values as cards, with operations between them, for light and dark backgrounds.

``Graph.to_svg`` calls ``draw_graph``. The width of a card is computed from upper bounds of character widths before the layout. Cards can
show a value's numbers and, below them, its cotangent's numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from chainrule._src.arrays.types import JSONObject
from chainrule._src.explaining.exports import bytes_text, location_text, one_line, shorten
from chainrule._src.explaining.layout import GraphLayout, Point, lay_out, text_width
from chainrule._src.explaining.markup import colour_properties, data_file, escape
from chainrule._src.explaining.parts import GraphData, GraphEdge, GraphNode
from chainrule._src.explaining.tables import flat_numbers, is_real, text_rows, tuple_text

WIDE = 1290  # pixels: a wider picture is drawn from top to bottom instead of from left to right
_NAME, _SMALL = 13.0, 11.0
_LINE, _PAD = 15.0, 10.0
_MOST = 30  # most characters of a line
_CELLS, _COLUMNS = 24, 6  # most elements and columns of an array whose numbers a card shows
_SERIAL = itertools.count(1)


class CardArray(NamedTuple):
    """An array in a card: its kind ("forward" or "cotangent"), its label, its key, its rows, and whether it is float32."""

    kind: str
    sign: str
    key: str
    rows: Sequence[str]
    single: bool = False


class Card(NamedTuple):
    """The size and markup of a node, drawn from (0, 0)."""

    width: float
    height: float
    markup: str


def card_of(node: GraphNode, numbers: Sequence[CardArray] = (), *, memory: bool = True) -> Card:
    """Return the card of a node: its name and shape, details (with the memory that it saves), and its numbers."""
    value = node.kind == "value"
    name, shape = shorten(node.label, _MOST) or "?", tuple_text(node.shape) if value and node.shape is not None else ""
    saves = f"saves {bytes_text(node.saved_bytes)}" if memory and node.saved_bytes and not value else ""
    small = [line for line in (shorten(node.detail, _MOST), saves) if line]
    sign = max((text_width(n.sign, _NAME) + 10 for n in numbers if n.sign), default=0.0)
    widths = [text_width(name, _NAME) + (text_width(shape, _SMALL) + 8 if shape else 0.0)]
    widths += [text_width(line, _SMALL) for line in small]
    widths += [text_width(row, _SMALL) + sign for n in numbers for row in n.rows]
    w = max(max(widths) + 2 * _PAD, 46.0)
    middle = _text(w / 2, 17, name, "title", "middle")
    parts = [_text(_PAD, 17, name, "title") + _text(w - _PAD, 17, shape, "small", "end") if shape else middle]
    y = 25.0
    for line in small:
        parts.append(_text(w / 2, y + 6, line, "small", "middle"))
        y += 14
    for n in numbers:
        parts.append(f'<path d="M0 {y:.1f}H{w:.1f}"/>')
        rows = "".join(_text(w - _PAD, y + _LINE * (i + 1), r, "numbers", "end") for i, r in enumerate(n.rows))
        parts.append(f'<g class="{n.kind}">{_text(_PAD, y + _LINE, n.sign, "sign")}')
        marks = f' data-key="{escape(n.key)}" data-lines=""' * bool(n.key) + ' data-single=""' * n.single
        parts.append(f"<g{marks}>{rows}</g></g>")
        y += len(n.rows) * _LINE + 7
    h = y + (3 if small and not numbers else 0)
    outline = f'width="{w:.1f}" height="{h:.1f}" rx="{6 if value else min(h / 2, 15):.0f}"/>'
    second = f'<rect x="4" y="4" {outline}' if node.count > 1 else ""  # a fold has a second outline
    return Card(w, h, f"{second}<rect {outline}{''.join(parts)}")


def lay_out_graph(
    nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], cards: Mapping[str, Card], *, sideways: bool
) -> GraphLayout:
    """Return the layout of nodes and edges."""
    sizes = {node.id: cards[node.id][:2] for node in nodes}
    return lay_out(sizes, [(e.source, e.target, shorten(e.label, 32)) for e in edges], sideways=sideways)


def draw_graph(
    graph: GraphData,
    cards: Mapping[str, Card],
    layout: GraphLayout,
    *,
    links: Mapping[str, str] | None = None,
    embedded: bool = False,
) -> str:
    """Return the picture.

    Args:
        cards: the card of each node, by its id.
        layout: the layout of these cards and of the edges.
        links: the link of each node's card.
        embedded: whether the surrounding page has the style sheet.
    """
    serial = f"chainrule-graph-{next(_SERIAL)}"
    width, height = max(layout.width, 60.0), max(layout.height, 40.0)
    title = escape(one_line(f"Graph of {graph.title}" if graph.title else "Graph"))
    style = "" if embedded else f"<style>{colour_properties('.chainrule-graph')}{data_file('graph.css')}</style>"
    space = "" if embedded else ' xmlns="http://www.w3.org/2000/svg"'
    paper = f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="8"/>'
    parts = [
        f'<svg{space} class="chainrule-graph" role="{"group" if links else "img"}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'aria-labelledby="{serial}-t {serial}-d"><title id="{serial}-t">{title}</title>'
        f'<desc id="{serial}-d">{escape(_described(graph))}</desc>{style}<defs>{_marker(serial, "flow")}'
        f"{_marker(serial, 'cut')}</defs>{'' if embedded else paper}"
    ]
    for edge, route in zip(graph.edges, layout.routes):
        tip = f"<title>{escape(one_line(edge.why))}</title>" if edge.why else ""
        parts.append(
            f'<g class="edge {edge.kind}" data-from="{edge.source}" data-to="{edge.target}">{tip}'
            f'<path d="{_curve(route, graph.sideways)}" marker-end="url(#{serial}-{edge.kind})"/></g>'
        )
    for edge, box in zip(graph.edges, layout.labels):
        if box is not None:
            x, y, w, h = box
            back = f'<rect class="paper" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"/>'
            text = _text(x + w / 2, y + h / 2 + 4, shorten(edge.label, 32), "small", "middle")
            parts.append(f'<g class="label {edge.kind}">{back}{text}</g>')
    for node in graph.nodes:
        x, y = layout.boxes[node.id][:2]
        classes = f"node {node.kind} {node.role}{'' if node.requires_grad else ' constant'}"
        body = (
            f'<g class="{classes}" data-node="{node.id}" transform="translate({x:.1f} {y:.1f})">'
            f"<title>{escape(_tip(node))}</title>{cards[node.id].markup}</g>"
        )
        link = (links or {}).get(node.id)
        parts.append(f'<a href="{escape(link)}">{body}</a>' if link else body)
    return "".join([*parts, "</svg>"])


def _described(graph: GraphData) -> str:
    direction = "left to right" if graph.sideways else "top to bottom"
    folded = " Repeated operations are drawn as one." if graph.collapsed else ""
    return (
        f"{graph.operations} operations and {graph.leaves} leaves, computed from {direction}; "
        f"{bytes_text(graph.saved_bytes)} saved for the backward pass.{folded}"
    )


def _tip(node: GraphNode) -> str:
    saves = f"saves {bytes_text(node.saved_bytes)} for the backward pass" if node.saved_bytes else ""
    shape = "" if node.shape is None else tuple_text(node.shape)
    said = [node.label, shape, node.dtype, node.detail, node.why, location_text(node.line), saves]
    return one_line(" · ".join(text for text in said if text))


def _marker(serial: str, kind: str) -> str:
    return (
        f'<marker id="{serial}-{kind}" class="{kind}" viewBox="0 0 8 8" refX="7.2" refY="4" markerWidth="8" '
        'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 .6 8 4 0 7.4 1.8 4z"/></marker>'
    )


def _text(x: float, y: float, text: str, kind: str, anchor: str = "") -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{where}>{escape(one_line(text))}</text>' if text else ""


def _curve(points: Sequence[Point], sideways: bool) -> str:
    """Return a smooth path through the points; at its ends it has the direction of the layers."""
    path = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        if abs((to_y - y) if sideways else (to_x - x)) < 0.5:
            path.append(f"L{to_x:.1f} {to_y:.1f}")
            continue
        middle = (x + to_x) / 2 if sideways else (y + to_y) / 2
        bends = (middle, y, middle, to_y) if sideways else (x, middle, to_x, middle)
        path.append("C" + " ".join(f"{number:.1f}" for number in (*bends, to_x, to_y)))
    return "".join(path)


def arrays_of_nodes(nodes: Sequence[GraphNode], values: Mapping[str, JSONObject]) -> dict[str, list[CardArray]]:
    """Return for each node the arrays in its card: its value's numbers and its cotangent's, if they are few."""
    found: dict[str, list[CardArray]] = {}
    for node in nodes:
        value = values.get(node.value) if node.kind == "value" else None
        if value is not None:
            last = value["name"].rpartition(".")[2]
            name = last if len(last) <= 7 else "…"
            parts = (("forward", "", "", value["data"]), ("cotangent", name, f"g.{node.value}", value["gradient"]))
            found[node.id] = [
                CardArray(k, sign, key, text_rows(a), a["dtype"] == "float32")
                for k, sign, key, a in parts
                if a and _fits(a)
            ]
    return found


def _fits(array: JSONObject) -> bool:
    numbers, wide = flat_numbers(array["data"]), (array["shape"] or [1])[-1]
    return not array["truncated"] and 0 < len(numbers) <= _CELLS and wide <= _COLUMNS and is_real(numbers)
