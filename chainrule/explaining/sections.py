"""The parts of an explanation's page that follow the answer: each step, the Jacobian of the whole pass, the values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chainrule.explaining.flow import Flow, Map, keys_of_terms
from chainrule.explaining.markup import barred, escape, math, name_math
from chainrule.explaining.tables import decimals, flat, index_text, is_real, shape_text, table, written

FLAT = 400  # numbers of a Jacobian shown as one flattened matrix
TERMS = 6  # products of a sum written out


def partial_math(output: str, value: str) -> str:
    """∂output/∂value."""
    top, bottom = (name_math(name).removeprefix("<math>").removesuffix("</math>") for name in (output, value))
    return f"<math><mfrac><mrow><mi>∂</mi>{top}</mrow><mrow><mi>∂</mi>{bottom}</mrow></mfrac></math>"


def rule(arrow: dict[str, Any], *, display: bool = False) -> str:
    """An arrow's rule as a formula, or as text where there is none."""
    said = arrow["rule"]
    formula = math(said["mathml"], display=display) if said.get("mathml") else None
    if formula is not None:
        return formula
    return f"<code>{escape(said['numpy'])}</code>" if said.get("numpy") else "<span>a rule without a formula</span>"


def contraction(output_shape: Sequence[int], input_shape: Sequence[int]) -> str:
    """(2, 4) · (2, 4, 2, 3) → (2, 3), the summed axes marked."""
    summed = ", ".join(f"<span class='summed'>{n}</span>" for n in output_shape)
    kept = ", ".join(f"<span class='kept'>{n}</span>" for n in input_shape)
    comma = "," if len(output_shape) == 1 else ""
    trailing = "," if len(input_shape) == 1 else ""
    both = ", ".join(part for part in (summed, kept) if part)
    if len(output_shape) + len(input_shape) == 1:
        both += ","
    return f"<span class='contraction'>({summed}{comma}) · ({both}) → ({kept}{trailing})</span>"


def line_of(where: dict[str, Any] | None) -> str:
    if not where:
        return ""
    file = str(where["file"]).replace("\\", "/").rsplit("/", 1)[-1]
    text = f"<code>{escape(where['text'])}</code>" if where.get("text") else ""
    return f"<p class='line'><span class='where'>{escape(file)}:{escape(where['line'])}</span> {text}</p>"


# -- steps -------------------------------------------------------------------------------------------------------------


def steps(plan: dict[str, Any], flow: Flow, *, detailed: int) -> str:
    """All steps: whole while they are few, else one line each."""
    if len(plan["steps"]) > detailed:
        return _listed(plan)
    return "".join(_step(plan, flow, at, step) for at, step in enumerate(plan["steps"]))


def _step(plan: dict[str, Any], flow: Flow, at: int, step: dict[str, Any]) -> str:
    output = plan["values"][step["output"]]
    arrows = "".join(_arrow(plan, flow, at, step, j) for j in range(len(step["arrows"])))
    constants = [plan["values"][key] for key in step["constants"]]
    still = (
        "<p class='note'>"
        + ", ".join(
            f"{name_math(v['name'])} is a constant here"
            + (f": {escape(v['why_constant'])}" if v["why_constant"] else "")
            for v in constants
        )
        + ".</p>"
        if constants
        else ""
    )
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in step["notes"])
    doc = f"<p class='doc'>{escape(step['doc'])}</p>" if step["doc"] else ""
    return (
        f"<article class='step' id='step-{step['index']}' tabindex='-1' aria-labelledby='head-{step['index']}'>"
        f"<h3 id='head-{step['index']}'><span class='count'>Step {step['index']}</span> back through "
        f"<span class='op'>{escape(step['op'])}</span> <span class='node-name'>{escape(step['node'])}</span></h3>"
        f"{doc}{line_of(step['line'])}{_upstream(plan, step, output)}{arrows}{still}{notes}</article>"
    )


