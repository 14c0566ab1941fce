"""Convert a formula of arrays to one element of it: ``Xˉ[i,k] = Σ_j Zˉ[i,j]·W[k,j]``, with letters or with numbers.

``ElementReader`` walks the formula's syntax tree from the index of the result to the indices of the operands, and returns a
tree over elements. It raises :class:`~chainrule._src.explaining.tree.NoForm` if an expression has no exact element form.
``rules`` and ``jacobian`` call it.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import Dims
from chainrule._src.explaining.formula import Formula, broadcast_axes
from chainrule._src.explaining.notation import TEXT, print_tree
from chainrule._src.explaining.tree import (
    Entry,
    IndexLetters,
    NoForm,
    Relation,
    Sigma,
    accepts_arguments,
    call_name,
    constant_node,
    copy_tree,
    evaluate_tree,
    of_numpy,
    product_node,
)
from chainrule._src.rules.primitive import Primitive

LETTERS = "ijklmnopqrsuvwzacdefh"
_TERMS = 4  # most terms of a sum of numbers that are written out
_MOVED = 10**6  # most elements of an array whose permutation is probed
_MOVES = {"expand_dims", "broadcast_to", "transpose", "swapaxes", "moveaxis", "diagonal"}
_ELEMENTWISE = {"clip", "real", "imag"}  # besides NumPy's ufuncs and elementwise rows


def index_letters(shape: Sequence[int], wanted: str = "") -> IndexLetters:
    """Return the indices of an array: the wanted letters for its last axes, or i, j, k ...; 0 along axes of length 1."""
    letters = "bcdef"[: len(shape) - len(wanted)] + wanted if wanted else LETTERS[: len(shape)]
    if len(letters) < len(shape):
        raise NoForm
    return tuple(0 if n == 1 else c for n, c in zip(shape, letters))


def broadcast_index(index: IndexLetters, shape: tuple[int, ...]) -> IndexLetters:
    """Return the index of the operand's element that broadcasting copies to ``index``."""
    if len(index) < len(shape):
        raise NoForm
    return tuple(0 if n == 1 else i for n, i in zip(shape, index[len(index) - len(shape) :]))


def rounded_constant(x: object) -> ast.expr:
    """Return a number, rounded to four digits, as a constant of a tree."""
    x = np.asarray(x).item()
    return constant_node(float(f"{x:.4g}") if isinstance(x, float) else x)


