"""Lay out the nodes and arrows of a graph by Sugiyama's method, in layers from top to bottom or from left to right.

``picture.lay_out_graph`` calls ``lay_out`` with the sizes of the nodes. The steps are:

1. Layers: every node is below its operands (longest path); leaves move down to their readers.
2. Bends: arrows over several layers, labels of arrows, and parallel arrows pass through *bends*, small nodes that reserve space.
3. Order within a layer: a few sweeps of the barycentre heuristic.
4. Horizontal positions: each node should be at the mean of its neighbours, with a minimum gap. For one layer, the least squares
   solution is exact (pool adjacent violators); a few sweeps go up and down.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

Rectangle = tuple[float, float, float, float]
Point = tuple[float, float]
Rows = list[list["_Item"]]

GAP_X, GAP_Y, LANE = 22.0, 24.0, 14.0
LABEL_HEIGHT = 16.0
_BENDS = 6000
_MARGIN = 12.0


@dataclass(slots=True)
class GraphLayout:
    """Boxes (left, top, width, height) by id; for each arrow its points and the box of its label; the total size."""

    boxes: dict[str, Rectangle]
    routes: list[list[Point]]
    labels: list[Rectangle | None]
    width: float
    height: float


@dataclass(slots=True, eq=False)
class _Item:
    """A node, or a bend of an arrow."""

    width: float
    height: float
    layer: int
    bend: bool = False
    up: list[_Item] = field(default_factory=list)
    down: list[_Item] = field(default_factory=list)
    x: float = 0.0  # the centre
    top: float = 0.0
    place: float = 0.0  # index in its row

    @property
    def box(self) -> Rectangle:
        return (self.x - self.width / 2, self.top, self.width, self.height)


def text_width(text: str, size: float) -> float:
    """Return an upper bound of the width of a text in a monospaced font: wide characters count twice."""
    return sum(size * (0.62 if ord(c) < 0x1100 or 0x2000 <= ord(c) < 0x2E80 else 1.24) for c in text)


def lay_out(
    sizes: dict[str, tuple[float, float]], arrows: Sequence[tuple[str, str, str]], *, sideways: bool = False
) -> GraphLayout:
    """Lay out nodes of these sizes, and arrows (source, target, label) between them. The arrows must form no cycle."""
    index = {name: i for i, name in enumerate(sizes)}
    ends = [(index[source], index[target]) for source, target, _ in arrows]
    labels = [label for *_, label in arrows]
    pairs = Counter(ends)
    lengths = [2 if label or pairs[pair] > 1 else 1 for pair, label in zip(ends, labels)]
    layers = _layers(len(sizes), ends, lengths)
    turned = [(h, w) if sideways else (w, h) for w, h in sizes.values()]
    items = [_Item(*size, layer) for size, layer in zip(turned, layers)]
    chains, carriers = _bends(items, ends, labels, sideways)
    rows = _ordered(items + [bend for chain in chains for bend in chain[1:-1]])
    _across(rows)
    width, height = _down(rows)
    ports = _ports(chains)
    laid_out = GraphLayout(
        {name: items[i].box for name, i in index.items()},
        [_route(chain, *port) for chain, port in zip(chains, ports)],
        [None if carrier is None else carrier.box for carrier in carriers],
        width,
        height,
    )
    return _transposed(laid_out) if sideways else laid_out


def _transposed(layout: GraphLayout) -> GraphLayout:
    def turn(box: Rectangle) -> Rectangle:
        return (box[1], box[0], box[3], box[2])

    return GraphLayout(
        {name: turn(box) for name, box in layout.boxes.items()},
        [[(y, x) for x, y in route] for route in layout.routes],
        [None if box is None else turn(box) for box in layout.labels],
        layout.height,
        layout.width,
    )


def _layers(n: int, ends: Sequence[tuple[int, int]], lengths: Sequence[int]) -> list[int]:
    """Return the longest path to each node; then move nodes without predecessors down to their readers."""
    layer = [0] * n
    out: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    waits = [0] * n
    for (source, target), length in zip(ends, lengths):
        out[source].append((target, length))
        waits[target] += 1
    first = [i for i in range(n) if not waits[i]]
    ready = list(first)
    for i in ready:  # the loop appends to the list
        for target, length in out[i]:
            layer[target] = max(layer[target], layer[i] + length)
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    for i in first:
        if out[i]:
            layer[i] = min(layer[target] - length for target, length in out[i])
    return layer


def _bends(
    items: Sequence[_Item], ends: Sequence[tuple[int, int]], labels: Sequence[str], sideways: bool
) -> tuple[list[list[_Item]], list[_Item | None]]:
    """Add the bends of every arrow. Return the items along each arrow, and the item that has its label."""
    many = sum(items[t].layer - items[s].layer - 1 for s, t in ends) > _BENDS
    chains: list[list[_Item]] = []
    carriers: list[_Item | None] = []
    for (source, target), label in zip(ends, labels):
        first, last = items[source].layer + 1, items[target].layer
        if many and last - first > 3:  # only the first two bends
            last = first + 2
        bends = [_Item(LANE, 0.0, layer, True) for layer in range(first, last)]
        if label:
            size = (text_width(label, 11.0) + 8, LABEL_HEIGHT)
            bends[0].width, bends[0].height = size[::-1] if sideways else size
        carriers.append(bends[0] if label else None)
        chain = [items[source], *bends, items[target]]
        for above, below in itertools.pairwise(chain):
            above.down.append(below)
            below.up.append(above)
        chains.append(chain)
    return chains, carriers


def _ordered(items: Sequence[_Item]) -> Rows:
    """Order the items of every layer so that few arrows cross: by the mean index of their neighbours, down and up."""
    rows: Rows = [[] for _ in range(max((item.layer for item in items), default=-1) + 1)]
    seen: set[int] = set()
    for start in sorted(items, key=lambda item: item.layer):  # depth first: connected items start next to each other
        stack = [start]
        while stack:
            item = stack.pop()
            if id(item) not in seen:
                seen.add(id(item))
                rows[item.layer].append(item)
                stack.extend(reversed(item.down))
    _number(rows)
    best, fewest = [list(row) for row in rows], _crossings(rows)
    for sweep in range(8):
        if not fewest:
            break
        downward = sweep % 2 == 0
        for row in rows if downward else reversed(rows):
            means = {id(item): _mean(item.up if downward else item.down, item.place) for item in row}
            row.sort(key=lambda item: means[id(item)])
            _number([row])
        crossings = _crossings(rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _number(rows: Rows) -> None:
    for row in rows:
        for place, item in enumerate(row):
            item.place = place


def _mean(neighbours: Sequence[_Item], otherwise: float) -> float:
    return sum(item.place for item in neighbours) / len(neighbours) if neighbours else otherwise


def _crossings(rows: Rows) -> int:
    """Count the pairs of arrows that cross between adjacent layers."""
    total = 0
    for upper, lower in itertools.pairwise(rows):
        layer = lower[0].layer if lower else -1
        passed: list[float] = []
        for item in upper:
            targets = [below.place for below in item.down if below.layer == layer]
            total += sum(len(passed) - bisect.bisect_right(passed, x) for x in targets)
            for x in targets:
                bisect.insort(passed, x)
    return total


def _across(rows: Rows) -> None:
    """Set ``x``, the centre of every item."""
    for row in rows:
        for item, offset in zip(row, _offsets(row)):
            item.x = offset
    for sweep in range(20):
        downward = sweep % 2 == 0
        for row in rows if downward else reversed(rows):
            wanted, weights = [], []
            for item in row:
                near = (item.up or item.down) if downward else (item.down or item.up)
                pull = [12.0 if item.bend and n.bend else 2.0 if len(n.down) == 1 else 1.0 for n in near]
                weight = sum(pull)
                wanted.append(sum(n.x * w for n, w in zip(near, pull)) / weight if near else item.x)
                weights.append(weight or 0.1)
            for item, x in zip(row, _spread(wanted, weights, _offsets(row))):
                item.x = x
    left = min((item.box[0] for row in rows for item in row), default=0.0)
    for row in rows:
        for item in row:
            item.x += _MARGIN - left


def _offsets(row: Sequence[_Item]) -> list[float]:
    """Return the centres of a row's items at the minimum distances."""

    def distance(left: _Item, right: _Item) -> float:
        return (left.width + right.width) / 2 + (GAP_X / 2 if left.bend and right.bend else GAP_X)

    return list(itertools.accumulate((distance(*pair) for pair in itertools.pairwise(row)), initial=0.0))


