"""Seeing a function run: the value of everything it computes, and what it called results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.watch import Watch
from chainrule._src.explaining.diagnosis.names import place_of
from chainrule._src.explaining.diagnosis.source import assigned_at


class Seen(Watch):
    """Notes what a function that is explained computes."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}
        self.nodes: list[Any] = []
        self.out: Any = None

    def forward(self, prim: Any, datas: Any, params: dict[str, Any]) -> Any:
        self.out = super().forward(prim, datas, params)
        return self.out

    def recorded(self, node: Any) -> None:
        super().recorded(node)
        if type(self.out) is not tuple and "_outputs" not in node.params:
            self.known[node] = np.asarray(self.out)
        self.nodes.append(node)

    def name(self, called: dict[Any, str], results: Sequence[Any]) -> None:
        """Name results after what the lines assign them to; what is returned without a name is y."""
        last: dict[str, Any] = {}
        for node in self.nodes:
            target = assigned_at(place_of(node))
            if target:
                last[target] = node
        for target, node in last.items():
            if target not in called.values():
                called.setdefault(node, target)
        for i, tensor in enumerate(results):
            if tensor._edge is not None and tensor._edge not in called:
                name = "y" if len(results) == 1 else f"y{i}"
                called[tensor._edge] = (
                    name if name not in called.values() else "out" if len(results) == 1 else f"out{i}"
                )
