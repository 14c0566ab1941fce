"""Seeing a function run: the value of everything it computes, the line of each operation, and what it called results."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core.watch import Watch
from chainrule.errors.source import line_at


class Seen(Watch):
    """Notes what a function that is explained computes."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}
        self.lines: dict[Any, str] = {}
        self.out: Any = None

    def forward(self, prim: Any, datas: Any, params: dict[str, Any]) -> Any:
        self.out = super().forward(prim, datas, params)
        return self.out

    def recorded(self, node: Any) -> None:
        super().recorded(node)
        if type(self.out) is not tuple and "_outputs" not in node.params:
            self.known[node] = np.asarray(self.out)
        frame = errors.calling_frame()
        if frame is not None:
            line = line_at(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
            node.metadata.setdefault("line", line)
            self.lines[node] = line.text

    def name(self, called: dict[Any, str], results: Sequence[Any]) -> None:
        """Name results after what the lines assign them to; what is returned without a name is y."""
        last: dict[str, Any] = {}
        for node, text in self.lines.items():
            target = _target(text)
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


def _target(text: str) -> str:
    """The one variable that a line assigns an expression to."""
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return ""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return ""
