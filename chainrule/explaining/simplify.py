"""From a row's formula to the tree of one node's: what the call decided is put in, and choices that hang on it are made."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from chainrule.rows.primitive import Primitive

_OPEN = {"np", "slice", "tuple", "max", "min", "len"}


def cotangent_name(prim: Primitive, index: int = 0) -> str:
    """How the tree calls the cotangent of an output."""
    return "g" if len(prim.outputs) == 1 else f"g_{index}"


def copied(node: Any) -> Any:
    if isinstance(node, list):
        return [copied(n) for n in node]
    if not isinstance(node, ast.AST):
        return node
    new = type(node)(**{name: copied(value) for name, value in ast.iter_fields(node)})
    if getattr(node, "literal", False):
        new.literal = True  # type: ignore[attr-defined]
    return new


class Renamed(ast.NodeTransformer):
    def __init__(self, call: Callable[[str], str]) -> None:
        self.call = call

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self.call(node.id), node.ctx), node)


def free_names(tree: ast.AST) -> set[str]:
    """The names an expression reads, without those that its own lambdas and comprehensions bind."""
    if isinstance(tree, ast.Name):
        return {tree.id}
    if isinstance(tree, ast.Lambda):
        return free_names(tree.body) - {a.arg for a in tree.args.args}
    if isinstance(tree, (ast.ListComp, ast.GeneratorExp)):
        bound = {n.id for c in tree.generators for n in ast.walk(c.target) if isinstance(n, ast.Name)}
        inside = free_names(tree.elt).union(*[free_names(i) for c in tree.generators for i in c.ifs])
        return (inside - bound).union(*[free_names(c.iter) for c in tree.generators])
    found: set[str] = set()
    for child in ast.iter_child_nodes(tree):
        found |= free_names(child)
    return found


_PARSED: dict[str, ast.expr] = {}


def parsed(text: str) -> ast.expr:
    """The tree of a row's text, in which no lambda calls its argument as something else is called."""
    if text not in _PARSED:
        tree = ast.parse(text, mode="eval").body
        _PARSED[text] = _Unshadowed(free_names(tree)).visit(tree)
    return _PARSED[text]


class _Unshadowed(ast.NodeTransformer):
    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        shadows = {a.arg for a in node.args.args} & self.taken
        for argument in node.args.args:
            argument.arg += "_" * (argument.arg in shadows)
        node.body = Renamed(lambda name: name + "_" * (name in shadows)).visit(node.body)
        return node


def simplified(
    prim: Primitive,
    text: str,
    constants: Mapping[str, Any],
    position: int,
    real: bool,
    conjugated: tuple[str, ...] = (),
) -> ast.expr:
    """The tree of a formula, with ``constants`` (parameters, shapes, plain numbers) put in as literals.

    Args:
        position: which operand, for a variadic row, whose formula gives a tuple.
        real: no operand is complex, so conjugates are left out.
        conjugated: operands to conjugate: a holomorphic rule on complex numbers.
    """
    tree = parsed(text)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "unbroadcast":
        tree = tree.args[0]  # to sum over stretched axes is left to Formula
    tree = _Row(prim, position, real, conjugated).visit(copied(tree))
    folded: ast.expr = _Folded(constants).visit(tree)
    return folded


