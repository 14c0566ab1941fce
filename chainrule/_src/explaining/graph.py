"""``Graph``: the graph of a tensor for display, with the user's variable names, operations, and paths that were cut.

``Tensor.graph()`` and ``Explanation.graph`` call ``graph_of``. Named values, leaves, constants and outputs are boxes; an unnamed
intermediate value is only an arrow with its shape. A long tape is folded first (``folding``).
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
from chainrule._src.explaining.parts import GraphData, GraphEdge, GraphNode
from chainrule._src.explaining.picture import WIDE, Card, CardArray, card_of, draw_graph, lay_out_graph
from chainrule._src.explaining.tape import saved_bytes
from chainrule._src.messages import errors
from chainrule._src.tape.tensor import Tensor

if TYPE_CHECKING:
    from chainrule._src.explaining.values import Value

LIMIT = 60
_SUMMARY = ("title", "operations", "leaves", "saved_bytes", "collapsed", "sideways")
MOST_CARDS = 16  # most values and operations of a graph whose cards show numbers


@dataclass(slots=True)
class Graph(GraphData):
    """The graph returned by ``tensor.graph()``: ``nodes`` and ``edges``, and methods that draw or export them.

    >>> import chainrule as cr
    >>> x = cr.ones(3, requires_grad=True)
    >>> y = cr.exp(x) * 2
    >>> print(y.graph())
    graph of y: 2 operations, 1 leaf, 12 bytes saved for backward
      x   (3,)  leaf
      t1  (3,)  = exp(x)  saves 12 B
      y   (3,)  = mul(t1, 2)
    """

    _numbers: Mapping[str, Sequence[CardArray]] | None = field(default=None, repr=False)
    _cache: tuple[dict[str, Card], GraphLayout] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    @property
    def drawing(self) -> tuple[dict[str, Card], GraphLayout]:
        """The cards of the nodes, and the layout."""
        if self._cache is None:
            numbers = self._numbers or {}
            cards = {n.id: card_of(n, numbers.get(n.id, ()), memory=self._numbers is None) for n in self.nodes}
            layout = lay_out_graph(self.nodes, self.edges, cards, sideways=self.sideways)
            if self.sideways and layout.width > WIDE:
                self.sideways = False
                layout = lay_out_graph(self.nodes, self.edges, cards, sideways=False)
            self._cache = cards, layout
        return self._cache

    def layout(self) -> dict[str, tuple[float, float, float, float]]:
        """Return for each node id its left, top, width and height."""
        return self.drawing[1].boxes

    def to_svg(self) -> str:
        """Return a self-contained SVG without scripts, for light and dark backgrounds."""
        return draw_graph(self, *self.drawing)

    def to_dot(self) -> str:
        """Return the graph in Graphviz's DOT language."""
        return exports.to_dot(self)

    def to_dict(self) -> JSONObject:
        """Return nodes, edges and layout as plain values, for JSON."""
        nodes = [{**asdict(node), "line": None if node.line is None else node.line._asdict()} for node in self.nodes]
        return {
            "nodes": nodes,
            "edges": [asdict(edge) for edge in self.edges],
            "layout": {name: list(box) for name, box in self.layout().items()},
            **{name: getattr(self, name) for name in _SUMMARY},
        }

    @classmethod
    def from_dict(cls, said: JSONObject) -> Graph:
        """Return the graph from the result of its ``to_dict()``."""
        nodes = [GraphNode(**{**n, "line": n["line"] and SourceLine(**n["line"])}) for n in said["nodes"]]
        edges = [GraphEdge(**edge) for edge in said["edges"]]
        return cls(nodes, edges, **{name: said[name] for name in _SUMMARY})

    def save(self, path: Any) -> None:
        """Write the graph to a file; the suffix selects the format: .svg, .dot (or .gv), .txt.

        Raises:
            ValueError: the suffix is unknown.
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
        exports.write_text(ways[ending](), path)

    def explain(self, values: Sequence[Value]) -> None:
        """Store in each node the id of the explanation's value (with the same name) that it is or computes."""
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


Graph.__module__ = "chainrule.explaining"  # set afterwards: the dataclass decorator looks up the real module


def graph_of(
    *tensors: Tensor,
    frame: object = None,
    names: Names | None = None,
    labels: Mapping[object, str] | None = None,
    every: bool = False,
    composites: bool = False,
    limit: int | None = LIMIT,
) -> Graph:
    """Return the graph that computed one or more tensors.

    Args:
        tensors: tensors, or sequences of them.
        frame: the frame whose variables are searched for names; the caller's by default.
        names: names, if they have been looked up already.
        labels: names for values that no variable holds, by edge (constants by the id of their array); "t1", "t2" ... by
            default.
        every: whether unnamed intermediate values are boxes, too.
        composites: whether the operations of one call are drawn as one node with the call's name.
        limit: number of nodes above which repetitions and chains are folded; None: never.

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
        most //= 2  # too many edges between the folds
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
