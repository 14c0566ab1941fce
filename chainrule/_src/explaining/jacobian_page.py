"""Render the explanation of a structured Jacobian as one HTML file: a picture of its entries and a table of operations.

Each term has a colour, which marks its entries in the picture and the operations that it went through. The page has no
scripts; style sheets highlight the term under the pointer. ``JacobianExplanation.to_html`` calls ``jacobian_html``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from chainrule._src.explaining.jacobian_terms import JacobianExplanationData, JacobianStep, JacobianTerm
from chainrule._src.explaining.jacobian_text import after_title, density_text, ranges_text, shown_steps
from chainrule._src.explaining.markup import colour_properties, data_file, escape, scroll_box
from chainrule._src.explaining.notation import derivative_math
from chainrule._src.explaining.page import scope_styles
from chainrule._src.explaining.values import identifier
from chainrule._src.jacobians import spy

#: most operations and terms that are listed
_STEPS, _TERMS = 240, 40
#: the longer side of the picture, in pixels
_SIZE = 420
#: colours of terms, on a light and on a dark background
_COLOURS = (
    ("#1d5a99", "#7fb2ec"),
    ("#b3431f", "#ff9e7d"),
    ("#23794e", "#6fd09b"),
    ("#8a3f97", "#dd9ae8"),
    ("#8a6800", "#e2bd4c"),
    ("#0f7785", "#5fd0de"),
    ("#a62b55", "#ff94b4"),
    ("#525c8f", "#aab4ea"),
    ("#5e6f14", "#bccf62"),
    ("#7a5236", "#d9ae8c"),
    ("#38707a", "#8cc5cf"),
    ("#6a4fa8", "#b9a2f2"),
)


def jacobian_html(e: JacobianExplanationData) -> str:
    """Return the page, as the text of one file."""
    style = (
        colour_properties(":root")
        + _term_colours(":root", len(e.terms))
        + data_file("page.css")
        + data_file("jacobian.css")
    )
    fields = {"title": escape(e.title), "style": style, "answer": _answer(e), "steps": _steps(e)}
    return re.sub(r"{{(\w+)}}", lambda part: fields[part[1]], data_file("jacobian.html"))


def jacobian_fragment(e: JacobianExplanationData) -> str:
    """Return the HTML that a notebook shows."""
    style = colour_properties(".chainrule") + _term_colours(".chainrule", len(e.terms))
    style += scope_styles(data_file("page.css") + data_file("jacobian.css"))
    body = f"{_answer(e)}<section><h2>How it was computed</h2>{_steps(e)}</section>"
    return f"<div class='chainrule'><style>{style}</style><main>{body}</main></div>"


def _term_colours(where: str, count: int) -> str:
    """Return styles with the colours of the terms, and rules that fade all other parts while the pointer is on a term."""
    light, dark = (";".join([f"--t{k}:{both[i]}" for k, both in enumerate(_COLOURS)]) for i in range(2))
    unless = f'{where}:not([data-theme="light"])'
    rules = f'{where}{{{light}}}@media (prefers-color-scheme:dark){{{unless}{{{dark}}}}}{where}[data-theme="dark"]{{{dark}}}'
    for k in range(min(count, len(_COLOURS))):
        picked = f"main:has([data-term='{k}']:hover)"
        rules += f"{picked} .spy path:not(.part-{k}),{picked} .operation:not(.of-{k}) td{{opacity:.18}}"
    return rules


def _coloured(e: JacobianExplanationData) -> bool:
    return 1 < len(e.terms) <= len(_COLOURS) and not e.factors


# -- the answer --------------------------------------------------------------------------------------------------------


def _answer(e: JacobianExplanationData) -> str:
    name = derivative_math(identifier(e.output), identifier(e.input))
    count = f"{len(e.steps):,} operation{'s' * (len(e.steps) != 1)}"
    carried = "propagated as terms. A term holds the elements that each row reads, and their coefficients"
    if e.backward:
        carried += f". <code>{escape(e.end)}</code> is linear in <code>{escape(e.start)}</code>, so its derivative is the transpose"
        carried += ", and a row here is a column of the Jacobian"
    lede = f"The function was run once. Through its {count}, the Jacobian with respect to <code>{escape(e.start)}</code> was {carried}."
    if e.nnz and not e.terms:
        lede = f"It was computed by products with unit vectors ({escape(e.strategy)}), along {count}."
    return (
        f"<h1>How {name} was computed</h1><p class='lede'>{lede}</p>"
        f"<div class='jacobian'>{_plot(e)}<div>{_facts(e)}{_product(e)}{_terms(e)}</div></div>"
    )


def _plot(e: JacobianExplanationData) -> str:
    rows, cols, term = e.entries
    m, n = e.matrix_shape
    title = f"The entries of {e.title}, {m:,} × {n:,}"
    part = term if _coloured(e) else None
    colour = [f"var(--t{k})" for k in range(len(_COLOURS))]
    picture = spy.matrix_svg(rows, cols, e.matrix_shape, size=_SIZE, title=escape(title), part=part, colours=colour)
    said = f"{m:,} rows, one for each element of {escape(e.output)}; {n:,} columns, one for each of {escape(e.input)}"
    return f"<figure class='plot'>{picture}<figcaption>{said}</figcaption></figure>"


def _facts(e: JacobianExplanationData) -> str:
    m, n = e.matrix_shape
    facts = {
        "shape": "×".join([f"{k:,}" for k in e.shape]) or "scalar",
        "entries": f"{e.nnz:,}",
        "density": density_text(e.density),
        "kind": e.kind,
        "computed by": e.strategy,
    }
    if e.shape != (m, n):
        facts = {"shape": facts["shape"], "as a matrix": f"{m:,}×{n:,}"} | facts
    inner = "".join([f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in facts.items()])
    return f"<dl class='facts'>{inner}</dl>"


def _terms(e: JacobianExplanationData) -> str:
    if not e.terms:
        return "" if e.nnz else f"<p>No path leads from {escape(e.input)} to {escape(e.output)}: it is zero.</p>"
    head = f"The sum of {len(e.terms)} terms" if len(e.terms) > 1 else "One term"
    head += ", with respect to intermediate variables" * bool(e.factors)
    rows = "".join([_term(e, k, term) for k, term in enumerate(e.terms[:_TERMS])])
    more = f"<p class='many'>… and {len(e.terms) - _TERMS} more terms</p>" * (len(e.terms) > _TERMS)
    titles = "<thead><tr><td></td><th>a row reads</th><th>numbers</th><th class='number'>entries</th><th>operations</th></tr></thead>"
    table = f"<table class='made'>{titles}<tbody>{rows}</tbody></table>"
    return f"<h2 class='sub'>{head}</h2>{scroll_box('The terms', table)}{more}{_row_note(e)}"


def _row_note(e: JacobianExplanationData) -> str:
    if not any(["[r" in said for said in [*[t.columns for t in e.terms], *[step.after for step in e.steps]]]):
        return ""
    said = "is the flat row number, for values with several axes and no index for each."
    return f"<p class='many'><code>r</code> {said}</p>"


def _term(e: JacobianExplanationData, k: int, term: JacobianTerm) -> str:
    number = f"{term.entries:,}"
    return (
        f"<tr data-term='{k}'><td>{_chip(k, term.letter, e)}</td><td><code>{escape(term.columns)}</code></td>"
        f"<td>{escape(term.values)}</td><td class='number'>{number}</td><td>{ranges_text(term.steps)}</td></tr>"
    )


def _chip(k: int, letter: str, e: JacobianExplanationData) -> str:
    colour = f"var(--t{k})" if _coloured(e) else "var(--soft)"
    return f"<span class='chip' style='--chip:{colour}'>{escape(letter)}</span>"


def _product(e: JacobianExplanationData) -> str:
    if not e.factors:
        return ""
    items = "".join([_factor(factor) for factor in e.factors[:_TERMS]])
    more = f"<li>… {len(e.factors) - _TERMS} more</li>" * (len(e.factors) > _TERMS)
    return (
        f"<h2 class='sub'>The product of {len(e.factors)} factors</h2><p class='many'>A value with many terms that is used "
        f"again becomes an intermediate variable.</p><ul class='chain'>{items}{more}</ul>"
    )


def _factor(factor: Any) -> str:
    m, n = factor.shape
    name = derivative_math(identifier(factor.value), identifier(factor.variable))
    return f"<li>{name}<small>{m:,} × {n:,}, {factor.nnz:,} entries</small></li>"


# -- the operations ----------------------------------------------------------------------------------------------------


def _steps(e: JacobianExplanationData) -> str:
    titles = f"<td></td><th>operation</th><th>local Jacobian</th><th>{escape(after_title(e))}</th>"
    titles += "<th>part of</th>" * _coloured(e)
    table = f"<table class='made'><thead><tr>{titles}</tr></thead><tbody>{''.join(_rows(e))}</tbody></table>"
    return scroll_box("The operations", table)


def _rows(e: JacobianExplanationData) -> Iterator[str]:
    wide = 5 if _coloured(e) else 4
    line, before = None, 0
    for step in shown_steps(e.steps, _STEPS):
        if step.number > before + 1:
            hidden = step.number - before - 1
            yield f"<tr class='source'><td></td><td colspan='{wide - 1}'>… {hidden:,} operations are left out …</td></tr>"
            line = None
        if step.line != line and step.line is not None:
            said = f"{escape(step.line)} <code>{escape(step.line.text)}</code>"
            yield f"<tr class='source'><td></td><td colspan='{wide - 1}'>{said}</td></tr>"
        line, before = step.line or line, step.number
        yield _operation(e, step)


def _operation(e: JacobianExplanationData, step: JacobianStep) -> str:
    chips = [_chip(k, term.letter, e) for k, term in enumerate(e.terms) if step.number in term.steps]
    of = " ".join([f"of-{k}" for k, term in enumerate(e.terms) if step.number in term.steps])
    many = f" <span class='many'>{step.in_a_row:,} a row</span>" * (step.in_a_row > 1)
    after = escape(step.after) if step.after.isalpha() else f"<code>{escape(step.after)}</code>"
    if step.merged:
        after = f"{step.terms} terms become one"
    if step.cut:
        after, many = f"cut: its {step.terms} terms become an intermediate variable", ""
    return (
        f"<tr class='operation {'cut ' * step.cut}{of}'><td class='number many'>{step.number}</td>"
        f"<td><code><span class='result'>{escape(step.name)}</span> = {escape(step.text)}</code></td>"
        f"<td>{escape(' · '.join(step.local))}</td><td class='after'>{after}{many}</td>"
        + f"<td>{''.join(chips)}</td>" * _coloured(e)
        + "</tr>"
    )