def _upstream(plan: dict[str, Any], step: dict[str, Any], output: dict[str, Any]) -> str:
    bar = name_math(output["name"], bar=True)
    if len(step["terms"]) < 2:
        return ""
    keys = list(keys_of_terms(step, plan))
    parts = []
    for key, term in zip(keys, step["terms"], strict=True):
        source = "what you supplied" if not term["from"] else f"from step {term['from']}"
        parts.append(table(term["array"], escape(source), key=key, label=f"{output['bar']} {source}"))
    total = table(step["upstream"], f"{bar}, their sum", key=f"u{step['index']}", label=f"{output['bar']}, the sum")
    uses = len(parts)
    return (
        f"<p>{name_math(output['name'])} was used {uses} times, so {bar} is the sum of {uses} contributions:</p>"
        f"<div class='row sum'>{_sign('+').join(parts)}{_sign('=')}{total}</div>"
    )


def _sign(sign: str) -> str:
    return f"<span class='sign' aria-hidden='true'>{sign}</span>"


def _arrow(plan: dict[str, Any], flow: Flow, at: int, step: dict[str, Any], j: int) -> str:
    arrow = step["arrows"][j]
    output, value = plan["values"][step["output"]], plan["values"][arrow["input"]]
    up, down = name_math(output["name"], bar=True), name_math(value["name"], bar=True)
    key = f"a{step['index']}.{j}"
    shape = escape(shape_text(arrow["jacobian_shape"]))
    kind = escape(arrow["structure_text"] or arrow["structure"])
    forms = []
    if arrow["rule"].get("index"):
        forms.append(f"<dt>by index</dt><dd><code>{escape(arrow['rule']['index'])}</code></dd>")
    if arrow["rule"].get("numpy"):
        forms.append(f"<dt>in NumPy</dt><dd><code>{escape(arrow['rule']['numpy'])}</code></dd>")
    forms.append(
        f"<dt>local Jacobian</dt><dd>{partial_math(output['name'], value['name'])} has shape {shape}: "
        f"{arrow['jacobian_size']:,} numbers, {kind}, never built</dd>"
    )
    found = flow.maps.get((at, j))
    one = math(arrow["element"]["mathml"] or "")
    if one:
        forms.append(f"<dt>its elements</dt><dd>{one}</dd>")
    forms.append(f"<dt>shapes</dt><dd>{contraction(output['shape'], value['shape'])}</dd>")
    stretched = f"<p class='note'>{escape(arrow['unbroadcast'])}</p>" if arrow["unbroadcast"] else ""
    upstream = table(step["upstream"], up, key=f"u{step['index']}", label=f"{output['bar']} upstream")
    result = table(arrow["downstream"], f"{down}", key=key, label=f"{value['bar']} downstream")
    inside = one_element(found, step["upstream"], output, value, key, arrow) + (
        look_inside(found, output, value, key) if found is not None else ""
    )
    off = flow.why_not.get((at, j)) or (flow.stale.get(step["output"]) and "an earlier step is not recomputed")
    stale = f"<p class='note off'>Not recomputed when you edit: {escape(off)}.</p>" if off and not flow.off else ""
    return (
        f"<div class='arrow'><div class='formula'>{rule(arrow, display=True)}</div><dl class='forms'>{''.join(forms)}</dl>"
        f"{stretched}<div class='row'>{upstream}{_sign('⟶')}{result}</div>"
        f"{inside}{stale}</div>"
    )


def substituted(found: Map, upstream: Sequence[Any], output: dict[str, Any], value: dict[str, Any], at: int) -> str:
    """One element of the result with the numbers put in: `X̄[0, 0] = 2 · 3 + 1 · 4 = 10`."""
    picked = [k for k, i in enumerate(found.inputs.tolist()) if i == at]
    products = [f"{_factor(upstream[found.outputs[k]])} · {_factor(float(found.values[k]))}" for k in picked[:TERMS]]
    more = f" + … ({len(picked) - TERMS} more)" if len(picked) > TERMS else ""
    total = sum(upstream[found.outputs[k]] * float(found.values[k]) for k in picked)
    name = f"{value['bar']}{index_text(at, value['shape'])}"
    return f"{name} = {' + '.join(products) or '0'}{more} = {short(total)}"


