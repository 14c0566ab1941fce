"""``Tape``: the tape of some tensors as lists: its operations in execution order, and the shapes of their results.

``drawing`` reads it. A node does not store the shape of its result. The shape comes from the tensor if it is still alive, from saved
values, or from the shapes that rules store to undo broadcasting. The remaining shapes are computed on zero-stride arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.explaining.diagnosis.names import Names
from chainrule._src.explaining.values import compute_value, saved_operands, saved_values
from chainrule._src.tape.engine import reachable
from chainrule._src.tape.node import Edge, Leaf, Node, Output
from chainrule._src.tape.tensor import Tensor

About = tuple[tuple[int, ...], Any]
_ENTRIES = 10**6


class Tape:
    """The nodes and leaves that some tensors depend on.

    Attributes:
        roots: the edges of the tensors.
        ops: the nodes, oldest first; ``index`` maps each to its position.
        leaves: the leaves.
        about: shape and dtype of the value of each edge, if known.
        readers: for each edge the positions of the operations that read it.
    """

    def __init__(self, tensors: Sequence[Tensor], names: Names) -> None:
        self.roots = [tensor._edge for tensor in tensors if tensor._edge is not None]
        order = reachable(self.roots)
        self.ops: list[Node] = [edge for edge in order if isinstance(edge, Node)]
        self.index: dict[Edge, int] = {node: i for i, node in enumerate(self.ops)}
        self.leaves: list[Leaf] = [edge for edge in order if type(edge) is Leaf]
        self.values = [edge for edge in order if not isinstance(edge, Node) or "_outputs" not in edge.params]
        self.readers: dict[object, list[int]] = {}
        for i, node in enumerate(self.ops):
            for edge in node.edges:
                if edge is not None:
                    self.readers.setdefault(edge, []).append(i)
        self.about: dict[object, About] = {}
        for tensor in tensors:
            self._note_shape(tensor._edge, tensor._raw)
        for found in names.found:
            self._note_shape(getattr(found.thing, "_edge", None), getattr(found.thing, "_raw", None))
        for leaf in self.leaves:
            self._note_shape(leaf, leaf.data)
        self._read_nodes()
        self._compute()

    def _note_shape(self, edge: object, data: Any) -> None:
        shape = getattr(data, "shape", None)
        if edge is not None and shape is not None:
            self.about[edge] = (tuple(shape), data.dtype)

    def producer(self, edge: Edge) -> int | None:
        """Return the position of the operation that computed the value of an edge; None for a leaf."""
        node = edge.node if type(edge) is Output else edge
        return self.index.get(node)

    def _read_nodes(self) -> None:
        """Collect shapes from nodes, newest first: an elementwise operation's operands have the shape of its result."""
        about = self.about
        for node in reversed(self.ops):
            if "_outputs" in node.params:
                for i, made in enumerate(node.params["_outputs"]):
                    ref = getattr(node, "outs", {}).get(i)
                    if made and ref is not None and ref() is not None:  # a custom Function may lack the shape
                        about[ref()] = (tuple(made[0]), made[1])
            for edge, value in saved_values(node, node.saved):
                if edge is node or edge not in about:
                    self._note_shape(edge, value)
            in_avals = node.in_avals
            if in_avals is not None:
                for edge, aval in zip(node.edges, in_avals):
                    if edge is not None and edge not in about and len(aval) == 2:
                        about[edge] = (tuple(aval[0]), aval[1])
            elif node.prim.kind == "elementwise" and node in about:
                for edge in node.edges:
                    if edge is not None:
                        about.setdefault(edge, about[node])

    def _compute(self) -> None:
        about = self.about
        for node in self.ops:
            if node in about or "_outputs" in node.params:
                continue
            known = [about.get(edge) for edge in node.edges if edge is not None]
            if node.prim.kind == "elementwise" and node.in_avals is None and known and known[0] is not None:
                about[node] = known[0]
                continue
            value = compute_value(node, self._stand_ins(node))
            if value is not None:
                self._note_shape(node, value)

    def _stand_ins(self, node: Node) -> list[Any]:
        """Return zero-stride zeros with the operands' shapes; None for unknown shapes."""
        if node.prim.kind == "function" or node.prim.variadic:
            return [None]
        constants, operands = dict(constants_of(node)), []
        for i, edge in enumerate(node.edges):
            about = self.about.get(edge) if edge is not None else None
            if about is None and node.in_avals is not None and len(node.in_avals[i]) == 2:
                about = node.in_avals[i]
            stand_in = constants.get(i)
            if about is not None:
                small = np.prod(about[0], dtype=float) <= _ENTRIES
                stand_in = np.broadcast_to(np.zeros((), about[1]), about[0]) if small else None
            operands.append(stand_in)
        return operands


def saved_bytes(node: Node) -> int:
    """Return the number of bytes that a node saves. A view counts with its own size, not its base's."""
    total = 0
    for value in node.saved:
        for part in value if type(value) in (tuple, list) else (value,):
            size = getattr(part, "nbytes", None)
            if size is None and hasattr(part, "handle"):  # packed by a hook
                size = int(np.prod(part.shape, dtype=np.int64)) * np.dtype(part.dtype).itemsize
            total += int(size or 0)
    return total


def constants_of(node: Node) -> list[tuple[int, Any]]:
    """Return the positions of operands without gradient, each with its value, or None if the node has not saved it."""
    if node.prim.kind == "function":
        return []
    kept = saved_operands(node, node.saved)
    return [(i, kept.get(i)) for i, edge in enumerate(node.edges) if edge is None]
