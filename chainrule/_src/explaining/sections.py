"""HTML of the parts of an explanation's page after the answer: the steps, the Jacobian of the whole pass, the values.

``page`` calls these functions with the dictionary of ``Explanation.to_dict()``.
"""

from __future__ import annotations

import math as arithmetic
from collections.abc import Sequence
from typing import Any

from chainrule._src.arrays.types import JSONObject
from chainrule._src.explaining.diagnosis.source import SourceLine
from chainrule._src.explaining.flow import Flow, LocalMap, keys_of_terms
from chainrule._src.explaining.markup import code_element, escape, mark_bars, math_element, scroll_box
from chainrule._src.explaining.notation import BAR, derivative_math, name_math
from chainrule._src.explaining.shares import percent_text, share_bar
from chainrule._src.explaining.tables import (
    array_table,
    decimals_of,
    flat_numbers,
    format_number,
    index_text,
    is_real,
    tuple_text,
)

OPEN = 8  # most steps that are shown open
FLAT = 400  # most entries of a Jacobian that is shown as one flattened matrix
TERMS = 6  # most products of a sum that are written out
TABLES = 24  # most values that are shown without a fold
FOLDS = 40  # most steps of a term that is shown open
VALUES = 120  # most values whose numbers are shown
BODIES = 250  # most steps of a long pass that can be opened


def symbol_of(value: JSONObject) -> str:
    """Return a value's name in formulas."""
    return str(value["bar"]).removesuffix(BAR)


def rule_html(arrow: JSONObject, *, display: bool = False) -> str:
    """Return an arrow's rule as a formula, or as code if it has none."""
    said = arrow["rule"]
    if said.get("mathml"):
        return math_element(said["mathml"], display=display)
    return code_element(said["numpy"]) if said.get("numpy") else "<span>a rule without a formula</span>"


def contraction_html(output_shape: Sequence[int], input_shape: Sequence[int]) -> str:
    """Return the shapes of a contraction, with the summed axes marked: (2, 4) · (2, 4, 2, 3) → (2, 3)."""
    summed = [f"<span class='summed'>{n}</span>" for n in output_shape]
    kept = [f"<span class='kept'>{n}</span>" for n in input_shape]
    left, both, right = (f"({', '.join(s)}{',' * (len(s) == 1)})" for s in (summed, summed + kept, kept))
    return f"<span class='contraction'>{left} · {both} → {right}</span>"


def location_html(where: JSONObject | None) -> str:
    if not where:
        return ""
    file = str(where["file"]).replace("\\", "/").rsplit("/", 1)[-1]
    text = f"<code>{escape(where['text'])}</code>" if where.get("text") else ""
    return f"<p class='line'><span class='where'>{escape(file)}:{escape(where['line'])}</span> {text}</p>"


def _folded(head: str, body: str, fold: bool) -> str:
    """Return a heading with its body; with ``fold``, the body is closed at first."""
    return f"<details><summary>{head}</summary>{body}</details>" if fold else head + body


# -- steps -------------------------------------------------------------------------------------------------------------


def steps_html(plan: JSONObject, flow: Flow) -> str:
    """Return all steps: open if they are few, closed if there are more, and folded for a long pass."""
    if plan["folds"] is not None:
        return _folded_steps(plan, flow)
    return "".join(_step(plan, flow, at, step) for at, step in enumerate(plan["steps"]))


def _step(plan: JSONObject, flow: Flow, at: int, step: JSONObject) -> str:
    folded = len(plan["steps"]) > OPEN
    brief = " ".join(f"<span class='eq'>{rule_html(arrow)}</span>" for arrow in step["arrows"]) if folded else ""
    call = f" in <span class='call'>{escape(step['call'])}</span>" if step.get("call") else ""
    head = (
        f"<h3 id='head-{step['index']}'><span class='count'>Step {step['index']}</span> back through "
        f"<span class='op'>{escape(step['op'])}</span>{call} <span class='node-name'>{escape(step['node'])}</span></h3>{brief}"
    )
    return (
        f"<article class='step' id='step-{step['index']}' tabindex='-1' aria-labelledby='head-{step['index']}'>"
        f"{_folded(head, _body(plan, flow, at, step), folded)}</article>"
    )


def _body(plan: JSONObject, flow: Flow, at: int, step: JSONObject) -> str:
    """Return the details of a step."""
    output = plan["values"][step["output"]]
    arrows = "".join(_arrow(plan, flow, at, step, j) for j in range(len(step["arrows"])))
    constants = ", ".join(
        f"{name_math(v['name'])} is a constant here{': ' * bool(v['why_constant'])}{escape(v['why_constant'] or '')}"
        for v in (plan["values"][key] for key in step["constants"])
    )
    notes = [f"{constants}."] * bool(constants) + [mark_bars(note) for note in step["notes"]]
    return (
        f"<p class='doc'>{escape(step['doc'])}</p>" * bool(step["doc"])
        + f"{location_html(step['line'])}{_upstream(plan, step, output)}{arrows}"
        + "".join(f"<p class='note'>{note}</p>" for note in notes)
    )


