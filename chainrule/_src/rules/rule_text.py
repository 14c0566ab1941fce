"""Derive the formula of a rule from its source code, so that op definitions need not repeat it as text.

``Primitive.formula`` calls ``vjp_text`` and ``partial_text``. The source is read at the first use, so that importing the op
table is fast.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable
from typing import Any

from chainrule._src.arrays.types import AnyFunction

#: Rewrites of calls that rules use for speed or for the edges of their domain. A capital letter stands for any expression;
#: the same letter stands for the same expression.
_REWRITES = [
    ("A * A", "A ** 2"),
    ("-A * A", "-A ** 2"),
    ("A * B * B", "A * B ** 2"),
    ("-(A @ B)", "-A @ B"),
    ("np.matmul(A, B)", "A @ B"),
    ("np.floor_divide(A, B)", "A // B"),
    ("shape_of(A)", "A.shape"),
    ("np.zeros(A.shape, B)", "np.zeros(A.shape)"),
    ("solve(A, B)", "np.linalg.solve(A, B)"),
    ("masked(A, g)", "g * A"),
    ("np.logical_not(A <= B)", "A > B"),
    ("np.absolute(A)", "np.abs(A)"),
    ("np.where(A, g, B * g)", "g * np.where(A, 1, B)"),
    ("conjugate(A)", "np.conjugate(A)"),
    ("to_shape(A, B)", "A.reshape(B)"),
    ("getitem(A, index=B)", "A[B]"),
    ("read(A, index=B)", "A[B]"),
    ("gather(A, B, axis=C)", "np.take_along_axis(A, B, C)"),
]


def expression_of(rule: AnyFunction) -> ast.expr | None:
    """Return the result expression of a rule; None without its source, or if it takes several statements."""
    code = rule.__code__
    if code.co_freevars:  # names from an enclosing scope
        return None
    try:
        found = _by_line(code.co_filename).get(code.co_firstlineno, [])
    except SyntaxError:  # an interactive line, or not Python at all
        return None
    for node in found:
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            *rest, last = node.body
            return last.value if isinstance(last, ast.Return) and all(map(_is_docstring, rest)) else None
    positions = [(line, column) for line, _, column, end in code.co_positions() if end]
    bodies = [node.body for node in found if isinstance(node, ast.Lambda)]
    enclosing = [
        body
        for body in bodies
        if all((body.lineno, body.col_offset) <= p <= (body.end_lineno, body.end_col_offset) for p in positions)
    ]
    return max(enclosing, key=lambda body: (body.lineno, body.col_offset), default=None)


@functools.cache
def _by_line(file: str) -> dict[int, list[ast.FunctionDef | ast.Lambda]]:
    found: dict[int, list[ast.FunctionDef | ast.Lambda]] = {}
    for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            found.setdefault(node.lineno, []).append(node)
    return found


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def vjp_text(
    rule: AnyFunction, params: tuple[str, ...] = (), shared: tuple[str, AnyFunction] | None = None
) -> str | None:
    """Return a VJP as text.

    Args:
        params: the parameters for which the rule's ``**params`` stand.
        shared: the name and rule of the intermediate result it shares with other rules; the text replaces the name.
    """
    found = expression_of(rule)
    if found is None:
        return None
    if shared is None:
        return _to_text(found, rule, _ExpandParams(params).visit)
    name, common = shared
    part = expression_of(common)
    return None if part is None else _to_text(found, common, _Substitute({name: part}).visit)


def partial_text(partial: Any) -> str | None:
    """Return the VJP derived from a partial derivative as text."""
    if not callable(partial):
        return {1: "g", -1: "-g", 0: "0 * g"}.get(partial, f"g * {partial!r}")
    found = expression_of(partial)
    return None if found is None else _to_text(found, partial, lambda node: _times_g(node, ast.Name("g", ast.Load())))


def _times_g(node: ast.expr, g: ast.expr) -> ast.expr:
    """Return ``g * node``; in a product or quotient, g multiplies the leading factor."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _times_g(node.operand, ast.UnaryOp(ast.USub(), g))
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return ast.BinOp(_times_g(node.left, g), node.op, node.right)
    return g if isinstance(node, ast.Constant) and node.value == 1 else ast.BinOp(g, ast.Mult(), node)


def _to_text(node: ast.expr, rule: AnyFunction, form: Callable[[ast.expr], ast.expr] = lambda node: node) -> str:
    copied = ast.parse(ast.unparse(node), mode="eval").body
    return ast.unparse(_ApplyRewrites().visit(form(_InlineConstants(rule).visit(copied))))


class _InlineConstants(ast.NodeTransformer):
    """Replace a module's named numbers by their expressions."""

    def __init__(self, rule: AnyFunction) -> None:
        self.values = rule.__globals__
        self.file = rule.__code__.co_filename

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(self.values.get(node.id), float):
            return node
        value = _named_numbers(self.file).get(node.id)
        return node if value is None else ast.parse(value, mode="eval").body


@functools.cache
def _named_numbers(file: str) -> dict[str, str]:
    """Return the expressions of the numbers that a file assigns to names."""
    found = {}
    for node in ast.parse("".join(linecache.getlines(file))).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "float":
                value = value.args[0]
            found[node.targets[0].id] = ast.unparse(value).replace("math.", "np.")
    return found


class _ExpandParams(ast.NodeTransformer):
    """Replace ``**params`` in calls by the parameters."""

    def __init__(self, params: tuple[str, ...]) -> None:
        self.given = [ast.keyword(name, ast.Name(name, ast.Load())) for name in params]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        named = [keyword for keyword in node.keywords if keyword.arg is not None]
        if len(named) < len(node.keywords):
            node.keywords = [*named, *self.given]
        return self.generic_visit(node)


class _ApplyRewrites(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        for pattern, result in _patterns():
            found: dict[str, ast.AST] = {}
            if _matches(pattern, node, found):
                return self.visit(_Substitute(found).visit(ast.parse(result, mode="eval").body))
        return node


@functools.cache
def _patterns() -> list[tuple[ast.expr, str]]:
    return [(ast.parse(pattern, mode="eval").body, result) for pattern, result in _REWRITES]


def _matches(pattern: Any, node: Any, found: dict[str, ast.AST]) -> bool:
    if isinstance(pattern, ast.Name) and pattern.id.isupper() and len(pattern.id) == 1:
        if not isinstance(node, ast.expr):
            return False
        bound = found.setdefault(pattern.id, node)
        return ast.dump(bound) == ast.dump(node)
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, list):
        return len(pattern) == len(node) and all(_matches(p, n, found) for p, n in zip(pattern, node, strict=True))
    if not isinstance(pattern, ast.AST):
        return bool(pattern == node)
    return all(_matches(getattr(pattern, field), getattr(node, field), found) for field in pattern._fields)


class _Substitute(ast.NodeTransformer):
    def __init__(self, found: dict[str, ast.AST]) -> None:
        self.found = found

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.found.get(node.id, node)
