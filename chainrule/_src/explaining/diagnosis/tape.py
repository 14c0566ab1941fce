"""Describe the tape for messages: operations with their lines, the leaves of a value, and cuts of its history.

``diagnosis/backward.py`` and ``why`` call these functions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from chainrule._src.explaining.diagnosis.names import NamedArray, Names, place_of
from chainrule._src.explaining.diagnosis.source import SourceLine, append_calls, line_of, rebinding_at
from chainrule._src.messages.message_parts import shape_of
from chainrule._src.messages.reading import expression, names_in
from chainrule._src.messages.source_locations import bracketed
from chainrule._src.tape.node import Edge, Leaf, Node, Output
from chainrule._src.tape.tensor import Tensor

_NEAR = 2000  # most nodes of a graph that are searched for a message


def op_at(node: Node) -> str:
    """Return an operation and its line: ``exp (t.py:3)``."""
    return f"{node.prim.name}{bracketed(place_of(node))}"


def user_name_of(thing: object) -> str:
    """Return the user's name of a tensor, of the value at an edge, or of an array; '' if it has none."""
    return Names().of(thing) or ""


def tensor_text(tensor: Tensor, name: str) -> str:
    """Return a tensor and the operation that made it: ``c = mul (t.py:4)``."""
    node = getattr(tensor, "grad_fn", None)
    return name if node is None else f"{name} = {op_at(node)}"


def nearest_edges(edge: Edge) -> Iterator[Edge]:
    """Yield the edges that an edge depends on, nearest first, up to about ``_NEAR``."""
    seen, found = {edge}, [edge]
    for item in found:
        yield item
        if len(found) > _NEAR:
            return
        for below in item.edges:
            if below is not None and below not in seen:
                seen.add(below)
                found.append(below)


def leaf_tensors(edge: Edge) -> list[Tensor]:
    """Return the leaf tensors, still alive, that an edge depends on."""
    tensors = [item.tensor() for item in nearest_edges(edge) if type(item) is Leaf]
    return [tensor for tensor in tensors if tensor is not None]


def leaf_names(edge: Edge) -> list[str]:
    """Return the names of the leaves that an edge depends on."""
    names = Names()
    return sorted({names.of(leaf) or "" for leaf in leaf_tensors(edge)} - {""})


def operation_chain(edge: Edge) -> str:
    """Return the chain of operations behind an edge, up to the first branch: ``sum ← mul ← a``."""
    words: list[str] = []
    while type(edge) is not Leaf:
        node = edge.node if isinstance(edge, Output) else edge
        words.append((user_name_of(edge) if words else "") or node.prim.name)
        below = [e for e in node.edges if e is not None]
        if len(below) != 1 or len(words) > 5:
            return " ← ".join([*words, ", ".join(leaf_names(edge)) or "…"])
        (edge,) = below
    return " ← ".join([*words, user_name_of(edge) or "a leaf without a name"])


def of_shape(edge: Edge, shape: tuple[int, ...]) -> str:
    """Return the name of a leaf with this shape that an edge depends on, or ''."""
    return next((user_name_of(leaf) for leaf in leaf_tensors(edge) if shape_of(leaf) == shape), "")


class Rebinding(NamedTuple):
    """A variable that held a leaf and was rebound to a value computed from it: the line, and the line that made the leaf."""

    line: SourceLine
    leaf: SourceLine | None


def rebinding_of(tensor: Tensor, name: str, names: Names) -> Rebinding | None:
    """Return the rebinding if ``x = x.to(...)`` gave a leaf's name to a value computed from it; else None."""
    edge, cut = tensor._edge, tensor._cut
    line = rebinding_at(place_of(tensor) or (None if cut is None else cut.where), name)
    if line is None:
        return None
    if edge is None:
        before = names.find(tensor)
        made = None if before is None else names.assignment(before, line.line)
        return Rebinding(line, None if made is None else made.line)
    for leaf in _unnamed(edge, names):
        return Rebinding(line, line_of(place_of(leaf)))
    return None


def _unnamed(edge: Node, names: Names) -> Iterator[Leaf]:
    """Yield the leaves behind an edge that no variable holds, through unnamed values only."""
    seen, stack = set(), list(edge.edges)
    while stack:
        below = stack.pop()
        if below is None or below in seen or names.of(below) is not None:
            continue
        if type(below) is Leaf:
            yield below
        seen.add(below)
        stack.extend(below.edges)


# -- values that were never recorded --------------------------------------------------------------------------------------


class Ancestor(NamedTuple):
    """A value that another value was computed from: the variable, the assigned expression, and its line."""

    found: NamedArray
    value: ast.expr
    line: SourceLine


def source_assignments(tensor: Tensor) -> Iterator[Ancestor]:
    """Yield the assignments that a tensor's value comes from, nearest first, following the names in them."""
    names = Names()
    known = {found.name: found for found in reversed(names.found)}
    first = names.find(tensor)
    read = names_in(expression())
    waiting = [first] if first is not None else [found for found in names.found if found.name in read]
    seen = set()
    while waiting:
        found = waiting.pop(0)
        one = names.assignment(found) if found.name not in seen else None
        seen.add(found.name)
        if one is not None:
            yield Ancestor(found, one.value, one.line)
            read = names_in(one.value)
            waiting += [
                known.get(name) or NamedArray(name, None, found.scope)
                for name in read
                if name in known or name.isidentifier()
            ]


_NUMBERS = {"item", "tolist", "numpy", "asarray", "array", "float", "int"}


def left_graph(tensor: Tensor) -> str:
    """Return the expression that converted a tensor's history to plain numbers (``x.sum().item()``) with its line, or ''."""
    for origin in source_assignments(tensor):
        name = origin.found.name
        for value, line in [(origin.value, origin.line), *append_calls(origin.found.scope, name)]:
            number = _number_in(value)
            if number:
                return f"`{number}` ({line})"
    return ""


def _number_in(value: ast.AST) -> str:
    """Return the part of an expression that converts a tensor to a plain number or array; '' if there is none."""
    for item in ast.walk(value):
        if isinstance(item, ast.Call) and _gives_numbers(item) and names_in(item):
            return ast.unparse(item)
    return ""


def _gives_numbers(call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute):
        return func.attr in _NUMBERS or (isinstance(func.value, ast.Name) and func.value.id == "math")
    return isinstance(func, ast.Name) and func.id in _NUMBERS


def used_data(tensor: Tensor) -> str:
    """Return the line on which a tensor's history used ``.data``: `` in `y = x.data * 2` (t.py:3)``; '' if unknown."""
    for origin in source_assignments(tensor):
        if any(isinstance(item, ast.Attribute) and item.attr == "data" for item in ast.walk(origin.value)):
            text = origin.line.text.split("  #")[0].strip()
            return f" in `{text}` ({origin.line})" if len(text) <= 70 else f" in {origin.line}"
    return ""


def unmarked_variable(tensor: Tensor) -> tuple[str, SourceLine] | None:
    """Return the variable at the start of a tensor's history, which could require grad, and its line."""
    last = None
    for origin in source_assignments(tensor):
        thing = origin.found.thing
        if isinstance(thing, Tensor) and thing is not tensor and thing._raw.dtype.kind in "fc":
            last = (origin.found.name, origin.line)
    return last
