"""The graph behind a tensor, to look at: values by the user's names, operations, and paths that were cut.

Values with a name, leaves, constants and the outputs are boxes; an intermediate value without a name is only an arrow with its
shape. A long tape is folded (``folding``) before anything is drawn.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any

from chainrule import errors
from chainrule.core.tensor import Tensor
from chainrule.errors.source import Names
from chainrule.explaining import exports
from chainrule.explaining.drawing import Drawing
from chainrule.explaining.layout import Layout, lay_out
from chainrule.explaining.parts import GraphEdge, GraphNode
from chainrule.explaining.svg import drawn, size_of
from chainrule.explaining.tape import saved_bytes

LIMIT = 60


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
    _laid_out: Layout | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    @property
    def layout_of(self) -> Layout:
        """Where everything is drawn."""
        if self._laid_out is None:
            sizes = {node.id: size_of(node) for node in self.nodes}
            self._laid_out = lay_out(sizes, [(e.source, e.target, exports.short(e.label, 32)) for e in self.edges])
        return self._laid_out

    def layout(self) -> dict[str, tuple[float, float, float, float]]:
        """For each node id its left, its top, its width and its height."""
        return self.layout_of.boxes

    def to_svg(self) -> str:
        """A picture: one SVG without scripts or anything outside of it, for light and dark backgrounds."""
        return drawn(self)

    def to_dot(self) -> str:
        """The graph in Graphviz's language."""
        return exports.to_dot(self)

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        return exports.to_mermaid(self)

    def to_dict(self) -> dict[str, Any]:
        """Nodes, edges and layout as plain values, for JSON."""
        nodes = [{**asdict(node), "line": None if node.line is None else node.line._asdict()} for node in self.nodes]
        return {
            "nodes": nodes,
            "edges": [asdict(edge) for edge in self.edges],
            "layout": {name: list(box) for name, box in self.layout().items()},
            "collapsed": self.collapsed,
        }

    def save(self, path: Any) -> None:
        """Write it to a file: .svg, .dot (or .gv), .mmd (or .mermaid), .txt, by the name's ending.

        Raises:
            ValueError: another ending.
        """
        ways = {
            ".svg": self.to_svg,
            ".dot": self.to_dot,
            ".gv": self.to_dot,
            ".mmd": self.to_mermaid,
            ".mermaid": self.to_mermaid,
            ".txt": self.__str__,
        }
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending not in ways:
            raise errors.graph_format(path, list(ways))
        text = ways[ending]()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/plain": str(self), "image/svg+xml": self.to_svg()}
        return {k: v for k, v in bundle.items() if (not include or k in include) and (not exclude or k not in exclude)}


def graph_of(
    *tensors: Any,
    frame: Any = None,
    names: Names | None = None,
    labels: dict[Any, str] | None = None,
    limit: int | None = LIMIT,
) -> Graph:
    """The graph that computed one or more tensors.

    Args:
        tensors: tensors, or sequences of them.
        frame: where the variables' names are looked up; the caller's by default.
        names: names that were looked up already.
        labels: what to call values (by edge) that have no name of the user's; "t1", "t2" ... by default.
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
    drawing = Drawing(given, names, labels or {}, limit, most)
    while (
        limit is not None and drawing.collapsed and len(drawing.edges) > 2 * limit and most > 4
    ):  # all goes everywhere
        most //= 2
        drawing = Drawing(given, names, labels or {}, limit, most)
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
