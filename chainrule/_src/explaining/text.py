"""Format an explanation as text of 80 columns, and for rich: the answer first, then every step with its numbers.

``Explanation.__str__`` calls it with an ``ExplanationData``.

For a long pass, each step has only its rule, and the shape and range of its results.
"""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, Params
from chainrule._src.explaining.explanation_data import ExplanationData
from chainrule._src.explaining.steps import Arrow, Step
from chainrule._src.explaining.text_columns import WIDTH, pad_text, text_columns

_LONGEST = 110  # most lines of an explanation that shows all numbers
_SUMMARY = 5  # most rules in the answer
_JACOBIANS = 2  # most whole Jacobians in the answer
_GRADIENTS = 4  # most gradients whose numbers are in the answer
_LABEL = 11

#: A line with its style: "head", "rule", "label", "note", "ok", "bad" or "".
Line = tuple[str, str]


def explanation_text(e: ExplanationData) -> str:
    """Return the text that printing an ``Explanation`` shows."""
    return "\n".join(line for _, line in text_lines(e))


def text_lines(e: ExplanationData) -> list[Line]:
    """Return all lines, with styles."""
    answer, verdict = [*_answer(e)], [*_verdict(e)]
    whole = [*answer, *_steps(e, _step, 16), *_sums(e), *verdict]
    return whole if len(whole) <= _LONGEST else [*answer, ("", ""), *_steps(e, _brief_step, 24), *verdict]


def _answer(e: ExplanationData) -> Iterator[Line]:
    what = "backward() computes" if e.default_seed else "backward(gradient) computes"
    call = f"{e.outputs[0].name}.{what}" if len(e.outputs) == 1 else what
    yield from _wrapped("head", f"What {call} for {', '.join(v.name for v in e.wrt)}")
    for value, seed in zip(e.outputs, e.seeds):
        ones = "1, because it is a scalar" if seed.ndim == 0 else "ones, because nothing was passed"
        origin = ones if e.default_seed else f"the gradient you passed = {value.name}.grad"
        said = f"{value.bar} = ∂{e.scalar}/∂{value.name}  {_shape(seed)}  {origin}"
        yield from _wrapped("", said, "  ", "      ")
    rules = [(arrow, step) for step in e.steps for arrow in step.arrows]
    for arrow, step in rules[:_SUMMARY]:
        yield "rule", _cut(f"  {pad_text(_equation(arrow), 46)}  {step.op}, step {step.index}")
    if len(rules) > _SUMMARY:
        yield "note", f"  … and {len(rules) - _SUMMARY} more"
    if e.steps:
        short = [j.index for j in e.jacobians if j.index is not None and text_columns(j.index) <= WIDTH - 2]
        yield from (("rule", f"  {index}") for index in short[:_JACOBIANS])
    for value in e.wrt[:_GRADIENTS]:
        if value.gradient is None:
            yield "rule", f"  {value.bar}: no path leads from the outputs to {value.name}, so its gradient is 0"
        else:
            yield from _array("rule", f"  {value.bar} = ", value.gradient, compact=True)
    if len(e.wrt) > _GRADIENTS:
        yield "note", f"  … and the gradients of {len(e.wrt) - _GRADIENTS} more"
    for _, sentence in e.lessons:
        yield from _wrapped("note", sentence, "• ", "  ")


def _equation(arrow: Arrow) -> str:
    return f"{arrow.input.bar} {arrow.sign} {arrow.rule_numpy or f'{arrow.step.op}’s rule'}"


def _cut(s: str) -> str:
    while text_columns(s) > WIDTH:
        s = s[:-2].rstrip("…") + "…"
    return s


def _shape(x: NumpyArray) -> str:
    return str(tuple(x.shape))


def _wrapped(style: str, sentence: str, first: str = "", rest: str = "") -> Iterator[Line]:
    options: Params = {"initial_indent": first, "subsequent_indent": rest, "break_on_hyphens": False}
    yield from ((style, line) for line in textwrap.wrap(sentence, WIDTH - 2, **options) or [""])


