"""An explanation in a notebook: HTML without scripts, which notebooks show whether they trust it or not."""

from __future__ import annotations

import html as escaping
from collections.abc import Iterator
from typing import Any

import numpy as np

_STEPS = 40
_CELLS = 64

_STYLE = (
    "font-family:sans-serif;max-width:60em;line-height:1.4",
    "border-collapse:collapse;font-family:monospace;margin:.2em 0 .6em 1.5em",
    "padding:.1em .5em;text-align:right;border:1px solid #8884",
    "margin:1em 0 .2em",
)


def html(e: Any) -> str:
    """See ``Explanation._repr_html_``."""
    return f'<div style="{_STYLE[0]}">{"".join(_parts(e))}</div>'


def bundle(e: Any, include: Any, exclude: Any) -> dict[str, str]:
    """What a notebook can choose from."""
    makers = {"text/plain": e.__str__, "text/html": e._repr_html_, "image/svg+xml": e._repr_svg_}
    return {
        kind: make()
        for kind, make in makers.items()
        if (not include or kind in include) and (not exclude or kind not in exclude)
    }


def _parts(e: Any) -> Iterator[str]:
    yield f"<h3>{_safe(e.title)}</h3>"
    for value, seed in zip(e.outputs, e.seeds):
        origin = (
            "ones, as no gradient was passed"
            if e.default_seed
            else f"you supplied this; {_safe(value.name)}.grad is this"
        )
        yield f"<p>{_safe(value.bar)} = ∂L/∂{_safe(value.name)} {_shape(seed)}: {origin}</p>{table(seed)}"
    for value in e.wrt:
        if value.gradient is not None:
            yield f"<p><b>{_safe(value.bar)}</b> {_shape(value.gradient)}</p>{table(value.gradient)}"
    yield "".join(f"<p>{_safe(text)}</p>" for _, text in e.lessons)
    yield str(e.graph.to_svg())
    for step in e.steps[:_STEPS]:
        yield from _step(step, e)
    if len(e.steps) > _STEPS:
        yield f"<p>… {len(e.steps) - _STEPS} more steps; print(e) and e.to_html() show more.</p>"
    yield f"<p>{_safe(str(e.check()))}</p>"


def _step(step: Any, e: Any) -> Iterator[str]:
    where = f" <small>{_safe(str(step.source_line))}</small>" if step.source_line is not None else ""
    yield f'<h4 style="{_STYLE[3]}">{step.index}. {_safe(step.op)} → {_safe(step.output.name)}{where}</h4>'
    yield f"<p>{_safe(step.doc)}</p>"
    for arrow in step.arrows:
        math = arrow.rule_mathml or f"<code>{_safe(arrow.rule_numpy or arrow.words)}</code>"
        about = (
            f"∂{arrow.step.output.name}/∂{arrow.input.name}: {arrow.jacobian_shape}, {arrow.jacobian_size:,} numbers"
        )
        yield f"<p>{math}<br><small>{_safe(about)}, {_safe(arrow.structure)}, never built</small>"
        for line in (arrow.rule_index, arrow.numbers, arrow.unbroadcast):
            if line:
                yield f"<br><code>{_safe(line)}</code>"
        yield f"</p>{table(arrow.downstream)}"
    for note in step.notes:
        yield f"<p><small>{_safe(note)}</small></p>"


def table(x: Any) -> str:
    """An array as a table; of a large one the first rows and columns."""
    x = np.asarray(x)
    rows = x.reshape(-1, x.shape[-1]) if x.ndim > 1 else x.reshape(1, -1)
    shown = rows[:8, :8]
    cut = shown.size < rows.size
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_STYLE[2]}">{_safe(_number(v))}</td>' for v in row)
        + ("<td>…</td>" if cut else "")
        + "</tr>"
        for row in shown
    )
    return f'<table style="{_STYLE[1]}">{body}</table>'


def _number(v: Any) -> str:
    v = v.item()
    return f"{v:.6g}" if isinstance(v, float) else f"{v.real:.4g}{v.imag:+.4g}j" if isinstance(v, complex) else str(v)


def _shape(x: Any) -> str:
    return str(tuple(x.shape))


def _safe(text: str) -> str:
    return escaping.escape(str(text))
