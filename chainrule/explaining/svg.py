"""A graph as one SVG: no scripts, nothing from outside, colours for light and dark backgrounds.

Text stands in a monospaced face, so its width is known from its characters and boxes are made to fit.
"""

from __future__ import annotations

import itertools
from typing import Any

from chainrule.explaining.exports import bytes_text, escaped, said, shape_text, short
from chainrule.explaining.layout import Point, text_width

_NAME, _SMALL = 13.0, 11.0
_MOST = 30  # characters of a line
_SERIAL = itertools.count(1)

_STYLE = """
.{id}{{--ink:#1f2430;--soft:#667085;--paper:#fff;--line:#8a94a6;--value:#fff;--edge:#98a2b3;--leaf:#e4eefc;--leaf-edge:#3b76c4;
--out:#dff3e6;--out-edge:#2f8f5b;--const:#f3f4f6;--op:#fdf1d8;--op-edge:#c08a2a;--cut:#c0392b;
font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}}
@media (prefers-color-scheme:dark){{.{id}{{--ink:#e7eaf0;--soft:#a3adbd;--paper:#14171d;--line:#7d8799;--value:#1d222b;
--edge:#5b6576;--leaf:#1b2d48;--leaf-edge:#6ca4ec;--out:#183a28;--out-edge:#5fc98d;--const:#262a32;--op:#3a2f17;
--op-edge:#d8a846;--cut:#ff8a7a}}}}
.{id} .bg{{fill:var(--paper)}} .{id} text{{fill:var(--ink);text-anchor:middle}} .{id} .s{{fill:var(--soft)}}
.{id} .v rect{{fill:var(--value);stroke:var(--edge);stroke-width:1.2}} .{id} .leaf rect{{fill:var(--leaf);stroke:var(--leaf-edge)}}
.{id} .output rect{{fill:var(--out);stroke:var(--out-edge)}} .{id} .constant rect{{fill:var(--const);stroke:var(--edge)}}
.{id} .o rect{{fill:var(--op);stroke:var(--op-edge);stroke-width:1.2}} .{id} .no rect{{stroke-dasharray:4 3}}
.{id} path{{fill:none;stroke:var(--line);stroke-width:1.4}}
.{id} .cut path{{stroke:var(--cut);stroke-dasharray:5 4}} .{id} .cut text{{fill:var(--cut)}}
.{id} marker path{{fill:var(--line);stroke:none}} .{id} marker.x path{{fill:var(--cut)}}
"""


def lines_of(node: Any) -> list[tuple[str, float]]:
    """What is written in a node, each line with its size."""
    name, detail = short(node.label, _MOST), short(node.detail, _MOST)
    lines = [(name or "?", _NAME)]
    if node.kind == "value":
        lines.append((shape_text(node.shape), _SMALL))
        lines.append((detail, _SMALL))
    else:
        saves = f"saves {bytes_text(node.saved_bytes)}" if node.saved_bytes else ""
        lines += [(detail, _SMALL), (saves, _SMALL)]
    return [line for line in lines if line[0]]


def size_of(node: Any) -> tuple[float, float]:
    """Width and height of a node that its text fits into."""
    lines = lines_of(node)
    padding = 24 if node.kind == "value" else 30
    width = max([text_width(text, size) for text, size in lines], default=0.0) + padding
    return max(width, 46.0), 12 + sum(size * 1.3 for _, size in lines)


def drawn(graph: Any) -> str:
    """The picture."""
    layout = graph.layout_of
    name = f"cr-graph-{next(_SERIAL)}"
    width, height = max(layout.width, 60.0), max(layout.height, 40.0)
    title = f"Graph of {graph.title}" if graph.title else "Graph"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" aria-labelledby="{name}-t {name}-d">',
        f'<title id="{name}-t">{escaped(title)}</title><desc id="{name}-d">{_described(graph)}</desc>',
        f"<style>{_STYLE.format(id=name).strip()}</style>",
        f"<defs>{_marker(name + '-a', '')}{_marker(name + '-x', 'x')}</defs>",
        f'<rect class="bg" width="{width:.0f}" height="{height:.0f}" rx="8"/>',
    ]
    for edge, route in zip(graph.edges, layout.routes):
        cut = edge.kind == "cut"
        tip = f"<title>{escaped(edge.why)}</title>" if edge.why else ""
        parts.append(
            f'<g class="{"cut" if cut else "flow"}" data-from="{edge.source}" data-to="{edge.target}">{tip}'
            f'<path d="{_curve(route)}" marker-end="url(#{name}-{"x" if cut else "a"})"/></g>'
        )
    for edge, box in zip(graph.edges, layout.labels):
        if box is not None:
            x, y, w, h = box
            parts.append(
                f'<g class="{"cut" if edge.kind == "cut" else "flow"}"><rect class="bg" x="{x:.1f}" y="{y:.1f}" '
                f'width="{w:.1f}" height="{h:.1f}"/>{_text(x + w / 2, y + h / 2 + 4, short(edge.label, 32), _SMALL, "s")}</g>'
            )
    parts += [_node(node, layout.boxes[node.id]) for node in graph.nodes]
    return "".join([*parts, "</svg>"])


def _described(graph: Any) -> str:
    return escaped(
        f"{graph.operations} operations and {graph.leaves} leaves, computed from top to bottom; "
        f"{bytes_text(graph.saved_bytes)} saved for the backward pass."
        + (" Repeated operations are drawn as one." if graph.collapsed else "")
    )


def _marker(name: str, kind: str) -> str:
    return (
        f'<marker id="{name}" class="{kind}" viewBox="0 0 8 8" refX="7.2" refY="4" markerWidth="8" markerHeight="8" '
        'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 .6 8 4 0 7.4 1.8 4z"/></marker>'
    )


def _text(x: float, y: float, text: str, size: float, kind: str = "") -> str:
    weight = ' font-weight="600"' if size == _NAME else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.0f}"{weight} class="{kind}">{escaped(text)}</text>'


def _node(node: Any, box: tuple[float, float, float, float]) -> str:
    x, y, w, h = box
    tip = [node.label, shape_text(node.shape), node.dtype or "", node.detail, node.why, said(node.line)]
    if node.saved_bytes:
        tip.append(f"saves {bytes_text(node.saved_bytes)} for the backward pass")
    classes = f"{'v' if node.kind == 'value' else 'o'} {node.role}{'' if node.requires_grad else ' no'}"
    radius = 7 if node.kind == "value" else min(h / 2, 17)
    parts = [f'<g class="{classes}" data-node="{node.id}"><title>{escaped(" · ".join(t for t in tip if t))}</title>']
    if node.count > 1:  # a second outline behind it: there are several
        parts.append(f'<rect x="{x + 4:.1f}" y="{y + 4:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius:.1f}"/>')
    parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius:.1f}"/>')
    at = y + 6
    for text, size in lines_of(node):
        at += size * 1.3
        parts.append(_text(x + w / 2, at - size * 0.3, text, size, "s" if size == _SMALL else ""))
    return "".join([*parts, "</g>"])


def _curve(points: list[Point]) -> str:
    """A smooth line through the points that leaves and arrives vertically."""
    (x, y), *rest = points
    path = [f"M{x:.1f} {y:.1f}"]
    for nx, ny in rest:
        if abs(nx - x) < 0.5:
            path.append(f"L{nx:.1f} {ny:.1f}")
        else:
            middle = (y + ny) / 2
            path.append(f"C{x:.1f} {middle:.1f} {nx:.1f} {middle:.1f} {nx:.1f} {ny:.1f}")
        x, y = nx, ny
    return "".join(path)