def _upstream(plan: JSONObject, step: JSONObject, output: JSONObject) -> str:
    """Return the sum of contributions to a step's upstream gradient; '' if there is only one."""
    if len(step["terms"]) < 2:
        return ""
    bar, parts = name_math(symbol_of(output), bar=True), []
    for key, term in zip(keys_of_terms(step, plan), step["terms"], strict=True):
        source = "the gradient you supplied" if not term["from"] else f"from step {term['from']}"
        parts.append(array_table(term["array"], escape(source), key=key, label=f"{output['bar']} {source}"))
    total = array_table(
        step["upstream"], f"{bar}, their sum", key=f"u{step['index']}", label=f"{output['bar']}, the sum"
    )
    uses = len(parts)
    return (
        f"<p>{name_math(output['name'])} was used {uses} times, so {bar} is the sum of {uses} contributions:</p>"
        f"<div class='row sum'>{_sign('+').join(parts)}{_sign('=')}{total}</div>"
    )


def _sign(sign: str) -> str:
    return f"<span class='sign' aria-hidden='true'>{sign}</span>"


def _arrow(plan: JSONObject, flow: Flow, at: int, step: JSONObject, j: int) -> str:
    arrow, key = step["arrows"][j], f"a{step['index']}.{j}"
    output, value = plan["values"][step["output"]], plan["values"][arrow["input"]]
    up, down = name_math(symbol_of(output), bar=True), name_math(symbol_of(value), bar=True)
    about = (
        f"{derivative_math(symbol_of(output), symbol_of(value))} has shape {escape(tuple_text(arrow['jacobian_shape']))}: "
        f"{_count(arrow['jacobian_size'])}, {escape(arrow['structure_text'] or arrow['structure'])}, never built"
    )
    forms = {
        "by index": code_element(arrow["rule"]["index"]) if arrow["rule"].get("index") else "",
        "in NumPy": code_element(arrow["rule"]["numpy"]) if arrow["rule"].get("numpy") else "",
        "local Jacobian": about,
        "its elements": math_element(arrow["element"]["mathml"]),
        "shapes": contraction_html(output["shape"], value["shape"]),
    }
    found = flow.maps.get((at, j))
    upstream = array_table(step["upstream"], up, key=f"u{step['index']}", label=f"{output['bar']} upstream")
    result = array_table(arrow["downstream"], down, key=key, label=f"{value['bar']} downstream")
    inside = map_html(found, output, value, key) if found is not None else ""
    if inside:
        shape = escape(tuple_text([*output["shape"], *value["shape"]]))
        inside = _folded(f"Look inside the Jacobian {shape}", inside, True)
    off = flow.why_not.get((at, j)) or (flow.stale.get(step["output"]) and "an earlier step is not recomputed")
    notes = [arrow["unbroadcast"], f"Not recomputed when you edit: {off}." if off and not flow.off else ""]
    unbroadcast_note, stale_note = (f"<p class='note'>{escape(note)}</p>" if note else "" for note in notes)
    listed = "".join(f"<dt>{name}</dt><dd>{said}</dd>" for name, said in forms.items() if said)
    return (
        f"<div class='arrow'><div class='formula'>{rule_html(arrow, display=True)}</div>{arrow_note(arrow)}<dl class='forms'>{listed}</dl>"
        f"{unbroadcast_note}<div class='row'>{upstream}{_sign('⟶')}{result}</div>"
        f"{_one_element(found, step['upstream'], value, key, arrow)}{inside}{stale_note}</div>"
    )


def arrow_note(arrow: JSONObject) -> str:
    """Return the reason why a rule has no formula, or a formula that differs from its numbers; '' if they agree."""
    return f"<p class='note'>{escape(arrow['note'])}</p>" if arrow["note"] else ""


def _count(size: int) -> str:
    return f"{size:,} number{'s' * (size != 1)}"


def short_number(item: float) -> str:
    return format_number(item, decimals_of([item]))


def _factor(item: float) -> str:
    return f"({short_number(item)})" if item < 0 else short_number(item)


