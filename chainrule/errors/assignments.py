"""Where a program gave a variable its value, found by reading its source. Nothing is recorded while it runs.

The last assignment above the current line is the one that ran, as long as the program is straight. Where loops and branches
leave several, the operation that made the value decides: ``h = tanh(h @ w)`` can have made a tanh, ``h = x`` cannot.
If that does not decide either, there is no answer rather than a wrong one.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

_BRANCHES = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.Try, ast.TryStar, ast.Match)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
FOREVER = 1 << 60


class Assignment(NamedTuple):
    """One name that a statement gives a value: its lines, what it computes, the branches around it, and the statement."""

    name: str
    first: int
    last: int
    value: ast.AST | None
    inside: tuple[tuple[ast.AST, str], ...]  # compound statements around it, each with the part that holds it
    statement: ast.AST

    def loops(self) -> list[ast.AST]:
        return [statement for statement, part in self.inside if isinstance(statement, _LOOPS) and part != "orelse"]


def lines_of(file: str, scope: dict[str, Any] | None = None) -> list[str]:
    """The source of a file, a notebook's cell or a doctest; empty where there is none."""
    try:
        return linecache.getlines(file, scope)
    except Exception:  # a loader of the user's may do anything
        return []


_PARSER = threading.RLock()  # CPython 3.11's may raise SystemError where two threads parse at once
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_PARSER.acquire, after_in_parent=_PARSER.release, after_in_child=_PARSER.release)


def syntax(source: str, mode: str = "exec") -> Any:
    """The syntax tree of a text; None if there is none, or it can't be had."""
    with _PARSER:
        try:
            return ast.parse(source, mode=mode)
        except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
            return None


@functools.lru_cache(maxsize=64)
def parsed(source: str) -> ast.Module | None:
    return syntax(source)  # type: ignore[no-any-return]


def cells_before(file: str) -> Iterator[str]:
    """The cells of the same session that were entered before this one, latest first."""
    if os.sep + "ipykernel_" in file or file.startswith("<ipython-input-"):
        folder = os.path.dirname(file)
        known = [f for f in linecache.cache if os.path.dirname(f) == folder and ("ipy" in f)]
        if file in known:
            yield from reversed(known[: known.index(file)])
        return
    numbered = re.fullmatch(r"(<.*?)(\d{1,5})(\]?>)", file)
    if numbered:
        start, number, end = numbered.groups()
        yield from (f"{start}{n}{end}" for n in range(int(number) - 1, -1, -1))


@functools.lru_cache(maxsize=64)
def assignments(source: str, function: str, line: int) -> tuple[Assignment, ...]:
    """All assignments of a function's own scope (or the module's), in the order of the text; first its parameters."""
    tree = parsed(source)
    scope = None if tree is None else _scope(tree, function, line)
    if scope is None:
        return ()
    body = scope.body if isinstance(scope.body, list) else [scope.body]  # type: ignore[attr-defined]
    return (*_parameters(scope), *(found for statement in body for found in _within(statement, ())))


def _parameters(scope: ast.AST) -> Iterator[Assignment]:
    """The parameters of a function, whose values are ``ast.arg``: somebody else computed them."""
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        names = scope.args
        for arg in (*names.posonlyargs, *names.args, *names.kwonlyargs, names.vararg, names.kwarg):
            if arg is not None:
                yield Assignment(arg.arg, scope.lineno, scope.lineno, arg, (), scope)


def _scope(tree: ast.Module, function: str, line: int) -> ast.AST | None:
    if function == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == function:
            first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
            if first == line:
                return node
        elif isinstance(node, ast.Lambda) and function == "<lambda>" and node.lineno == line:
            return node
    return None


