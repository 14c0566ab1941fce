"""Specialize the formula of an op definition to one node: substitute constants, and evaluate conditions on them.

``rules`` passes the text of a formula and the parameters, shapes and scalars of a node to ``simplify_formula``, which returns the tree.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any, cast

import numpy as np

from chainrule._src.arrays.types import Params
from chainrule._src.explaining.tree import (
    RenameNames,
    call_name,
    copy_tree,
    evaluate_tree,
    free_names,
    numpy_call,
    product_node,
)
from chainrule._src.rules.primitive import Primitive

_OPEN = {"np", "slice", "tuple", "max", "min", "len"}  # functions that a constant expression may call
_PARSED: dict[str, ast.expr] = {}


def cotangent_name(prim: Primitive, index: int = 0) -> str:
    """Return the name of an output's cotangent in the tree."""
    return "g" if len(prim.outputs) == 1 else f"g_{index}"


def parse_formula(text: str) -> ast.expr:
    """Parse a formula; rename lambda parameters that shadow other names."""
    if text not in _PARSED:
        tree = ast.parse(text, mode="eval").body
        _PARSED[text] = _RenameShadows(free_names(tree)).visit(tree)
    return _PARSED[text]


class _RenameShadows(ast.NodeTransformer):
    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        shadows = {a.arg for a in node.args.args} & self.taken
        for argument in node.args.args:
            argument.arg += "_" * (argument.arg in shadows)
        node.body = RenameNames(lambda name: name + "_" * (name in shadows)).visit(node.body)
        return node


def simplify_formula(
    prim: Primitive,
    text: str,
    constants: Params,
    scalars: Collection[str],
    position: int,
    real: bool,
    conjugated: tuple[str, ...] = (),
) -> ast.expr:
    """Return the tree of a formula, with ``constants`` (parameters, shapes, plain numbers) as literals.

    Args:
        scalars: names of arrays without axes, which need no new axes for broadcasting.
        position: index of the operand, for a variadic primitive, whose formula returns a tuple.
        real: whether no operand is complex, so that conjugates are omitted.
        conjugated: operands to conjugate, for a holomorphic rule on complex numbers.
    """
    tree = parse_formula(text)
    if isinstance(tree, ast.Call) and call_name(tree) == "unbroadcast":
        tree = tree.args[0]  # Formula sums over broadcast axes
    tree = _AdaptToRow(prim, position, real, conjugated).visit(copy_tree(tree))
    folded: ast.expr = _FoldConstants(constants, scalars).visit(tree)
    return folded


class _AdaptToRow(ast.NodeTransformer):
    """Replaces expressions that depend on the primitive: several outputs, variadic operands, real numbers."""

    def __init__(self, prim: Primitive, position: int, real: bool, conjugated: tuple[str, ...]) -> None:
        self.prim = prim
        self.position = position
        self.real = real
        self.conjugated = conjugated

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if len(self.prim.outputs) > 1 and _is_name(node.value, "g") and isinstance(node.slice, ast.Constant):
            return ast.Name(cotangent_name(self.prim, cast(int, node.slice.value)), ast.Load())
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        known = self.prim.operands
        if node.attr != "dtype":
            known = (*known, *self.prim.outputs, "out", "g")
        if node.attr in ("dtype", "shape", "size") and isinstance(node.value, ast.Name) and node.value.id in known:
            return ast.Name(f"{node.value.id}_{node.attr}", ast.Load())
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if self.prim.variadic and call_name(node) == "tuple":
            self.generic_visit(node)
            return ast.Subscript(node.args[0], ast.Constant(self.position), ast.Load())
        self.generic_visit(node)
        name = call_name(node)
        if name == "einsum" and len(node.args) == 3:
            return _plain_product(node, *node.args)
        if name == "H":
            turned = ast.Attribute(node.args[0], "mT", ast.Load())
            return turned if self.real else numpy_call("conj", turned)
        if self.real and name in ("conjugate", "conj", "real"):
            return node.args[0]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return numpy_call("conj", node) if node.id in self.conjugated else node