def _one_element(found: LocalMap | None, upstream: JSONObject, value: JSONObject, key: str, arrow: JSONObject) -> str:
    """Return the first element of the result, computed with numbers: `X̄[0, 0] = 2 · 3 + 1 · 4 = 10`."""
    numbers = flat_numbers(upstream["data"])
    if found is None or upstream["truncated"] or not is_real(numbers) or found.shape[1] == 0:
        said = arrow["numbers"]
        return f"<p class='one'><b>One element:</b> <span>{mark_bars(said)}</span></p>" if said else ""
    picked = [k for k, i in enumerate(found.inputs.tolist()) if i == 0]
    factors = [(numbers[found.outputs[k]], float(found.values[k])) for k in picked]
    products = " + ".join(f"{_factor(g)} · {_factor(v)}" for g, v in factors[:TERMS]) or "0"
    more = f" + … ({len(picked) - TERMS} more)" if len(picked) > TERMS else ""
    total = short_number(sum(g * v for g, v in factors) + 0.0)
    said = f"{value['bar']}{index_text(0, value['shape'])} = {products}{more} = {total}"
    return f"<p class='one' data-one='{escape(key)}'><b>One element:</b> <output>{mark_bars(said)}</output></p>"


def map_html(found: LocalMap, output: JSONObject, value: JSONObject, key: str) -> str:
    """Return a Jacobian, one output element at a time, and also flattened if it is small."""
    n, m = found.shape
    if n * m <= 1:
        return ""
    dense = found.dense()
    what = derivative_math(output["name"] + index_text(0, output["shape"]), value["name"])
    slice_ = array_table(
        {"shape": value["shape"], "data": dense[0].reshape(value["shape"]).tolist(), "truncated": False},
        f"{what}, a slice",
        label=f"Slice of the Jacobian of {output['name']} with respect to {value['name']}",
    )
    return (
        f"<div class='picker' data-picker='{escape(key)}'>{slice_}</div>"
        f"<p class='flat-shapes'>Flattened: <span class='summed'>{n}</span> · <span class='summed'>{n}</span>×"
        f"<span class='kept'>{m}</span> → <span class='kept'>{m}</span></p>"
        + (_flattened(dense.tolist(), output, value) if n * m <= FLAT else "")
    )


def _flattened(rows: list[list[float]], output: JSONObject, value: JSONObject) -> str:
    n, m = len(rows), len(rows[0])
    places = decimals_of([v for row in rows for v in row])
    across, down = (
        [index_text(i, about["shape"]) or escape(about["name"]) for i in range(count)]
        for about, count in ((value, m), (output, n))
    )
    body = "".join(
        f"<tr><th scope='row'>{name}</th>"
        + "".join(f"<td>{format_number(v, places)}</td>" if v else "<td class='zero'>0</td>" for v in row)
        + "</tr>"
        for name, row in zip(down, rows)
    )
    return scroll_box(
        f"Flattened Jacobian, {n} by {m}",
        f"<table class='numbers jacobian'><caption>{name_math(output['name'])} by {name_math(value['name'])} "
        f"<span class='shape'>{n}×{m}</span></caption><thead><tr><td></td>"
        f"{''.join(f'''<th scope='col'>{name}</th>''' for name in across)}</tr></thead><tbody>{body}</tbody></table>",
    )


def _folded_steps(plan: JSONObject, flow: Flow) -> str:
    """Return many steps, folded by the structure of the program. Steps can be opened, except middle ones of repetitions."""
    rows = _SectionRows(plan, flow)
    count = f"All {len(plan['steps'])} steps, in the order of the pass, folded by the structure of the program. "
    said = "A fold shows the shape and the norm of its incoming gradient, and its share of the gradients of all leaves."
    return f"<p class='note'>{count}{said}</p><div class='folds'>{rows.of(plan['folds'], True)}</div>"