class ElementReader:
    """Convert a formula to one element of it.

    Args:
        formula: the formula.
        concrete: indices are numbers, and arrays are read at them.
        used: letters that must not be used as summation indices.
        entry: returns the element of a name; by default, an entry with the formula's own name.
    """

    def __init__(
        self,
        formula: Formula,
        concrete: bool = False,
        used: Sequence[str] = (),
        entry: Callable[[str, IndexLetters], ast.expr] | None = None,
    ) -> None:
        self.formula = formula
        self.concrete = concrete
        self.entry = entry or (lambda key, index: Entry(formula.names[key], index))
        self._seen_through = entry is not None
        self._permutations: dict[int, list[tuple[int | None, int, int]]] = {}  # by the nodes that move elements
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._free = (letter for letter in LETTERS if letter not in used)

    def result(self, index: IndexLetters) -> ast.expr:
        """Return the element of the operand's cotangent, with the sums that undo broadcasting."""
        f = self.formula
        if f.raw_shape and len(f.raw_shape) - len(f.stretched[0]) != len(f.shape):
            raise NoForm
        return self._unbroadcast(f.tree, f.raw_shape, f.stretched, index)

    def _unbroadcast(
        self, array: ast.expr, shape: tuple[int, ...], stretched: tuple[tuple[int, ...], ...], index: IndexLetters
    ) -> ast.expr:
        added, long = stretched
        return self._summed(array, shape, (*added, *long), (*(None for _ in added), *index))

    def _summed(self, array: ast.expr, shape: tuple[int, ...], axes: tuple[int, ...], index: IndexLetters) -> ast.expr:
        """Return the sum over axes of an array, at the index of the other axes."""

        def body(bound: IndexLetters) -> ast.expr:
            at = dict(zip(axes, bound))
            return self.at(array, tuple(at.get(a, i) for a, i in enumerate(index)))

        return self._total([shape[a] for a in axes], body)

    def _total(self, sizes: Sequence[int], body: Callable[[IndexLetters], ast.expr]) -> ast.expr:
        """Return the sum of ``body`` over indices below ``sizes``."""
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

    def at(self, node: ast.expr, index: IndexLetters) -> ast.expr:
        """Return one element of an expression: dispatch to the method named after the node's type."""
        read = getattr(self, "_" + type(node).__name__.lower(), None)
        if read is None:
            raise NoForm
        found: ast.expr = read(node, index)
        return found

    # -- names, constants and operators

    def _name(self, node: ast.Name, index: IndexLetters) -> ast.expr:
        value = self.formula.values.get(node.id)
        if not isinstance(value, np.ndarray):
            return self._single(node)
        index = broadcast_index(index, value.shape)
        return rounded_constant(value[index]) if self.concrete else self.entry(node.id, index)

    def _constant(self, node: ast.Constant, index: IndexLetters) -> ast.expr:
        if not isinstance(node.value, (bool, int, float, complex)):
            raise NoForm
        return node

    def _single(self, node: ast.expr) -> ast.expr:
        """Return an expression whose value is a single number, which has no index."""
        value = self._value(node)
        if np.ndim(value) != 0 or not isinstance(value, (bool, int, float, complex, np.generic)):
            raise NoForm
        return constant_node(np.asarray(value).item())

    def _result(self, node: ast.Call, index: IndexLetters) -> ast.expr:
        """Return an element of a function of whole arrays: ``softmax(x)[i,j]``. Raise NoForm if the rule is only that call."""
        shape = self.shape(node)
        if not shape:
            return self._single(node)
        if node is self.formula.tree or self._seen_through or isinstance(node.func, ast.Lambda):
            raise NoForm
        if any(k.arg != "axis" for k in node.keywords):
            raise NoForm
        index = broadcast_index(index, shape)
        if self.concrete:
            return rounded_constant(self._value(node)[index])
        return Entry(print_tree(self.formula.renamed(node), TEXT), index)

    def _attribute(self, node: ast.Attribute, index: IndexLetters) -> ast.expr:
        if of_numpy(node):
            value = getattr(np, node.attr)
            if not isinstance(value, float):
                raise NoForm
            return rounded_constant(value) if self.concrete else node
        return self._moved(node, index, node.value) if node.attr in ("mT", "T") else self._single(node)

    def _unaryop(self, node: ast.UnaryOp, index: IndexLetters) -> ast.expr:
        if not isinstance(node.op, (ast.USub, ast.Invert)):
            raise NoForm
        return ast.UnaryOp(node.op, self.at(node.operand, index))

    def _binop(self, node: ast.BinOp, index: IndexLetters) -> ast.expr:
        if isinstance(node.op, ast.MatMult):
            inner = "k" if len(self.shape(node.right)) == 1 else "kj"
            return self._product(f"...ik,...{inner}->...i{inner[1:]}", (node.left, node.right), index)
        if not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.BitAnd, ast.BitOr)):
            raise NoForm
        return ast.BinOp(self.at(node.left, index), node.op, self.at(node.right, index))

    def _compare(self, node: ast.Compare, index: IndexLetters) -> ast.expr:
        if len(node.ops) != 1 or isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            raise NoForm
        return ast.Compare(self.at(node.left, index), node.ops, [self.at(node.comparators[0], index)])

    def _subscript(self, node: ast.Subscript, index: IndexLetters) -> ast.expr:
        value = node.value
        if isinstance(value, ast.Call) and call_name(value) == "split":
            value = value.args[0]
        return self._moved(node, index, value)

    def _moved(self, node: ast.expr, index: IndexLetters, array: ast.expr) -> ast.expr:
        """Return an element of an expression that only moves elements; apply it to coordinates to find the permutation."""

        def move(coordinates: object) -> Any:
            return self._value(copy_tree(node, array, ast.Name("moved", ast.Load())), moved=coordinates)

        if id(node) not in self._permutations:
            self._permutations[id(node)] = element_permutation(move, self.shape(array))
        index = broadcast_index(index, self.shape(node))
        return self.at(array, tuple(_along(index, *place) for place in self._permutations[id(node)]))

    # -- calls

    def _call(self, node: ast.Call, index: IndexLetters) -> ast.expr:
        name = call_name(node)
        if name in _MOVES:
            return self._moved(node, index, node.args[0])
        special = getattr(self, "_np_" + name, None)
        if accepts_arguments(special, node, index, *node.args):
            return special(node, index, *node.args)
        if isinstance(node.func, ast.Attribute) and not of_numpy(node.func):
            method = getattr(self, "_of_" + node.func.attr, None)
            if method is not None:
                return method(node, index, node.func.value)
        if self._is_elementwise(name) and not node.keywords:
            return ast.Call(node.func, [self.at(a, index) for a in node.args], [])
        return self._result(node, index)

    def _is_elementwise(self, name: str) -> bool:
        function = self.formula.helpers.get(name) or getattr(np, name, None)
        elementwise = isinstance(function, Primitive) and function.kind == "elementwise"
        return elementwise or isinstance(function, np.ufunc) or name in _ELEMENTWISE

    def _np_where(self, node: ast.Call, index: IndexLetters, test: ast.expr, yes: ast.expr, no: ast.expr) -> ast.expr:
        return ast.IfExp(*(self.at(part, index) for part in (test, yes, no)))

    def _np_one_hot(self, node: ast.Call, index: IndexLetters, x: ast.expr, n: ast.expr) -> ast.expr:
        at = ast.Constant(index[-1]) if self.concrete else ast.Name(index[-1], ast.Load())
        return ast.Compare(self.at(x, index[:-1]), [ast.Eq()], [at])

    def _np_outer(self, node: ast.Call, index: IndexLetters, x: ast.expr, y: ast.expr) -> ast.expr:
        return self._product("i,j->ij", (x, y), index)

    def _np_flip(self, node: ast.Call, index: IndexLetters, x: ast.expr, axes: ast.expr) -> ast.expr:
        inner = x.args[0] if isinstance(x, ast.Call) and call_name(x) == "cumsum" else None
        if isinstance(inner, ast.Call) and call_name(inner) == "flip":
            return self._from_here_on(inner.args[0], _value(axes), index)
        return self._moved(node, index, x)

    def _from_here_on(self, array: ast.expr, axis: int, index: IndexLetters) -> ast.expr:
        """Return a sum from an index to the end of an axis (the transpose of a cumulative sum)."""
        axis, start = axis % len(index), index[axis]

        def at(i: object) -> ast.expr:
            return self.at(array, (*index[:axis], i, *index[axis + 1 :]))

        if self.concrete:
            return self._total([self.shape(array)[axis] - start], lambda bound: at(start + bound[0]))
        letter = next(self._free)
        return Sigma((f"{letter}≥{start}",), at(letter))

    def _triangle(self, node: ast.Call, index: IndexLetters, x: ast.expr, k: ast.expr | None = None) -> ast.expr:
        if len(index) < 2 or k is None:
            raise NoForm
        shift = _value(k)
        about = f" + {shift}" if shift > 0 else f" − {-shift}" if shift < 0 else ""
        sign = "≤" if call_name(node) == "tril" else "≥"
        return product_node(self.at(x, index), Relation(f"{index[-1]} {sign} {index[-2]}{about}"))

    _np_tril = _np_triu = _triangle

    def _np_unbroadcast(
        self, node: ast.Call, index: IndexLetters, x: ast.expr, shape: ast.expr, dtype: ast.expr
    ) -> ast.expr:
        whole = self.shape(x)
        return self._unbroadcast(x, whole, broadcast_axes(whole, _value(shape)), index)

    def _np_einsum(self, node: ast.Call, index: IndexLetters, spec: ast.expr, *arrays: ast.expr) -> ast.expr:
        return self._product(_value(spec), arrays, index)

    def _product(self, subscripts: str, arrays: Sequence[ast.expr], index: IndexLetters) -> ast.expr:
        inputs, _, out = subscripts.partition("->")
        parts = inputs.split(",")
        named = out.replace("...", "")
        if len(index) < len(named):
            raise NoForm
        batch, where = index[: len(index) - len(named)], dict(zip(named, index[len(index) - len(named) :]))
        sizes: dict[str, int] = {}
        for part, array in zip(parts, arrays):
            sizes.update(zip(reversed(part), reversed(self.shape(array))))
        summed = [c for c in sizes if c not in where and c != "."]

        def body(bound: IndexLetters) -> ast.expr:
            at = {**where, **dict(zip(summed, bound))}
            factors = [
                self.at(array, (*(batch if "..." in part else ()), *(at[c] for c in part.replace("...", ""))))
                for part, array in zip(parts, arrays)
            ]
            return functools.reduce(product_node, factors)

        return self._total([sizes[c] for c in summed], body)

    def _of_sum(self, node: ast.Call, index: IndexLetters, array: ast.expr) -> ast.expr:
        shape = self.shape(array)
        axes, keepdims = _reduced(node, len(shape))
        full = list(index[len(index) - len(shape) + (0 if keepdims else len(axes)) :])
        for axis in () if keepdims else sorted(axes):
            full.insert(axis, None)
        return self._summed(array, shape, axes, tuple(full))

    def _of_mean(self, node: ast.Call, index: IndexLetters, array: ast.expr) -> ast.expr:
        shape = self.shape(array)
        count = math.prod(shape[a] for a in _reduced(node, len(shape))[0])
        return ast.BinOp(self._of_sum(node, index, array), ast.Div(), ast.Constant(count))

    def _of_reshape(self, node: ast.Call, index: IndexLetters, array: ast.expr) -> ast.expr:
        return self._moved(node, index, array)

    def _of_astype(self, node: ast.Call, index: IndexLetters, array: ast.expr) -> ast.expr:
        return self.at(array, index)

    def _of_conj(self, node: ast.Call, index: IndexLetters, array: ast.expr) -> ast.expr:
        if self.concrete:
            raise NoForm
        return ast.Call(ast.Name("conj", ast.Load()), [self.at(array, index)], [])

    def shape(self, node: ast.expr) -> tuple[int, ...]:
        """Return the shape of a part of the formula."""
        if id(node) not in self._shapes:
            value = self._value(node)
            if isinstance(value, (tuple, list)):
                raise NoForm
            self._shapes[id(node)] = tuple(np.shape(value))
        return self._shapes[id(node)]

    def _value(self, node: ast.expr, **names: object) -> Any:
        try:
            return evaluate_tree(node, {**self.formula.helpers, **self.formula.values, **names})
        except Exception:
            raise NoForm from None