class _Row(ast.NodeTransformer):
    """Puts one tree in place of what depends on the kind of row: several outputs, many operands, real numbers."""

    def __init__(self, prim: Primitive, position: int, real: bool, conjugated: tuple[str, ...]) -> None:
        self.prim = prim
        self.position = position
        self.real = real
        self.conjugated = conjugated

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        several = len(self.prim.outputs) > 1
        if (
            several
            and isinstance(node.value, ast.Name)
            and node.value.id == "g"
            and isinstance(node.slice, ast.Constant)
        ):
            return ast.Name(cotangent_name(self.prim, cast(int, node.slice.value)), ast.Load())
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        known = self.prim.operands
        if node.attr != "dtype":
            known = (*known, *self.prim.outputs, "out", "g")
        if node.attr in ("dtype", "shape", "size") and name in known:
            return ast.Name(f"{name}_{node.attr}", ast.Load())
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        if self.prim.variadic and isinstance(node.func, ast.Name) and node.func.id == "tuple":
            inner = self.generic_visit(node).args[0]  # type: ignore[attr-defined]
            return ast.Subscript(inner, ast.Constant(self.position), ast.Load())
        node = self.generic_visit(node)  # type: ignore[assignment]
        called = ast.unparse(node.func)
        if called == "np.einsum" and self.prim.name in ("mv", "vm", "dot"):
            return _plain_product(*node.args)
        if called == "H":
            turned = ast.Attribute(node.args[0], "mT", ast.Load())
            return turned if self.real else _np("conj", turned)
        if self.real and called in ("np.conjugate", "np.conj", "np.real"):
            return node.args[0]
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        return _np("conj", node) if node.id in self.conjugated else node


def _plain_product(subscripts: ast.expr, a: ast.expr, b: ast.expr) -> ast.expr:
    """The products of vectors and matrices by their own names."""
    spec = ast.literal_eval(subscripts).replace("...", "")
    if spec in ("i,k->ik", "k,j->kj"):
        return _np("outer", a, b)
    if spec == "ik,i->k":
        return ast.BinOp(ast.Attribute(a, "mT", ast.Load()), ast.MatMult(), b)
    if spec == "j,kj->k":
        return ast.BinOp(b, ast.MatMult(), a)
    return ast.BinOp(a, ast.Mult(), b)


def _np(function: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), function, ast.Load()), list(args), [])


def ones_for(name: str, tree: ast.expr) -> ast.expr:
    """The tree with 1 in place of a name: of a rule without its cotangent, the partial derivative."""
    return _Ones(name).visit(copied(tree))  # type: ignore[no-any-return]


class _Ones(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self.name = name

    def visit(self, node: Any) -> Any:
        if isinstance(node, ast.Name) and node.id == self.name:
            return ast.Constant(1)
        return _tidy(super().visit(node))


class _Folded(ast.NodeTransformer):
    """Evaluates what depends on constants only, and makes the choices that they decide."""

    def __init__(self, constants: Mapping[str, Any]) -> None:
        self.constants = constants

    def visit(self, node: Any) -> Any:
        if isinstance(node, ast.expr):
            names = free_names(node)
            known = names & self.constants.keys()
            if known and names <= known | _OPEN and not isinstance(node, (ast.Lambda, ast.Starred)):
                found = self._literal(node)
                if found is not None:
                    return found
        node = super().visit(node)
        return _tidy(node)

    def _literal(self, node: ast.expr) -> ast.expr | None:
        code = compile(ast.fix_missing_locations(ast.Expression(copied(node))), "<formula>", "eval")
        try:
            with np.errstate(all="ignore"):
                value = eval(code, {"np": np, **self.constants})
        except Exception:
            return None
        if (
            isinstance(value, np.ndarray)
            and value.ndim == 1
            and value.dtype.kind in "iu"
            and not isinstance(node, ast.Name)
        ):
            value = value.tolist()  # axes, lengths: computed from what was given
        return literal(value)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        node.slice = _as_index(node.slice)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            return self.visit(node.body if test.value else node.orelse)
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))


