"""Format the explanation of a structured Jacobian as text of 80 columns, for ``JacobianExplanation.__str__``.

Inputs are the data of ``jacobian_terms``; the result is one string.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from chainrule._src.explaining.jacobian_terms import JacobianExplanationData, JacobianStep
from chainrule._src.explaining.text_columns import WIDTH, pad_text, text_columns

#: most operations that are listed; of more, the first and last ones
_MOST = 48
#: most terms that are listed
_TERMS = 16


def jacobian_summary(e: JacobianExplanationData) -> str:
    """Return the text that printing a ``JacobianExplanation`` shows."""
    return "\n".join(
        [heading(e), "", *_steps(e), "", *_sum(e), *_product(e), "", _cut(result_line(e)), *e.spy().split("\n")]
    )


def heading(e: JacobianExplanationData) -> str:
    count = f"{len(e.steps):,} operation{'s' * (len(e.steps) != 1)}"
    return f"How {e.title} was computed: {e.strategy}, {count}"


def result_line(e: JacobianExplanationData) -> str:
    """Describe the result in one line."""
    m, n = e.matrix_shape
    return f"{e.title}: {e.kind}, {m:,} × {n:,}, {e.nnz:,} entries ({density_text(e.density)})"


def density_text(density: float) -> str:
    return f"{100 * density:.3g} %"


def _cut(s: str, most: int = WIDTH) -> str:
    while text_columns(s) > most:
        s = s[:-2].rstrip("…") + "…"
    return s


def shown_steps(steps: Sequence[JacobianStep], most: int) -> list[JacobianStep]:
    """Return the steps; if there are too many, only the first and last ones and those that cut a value."""
    n = len(steps)
    if n <= most:
        return list(steps)
    first, last = most * 2 // 3, n - most // 3
    return [step for step in steps if step.number <= first or step.number > last or step.cut]


def _steps(e: JacobianExplanationData) -> Iterator[str]:
    shown = shown_steps(e.steps, _MOST)
    names, local = ([cell(step) for step in shown] for cell in (_made, _local))
    columns = [min(max(map(text_columns, cells), default=0), most) for cells, most in ((names, 34), (local, 20))]
    if shown:
        titles = [pad_text("operation", columns[0]), pad_text("local", columns[1]), after_title(e)]
        yield f"     {'  '.join(titles)}".rstrip()
    line, before = None, 0
    for step in shown:
        if step.number > before + 1:
            yield f"   … {step.number - before - 1} steps are left out here; e.steps has all …"
            line = None
        if step.line != line and step.line is not None:
            yield _cut(f"     {step.line}  {step.line.text}".rstrip())
        line, before = step.line or line, step.number
        cells = [
            pad_text(_cut(cell, most), most) for cell, most in zip((_made(step), _local(step)), columns, strict=True)
        ]
        yield _cut(f"{step.number:>4} {'  '.join(cells)}  {state_after(step)}".rstrip())


def after_title(e: JacobianExplanationData) -> str:
    return f"∂/∂{e.start} after it" if e.terms or not e.nnz else ""


def _made(step: JacobianStep) -> str:
    return f"{step.name} = {step.text}"


def _local(step: JacobianStep) -> str:
    return " · ".join(step.local)


def state_after(step: JacobianStep) -> str:
    """Describe the Jacobian after a step."""
    if step.cut:
        return f"cut: {step.terms} terms become a variable"
    if step.merged:
        return f"{step.terms} terms become one ({step.in_a_row:,} a row)"
    said = str(step.after)
    if step.in_a_row > 1:
        said += f" ({step.in_a_row:,} a row)"
    return said


def _sum(e: JacobianExplanationData) -> Iterator[str]:
    if e.nnz and not e.terms:
        yield f"{e.title} was computed by products with unit vectors: {e.strategy}."
        return
    if e.backward:
        why = f"{e.end} is linear in {e.start}, so its derivative is the transpose"
        yield from textwrap.wrap(f"{why}: a row here is a column of the Jacobian.", WIDTH)
    of = "" if not e.factors else ", with respect to intermediate variables"
    count = len(e.terms)
    yield f"{e.title} is {'zero' if not count else 'one term' if count == 1 else f'the sum of {count} terms'}{of}:"
    cells = [(t.letter, t.columns, f"{t.entries:,} entries", t.values) for t in e.terms[:_TERMS]]
    widths = [max([text_columns(row[k]) for row in cells], default=0) for k in range(4)]
    for row, term in zip(cells, e.terms, strict=False):
        said = "  " + "  ".join([pad_text(cell, n) for cell, n in zip(row, widths, strict=True)])
        steps = f"steps {ranges_text(term.steps)}"
        if text_columns(said) + 2 + text_columns(steps) <= WIDTH:
            yield f"{said}  {steps}"
        else:
            yield _cut(said.rstrip())
            yield from textwrap.wrap(steps, WIDTH, initial_indent=" " * 5, subsequent_indent=" " * 11)
    if count > _TERMS:
        yield f"  … and {count - _TERMS} more: e.terms has all"
    if any(["[r" in said for said in [*[t.columns for t in e.terms], *[step.after for step in e.steps]]]):
        yield "(r is the flat row number, for values with several axes and no index for each)"


def _product(e: JacobianExplanationData) -> Iterator[str]:
    if e.factors:
        yield f"It is the product of {len(e.factors)} factors, multiplied as sparse matrices:"
        shown = e.factors[:_TERMS]
        for factor in shown:
            m, n = factor.shape
            yield f"  ∂{factor.value}/∂{factor.variable}: {m:,} × {n:,}, {factor.nnz:,} entries"
        if len(e.factors) > _TERMS:
            yield f"  … and {len(e.factors) - _TERMS} more: e.factors has all"


def ranges_text(numbers: Sequence[int]) -> str:
    """Format numbers as ranges: ``1–4, 7``."""
    runs: list[list[int]] = []
    for k in numbers:
        if runs and k == runs[-1][-1] + 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    return ", ".join([f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs])
