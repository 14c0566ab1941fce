"""Convert a tape to the nodes and edges of a drawing: boxes for values, folded operations, constants and cut paths.

``graph.graph_of`` calls ``Drawing`` and makes a ``Graph`` of its ``drawn`` nodes and ``edges``.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chainrule._src.explaining.calls import CallSpan, calls_of, operands_at
from chainrule._src.explaining.diagnosis.names import Names
from chainrule._src.explaining.folding import OperationRange, fold_repeats
from chainrule._src.explaining.parts import GraphEdge, GraphNode
from chainrule._src.explaining.tape import Tape, constants_of, saved_bytes
from chainrule._src.messages.message_parts import Cut
from chainrule._src.tape.node import Edge, Leaf, Node
from chainrule._src.tape.tensor import Tensor


@dataclass(slots=True)
class _Arrow:
    source: Any
    target: Any
    kind: str = "flow"
    why: str = ""
    label: str = ""
    operand: int = 0
    value: str = ""


class Drawing:
    """Compute the nodes (``drawn``) and ``edges`` of a graph.

    Nodes have keys first (an edge of the tape, ``("op", index)``, or the id of an array), and get their ids when their order
    is known.
    """

    def __init__(
        self,
        tensors: list[Tensor],
        names: Names,
        labels: Mapping[object, str],
        every: bool,
        composites: bool,
        limit: int | None,
        most: int,
    ) -> None:
        self.tensors, self.names, self.given, self.every = tensors, names, labels, every
        behind = [source for t in tensors if t._edge is None for source in _sources(t, names)]
        self.tape = Tape([*tensors, *behind], names)
        every_op = [CallSpan(i, i + 1) for i in range(len(self.tape.ops))]
        self.calls = calls_of(self.tape.ops) if composites else every_op
        self.roots = {t._edge if t._edge is not None else id(t): t for t in tensors}
        self.labels = self._labelled()
        self.boxes: set[object] | None = None  # values with boxes in a folded graph; None: all values with names
        self.ranges = self._folded(limit, most)
        self.composites = {call[:2]: call.name for call in self.calls if call.name}
        self.of_op = [g for g, s in enumerate(self.ranges) for _ in range(s.start, s.stop)]
        self.nodes: dict[Any, GraphNode] = {}
        self.arrows: list[_Arrow] = []
        self.kept: list[object] = []  # keeps arrays alive whose id is a key
        self.draw()

    # -- names and folds ---------------------------------------------------------------------------------------------

    def _labelled(self) -> dict[object, str]:
        """Return a name for every value: the user's, or t1, t2 ... in order of creation."""
        named = {edge: self.given.get(edge) or self.names.of(edge) or "" for edge in self.tape.values}
        taken = set(named.values())
        free = (name for n in itertools.count(1) if (name := f"t{n}") not in taken)
        return {edge: name or next(free) for edge, name in named.items()}

    def _boxed(self, edge: object) -> bool:
        """Return whether a value is drawn as a box."""
        if edge in self.roots or self.every:
            return True
        return self.names.of(edge) is not None if self.boxes is None else edge in self.boxes

    def _folded(self, limit: int | None, most: int) -> list[OperationRange]:
        tape = self.tape
        singles = [OperationRange(call.start, call.stop) for call in self.calls]
        boxes = sum(self._boxed(edge) for edge in tape.values if type(edge) is not Leaf)
        if limit is None or len(singles) + boxes + len(tape.leaves) <= limit:
            return singles
        named: set[object] = {
            e for e in tape.values if self._boxed(e) and "[" not in self.labels[e] and type(e) is not Leaf
        }
        self.boxes = named if len(named) <= limit // 4 else set(self.roots)
        kinds = [(_name(node), tape.about.get(node, (None,))[0]) for node in tape.ops]
        folded = fold_repeats([tuple(kinds[call.start : call.stop]) for call in self.calls], max(most, 1))
        return [OperationRange(singles[s.start].start, singles[s.stop - 1].stop, s.times) for s in folded]

    @property
    def collapsed(self) -> bool:
        return len(self.ranges) < len(self.calls)

    # -- nodes and arrows --------------------------------------------------------------------------------------------

    def draw(self) -> None:
        for leaf in sorted(self.tape.leaves, key=lambda leaf: self.tape.readers.get(leaf, (0,))[0]):
            self._value(leaf)
        for g, op_range in enumerate(self.ranges):
            self._operation(g, op_range)
            for i in range(op_range.start, op_range.stop):
                for edge in self._results(i):
                    if self._boxed(edge) and (op_range.stop - op_range.start == 1 or self._leaves(edge, g)):
                        self._value(edge)
                        self.arrows.append(_Arrow(("op", g), edge))
        for g, op_range in enumerate(self.ranges):
            for i in range(op_range.start, op_range.stop):
                self._operands(g, op_range, i)
        self._unknown_constants()
        for tensor in self.tensors:
            if tensor._edge is None:
                self._constant(tensor, self.names.of(tensor) or "output", "output")
        if self.collapsed:
            self._fold_leaves()
        self._finish()

    def _results(self, i: int) -> list[Edge]:
        node = self.tape.ops[i]
        if "_outputs" not in node.params:
            return [node]
        found = [ref() for _, ref in sorted(getattr(node, "outs", {}).items())]
        return [output for output in found if output in self.labels]

    def _leaves(self, edge: object, g: int) -> bool:
        """Return whether a value is an output, or is read outside of the fold that computes it."""
        return edge in self.roots or any(self.of_op[i] != g for i in self.tape.readers.get(edge, ()))

    def _value(self, edge: object) -> None:
        self.nodes[edge] = node = self._node("value", self.labels[edge], edge)
        node.role = "leaf" if type(edge) is Leaf else "output" if edge in self.roots else "intermediate"

    def _node(self, kind: str, label: str, edge: object) -> GraphNode:
        shape, dtype = self.tape.about.get(edge, (None, None))
        return GraphNode("", kind, label, shape, None if dtype is None else str(dtype), line=self.names.line(edge))

    def _operation(self, g: int, op_range: OperationRange) -> None:
        ops = self.tape.ops[op_range.start : op_range.stop]
        self.nodes["op", g] = node = self._node("op", _name(ops[0]), ops[-1])
        node.saved_bytes = sum(map(saved_bytes, ops))
        composite = self.composites.get((op_range.start, op_range.stop))
        if composite:
            node.role, node.label, node.detail = "fold", composite, ", ".join(map(_name, ops))
        elif len(ops) == 1:
            node.detail = ", ".join(_parameters(ops[0]))
        else:
            node.role, node.count = "fold", len(ops)
            pattern = [_name(op) for op in ops[: len(ops) // op_range.times]]
            times = f"{op_range.times} × " * (op_range.times > 1)
            if times and len(pattern) <= 4:
                node.label = times + (f"({', '.join(pattern)})" if len(pattern) > 1 else pattern[0])
            else:
                counts = Counter(pattern)
                node.label = f"{times}{len(pattern)} operations"
                node.detail = ", ".join(f"{n} {name}" for name, n in counts.most_common(3)) + " …" * (len(counts) > 3)

    def _operands(self, g: int, op_range: OperationRange, i: int) -> None:
        node, op, alone = self.tape.ops[i], self.nodes["op", g], op_range.stop - op_range.start == 1
        for at, edge in enumerate(node.edges):
            if edge is None:
                continue
            made = self.tape.producer(edge)
            if made is not None and self.of_op[made] == g:
                continue
            if edge in self.nodes:
                self.arrows.append(_Arrow(edge, ("op", g), operand=at))
            elif made is not None:
                shape = self.tape.about.get(edge, (None,))[0]
                label = self.labels[edge] + ("" if shape is None else f" {shape}")
                self.arrows.append(
                    _Arrow(("op", self.of_op[made]), ("op", g), label=label, operand=at, value=self.labels[edge])
                )
        for at, value in constants_of(node):
            plain = isinstance(value, (bool, int, float, complex))
            found = None if value is None or plain else self.names.find(value)
            if found is not None or (alone and not plain and value is not None and getattr(value, "shape", None) != ()):
                thing = value if found is None else found.thing
                if found is not None or node.prim.name != "copy_slices" or at == 1:
                    self._constant(thing, "" if found is None else found.name)
                    self.arrows.append(_Arrow(id(thing), ("op", g), operand=at))
            elif alone:
                op.numbers[at] = "…" if value is None else _number(value)  # …: the node does not save it
        if alone and op.numbers:
            known = [number for number in op.numbers.values() if number != "…"]
            op.detail = ", ".join([*known, *_parameters(node)])

    def _constant(self, thing: object, name: str, role: str = "constant") -> None:
        """Add a box for a value without gradient, and an arrow or a note for the cut of its path."""
        if id(thing) in self.nodes:
            return
        self.kept.append(thing)
        data = getattr(thing, "_raw", thing)
        name = name or self.given.get(id(data), "")
        if not name:
            name = f"c{1 + sum(n.role == 'constant' and n.label[:1] == 'c' for n in self.nodes.values())}"
        line = self.names.line(thing) if isinstance(thing, Tensor) else None
        shape, dtype = tuple(getattr(data, "shape", ())), str(getattr(data, "dtype", ""))
        self.nodes[id(thing)] = box = GraphNode("", "value", name, shape, dtype, 0, line, False, role)
        cut = getattr(thing, "_cut", None)
        if cut is None:
            return
        drawn = False
        for source in _sources(thing, self.names):
            edge = source._edge
            if edge not in self.nodes and self.names.of(edge) is not None and edge not in self.tape.index:
                self.labels[edge] = self.names.of(edge) or ""
                self.tape.about[edge] = (tuple(source.shape), source._raw.dtype)
                self._value(edge)
            if edge in self.nodes:
                self.arrows.append(_Arrow(edge, id(thing), "cut", str(cut), _cut_label(cut)))
                drawn = True
        if not drawn:
            box.detail, box.why = _cut_label(cut), str(cut)

    def _unknown_constants(self) -> None:
        """Add constants that their operation does not save, if the source expression names a variable of that shape."""
        by_name = {f.name: f for f in self.names.found if isinstance(f.thing, Tensor) and f.thing._edge is None}
        for g, op_range in enumerate(self.ranges):
            node = self.tape.ops[op_range.start]
            alone = op_range.stop - op_range.start == 1
            missing = [at for at, value in constants_of(node) if alone and value is None]
            operands = operands_at(node) if missing else []
            for at in missing:
                found = by_name.get(operands[at]) if at < len(operands) else None
                shape = node.in_avals[at][0] if node.in_avals is not None else self.tape.about.get(node, (None,))[0]
                if found is not None and tuple(found.thing.shape) == shape:
                    self._constant(found.thing, found.name)
                    del self.nodes["op", g].numbers[at]
                    self.arrows.append(_Arrow(id(found.thing), ("op", g), operand=at))

    def _fold_leaves(self) -> None:
        """Draw four or more leaves (or constants) as one node if they have the same targets."""
        goes: dict[object, set[object]] = {}
        for arrow in self.arrows:
            goes.setdefault(arrow.source, set()).add(arrow.target)
        cut = {key for arrow in self.arrows if arrow.kind == "cut" for key in (arrow.source, arrow.target)}
        alike: dict[tuple[str, object], list[object]] = {}
        for key, node in self.nodes.items():
            if node.role in ("leaf", "constant") and key in goes and key not in cut and key not in self.roots:
                alike.setdefault((node.role, frozenset(goes[key])), []).append(key)
        for (role, _), (first, *rest) in alike.items():
            if len(rest) < 3:
                continue
            members = [self.nodes[first], *(self.nodes.pop(key) for key in rest)]
            node = GraphNode("", "value", f"{len(members)} {'leaves' if role == 'leaf' else 'constants'}", role=role)
            node.requires_grad = role == "leaf"
            node.shape = members[0].shape if len({m.shape for m in members}) == 1 else None
            node.detail = f"{members[0].label} … {members[-1].label}"
            node.count = len(members)
            self.nodes[first] = node
        self.arrows = [arrow for arrow in self.arrows if arrow.source in self.nodes]

    # -- the result --------------------------------------------------------------------------------------------------

    def _order(self) -> list[Any]:
        """Sort nodes so that arrows go forward: operations in execution order, values before their first reader."""
        kinds = {key: node.kind for key, node in self.nodes.items()}
        rank = {key: (key[1], 1) if kind == "op" else (len(self.ranges), 0) for key, kind in kinds.items()}
        made = {arrow.target: arrow.source[1] for arrow in self.arrows if kinds[arrow.source] == "op"}
        for arrow in self.arrows:
            if kinds[arrow.target] == "op" != kinds[arrow.source]:
                rank[arrow.source] = min(rank[arrow.source], (arrow.target[1], 0))
        for source, before in [(a.source, rank[a.target][0]) for a in self.arrows if a.kind == "cut"]:
            if before > made.get(source, -1):
                rank[source] = min(rank[source], (before, -1))
        # A cut may point backward if its source was written in place afterwards.
        self.arrows = [a for a in self.arrows if a.kind != "cut" or rank[a.source] < rank[a.target]]
        return sorted(self.nodes, key=rank.__getitem__)

    def _finish(self) -> None:
        """Assign ids in an order in which arrows go forward, and merge the parallel arrows of folds."""
        order = self._order()
        for i, key in enumerate(order):
            self.nodes[key].id = f"n{i}"
        place = {key: i for i, key in enumerate(order)}
        self.arrows.sort(key=lambda arrow: (place[arrow.target], arrow.operand))
        pairs = Counter((arrow.source, arrow.target) for arrow in self.arrows)
        seen: Counter[object] = Counter()
        edges = []
        for arrow in self.arrows:
            pair = (arrow.source, arrow.target)
            seen[pair] += 1
            label = arrow.label
            if pairs[pair] > 1:
                if any(self.nodes[key].role == "fold" for key in pair) or self.nodes[arrow.source].count > 1:
                    if seen[pair] > 1:
                        continue
                    label = f"{pairs[pair]} values" if self.nodes[arrow.source].kind == "op" else ""
                else:
                    side = ("left", "right")[seen[pair] - 1] if pairs[pair] == 2 else f"operand {seen[pair]}"
                    label = f"{label} {side}".strip()
            ends = (self.nodes[arrow.source].id, self.nodes[arrow.target].id)
            edges.append(GraphEdge(*ends, arrow.kind, arrow.why, label, arrow.operand, arrow.value))
        self.drawn = [self.nodes[key] for key in order]
        self.edges = edges
        self.title = ", ".join(self.nodes[key].label for key in self.roots if key in self.nodes)


def _sources(tensor: object, names: Names) -> list[Tensor]:
    """Return the tensors that are still alive among the sources of a tensor's cut."""
    found = []
    for source in getattr(tensor._cut, "sources", ()) if isinstance(tensor, Tensor) else ():
        alive = source() if callable(source) and not isinstance(source, Tensor) else source
        if isinstance(alive, Tensor) and alive._edge is not None:
            found.append(alive)
    cut = getattr(tensor, "_cut", None)
    if not found and cut is not None:  # the sources were intermediate values: use the variables that the line reads
        found = [f.thing for f in names.read_at(cut.where) if getattr(f.thing, "_edge", None) is not None]
    return found


_CUT_LABELS = {
    "cast": "cut by an integer dtype",
    "data": "cut by .data",
    "gradient": "a gradient, not recorded",
    "requires_grad": "requires_grad=False",
    "tensor()": "cut by tensor()",
}


def _cut_label(cut: Cut) -> str:
    return _CUT_LABELS.get(cut.kind) or f"cut by {cut.kind.rstrip('_')}()"


def _name(node: Node) -> str:
    return str(getattr(node.prim, "name", "") or node.name())


def _parameters(node: Node) -> list[str]:
    """Return the parameters to show, as ``key=value``."""
    if node.prim.kind == "function":
        return []
    shown = [
        f"{key}={value!r}"
        for key, value in node.params.items()
        if key in node.prim.parameters and value is not None and value is not False and key not in ("name", "steps")
    ]
    return [text for text in shown if len(text) <= 24]


def _number(value: object) -> str:
    value = value.item() if hasattr(value, "item") else value
    return f"{value:.6g}" if isinstance(value, float) else str(value)
