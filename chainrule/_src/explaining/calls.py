"""Group operations by the user's call: ``outer(x, x)`` records two operations, ``conv2d(x, w, b)`` three.

Every node stores the instruction of the user's program at which it was recorded. Neighbouring nodes with the same instruction
belong to one call, whose name is read from the source. ``RecordedPass`` and ``Drawing`` call ``calls_of``.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.explaining.diagnosis.source import result_at
from chainrule._src.messages.reading import called, expression_of
from chainrule._src.messages.source_locations import Where
from chainrule._src.tape.node import Edge, Leaf, Node


class CallSpan(NamedTuple):
    """Operations ``start`` to ``stop``; ``name`` is the called function if they are the parts of one call, else ''."""

    start: int
    stop: int
    name: str = ""


def calls_of(nodes: Sequence[Any]) -> list[CallSpan]:
    """Divide nodes, in execution order, into calls."""
    calls, start = [], 0
    for (code, at), group in itertools.groupby(nodes, key=lambda node: (node.code, node.lasti)):
        ops = [node.prim.name for node in group]
        tree = _expression(code, at) if len(ops) > 1 else None
        name = called(tree) if isinstance(tree, ast.Call) else ""
        each = _period(ops) if name else 1
        name = name if each > 1 else ""
        calls += [CallSpan(i, i + each, name) for i in range(start, start + len(ops), each)]
        start += len(ops)
    return calls


def assigned_names(
    nodes: Sequence[Node], leaves: Sequence[Leaf], taken: Mapping[Edge, str], stacks: Mapping[Any, Any]
) -> dict[Edge, tuple[str, bool]]:
    """Name values that no variable holds any more by the assignments that made them.

    Return for each edge its name, and whether the variable was assigned only once. If a variable was assigned several
    values, the last one gets the name, unless it is in use, and the others get numbers.

    Args:
        nodes: in execution order.
        leaves: of the graph.
        taken: the names of values that variables hold.
        stacks: the frames of nodes, outermost first, if more than one is known.
    """
    found: dict[str, list[Edge]] = {}
    for frames, group in itertools.groupby(nodes, key=lambda node: frames_of(node, stacks)):
        target = target_of(frames)
        if target:
            run = list(group)
            each = _period([node.prim.name for node in run])
            found.setdefault(target, []).extend(run[each - 1 :: each])
    for leaf in leaves:
        target = target_of(frames_of(leaf, stacks)) if leaf not in taken else ""
        if target:
            found.setdefault(target, []).append(leaf)
    names, used = dict[Edge, tuple[str, bool]](), set(taken.values())
    for target, edges in found.items():
        once = len(edges) == 1
        edges = sorted((edge for edge in edges if edge not in taken), key=lambda edge: edge.seq)
        if edges and target not in used:
            names[edges.pop()] = target, once
        free = (
            (name, False) for i in itertools.count(1) if (name := f"{target}_{i}") not in used and name not in found
        )
        names.update(zip(edges, free))
    return names


CodePlace = tuple[CodeType | None, int]


def frames_of(node: Node | Leaf, stacks: Mapping[Any, Any]) -> Sequence[CodePlace]:
    """Return the frames of the program at a node, outermost first; at least the innermost one."""
    return stacks.get(node) or ((node.code, node.lasti),)


def target_of(frames: Sequence[CodePlace]) -> str:
    """Return the variable that the innermost frame's value is assigned to, also through functions that return the value."""
    for code, at in reversed(frames):
        target = _target(code, at)
        if target != "":
            return target or ""
    return ""


@functools.cache
def _target(code: CodeType | None, at: int) -> str | None:
    return None if code is None else result_at(Where(code, at))


def _period(ops: Sequence[str]) -> int:
    """Return the period of the operations: a call in a loop has the same location in each iteration."""
    n = len(ops)
    return next(p for p in range(1, n + 1) if n % p == 0 and list(ops[:p]) * (n // p) == list(ops))


def operands_at(node: Node) -> list[str]:
    """Return the names of an operator's operands or a function's arguments; '' for operands that are not variables."""
    tree, operands = _expression(node.code, node.lasti), []
    if isinstance(tree, ast.BinOp):
        operands = [tree.left, tree.right]
    elif isinstance(tree, ast.Call):
        operands = tree.args
    return [operand.id if isinstance(operand, ast.Name) else "" for operand in operands]


def named_arguments(function: AnyFunction, args: tuple[object, ...], kwargs: Params) -> list[tuple[str, object]]:
    """Return the arguments with the names of their parameters."""
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