def _array(style: str, label: str, x: NumpyArray, compact: bool = False) -> Iterator[Line]:
    """Yield a label and an array with aligned rows; of an array with more than two axes, only the first matrix."""
    x = np.asarray(x)
    if x.ndim > 2 and x.size > 24:
        label += f"{_shape(x)}; [{'0, ' * (x.ndim - 2)}:, :] is "
        x = x[(0,) * (x.ndim - 2)]
    options: Params = {"threshold": 48 if compact else 96, "edgeitems": 2 if compact else 3, "precision": _decimals(x)}
    rows = np.array2string(x, max_line_width=WIDTH - text_columns(label), suppress_small=False, **options).split("\n")
    for i, row in enumerate(rows):
        yield style, _cut((label if i == 0 else " " * text_columns(label)) + row)


def _decimals(x: NumpyArray) -> int:
    """Return the decimals that show three significant digits of each number, for `np.array2string`.

    NumPy uses powers of ten if a number is below 1e-4, or if the sizes differ by more than 1000.
    """
    sizes = np.abs(x[np.isfinite(x) & (x != 0)]) if x.dtype.kind in "fc" else x[:0]
    if sizes.size == 0 or sizes.min() < 1e-4 or sizes.max() > 1000 * sizes.min():
        return 4
    return int(np.clip(2 - np.floor(np.log10(sizes.min())), 4, 6))


# -- steps ---------------------------------------------------------------------------------------------------------------


