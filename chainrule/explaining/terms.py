"""Sums of products of δ's, numbers and elements of arrays: brought to a short form, and written as text, LaTeX and MathML."""

from __future__ import annotations

import ast
import html
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from chainrule.explaining import latex
from chainrule.explaining.formula import Formula
from chainrule.explaining.index_calls import ATOM, MUL, POW, Index, NoForm, enclosed
from chainrule.explaining.index_form import POWERS, Element, bracket


class Bound:
    """An index below ``size`` that is summed over, and has no letter yet."""

    def __init__(self, size: int) -> None:
        self.size = size


class Entry(NamedTuple):
    """An element of an array."""

    name: str
    index: Index

    def at(self, letters: Mapping[Any, Any]) -> Entry:
        return Entry(self.name, _put(letters, self.index))

    def uses(self) -> Index:
        return self.index


class Part(NamedTuple):
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
        return self._replace(index=_put(letters, self.index))

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


def combined(terms: Sequence[Term], free: Sequence[str]) -> list[Term]:
    """Terms with letters for what they sum over, those that differ by a number only made one."""
    found: dict[Any, Term] = {}
    for term in terms:
        term = _lettered(term, free)
        key = (term.deltas, term.sums, *(_sorted(part) for part in (term.product.above, term.product.below)))
        if key in found:
            number = found[key].product.number + term.product.number
            term = found[key]._replace(product=found[key].product._replace(number=number))
        found[key] = term
    return [term for term in found.values() if term.product.number]


def _sorted(factors: Sequence[Any]) -> tuple[str, ...]:
    return tuple(sorted(TEXT.factor(f, ATOM) for f in factors))


def _lettered(term: Term, free: Sequence[str]) -> Term:
    order = [i for f in term.product.factors for i in f.uses() if isinstance(i, Bound)]
    if len(set(order)) > len(free):
        raise NoForm
    letters = dict(zip(dict.fromkeys(order), free))
    return term._replace(sums=tuple(letters.values()), product=term.product.at(letters))


# -- writing -------------------------------------------------------------------------------------------------------------


def written(how: Any, output: Entry, value: Entry, terms: Sequence[Term]) -> str:
    """``∂output/∂input = …``."""
    right = ""
    for i, term in enumerate(terms):
        sign = "-" if term.product.number < 0 else "+" if i else ""
        right += how.sign(sign, first=i == 0) + _term(how, term, len(terms) == 1)
    return str(how.equation(output, value, right or how.number("0")))


def _term(how: Any, term: Term, alone: bool) -> str:
    """A term without its sign."""
    top, bottom = _number(abs(term.product.number))
    above, below = (list(_powers(part)) for part in (term.product.above, term.product.below))
    single = alone and not (term.deltas or term.sums or top or bottom)
    count = bool(bottom) + len(below)
    over = [how.number(bottom)] * bool(bottom) + _factors(how, below, how.below if count == 1 else MUL)
    open_ = (single and not over) or (bool(over) and how.stacked and not top)
    part = _factors(how, above, 0 if open_ and len(above) == 1 else MUL)
    before = [how.delta(*pair) for pair in term.deltas]
    if top and not part and not before:
        part = [how.number(top)]
    elif top:
        before, part = (before, [how.number(top), *part]) if not term.sums else ([*before, how.number(top)], part)
    if over and not part and (how.stacked or not before or term.sums):
        part = [how.number("1")]
    body = how.times(part)
    if over and part:
        body = how.over(body, how.times(over), len(over))
    if term.sums:
        body = how.sigma(term.sums, body)
    whole = how.times([*before, body] if body else before)
    if over and not part:
        whole = how.over(whole, how.times(over), len(over))
    if term.sums and not alone:
        whole = how.enclosed(whole)
    return str(whole) if whole else str(how.number("1"))


