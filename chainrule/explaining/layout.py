"""Where the nodes and arrows of a graph are drawn: layers from top to bottom, as in Sugiyama's method.

1. Layers: every node lies below what it is computed from (longest path); leaves move down to where they are read.
2. Arrows over several layers, labels of arrows, and second arrows between the same nodes pass through *bends*: small nodes of
   their own, which keep room for them.
3. Order within a layer: a few sweeps of barycentres.
4. Left to right: each node wants to be above the middle of its neighbours, with room between; for one layer, the least sum of
   squared distances to that is found exactly (pool adjacent violators), in a few sweeps up and down.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

Box = tuple[float, float, float, float]
Point = tuple[float, float]

GAP_X, GAP_Y, LANE = 22.0, 22.0, 14.0
LABEL_HEIGHT = 16.0
_BENDS = 6000
_MARGIN = 12.0


@dataclass(slots=True)
class Layout:
    """Boxes (left, top, width, height) by id; for each arrow its points and the box of its label; the whole size."""

    boxes: dict[str, Box]
    routes: list[list[Point]]
    labels: list[Box | None]
    width: float
    height: float


@dataclass(slots=True)
class _Item:
    """A node, or a bend of an arrow."""

    width: float
    height: float
    layer: int
    bend: bool
    up: list[int]
    down: list[int]
    x: float = 0.0
    at: float = 0.0


def label_width(text: str, size: float = 11.0) -> float:
    return text_width(text, size) + 8 if text else 0.0


def text_width(text: str, size: float) -> float:
    """The width of a text in a monospaced face, from above: wide characters count twice."""
    return sum(size * (0.62 if ord(c) < 0x1100 or 0x2000 <= ord(c) < 0x2E80 else 1.24) for c in text)


def lay_out(sizes: dict[str, tuple[float, float]], arrows: Sequence[tuple[str, str, str]]) -> Layout:
    """Place nodes of these sizes, which are joined by arrows (source, target, label). The arrows form no cycle."""
    ids = list(sizes)
    place = {name: i for i, name in enumerate(ids)}
    ends = [(place[source], place[target]) for source, target, _ in arrows]
    counts: dict[Hashable, int] = {}
    for pair in ends:
        counts[pair] = counts.get(pair, 0) + 1
    lengths = [2 if label or counts[pair] > 1 else 1 for pair, (_, _, label) in zip(ends, arrows)]
    layers = _layers(len(ids), ends, lengths)
    items = [_Item(*sizes[name], layers[i], False, [], []) for i, name in enumerate(ids)]
    chains, carriers = _bends(items, ends, [label for _, _, label in arrows])
    rows = _ordered(items)
    _across(items, rows)
    width, height = _down(items, rows)
    boxes = {name: (item.x - item.width / 2, item.at, item.width, item.height) for name, item in zip(ids, items)}
    ports = _ports(items, chains)
    routes = [_route(items, chain, *ports[i]) for i, chain in enumerate(chains)]
    labels: list[Box | None] = []
    for carrier in carriers:
        if carrier is None:
            labels.append(None)
        else:
            item = items[carrier]
            labels.append((item.x - item.width / 2, item.at, item.width, LABEL_HEIGHT))
    return Layout(boxes, routes, labels, width, height)


def _layers(n: int, ends: Sequence[tuple[int, int]], lengths: Sequence[int]) -> list[int]:
    """The longest path to each node; then those that nothing leads to move down to their readers."""
    layer = [0] * n
    out: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    waits = [0] * n
    for (source, target), length in zip(ends, lengths):
        out[source].append((target, length))
        waits[target] += 1
    fed = [bool(w) for w in waits]
    ready = [i for i in range(n) if not waits[i]]
    for i in ready:  # which grows
        for target, length in out[i]:
            layer[target] = max(layer[target], layer[i] + length)
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    for i in range(n):
        if not fed[i] and out[i]:
            layer[i] = min(layer[target] - length for target, length in out[i])
    return layer


def _bends(
    items: list[_Item], ends: Sequence[tuple[int, int]], labels: Sequence[str]
) -> tuple[list[list[int]], list[int | None]]:
    """Give every arrow its bends. Returns the items along each arrow, and which of them carries its label."""
    needed = sum(items[t].layer - items[s].layer - 1 for s, t in ends)
    chains: list[list[int]] = []
    carriers: list[int | None] = []
    for (source, target), label in zip(ends, labels):
        first, last = items[source].layer + 1, items[target].layer
        at = range(first, last)
        if needed > _BENDS and len(at) > 3:  # too many: only where it leaves and where it arrives
            at = range(first, first + 2)  # type: ignore[assignment]
        chain = [source]
        carrier = None
        for layer in at:
            carries = bool(label) and layer == first
            width = label_width(label) if carries else LANE
            items.append(_Item(width, LABEL_HEIGHT if carries else 0.0, layer, True, [], []))
            chain.append(len(items) - 1)
            if carries:
                carrier = len(items) - 1
        chain.append(target)
        for above, below in itertools.pairwise(chain):
            items[above].down.append(below)
            items[below].up.append(above)
        chains.append(chain)
        carriers.append(carrier)
    return chains, carriers


def _ordered(items: list[_Item]) -> list[list[int]]:
    """The items of every layer, ordered so that few arrows cross: by the mean place of their neighbours, down and up."""
    rows: list[list[int]] = [[] for _ in range(max((item.layer for item in items), default=-1) + 1)]
    seen: set[int] = set()
    for start in sorted(
        range(len(items)), key=lambda i: items[i].layer
    ):  # depth first: what belongs together starts together
        stack = [start]
        while stack:
            i = stack.pop()
            if i not in seen:
                seen.add(i)
                rows[items[i].layer].append(i)
                stack.extend(reversed(items[i].down))
    place = [0.0] * len(items)
    best, fewest = [list(row) for row in rows], _crossings(items, rows)
    for sweep in range(8):
        if not fewest:
            break
        for row in rows if sweep % 2 == 0 else reversed(rows):
            for x, i in enumerate(row):
                place[i] = x
        for row in rows if sweep % 2 == 0 else list(reversed(rows)):
            means = {i: _mean(items[i].up if sweep % 2 == 0 else items[i].down, place, place[i]) for i in row}
            row.sort(key=means.__getitem__)
            for x, i in enumerate(row):
                place[i] = x
        crossings = _crossings(items, rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _mean(neighbours: list[int], place: list[float], otherwise: float) -> float:
    return sum(place[i] for i in neighbours) / len(neighbours) if neighbours else otherwise


def _crossings(items: list[_Item], rows: list[list[int]]) -> int:
    """How many pairs of arrows cross, between each layer and the next (counted with a tree of sums)."""
    total = 0
    for upper, lower in itertools.pairwise(rows):
        place = {i: x for x, i in enumerate(lower)}
        tree = [0] * (len(lower) + 1)
        entered = 0
        for i in upper:
            targets = sorted(place[j] for j in items[i].down if j in place)
            for x in targets:
                at, passed = x + 1, 0
                while at:
                    passed += tree[at]
                    at &= at - 1
                total += entered - passed
            for x in targets:
                entered += 1
                at = x + 1
                while at <= len(lower):
                    tree[at] += 1
                    at += at & -at
    return total


def _across(items: list[_Item], rows: list[list[int]]) -> None:
    """Set ``x``, the middle of every item."""
    for row in rows:
        x = 0.0
        for before, i in zip([None, *row], row):
            x += 0.0 if before is None else _room(items[before], items[i])
            items[i].x = x
    for sweep in range(20):
        downward = sweep % 2 == 0
        for row in rows if downward else reversed(rows):
            wanted, weights = [], []
            for i in row:
                item = items[i]
                near = item.up if downward else item.down
                both = near or (item.down if downward else item.up)
                pull = [
                    (items[j].x, 12.0 if item.bend and items[j].bend else 2.0 if len(items[j].down) == 1 else 1.0)
                    for j in both
                ]
                weight = sum(w for _, w in pull)
                wanted.append(sum(x * w for x, w in pull) / weight if pull else item.x)
                weights.append(weight if pull else 0.1)
            for i, x in zip(row, _spread(items, row, wanted, weights)):
                items[i].x = x
    left = min((item.x - item.width / 2 for item in items), default=0.0)
    for item in items:
        item.x += _MARGIN - left


def _room(left: _Item, right: _Item) -> float:
    """How far apart the middles of two neighbours must be."""
    gap = GAP_X if not (left.bend and right.bend) else GAP_X / 2
    return (left.width + right.width) / 2 + gap


def _spread(items: list[_Item], row: list[int], wanted: list[float], weights: list[float]) -> list[float]:
    """The places nearest to the wanted ones that keep order and room."""
    offset, offsets = 0.0, []
    for before, i in zip([None, *row], row):
        offset += 0.0 if before is None else _room(items[before], items[i])
        offsets.append(offset)
    blocks: list[list[float]] = []  # mean, weight, how many
    for x, weight, offset in zip(wanted, weights, offsets):
        blocks.append([x - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, weight_, count = blocks.pop()
            last = blocks[-1]
            total = last[1] + weight_
            blocks[-1] = [(last[0] * last[1] + mean * weight_) / total, total, last[2] + count]
    flat = [mean for mean, _, count in blocks for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(flat, offsets)]


def _down(items: list[_Item], rows: list[list[int]]) -> Point:
    """Set ``at``, the top of every item; returns the size of the whole."""
    y = _MARGIN
    for row in rows:
        tall = max((items[i].height for i in row), default=0.0)
        for i in row:
            items[i].at = y + (tall - items[i].height) / 2
        y += tall + (GAP_Y if any(not items[i].bend for i in row) or tall == 0 else GAP_Y * 0.7)
    right = max((item.x + item.width / 2 for item in items), default=0.0)
    bottom = max((item.at + item.height for item in items), default=0.0)
    return right + _MARGIN, bottom + _MARGIN


def _ports(items: list[_Item], chains: list[list[int]]) -> list[tuple[float, float]]:
    """Where along its ends' borders each arrow leaves and arrives: side by side, in the order of where they lead."""
    leaves = [0.0] * len(chains)
    arrives = [0.0] * len(chains)
    for at, ends in ((1, leaves), (-2, arrives)):
        together: dict[int, list[int]] = {}
        for i, chain in enumerate(chains):
            together.setdefault(chain[0] if at == 1 else chain[-1], []).append(i)
        for node, several in together.items():
            item = items[node]
            several.sort(key=lambda i: items[chains[i][at]].x)
            step = min(14.0, (item.width - 24) / max(len(several) - 1, 1))
            if at == 1 and len({chains[i][at] for i in several}) == 1:
                step = 0.0
            for rank, i in enumerate(several):
                ends[i] = item.x + (rank - (len(several) - 1) / 2) * step
    return list(zip(leaves, arrives))


def _route(items: list[_Item], chain: list[int], leaves: float, arrives: float) -> list[Point]:
    first, last = items[chain[0]], items[chain[-1]]
    points = [(leaves, first.at + first.height)]
    for i in chain[1:-1]:
        item = items[i]
        points.append((item.x, item.at))
        if item.height:
            points.append((item.x, item.at + item.height))
    points.append((arrives, last.at))
    return points