def _plain_product(node: ast.Call, subscripts: ast.expr, a: ast.expr, b: ast.expr) -> ast.expr:
    """Replace einsum of vectors and matrices by outer, ``@`` and ``*``."""
    spec = ast.literal_eval(subscripts).replace("...", "")
    if spec in ("i,k->ik", "k,j->kj"):
        return numpy_call("outer", a, b)
    if spec == "ik,i->k":
        return ast.BinOp(ast.Attribute(a, "mT", ast.Load()), ast.MatMult(), b)
    if spec == "j,kj->k":
        return ast.BinOp(b, ast.MatMult(), a)
    return product_node(a, b) if spec in (",i->i", "i,->i") else node


class _FoldConstants(ast.NodeTransformer):
    """Evaluates expressions of constants, and selects the branches that they decide."""

    def __init__(self, constants: Params, scalars: Collection[str]) -> None:
        self.constants = constants
        self.scalars = set(scalars)

    def visit(self, node: Any) -> Any:
        if isinstance(node, ast.expr):
            names = free_names(node)
            known = names & self.constants.keys()
            if known and names <= known | _OPEN and not isinstance(node, (ast.Lambda, ast.Starred)):
                found = self._literal(node)
                if found is not None:
                    return found
        return self._tidy(super().visit(node))

    def _literal(self, node: ast.expr) -> ast.expr | None:
        try:
            value = evaluate_tree(node, {"np": np, **self.constants})
        except Exception:
            return None
        vector = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu"
        return literal_expression(
            value.tolist() if vector and not isinstance(node, ast.Name) else value
        )  # axes, lengths

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        node.slice = _as_index(node.slice)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            return self.visit(node.body if test.value else node.orelse)
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))

    def _tidy(self, node: Any) -> Any:
        """``np.where(True, a, b)`` is a, ``True * a`` is a, ``a ** 1`` is a, ``a * 2 / 6`` is ``a / 3``."""
        if isinstance(node, ast.BinOp):
            if not isinstance(node.op, ast.MatMult):
                node = ast.BinOp(*self._broadcast(node.left, node.op, node.right))
            return _tidy_operation(node)
        if isinstance(node, ast.Compare):
            left, _, right = self._broadcast(node.left, node.ops[0], node.comparators[0])
            return ast.Compare(left, node.ops, [right])
        name = call_name(node)
        if name == "broadcast_to":
            return _unexpanded(node)
        if name == "where" and _literal_of(node.args[0]) in (True, False):
            return node.args[1] if _literal_of(node.args[0]) else node.args[2]
        if name in ("transpose", "swapaxes"):
            axes = [ast.unparse(a) for a in node.args[1:]]
            attribute = "T" if axes == ["[1, 0]"] else "mT" if sorted(axes) == ["-1", "-2"] else ""
            return ast.Attribute(node.args[0], attribute, ast.Load()) if attribute else node
        return node

    def _broadcast(self, left: ast.expr, op: object, right: ast.expr) -> tuple[ast.expr, Any, ast.expr]:
        """Return the operands; remove new axes from a scalar if the other operand has axes."""
        scalars = self._without_axes(left), self._without_axes(right)
        if (scalars[0] is None) == (scalars[1] is None):
            return left, op, right
        return scalars[0] or left, op, scalars[1] or right

    def _without_axes(self, node: ast.expr) -> ast.expr | None:
        """Return an expression of scalars without its new axes for broadcasting; None for other expressions."""
        if isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in self.scalars):
            return node
        if isinstance(node, ast.Call) and call_name(node) == "expand_dims":
            return self._without_axes(node.args[0])
        if isinstance(node, ast.Call) and call_name(node) == "conj":
            operand = self._without_axes(node.args[0])
            return None if operand is None else numpy_call("conj", operand)
        if isinstance(node, ast.Subscript) and _only_new_axes(node.slice):
            return self._without_axes(node.value)
        if isinstance(node, ast.UnaryOp):
            operand = self._without_axes(node.operand)
            return None if operand is None else ast.UnaryOp(node.op, operand)
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
            left, right = self._without_axes(node.left), self._without_axes(node.right)
            return None if left is None or right is None else ast.BinOp(left, node.op, right)
        return None


