"""Where an error happens in the user's program: the code that runs, the names in it, and what was done before.

Nothing is recorded for this. Everything is read from the frames and the source when a message is written, and where
there is no source (or it can't be read) the messages say less.
"""

from __future__ import annotations

import ast
import dis
import linecache
from collections.abc import Iterator
from itertools import islice
from types import ModuleType
from typing import Any, NamedTuple

from chainrule.errors.assignments import called, cells_before, lines_of, names_in, parsed, plain, syntax
from chainrule.errors.source import Found, Names, SourceLine
from chainrule.errors.words import Where, shape_of, user_frame

_NEAR = 2000  # as many nodes of a graph are looked at for a message


class Running(NamedTuple):
    """What a frame is just doing: the bytecode instruction, and the source text it was made from."""

    instruction: str
    text: str


def running(frame: Any, at: int | None = None) -> Running:
    """The instruction that a frame is (or was) at, and its source text ('' where there is none)."""
    if frame is None:
        return Running("", "")
    code, at = frame.f_code, frame.f_lasti if at is None else at
    instruction = dis.opname[code.co_code[at]]
    line, end, first, last = next(islice(code.co_positions(), at // 2, None), (None,) * 4)
    if line is None or end is None or first is None or last is None:
        return Running(instruction, "")
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(line, end + 1)]
    lines[-1] = lines[-1][:last]
    lines[0] = lines[0][first:]
    return Running(instruction, b"".join(lines).decode(errors="replace"))


def expression() -> ast.expr | None:
    """The expression of the user's program that is being computed."""
    return getattr(syntax(running(user_frame()).text.strip(), "eval"), "body", None)


def with_arrays() -> str:
    """The call that the user's program is making, with detached arrays for the tensors in it; '' if it is not short."""
    call, names = expression(), Names()
    if not isinstance(call, ast.Call):
        return ""
    tensors = {found.name: found.thing._edge for found in names.found if hasattr(type(found.thing), "_edge")}

    class Arrays(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id not in tensors:
                return node
            return ast.Name(f"{node.id}.numpy()" if tensors[node.id] is None else f"{node.id}.detach().numpy()")

    text = ast.unparse(Arrays().visit(call))
    return text if len(text) <= 80 and ".numpy()" in text else ""


def argument() -> str:
    """The source of the first argument of the call that the user's program is making, if that is short; else ''."""
    call = expression()
    text = ast.unparse(call.args[0]) if isinstance(call, ast.Call) and call.args else ""
    return text if len(text) <= 50 else ""


def operands(function: str, x: Any, y: Any, otherwise: tuple[str, str]) -> tuple[str, str]:
    """What to call the two operands of a function or operator: the user's names for them, or their source, if short."""
    value, parts = expression(), []
    if isinstance(value, ast.BinOp):
        parts = [value.left, value.right]
    elif isinstance(value, ast.Call) and called(value) == function and len(value.args) == 2:
        parts = value.args
    texts = [_as_operand(part) for part in parts] or ["", ""]
    p, q = (named(x) or texts[0] or otherwise[0], named(y) or texts[1] or otherwise[1])
    return p, q


def _as_operand(part: ast.expr) -> str:
    text = ast.unparse(part)
    simple = isinstance(part, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return "" if len(text) > 24 else text if simple else f"({text})"


def receiver(method: str) -> str:
    """The source of x in the user's running ``x.method(...)`` or ``module.method(x)``, if that is short; else ''."""
    call = expression()
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == method:
        text = ast.unparse(call.func.value)
        if _is_module(text):
            return argument()
        if len(text) <= 30:
            return (
                text if isinstance(call.func.value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({text})"
            )
    return ""


def _is_module(text: str) -> bool:
    """Whether a name that the user's program reads, such as ``torch.autograd``, begins with a module."""
    frame, name = user_frame(), text.split(".")[0]
    return isinstance(frame.f_locals.get(name, frame.f_globals.get(name)), ModuleType)


def receiver_of_attribute(name: str, frame: Any = None, at: int | None = None) -> str:
    """The source of x in the ``x.name`` that a frame is (or was) at, if that is short; else ''."""
    text = running(frame or user_frame(), at).text
    return text.removesuffix("." + name) if text.endswith("." + name) and len(text) < 30 else ""


def out_of_place(text: str, name: str = "") -> str:
    """How to write a line that changes a tensor (called ``name``) in place without that; '' if it is not known."""
    body: list[Any] = getattr(syntax(text), "body", [])
    if len(body) != 1:
        return ""
    (statement,) = body
    if isinstance(statement, ast.AugAssign):
        x = ast.unparse(statement.target)
        item_of_a_list = x == plain(name)
        if item_of_a_list or not isinstance(statement.target, ast.Subscript):
            return f"Write `{x} = {ast.unparse(ast.BinOp(statement.target, statement.op, statement.value))}`."
        x = ast.unparse(statement.target.value)
        return f"Write to a copy: `{x} = {_copied(x)}` before it."
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        x = ast.unparse(statement.targets[0].value)
        return f"Write to a copy: `{x} = {_copied(x)}` before it."
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        if isinstance(func, ast.Attribute) and func.attr.endswith("_"):
            x = ast.unparse(func.value)
            call = ast.Call(ast.Attribute(func.value, func.attr[:-1]), statement.value.args, statement.value.keywords)
            return f"Write `{x} = {ast.unparse(call)}`."
    return ""


def _copied(name: str) -> str:
    """How the user's program copies what a variable holds: a tensor, or an array."""
    frame = user_frame()
    value = None if frame is None else frame.f_locals.get(name, frame.f_globals.get(name))
    return f"{name}.copy()" if hasattr(value, "copy") and not hasattr(value, "clone") else f"{name}.clone()"


# -- nodes ----------------------------------------------------------------------------------------------------------------


def op_at(node: Any) -> str:
    """An operation and its line: ``exp (t.py:3)``."""
    line = Names().line(node)
    known = line is not None and Where(line.file, line.line)
    return f"{node.prim.name} ({line})" if known else str(node.prim.name)


def named(thing: Any) -> str:
    """The user's name of a tensor, of the value at an edge, or of an array; '' if it has none."""
    return Names().of(thing) or ""


def described(tensor: Any, name: str) -> str:
    """A tensor and what made it: ``c = mul (t.py:4)``."""
    node = getattr(tensor, "grad_fn", None)
    return name if node is None else f"{name} = {op_at(node)}"


def near(edge: Any) -> Iterator[Any]:
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


def leaves(edge: Any) -> list[Any]:
    """The leaf tensors, still alive, that an edge leads to."""
    tensors = [item.tensor() for item in near(edge) if _is_leaf(item)]
    return [tensor for tensor in tensors if tensor is not None]


def leaf_names(edge: Any) -> list[str]:
    """The names of the leaves that an edge leads to."""
    names = Names()
    return sorted({names.of(leaf) or "" for leaf in leaves(edge)} - {""})


def _is_leaf(edge: Any) -> bool:
    return hasattr(type(edge), "variable")


def path(edge: Any) -> str:
    """What is at an edge, and what that is computed from: ``sum ← mul ← a``, up to where it branches."""
    words: list[str] = []
    while not _is_leaf(edge):
        node = getattr(edge, "node", edge)
        words.append((named(edge) if words else "") or node.prim.name)
        below = [e for e in node.edges if e is not None]
        if len(below) != 1 or len(words) > 5:
            return " ← ".join([*words, ", ".join(leaf_names(edge)) or "…"])
        (edge,) = below
    return " ← ".join([*words, named(edge) or "a leaf without a name"])


# -- the program before the line that runs --------------------------------------------------------------------------------

_KEEPS = ("retain_graph", "create_graph")


def earlier_pass(node: Any) -> str:
    """The backward pass before the one that runs, which freed a node: `loss.backward()` (t.py:8); '' if not known."""
    frame = user_frame()
    if frame is None:
        return ""
    file, now = frame.f_code.co_filename, frame.f_lineno
    scope, names = _scope(frame), Names()
    made = names.line(node)
    loops = [item for item in ast.walk(scope) if isinstance(item, (ast.For, ast.While))] if scope is not None else []
    around = [loop for loop in loops if loop.lineno <= now <= (loop.end_lineno or 0)]
    calls = [(file, call) for call in _passes(scope) if call.lineno < now]
    if isinstance(scope, ast.Module):
        for cell in cells_before(file):
            calls = [*((cell, call) for call in _passes(parsed("".join(lines_of(cell))))), *calls]
            if made is None or made.file == cell:
                break
    if made is not None:
        once = {loop.lineno for loop in loops if not loop.lineno <= made.line <= (loop.end_lineno or 0)}
        repeated = len(once) < len(loops) and made.file == file
        calls = [(f, call) for f, call in calls if f != made.file or call.lineno >= made.line or repeated]
    reach = [(f, call, _reaches(call, node, names)) for f, call in calls]
    likely = [one for one in reach if one[2]] or [one for one in reach if one[2] is None]
    found = Where(likely[-1][0], likely[-1][1].lineno) if likely else None
    inside = found is not None and found.file == file and any(found.line >= loop.lineno for loop in around)
    if not around or inside:
        return "" if not found else found.quoted
    here = Where(file, around[-1].lineno)
    again = f"this line, in an earlier round of the loop ({here})"
    return again if not found else f"{found.quoted}, or by {again}"


def _passes(scope: ast.AST | None) -> list[ast.Call]:
    """The calls of a scope that free what the graph saved, in the order of the text."""
    found: list[ast.Call] = []
    stack = [] if scope is None else [scope]
    while stack:
        item = stack.pop()
        if isinstance(item, ast.Call) and _sweeps(item):
            found.append(item)
        functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        stack += [child for child in ast.iter_child_nodes(item) if not isinstance(child, functions)]
    return sorted(found, key=lambda call: call.lineno)


def _reaches(call: ast.Call, node: Any, names: Names) -> bool | None:
    """Whether a backward pass goes through a node, by what its output is called now; None: nothing is called so."""
    method = isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and not call.args[1:]
    parts = [*([call.func.value] if method else []), *call.args[:1]]  # type: ignore[attr-defined]
    read = {name for part in parts for name in names_in(part)}
    tensors = [
        found.thing for found in names.found if found.name in read and getattr(found.thing, "_edge", None) is not None
    ]
    if not tensors:
        return None
    return any(getattr(edge, "node", edge) is node for tensor in tensors for edge in near(tensor._edge))


def _scope(frame: Any) -> ast.AST | None:
    """The innermost function of the source around the line that a frame is at, or the whole source."""
    scope: Any = None if frame is None else parsed("".join(lines_of(frame.f_code.co_filename, frame.f_globals)))
    items = [] if scope is None else list(ast.walk(scope))
    for function in [item for item in items if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]:
        if function.lineno <= frame.f_lineno <= (function.end_lineno or 0):
            scope = function
    return scope  # type: ignore[no-any-return]


def _sweeps(call: ast.Call) -> bool:
    """Whether a call is of a backward pass that frees what the graph saved."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in ("backward", "grad") and not any(keyword.arg in _KEEPS for keyword in call.keywords)


class Origin(NamedTuple):
    """A value that another one was computed from: the variable, what was assigned to it, and on which line."""

    found: Found
    value: Any
    line: SourceLine


def origins(tensor: Any) -> Iterator[Origin]:
    """The assignments that a tensor's value comes from, nearest first, by the names in them."""
    names = Names()
    first = names.find(tensor)
    waiting = [first] if first is not None else [f for f in names.found if f.name in names_in(expression())]
    seen = set()
    while waiting:
        found = waiting.pop(0)
        one = names.assignment(found)
        if one is None or found.name in seen:
            continue
        seen.add(found.name)
        yield Origin(found, one[0].value, one[1])
        waiting += names.read_by(found)
        waiting += [Found(name, None, found.place) for name in names_in(one[0].value) if name.isidentifier()]


_NUMBERS = {"item", "tolist", "numpy", "asarray", "array", "float", "int"}


def left_graph(tensor: Any) -> str:
    """Where a tensor's history went through plain numbers: ``x.sum().item()``, with its line; '' where it did not."""
    for origin in origins(tensor):
        number = _number_in(origin.value)
        if number:
            return f"`{number}` ({origin.line})"
        for call, line in Names().calls("append"):
            number = _number_in(call.node) if call.on == origin.found.name and call.on.isidentifier() else ""
            if number:
                return f"`{number}` ({line})"
    return ""


def _number_in(value: ast.AST | None) -> str:
    """The part of an expression that makes a plain number or array of a tensor; '' if there is none."""
    for item in ast.walk(value) if value is not None else ():
        if isinstance(item, ast.Call) and _gives_numbers(item) and names_in(item):
            return ast.unparse(item)
    return ""


def used_data(tensor: Any) -> str:
    """Where a tensor's history took ``.data`` of another: `` in `y = x.data * 2` (t.py:3)``; '' if that is not known."""
    for origin in origins(tensor):
        items = ast.walk(origin.value) if origin.value is not None else ()
        if any(isinstance(item, ast.Attribute) and item.attr == "data" for item in items):
            return f" in {Where(origin.line.file, origin.line.line).quoted}"
    return ""


def _gives_numbers(call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute):
        return func.attr in _NUMBERS or (isinstance(func.value, ast.Name) and func.value.id == "math")
    return isinstance(func, ast.Name) and func.id in _NUMBERS


def unmarked(tensor: Any) -> tuple[str, SourceLine] | None:
    """The variable at the start of a tensor's history, which could have required grad, and its line."""
    last = None
    for origin in origins(tensor):
        thing = origin.found.thing
        dtype = getattr(getattr(thing, "_raw", None), "dtype", None)
        if thing is not tensor and dtype is not None and dtype.kind in "fc":
            last = (origin.found.name, origin.line)
    return last


def of_shape(edge: Any, shape: tuple[int, ...]) -> str:
    """The name of a leaf of this shape among what an edge leads to, or ''."""
    return next((named(leaf) for leaf in leaves(edge) if shape_of(leaf) == shape), "")
