"""Formulas in LaTeX, read off their trees; and in MathML, from templates that were made of the LaTeX beforehand.

A template has places where names and literals go. ``data/formulas.json`` holds the MathML of every template that the
table's rows give rise to (see ``build``), so nothing but NumPy is needed to show one.
"""

from __future__ import annotations

import ast
import functools
import html
import importlib
import importlib.resources
import json
import re
from collections.abc import Callable

import numpy as np

from chainrule.explaining.formula import BAR, Formula
from chainrule.explaining.index_calls import ADD, ATOM, MUL, NEG, POW

_CONSTANTS = {"pi": r"\pi", "inf": r"\infty", "nan": r"\mathrm{nan}", "e": "e"}
_FUNCTIONS = {
    "exp": r"\exp", "sin": r"\sin", "cos": r"\cos", "tan": r"\tan", "sinh": r"\sinh", "cosh": r"\cosh",
    "tanh": r"\tanh", "log": r"\ln", "sign": r"\operatorname{sgn}", "log1p": r"\operatorname{log1p}",
    "minimum": r"\min", "maximum": r"\max",
}  # fmt: skip
_COMPARED: dict[type, str] = {
    ast.Gt: ">", ast.GtE: r"\ge", ast.Lt: "<", ast.LtE: r"\le", ast.Eq: "=", ast.NotEq: r"\ne",
}  # fmt: skip
_OF_NUMBERS = {"log", "sqrt", "exp"}