def _within(statement: ast.AST, inside: tuple[tuple[ast.AST, str], ...]) -> Iterator[Assignment]:
    """The assignments in a statement and in the statements it is made of."""
    if isinstance(statement, _SCOPES):
        return
    header = [
        child
        for name, child in ast.iter_fields(statement)
        if name not in ("body", "orelse", "finalbody", "handlers", "cases")
    ]
    last = max([statement.lineno, *[_end(child) for child in header]]) if hasattr(statement, "lineno") else 0
    for child in header:
        for node in _walk(child):
            if isinstance(node, ast.NamedExpr):
                yield Assignment(node.target.id, statement.lineno, last, node.value, inside, statement)  # type: ignore[attr-defined]
    for name, value in _targets(statement):
        yield Assignment(name, statement.lineno, last, value, inside, statement)  # type: ignore[attr-defined]
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        block = getattr(statement, part, None)
        if isinstance(block, list):
            around = (*inside, (statement, part)) if isinstance(statement, _BRANCHES) else inside
            for i, child in enumerate(block):
                which = part + str(i) if part in ("handlers", "cases") else part
                deeper = (*around[:-1], (statement, which)) if around is not inside else inside
                yield from _within(child, deeper)


def _end(child: Any) -> int:
    children = child if isinstance(child, list) else [child]
    return max([getattr(c, "end_lineno", 0) or 0 for c in children], default=0)


def _walk(child: Any) -> Iterator[ast.AST]:
    for c in child if isinstance(child, list) else [child]:
        if isinstance(c, ast.AST):
            yield from (node for node in ast.walk(c))


