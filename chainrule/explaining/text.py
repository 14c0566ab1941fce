"""An explanation as text of 80 columns, and for rich: the answer first, then every step with its numbers."""

from __future__ import annotations

import importlib
import textwrap
import unicodedata
from collections.abc import Iterator
from typing import Any

import numpy as np

WIDTH = 80
_STEPS = 16  # more steps than that are left out in the middle
_SUMMARY = 5  # rules in the answer
_JACOBIANS = 2  # whole ones in the answer
_LABEL = 11

#: A line with its style: "head", "rule", "label", "note", "ok", "bad" or "".
Line = tuple[str, str]


def text(e: Any) -> str:
    """See ``Explanation.__str__``."""
    return "\n".join(line for _, line in lines(e))


def width(s: str) -> int:
    """Columns that a text takes: a combining bar takes none."""
    return sum(not unicodedata.combining(c) for c in s)


def pad(s: str, columns: int) -> str:
    return s + " " * max(columns - width(s), 0)


def lines(e: Any) -> Iterator[Line]:
    """All lines, with styles."""
    yield from _answer(e)
    for _, sentence in e.lessons:
        yield from _wrapped("note", sentence, "• ", "  ")
    steps = e.steps
    left_out = len(steps) - _STEPS
    for step in steps if left_out <= 0 else steps[: _STEPS // 2]:
        yield from _step(step, e)
    if left_out > 0:
        yield "", ""
        first, last = steps[_STEPS // 2].index, steps[-_STEPS // 2 - 1].index
        yield "note", f"… steps {first} to {last} are left out here ({left_out} of {len(steps)}; e.steps has all) …"
        for step in steps[-_STEPS // 2 :]:
            yield from _step(step, e)
    yield from _sums(e)
    yield from _verdict(e)


def _answer(e: Any) -> Iterator[Line]:
    what = "backward() computes" if e.default_seed else "backward(gradient) computes"
    names = ", ".join(v.name for v in e.wrt)
    yield from _wrapped(
        "head",
        f"What {', '.join(v.name for v in e.outputs)}.{what} for {names}"
        if len(e.outputs) == 1
        else f"What {what} for {names}",
    )
    for value, seed in zip(e.outputs, e.seeds):
        ones = "1, as it is a scalar" if seed.ndim == 0 else "ones, as nothing was passed"
        origin = ones if e.default_seed else f"you passed it; {value.name}.grad is this"
        yield from _wrapped("", f"{value.bar} = ∂L/∂{value.name}  {shape(seed)}  {origin}", "  ", "      ")
    rules = [(a, step) for step in e.steps for a in step.arrows]
    for arrow, step in rules[:_SUMMARY]:
        rule = arrow.rule_numpy or f"{step.op}'s rule"
        yield "rule", _short(f"  {pad(_equation(arrow, rule), 46)}  {step.op}, step {step.index}")
    if len(rules) > _SUMMARY:
        yield "note", f"  … and {len(rules) - _SUMMARY} more"
    if e.steps:
        short = [j.index for j in e.jacobians if j.index is not None and width(j.index) <= WIDTH - 2]
        yield from (("rule", f"  {index}") for index in short[:_JACOBIANS])
    for value in e.wrt[:4]:
        if value.gradient is None:
            yield "rule", f"  {value.bar}: no path leads from the outputs to {value.name}, so its gradient is 0"
        else:
            yield from _array("rule", f"  {value.bar} = ", value.gradient, compact=True)
    if len(e.wrt) > 4:
        yield "note", f"  … and the gradients of {len(e.wrt) - 4} more"


def _equation(arrow: Any, right: str) -> str:
    return f"{arrow.input.bar} {arrow.sign} {right}"


def _short(s: str) -> str:
    while width(s) > WIDTH:
        s = s[:-2].rstrip("…") + "…"
    return s


def shape(x: Any) -> str:
    return str(tuple(x.shape))


def _wrapped(style: str, sentence: str, first: str = "", rest: str = "") -> Iterator[Line]:
    for line in textwrap.wrap(
        sentence, WIDTH - 2, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    ) or [""]:
        yield style, line


def _array(style: str, label: str, x: Any, compact: bool = False) -> Iterator[Line]:
    """A label with an array after it, its rows below one another."""
    indent = " " * width(label)
    x = np.asarray(x)
    options: dict[str, Any] = {"threshold": 48 if compact else 96, "edgeitems": 2 if compact else 3, "precision": 4}
    room = WIDTH - width(label)
    rows = np.array2string(x, max_line_width=room, suppress_small=False, **options).split("\n")
    for i, row in enumerate(rows):
        yield style, _short((label if i == 0 else indent) + row)


def _step(step: Any, e: Any) -> Iterator[Line]:
    yield "", ""
    made = f"{step.output.name} = {step.op}({', '.join(_operands(step))})"
    where = f"  {step.source_line}" if step.source_line is not None else ""
    yield "head", _short(f"Step {step.index}  {made}{where}")
    if step.doc:
        yield from _wrapped("note", step.doc, "  ", "  ")
    for value, g in zip(step.outputs, step.upstreams):
        if g is not None:
            terms = e.terms_of(value)
            yield from _labelled("arrives", f"{value.bar} {shape(g)}{_origin(terms, e)}")
            if len(terms) > 1:
                yield from _terms(value, terms, e)
            yield from _array("", " " * _LABEL + "  ", g)
    for arrow in step.arrows:
        yield from _arrow(arrow)
    for value in step.constants:
        if value.identifier.startswith("c_"):  # a number, which says what it is
            continue
        yield from _labelled("constant", f"{value.name}: {value.why_constant}")
    for note in step.notes:
        yield from _labelled("note", note)


def _operands(step: Any) -> list[str]:
    count = len(step.record.node.edges)
    return [step.operand_values[i].name if i in step.operand_values else "…" for i in range(count)]


def side(step: Any, operand: str) -> str:
    """Which operand, in words: left and right where there are two."""
    names = list(step.record.node.prim.operands)
    if step.record.node.prim.kind != "function" and len(names) == 2 and operand in names:
        return ("left", "right")[names.index(operand)]
    return operand


def _origin(terms: Any, e: Any) -> str:
    if len(terms) > 1:
        return f", the sum of {len(terms)} terms"
    if not terms or terms[0][0] == 0:
        return (
            ", 1: ∂L/∂L"
            if e.default_seed and e.seeds[0].ndim == 0
            else ", ones"
            if e.default_seed
            else ", what you passed"
        )
    return f", from step {terms[0][0]}"


def _terms(value: Any, terms: Any, e: Any) -> Iterator[Line]:
    said = [
        "what you passed" if index == 0 else f"step {index}, {side(e.steps[index - 1], operand)}"
        for index, operand, _ in terms
    ]
    for i, (words, (_, _, g)) in enumerate(zip(said[:6], terms)):
        sign = f"{value.bar} = " if i == 0 else "  + "
        yield from _array("", " " * _LABEL + "  " + pad(f"{sign}({words}) ", 8), g, compact=True)
    if len(said) > 6:
        yield "note", " " * _LABEL + f"  + … {len(said) - 6} more terms"


def _labelled(label: str, sentence: str, style: str = "") -> Iterator[Line]:
    indent = " " * (_LABEL + 2)
    first = "  " + pad(label, _LABEL)
    if width(label) > _LABEL - 1:
        yield style, _short("  " + label)
        first = indent
    for line in textwrap.wrap(
        sentence, WIDTH - 2, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False
    ):
        yield style, line


def _arrow(arrow: Any) -> Iterator[Line]:
    step, x = arrow.step, arrow.input
    about = f"{arrow.jacobian_shape}, {arrow.jacobian_size:,} numbers, {arrow.structure}, never built"
    yield from _labelled(f"∂{step.output.identifier}/∂{x.identifier}", about)
    if arrow.rule_numpy is not None:
        yield from _labelled("rule", _equation(arrow, arrow.rule_numpy), "rule")
    if arrow.words:
        yield from _labelled("", arrow.words)
    if arrow.rule_index is not None:
        yield from _labelled("element", arrow.rule_index, "rule")
    if arrow.numbers is not None:
        yield from _labelled("numbers", arrow.numbers)
    if arrow.unbroadcast is not None:
        yield from _labelled("", arrow.unbroadcast)
    yield from _labelled("sends", f"{x.bar} {shape(arrow.downstream)}")
    yield from _array("", " " * (_LABEL + 2), arrow.downstream)


def _sums(e: Any) -> Iterator[Line]:
    """Gradients that several steps add to."""
    for value in e.wrt[:8]:
        terms = e.terms_of(value)
        if len(terms) > 1 and all(value not in step.outputs for step in e.steps):
            yield "", ""
            yield (
                "head",
                f"{value.bar} is the sum of {len(terms)} terms, because {value.name} is used {len(terms)} times",
            )
            yield from _terms(value, terms, e)
            yield from _array("rule", " " * _LABEL + "  = ", value.gradient)


def _verdict(e: Any) -> Iterator[Line]:
    check = e.check()
    yield "", ""
    for i, line in enumerate(check.text.split("\n")):
        yield from _wrapped("ok" if check else "bad", line, "Check: " if i == 0 else "       ", "       ")


# -- rich ----------------------------------------------------------------------------------------------------------------

_STYLES = {"head": "bold", "rule": "cyan", "note": "dim", "ok": "green", "bad": "bold red", "": ""}


def rich_console(e: Any, console: Any, options: Any) -> Iterator[Any]:
    """See ``Explanation.__rich_console__``."""
    rich_text = importlib.import_module("rich.text")
    for style, line in lines(e):
        yield rich_text.Text(line, style=_STYLES[style], no_wrap=True)