def symbol(name: str) -> str:
    """A variable's name: ``X``, ``t_{1}``, ``\\mathit{loss}``; with a bar over it for a cotangent."""
    if name.endswith(BAR):
        return rf"\bar{{{symbol(name[:-1])}}}"
    base, digits = re.fullmatch(r"(.*?)(\d*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    text = base if len(base) == 1 and base.isalpha() else rf"\mathit{{{base.replace('_', chr(92) + '_')}}}"
    return f"{text}_{{{digits}}}" if digits else text


class Printer:
    """Prints trees.

    Args:
        name: LaTeX for a name of the formula.
        literal: LaTeX for a value that the call decided, given the default text.
    """

    def __init__(self, name: Callable[[str], str], literal: Callable[[str], str], scalars: frozenset[str]) -> None:
        self.name = name
        self.literal = literal
        self.scalars = scalars

    def __call__(self, node: ast.expr, needed: int = 0) -> str:
        text, level = self._read(node)
        return text if level >= needed else rf"\left({text}\right)"

    def _read(self, node: ast.expr) -> tuple[str, int]:
        if getattr(node, "literal", False):
            text = ast.unparse(node)
            return self.literal(plain(text)), NEG if text.startswith("-") else ATOM
        reader = getattr(self, "_" + type(node).__name__.lower(), None)
        if reader is None:
            return _code(ast.unparse(node)), ATOM
        found: tuple[str, int] = reader(node)
        return found

    def _name(self, node: ast.Name) -> tuple[str, int]:
        return self.name(node.id), ATOM

    def _constant(self, node: ast.Constant) -> tuple[str, int]:
        return plain(repr(node.value)), ATOM

    def _attribute(self, node: ast.Attribute) -> tuple[str, int]:
        if isinstance(node.value, ast.Name) and node.value.id == "np":
            return _CONSTANTS.get(node.attr, _code(node.attr)), ATOM
        if node.attr in ("mT", "T"):
            return rf"{self(node.value, ATOM)}^{{\top}}", POW
        if node.attr == "size":
            return rf"\left|{self(node.value)}\right|", ATOM
        return rf"\operatorname{{{node.attr}}}{self(node.value)}", ATOM

    def _unaryop(self, node: ast.UnaryOp) -> tuple[str, int]:
        sign = "-" if isinstance(node.op, ast.USub) else r"\lnot "
        return sign + self(node.operand, MUL), NEG if sign == "-" else POW

    def _binop(self, node: ast.BinOp) -> tuple[str, int]:
        op = type(node.op)
        if op is ast.Div:
            return rf"\frac{{{self(node.left)}}}{{{self(node.right)}}}", MUL
        if op is ast.Pow:
            return rf"{self(node.left, ATOM)}^{{{self(node.right)}}}", POW
        if op in (ast.Add, ast.Sub):
            sign = " + " if op is ast.Add else " - "
            return self(node.left, ADD) + sign + self(node.right, ADD if op is ast.Add else MUL), ADD
        if op in (ast.BitAnd, ast.BitOr):
            return self(node.left) + (r" \land " if op is ast.BitAnd else r" \lor ") + self(node.right), ADD
        sign = r" \, " if op is ast.MatMult or self._scalar(node.left) or self._scalar(node.right) else r" \odot "
        return self(node.left, MUL) + sign + self(node.right, POW if op is ast.MatMult else MUL), MUL

    def _scalar(self, node: ast.expr) -> bool:
        """Whether a factor is one number: no sign of elementwise multiplication then."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return node.id in self.scalars
        if isinstance(node, ast.Attribute):
            return (isinstance(node.value, ast.Name) and node.value.id == "np") or node.attr == "size"
        if isinstance(node, ast.BinOp):
            return self._scalar(node.left) and self._scalar(node.right)
        if isinstance(node, ast.UnaryOp):
            return self._scalar(node.operand)
        numeric = isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("np.") in _OF_NUMBERS
        return numeric and all(map(self._scalar, node.args))  # type: ignore[attr-defined]

    def _compare(self, node: ast.Compare) -> tuple[str, int]:
        sign = _COMPARED.get(type(node.ops[0]), r"\mathrel{?}")
        return rf"\left[{self(node.left)} {sign} {self(node.comparators[0])}\right]", ATOM

    def _ifexp(self, node: ast.IfExp) -> tuple[str, int]:
        return self._cases(node.test, node.body, node.orelse)

    def _cases(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> tuple[str, int]:
        condition = self(test)
        if condition.startswith(r"\left[") and condition.endswith(r"\right]") and condition.count(r"\left[") == 1:
            condition = condition[6:-7]
        return (
            rf"\begin{{cases}} {self(yes)} & \text{{if }} {condition} \\ {self(no)} & \text{{else}} \end{{cases}}",
            ATOM,
        )

    def _subscript(self, node: ast.Subscript) -> tuple[str, int]:
        return rf"{{{self(node.value, ATOM)}}}_{{{_code('[' + self._index(node.slice) + ']')}}}", ATOM

    def _index(self, node: ast.expr) -> str:
        text = ast.unparse(node)
        return text[1:-1] if text.startswith("(") and text.endswith(")") else text

    def _call(self, node: ast.Call) -> tuple[str, int]:
        if isinstance(node.func, ast.Lambda):
            bound = ", ".join(rf"{symbol(a.arg)} = {self(x)}" for a, x in zip(node.func.args.args, node.args))
            return rf"\left. {self(node.func.body)} \right|_{{{bound}}}", ATOM
        called = ast.unparse(node.func).removeprefix("np.")
        special = getattr(self, "_np_" + called, None)
        if special is not None:
            found: tuple[str, int] = special(node)
            return found
        if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name | ast.Attribute):
            return self._method(node)
        if (
            isinstance(node.func, ast.Attribute)
            and not (isinstance(node.func.value, ast.Name) and node.func.value.id == "np")
            and node.func.attr in ("sum", "mean", "reshape", "astype", "conj", "max", "var")
        ):
            return self._method(node)
        function = _FUNCTIONS.get(called) or rf"\operatorname{{{_escaped(called.split('.')[-1])}}}"
        arguments = [self(a) for a in node.args] + [rf"{_code(k.arg or '')}\!=\!{self(k.value)}" for k in node.keywords]
        return rf"{function}\left({', '.join(arguments)}\right)", ATOM

    def _method(self, node: ast.Call) -> tuple[str, int]:
        assert isinstance(node.func, ast.Attribute)
        inner, name = node.func.value, node.func.attr
        if name in ("sum", "mean"):
            axis = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "axis"), None)
            under = "" if axis is None else rf"_{{\text{{axis }}{self(axis)}}}"
            sign = r"\sum" if name == "sum" else r"\operatorname{mean}"
            return rf"{sign}{under} {self(inner, ATOM)}", MUL
        if name == "conj":
            return rf"{self(inner, ATOM)}^{{*}}", POW
        arguments = ", ".join(self(a) for a in node.args)
        return rf"\operatorname{{{_escaped(name)}}}_{{{arguments}}}\left({self(inner)}\right)", ATOM

    def _np_where(self, node: ast.Call) -> tuple[str, int]:
        return self._cases(*node.args)

    def _np_sqrt(self, node: ast.Call) -> tuple[str, int]:
        return rf"\sqrt{{{self(node.args[0])}}}", ATOM

    def _np_abs(self, node: ast.Call) -> tuple[str, int]:
        return rf"\left|{self(node.args[0])}\right|", ATOM

    def _np_conj(self, node: ast.Call) -> tuple[str, int]:
        return rf"{self(node.args[0], ATOM)}^{{*}}", POW

    _np_conjugate = _np_conj

    def _np_outer(self, node: ast.Call) -> tuple[str, int]:
        return rf"{self(node.args[0], MUL)} \, {self(node.args[1], ATOM)}^{{\top}}", MUL

    def _np_eye(self, node: ast.Call) -> tuple[str, int]:
        return "I", ATOM

    def _np_expand_dims(self, node: ast.Call) -> tuple[str, int]:
        return self._read(node.args[0])  # broadcasting does the rest

    def _np_swapaxes(self, node: ast.Call) -> tuple[str, int]:
        return rf"{self(node.args[0], ATOM)}^{{\top({self(node.args[1])}, {self(node.args[2])})}}", POW

    def _np_transpose(self, node: ast.Call) -> tuple[str, int]:
        return rf"{self(node.args[0], ATOM)}^{{\top {self(node.args[1])}}}", POW

    def _np_broadcast_to(self, node: ast.Call) -> tuple[str, int]:
        return rf"\operatorname{{broadcast}}_{{{self(node.args[1])}}}\left({self(node.args[0])}\right)", ATOM

    def _unfit(self, node: ast.Call) -> tuple[str, int]:
        return rf"\operatorname{{sum}}_{{\to {self(node.args[1])}}}\left({self(node.args[0])}\right)", ATOM

    _np_unfit = _unfit


class Elementwise(Printer):
    """Prints what holds for each element by itself: products need no sign."""

    def _scalar(self, node: ast.expr) -> bool:
        return True


def _escaped(text: str) -> str:
    return re.sub(r"([_%$#&{}])", r"\\\1", text)


def _code(text: str) -> str:
    return rf"\mathtt{{{_escaped(text)}}}"


def plain(text: str) -> str:
    """A literal."""
    if re.fullmatch(r"-?[\d.]+", text):
        return text
    found = re.fullmatch(r"(-?[\d.]+)e([-+]?\d+)", text)
    if found:
        return rf"{found[1]} \cdot 10^{{{int(found[2])}}}"
    return {"True": "1", "False": "0"}.get(text) or _code(text)


def equation(left: str, formula: Formula, sign: str = "=") -> str:
    """``\\bar{X} = …`` in the user's names; with the sign "+=" for what is added to other terms."""

    def name(key: str) -> str:
        return symbol(formula.names[key]) if key in formula.names else symbol(key)

    body = Printer(name, lambda text: text, _scalars(formula))(formula.tree, MUL if _axes(formula) else 0)
    equals = "=" if sign == "=" else r"\mathrel{+}="
    summed = rf"\sum_{{\text{{axis }}{_axes(formula)}}} " if _axes(formula) else ""
    return rf"{symbol(left + BAR)} {equals} {summed}{body}"


def _scalars(formula: Formula) -> frozenset[str]:
    return frozenset(k for k, v in formula.values.items() if not isinstance(v, np.ndarray))


def _axes(formula: Formula) -> str:
    """The axes over which broadcasting is undone."""
    return ", ".join(str(a) for part in formula.stretched for a in part)


# -- MathML --------------------------------------------------------------------------------------------------------------


def template(formula: Formula) -> tuple[str, dict[str, str]]:
    """The right side in LaTeX, with places for names and literals, and what goes into these."""
    return template_of(formula, formula.tree, MUL if _axes(formula) else 0, Printer)


def template_of(formula: Formula, tree: ast.expr, needed: int, printer: type[Printer]) -> tuple[str, dict[str, str]]:
    """The same of any expression over a formula's names."""
    places: dict[str, str] = {}

    def name(key: str) -> str:
        if key not in formula.names:
            return symbol(key)
        called = formula.names[key]
        if called.endswith(BAR):
            places[key] = called[:-1]
            return rf"\bar{{{_place(key)}}}"
        places[key] = called
        return _place(key)

    def literal(text: str) -> str:
        key = f"n{len(places)}"
        places[key] = text
        return _place(key)

    return printer(name, literal, _scalars(formula))(tree, needed), places


def _place(key: str) -> str:
    return rf"\text{{⟦{key}⟧}}"


@functools.cache
def _templates() -> dict[str, str]:
    file = importlib.resources.files("chainrule.explaining") / "data" / "formulas.json"
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return found


@functools.cache
def converted(latex: str) -> str | None:
    """MathML by latex2mathml (without the outermost element), if that is installed."""
    try:
        converter = importlib.import_module("latex2mathml.converter")
    except ImportError:
        return None
    text: str = converter.convert(latex)
    return re.sub(r"^<math[^>]*>|</math>$", "", text)


def of_template(text: str) -> str | None:
    """A template's MathML; None for one that is not in the file, unless latex2mathml is installed."""
    return _templates().get(text) or converted(text)


def mathml(left: str, formula: Formula, sign: str = "=") -> str | None:
    """The equation in MathML; None for one that no template fits, unless latex2mathml is installed."""
    text, places = template(formula)
    found = of_template(text)
    if found is None:
        return None
    axes = _axes(formula)
    summed = f"<munder><mo>&#x2211;</mo><mrow><mtext>axis </mtext><mn>{axes}</mn></mrow></munder>" if axes else ""
    bar = f'<mover accent="true">{identifier("left", left)}<mo stretchy="true">&#x000AF;</mo></mover>'
    return (
        '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow>'
        f"{bar}<mo>{sign}</mo>{summed}{filled(found, lambda key: identifier(key, places[key]))}</mrow></math>"
    )


def filled(mathml: str, place: Callable[[str], str]) -> str:
    """A template with MathML for names and literals in their places."""
    return re.sub(r"<mtext>\u27e6(\w+)\u27e7</mtext>", lambda m: place(m[1]), mathml)


def identifier(key: str, name: str) -> str:
    """What stands in a place of a template, escaped: a literal, where the place is called ``n0``, ``n1`` ..., or a name."""
    if re.fullmatch(r"n\d+", key):
        code = re.fullmatch(r"\\mathtt\{(.*)\}", name)
        text = re.sub(r"\\(.)", r"\1", code[1]) if code else name
        return f"<mn>{html.escape(text)}</mn>" if not code else f"<mtext>{html.escape(text)}</mtext>"
    base, digits = re.fullmatch(r"(.*?)(\d*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    base = f"<mi>{html.escape(base)}</mi>"
    return f"<msub>{base}<mn>{digits}</mn></msub>" if digits else base
