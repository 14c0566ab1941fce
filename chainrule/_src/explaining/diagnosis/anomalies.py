"""Anomaly mode: where the first nan was born, and which rule made one."""

from __future__ import annotations

import ast
import linecache
import math
import os
import re
from typing import Any

from chainrule._src.explaining.diagnosis.names import Names
from chainrule._src.messages.places import PACKAGE, calling_frame, warn
from chainrule._src.messages.reading import syntax
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.node import Node


class CallStack(tuple[Any, ...]):
    """The lines of the user's program that were running, outermost first: (file, line, function) each."""

    __slots__ = ()

    def __str__(self) -> str:
        return "".join(
            f'  File "{file}", line {line}, in {function}\n    {linecache.getline(file, line).strip()}\n'
            for file, line, function in self
        )

    @property
    def innermost(self) -> str:
        if not self:
            return ""
        file, line, function = self[-1]
        code = linecache.getline(file, line).strip()
        return f"{os.path.basename(file)}:{line} in {function}" + (f": {code}" if code else "")


def call_stack() -> CallStack:
    found = []
    frame = calling_frame()
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return CallStack(reversed(found))


def _values(values: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in values.items())


def _remedy(prim: object) -> str:
    text = getattr(prim, "remedy", "")  # a custom Function has none
    return f" What helps: {text}." if text else ""


def nan_born(prim: Primitive, index: object, values: dict[str, float], stack: CallStack) -> str:
    with_ = f", with {_values(values)}" if values else ", from operands without nan"
    return f"The first nan was born in {prim.name} at index {index}{with_} ({stack.innermost}).{_remedy(prim)}"


def nan_came_in(prim: Primitive, stack: CallStack) -> str:
    return f"A nan was in the data already when it came to {prim.name} ({stack.innermost})."


def warn_detected(node: Node) -> None:
    """Show the lines that made a node whose rule failed, and those of the node whose rule made that."""
    stack = node.metadata.get("traceback_")
    text = f"Error detected in {node.name()}. "
    if stack is None:
        text += "No forward pass information available. Enable detect anomaly during forward pass for more information."
    else:
        text += f"Traceback of forward call that caused the error:\n{stack}"
    warn(text)
    parent = node.metadata.get("parent_")
    while parent is not None:
        stack = parent.metadata.get("traceback_", "  (it was outside of anomaly mode)")
        warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            f"previous calculation:\n{stack}"
        )
        parent = parent.metadata.get("parent_")


def nan_gradient(
    node: Node,
    i: int,
    index: tuple[int, ...],
    values: dict[str, float],
    upstream: float,
    arrived: bool,
    born: str | None,
    infinity: str | None = None,
) -> RuntimeError:
    prim = node.prim
    operands = getattr(prim, "operands", ())
    operand = operands[min(i, len(operands) - 1)].lstrip("*") if operands else str(i)
    lines = [f"Function '{node.name()}' returned nan values in its {i}th output."]
    stack = node.metadata.get("traceback_")
    where = f", called at {stack.innermost}" if stack else ""
    lines.append(f"This is the gradient of {prim.name} for its operand {operand}, at index {index}{where}.")
    formula = getattr(prim, "formula", {}).get(operand) or getattr(prim, "formula", {}).get(f"*{operand}")
    names = _names(node)
    x = names.get(operand, operand)
    formula = _renamed(formula or "", names)
    known = {names.get(name, name): value for name, value in values.items()}
    known = known if upstream is None else {"g": upstream, **known}
    rule = f"The rule is {formula}, where g is the gradient that arrived." if formula else ""
    if known:
        rule += f" There {_values(known)}."
    lines += [rule.strip()] if rule else []
    if arrived:
        lines.append(
            "The gradient that arrived had nan in it already: it was given to backward(), a hook made it, or infinite "
            "gradients of several paths were added."
        )
    elif upstream == 0 and born is None:
        ok = _condition(stack)
        call, safe = _call(prim, names, operand, x), _call(prim, names, operand, f"where({ok}, {x}, 1.)")
        lines.append(
            f"The gradient that arrived is 0, and 0 times the infinite slope of {prim.name} is nan. A mask such as "
            f"where({ok}, {call}, 0) hides the value, not the gradient. Mask the input, too: where({ok}, {safe}, 0)."
        )
    if infinity is not None and upstream is not None and abs(upstream) == math.inf:
        lines.append(infinity)
    elif not arrived and born is None and _remedy(prim):
        lines.append(_remedy(prim).strip())
    if born is not None:
        lines.append(f"In the forward pass: {born}")
    return RuntimeError("\n".join(lines))


def infinity_born(node: Node, index: object, values: dict[str, float]) -> str:
    stack = node.metadata.get("traceback_")
    with_ = f", with {_values(values)}" if values else ""
    where = f" ({stack.innermost})" if stack else ""
    return f"That inf is the gradient of {node.prim.name} at index {index}{with_}{where}.{_remedy(node.prim)}"


def _names(node: Node) -> dict[str, str]:
    """The user's names of a node's operands and result, by the row's names of them."""
    known = Names()
    operands = getattr(node.prim, "operands", ())
    found = {operand: known.of(edge) for operand, edge in zip(operands, node.edges) if edge is not None}
    found["out"] = known.of(node)
    return {operand: name for operand, name in found.items() if name}


def _call(prim: Primitive, names: dict[str, str], operand: str, x: str) -> str:
    return f"{prim.name}({', '.join(x if name == operand else names.get(name, name) for name in prim.operands)})"


def _condition(stack: CallStack | None) -> str:
    """The condition of a ``where`` on the line of an operation, or "ok"."""
    line = linecache.getline(*stack[-1][:2]) if stack else ""
    tree = syntax(line.strip())
    for call in ast.walk(tree) if tree is not None else ():
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("where") and call.args:
            return ast.unparse(call.args[0])
    return "ok"


def _renamed(formula: str, names: dict[str, str]) -> str:
    """A formula with the user's names in it."""
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda word: names.get(word[0], word[0]), formula)


def nan_tangent(
    prim: Primitive,
    index: object,
    values: dict[str, float],
    moved: dict[str, float],
    stack: CallStack,
    born: str | None,
) -> RuntimeError:
    where = f" ({stack.innermost})" if stack else ""
    lines = [f"Function '{prim.name}' returned nan values in its tangent, in forward mode, at index {index}{where}."]
    tangents = {f"tangent of {name}": value for name, value in moved.items()}
    if values:
        lines.append(f"There {_values({**values, **tangents})}.")
    if any(value == 0 for value in moved.values()):
        lines.append(
            "A tangent is 0 where the slope is infinite, and 0 times inf is nan: mask the input of the operation."
        )
    if _remedy(prim):
        lines.append(_remedy(prim).strip())
    if born is not None:
        lines.append(f"In the forward pass: {born}")
    return RuntimeError("\n".join(lines))
