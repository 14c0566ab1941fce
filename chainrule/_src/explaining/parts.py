"""What graphs are made of: values and operations, and the arrows between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from chainrule._src.explaining.diagnosis.source import SourceLine


@dataclass(slots=True)
class GraphNode:
    """A value or an operation.

    Attributes:
        id: "n0", "n1" ... in an order in which arrows only go forward.
        kind: "value" or "op".
        label: the name of the value, or of the operation (its row in the table).
        shape, dtype: of a value, or of an operation's result, where known.
        saved_bytes: how much memory an operation keeps for the backward pass.
        line: where the program made it, where that can be found.
        requires_grad: whether gradients flow to it.
        role: "output", "leaf", "intermediate" or "constant" for values; "operation" or "fold" (several drawn as one).
        detail: parameters and plain numbers of an operation, or what a fold holds.
        count: how many a fold stands for.
        why: why no gradient flows to a constant that was cut off from something.
        numbers: the operands of an operation that are plain numbers, by their place.
        value: the id of the value that it is or computes, in the explanation whose graph it is.
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
        kind: "flow", or "cut" where no gradient comes back along it.
        why: the reason of a cut.
        label: the name and shape of a value that has no box; "left" and "right" where two arrows join the same nodes; of a
            cut its reason, in short.
        operand: which operand of the operation at its target it is.
        value: the name of the value that has no box.
    """

    source: str
    target: str
    kind: str = "flow"
    why: str = ""
    label: str = ""
    operand: int = 0
    value: str = ""
