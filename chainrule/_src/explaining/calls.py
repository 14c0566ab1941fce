"""Which operations belong to one call of the user's: ``outer(x, x)`` is two of them, ``conv2d(x, w, b)`` three.

Every node notes the instruction of the user's program that it was recorded at. Neighbours that share one are the parts of a
call, which has a name in the source.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
from collections.abc import Sequence
from types import CodeType
from typing import Any, NamedTuple

from chainrule._src.messages.places import Where
from chainrule._src.messages.reading import called, expression_of


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
        tree = _expression(code, at) if len(ops) > 1 else None
        name = called(tree) if isinstance(tree, ast.Call) else ""
        each = _period(ops) if name else 1
        name = name if each > 1 else ""
        calls += [Call(i, i + each, name) for i in range(start, start + len(ops), each)]
        start += len(ops)
    return calls


def _period(ops: Sequence[str]) -> int:
    """After how many operations they repeat: a call in a loop is at one place each time."""
    n = len(ops)
    return next(p for p in range(1, n + 1) if n % p == 0 and list(ops[:p]) * (n // p) == list(ops))


def operands_at(node: Any) -> list[str]:
    """The names of the operands of an operator, or of a function's arguments; '' for those that are no variables."""
    tree, operands = _expression(node.code, node.lasti), []
    if isinstance(tree, ast.BinOp):
        operands = [tree.left, tree.right]
    elif isinstance(tree, ast.Call):
        operands = tree.args
    return [operand.id if isinstance(operand, ast.Name) else "" for operand in operands]


def named_arguments(function: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """Arguments with the names of the parameters they are for."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return [*((f"x{i}", a) for i, a in enumerate(args)), *kwargs.items()]
    names: list[str] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}{i}" for i in range(len(value))]
        elif kind is not inspect.Parameter.VAR_KEYWORD and name not in kwargs:
            names.append(name)
    return [*zip(names, args), *kwargs.items()]


@functools.cache
def _expression(code: CodeType | None, at: int) -> ast.expr | None:
    return expression_of(Where(code, at).expression)
