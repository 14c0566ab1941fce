"""Which operations belong to one call of the user's: ``outer(x, x)`` is two of them, ``conv2d(x, w, b)`` three.

Every node notes the instruction of the user's program that it was recorded at. Neighbours that share one are the parts of a
call, which has a name in the source.
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
from chainrule._src.messages.places import Where
from chainrule._src.messages.reading import called, expression_of
from chainrule._src.tape.node import Edge, Leaf, Node


class CallSpan(NamedTuple):
    """Operations ``start`` to ``stop``; ``name`` is that of the function where they are the parts of a call, else ''."""

    start: int
    stop: int
    name: str = ""


def calls_of(nodes: Sequence[Any]) -> list[CallSpan]:
    """Divide nodes, in the order they ran, into calls."""
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


def remembered(
    nodes: Sequence[Node], leaves: Sequence[Leaf], taken: Mapping[Edge, str], stacks: Mapping[Any, Any]
) -> dict[Edge, tuple[str, bool]]:
    """Names of values that no variable holds any more: those that their statements gave them; and if only one value had it.

    Where a variable was given several of the values they are numbered, all but the last, which has the name if nothing else has.

    Args:
        nodes: in the order they ran.
        leaves: of the graph.
        taken: the names of values that variables hold.
        stacks: the frames of nodes, outermost first, where more than one is known.
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
    """The frames of the program at a node, outermost first; the innermost, at least."""
    return stacks.get(node) or ((node.code, node.lasti),)


def target_of(frames: Sequence[CodePlace]) -> str:
    """The variable that was given what the innermost frame computes, through functions that return it."""
    for code, at in reversed(frames):
        target = _target(code, at)
        if target != "":
            return target or ""
    return ""


@functools.cache
def _target(code: CodeType | None, at: int) -> str | None:
    return None if code is None else result_at(Where(code, at))


def _period(ops: Sequence[str]) -> int:
    """After how many operations they repeat: a call in a loop is at one place each time."""
    n = len(ops)
    return next(p for p in range(1, n + 1) if n % p == 0 and list(ops[:p]) * (n // p) == list(ops))


def operands_at(node: Node) -> list[str]:
    """The names of the operands of an operator, or of a function's arguments; '' for those that are no variables."""
    tree, operands = _expression(node.code, node.lasti), []
    if isinstance(tree, ast.BinOp):
        operands = [tree.left, tree.right]
    elif isinstance(tree, ast.Call):
        operands = tree.args
    return [operand.id if isinstance(operand, ast.Name) else "" for operand in operands]


def named_arguments(function: AnyFunction, args: tuple[object, ...], kwargs: Params) -> list[tuple[str, object]]:
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
