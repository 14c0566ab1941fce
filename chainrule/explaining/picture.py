"""The graph as a picture for a page: cards that hold a value's numbers and, under them, its cotangent's.

A card knows its size before it is placed (numbers stand in a monospaced face), so the same card serves the static picture
and a script that lays the graph out again for the width of a window.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chainrule.explaining.markup import escape
from chainrule.explaining.tables import decimals, flat, is_real, shape_text, written

CHAR, LINE, PAD = 6.7, 15, 9  # of the numbers' face at 11px
MOST_CELLS, MOST_WIDE = 24, 6  # of a value whose numbers stand in its card
MOST_CARDS = 14  # in a graph whose cards hold numbers
GAP_X, GAP_Y = 34, 22


@dataclass(slots=True)
class Card:
    id: str
    kind: str
    title: str
    shape: str
    w: float
    h: float
    role: str = ""
    link: str = ""
    value: str = ""
    blocks: list[tuple[str, str, str, list[str]]] = field(default_factory=list)  # (class, sign, key, lines)
    x: float = 0.0
    y: float = 0.0


def picture(plan: dict[str, Any], *, links: bool = True) -> str:
    """The graph as one SVG: forward values in the cards, cotangents under them."""
    nodes, edges = _with_intermediates(plan)
    cards = {node["id"]: _card(node, plan, len(nodes)) for node in nodes}
    edges = [edge for edge in edges if edge["source"] in cards and edge["target"] in cards]
    _link_operations(cards, edges, plan)
    _place(cards, edges)
    width = max((c.x + c.w for c in cards.values()), default=0) + 2
    height = max((c.y + c.h for c in cards.values()), default=0) + 2
    drawn = "".join(_edge(edge, cards) for edge in edges) + "".join(_drawn(card, links) for card in cards.values())
    name = escape(_said(plan))
    return (
        f"<svg class='graph' role='group' aria-label='{name}' width='{width:.0f}' height='{height:.0f}' "
        f"viewBox='-1 -1 {width:.0f} {height:.0f}'><defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' "
        "markerWidth='7' markerHeight='7' orient='auto-start-reverse'><path d='M0 0.8L7 4L0 7.2z'/></marker></defs>"
        f"{drawn}</svg>"
    )


def _with_intermediates(plan: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Nodes and edges; in a small graph a value that only labels an edge gets a card of its own."""
    graph = plan["graph"]
    nodes, edges = list(graph["nodes"]), []
    if len(nodes) > MOST_CARDS:
        return nodes, list(graph["edges"])
    labels = {f"{value['name']} {shape_text(value['shape'])}": key for key, value in plan["values"].items()}
    made: set[str] = set()
    for edge in graph["edges"]:
        key = labels.get(edge.get("label") or "")
        if key is None:
            edges.append(edge)
            continue
        name, value = f"{edge['source']}-{key}", plan["values"][key]
        if name not in made:
            made.add(name)
            nodes.append({"id": name, "kind": "value", "label": value["name"], "shape": value["shape"], "value": key})
            edges.append({"source": edge["source"], "target": name, "kind": "flow"})
        edges.append({**edge, "source": name, "label": ""})
    return nodes, edges


def _link_operations(cards: dict[str, Card], edges: list[dict[str, Any]], plan: dict[str, Any]) -> None:
    """An operation's card leads to the step of the value that comes out of it."""
    steps = {key: step["index"] for step in plan["steps"] for key in step.get("outputs", [step["output"]])}
    labels = {f"{value['name']} {shape_text(value['shape'])}": key for key, value in plan["values"].items()}
    for edge in edges:
        card, target = cards[edge["source"]], cards[edge["target"]]
        if card.kind == "op":
            found = target.value if target.kind == "value" else labels.get(edge.get("label") or "", "")
            if found in steps:
                card.link = f"#step-{steps[found]}"


def _said(plan: dict[str, Any]) -> str:
    nodes = plan["graph"]["nodes"]
    values, ops = (sum(node["kind"] == kind for node in nodes) for kind in ("value", "op"))
    return f"Graph of {values} values and {ops} operations, from the leaves to the output"


