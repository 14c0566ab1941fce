"""Sums of products of δ's, numbers and elements of arrays, and their simplification.

``jacobian`` makes a ``Product`` for each path, combines them (``delta_term``, ``combine_terms``), and prints ``sum_of_terms(terms)``.
"""

from __future__ import annotations

import ast
import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from chainrule._src.explaining.notation import TEXT, print_tree
from chainrule._src.explaining.tree import (
    Entry,
    IndexLetters,
    NoForm,
    Sigma,
    SubstituteIndices,
    copy_tree,
    product_node,
)


class Bound:
    """A summation index below ``size`` that has no letter yet."""

    def __init__(self, size: int) -> None:
        self.size = size


class Product(NamedTuple):
    """A number times the factors above, divided by those below, summed over bound indices."""

    number: Fraction = Fraction(1)
    above: tuple[ast.expr, ...] = ()
    below: tuple[ast.expr, ...] = ()
    bound: tuple[Bound, ...] = ()

    @property
    def factors(self) -> tuple[ast.expr, ...]:
        return self.above + self.below

    @property
    def indices(self) -> list[object]:
        """All indices of its factors, in order."""
        entries = (n for factor in self.factors for n in ast.walk(factor) if isinstance(n, Entry))
        return [i for entry in entries for i in entry.index]

    def times(self, other: Product) -> Product:
        return Product(
            self.number * other.number, self.above + other.above, self.below + other.below, self.bound + other.bound
        )

    def inverse(self) -> Product:
        if self.number == 0:
            raise NoForm
        return Product(1 / self.number, self.below, self.above)

    def at(self, letters: Mapping[Bound, str]) -> Product:
        """Replace indices by letters; replace a sum over an index that no factor reads by its size."""
        above, below = (
            tuple(SubstituteIndices(letters).visit(copy_tree(f)) for f in part) for part in (self.above, self.below)
        )
        found = Product(self.number, above, below)
        idle = [b.size for b in self.bound if b not in letters and b not in found.indices]
        kept = tuple(b for b in self.bound if b in found.indices)
        return found._replace(number=self.number * math.prod(idle), bound=kept)


class DeltaTerm(NamedTuple):
    """A product with δ's, summed over letters."""

    deltas: tuple[tuple[Any, Any], ...]
    sums: tuple[str, ...]
    product: Product


def delta_term(product: Product, place: IndexLetters, own: IndexLetters, shape: Sequence[int]) -> DeltaTerm:
    """Multiply a product by δ's that equate the operand's index ``own`` with ``place``; eliminate summation indices."""
    letters: dict[Any, Any] = {}
    deltas = []
    for p, i, n in zip(place, own, shape):
        if isinstance(p, Bound) and p not in letters:
            if p.size != n:
                raise NoForm
            letters[p] = i
        elif n != 1:
            deltas.append((p, i))
    found = [tuple(sorted((letters.get(p, p), i), key=lambda k: (isinstance(k, int), k))) for p, i in deltas]
    return DeltaTerm(tuple(sorted(set(found), key=str)), (), product.at(letters))


def combine_terms(terms: Sequence[DeltaTerm], free: Sequence[str]) -> list[DeltaTerm]:
    """Give summation indices letters, and add terms that differ only by a number."""
    found: dict[object, DeltaTerm] = {}
    for term in terms:
        term = _name_bounds(term, free)
        factors = (sorted(print_tree(f, TEXT) for f in part) for part in (term.product.above, term.product.below))
        key = (term.deltas, term.sums, *map(tuple, factors))
        if key in found:
            number = found[key].product.number + term.product.number
            term = found[key]._replace(product=found[key].product._replace(number=number))
        found[key] = term
    return [term for term in found.values() if term.product.number]


def _name_bounds(term: DeltaTerm, free: Sequence[str]) -> DeltaTerm:
    bound = dict.fromkeys(i for i in term.product.indices if isinstance(i, Bound))
    if len(bound) > len(free):
        raise NoForm
    letters = dict(zip(bound, free))
    return term._replace(sums=tuple(letters.values()), product=term.product.at(letters))


def sum_of_terms(terms: Sequence[DeltaTerm]) -> ast.expr:
    """Return the sum of terms as a tree."""
    total: ast.expr | None = None
    for term in terms:
        one, negative = _term(term), term.product.number < 0
        if total is None:
            total = ast.UnaryOp(ast.USub(), one) if negative else one
        else:
            total = ast.BinOp(total, ast.Sub() if negative else ast.Add(), one)
    return ast.Constant(0) if total is None else total


def _term(term: DeltaTerm) -> ast.expr:
    """Return a term without its sign: δ's, a number, and a fraction inside its sum."""
    top, bottom = _number(abs(term.product.number))
    above, below = _powers(term.product.above), [*bottom, *_powers(term.product.below)]
    before: list[ast.expr] = [Entry("δ", pair) for pair in term.deltas]
    if term.sums:
        before += top
    else:
        above = [*top, *above]
    if not above and not term.sums:
        above, before = before, []
    body = functools.reduce(product_node, above) if above else ast.Constant(1)
    if below:
        body = ast.BinOp(body, ast.Div(), functools.reduce(product_node, below))
    return functools.reduce(product_node, [*before, Sigma(term.sums, body) if term.sums else body])


def _powers(factors: Sequence[ast.expr]) -> list[ast.expr]:
    """Replace repeated factors by powers."""
    texts = [print_tree(f, TEXT) for f in factors]
    counts = Counter(texts)
    first = {text: f for text, f in zip(reversed(texts), reversed(factors))}
    return [ast.BinOp(first[text], ast.Pow(), ast.Constant(n)) if n > 1 else first[text] for text, n in counts.items()]


def _number(x: Fraction) -> tuple[list[ast.expr], list[ast.expr]]:
    """Split a number into numerator and denominator: 1/3 has the denominator 3, 5/2 the numerator 2.5."""
    p, q = x.numerator, x.denominator
    if q > 10**6 or (q == 1 and p >= 10**15) or (p != 1 != q and len(repr(float(x))) <= 8):
        return [ast.Constant(float(x))], []
    return [ast.Constant(p)] * (p != 1), [ast.Constant(q)] * (q != 1)
