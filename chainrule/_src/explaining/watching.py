"""Record the values that a function computes while ``explain(f)`` runs it, and the names of its results.

``entry`` makes a ``FunctionWatch``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.watch import Watch
from chainrule._src.arrays.types import Params
from chainrule._src.explaining.calls import CodePlace, frames_of, target_of
from chainrule._src.messages.source_locations import program_frames
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.node import Edge, Node
from chainrule._src.tape.tensor import Tensor


class FunctionWatch(Watch):
    """Records the value and the frames of each node that a function records."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}
        self.stacks: dict[Node, tuple[CodePlace, ...]] = {}  # the program's frames at each node, outermost first
        self.first = sys._getframe(1)
        self.out: Any = None

    def forward(self, prim: Primitive, datas: object, params: Params) -> Any:
        self.out = super().forward(prim, datas, params)
        return self.out

    def recorded(self, node: Node) -> None:
        super().recorded(node)
        if type(self.out) is not tuple and "_outputs" not in node.params:
            self.known[node] = np.asarray(self.out)
        self.stacks[node] = tuple((f.f_code, f.f_lasti) for f in program_frames(self.first))[::-1]

    def name(self, called: dict[Edge, str], results: Sequence[Tensor]) -> None:
        """Name results after the variables they are assigned to, else y."""
        for i, tensor in enumerate(results):
            if tensor._edge is not None and tensor._edge not in called:
                kept, many = target_of(frames_of(tensor._edge, self.stacks)), len(results) > 1
                tries = (kept, f"y{i}", f"out{i}") if many else (kept, "y", "out")
                called[tensor._edge] = next(n for n in tries if n and (n not in called.values() or n == tries[-1]))
