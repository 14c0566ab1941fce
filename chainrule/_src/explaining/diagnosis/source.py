"""Read the user's source: the statement at a location, the loop around it, and earlier assignments of a name.

``names`` and the modules of ``explaining`` call it.

Nodes store their source locations. This module finds the lines of values that were never recorded.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from chainrule._src.messages.reading import names_in, plain, syntax
from chainrule._src.messages.source_locations import Where, line_name

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BRANCHES = (ast.If, ast.Try, ast.TryStar, ast.Match)


class SourceLine(NamedTuple):
    """A line of the user's program, with its text (empty if the source cannot be read)."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return line_name(self.file, self.line)


def line_at(file: str, line: int) -> SourceLine:
    """Return the line with its text."""
    return SourceLine(file, line, linecache.getline(file, line).strip())


def line_of(where: Where | None) -> SourceLine | None:
    """Return the line of a source location; None if its source cannot be looked up."""
    if where is None or where.code is None or not (line := where.line):
        return None
    found = line_at(where.file, line)
    return None if found.file.startswith("<") and not found.text else found


class Scope(NamedTuple):
    """The text in which a variable is assigned: a function of a file, and its running line (None: it has ended)."""

    file: str
    function: str
    first: int
    line: int | None


@functools.lru_cache(maxsize=64)
def _parsed(source: str) -> ast.mod | None:
    return syntax(source)


def tree_of(file: str) -> ast.mod | None:
    """Return the syntax tree of a file, a notebook's cell or typed code; None if it cannot be parsed."""
    return _parsed(_source(file))


def _source(file: str) -> str:
    return "".join(linecache.getlines(file))


@functools.lru_cache(maxsize=64)
def _statements(source: str) -> list[ast.stmt]:
    """Return all statements, outer ones before inner ones."""
    tree = _parsed(source)
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)] if tree is not None else []


def _covers(node: Any, line: int) -> bool:
    return bool(node.lineno <= line <= (node.end_lineno or 0))


def statement_at(where: Where) -> ast.stmt | None:
    """Return the innermost statement around a source location."""
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
    """Return the line of the innermost loop around a source location in its function; 0 if there is none."""
    scope = _function(tree_of(where.file), where.code.co_name, where.code.co_firstlineno) if where.code else None
    found = 0
    for node in _own(scope) if scope is not None else ():
        if isinstance(node, _LOOPS) and _covers(node, where.line):
            found = max(found, node.lineno)
    return found


def _function(tree: ast.AST | None, name: str, first: int) -> ast.AST | None:
    """Return the node of the function (or module) that a code object was made from."""
    if tree is None or name == "<module>":
        return tree
    for node in ast.walk(tree):
        known = isinstance(node, _FUNCTIONS) and getattr(node, "name", "<lambda>") == name
        if known and first in (getattr(node, "lineno", 0), *[d.lineno for d in getattr(node, "decorator_list", ())]):
            return node
    return None


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes in a function, without those in nested functions, in source order."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, _FUNCTIONS):
            yield from _own(child)


class Assignment(NamedTuple):
    """The expression that a statement assigns to a name, and the line of the statement."""

    value: ast.expr
    line: SourceLine


def last_assignment(scope: Scope, name: str, before: int | None = None) -> Assignment | None:
    """Return the last assignment of a name; None if the source does not determine it."""
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
    """Return the last assignment of a name before a line; its value is None if a later one may have run."""
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
    """Yield the names that a statement assigns, each with the expression."""
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
    """Yield the earlier cells of the same session, latest first."""
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


def append_calls(scope: Scope, name: str) -> Iterator[tuple[ast.Call, SourceLine]]:
    """Yield the calls of ``name.append`` in a scope."""
    function = _function(tree_of(scope.file), scope.function, scope.first)
    for node in _own(function) if function is not None else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.append":
            yield node, line_at(scope.file, node.lineno)


def result_at(where: Where | None) -> str | None:
    """Return the variable to which the statement at a location assigns exactly the expression there.

    Return '' if the statement returns the expression, and None in all other cases.
    """
    statement = None if where is None else statement_at(where)
    added = isinstance(statement, ast.AugAssign)
    value = statement if added else getattr(statement, "value", None)  # ``x += y`` computes x at the whole statement
    if where is None or not isinstance(value, (ast.expr, ast.AugAssign)):
        return None
    if where.span != (value.lineno, value.end_lineno, value.col_offset, value.end_col_offset):
        return None
    return "" if isinstance(statement, ast.Return) else assigned_at(where) or None


def assigned_at(where: Where | None) -> str:
    """Return the variable that the statement at a location assigns, if it is a single name; else ''."""
    statement = None if where is None else statement_at(where)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return ""


def rebinding_at(where: Where | None, name: str) -> SourceLine | None:
    """Return the line of the statement at a location if it rebinds a name to a value computed from it: ``x = x.to(...)``."""
    statement: Any = None if where is None else statement_at(where)
    for target, value in _targets(statement):
        if where is not None and target == plain(name) and target in names_in(value):
            return line_at(where.file, statement.lineno)
    return None
