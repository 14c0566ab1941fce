"""Write whole Jacobians in index form: ``∂Y[i,j]/∂X[k,l] = δ[i,k]·Y[i,j]·W[l,j]``, a sum over the paths from Y to X.

``Explanation.jacobians`` calls ``jacobians_of``. A path is walked from the output to the input. For every operation on it,
``Walk.local`` returns the index of the operand's element that an element of the result reads, and its factor. If an operation
has no such exact relation, the Jacobian has no index form.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from chainrule._src.explaining.elements import (
    LETTERS,
    ElementReader,
    broadcast_index,
    element_permutation,
    reduced_axes,
)
from chainrule._src.explaining.notation import LATEX, MATHML, TEXT, Alphabet, print_tree
from chainrule._src.explaining.recorded_pass import RecordedPass
from chainrule._src.explaining.simplify import partial_of_rule
from chainrule._src.explaining.steps import Arrow
from chainrule._src.explaining.terms import Bound, DeltaTerm, Product, combine_terms, delta_term, sum_of_terms
from chainrule._src.explaining.tree import Entry, IndexLetters, NoForm
from chainrule._src.explaining.values import Value
from chainrule._src.rules.structure import structure_of

_PATHS = 64  # most paths of a form
_TERMS = 6  # most terms of a form
_FACTORS = 12  # most factors of a term
PathProduct = tuple[
    IndexLetters, Product
]  # the index at the end of a path, and the product of the local partials on it


class IndexForm:
    """∂output/∂input in index form.

    Attributes:
        output, input: the values.
        paths: number of paths of operations between them; the Jacobian is the sum over the paths.
    """

    def __init__(
        self, output: Value, value: Value, paths: int, walked: Callable[[IndexLetters], Iterable[PathProduct]]
    ) -> None:
        self.output = output
        self.input = value
        self.paths = paths
        self._walked = walked

    @property
    def shape(self) -> tuple[int, ...]:
        """``(*output.shape, *input.shape)``."""
        return (*self.output.shape, *self.input.shape)

    @functools.cached_property
    def _letters(self) -> tuple[IndexLetters, IndexLetters]:
        """Indices of output and input: 0 along axes of length 1. The one with fewer axes (or the output) gets i, j ... first."""
        out, own = self.output.shape, self.input.shape
        turned = len(own) < len(out) and own != ()
        letters = iter(LETTERS)
        first, second = (
            tuple(0 if n == 1 else next(letters) for n in shape) for shape in ((own, out) if turned else (out, own))
        )
        return (second, first) if turned else (first, second)

    @functools.cached_property
    def _terms(self) -> list[DeltaTerm] | None:
        if self.paths > _PATHS or len(self.shape) > len(LETTERS) // 2:
            return None
        out, own = self._letters
        try:
            products = [delta_term(product, place, own, self.input.shape) for place, product in self._walked(out)]
            terms = combine_terms(products, [c for c in LETTERS if c not in (*out, *own)])
        except NoForm:
            return None
        return terms if len(terms) <= _TERMS else None

    def _print(self, to: Alphabet) -> str | None:
        if self._terms is None:
            return None
        top, bottom = (
            to.indexed(value.identifier, index) for value, index in zip((self.output, self.input), self._letters)
        )
        right = print_tree(sum_of_terms(self._terms), to)
        return to.put("formula", to.binary(to.put("derivative", top, bottom), "=", right))

    @functools.cached_property
    def index(self) -> str | None:
        """One element, as in ``∂y[j,k]/∂x[i] = δ[i,j]·x[k] + δ[i,k]·x[j]``; None if no exact form was found."""
        return self._print(TEXT)

    @functools.cached_property
    def latex(self) -> str | None:
        """The same in LaTeX."""
        return self._print(LATEX)

    @functools.cached_property
    def mathml(self) -> str | None:
        """The same in MathML."""
        return self._print(MATHML)

    def __repr__(self) -> str:
        return f"<Jacobian {self.index or f'∂{self.output.name}/∂{self.input.name}'}, shape {self.shape}>"


def jacobians_of(explanation: RecordedPass) -> list[IndexForm]:
    """Return the Jacobian of every output with respect to every value in ``wrt``."""
    walk = Walk(explanation)
    found = []
    for output in explanation.outputs:
        counts = {output.edge: 1}
        for step in explanation.steps:
            arriving = sum(counts.get(value.edge, 0) for value in step.outputs)
            for arrow in step.arrows:
                counts[arrow.input.edge] = counts.get(arrow.input.edge, 0) + arriving
        for value in explanation.wrt:
            walked = functools.partial(walk.paths, output, value)
            found.append(IndexForm(output, value, counts.get(value.edge, 0), walked))
    return found


class Walk:
    """Walks paths of operations of an explanation, and collects indices and factors."""

    def __init__(self, explanation: RecordedPass) -> None:
        self.steps = {value.edge: step for step in explanation.steps for value in step.outputs}
        self.is_named = explanation.is_named

    def jacobian(self, arrow: Arrow) -> IndexForm:
        """Return the local Jacobian of an arrow."""
        return IndexForm(arrow.step.output, arrow.input, 1, lambda index: [self.local(arrow, index)])

    def paths(self, start: Value, end: Value, index: IndexLetters) -> Iterator[PathProduct]:
        """Yield all paths from one value to another."""
        ahead = [(start, index, Product())]
        while ahead:
            value, index, product = ahead.pop()
            if value is end:
                yield index, product
                continue
            step = self.steps.get(value.edge)
            for arrow in reversed(step.arrows if step is not None else ()):
                place, factors = self.local(arrow, index)
                if len(product.factors) + len(factors.factors) > _FACTORS:
                    raise NoForm
                ahead.append((arrow.input, place, product.times(factors)))

    def local(self, arrow: Arrow, index: IndexLetters) -> PathProduct:
        """Return the index at which an element of the result reads the operand, and the partial derivative there."""
        step, x = arrow.step, arrow.input
        prim = step.record.node.prim
        if prim.kind == "function" or len(prim.outputs) != 1 or arrow._rule.complex or x.dtype.kind == "c":
            raise NoForm
        if prim.kind == "elementwise":
            return broadcast_index(index, x.shape), _partial(arrow, index, functools.partial(self._named, arrow))
        if prim.name == "cast":
            return index, Product()
        if prim.moves:
            return self._renamed(arrow, index), Product()
        structure = structure_of(prim, arrow.position, step.params)
        if structure in ("sum", "mean"):
            return self._summed(arrow, index)
        if "->" not in structure:
            raise NoForm
        return self._contracted(arrow, structure, index)

    # -- elements

    def _named(self, arrow: Arrow, key: str, index: IndexLetters) -> Entry:
        """Return the entry of the formula's name ``key`` at an index of the result."""
        step, operands = arrow.step, arrow.step.record.node.prim.operands
        if key == "out":
            return self._entry(step.output, index)
        return self._entry(step.operand_values.get(operands.index(key)) if key in operands else None, index)

    def _entry(self, value: Value | None, index: IndexLetters) -> Entry:
        """Return an element of a value; for an unnamed value that only moves another's elements, an element of that other."""
        while value is not None:
            index = broadcast_index(index, value.shape)
            step = self.steps.get(value.edge)
            if step is None or self.is_named(value) or not step.record.node.prim.moves or len(step.arrows) != 1:
                return Entry(value.identifier, index)
            try:
                index = self._renamed(step.arrows[0], index)
            except NoForm:
                return Entry(value.identifier, index)
            value = step.arrows[0].input
        raise NoForm

    # -- movements

    def _renamed(self, arrow: Arrow, index: IndexLetters) -> IndexLetters:
        return tuple(at if axis is None else index[axis] for axis, at in axes_read(arrow))

    # -- sums and products

    def _summed(self, arrow: Arrow, index: IndexLetters) -> PathProduct:
        params, x, out = arrow.step.params, arrow.input, arrow.step.output
        summed = set(reduced_axes(params["axis"], len(x.shape)))
        kept = iter([i for a, i in enumerate(index) if not params["keepdims"] or a not in summed])
        place = tuple(_bound(n) if a in summed else next(kept) for a, n in enumerate(x.shape))
        size, count = int(np.prod(out.shape)), int(np.prod(x.shape))
        if not count:
            raise NoForm
        number = Fraction(size, count) if arrow.step.op == "mean" else Fraction(1)
        return place, Product(number, bound=_bounds([place[a] for a in sorted(summed)]))

    def _contracted(self, arrow: Arrow, subscripts: str, index: IndexLetters) -> PathProduct:
        inputs, out = subscripts.split("->")
        batch, named = index[: len(index) - len(out)], index[len(index) - len(out) :]
        if arrow.position > 1:  # linear's bias
            return broadcast_index(index, arrow.input.shape), Product()
        mine, other = inputs.split(",")[arrow.position], inputs.split(",")[1 - arrow.position]
        where = dict(zip(out, named))
        for c, n in zip(mine, arrow.input.shape[len(arrow.input.shape) - len(mine) :]):
            where.setdefault(c, _bound(n))
        x, y = arrow.input, arrow.step.operand_values.get(1 - arrow.position)
        factor = self._entry(y, (*batch, *(where[c] for c in other)))
        bound = _bounds([where[c] for c in mine if c not in out])
        return broadcast_index((*batch, *(where[c] for c in mine)), x.shape), Product(above=(factor,), bound=bound)


