"""``StepData`` and ``ArrowData``: the records of a backward pass from which rules and structures are computed.

``rules`` and ``structure`` read them; ``steps`` inherits from them.

``Step`` and ``Arrow`` describe the attributes, and add the rules and structures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainrule._src.arrays.types import AnyArray, NumpyArray, Saved
from chainrule._src.explaining.diagnosis.source import SourceLine
from chainrule._src.explaining.sweep import RuleRecord
from chainrule._src.explaining.values import Value, Values
from chainrule._src.rules.descriptions import description
from chainrule._src.rules.primitive import Primitive


class ArrowData:
    """The cotangent that one rule computes for one operand."""

    def __init__(self, step: StepData, position: int, operand: str, value: Value, downstream: NumpyArray) -> None:
        self.step = step
        self.position = position
        self.operand = operand
        self.input = value
        self.downstream = downstream
        self.sign = "="

    @property
    def jacobian_shape(self) -> tuple[int, ...]:
        """The shape of the local Jacobian: ``(*output.shape, *input.shape)``."""
        return (*self.step.output.shape, *self.input.shape)

    @property
    def jacobian_size(self) -> int:
        """The number of elements of the local Jacobian."""
        return math.prod(self.jacobian_shape)


class StepData:
    """One operation of the backward pass."""

    arrows: Sequence[ArrowData]

    def __init__(self, index: int, record: RuleRecord, values: Values) -> None:
        node = record.node
        self.index = index
        self.record = record
        self.all_values = values
        self.op: str = node.prim.name
        self.node_name: str = node.name()
        self.call = ""
        self.doc: str = description(node.prim.doc or "").split("\n")[0]
        self.source_line: SourceLine | None = None
        self.outputs: list[Value] = []
        self.upstreams: list[NumpyArray] = []
        self.output: Value
        self.upstream: Any = None
        self.terms: list[tuple[int, str, NumpyArray]] = []
        self.arrows = []
        self.constants: list[Value] = []
        self.operands: list[AnyArray | None] = []
        self.operand_values: dict[int, Value] = {}
        self.params = {k: v for k, v in node.params.items() if k != "_outputs" and node.prim.kind != "function"}
        self.notes: list[str] = []

    @property
    def prim(self) -> Primitive:
        """The primitive."""
        return self.record.node.prim

    def saved(self) -> Saved:
        """Return the values that the rule reads, as copies if memory allows."""
        copy = self.all_values.copy
        return tuple(tuple(map(copy, v)) if type(v) is tuple else copy(v) for v in self.record.saved)