class _WithoutCotangent(_FoldConstants):
    """Replaces the cotangent by 1."""

    def visit(self, node: Any) -> Any:
        return ast.Constant(1) if _is_name(node, "g") else self._tidy(ast.NodeTransformer.visit(self, node))


def partial_of_rule(tree: ast.expr) -> ast.expr:
    """Return a rule divided by its cotangent."""
    return _WithoutCotangent({}, ()).visit(copy_tree(tree))


def _tidy_operation(node: ast.BinOp) -> ast.expr:
    op, left, right = node.op, node.left, node.right
    if isinstance(op, (ast.BitAnd, ast.BitOr)):
        for known, other in ((_literal_of(left), right), (_literal_of(right), left)):
            if isinstance(known, bool):  # True & a is a, True | a is True
                return other if known == isinstance(op, ast.BitAnd) else ast.Constant(known)
    if isinstance(op, ast.Mult) and _is_one(left):
        return right
    if isinstance(op, (ast.Mult, ast.Pow, ast.Div)) and _is_one(right):
        return left
    if isinstance(op, (ast.Add, ast.Sub)) and _literal_of(right) == 0:
        return left
    if isinstance(op, ast.Div) and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
        factor, divisor = _literal_of(left.right), _literal_of(right)
        if type(factor) is type(divisor) is int and factor and divisor % factor == 0:
            return _tidy_operation(ast.BinOp(left.left, ast.Div(), ast.Constant(divisor // factor)))
    return node


def _only_new_axes(index: ast.expr) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, ast.Constant) and p.value in (None, ...) for p in parts)


def _unexpanded(node: ast.Call) -> ast.Call:
    """Remove an expand_dims of leading axes inside broadcast_to, which adds them itself."""
    inner = node.args[0]
    if isinstance(inner, ast.Call) and call_name(inner) == "expand_dims":
        try:
            axes, shape = ast.literal_eval(inner.args[1]), ast.literal_eval(node.args[1])
        except ValueError:
            return node
        axes = axes if isinstance(axes, tuple) else (axes,)
        if {a % len(shape) for a in axes} == set(range(len(axes))):
            return ast.Call(node.func, [inner.args[0], *node.args[1:]], [])
    return node


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _literal_of(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else _NONE


_NONE = object()


def _is_one(node: ast.expr) -> bool:
    value = _literal_of(node)
    return value is True or (type(value) in (int, float) and value == 1)


def literal_expression(value: object) -> ast.expr | None:
    """Return a value as an expression; None if it is long."""
    text = _source(value)
    return None if text is None else ast.parse(text, mode="eval").body


def _source(value: object) -> str | None:
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item() if value.dtype.kind in "biuf" else object
    if isinstance(value, float) and not np.isfinite(value):
        return "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if value is Ellipsis:
        return "..."
    if isinstance(value, np.dtype):
        return f"np.{value.name}"
    if isinstance(value, np.ndarray) and value.ndim == 1 and 1 <= value.size <= 8 and value.dtype.kind in "iub":
        return f"np.array({value.tolist()})"
    parts = (value.start, value.stop, value.step) if isinstance(value, slice) else value
    if not isinstance(parts, (tuple, list)) or len(parts) > 12:
        return None
    texts = [text for text in map(_source, parts) if text is not None]
    if len(texts) < len(parts):
        return None
    name = "slice" if isinstance(value, slice) else ""
    inside = ", ".join(texts) + "," * (len(texts) == 1 and isinstance(value, tuple))
    return f"[{inside}]" if isinstance(value, list) else f"{name}({inside})"


def _as_index(node: ast.expr) -> ast.expr:
    """Write the index of ``x[(slice(None), 1)]`` as in ``x[:, 1]``."""
    if isinstance(node, ast.Tuple):
        if len(node.elts) == 1:
            return _as_index(node.elts[0])
        return ast.Tuple([_as_index(e) for e in node.elts], ast.Load())
    if isinstance(node, ast.Call) and _is_name(node.func, "slice"):
        lower, upper, step = [None if _literal_of(a) is None else a for a in node.args]
        return ast.Slice(lower, upper, step)
    return node
