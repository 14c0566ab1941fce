"""How a Jacobian in index form is written: as text, LaTeX and MathML."""

from __future__ import annotations

import ast
import html
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from chainrule.explaining import latex
from chainrule.explaining.index_calls import ATOM, MUL, POW, Index, NoForm, enclosed
from chainrule.explaining.index_form import POWERS, Element, bracket
from chainrule.explaining.terms import Entry, Part, Term


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

    def factor(self, factor: Any, needed: int = ATOM) -> str:
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