def _targets(statement: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """The names a statement gives values to, each with the expression that computes it (None: it deletes them)."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _unpacked(target, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _unpacked(statement.target, statement.value)
    elif isinstance(statement, ast.AugAssign):
        yield from _unpacked(statement.target, ast.BinOp(statement.target, statement.op, statement.value))
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from _unpacked(statement.target, _part(statement.iter))
    elif isinstance(statement, ast.Delete):
        for target in statement.targets:
            yield from _unpacked(target, None)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        for item in statement.items:
            if item.optional_vars is not None:
                yield from _unpacked(item.optional_vars, item.context_expr)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):  # x.mul_(2)
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr.endswith("_") and not function.attr.startswith("_"):
            yield ast.unparse(function.value), statement.value


def _unpacked(target: ast.AST, value: ast.AST | None) -> Iterator[tuple[str, ast.AST | None]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        values = (
            value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
        )
        if any(isinstance(part, ast.Starred) for part in target.elts):
            values = None
        whole = _part(value) if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) else value
        for i, part in enumerate(target.elts):
            yield from _unpacked(part, whole if values is None else values[i])
        return
    if isinstance(target, ast.Starred):
        target = target.value
    yield ast.unparse(target), value
    if isinstance(target, ast.Subscript) and value is not None:  # x[0] = ... changes x
        change = ast.Call(ast.Attribute(target.value, "__setitem__"), [value], [])  # type: ignore[list-item]
        yield ast.unparse(target.value), _placed(change, target)


def _part(value: ast.AST) -> ast.AST:
    """What unpacking or going through a value gives: some item of it."""
    return _placed(ast.Subscript(value, ast.Slice()), value)  # type: ignore[arg-type]


def _placed(made: Any, where: ast.AST) -> Any:
    """A new expression in the place of another."""
    return ast.fix_missing_locations(ast.copy_location(made, where))


def plain(name: str) -> str:
    """A name as ``ast.unparse`` writes it."""
    try:
        return ast.unparse(ast.parse(name, mode="eval"))
    except (SyntaxError, ValueError):
        return name


def latest(found: tuple[Assignment, ...], name: str, line: int | None, op: str = "") -> Assignment | None:
    """The assignment of ``name`` that ran last before ``line`` (None: all of them are past), made by operation ``op``."""
    now = FOREVER if line is None else line
    name = plain(name)
    here = _around(found, now)
    possible: list[Assignment] = []
    for one in found:
        if one.name != name:
            continue
        if one.last < now:
            if sure(one, now):
                possible = []
            possible.append(one)
        elif any(covers(loop, now) for loop in one.loops()) and one not in here:
            possible.append(one)
    possible = [one for one in possible if one.value is not None and not isinstance(one.value, ast.arg)]
    if len(possible) > 1:
        fitting = [one for one in possible if op and op in operations(one.value)]
        if fitting:
            return fitting[-1]
        if any(isinstance(statement, (ast.If, ast.Try, ast.TryStar, ast.Match)) and not covers(statement, now)
               for statement, _ in possible[-1].inside):  # fmt: skip
            return None
        past = [one for one in possible if one.last < now]
        return past[-1] if past else None
    return possible[0] if possible else None


def _around(found: tuple[Assignment, ...], line: int) -> list[Assignment]:
    """The assignments that are being computed on this line."""
    return [one for one in found if one.first <= line <= one.last]


def covers(statement: ast.AST, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or 0)  # type: ignore[attr-defined]


def sure(one: Assignment, line: int) -> bool:
    """Whether an assignment above a line must have run before it."""
    for statement, part in one.inside:
        block = getattr(statement, part.rstrip("0123456789"), [])
        if part[-1:].isdigit():
            block = [block[int(part.lstrip("abcdefghijklmnopqrstuvwxyz"))]]
        if not (block and block[0].lineno <= line <= (block[-1].end_lineno or 0)):
            return False
    return True


_OPERATORS = {
    ast.Add: ("add",),
    ast.Sub: ("sub", "rsub"),
    ast.Mult: ("mul",),
    ast.Div: ("div",),
    ast.MatMult: ("mm", "bmm", "mv", "dot", "matmul"),
    ast.Pow: ("pow",),
    ast.Mod: ("remainder",),
    ast.USub: ("neg",),
}
_CALLS = {
    "matmul": ("mm", "bmm", "mv", "dot", "matmul"),
    "to": ("cast",),
    "float": ("cast",),
    "double": ("cast",),
    "astype": ("cast",),
    "T": ("transpose", "permute", "t"),
    "view": ("reshape",),
    "flatten": ("reshape",),
}


def operations(value: ast.AST | None) -> tuple[str, ...]:
    """The operations that an expression may end with."""
    if isinstance(value, ast.BinOp):
        return _OPERATORS.get(type(value.op), ())
    if isinstance(value, ast.UnaryOp):
        return _OPERATORS.get(type(value.op), ())
    if isinstance(value, ast.Subscript):
        return ("getitem", "select", "slice", "index", "gather", "take")
    name = called(value)
    return _CALLS.get(name, (name,)) if name else ()


def operation(value: ast.AST | None) -> str:
    """What an expression ends with: the function it calls, or the row of its operator; empty for anything else."""
    return called(value) if isinstance(value, ast.Call) else next(iter(operations(value)), "")


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


def holds(value: ast.AST | None, item: str, computed: bool = False) -> bool:
    """Whether an expression can have made a thing with this item (``["w"]``, ``[0]``) or attribute (``.w``).

    ``computed``: it was computed from others. Then a call that only made the object does not say where.
    """
    if isinstance(value, ast.Dict):
        keys = [None if key is None else f"[{ast.unparse(key)}]" for key in value.keys]  # None: **others
        return item.replace('"', "'") in keys or (None in keys and not computed)
    if isinstance(value, (ast.List, ast.Tuple)):
        number = item[1:-1]
        return number.isdigit() and int(number) < len(value.elts)
    return isinstance(value, (ast.ListComp, ast.DictComp)) or (
        not computed and isinstance(value, (ast.Call, ast.Await))
    )


class Call(NamedTuple):
    """A call of a method: its line, what it is called on, whether it has arguments, and whether it stands in a loop."""

    line: int
    on: str
    arguments: bool
    loop: bool
    node: ast.Call


@functools.lru_cache(maxsize=64)
def _calls(source: str, function: str, first: int, method: str) -> tuple[tuple[Call, tuple[ast.AST, ...]], ...]:
    tree = parsed(source)
    scope = None if tree is None else _scope(tree, function, first)
    found: list[tuple[Call, tuple[ast.AST, ...]]] = []
    stack: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [] if scope is None else [(scope, ())]
    while stack:
        node, loops = stack.pop()
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == method:
            on = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            call = Call(node.func.end_lineno or node.lineno, on, bool(node.args or node.keywords), bool(loops), node)
            found.append((call, loops))
        inside = (*loops, node) if isinstance(node, _LOOPS) else loops
        stack.extend((child, inside) for child in ast.iter_child_nodes(node) if not isinstance(child, _SCOPES))
    return tuple(sorted(found, key=lambda pair: pair[0].line))


def calls_before(source: str, function: str, first: int, method: str, line: int | None) -> list[Call]:
    """The calls of a method, in one scope, that can have run before the line that it has come to."""
    now = FOREVER if line is None else line
    found = _calls(source, function, first, method)
    return [call for call, loops in found if call.line < now or any(covers(loop, now) for loop in loops)]