def element_permutation(move: Callable[[Any], Any], shape: tuple[int, ...]) -> list[tuple[int | None, int, int]]:
    """Find how ``move`` permutes the elements of an array.

    Return for each axis of the array the axis of the result along which it is read (None: a single index is read), the first
    index, and the step.
    """
    shape = tuple(n or 2 for n in shape)  # probe empty arrays with a non-empty one
    if math.prod(shape) > _MOVED:
        raise NoForm
    found: list[tuple[int | None, int, int]] = []
    for axis, n in enumerate(shape):
        along = np.arange(n).reshape([n if a == axis else 1 for a in range(len(shape))])
        read = np.asarray(move(np.broadcast_to(along, shape)))
        if not 0 < read.size <= _MOVED:
            raise NoForm
        start = int(read.flat[0])
        for a, m in enumerate(read.shape):
            line = np.arange(m).reshape([m if b == a else 1 for b in range(read.ndim)])
            step = int(read.take(m > 1, a).flat[0]) - start
            if step and (read == start + step * line).all():
                found.append((a, start, step))
                break
        else:
            if (read != start).any():
                raise NoForm
            found.append((None, start, 0))
    return found


def _along(index: IndexLetters, axis: int | None, start: int, step: int) -> Any:
    """Return the index of an operand's axis that is read at an index of the result."""
    i = 0 if axis is None else index[axis]
    if isinstance(i, int):
        return start + step * i
    if step not in (1, -1):
        raise NoForm
    return f"{start}-{i}" if step < 0 else f"{i}+{start}" if start else i


def _value(node: ast.expr) -> Any:
    """Return the value of a literal."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise NoForm from None


def _reduced(node: ast.Call, ndim: int) -> tuple[tuple[int, ...], bool]:
    """Return the axes that a method sums over, and whether it keeps them."""
    keywords = {k.arg: _value(k.value) for k in node.keywords}
    axis = _value(node.args[0]) if node.args else keywords.get("axis")
    return reduced_axes(axis, ndim), bool(keywords.get("keepdims"))


def reduced_axes(axis: Dims, ndim: int) -> tuple[int, ...]:
    """Return the axes of a parameter ``axis`` as a tuple of non-negative numbers."""
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(a % ndim for a in axes) if ndim else ()
