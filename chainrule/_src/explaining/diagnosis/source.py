"""Reading the user's source: the statement at a place, the loop around it, and what was assigned to a name before it.

Nodes know their places. This is for what left none: values that were never recorded.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from chainrule._src.messages.places import Where, line_name
from chainrule._src.messages.reading import names_in, plain, syntax

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BRANCHES = (ast.If, ast.Try, ast.TryStar, ast.Match)


class SourceLine(NamedTuple):
    """A line of the user's program, with its text (empty where the source cannot be read)."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return line_name(self.file, self.line)


def line_at(file: str, line: int) -> SourceLine:
    """The line with its text."""
    return SourceLine(file, line, linecache.getline(file, line).strip())


def line_of(where: Where | None) -> SourceLine | None:
    """The line of a place; None where nobody could look it up."""
    if where is None or where.code is None or not (line := where.line):
        return None
    found = line_at(where.file, line)
    return None if found.file.startswith("<") and not found.text else found


class Scope(NamedTuple):
    """The text in which a variable is assigned: a function of a file, and the line that it has come to (None: its end)."""

    file: str
    function: str
    first: int
    line: int | None


@functools.lru_cache(maxsize=64)
def _parsed(source: str) -> ast.mod | None:
    return syntax(source)


def tree_of(file: str) -> ast.mod | None:
    """The syntax tree of a file, a notebook's cell or what was typed; None where there is none."""
    return _parsed(_source(file))


def _source(file: str) -> str:
    return "".join(linecache.getlines(file))


@functools.lru_cache(maxsize=64)
def _statements(source: str) -> list[ast.stmt]:
    """All statements, outer ones before those in them."""
    tree = _parsed(source)
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)] if tree is not None else []


def _covers(node: Any, line: int) -> bool:
    return bool(node.lineno <= line <= (node.end_lineno or 0))


def statement_at(where: Where) -> ast.stmt | None:
    """The innermost statement around a place."""
    line, last, begin, end = where.span
    found = None
    for node in _statements(_source(where.file)) if line else ():
        if (node.lineno, node.col_offset) <= (line, begin) and (last, end) <= (
            node.end_lineno or 0,
            node.end_col_offset or 0,
        ):
            found = node
    return found


def loop_around(where: Where) -> int:
    """The line of the innermost loop around a place in its function; 0 if there is none."""
    scope = _function(tree_of(where.file), where.code.co_name, where.code.co_firstlineno) if where.code else None
    found = 0
    for node in _own(scope) if scope is not None else ():
        if isinstance(node, _LOOPS) and _covers(node, where.line):
            found = max(found, node.lineno)
    return found


def _function(tree: ast.AST | None, name: str, first: int) -> ast.AST | None:
    """The function (or the whole text) that a code object was made from."""
    if tree is None or name == "<module>":
        return tree
    for node in ast.walk(tree):
        known = isinstance(node, _FUNCTIONS) and getattr(node, "name", "<lambda>") == name
        if known and first in (getattr(node, "lineno", 0), *[d.lineno for d in getattr(node, "decorator_list", ())]):
            return node
    return None


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """What is in a function, without the functions in it, in the order of the text."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, _FUNCTIONS):
            yield from _own(child)


class Assignment(NamedTuple):
    """What a statement gives a name: the expression, and the line of the statement."""

    value: ast.expr
    line: SourceLine


def assignment(scope: Scope, name: str, before: int | None = None) -> Assignment | None:
    """The statement that gave a name its value last, if the text alone tells."""
    files = [(scope.file, before or scope.line)]
    if scope.function == "<module>" and before is None:
        files += [(file, None) for file in _cells_before(scope.file)]
    for file, line in files:
        function = _function(tree_of(file), scope.function, scope.first)
        found = _assigned(function, plain(name), line or 10**9) if function is not None else None
        if found is not None:
            value, statement = found
            return None if value is None else Assignment(value, line_at(file, statement.lineno))
    return None


def _assigned(function: ast.AST, name: str, now: int) -> tuple[ast.expr | None, ast.stmt | ast.NamedExpr] | None:
    """The last assignment of a name before a line; its value is None where another may have come later."""
    found, blocks = None, []
    for node in _own(function):
        if isinstance(node, (*_BRANCHES, *_LOOPS)):
            blocks.append(node)
        if not isinstance(node, (ast.stmt, ast.NamedExpr)):
            continue
        for target, value in _targets(node):
            if target != name:
                continue
            around = [block for block in blocks if _covers(block, node.lineno)]
            if (node.end_lineno or 0) < now:
                sure = all(_covers(block, now) or isinstance(block, _LOOPS) for block in around)
                found = (value if sure else None), node
            elif any(isinstance(block, _LOOPS) and _covers(block, now) for block in around):
                return None, node
    return found


def _targets(node: object) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement gives values to, each with the expression."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield ast.unparse(node.target), node.value
    elif isinstance(node, ast.AugAssign):
        yield ast.unparse(node.target), ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from _unpacked(node.target, node.iter)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if item.optional_vars is not None:
                yield ast.unparse(item.optional_vars), item.context_expr


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield ast.unparse(target.value if isinstance(target, ast.Starred) else target), value
        return
    parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
    for i, part in enumerate(target.elts):
        yield from _unpacked(part, value if parts is None else parts[i])


def _cells_before(file: str) -> Iterator[str]:
    """The cells of the same session that were entered before this one, latest first."""
    if os.sep + "ipykernel_" in file or file.startswith("<ipython-input-"):
        folder = os.path.dirname(file)
        known = [f for f in linecache.cache if os.path.dirname(f) == folder and "ipy" in f]
        if file in known:
            yield from reversed(known[: known.index(file)])
        return
    numbered = re.fullmatch(r"(<.*?)(\d{1,5})(\]?>)", file)
    if numbered:
        start, number, end = numbered.groups()
        yield from (f"{start}{n}{end}" for n in range(int(number) - 1, -1, -1))


def appended(scope: Scope, name: str) -> Iterator[tuple[ast.Call, SourceLine]]:
    """The calls of ``name.append``, before the line that a scope has come to."""
    function = _function(tree_of(scope.file), scope.function, scope.first)
    for node in _own(function) if function is not None else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.append":
            yield node, line_at(scope.file, node.lineno)


def result_at(where: Where | None) -> str | None:
    """The one variable that the statement at a place gives the value of the very expression there; '' if it returns that; else None."""
    statement = None if where is None else statement_at(where)
    value = getattr(statement, "value", None)
    if where is None or not isinstance(value, ast.expr):
        return None
    if where.span != (value.lineno, value.end_lineno, value.col_offset, value.end_col_offset):
        return None
    return "" if isinstance(statement, ast.Return) else assigned_at(where) or None


def assigned_at(where: Where | None) -> str:
    """The one variable that the statement at a place gives a value."""
    statement = None if where is None else statement_at(where)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return ""


def rebinding(where: Where | None, name: str) -> SourceLine | None:
    """The line of the statement at a place, if it gave a name a new value computed from the old: ``x = x.to(...)``."""
    statement: Any = None if where is None else statement_at(where)
    for target, value in _targets(statement):
        if where is not None and target == plain(name) and target in names_in(value):
            return line_at(where.file, statement.lineno)
    return None