def _steps(e: ExplanationData, one: AnyFunction, most: int) -> Iterator[Line]:
    """Yield all steps; if there are more than ``most``, leave out the middle ones."""
    steps = e.steps
    left_out = steps[most // 2 : -most // 2] if len(steps) > most else []
    for step in steps:
        if step not in left_out:
            yield from one(step, e)
        elif step is left_out[0]:
            which = f"steps {left_out[0].index} to {left_out[-1].index} are left out here"
            yield "", ""
            yield "note", f"… {which} ({len(left_out)} of {len(steps)}; e.steps has all) …"


def _head(step: Step) -> Line:
    count = len(step.record.node.edges)
    operands = [step.operand_values[i].name if i in step.operand_values else "…" for i in range(count)]
    where = f"  in {step.call}" * bool(step.call)
    where += f"  {step.source_line}" if step.source_line is not None else ""
    return "head", _cut(f"Step {step.index}  {step.output.name} = {step.op}({', '.join(operands)}){where}")


def _brief_step(step: Step, e: ExplanationData) -> Iterator[Line]:
    yield _head(step)
    for arrow in step.arrows:
        sent = f"{_shape(arrow.downstream)} {_range(arrow.downstream)}".rstrip()
        equation = _equation(arrow)
        line = f"  {pad_text(equation, 44)}  {sent}"
        if text_columns(line) <= WIDTH:
            yield "rule", line
        else:
            yield from (("rule", _cut(f"  {equation}")), ("", f"    {sent}"))
    for note in step.notes:
        yield from _labelled("note", note)


def _range(x: Any) -> str:
    if x.size <= 2:
        return "= " + np.array2string(x, precision=_decimals(x))
    if x.dtype.kind != "f" or not np.isfinite(x).all():
        return "with nan or inf" if x.dtype.kind == "f" else ""
    return f"all {x.min():.3g}" if x.min() == x.max() else f"from {x.min():.3g} to {x.max():.3g}"


def _step(step: Step, e: ExplanationData) -> Iterator[Line]:
    yield "", ""
    yield _head(step)
    if step.doc:
        yield from _wrapped("note", step.doc, "  ", "  ")
    for value, g in zip(step.outputs, step.upstreams):
        if g is not None:
            terms = e.terms_of(value)
            yield from _labelled("arrives", f"{value.bar} {_shape(g)}{_origin(terms, e)}")
            if len(terms) > 1:
                yield from _terms(value, terms, e)
            yield from _array("", " " * (_LABEL + 2), g)
    for arrow in step.arrows:
        yield from _arrow(arrow)
    for value in step.constants:
        if not value.identifier.startswith("c_"):  # plain numbers need no remark
            yield from _labelled("constant", f"{value.name}: {value.why_constant}")
    for note in step.notes:
        yield from _labelled("note", note)


def operand_side(step: Step, operand: str) -> str:
    """Return the name of an operand: left or right if there are two."""
    names = list(step.record.node.prim.operands)
    if step.record.node.prim.kind != "function" and len(names) == 2 and operand in names:
        return ("left", "right")[names.index(operand)]
    return operand


def _origin(terms: Sequence[tuple[int, str, AnyArray]], e: ExplanationData) -> str:
    if len(terms) > 1:
        return f", the sum of {len(terms)} terms"
    if terms and terms[0][0]:
        return f", from step {terms[0][0]}"
    if not e.default_seed:
        return ", the gradient you passed"
    return ", ones" if e.seeds[0].ndim else ", 1, because it is a scalar"


def _terms(value: Any, terms: Any, e: ExplanationData) -> Iterator[Line]:
    said = [
        "your gradient" if i == 0 else f"step {i}, {operand_side(e.steps[i - 1], operand)}" for i, operand, _ in terms
    ]
    for i, (words, (_, _, g)) in enumerate(zip(said[:6], terms)):
        sign = f"{value.bar} = " if i == 0 else "  + "
        yield from _array("", " " * (_LABEL + 2) + pad_text(f"{sign}({words}) ", 8), g, compact=True)
    if len(said) > 6:
        yield "note", " " * _LABEL + f"  + … {len(said) - 6} more terms"


def _labelled(label: str, sentence: str, style: str = "") -> Iterator[Line]:
    indent = " " * (_LABEL + 2)
    long = text_columns(label) > _LABEL - 1
    if long:
        yield style, _cut("  " + label)
    yield from _wrapped(style, sentence, indent if long else "  " + pad_text(label, _LABEL), indent)


def _arrow(arrow: Arrow) -> Iterator[Line]:
    step, x = arrow.step, arrow.input
    about = f"{arrow.jacobian_shape}, {arrow.jacobian_size:,} number{'s' * (arrow.jacobian_size != 1)}, {arrow.structure}, never built"
    yield from _labelled(f"∂{step.output.identifier}/∂{x.identifier}", about)
    rule = _equation(arrow) if arrow.rule_numpy is not None else None
    said = [("rule", rule, "rule"), ("", arrow.words or None, ""), ("element", arrow.rule_index, "rule")]
    for label, line, style in [*said, ("numbers", arrow.numbers, ""), ("", arrow.unbroadcast, "")]:
        if line is not None:
            yield from _labelled(label, line, style)
    yield from _labelled("sends", f"{x.bar} {_shape(arrow.downstream)}")
    yield from _array("", " " * (_LABEL + 2), arrow.downstream)


def _sums(e: ExplanationData) -> Iterator[Line]:
    """Yield the sums of gradients with several contributions."""
    for value in e.wrt[:8]:
        terms = e.terms_of(value)
        if len(terms) > 1 and all(value not in step.outputs for step in e.steps):
            yield "", ""
            times = f"{value.name} is used {len(terms)} times"
            yield "head", f"{value.bar} is the sum of {len(terms)} terms, because {times}"
            yield from _terms(value, terms, e)
            yield from _array("rule", " " * _LABEL + "  = ", value.gradient)


def _verdict(e: ExplanationData) -> Iterator[Line]:
    check = e.check()
    yield "", ""
    for i, line in enumerate(check.text.split("\n")):
        yield from _wrapped("ok" if check else "bad", line, "Check: " if i == 0 else "       ", "       ")


# -- rich ----------------------------------------------------------------------------------------------------------------

_STYLES = {"head": "bold", "rule": "cyan", "note": "dim", "ok": "green", "bad": "bold red", "": ""}


def rich_console(e: ExplanationData, console: object, options: object) -> Iterator[object]:
    """Yield the lines for rich (``Explanation.__rich_console__``)."""
    rich_text = importlib.import_module("rich.text")
    for style, line in text_lines(e):
        yield rich_text.Text(line, style=_STYLES[style], no_wrap=True)