def short(item: float) -> str:
    return written(item, decimals([item]))


def _factor(item: float) -> str:
    return f"({short(item)})" if item < 0 else short(item)


def one_element(
    found: Map | None,
    upstream: dict[str, Any],
    output: dict[str, Any],
    value: dict[str, Any],
    key: str,
    arrow: dict[str, Any],
) -> str:
    numbers = flat(upstream["data"])
    if found is None or upstream["truncated"] or not is_real(numbers) or found.shape[1] == 0:
        said = arrow["numbers"]
        return f"<p class='one'><b>One element:</b> <span>{escape(said)}</span></p>" if said else ""
    said = substituted(found, numbers, output, value, 0)
    return f"<p class='one' data-one='{escape(key)}'><b>One element:</b> <output>{escape(said)}</output></p>"


def look_inside(found: Map, output: dict[str, Any], value: dict[str, Any], key: str, *, shown: bool = False) -> str:
    """A Jacobian, one output element at a time, and flattened where it is small."""
    n, m = found.shape
    if n == 0 or m == 0 or (n == 1 and m == 1):
        return ""
    row = [0.0] * m
    for o, i, v in zip(found.outputs.tolist(), found.inputs.tolist(), found.values.tolist(), strict=True):
        if o == 0:
            row[i] = v
    at = index_text(0, output["shape"])
    what = partial_math(output["name"] + at, value["name"])
    slice_ = table(
        {"shape": value["shape"], "data": _nested(row, value["shape"]), "truncated": False},
        f"{what}, a slice",
        label=f"Slice of the Jacobian of {output['name']} by {value['name']}",
    )
    flattened = _flattened(found, output, value) if n * m <= FLAT else ""
    body = (
        f"<div class='picker' data-picker='{escape(key)}'>{slice_}</div>"
        f"<p class='flat-shapes'>Flattened: <span class='summed'>{n}</span> · <span class='summed'>{n}</span>×"
        f"<span class='kept'>{m}</span> → <span class='kept'>{m}</span></p>{flattened}"
    )
    if shown:
        return body
    shape = shape_text([*output["shape"], *value["shape"]])
    return f"<details><summary>Look inside the Jacobian {escape(shape)}</summary>{body}</details>"