def _bound(size: int) -> Any:
    """Return a new summation index; 0 if the axis has length 1."""
    return 0 if size == 1 else Bound(size)


def _bounds(index: Sequence[Bound]) -> tuple[Bound, ...]:
    return tuple(i for i in index if isinstance(i, Bound))


def _partial(arrow: Arrow, index: IndexLetters, entry: Callable[[str, IndexLetters], Entry]) -> Product:
    """Return a rule divided by its cotangent, if the formula holds for this node."""
    formula = arrow._rule.formula
    if formula is None or not arrow._rule.holds:
        raise NoForm
    return _product(partial_of_rule(formula.tree), ElementReader(formula, entry=entry), index)


def _product(node: ast.expr, element: ElementReader, index: IndexLetters) -> Product:
    """Split an expression into a number and factors."""
    read = functools.partial(_product, element=element, index=index)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return read(node.left).times(read(node.right))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return read(node.left).times(read(node.right).inverse())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return read(node.operand).times(Product(Fraction(-1)))
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return Product(_fraction(node.value))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.left, ast.Name):
        power = getattr(node.right, "value", None)
        if type(power) is int and 2 <= power <= 4:
            return functools.reduce(Product.times, [read(node.left)] * power)
    if isinstance(node, ast.Name) and not isinstance(element.formula.values.get(node.id), np.ndarray):
        raise NoForm  # a number that is not a literal
    return Product(above=(element.at(node, index),))


def _fraction(x: float) -> Fraction:
    """Return a float as the fraction of its decimal text: 0.1 is 1/10."""
    if not np.isfinite(x):
        raise NoForm
    return Fraction(int(x)) if isinstance(x, int) else Fraction(repr(float(x)))


def axes_read(arrow: Arrow) -> list[tuple[int | None, int]]:
    """Return for each axis of a moved operand the axis of the result along which it is read, or None and the index read."""
    step = arrow.step
    if arrow.position != 0 or 0 in arrow.input.shape:
        raise NoForm
    found = element_permutation(
        lambda x: step.record.node.prim.value(x, *step.operands[1:], **step.params), arrow.input.shape
    )
    if any(axis is not None and (start, step) != (0, 1) for axis, start, step in found):
        raise NoForm
    return [(axis, start) for axis, start, _ in found]
