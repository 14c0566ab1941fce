"""What messages say of the tape: operations with their places, the leaves behind a value, and how it came to have none."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from chainrule._src.explaining.diagnosis.names import NamedArray, Names, place_of
from chainrule._src.explaining.diagnosis.source import SourceLine, appended, line_of, rebinding
from chainrule._src.messages.places import bracketed
from chainrule._src.messages.reading import expression, names_in
from chainrule._src.messages.words import shape_of
from chainrule._src.tape.node import Edge, Leaf, Node, Output
from chainrule._src.tape.tensor import Tensor

_NEAR = 2000  # as many nodes of a graph are looked at for a message


def op_at(node: Node) -> str:
    """An operation and its line: ``exp (t.py:3)``."""
    return f"{node.prim.name}{bracketed(place_of(node))}"


def named(thing: object) -> str:
    """The user's name of a tensor, of the value at an edge, or of an array; '' if it has none."""
    return Names().of(thing) or ""


def described(tensor: Tensor, name: str) -> str:
    """A tensor and what made it: ``c = mul (t.py:4)``."""
    node = getattr(tensor, "grad_fn", None)
    return name if node is None else f"{name} = {op_at(node)}"


def near(edge: Edge) -> Iterator[Edge]:
    """What an edge leads to, nearest first, as far as one looks for a message."""
    seen, found = {edge}, [edge]
    for item in found:
        yield item
        if len(found) > _NEAR:
            return
        for below in item.edges:
            if below is not None and below not in seen:
                seen.add(below)
                found.append(below)


def leaves(edge: Edge) -> list[Tensor]:
    """The leaf tensors, still alive, that an edge leads to."""
    tensors = [item.tensor() for item in near(edge) if type(item) is Leaf]
    return [tensor for tensor in tensors if tensor is not None]


def leaf_names(edge: Edge) -> list[str]:
    """The names of the leaves that an edge leads to."""
    names = Names()
    return sorted({names.of(leaf) or "" for leaf in leaves(edge)} - {""})


def path(edge: Edge) -> str:
    """What is at an edge, and what that is computed from: ``sum ← mul ← a``, up to where it branches."""
    words: list[str] = []
    while type(edge) is not Leaf:
        node = edge.node if isinstance(edge, Output) else edge
        words.append((named(edge) if words else "") or node.prim.name)
        below = [e for e in node.edges if e is not None]
        if len(below) != 1 or len(words) > 5:
            return " ← ".join([*words, ", ".join(leaf_names(edge)) or "…"])
        (edge,) = below
    return " ← ".join([*words, named(edge) or "a leaf without a name"])


def of_shape(edge: Edge, shape: tuple[int, ...]) -> str:
    """The name of a leaf of this shape among what an edge leads to, or ''."""
    return next((named(leaf) for leaf in leaves(edge) if shape_of(leaf) == shape), "")


class Rebound(NamedTuple):
    """A variable that held a leaf and was given what was computed from it: on which line, and where the leaf was made."""

    line: SourceLine
    leaf: SourceLine | None


def rebound(tensor: Tensor, name: str, names: Names) -> Rebound | None:
    """Whether ``x = x.to(...)`` gave the name of a leaf to what was computed from it."""
    edge, cut = tensor._edge, tensor._cut
    line = rebinding(place_of(tensor) or (None if cut is None else cut.where), name)
    if line is None:
        return None
    if edge is None:
        before = names.find(tensor)
        made = None if before is None else names.assignment(before, line.line)
        return Rebound(line, None if made is None else made.line)
    for leaf in _unnamed(edge, names):
        return Rebound(line, line_of(place_of(leaf)))
    return None


def _unnamed(edge: Node, names: Names) -> Iterator[Leaf]:
    """The leaves behind an edge that no variable holds, with no named value between."""
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
    """A value that another one was computed from: the variable, what was assigned to it, and on which line."""

    found: NamedArray
    value: ast.expr
    line: SourceLine


def origins(tensor: Tensor) -> Iterator[Ancestor]:
    """The assignments that a tensor's value comes from, nearest first, by the names in them."""
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
    """Where a tensor's history went through plain numbers: ``x.sum().item()``, with its line; '' where it did not."""
    for origin in origins(tensor):
        name = origin.found.name
        for value, line in [(origin.value, origin.line), *appended(origin.found.scope, name)]:
            number = _number_in(value)
            if number:
                return f"`{number}` ({line})"
    return ""


def _number_in(value: ast.AST) -> str:
    """The part of an expression that makes a plain number or array of a tensor; '' if there is none."""
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
    """Where a tensor's history took ``.data`` of another: `` in `y = x.data * 2` (t.py:3)``; '' if that is not known."""
    for origin in origins(tensor):
        if any(isinstance(item, ast.Attribute) and item.attr == "data" for item in ast.walk(origin.value)):
            text = origin.line.text.split("  #")[0].strip()
            return f" in `{text}` ({origin.line})" if len(text) <= 70 else f" in {origin.line}"
    return ""


def unmarked(tensor: Tensor) -> tuple[str, SourceLine] | None:
    """The variable at the start of a tensor's history, which could have required grad, and its line."""
    last = None
    for origin in origins(tensor):
        thing = origin.found.thing
        if isinstance(thing, Tensor) and thing is not tensor and thing._raw.dtype.kind in "fc":
            last = (origin.found.name, origin.line)
    return last
