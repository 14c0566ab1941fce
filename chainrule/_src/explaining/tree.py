"""Expression trees of formulas: Python's ``ast``, with further nodes for formulas of single elements, and helpers.

``formula``, ``elements``, ``simplify`` and ``notation`` build and transform these trees.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import numpy as np

from chainrule._src.arrays.types import AnyFunction, NumpyArray, Params

IndexLetters = tuple[Any, ...]  # letters, numbers, or text such as "3-i"


class NoForm(Exception):
    """Raised if a formula has no form for one element."""


class _Node(ast.expr):
    def __init__(self, *values: Any, **fields: Any) -> None:
        super().__init__(*values, **fields)


class Entry(_Node):
    """An element of an array: ``X[i,k]``."""

    _fields = ("name", "index")
    name: str
    index: IndexLetters


class Sigma(_Node):
    """A sum over letters, with the text below its sign: ``("j",)`` or ``("k≥i",)``."""

    _fields = ("below", "body")
    below: tuple[str, ...]
    body: ast.expr


class Relation(_Node):
    """A relation of indices, such as ``"j ≤ i + 1"``: 1 if it holds, else 0."""

    _fields = ("text",)
    text: str


def copy_tree(node: object, part: ast.expr | None = None, new: ast.expr | None = None) -> Any:
    """Copy a tree; replace ``part`` by ``new``."""
    if part is not None and node is part:
        return new
    if isinstance(node, list):
        return [copy_tree(n, part, new) for n in node]
    if not isinstance(node, ast.AST):
        return node
    return type(node)(**{name: copy_tree(value, part, new) for name, value in ast.iter_fields(node)})


class RenameNames(ast.NodeTransformer):
    def __init__(self, call: Callable[[str], str]) -> None:
        self.call = call

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.call(node.id), node.ctx)


class SubstituteIndices(ast.NodeTransformer):
    """Replaces indices by letters."""

    def __init__(self, letters: Mapping[Any, Any]) -> None:
        self.letters = letters

    def visit_Entry(self, node: Entry) -> ast.AST:
        return Entry(node.name, tuple(self.letters.get(i, i) for i in node.index))


def free_names(tree: ast.AST) -> set[str]:
    """Return the names that an expression reads, without those that its lambdas and comprehensions bind."""
    nodes = list(ast.walk(tree))
    if not any(isinstance(n, (ast.Lambda, ast.ListComp, ast.GeneratorExp)) for n in nodes):
        return {n.id for n in nodes if isinstance(n, ast.Name)}
    found: set[str] = set().union(*map(free_names, ast.iter_child_nodes(tree)))
    if isinstance(tree, ast.Lambda):
        return found - {a.arg for a in tree.args.args}
    if isinstance(tree, (ast.ListComp, ast.GeneratorExp)):
        return found - {n.id for c in tree.generators for n in ast.walk(c.target) if isinstance(n, ast.Name)}
    return found


def evaluate_tree(tree: ast.expr, names: Params) -> Any:
    """Return the tree's value."""
    code = compile(ast.fix_missing_locations(ast.Expression(tree)), "<formula>", "eval")
    with np.errstate(all="ignore"):
        return eval(code, dict(names))


def call_name(node: object) -> str:
    """Return the name of the function that an expression calls, without ``np.``; "" if it is not a call."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if of_numpy(node.func) else ast.unparse(node.func).removeprefix("np.")


_signature = functools.cache(inspect.signature)


def accepts_arguments(function: Any, *args: object, **kwargs: object) -> TypeGuard[AnyFunction]:
    """Return whether ``function`` is a method that accepts these arguments."""
    try:
        return function is not None and bool(_signature(function.__func__).bind(None, *args, **kwargs))
    except TypeError:
        return False


def of_numpy(node: object) -> TypeGuard[ast.Attribute]:
    """Return whether an expression is ``np.something``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np"


def constant_node(x: Any) -> ast.expr:
    """Return a plain number as an expression."""
    if isinstance(x, float) and x == 0:
        negative = math.copysign(1, x) < 0
    else:
        negative = not isinstance(x, complex) and x < 0
    return ast.UnaryOp(ast.USub(), ast.Constant(-x)) if negative else ast.Constant(x)


def product_node(left: ast.expr, right: ast.expr) -> ast.BinOp:
    return ast.BinOp(left, ast.Mult(), right)


def numpy_call(function: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), function, ast.Load()), list(args), [])


def is_scalar(x: NumpyArray) -> bool:
    """Return whether a value has no axes."""
    return x.ndim == 0 if isinstance(x, np.ndarray) else isinstance(x, (bool, int, float, complex, np.generic))
