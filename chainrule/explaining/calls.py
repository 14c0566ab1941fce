"""Which operations belong to one call of the user's: ``outer(x, x)`` is two of them, ``conv2d(x, w, b)`` three.

Every node notes the instruction of the user's program that it was recorded at. Neighbours that share one are the parts of a
call, which has a name in the source.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from collections.abc import Sequence
from types import CodeType
from typing import Any, NamedTuple


class Call(NamedTuple):
    """Operations ``start`` to ``stop``; ``name`` is that of the function where they are the parts of a call, else ''."""

    start: int
    stop: int
    name: str = ""


def calls_of(nodes: Sequence[Any]) -> list[Call]:
    """Divide nodes, in the order they ran, into calls."""
    calls, start = [], 0
    for (code, at), group in itertools.groupby(nodes, key=lambda node: (node.code, node.lasti)):
        ops = [node.prim.name for node in group]
        name = called_at(code, at) if code is not None and len(ops) > 1 else ""
        each = _period(ops) if name else 1
        name = name if each > 1 else ""
        calls += [Call(i, i + each, name) for i in range(start, start + len(ops), each)]
        start += len(ops)
    return calls


def _period(ops: Sequence[str]) -> int:
    """After how many operations they repeat: a call in a loop is at one place each time."""
    n = len(ops)
    return next(p for p in range(1, n + 1) if n % p == 0 and list(ops[:p]) * (n // p) == list(ops))


def called_at(code: CodeType, at: int) -> str:
    """The name of the function that an instruction calls, as the source has it; '' where it is no call or not known."""
    tree = expression_at(code, at)
    function = tree.func if isinstance(tree, ast.Call) else None
    return getattr(function, "attr", "") or getattr(function, "id", "")


def operands_at(code: CodeType, at: int) -> list[str]:
    """The names of the operands of an operator, or of a function's arguments; '' for those that are no variables."""
    tree, operands = expression_at(code, at), []
    if isinstance(tree, ast.BinOp):
        operands = [tree.left, tree.right]
    elif isinstance(tree, ast.Call):
        operands = tree.args
    return [operand.id if isinstance(operand, ast.Name) else "" for operand in operands]


@functools.cache
def expression_at(code: CodeType, at: int) -> ast.expr | None:
    """The expression that an instruction computes; None where there is no source."""
    line, end, first, last = next(itertools.islice(code.co_positions(), at // 2, None), (None,) * 4)
    if line is None or end is None or first is None or last is None:
        return None
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(line, end + 1)]
    lines[-1] = lines[-1][:last]
    lines[0] = lines[0][first:]
    try:
        return ast.parse(b"".join(lines).decode(errors="replace").strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