def _spread(wanted: Sequence[float], weights: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """Return the positions closest to the wanted ones that keep the order and the minimum distances."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, count
    for x, weight, offset in zip(wanted, weights, offsets):
        block = (x - offset, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, other, count = blocks.pop()
            total = other + block[1]
            block = ((mean * other + block[0] * block[1]) / total, total, count + block[2])
        blocks.append(block)
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets)]


def _down(rows: Rows) -> Point:
    """Set ``top``; return the total size."""
    y = _MARGIN
    for row in rows:
        tall = max((item.height for item in row), default=0.0)
        for item in row:
            if item.bend and not item.height:  # the arrow passes the whole row
                item.height = tall
            item.top = y + (tall - item.height) / 2
        y += tall + (GAP_Y * 0.7 if tall and all(item.bend for item in row) else GAP_Y)
    items = [item for row in rows for item in row]
    right = max((item.x + item.width / 2 for item in items), default=0.0)
    return right + _MARGIN, max((item.top + item.height for item in items), default=0.0) + _MARGIN


def _ports(chains: Sequence[list[_Item]]) -> list[Point]:
    """Return for each arrow its x position at both ends: arrows of a node are side by side, in the order of their other ends."""
    sides: list[list[float]] = []
    for end, next_ in ((0, 1), (-1, -2)):
        at = [0.0] * len(chains)
        together: dict[int, list[int]] = {}
        for i, chain in enumerate(chains):
            together.setdefault(id(chain[end]), []).append(i)
        for several in together.values():
            item = chains[several[0]][end]
            several.sort(key=lambda i: chains[i][next_].x)
            step = min(14.0, max(item.width - 16, 0.0) / max(len(several) - 1, 1))
            if end == 0 and len({id(chains[i][next_]) for i in several}) == 1:
                step = 0.0
            for rank, i in enumerate(several):
                at[i] = item.x + (rank - (len(several) - 1) / 2) * step
        sides.append(at)
    return list(zip(*sides))


def _route(chain: Sequence[_Item], leaves: float, arrives: float) -> list[Point]:
    points = [(leaves, chain[0].top + chain[0].height)]
    for bend in chain[1:-1]:
        points.append((bend.x, bend.top))
        if bend.height:
            points.append((bend.x, bend.top + bend.height))
    return [*points, (arrives, chain[-1].top)]
