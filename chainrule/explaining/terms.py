"""Sums of products of δ's, numbers and elements of arrays, brought to a short form."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from chainrule.explaining.formula import Formula
from chainrule.explaining.index_calls import Index, NoForm


class Bound:
    """An index below ``size`` that is summed over, and has no letter yet."""

    def __init__(self, size: int) -> None:
        self.size = size


@dataclass(frozen=True)
class Entry:
    """An element of an array."""

    name: str
    index: Index

    def at(self, letters: Mapping[Any, Any]) -> Entry:
        return Entry(self.name, _put(letters, self.index))

    def uses(self) -> Index:
        return self.index


@dataclass(frozen=True, eq=False)
class Part:
    """An element of an expression that is no plain product.

    Attributes:
        formula, tree: whose expression.
        index: of the result's element.
        entry: for a name in it and the result's index, the element of which array is meant.
    """

    formula: Formula
    tree: ast.expr
    index: Index
    entry: Callable[[str, Index], Entry]

    def at(self, letters: Mapping[Any, Any]) -> Part:
        return replace(self, index=_put(letters, self.index))

    def uses(self) -> Index:
        names = [n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name)]
        arrays = [k for k in names if isinstance(self.formula.values.get(k), np.ndarray)]
        return tuple(i for key in arrays for i in self.entry(key, self.index).index)


def _put(letters: Mapping[Any, Any], index: Index) -> Index:
    return tuple(letters.get(i, i) for i in index)


class Product(NamedTuple):
    """A number times the factors above, divided by those below, summed over bound indices."""

    number: Fraction = Fraction(1)
    above: tuple[Any, ...] = ()
    below: tuple[Any, ...] = ()
    bound: tuple[Bound, ...] = ()

    @property
    def factors(self) -> tuple[Any, ...]:
        return self.above + self.below

    def times(self, other: Product) -> Product:
        return Product(*(mine * its if i == 0 else mine + its for i, (mine, its) in enumerate(zip(self, other))))  # type: ignore[operator]

    def inverse(self) -> Product:
        if self.number == 0:
            raise NoForm
        return Product(1 / self.number, self.below, self.above)

    def at(self, letters: Mapping[Any, Any]) -> Product:
        """With letters in place of indices; sums over an index that no factor reads are done."""
        above, below = (tuple(f.at(letters) for f in part) for part in (self.above, self.below))
        read = {i for f in above + below for i in f.uses()}
        idle = [b.size for b in self.bound if b not in letters and b not in read]
        return Product(self.number * math.prod(idle), above, below, tuple(b for b in self.bound if b in read))


class Term(NamedTuple):
    """A product with δ's before it, summed over letters."""

    deltas: tuple[tuple[Any, Any], ...]
    sums: tuple[str, ...]
    product: Product


def moved(product: Product, place: Index, own: Index, shape: Sequence[int]) -> Term:
    """The product times δ's that say: the operand's index ``own`` is ``place``. An index that is summed over goes with its δ."""
    letters: dict[Any, Any] = {}
    deltas = []
    for p, i, n in zip(place, own, shape):
        if isinstance(p, Bound) and p not in letters:
            if p.size != n:
                raise NoForm
            letters[p] = i
        elif n != 1:
            deltas.append((p, i))
    product = product.at(letters)
    found = [tuple(sorted((letters.get(p, p), i), key=lambda k: (isinstance(k, int), k))) for p, i in deltas]
    return Term(tuple(sorted(set(found), key=str)), (), product)  # type: ignore[arg-type]


def combined(terms: Sequence[Term], free: Sequence[str], text: Callable[[Any], str]) -> list[Term]:
    """Terms with letters for what they sum over, those that differ by a number only made one; ``text`` tells factors apart."""
    found: dict[Any, Term] = {}
    for term in terms:
        term = _lettered(term, free)
        key = (term.deltas, term.sums, *(tuple(sorted(map(text, part))) for part in term.product[1:3]))
        if key in found:
            number = found[key].product.number + term.product.number
            term = found[key]._replace(product=found[key].product._replace(number=number))
        found[key] = term
    return [term for term in found.values() if term.product.number]


def _lettered(term: Term, free: Sequence[str]) -> Term:
    order = [i for f in term.product.factors for i in f.uses() if isinstance(i, Bound)]
    if len(set(order)) > len(free):
        raise NoForm
    letters = dict(zip(dict.fromkeys(order), free))
    return term._replace(sums=tuple(letters.values()), product=term.product.at(letters))
