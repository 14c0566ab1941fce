"""The graph behind a tensor, to look at: values by the user's names, operations, and paths that were cut.

Values with a name, leaves, constants and the outputs are boxes; an intermediate value without a name is only an arrow with its
shape. A long tape is folded (``folding``) before anything is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from chainrule._src.arrays.types import JSONObject
from chainrule._src.explaining import exports
from chainrule._src.explaining.diagnosis.names import Names
from chainrule._src.explaining.diagnosis.source import SourceLine
from chainrule._src.explaining.drawing import Drawing
from chainrule._src.explaining.layout import GraphLayout
from chainrule._src.explaining.parts import GraphEdge, GraphNode
from chainrule._src.explaining.picture import WIDE, Card, CardArray, card, draw, placed
from chainrule._src.explaining.tape import saved_bytes
from chainrule._src.messages import errors
from chainrule._src.tape.tensor import Tensor

if TYPE_CHECKING:
    from chainrule._src.explaining.values import Value

LIMIT = 60
_SUMMARY = ("title", "operations", "leaves", "saved_bytes", "collapsed", "sideways")
MOST_CARDS = 16  # values and operations of a graph whose cards hold numbers


@dataclass(slots=True)
class Graph:
    """What ``tensor.graph()`` returns: ``nodes`` and ``edges``, and ways to draw them.

    >>> import chainrule as cr
    >>> x = cr.ones(3, requires_grad=True)
    >>> y = cr.exp(x) * 2
    >>> print(y.graph())
    graph of y: 2 operations, 1 leaf, 12 bytes saved for backward
      x   (3,)  leaf
      t1  (3,)  = exp(x)  saves 12 B
      y   (3,)  = mul(t1, 2)
    """

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    title: str = ""
    operations: int = 0
    leaves: int = 0
    saved_bytes: int = 0
    collapsed: bool = False
    text: str = ""
    sideways: bool = False
    _numbers: Mapping[str, Sequence[CardArray]] | None = field(default=None, repr=False)
    _cache: tuple[dict[str, Card], GraphLayout] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    @property
    def drawing(self) -> tuple[dict[str, Card], GraphLayout]:
        """The cards of its nodes, and where everything is drawn."""
        if self._cache is None:
            numbers = self._numbers or {}
            cards = {n.id: card(n, numbers.get(n.id, ()), memory=self._numbers is None) for n in self.nodes}
            layout = placed(self.nodes, self.edges, cards, sideways=self.sideways)
            if self.sideways and layout.width > WIDE:
                self.sideways = False
                layout = placed(self.nodes, self.edges, cards, sideways=False)
            self._cache = cards, layout
        return self._cache

    def layout(self) -> dict[str, tuple[float, float, float, float]]:
        """For each node id its left, its top, its width and its height."""
        return self.drawing[1].boxes

    def to_svg(self) -> str:
        """A picture: one SVG without scripts or anything outside of it, for light and dark backgrounds."""
        return draw(self)

    def to_dot(self) -> str:
        """The graph in Graphviz's language."""
        return exports.to_dot(self)

    def to_dict(self) -> JSONObject:
        """Nodes, edges and layout as plain values, for JSON."""
        nodes = [{**asdict(node), "line": None if node.line is None else node.line._asdict()} for node in self.nodes]
        return {
            "nodes": nodes,
            "edges": [asdict(edge) for edge in self.edges],
            "layout": {name: list(box) for name, box in self.layout().items()},
            **{name: getattr(self, name) for name in _SUMMARY},
        }

    @classmethod
    def from_dict(cls, said: JSONObject) -> Graph:
        """The graph of which ``to_dict()`` made this."""
        nodes = [GraphNode(**{**n, "line": n["line"] and SourceLine(**n["line"])}) for n in said["nodes"]]
        edges = [GraphEdge(**edge) for edge in said["edges"]]
        return cls(nodes, edges, **{name: said[name] for name in _SUMMARY})

    def save(self, path: Any) -> None:
        """Write it to a file: .svg, .dot (or .gv), .txt, by the name's ending.

        Raises:
            ValueError: another ending.
        """
        ways = {
            ".svg": self.to_svg,
            ".dot": self.to_dot,
            ".gv": self.to_dot,
            ".txt": self.__str__,
        }
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending not in ways:
            raise errors.graph_format(path, list(ways))
        text = ways[ending]()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def explain(self, values: Sequence[Value]) -> None:
        """Tell nodes which values of an explanation (of the same names) they are or compute."""
        ids = {value.name: value.id for value in values}
        by_id = {node.id: node for node in self.nodes}
        for node in self.nodes:
            node.value = ids.get(node.label, "") if node.kind == "value" else ""
        for edge in self.edges:
            made = by_id[edge.source]
            if made.kind == "op":
                made.value = made.value or ids.get(edge.value) or by_id[edge.target].value

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return exports.mimebundle({"text/plain": self.__str__, "image/svg+xml": self.to_svg}, include, exclude)


Graph.__module__ = "chainrule.explaining"  # which a dataclass looks up while it is made


def graph_of(
    *tensors: Tensor,
    frame: object = None,
    names: Names | None = None,
    labels: Mapping[object, str] | None = None,
    every: bool = False,
    composites: bool = False,
    limit: int | None = LIMIT,
) -> Graph:
    """The graph that computed one or more tensors.

    Args:
        tensors: tensors, or sequences of them.
        frame: where the variables' names are looked up; the caller's by default.
        names: names that were looked up already.
        labels: what to call values (by edge; constants by the id of their array) that have no name of the user's; "t1",
            "t2" ... by default.
        every: whether intermediate values without a name of the user's are boxes, too.
        composites: whether the operations of one call of the user's are drawn as one, by the call's name.
        limit: from how many nodes on repetitions and chains are folded; None: never.

    Raises:
        TypeError: an argument is not a tensor.
    """
    given = [t for arg in tensors for t in (arg if isinstance(arg, (list, tuple)) else (arg,))]
    for tensor in given:
        if not isinstance(tensor, Tensor):
            raise errors.not_a_tensor("graph", "tensors", tensor)
    names = names or Names(frame)
    most = 0 if limit is None else limit // 3
    while True:
        drawing = Drawing(given, names, labels or {}, every, composites, limit, most)
        if limit is None or not drawing.collapsed or len(drawing.edges) <= 2 * limit or most <= 4:
            break
        most //= 2  # all goes everywhere
    graph = Graph(
        drawing.drawn,
        drawing.edges,
        title=drawing.title,
        operations=len(drawing.tape.ops),
        leaves=len(drawing.tape.leaves),
        saved_bytes=sum(map(saved_bytes, drawing.tape.ops)),
        collapsed=drawing.collapsed,
    )
    graph.text = exports.to_text(graph)
    return graph


__all__ = ["Graph", "GraphEdge", "GraphNode", "graph_of"]
