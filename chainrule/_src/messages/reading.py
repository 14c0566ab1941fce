"""What the user's program is just doing: the expression that a frame is at, read from its code."""

from __future__ import annotations

import ast
import dis
import linecache
import os
import threading
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from chainrule._src.messages.names import name_of, variables
from chainrule._src.messages.places import Where, user_frame

_PARSER = threading.RLock()  # CPython 3.11's may raise SystemError where two threads parse at once
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_PARSER.acquire, after_in_parent=_PARSER.release, after_in_child=_PARSER.release)


def syntax(source: str, mode: str = "exec") -> ast.mod | None:
    """The syntax tree of a text; None if there is none, or it can't be had."""
    with _PARSER:
        try:
            return ast.parse(source, mode=mode)
        except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
            return None


def expression_of(text: str) -> ast.expr | None:
    """The syntax tree of an expression."""
    return getattr(syntax(text.strip(), "eval"), "body", None)


STORES = ("STORE_SUBSCR", "STORE_SLICE")  # the second since Python 3.12


class Running(NamedTuple):
    """What a frame is just doing: the bytecode instruction, and the source text it was made from."""

    instruction: str
    text: str


def running(frame: FrameType | None, at: int | None = None) -> Running:
    """The instruction that a frame is (or was) at, and its source text ('' where there is none)."""
    if frame is None:
        return Running("", "")
    at = frame.f_lasti if at is None else at
    return Running(dis.opname[frame.f_code.co_code[at]], Where(frame.f_code, at).expression)


def expression() -> ast.expr | None:
    """The expression of the user's program that is being computed."""
    return expression_of(running(user_frame()).text)


def with_arrays() -> str:
    """The call that the user's program is making, with detached arrays for the tensors in it; '' if it is not short."""
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
    """The source of the first argument of the call that the user's program is making, if that is short; else ''."""
    call = expression()
    text = ast.unparse(call.args[0]) if isinstance(call, ast.Call) and call.args else ""
    return text if len(text) <= 50 else ""


def step_of_loop() -> str:
    """The first argument of the call that the user's program is making, and where its loops are: ``": A @ P, at t = 7"``; or ''."""
    frame, first = user_frame(), argument()
    if frame is None:
        return ""
    source = syntax("".join(linecache.getlines(frame.f_code.co_filename)))
    around = [loop for loop in ast.walk(source or ast.Module([], [])) if isinstance(loop, ast.For)]
    inside = [loop for loop in around if loop.lineno <= frame.f_lineno <= (loop.end_lineno or 0)]
    names = [name.id for loop in inside for name in ast.walk(loop.target) if isinstance(name, ast.Name)]
    held = {name: frame.f_locals[name] for name in names if isinstance(frame.f_locals.get(name), (int, float, str))}
    at = ", ".join(f"{name} = {value!r}" for name, value in held.items())
    said = [first] * bool(first) + [f"at {at}"] * bool(at)
    return ": " + ", ".join(said) if said else ""


def operands(function: str, x: Any, y: Any, otherwise: tuple[str, str]) -> tuple[str, str]:
    """What to call the two operands of a function or operator: the user's names for them, or their source, if short."""
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
    """The source of x in the user's running ``x.method(...)`` or ``module.method(x)``, if that is short; else ''."""
    call = expression()
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == method:
        text = ast.unparse(call.func.value)
        if _is_module(text):
            return argument()
        if len(text) <= 30:
            return text if isinstance(call.func.value, _SIMPLE) else f"({text})"
    return ""


def _is_module(text: str) -> bool:
    """Whether a name that the user's program reads, such as ``torch.autograd``, begins with a module."""
    frame, name = user_frame(), text.split(".")[0]
    return isinstance(frame.f_locals.get(name, frame.f_globals.get(name)), ModuleType)


def receiver_of_attribute(name: str, frame: FrameType | None = None, at: int | None = None) -> str:
    """The source of x in the ``x.name`` that a frame is (or was) at, if that is short; else ''."""
    text = running(frame or user_frame(), at).text
    return text.removesuffix("." + name) if text.endswith("." + name) and len(text) < 30 else ""


def called(value: ast.AST | None) -> str:
    """The name of the function that an expression ends with calling, or an empty string."""
    if isinstance(value, ast.Call):
        value = value.func
    if isinstance(value, ast.Attribute):
        return value.attr.rstrip("_")
    return value.id if isinstance(value, ast.Name) else ""


def names_in(value: ast.AST | None) -> list[str]:
    """The variables (and attributes and items of them) that an expression reads, in the order of the text."""
    if value is None:
        return []
    found = [n for n in ast.walk(value) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
    found.sort(key=lambda n: (n.lineno, n.col_offset))
    return [ast.unparse(n) for n in found]


def plain(name: str) -> str:
    """A name as ``ast.unparse`` writes it."""
    tree = expression_of(name)
    return name if tree is None else ast.unparse(tree)


def out_of_place(text: str, name: str = "") -> str:
    """How to write a line that changes a tensor (called ``name``) in place without that; '' if it is not known."""
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
    """The advice for ``x[0] = 1``; a tensor is copied by clone(), an array by copy()."""
    x, frame = ast.unparse(target.value), user_frame()
    value = None if frame is None else frame.f_locals.get(x, frame.f_globals.get(x))
    copied = f"{x}.copy()" if hasattr(value, "copy") and not hasattr(value, "clone") else f"{x}.clone()"
    return f"Write to a copy: `{x} = {copied}` before it."
