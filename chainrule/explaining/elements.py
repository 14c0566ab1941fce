"""One element of a formula: ``X̄[i,k] = Σ_j Z̄[i,j]·W[k,j]``, with letters or with numbers.

A formula's tree is read from the result's index inwards, and becomes a tree over elements. What cannot be read so raises
:class:`~chainrule.explaining.tree.NoForm`: there is no form then, rather than a wrong one.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.explaining.formula import Formula, stretched
from chainrule.explaining.notation import TEXT, written
from chainrule.explaining.tree import (
    Entry,
    Index,
    NoForm,
    Relation,
    Sigma,
    called,
    constant,
    evaluated,
    of_numpy,
    times,
)
from chainrule.rows.primitive import Primitive

LETTERS = "ijklmnopqrsuvwzacdefh"
_TERMS = 4  # of a sum of numbers that are written out
_ELEMENTWISE = {"clip", "real", "imag"}  # besides NumPy's ufuncs and elementwise rows


def letters_of(shape: Sequence[int], wanted: str = "") -> Index:
    """Indices of an array: the wanted letters for its last axes, or i, j, k ...; 0 along axes of length 1."""
    letters = "bcdef"[: len(shape) - len(wanted)] + wanted if wanted else LETTERS[: len(shape)]
    if len(letters) < len(shape):
        raise NoForm
    return tuple(0 if n == 1 else c for n, c in zip(shape, letters))


def aligned(index: Index, shape: tuple[int, ...]) -> Index:
    """The index of the element that broadcasting puts there."""
    if len(index) < len(shape):
        raise NoForm
    return tuple(0 if n == 1 else i for n, i in zip(shape, index[len(index) - len(shape) :]))


def shortened(x: Any) -> ast.expr:
    """Four digits of a number."""
    x = np.asarray(x).item()
    return constant(float(f"{x:.4g}") if isinstance(x, float) else x)


class Element:
    """Reads elements of a formula.

    Args:
        formula: whose.
        concrete: indices are numbers, and arrays are read at them.
        used: letters that are not to be summed over.
        entry: what stands for a name's element; the formula's own name for it without.
    """

    def __init__(
        self,
        formula: Formula,
        concrete: bool = False,
        used: Sequence[Any] = (),
        entry: Callable[[str, Index], ast.expr] | None = None,
    ) -> None:
        self.formula = formula
        self.concrete = concrete
        self.entry = entry or (lambda key, index: Entry(formula.names[key], index))
        self._seen_through = entry is not None
        self._free = (letter for letter in LETTERS if letter not in used)

    def result(self, index: Index) -> ast.expr:
        """The element of the operand's cotangent: with the sums that undo broadcasting."""
        f = self.formula
        extra = len(f.stretched[0])
        if f.raw_shape and len(f.raw_shape) - extra != len(f.shape):
            raise NoForm
        return self._summed(f.tree, f.raw_shape, f.stretched, index)

    def _summed(
        self, array: ast.expr, shape: tuple[int, ...], stretched: tuple[tuple[int, ...], ...], index: Index
    ) -> ast.expr:
        extra, long = stretched

        def body(bound: Index) -> ast.expr:
            full = [*bound[: len(extra)], *index]
            for axis, i in zip(long, bound[len(extra) :]):
                full[axis] = i
            return self.at(array, tuple(full))

        return self._total([shape[a] for a in (*extra, *long)], body)

    def _total(self, sizes: Sequence[int], body: Callable[[Index], ast.expr]) -> ast.expr:
        """The sum of ``body`` over indices below ``sizes``."""
        if not sizes:
            return body(())
        if not self.concrete:
            bound = tuple(next(self._free) for _ in sizes)
            return Sigma(bound, body(bound))
        places = itertools.product(*map(range, sizes))
        terms = [body(at) for at in itertools.islice(places, _TERMS)]
        if math.prod(sizes) > _TERMS:
            terms.append(ast.Constant(...))
        return functools.reduce(lambda a, b: ast.BinOp(a, ast.Add(), b), terms) if terms else ast.Constant(0)

    def at(self, node: ast.expr, index: Index) -> ast.expr:
        """One element of an expression."""
        read = getattr(self, "_" + type(node).__name__.lower(), None)
        if read is None:
            raise NoForm
        found: ast.expr = read(node, index)
        return found

    # -- what is read at its own index

    def _name(self, node: ast.Name, index: Index) -> ast.expr:
        value = self.formula.values.get(node.id)
        if not isinstance(value, np.ndarray):
            return self._single(node)
        index = aligned(index, value.shape)
        return shortened(value[index]) if self.concrete else self.entry(node.id, index)

    def _constant(self, node: ast.Constant, index: Index) -> ast.expr:
        if not isinstance(node.value, (bool, int, float, complex)):
            raise NoForm
        return node

    def _single(self, node: ast.expr) -> ast.expr:
        """What is one number, whatever the index."""
        value = self._value(node)
        if np.ndim(value) != 0 or not isinstance(value, (bool, int, float, complex, np.generic)):
            raise NoForm
        return constant(np.asarray(value).item())

    def _result(self, node: ast.Call, index: Index) -> ast.expr:
        """What a function returns for whole arrays: ``softmax(x)[i,j]``; that says nothing where the rule is no more."""
        shape = self.shape(node)
        if not shape:
            return self._single(node)
        if node is self.formula.tree or self._seen_through or isinstance(node.func, ast.Lambda):
            raise NoForm
        if any(k.arg != "axis" for k in node.keywords):
            raise NoForm
        index = aligned(index, shape)
        if self.concrete:
            return shortened(self._value(node)[index])
        return Entry(written(self.formula.renamed(node), TEXT), index)

    def _attribute(self, node: ast.Attribute, index: Index) -> ast.expr:
        if of_numpy(node):
            value = getattr(np, node.attr)
            if not isinstance(value, float):
                raise NoForm
            return shortened(value) if self.concrete else node
        if node.attr in ("mT", "T"):
            if len(index) < 2 or (len(index) != 2 and node.attr == "T"):
                raise NoForm
            return self.at(node.value, (*index[:-2], index[-1], index[-2]))
        return self._single(node)

    def _unaryop(self, node: ast.UnaryOp, index: Index) -> ast.expr:
        if not isinstance(node.op, (ast.USub, ast.Invert)):
            raise NoForm
        return ast.UnaryOp(node.op, self.at(node.operand, index))

    def _binop(self, node: ast.BinOp, index: Index) -> ast.expr:
        if isinstance(node.op, ast.MatMult):
            return self._product(node.left, node.right, index)
        if not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.BitAnd, ast.BitOr)):
            raise NoForm
        return ast.BinOp(self.at(node.left, index), node.op, self.at(node.right, index))

    def _compare(self, node: ast.Compare, index: Index) -> ast.expr:
        if len(node.ops) != 1 or isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            raise NoForm
        return ast.Compare(self.at(node.left, index), node.ops, [self.at(node.comparators[0], index)])

    def _product(self, left: ast.expr, right: ast.expr, index: Index) -> ast.expr:
        """Of matrices, or of a matrix and a vector."""
        shapes = self.shape(left), self.shape(right)
        columns = len(shapes[1]) - 1
        if len(shapes[0]) < 2 or columns < 0 or len(index) < 1 + min(columns, 1):
            raise NoForm
        at = len(index) - 1 - min(columns, 1)
        batch, (i, *j) = index[:at], index[at:]

        def body(bound: Index) -> ast.expr:
            return times(self.at(left, (*batch, i, *bound)), self.at(right, (*batch, *bound, *j)))

        return self._total([shapes[0][-1]], body)

    def _subscript(self, node: ast.Subscript, index: Index) -> ast.expr:
        if isinstance(node.slice, ast.Tuple):
            return self.at(node.value, _without_new_axes(ast.unparse(node.slice), index))
        if not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, int):
            raise NoForm
        part = node.slice.value
        if called(node.value) == "moveaxis":
            return self.at(node.value, (part, *index))
        if called(node.value) != "split":
            raise NoForm
        array, cuts, axis = node.value.args  # type: ignore[attr-defined]
        start, moved = [0, *_value(cuts)][part], list(index)
        i = moved[_value(axis)]
        moved[_value(axis)] = i + start if isinstance(i, int) else f"{i}+{start}" if start else i
        return self.at(array, tuple(moved))

    # -- calls

    def _call(self, node: ast.Call, index: Index) -> ast.expr:
        name = called(node)
        special = getattr(self, "_np_" + name, None)
        if special is not None:
            found: ast.expr = special(node, index, *node.args)
            return found
        if isinstance(node.func, ast.Attribute) and not of_numpy(node.func):
            method = getattr(self, "_of_" + node.func.attr, None)
            if method is not None:
                found = method(node, index, node.func.value)
                return found
        if self._is_elementwise(name) and not node.keywords:
            return ast.Call(node.func, [self.at(a, index) for a in node.args], [])
        return self._result(node, index)

    def _is_elementwise(self, name: str) -> bool:
        function = self.formula.helpers.get(name) or getattr(np, name, None)
        elementwise = isinstance(function, Primitive) and function.kind == "elementwise"
        return elementwise or isinstance(function, np.ufunc) or name in _ELEMENTWISE

    def _np_where(self, node: ast.Call, index: Index, *parts: ast.expr) -> ast.expr:
        return ast.IfExp(*(self.at(part, index) for part in parts))

    def _np_one_hot(self, node: ast.Call, index: Index, x: ast.expr, n: ast.expr) -> ast.expr:
        at = ast.Constant(index[-1]) if self.concrete else ast.Name(index[-1], ast.Load())
        return ast.Compare(self.at(x, index[:-1]), [ast.Eq()], [at])

    def _np_outer(self, node: ast.Call, index: Index, x: ast.expr, y: ast.expr) -> ast.expr:
        if len(index) != 2:
            raise NoForm
        return times(self.at(x, index[:1]), self.at(y, index[1:]))

    def _np_expand_dims(self, node: ast.Call, index: Index, x: ast.expr, axes: ast.expr) -> ast.expr:
        gone = _axes(axes)
        if any(not 0 < -a <= len(index) for a in gone):
            raise NoForm
        return self.at(x, tuple(i for at, i in enumerate(index) if at - len(index) not in gone))

    def _np_broadcast_to(self, node: ast.Call, index: Index, x: ast.expr, shape: ast.expr) -> ast.expr:
        return self.at(x, index)

    def _moved(self, node: ast.Call, index: Index, x: ast.expr, *args: ast.expr) -> ast.expr:
        """Axes in another order: which, is read off what NumPy makes of an array whose axes have different lengths."""
        lengths = np.broadcast_to(0, range(1, len(index) + 1))
        try:
            moved = getattr(np, called(node))(lengths, *map(_value, args))
        except ValueError:
            raise NoForm from None
        found = dict(zip(moved.shape, index))
        return self.at(x, tuple(found[n] for n in lengths.shape))

    _np_transpose = _np_swapaxes = _np_moveaxis = _moved

    def _np_flip(self, node: ast.Call, index: Index, x: ast.expr, axes: ast.expr) -> ast.expr:
        if called(x) == "cumsum" and called(x.args[0]) == "flip":  # type: ignore[attr-defined]
            return self._from_here_on(x.args[0].args[0], _value(axes), index)  # type: ignore[attr-defined]
        shape, found = self.shape(x), list(index)
        for axis in _axes(axes):
            last, i = shape[axis] - 1, found[axis]
            found[axis] = last - i if isinstance(i, int) else f"{last}-{i}"
        return self.at(x, tuple(found))

    def _from_here_on(self, array: ast.expr, axis: int, index: Index) -> ast.expr:
        """A sum that runs from an index to the end."""
        axis, start = axis % len(index), index[axis]

        def at(i: Any) -> ast.expr:
            return self.at(array, (*index[:axis], i, *index[axis + 1 :]))

        if self.concrete:
            return self._total([self.shape(array)[axis] - start], lambda bound: at(start + bound[0]))
        letter = next(self._free)
        return Sigma((f"{letter}≥{start}",), at(letter))

    def _triangle(self, node: ast.Call, index: Index, x: ast.expr, k: ast.expr | None = None) -> ast.expr:
        if len(index) < 2 or k is None:
            raise NoForm
        shift = _value(k)
        about = f" + {shift}" if shift > 0 else f" − {-shift}" if shift < 0 else ""
        sign = "≤" if called(node) == "tril" else "≥"
        return times(self.at(x, index), Relation(f"{index[-1]} {sign} {index[-2]}{about}"))

    _np_tril = _np_triu = _triangle

    def _np_unbroadcast(self, node: ast.Call, index: Index, x: ast.expr, shape: ast.expr, dtype: ast.expr) -> ast.expr:
        whole = self.shape(x)
        return self._summed(x, whole, stretched(whole, _value(shape)), index)

    def _np_einsum(self, node: ast.Call, index: Index, spec: ast.expr, *arrays: ast.expr) -> ast.expr:
        inputs, _, out = _value(spec).partition("->")
        parts = inputs.split(",")
        named = out.replace("...", "")
        batch, where = index[: len(index) - len(named)], dict(zip(named, index[len(index) - len(named) :]))
        sizes: dict[str, int] = {}
        for part, array in zip(parts, arrays):
            sizes.update(zip(reversed(part), reversed(self.shape(array))))
        summed = [c for c in sizes if c not in where and c != "."]

        def body(bound: Index) -> ast.expr:
            at = {**where, **dict(zip(summed, bound))}
            factors = [
                self.at(array, (*(batch if "..." in part else ()), *(at[c] for c in part.replace("...", ""))))
                for part, array in zip(parts, arrays)
            ]
            return functools.reduce(times, factors)

        return self._total([sizes[c] for c in summed], body)

    def _of_sum(self, node: ast.Call, index: Index, array: ast.expr) -> ast.expr:
        shape = self.shape(array)
        axes, keepdims = _reduced(node, len(shape))
        full = list(index[len(index) - len(shape) + (0 if keepdims else len(axes)) :])
        for axis in () if keepdims else sorted(axes):
            full.insert(axis, None)

        def body(bound: Index) -> ast.expr:
            at = dict(zip(axes, bound))
            return self.at(array, tuple(at.get(a, i) for a, i in enumerate(full)))

        return self._total([shape[a] for a in axes], body)

    def _of_mean(self, node: ast.Call, index: Index, array: ast.expr) -> ast.expr:
        shape = self.shape(array)
        count = math.prod(shape[a] for a in _reduced(node, len(shape))[0])
        return ast.BinOp(self._of_sum(node, index, array), ast.Div(), ast.Constant(count))

    def _of_reshape(self, node: ast.Call, index: Index, array: ast.expr) -> ast.expr:
        if len(node.args) != 1:
            raise NoForm
        source, target = self.shape(array), _value(node.args[0])
        if [n for n in source if n != 1] != [n for n in target if n != 1] or 0 in source:
            raise NoForm
        rest = iter([i for i, n in zip(index, target) if n != 1])
        return self.at(array, tuple(0 if n == 1 else next(rest) for n in source))

    def _of_astype(self, node: ast.Call, index: Index, array: ast.expr) -> ast.expr:
        return self.at(array, index)

    def _of_conj(self, node: ast.Call, index: Index, array: ast.expr) -> ast.expr:
        if self.concrete:
            raise NoForm
        return ast.Call(ast.Name("conj", ast.Load()), [self.at(array, index)], [])

    def shape(self, node: ast.expr) -> tuple[int, ...]:
        """The shape of a part of the formula."""
        if isinstance(node, ast.Name) and isinstance(self.formula.values.get(node.id), np.ndarray):
            return tuple(self.formula.values[node.id].shape)
        return tuple(np.shape(self._value(node)))

    def _value(self, node: ast.expr) -> Any:
        try:
            return evaluated(node, {**self.formula.helpers, **self.formula.values})
        except Exception:
            raise NoForm from None


def _value(node: ast.expr) -> Any:
    """What a literal is; an array's list."""
    try:
        return ast.literal_eval(node.args[0] if isinstance(node, ast.Call) else node)
    except ValueError:
        raise NoForm from None


def _axes(node: ast.expr) -> tuple[int, ...]:
    value = _value(node)
    return value if isinstance(value, tuple) else (value,)


def _without_new_axes(text: str, index: Index) -> Index:
    """The index that is left of one into ``x[..., None, :]``."""
    first, *parts = text.strip("()").split(", ")
    if first != "..." or not {*parts} <= {"None", ":"} or len(parts) > len(index):
        raise NoForm
    kept = [i for i, part in zip(index[len(index) - len(parts) :], parts) if part == ":"]
    return (*index[: len(index) - len(parts)], *kept)


def _reduced(node: ast.Call, ndim: int) -> tuple[tuple[int, ...], bool]:
    """The axes that a method sums over, and whether it keeps them."""
    keywords = {k.arg: _value(k.value) for k in node.keywords}
    axis = _value(node.args[0]) if node.args else keywords.get("axis")
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(a % ndim for a in axes), bool(keywords.get("keepdims"))
