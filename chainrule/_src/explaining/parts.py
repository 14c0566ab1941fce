"""Nodes (values and operations) and edges of a ``Graph``. ``drawing`` makes them."""

from __future__ import annotations

from dataclasses import dataclass, field

from chainrule._src.explaining.diagnosis.source import SourceLine


@dataclass(slots=True)
class GraphNode:
    """A value or an operation.

    Attributes:
        id: "n0", "n1" ... in an order in which arrows go forward.
        kind: "value" or "op".
        label: the name of the value, or of the operation's primitive.
        shape, dtype: of a value, or of an operation's result, if known.
        saved_bytes: memory that an operation saves for the backward pass.
        line: the line of the program that made it, if known.
        requires_grad: whether gradients flow to it.
        role: "output", "leaf", "intermediate" or "constant" for values; "operation" or "fold" (several drawn as one).
        detail: parameters and plain numbers of an operation, or the contents of a fold.
        count: number of nodes in a fold.
        why: the reason why no gradient flows through a constant whose path was cut.
        numbers: the operands of an operation that are plain numbers, by their index.
        value: the id of the value that it is or computes, in the explanation that the graph belongs to.
    """

    id: str
    kind: str
    label: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    saved_bytes: int = 0
    line: SourceLine | None = None
    requires_grad: bool = True
    role: str = "operation"
    detail: str = ""
    count: int = 1
    why: str = ""
    numbers: dict[int, str] = field(default_factory=dict)
    value: str = ""


@dataclass(slots=True)
class GraphEdge:
    """An arrow in the direction of the computation.

    Attributes:
        source, target: ids of nodes.
        kind: "flow", or "cut" if no gradient flows back along it.
        why: the reason of a cut.
        label: the name and shape of a value without a box; "left" and "right" if two arrows join the same nodes; for a cut,
            a short reason.
        operand: the index of the operand of the operation at its target.
        value: the name of a value without a box.
    """

    source: str
    target: str
    kind: str = "flow"
    why: str = ""
    label: str = ""
    operand: int = 0
    value: str = ""


@dataclass(slots=True)
class GraphData:
    """The nodes and edges of a graph, in an order in which arrows go forward; ``Graph`` adds the methods that draw them.

    Attributes:
        title: the names of the tensors that the graph computed.
        operations, leaves: their numbers on the tape, before any folding.
        saved_bytes: bytes that all operations save for the backward pass.
        collapsed: whether operations are folded.
        text: the graph as text.
        sideways: whether arrows go from left to right, not from top to bottom.
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