def _tidy(node: Any) -> Any:
    """``np.where(True, a, b)`` is a, ``True * a`` is a, ``a ** 1`` is a, ``a * 2 / 6`` is ``a / 3``."""
    if (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "np.broadcast_to"
        and isinstance(node.args[0], ast.Call)
    ):
        return _unexpanded(node)
    if (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "np.where"
        and _literal_of(node.args[0]) in (True, False)
    ):
        return node.args[1] if _literal_of(node.args[0]) else node.args[2]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.transpose", "np.swapaxes"):
        axes = [ast.unparse(a) for a in node.args[1:]]
        if axes == ["[1, 0]"]:
            return ast.Attribute(node.args[0], "T", ast.Load())
        if sorted(axes) == ["-1", "-2"]:
            return ast.Attribute(node.args[0], "mT", ast.Load())
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mult) and _is_one(node.left):
            return node.right
        if isinstance(node.op, (ast.Mult, ast.Pow, ast.Div)) and _is_one(node.right):
            return node.left
        if isinstance(node.op, (ast.Add, ast.Sub)) and _literal_of(node.right) == 0:
            return node.left
        if isinstance(node.op, ast.Div) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mult):
            times, over = _literal_of(node.left.right), _literal_of(node.right)
            if type(times) is type(over) is int and times and over % times == 0:
                return _tidy(ast.BinOp(node.left.left, ast.Div(), cast(ast.expr, literal(over // times))))
    return node


def _unexpanded(node: ast.Call) -> ast.Call:
    """Broadcasting adds leading axes by itself."""
    inner = node.args[0]
    if ast.unparse(inner.func) == "np.expand_dims":  # type: ignore[attr-defined]
        try:
            axes, shape = ast.literal_eval(inner.args[1]), ast.literal_eval(node.args[1])  # type: ignore[attr-defined]
        except ValueError:
            return node
        axes = axes if isinstance(axes, tuple) else (axes,)
        if {a % len(shape) for a in axes} == set(range(len(axes))):
            return ast.Call(node.func, [inner.args[0], *node.args[1:]], [])  # type: ignore[attr-defined]
    return node


def _literal_of(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else ...


def _is_one(node: ast.expr) -> bool:
    value = _literal_of(node)
    return value is True or (type(value) in (int, float) and value == 1)


def literal(value: Any) -> ast.expr | None:
    """A value as an expression, if it is short; it is marked as one that the user's call decided."""
    node = _literal_node(value)
    if node is not None:
        node.literal = True  # type: ignore[attr-defined]
    return node


def _literal_node(value: Any) -> ast.expr | None:
    if isinstance(value, (np.bool_, np.integer, np.floating)) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
    ):
        value = value.item()
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, str)):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and (value != value or abs(value) == np.inf):
            text = "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"
            return ast.parse(text, mode="eval").body
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        return ast.Constant(value)
    if isinstance(value, np.dtype):
        return ast.Attribute(ast.Name("np", ast.Load()), value.name, ast.Load())
    if isinstance(value, slice):
        parts = _literal_nodes((value.start, value.stop, value.step))
        return None if parts is None else ast.Call(ast.Name("slice", ast.Load()), parts, [])
    if isinstance(value, np.ndarray) and value.ndim == 1 and 1 <= value.size <= 8 and value.dtype.kind in "iub":
        items = ast.parse(repr(value.tolist()), mode="eval").body
        return _np("array", items)
    if isinstance(value, (tuple, list)) and len(value) <= 12:
        entries = _literal_nodes(value)
        return None if entries is None else (ast.Tuple if isinstance(value, tuple) else ast.List)(entries, ast.Load())
    return None


def _literal_nodes(values: Sequence[Any]) -> list[ast.expr] | None:
    """All of them, or None."""
    nodes = [node for node in map(_literal_node, values) if node is not None]
    return nodes if len(nodes) == len(values) else None


def _as_index(node: ast.expr) -> ast.expr:
    """``x[(slice(None), 1)]`` as ``x[:, 1]``."""
    if isinstance(node, ast.Tuple):
        if len(node.elts) == 1:
            return _as_index(node.elts[0])
        return ast.Tuple([_as_index(e) for e in node.elts], ast.Load())
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "slice":
        lower, upper, step = [None if _literal_of(a) is None else a for a in node.args]
        return ast.Slice(lower, upper, step)
    return node
