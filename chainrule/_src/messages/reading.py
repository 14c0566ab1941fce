"""Read the source of the user's running expression, to quote operands in messages and to suggest replacements.

The instruction of a frame gives the source range of the expression (``running``). Messages call ``operands``,
``receiver``, ``argument`` and ``out_of_place``, which parse it and return source text, or '' if unknown or too long.
"""

from __future__ import annotations

import ast
import dis
import linecache
import os
import threading
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from chainrule._src.messages.names import name_of, variables
from chainrule._src.messages.source_locations import Where, user_frame

_PARSER = threading.RLock()  # in CPython 3.11, parsing in two threads at once may raise SystemError
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_PARSER.acquire, after_in_parent=_PARSER.release, after_in_child=_PARSER.release)


def syntax(source: str, mode: str = "exec") -> ast.mod | None:
    """Return the syntax tree of a text; None if it cannot be parsed."""
    with _PARSER:
        try:
            return ast.parse(source, mode=mode)
        except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
            return None


def expression_of(text: str) -> ast.expr | None:
    """Return the syntax tree of an expression; None if it cannot be parsed."""
    return getattr(syntax(text.strip(), "eval"), "body", None)


STORES = ("STORE_SUBSCR", "STORE_SLICE")  # the second since Python 3.12


class Running(NamedTuple):
    """The bytecode instruction that a frame executes, and its source text."""

    instruction: str
    text: str


def running(frame: FrameType | None, at: int | None = None) -> Running:
    """Return the instruction that a frame executes (or executed, ``at``), and its source text ('' if unknown)."""
    if frame is None:
        return Running("", "")
    at = frame.f_lasti if at is None else at
    return Running(dis.opname[frame.f_code.co_code[at]], Where(frame.f_code, at).expression)


def expression() -> ast.expr | None:
    """Return the expression that the user's program is computing."""
    return expression_of(running(user_frame()).text)