def _flattened(found: Map, output: dict[str, Any], value: dict[str, Any]) -> str:
    n, m = found.shape
    rows: list[list[float]] = [[0.0] * m for _ in range(n)]
    for o, i, v in zip(found.outputs.tolist(), found.inputs.tolist(), found.values.tolist(), strict=True):
        rows[o][i] = v
    places = decimals(found.values.tolist())
    head = "".join(f"<th scope='col'>{index_text(i, value['shape']) or value_name(value)}</th>" for i in range(m))
    body = "".join(
        f"<tr><th scope='row'>{index_text(o, output['shape']) or value_name(output)}</th>"
        + "".join(f"<td>{written(v, places)}</td>" if v else "<td class='zero'>0</td>" for v in rows[o])
        + "</tr>"
        for o in range(n)
    )
    return (
        f"<div class='scroll' role='group' tabindex='0' aria-label='Flattened Jacobian, {n} by {m}'>"
        f"<table class='numbers jacobian'><caption>{name_math(output['name'])} by {name_math(value['name'])} "
        f"<span class='shape'>{n}×{m}</span></caption>"
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def value_name(value: dict[str, Any]) -> str:
    return escape(value["name"])


def _nested(row: list[float], shape: Sequence[int]) -> Any:
    if not shape:
        return row[0]
    if len(shape) == 1:
        return row
    each = len(row) // shape[0]
    return [_nested(row[i * each : (i + 1) * each], shape[1:]) for i in range(shape[0])]


def _listed(plan: dict[str, Any]) -> str:
    """Many steps, one line each."""
    rows = []
    for step in plan["steps"]:
        output = plan["values"][step["output"]]
        rules = "; ".join(escape(arrow["rule"].get("numpy") or "a rule without a formula") for arrow in step["arrows"])
        shapes = "; ".join(escape(shape_text(arrow["downstream"]["shape"])) for arrow in step["arrows"])
        rows.append(
            f"<tr id='step-{step['index']}'><th scope='row'>{step['index']}</th><td>{escape(step['op'])}</td>"
            f"<td><code>{rules}</code></td><td>{escape(shape_text(output['shape']))} → {shapes}</td></tr>"
        )
    return (
        "<div class='scroll' role='group' tabindex='0' aria-label='All steps'><table class='listed'>"
        f"<caption>All {len(plan['steps'])} steps, in the order of the pass</caption><thead><tr><th scope='col'>Step</th>"
        "<th scope='col'>Operation</th><th scope='col'>Rule</th><th scope='col'>Shapes</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


# -- the whole pass ----------------------------------------------------------------------------------------------------


def whole(plan: dict[str, Any], flow: Flow) -> str:
    """The Jacobian of each output by each gradient: what the steps together multiplied by."""
    return "".join(_whole(plan, flow, output, value) for output, value in _pairs(plan))


def _pairs(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for value in plan["gradients"]:
        for output in plan["outputs"]:
            if output != value:
                yield output, value


def elements(plan: dict[str, Any], output: str, value: str) -> str | None:
    """The whole Jacobian's elements as a formula, if it has one."""
    found = next(j for j in plan["jacobians"] if (j["output"], j["input"]) == (output, value))
    return math(found["mathml"] or "")


def _whole(plan: dict[str, Any], flow: Flow, output_id: str, value_id: str) -> str:
    output, value = plan["values"][output_id], plan["values"][value_id]
    shape = [*output["shape"], *value["shape"]]
    size = 1
    for n in shape:
        size *= n
    found = flow.totals.get((output_id, value_id))
    one = elements(plan, output_id, value_id)
    inside = f"<p class='formula'>{one}</p>" if one else ""
    if found is not None:
        inside += look_inside(found, output, value, f"w.{output_id}.{value_id}", shown=True)
    else:
        inside += (
            "<p class='note'>Its values are not shown: "
            + (f"{size:,} numbers." if size > 4096 else "a step's Jacobian is not embedded.")
            + "</p>"
        )
    axes = len(output["shape"])
    how = "along the marked axes, which are summed" if axes else "as one number"
    return (
        f"<article class='whole'><h3>{partial_math(output['name'], value['name'])} "
        f"<span class='shape'>{escape(shape_text(shape))}</span></h3>"
        f"<p>The pass multiplied {name_math(output['name'], bar=True)} by this array of {size:,} numbers "
        f"{how}: {contraction(output['shape'], value['shape'])}. It was never built.</p>{inside}</article>"
    )


# -- values ------------------------------------------------------------------------------------------------------------


def values(plan: dict[str, Any], *, detailed: int) -> str:
    """The forward values, as tables while they are few."""
    items = list(plan["values"].items())
    if len(items) > 2 * detailed:
        return f"<p class='note'>{len(items)} values: too many to show their numbers here.</p>"
    parts = []
    for key, value in items:
        about = name_math(value["name"])
        kind = f"<p class='line'>{escape(value['role'])}, {escape(value['dtype'])}</p>"
        shown = (
            table(value["data"], about, label=value["name"])
            if value["data"] is not None
            else f"<p>{about} <span class='shape'>{escape(shape_text(value['shape']))}</span></p>"
        )
        parts.append(
            f"<div class='value' id='value-{escape(key)}' tabindex='-1'>{shown}{kind}{line_of(value.get('line'))}</div>"
        )
    return f"<div class='values'>{''.join(parts)}</div>"


__all__ = ["barred", "contraction", "line_of", "rule", "steps", "values", "whole"]
