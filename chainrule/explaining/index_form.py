"""One element of a formula: ``X̄[i,k] = Σ_j Z̄[i,j]·W[k,j]``, with letters or with numbers.

A formula's tree is read from the result's index inwards. What cannot be read so raises :class:`NoForm`: there is no form
then, rather than a wrong one.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.explaining.formula import Formula
from chainrule.explaining.index_calls import (
    ADD,
    ATOM,
    MUL,
    NEG,
    POW,
    Calls,
    Index,
    NoForm,
    called,
    enclosed,
    items_of,
    signed,
)

LETTERS = "ijklmnopqrsuvwzacdefh"
_TERMS = 4
_NAMED = {"pi": "π", "inf": "∞", "nan": "nan", "e": "e"}
_CALLED = {"conjugate": "conj", "absolute": "abs", "log": "ln"}
_ARRAY_CALLS = {
    "sin", "cos", "tan", "exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "abs", "absolute", "sign", "tanh",
    "sinh", "cosh", "floor", "trunc", "isnan", "isfinite", "conj", "conjugate", "real", "imag", "minimum", "maximum",
    "logaddexp", "clip", "sigmoid", "erf",
}  # fmt: skip
_OPERATORS: dict[type, tuple[str, int]] = {
    ast.Add: (" + ", ADD),
    ast.Sub: (" − ", ADD),
    ast.Mult: ("·", MUL),
    ast.Div: (" / ", MUL),
}
_COMPARED: dict[type, str] = {
    ast.Gt: ">", ast.GtE: "≥", ast.Lt: "<", ast.LtE: "≤", ast.Eq: "=", ast.NotEq: "≠",
}  # fmt: skip
POWERS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(x: Any) -> str:
    """Four digits of a number."""
    x = np.asarray(x).item()
    if isinstance(x, complex):
        return f"({x.real:.4g}{x.imag:+.4g}j)"
    return f"{x:.4g}".replace("inf", "∞") if isinstance(x, float) else str(int(x))


class Element(Calls):
    """Reads elements of a formula.

    Args:
        formula: whose.
        concrete: indices are numbers, and arrays are read at them.
    """

    def __init__(self, formula: Formula, concrete: bool, used: Sequence[str] = ()) -> None:
        self.formula = formula
        self.concrete = concrete
        self.free = (letter for letter in LETTERS if letter not in used)
        self.product = " · " if concrete else "·"

    def result(self, index: Index) -> str:
        """The element of the operand's cotangent: with the sums that undo broadcasting."""
        f = self.formula
        extra, long = f.stretched
        if (
            f.raw_shape[len(extra) :]
            != tuple(n if a + len(extra) not in long else f.raw_shape[a + len(extra)] for a, n in enumerate(f.shape))
            and f.raw_shape
        ):
            raise NoForm
        sizes = [f.raw_shape[a] for a in (*extra, *long)]

        def body(bound: Index) -> tuple[str, int]:
            full = list(bound[: len(extra)]) + list(index)
            for axis, i in zip(long, bound[len(extra) :]):
                full[axis] = i
            return self.at(f.tree, tuple(full))

        return self.total(sizes, body)[0]

    def total(self, sizes: Sequence[int], body: Callable[[Index], tuple[str, int]]) -> tuple[str, int]:
        """The sum of ``body`` over indices below ``sizes``."""
        if not sizes:
            return body(())
        if not self.concrete:
            bound = tuple(next(self.free) for _ in sizes)
            text, level = body(bound)
            letters = "".join(bound) if len(bound) == 1 else "{" + ",".join(bound) + "}"
            return f"Σ_{letters} {enclosed(text, level, MUL)}", ADD
        ranges = itertools.product(*(range(n) for n in sizes))
        terms = [enclosed(*body(at), MUL) for at in itertools.islice(ranges, _TERMS)]
        count = 1
        for n in sizes:
            count *= n
        if not terms:
            return "0", ATOM
        if count == 1:
            return terms[0], MUL
        return " + ".join(terms) + (" + …" if count > _TERMS else ""), ADD

    def at(self, node: ast.expr, index: Index) -> tuple[str, int]:
        """The text of one element of an expression, and how tightly it holds together."""
        read = getattr(self, "_" + type(node).__name__.lower(), None)
        if read is None:
            raise NoForm
        found: tuple[str, int] = read(node, index)
        return found

    def _name(self, node: ast.Name, index: Index) -> tuple[str, int]:
        value = self.formula.values.get(node.id)
        if not isinstance(value, np.ndarray):
            return self._scalar(node)
        index = self._aligned(value.shape, index)
        if self.concrete:
            return signed(number(value[index]))
        name = self.formula.names[node.id]
        return name + (f"[{','.join(map(str, index))}]" if index else ""), ATOM

    def _aligned(self, shape: tuple[int, ...], index: Index) -> Index:
        if len(index) < len(shape):
            raise NoForm
        return tuple(0 if n == 1 else i for n, i in zip(shape, index[len(index) - len(shape) :]))

    def _constant(self, node: ast.Constant, index: Index) -> tuple[str, int]:
        if isinstance(node.value, (bool, int, float)):
            return signed(f"{node.value:.6g}".replace("inf", "∞"))
        if isinstance(node.value, complex):
            return str(node.value), ATOM
        raise NoForm

    def _scalar(self, node: ast.expr) -> tuple[str, int]:
        """What is one number, whatever the index."""
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<formula>", "eval")
        try:
            value = eval(code, {**self.formula.helpers, **self.formula.values})
        except Exception:
            raise NoForm from None
        if np.ndim(value) != 0 or not isinstance(value, (bool, int, float, complex, np.generic)):
            raise NoForm
        return signed(f"{np.asarray(value).item():.6g}")

    def _attribute(self, node: ast.Attribute, index: Index) -> tuple[str, int]:
        if isinstance(node.value, ast.Name) and node.value.id == "np":
            if node.attr in _NAMED:
                return _NAMED[node.attr] if not self.concrete else number(getattr(np, node.attr)), ATOM
            raise NoForm
        if node.attr in ("mT", "T"):
            if len(index) != 2 and node.attr == "T":
                raise NoForm
            return self.at(node.value, (*index[:-2], index[-1], index[-2]))
        return self._scalar(node)

    def _unaryop(self, node: ast.UnaryOp, index: Index) -> tuple[str, int]:
        text, level = self.at(node.operand, index)
        if isinstance(node.op, ast.USub):
            return "−" + enclosed(text, level, NEG), NEG
        if isinstance(node.op, ast.Invert):
            return "not " + enclosed(text, level, ATOM), NEG
        raise NoForm

    def _binop(self, node: ast.BinOp, index: Index) -> tuple[str, int]:
        if isinstance(node.op, ast.MatMult):
            return self._matmul(node, index)
        left, level = self.at(node.left, index)
        if isinstance(node.op, ast.Pow):
            right, tight = self.at(node.right, index)
            if re.fullmatch(r"−?\d", right):
                return enclosed(left, level, ATOM) + right.replace("−", "-").translate(POWERS), POW
            return f"{enclosed(left, level, ATOM)}^{enclosed(right, tight, ATOM)}", POW
        if isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            word = " and " if isinstance(node.op, ast.BitAnd) else " or "
            right, _ = self.at(node.right, index)
            if left[:1] == right[:1] == "[":
                return f"{left[:-1]}{word}{right[1:]}", ATOM
            return f"({left}{word}{right})", ATOM
        sign, own = _OPERATORS.get(type(node.op), ("", 0))
        if not own:
            raise NoForm
        right, tight = self.at(node.right, index)
        needs = own + 1 if isinstance(node.op, (ast.Sub, ast.Div)) else own
        sign = self.product if sign == "·" else sign
        divided = own == MUL and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Div)
        return enclosed(left, level, POW if divided else own) + sign + enclosed(
            right, tight, needs if tight != NEG else ATOM
        ), own

    def _compare(self, node: ast.Compare, index: Index) -> tuple[str, int]:
        sign = _COMPARED.get(type(node.ops[0]))
        if sign is None or len(node.ops) != 1:
            raise NoForm
        left, right = self.at(node.left, index)[0], self.at(node.comparators[0], index)[0]
        return f"[{left} {sign} {right}]", ATOM

    def _matmul(self, node: ast.BinOp, index: Index) -> tuple[str, int]:
        left, right = self.shape(node.left), self.shape(node.right)
        vector = len(right) == 1
        if len(left) < 2 or not right or len(index) < 2 - vector:
            raise NoForm
        batch, (i, *j) = index[: len(index) - 2 + vector], index[len(index) - 2 + vector :]

        def body(bound: Index) -> tuple[str, int]:
            (k,) = bound
            a = self.at(node.left, (*batch, i, k))
            b = self.at(node.right, (*batch, k, *j))
            return enclosed(*a, MUL) + self.product + enclosed(*b, NEG), MUL

        return self.total([left[-1]], body)

    def _subscript(self, node: ast.Subscript, index: Index) -> tuple[str, int]:
        if not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, int):
            raise NoForm
        part = node.slice.value
        function = called(node.value)
        if function == "np.split":
            array, cuts, axis = node.value.args  # type: ignore[attr-defined]
            starts = [0, *(ast.literal_eval(c) for c in items_of(cuts))]
            at, n = ast.literal_eval(axis), len(self.shape(array))
            moved = list(index)
            moved[at % n] = self._plus(moved[at % n], starts[part])
            return self.at(array, tuple(moved))
        if function == "np.moveaxis":
            return self.at(node.value, (part, *index))
        raise NoForm

    def _plus(self, i: Any, n: int) -> Any:
        return i + n if isinstance(i, int) else i if n == 0 else f"{i}+{n}"

    def _call(self, node: ast.Call, index: Index) -> tuple[str, int]:
        function = called(node)
        special = getattr(self, "_np_" + function.removeprefix("np."), None)
        if special is not None:
            found: tuple[str, int] = special(node, index)
            return found
        name = function.removeprefix("np.")
        if name in _ARRAY_CALLS and not node.keywords:
            inside = ", ".join(self.at(a, index)[0] for a in node.args)
            if name in ("abs", "absolute"):
                return f"|{inside}|", ATOM
            return (f"√({inside})" if name == "sqrt" else f"{_CALLED.get(name, name)}({inside})"), ATOM
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("sum", "mean", "reshape", "astype", "conj"):
            reader = {"sum": self._sum, "mean": self._mean, "reshape": self._reshape}.get(node.func.attr, self._same)
            return reader(node, index)
        return self._scalar(node)

    def _same(self, node: ast.Call, index: Index) -> tuple[str, int]:
        text, level = self.at(node.func.value, index)  # type: ignore[attr-defined]
        conj = node.func.attr == "conj" and not self.concrete  # type: ignore[attr-defined]
        if node.func.attr == "conj" and self.concrete:  # type: ignore[attr-defined]
            raise NoForm
        return (f"conj({text})", ATOM) if conj else (text, level)

    def shape(self, node: ast.expr) -> tuple[int, ...]:
        """The shape of a part of the formula."""
        if isinstance(node, ast.Name) and isinstance(self.formula.values.get(node.id), np.ndarray):
            return tuple(self.formula.values[node.id].shape)
        if isinstance(node, ast.Attribute) and node.attr in ("mT", "T"):
            shape = self.shape(node.value)
            return (*shape[:-2], shape[-1], shape[-2])
        if isinstance(node, ast.Call) and called(node) in ("np.conj", "np.conjugate"):
            return self.shape(node.args[0])
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<formula>", "eval")
        try:
            with np.errstate(all="ignore"):
                return tuple(np.shape(eval(code, {**self.formula.helpers, **self.formula.values})))
        except Exception:
            raise NoForm from None


def letters_of(shape: Sequence[int], wanted: str = "") -> tuple[Any, ...]:
    """Indices of an array: the wanted letters for its last axes, or i, j, k ...; 0 along axes of length 1."""
    if wanted:
        letters = "bcdef"[: len(shape) - len(wanted)] + wanted
    else:
        letters = LETTERS[: len(shape)]
    if len(letters) < len(shape):
        raise NoForm
    return tuple(0 if n == 1 else c for n, c in zip(shape, letters))


def bracket(index: Index) -> str:
    return f"[{','.join(map(str, index))}]" if index else ""