def with_arrays() -> str:
    """Return the source of the user's running call with its tensors replaced by detached arrays; '' if it is long."""
    call = expression()
    if not isinstance(call, ast.Call):
        return ""
    found = [(name, value) for name, value, _ in reversed([*variables()])]
    edges = {name: value._edge for name, value in found if hasattr(type(value), "_edge")}
    arrays = {name for name, value in found if hasattr(type(value), "_tensor")}

    class Arrays(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id in arrays:
                return ast.Name(f"np.asarray({node.id}.detach())")
            if node.id not in edges:
                return node
            return ast.Name(f"{node.id}.numpy()" if edges[node.id] is None else f"{node.id}.detach().numpy()")

    text = ast.unparse(Arrays().visit(call))
    return text if len(text) <= 80 and (".numpy()" in text or ".detach())" in text) else ""


def argument() -> str:
    """Return the source of the first argument of the user's running call if it is short; else ''."""
    call = expression()
    text = ast.unparse(call.args[0]) if isinstance(call, ast.Call) and call.args else ""
    return text if len(text) <= 50 else ""


def step_of_loop() -> str:
    """Return the first argument of the user's running call, and the loop variables: ``": A @ P, at t = 7"``; or ''."""
    frame, first = user_frame(), argument()
    if frame is None:
        return ""
    source = syntax("".join(linecache.getlines(frame.f_code.co_filename)))
    loops = [loop for loop in ast.walk(source or ast.Module([], [])) if isinstance(loop, ast.For)]
    inside = [loop for loop in loops if loop.lineno <= frame.f_lineno <= (loop.end_lineno or 0)]
    names = [name.id for loop in inside for name in ast.walk(loop.target) if isinstance(name, ast.Name)]
    loop_values = {
        name: frame.f_locals[name] for name in names if isinstance(frame.f_locals.get(name), (int, float, str))
    }
    at = ", ".join(f"{name} = {value!r}" for name, value in loop_values.items())
    parts = [first] * bool(first) + [f"at {at}"] * bool(at)
    return ": " + ", ".join(parts) if parts else ""


def operands(function: str, x: Any, y: Any, otherwise: tuple[str, str]) -> tuple[str, str]:
    """Return texts for the two operands of a function or operator: the user's names, else their source if it is short."""
    value, parts = expression(), []
    if isinstance(value, ast.BinOp):
        parts = [value.left, value.right]
    elif isinstance(value, ast.Call) and called(value) == function and len(value.args) == 2:
        parts = value.args
    texts = [_as_operand(part) for part in parts] or ["", ""]
    return name_of(x) or texts[0] or otherwise[0], name_of(y) or texts[1] or otherwise[1]


_SIMPLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


def _as_operand(part: ast.expr) -> str:
    text = ast.unparse(part)
    return "" if len(text) > 24 else text if isinstance(part, _SIMPLE) else f"({text})"


def receiver(method: str) -> str:
    """Return the source of x in the user's running ``x.method(...)`` or ``module.method(x)`` if it is short; else ''."""
    call = expression()
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == method:
        text = ast.unparse(call.func.value)
        if _is_module(text):
            return argument()
        if len(text) <= 30:
            return text if isinstance(call.func.value, _SIMPLE) else f"({text})"
    return ""


def _is_module(text: str) -> bool:
    """Return whether the first part of a dotted name, such as ``torch.autograd``, is a module in the user's program."""
    frame, name = user_frame(), text.split(".")[0]
    return isinstance(frame.f_locals.get(name, frame.f_globals.get(name)), ModuleType)


def receiver_of_attribute(name: str, frame: FrameType | None = None, at: int | None = None) -> str:
    """Return the source of x in the ``x.name`` that a frame executes (or executed, ``at``) if it is short; else ''."""
    text = running(frame or user_frame(), at).text
    return text.removesuffix("." + name) if text.endswith("." + name) and len(text) < 30 else ""


def called(value: ast.AST | None) -> str:
    """Return the name of the outermost function that an expression calls, or ''."""
    if isinstance(value, ast.Call):
        value = value.func
    if isinstance(value, ast.Attribute):
        return value.attr.rstrip("_")
    return value.id if isinstance(value, ast.Name) else ""


def names_in(value: ast.AST | None) -> list[str]:
    """Return the variables (and their attributes and items) that an expression reads, in source order."""
    if value is None:
        return []
    found = [n for n in ast.walk(value) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
    found.sort(key=lambda n: (n.lineno, n.col_offset))
    return [ast.unparse(n) for n in found]


def plain(name: str) -> str:
    """Return a name as ``ast.unparse`` writes it."""
    tree = expression_of(name)
    return name if tree is None else ast.unparse(tree)


def out_of_place(text: str, name: str = "") -> str:
    """Return an out-of-place replacement for a line that writes into a tensor (called ``name``); '' if unknown."""
    body: list[object] = getattr(syntax(text), "body", [])
    if len(body) != 1:
        return ""
    (statement,) = body
    if isinstance(statement, ast.AugAssign):
        x = ast.unparse(statement.target)
        item_of_a_list = x == plain(name)
        if item_of_a_list or not isinstance(statement.target, ast.Subscript):
            return f"Write `{x} = {ast.unparse(ast.BinOp(statement.target, statement.op, statement.value))}`."
        return _write_to_a_copy(statement.target)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return _write_to_a_copy(statement.targets[0])
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        if isinstance(func, ast.Attribute) and func.attr.endswith("_"):
            call = ast.Call(ast.Attribute(func.value, func.attr[:-1]), statement.value.args, statement.value.keywords)
            return f"Write `{ast.unparse(func.value)} = {ast.unparse(call)}`."
    return ""


def _write_to_a_copy(target: ast.Subscript) -> str:
    """Return the advice for ``x[0] = 1``: copy a tensor with clone(), an array with copy()."""
    x, frame = ast.unparse(target.value), user_frame()
    value = None if frame is None else frame.f_locals.get(x, frame.f_globals.get(x))
    copied = f"{x}.copy()" if hasattr(value, "copy") and not hasattr(value, "clone") else f"{x}.clone()"
    return f"Write to a copy: insert `{x} = {copied}` before the line."