class _SectionRows:
    """Renders the rows of a page's folds."""

    def __init__(self, plan: JSONObject, flow: Flow) -> None:
        self.plan, self.flow, self.bodies = plan, flow, BODIES

    def of(self, members: Sequence[Any], opened: bool = False, repeats: int = 0) -> str:
        """Return folds and steps; of ``repeats`` repetitions, only the steps of the first and the last can be opened."""
        each = len(members) // repeats if repeats else len(members)
        parts = []
        for i, member in enumerate(members):
            if isinstance(member, dict):
                parts.append(self.fold(member, opened))
            else:
                parts.append(self.step(member - 1, not repeats or i < each or i >= len(members) - each))
        return "".join(parts)

    def fold(self, fold: JSONObject, opened: bool) -> str:
        what = "" if fold["what"] in ("line", "repeat") else f"<span class='what'>{fold['what']}</span> "
        line = fold["line"]
        name = f"<b>{escape(fold['name'])}</b>"
        if fold["what"] == "line" and line:
            name = f"<span class='where'>{escape(SourceLine(**line))}</span> <code>{escape(line['text'])}</code>"
        meta = f"{fold['steps']} steps <span class='shape'>{escape(tuple_text(fold['shape']))}</span>"
        shares = [f"{escape(leaf)} {percent_text(share)}" for leaf, share in list(fold["shares"].items())[:TABLES]]
        leaves = f"<p class='note'>Its share of the gradient of {', '.join(shares)}.</p>" if len(shares) > 1 else ""
        inside = self.of(fold["inside"], fold["what"] == "term" and fold["steps"] <= FOLDS, fold.get("times", 0))
        return (
            f"<details class='fold'{' open' * opened}><summary><span class='title'>{what}{name}</span>"
            f"<span class='meta'>{meta}</span>{_norm(fold['norm'], fold['first'])}{share_bar(fold['share'])}</summary>"
            f"<div class='inside'>{leaves}{inside}</div></details>"
        )

    def step(self, at: int, body: bool) -> str:
        step, values = self.plan["steps"][at], self.plan["values"]
        rules = "; ".join(
            f"{values[arrow['input']]['bar']} = {arrow['rule'].get('numpy') or 'a rule without a formula'}"
            for arrow in step["arrows"]
        )
        line = step["line"] and f"{SourceLine(**step['line'])}"
        row = (
            f"<span class='count'>{step['index']}</span><span class='title'><span class='op'>{escape(step['op'])}</span> "
            f"{code_element(rules)}</span><span class='meta'><span class='where'>{escape(line or '')}</span> "
            f"<span class='shape'>{escape(tuple_text(values[step['output']]['shape']))}</span></span>{_norm(step['norm'], step['index'])}"
        )
        anchor = f"id='step-{step['index']}' tabindex='-1'"
        if not body or self.bodies <= 0:
            return f"<div class='step row-line' {anchor}>{row}</div>"
        self.bodies -= 1
        inside = _body(self.plan, self.flow, at, step)
        return f"<article class='step' {anchor}><details><summary class='row-line'>{row}</summary>{inside}</details></article>"


def _norm(norm: float | None, index: int) -> str:
    return f"<span class='norm'>norm <span data-norm='u{index}'>{'–' if norm is None else f'{norm:.3g}'}</span></span>"


# -- the whole pass ----------------------------------------------------------------------------------------------------


def whole_html(plan: JSONObject, flow: Flow) -> str:
    """Return the Jacobian of each output with respect to each leaf: the product of the local Jacobians."""
    pairs = [(output, value) for value in plan["gradients"] for output in plan["outputs"] if output != value]
    return "".join(_whole(plan, flow, output, value, len(pairs) > 2) for output, value in pairs)


def elements_html(plan: JSONObject, output: str, value: str) -> str | None:
    """Return the whole Jacobian's elements as a formula; '' if it has none."""
    found = next(j for j in plan["jacobians"] if (j["output"], j["input"]) == (output, value))
    return math_element(found["mathml"])


def _whole(plan: JSONObject, flow: Flow, output_id: str, value_id: str, folded: bool) -> str:
    output, value = plan["values"][output_id], plan["values"][value_id]
    shape = [*output["shape"], *value["shape"]]
    size, found = arithmetic.prod(shape), flow.totals.get((output_id, value_id))
    one = elements_html(plan, output_id, value_id)
    inside = f"<p class='formula'>{one}</p>" if one else ""
    if found is not None:
        inside += map_html(found, output, value, f"w.{output_id}.{value_id}")
    else:
        why = f"{size:,} numbers." if size > 4096 else "a step's Jacobian is not embedded."
        inside += f"<p class='note'>Its values are not shown: {why}</p>"
    how = "along the marked axes, which are summed" if output["shape"] else "as one number"
    head = f"<h3>{derivative_math(symbol_of(output), symbol_of(value))} <span class='shape'>{escape(tuple_text(shape))}</span></h3>"
    body = (
        f"<p>The pass multiplied {name_math(symbol_of(output), bar=True)} by this array of {_count(size)} "
        f"{how}: {contraction_html(output['shape'], value['shape'])}. It was never built.</p>{inside}"
    )
    return f"<article class='whole'>{_folded(head, body, folded)}</article>"


# -- values ------------------------------------------------------------------------------------------------------------


def values_html(plan: JSONObject) -> str:
    """Return the forward values as tables, unless there are too many."""
    if len(plan["values"]) > VALUES:
        return f"<p class='note'>{len(plan['values'])} values: too many to show their numbers.</p>"
    shown = f"<div class='values'>{''.join(_value(key, value) for key, value in plan['values'].items())}</div>"
    count = len(plan["values"])
    return _folded(f"All {count} values", shown, True) if count > TABLES else shown


def _value(key: str, value: JSONObject) -> str:
    about = name_math(value["name"])
    shown = f"<p>{about} <span class='shape'>{escape(tuple_text(value['shape']))}</span></p>"
    if value["data"] is not None:
        shown = array_table(value["data"], about, label=value["name"])
    kind = f"<p class='line'>{escape(value['role'])}, {escape(value['dtype'])}</p>"
    return f"<div class='value' id='value-{escape(key)}' tabindex='-1'>{shown}{kind}{location_html(value.get('line'))}</div>"