def _card(node: dict[str, Any], plan: dict[str, Any], count: int) -> Card:
    label = str(node["label"])
    title = label if len(label) <= 22 else label[:21] + "…"
    shape = "" if node.get("shape") is None else shape_text(node["shape"])
    if node["kind"] == "op":
        return Card(node["id"], "op", title, "", max(len(title) * 7.4 + 22, 46), 30)
    value_id = _value_of(node, plan)
    value = plan["values"].get(value_id) if value_id else None
    card = Card(node["id"], "value", title, shape, 0, 24, role=str(node.get("role") or ""))
    if value_id:
        card.link, card.value = _link(value_id, plan), value_id
    if value is not None and count <= MOST_CARDS:
        bar = value["bar"] if len(value["bar"]) <= 7 else "∂L"
        parts = (("forward", "", "", value["data"]), ("cotangent", bar, f"g.{value_id}", value["gradient"]))
        card.blocks = [(kind, sign, key, _lines(a)) for kind, sign, key, a in parts if a is not None and _fits(a)]
    widest = max((len(line) for *_, lines in card.blocks for line in lines), default=0)
    sign = max((len(sign) * 7 + 8 for _, sign, *_ in card.blocks), default=0)
    card.w = max(len(title) * 8 + len(shape) * CHAR + 2 * PAD + 10, widest * CHAR + 2 * PAD + sign)
    card.h = 25 + sum(len(lines) * LINE + 7 for *_, lines in card.blocks)
    return card


def _fits(array: dict[str, Any]) -> bool:
    shape = array["shape"]
    numbers = flat(array["data"])
    wide = shape[-1] if shape else 1
    return not array["truncated"] and 0 < len(numbers) <= MOST_CELLS and wide <= MOST_WIDE and is_real(numbers)


def _lines(array: dict[str, Any]) -> list[str]:
    numbers = flat(array["data"])
    cells = [written(item, decimals(numbers)) for item in numbers]
    width = array["shape"][-1] if array["shape"] else 1
    columns = [max(len(cell) for cell in cells[j::width]) for j in range(width)]
    rows = [cells[i : i + width] for i in range(0, len(cells), width)]
    return ["  ".join(cell.rjust(n) for cell, n in zip(row, columns, strict=True)) for row in rows]


def _value_of(node: dict[str, Any], plan: dict[str, Any]) -> str | None:
    if node.get("value") in plan["values"]:
        return str(node["value"])
    found = [
        key
        for key, value in plan["values"].items()
        if value["name"] == node["label"] and list(value["shape"]) == list(node.get("shape") or [])
    ]
    return found[0] if len(found) == 1 else None


def _link(value_id: str, plan: dict[str, Any]) -> str:
    """Where the page speaks of the value: the step that it enters, its gradient, or the list of values."""
    for step in plan["steps"]:
        if step["output"] == value_id:
            return f"#step-{step['index']}"
    return f"#gradient-{value_id}" if value_id in plan["gradients"] else f"#value-{value_id}"


# -- placing -----------------------------------------------------------------------------------------------------------


def _place(cards: dict[str, Card], edges: list[dict[str, Any]]) -> None:
    """Columns by the longest path to a card; in a column, each card as near as may be to those it comes from."""
    before: dict[str, list[str]] = {name: [] for name in cards}
    after: dict[str, list[str]] = {name: [] for name in cards}
    for edge in edges:
        before[edge["target"]].append(edge["source"])
        after[edge["source"]].append(edge["target"])
    rank = _ranks(before, after)
    columns: dict[int, list[str]] = {}
    for name in cards:
        columns.setdefault(rank[name], []).append(name)
    at: dict[str, float] = {}
    x = 0.0
    for r in sorted(columns):
        members = sorted(columns[r], key=lambda name: _mean([at[b] for b in before[name]], len(at)))
        wide = max(cards[name].w for name in members)
        y = 0.0
        for name in members:
            card = cards[name]
            wish = _mean([at[b] for b in before[name]], y + card.h / 2)
            card.x, card.y = x + (wide - card.w) / 2, max(y, wish - card.h / 2)
            at[name] = card.y + card.h / 2
            y = card.y + card.h + GAP_Y
        x += wide + GAP_X
    _pull_up(cards)