def _powers(factors: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    """Factors with how often they occur."""
    entries = Counter(f for f in factors if isinstance(f, Entry))
    for factor in dict.fromkeys(factors):
        yield factor, entries.get(factor, 1) if isinstance(factor, Entry) else 1


def _factors(how: Any, factors: Sequence[tuple[Any, int]], needed: int) -> list[str]:
    return [how.power(how.factor(f, ATOM), n) if n > 1 else how.factor(f, needed) for f, n in factors]


def _number(x: Fraction) -> tuple[str, str]:
    """What stands above and below: ("", "3") for a third, ("2.5", "") for five halves."""
    p, q = x.numerator, x.denominator
    if q == 1 and p < 10**15:
        return "" if p == 1 else str(p), ""
    if p == 1 and q <= 10**6:
        return "", str(q)
    decimal = repr(float(x))
    if len(decimal) <= 8 or q > 10**6:
        return decimal, ""
    return str(p), str(q)


class _Text:
    """``δ[i,k]·2·Σ_m B[l,m]·C[m,j] / 3``."""

    stacked, below = False, POW

    def factor(self, factor: Any, needed: int) -> str:
        if isinstance(factor, Entry):
            return factor.name + bracket(factor.index)
        return enclosed(*_Element(factor).at(factor.tree, factor.index), needed)

    def number(self, text: str) -> str:
        return text

    def delta(self, i: Any, k: Any) -> str:
        return f"δ[{i},{k}]"

    def power(self, base: str, n: int) -> str:
        return base + str(n).translate(POWERS)

    def times(self, factors: Sequence[str]) -> str:
        return "·".join(factors)

    def over(self, above: str, below: str, count: int) -> str:
        return f"{above} / {below}" if count == 1 else f"{above} / ({below})"

    def sigma(self, letters: Sequence[str], body: str) -> str:
        return f"Σ_{letters[0] if len(letters) == 1 else '{' + ','.join(letters) + '}'} {body}"

    def enclosed(self, text: str) -> str:
        return f"({text})"

    def sign(self, sign: str, first: bool) -> str:
        sign = sign.replace("-", "−")
        return sign if first else f" {sign} "

    def equation(self, output: Entry, value: Entry, right: str) -> str:
        return f"∂{self.factor(output, ATOM)}/∂{self.factor(value, ATOM)} = {right}"


class _Element(Element):
    """Reads the elements of a part."""

    def __init__(self, part: Part) -> None:
        super().__init__(part.formula, False)
        self.part = part

    def _name(self, node: ast.Name, index: Index) -> tuple[str, int]:
        if not isinstance(self.formula.values.get(node.id), np.ndarray):
            return self._scalar(node)
        return TEXT.factor(self.part.entry(node.id, index), ATOM), ATOM


class _Latex:
    r"""``\delta_{ik} \cdot 2 \sum_{m} \frac{B_{lm} C_{mj}}{3}``."""

    stacked, below = True, 0

    def factor(self, factor: Any, needed: int) -> str:
        if isinstance(factor, Entry):
            return self._indexed(latex.symbol(factor.name), factor.index)
        formula = factor.formula

        def name(key: str) -> str:
            return self.factor(factor.entry(key, factor.index), ATOM) if key in formula.names else latex.symbol(key)

        return latex.Elementwise(name, lambda text: text, frozenset())(factor.tree, needed)

    def _indexed(self, symbol: str, index: Index) -> str:
        below = "".join(map(str, index))
        base = f"{{{symbol}}}" if "_" in symbol else symbol
        return symbol if not index else f"{base}_{below}" if len(below) == 1 else f"{base}_{{{below}}}"

    def number(self, text: str) -> str:
        return latex.plain(text)

    def delta(self, i: Any, k: Any) -> str:
        return self._indexed(r"\delta", (i, k))

    def power(self, base: str, n: int) -> str:
        return f"{base}^{{{n}}}"

    def times(self, factors: Sequence[str]) -> str:
        found = ""
        for factor in factors:
            found += ("" if not found else r" \cdot " if factor[:1].isdigit() else " ") + factor
        return found

    def over(self, above: str, below: str, count: int) -> str:
        return rf"\frac{{{above}}}{{{below}}}"

    def sigma(self, letters: Sequence[str], body: str) -> str:
        return rf"\sum_{{{','.join(letters)}}} {body}"

    def enclosed(self, text: str) -> str:
        return rf"\left({text}\right)"

    def sign(self, sign: str, first: bool) -> str:
        return sign if first else f" {sign} "

    def equation(self, output: Entry, value: Entry, right: str) -> str:
        return rf"\frac{{\partial {self.factor(output, ATOM)}}}{{\partial {self.factor(value, ATOM)}}} = {right}"


class _MathML:
    """The same elements that latex2mathml makes of the LaTeX."""

    stacked, below = True, 0

    def factor(self, factor: Any, needed: int) -> str:
        if isinstance(factor, Entry):
            return self._indexed(latex.identifier("", factor.name), factor.index)
        text, places = latex.template_of(factor.formula, factor.tree, needed, latex.Elementwise)
        found = latex.of_template(text)
        if found is None:
            raise NoForm

        def place(key: str) -> str:
            if key in factor.formula.names:
                return self.factor(factor.entry(key, factor.index), ATOM)
            return latex.identifier(key, places[key])

        return f"<mrow>{latex.filled(found, place)}</mrow>"

    def _indexed(self, symbol: str, index: Index) -> str:
        below = "".join(f"<mn>{i}</mn>" if isinstance(i, int) else f"<mi>{html.escape(i)}</mi>" for i in index)
        return f"<msub>{symbol}<mrow>{below}</mrow></msub>" if index else symbol

    def number(self, text: str) -> str:
        return f"<mn>{text}</mn>"

    def delta(self, i: Any, k: Any) -> str:
        return self._indexed("<mi>&#x3B4;</mi>", (i, k))

    def power(self, base: str, n: int) -> str:
        return f"<msup><mrow>{base}</mrow><mn>{n}</mn></msup>"

    def times(self, factors: Sequence[str]) -> str:
        found = ""
        for factor in factors:
            found += ("" if not found else f"<mo>&#x{'22C5' if factor.startswith('<mn>') else '2062'};</mo>") + factor
        return found

    def over(self, above: str, below: str, count: int) -> str:
        return f"<mfrac><mrow>{above}</mrow><mrow>{below}</mrow></mfrac>"

    def sigma(self, letters: Sequence[str], body: str) -> str:
        below = "<mo>,</mo>".join(f"<mi>{c}</mi>" for c in letters)
        return f"<munder><mo>&#x2211;</mo><mrow>{below}</mrow></munder>{body}"

    def enclosed(self, text: str) -> str:
        return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"

    def sign(self, sign: str, first: bool) -> str:
        return f"<mo>{sign.replace('-', '&#x2212;')}</mo>" if sign else ""

    def equation(self, output: Entry, value: Entry, right: str) -> str:
        top, bottom = (f"<mi>&#x2202;</mi>{self.factor(entry, ATOM)}" for entry in (output, value))
        return (
            '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow>'
            f"{self.over(top, bottom, 1)}<mo>=</mo>{right}</mrow></math>"
        )


TEXT, LATEX, MATHML = _Text(), _Latex(), _MathML()