def _pull_up(cards: dict[str, Card]) -> None:
    top = min((card.y for card in cards.values()), default=0)
    for card in cards.values():
        card.y -= top


def _ranks(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, int]:
    waiting = {name: len(sources) for name, sources in before.items()}
    ready = [name for name, n in waiting.items() if n == 0]
    rank = dict.fromkeys(before, 0)
    for name in ready:
        for target in after[name]:
            rank[target] = max(rank[target], rank[name] + 1)
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    for name in reversed(ready):  # a leaf stands next to what uses it first
        if not before[name] and after[name]:
            rank[name] = min(rank[target] for target in after[name]) - 1
    return rank


def _mean(numbers: list[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


# -- drawing -----------------------------------------------------------------------------------------------------------


def _edge(edge: dict[str, Any], cards: dict[str, Card]) -> str:
    a, b = cards[edge["source"]], cards[edge["target"]]
    x0, y0, x1, y1 = a.x + a.w, a.y + a.h / 2, b.x - 2, b.y + b.h / 2
    half = max((x1 - x0) / 2, 12)
    why = f"<title>{escape(edge['why'])}</title>" if edge.get("why") else ""
    label = str(edge.get("label") or "")
    label = label if len(label) <= 24 else label[:23] + "…"
    name = f"<text class='label' x='{(x0 + x1) / 2:.1f}' y='{(y0 + y1) / 2 - 5:.1f}' text-anchor='middle'>{escape(label)}</text>"
    return (
        f"<path class='edge {escape(edge['kind'])}' data-from='{escape(a.id)}' data-to='{escape(b.id)}' marker-end='url(#tip)' "
        f"d='M{x0:.1f} {y0:.1f}C{x0 + half:.1f} {y0:.1f} {x1 - half:.1f} {y1:.1f} {x1:.1f} {y1:.1f}'>{why}</path>{name if label else ''}"
    )


def _drawn(card: Card, links: bool) -> str:
    inside = f"<rect width='{card.w:.1f}' height='{card.h:.1f}' rx='{15 if card.kind == 'op' else 5}'/>"
    if card.kind == "op":
        inside += f"<text class='title' x='{card.w / 2:.1f}' y='19.5' text-anchor='middle'>{escape(card.title)}</text>"
    else:
        inside += f"<text class='title' x='{PAD}' y='17'>{escape(card.title)}</text>"
        inside += f"<text class='shape' x='{card.w - PAD:.1f}' y='17' text-anchor='end'>{escape(card.shape)}</text>"
    y = 25.0
    for kind, sign, key, lines in card.blocks:
        inside += f"<path class='rule' d='M0 {y:.1f}H{card.w:.1f}'/>"
        if sign:
            inside += f"<text class='{kind} sign' x='{PAD}' y='{y + 15:.1f}'>{escape(sign)}</text>"
        marks = f" data-key='{escape(key)}' data-lines=''" if key else ""
        inside += f"<g class='{kind}'{marks}>"
        for line in lines:
            y += LINE
            inside += (
                f"<text class='numbers' x='{card.w - PAD:.1f}' y='{y:.1f}' text-anchor='end'>{escape(line)}</text>"
            )
        inside += "</g>"
        y += 7
    body = (
        f"<g class='node {card.kind} {escape(card.role)}' id='node-{escape(card.id)}' data-id='{escape(card.id)}' "
        f"data-w='{card.w:.1f}' data-h='{card.h:.1f}' transform='translate({card.x:.1f} {card.y:.1f})'>{inside}</g>"
    )
    return f"<a href='{escape(card.link)}'>{body}</a>" if links and card.link else body
