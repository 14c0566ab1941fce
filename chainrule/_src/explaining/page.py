"""Render an explanation as one self-contained HTML file: the answer, the graph, every step with its numbers, the Jacobian.

``Explanation.to_html`` calls ``explanation_html``, and notebooks show ``notebook_fragment``. The markup contains everything, so the
page is readable without scripts. With scripts, the supplied gradient can be edited, and all numbers are recomputed from embedded Jacobians.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule._src.arrays.types import JSONObject
from chainrule._src.explaining import sections
from chainrule._src.explaining.explanation_data import ExplanationData
from chainrule._src.explaining.flow import Flow, flow_of, numbers_agree, numbers_of_array
from chainrule._src.explaining.graph import MOST_CARDS, Graph
from chainrule._src.explaining.markup import code_element, colour_properties, data_file, escape, script_json
from chainrule._src.explaining.notation import derivative_math, name_math
from chainrule._src.explaining.picture import arrays_of_nodes, draw_graph
from chainrule._src.explaining.shares import DEFINITION, table_html
from chainrule._src.explaining.tables import array_table, flat_numbers, is_real, tuple_text
from chainrule._src.explaining.to_dict import to_dict

EDITED = 400  # most steps of a pass that can be edited, and whose formulas are written in every form
DERIVED = 9  # most lines of the derivation in the answer
SUMMED = 4  # most contributions that are written out as a sum
GRADIENTS = 3  # most gradients that are shown without a fold
INLINE = 6  # most numbers of an array in a line of text
SHORT = 90  # most characters of a Jacobian's elements in the answer


def explanation_html(explanation: ExplanationData | JSONObject) -> str:
    """Return the page of an explanation, or of the dictionary of its `to_dict()`, as the text of one HTML file.

    >>> import chainrule as cr
    >>> x = cr.tensor([1., 2.], requires_grad=True)
    >>> page = explanation_html(cr.explain((x * x).sum()))
    >>> page.startswith("<!doctype html>"), "http://" in page or "https://" in page
    (True, False)
    """
    plan = explanation if isinstance(explanation, dict) else _plan(explanation)
    flow = flow_of(plan, detailed=EDITED)
    script = "\n" + data_file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    fields = {
        "title": escape(plan["title"]),
        "csp": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        "style": colour_properties(":root") + data_file("page.css") + data_file("graph.css"),
        "answer": _answer(plan, flow),
        "graph": _graph(plan) if plan["graph"]["nodes"] else "",
        "steps": sections.steps_html(plan, flow),
        "whole": sections.whole_html(plan, flow) + _refused(plan),
        "values": sections.values_html(plan),
        "data": script_json(_numbers(plan, flow)),
        "script": script,
    }
    return re.sub(r"{{(\w+)}}", lambda part: fields[part[1]], data_file("template.html"))


def _plan(explanation: ExplanationData) -> JSONObject:
    return to_dict(explanation, DERIVED if len(explanation.steps) > EDITED else None)


def notebook_fragment(explanation: ExplanationData) -> str:
    """Return the answer, graph and steps for a notebook: without scripts, ids or links."""
    plan = _plan(explanation)
    flow = flow_of(plan, detailed=EDITED)
    flow.editable = False
    style = colour_properties(".chainrule") + scope_styles(data_file("page.css")) + data_file("graph.css")
    body = _answer(plan, flow) + (_graph(plan) if plan["graph"]["nodes"] else "")
    body += f"<section><h2>Step by step</h2>{sections.steps_html(plan, flow)}</section>"
    body = re.sub(r" (?:id|href|aria-labelledby|tabindex)='[^']*'", "", body)
    return f"<div class='chainrule'><style>{style}</style><main>{body}</main></div>"


def scope_styles(style: str) -> str:
    """Restrict the page's style sheet to the contents of a fragment."""
    return re.sub(r"/\*.*?\*/|([^{}]+){", lambda found: _inside(found[1] or ""), style)


def _inside(selectors: str) -> str:
    if "@" in selectors or not selectors:
        return f"{selectors}{{" * bool(selectors)
    parts = (part.strip() for part in selectors.split(","))
    return ",".join(".chainrule" if part in ("html", "body") else f".chainrule {part}" for part in parts) + "{"


# -- the answer --------------------------------------------------------------------------------------------------------


def _answer(plan: JSONObject, flow: Flow) -> str:
    """Return the seeds, the equations (for a long pass the contributions), and the gradients; fold many gradients."""
    long, many = plan["folds"] is not None, len(plan["gradients"]) > GRADIENTS
    got, made = "".join(_gradient(plan, key) for key in plan["gradients"]), _made_of(plan)
    if long or many:
        got = f"<div class='several'>{got}</div>"
    if many:
        got = f"<details><summary>{len(plan['gradients'])} gradients</summary>{got}</details>"
    check, derived = _check(plan, flow), made
    if long:
        got, made = got + check, ""
    else:
        equations = "".join(f"<li>{line}</li>" for line in _derivation(plan))
        derived = f"<h2>The chain rule, back from the output</h2><ol>{equations}</ol>{check}{_elements(plan)}"
    return (
        f"<h1>{_question(plan)}</h1>{_lede(plan)}"
        f"<div class='hero{' long' * (long or many)}'><div class='given'><h2>You supplied</h2>{_given(plan, flow)}</div>"
        f"<div class='derived'>{derived}</div><div class='got'><h2>You get</h2>{got}</div></div>{made}"
    )


def _made_of(plan: JSONObject) -> str:
    """Return the tables of contributions that have more than one part."""
    divided = [c for c in plan["contributions"] if len(c["parts"]) > 1]
    note = f"<p class='note'>{escape(DEFINITION)}.</p>" if divided else ""
    return "".join(f"<h2>Contributions to the gradients by {c['by']}</h2>{table_html(c)}" for c in divided) + note


def _question(plan: JSONObject) -> str:
    names = [plan["values"][key]["name"] for key in plan["outputs"]]
    if len(names) == 1 and names[0].isidentifier():
        given = "" if plan["default_seed"] and not plan["values"][plan["outputs"][0]]["shape"] else "gradient"
        return f"What <code>{escape(names[0])}.backward({given})</code> computes"
    return f"What a backward pass from {escape(', '.join(names))} computes"


def _names(plan: JSONObject, keys: list[str], *, bar: bool = False) -> str:
    return ", ".join(name_math(sections.symbol_of(plan["values"][key]), bar=bar) for key in keys)


def _lede(plan: JSONObject) -> str:
    outputs, wanted = plan["outputs"], list(plan["gradients"])
    goal = f"the gradients of {len(wanted)} leaves" if len(wanted) > 4 else _names(plan, wanted, bar=True)
    end = f"arrives at {goal}" if wanted else "ends there"
    made, letter = _names(plan, outputs), plan["scalar"]
    scalar = "" if letter == plan["values"][outputs[0]]["name"] else f", for any scalar {letter} made from {made}"
    return (
        f"<p class='lede'>A bar means <em>the gradient of {escape(letter)} with respect to</em>{scalar}. "
        f"The pass starts with {_names(plan, outputs, bar=True)}, multiplies it by one local Jacobian after another, "
        f"and {end}.</p>"
    )


def _given(plan: JSONObject, flow: Flow) -> str:
    parts = []
    for key, seed in plan["seed"].items():
        value = plan["values"][key]
        who = f" = <code>{escape(value['name'])}.grad</code>, as you supplied it"
        if plan["default_seed"]:
            who = ": no gradient was given, so it is ones" if seed["shape"] else " = 1, because the output is a scalar"
        live = flow.editable and not seed["truncated"]
        caption = name_math(sections.symbol_of(value), bar=True) + who
        parts.append(array_table(seed, caption, key=f"s.{key}", label=f"{value['bar']}, supplied", live=live))
    if flow.editable:
        parts.append("<p class='note hint' hidden>Edit a number: all numbers that depend on it are recomputed.</p>")
    elif flow.off:
        parts.append(f"<p class='note off'>{escape(flow.off[0].upper() + flow.off[1:])}.</p>")
    parts += [f"<p class='lesson'>{escape(item['text'])}</p>" for item in plan["lessons"]]
    return "".join(parts)


def _gradient(plan: JSONObject, key: str) -> str:
    value = plan["values"][key]
    name = name_math(sections.symbol_of(value), bar=True)
    caption = f"{name} = <code>{escape(value['name'])}.grad</code>" if value["role"] == "leaf" else name
    shown = array_table(plan["gradients"][key], caption, key=f"g.{key}", label=f"{value['bar']}, the gradient")
    return f"<div class='gradient' id='gradient-{escape(key)}' tabindex='-1'>{shown}</div>"


def _derivation(plan: JSONObject) -> Iterator[str]:
    """Yield the pass as lines of equations; for a long pass, the first and the last ones."""
    arrows = [(step, j, arrow) for step in plan["steps"] for j, arrow in enumerate(step["arrows"])]
    sums: dict[str, list[tuple[str, JSONObject]]] = {}
    for step, j, arrow in arrows:
        sums.setdefault(arrow["input"], []).append((f"a{step['index']}.{j}", arrow["downstream"]))
    several = {key: parts for key, parts in sums.items() if len(parts) > 1}
    line_count = max(DERIVED - len(plan["seed"]) - min(len(several), 3), 4)
    for key, seed in plan["seed"].items():
        bar = name_math(sections.symbol_of(plan["values"][key]), bar=True)
        tag = ("ones" if seed["shape"] else "one") if plan["default_seed"] else "you supplied it"
        yield f"<span class='eq'>{bar}{_inline(seed, f's.{key}')}</span>{_tag(tag)}"
    hidden = len(arrows) - line_count + 1 if len(arrows) > line_count else 0
    for at, (step, j, arrow) in enumerate(arrows):
        if hidden and at == line_count // 2:
            yield f"<a href='#steps'>… {hidden} more equations, below</a>"
        if not hidden or not line_count // 2 <= at < line_count // 2 + hidden:
            short = _inline(arrow["downstream"], f"a{step['index']}.{j}")
            link = f"<a class='tag' href='#step-{step['index']}'>{escape(step['call'] or step['op'])}</a>"
            yield f"<span class='eq'>{sections.rule_html(arrow)}{short}</span>{link}{sections.arrow_note(arrow)}"
    for key in list(several)[:3]:
        yield _sum_line(plan, key, several[key])


def _sum_line(plan: JSONObject, key: str, parts: list[tuple[str, dict[str, object]]]) -> str:
    value = plan["values"][key]
    total = plan["gradients"].get(key) or value["gradient"]
    result = _inline(total, f"g.{key}") if total else ""
    shown = [_inline(array, at, equals=False) for at, array in parts]
    said = f"the sum of its {len(parts)} contributions"
    if all(shown) and result and len(parts) <= SUMMED:
        said = " + ".join(shown)
    return f"<span class='eq sum'>{name_math(sections.symbol_of(value), bar=True)} = {said}{result}</span>{_tag('sum')}"


def _tag(text: str) -> str:
    return f"<span class='tag'>{text}</span>"


def _inline(array: JSONObject, key: str, *, equals: bool = True) -> str:
    numbers = flat_numbers(array["data"])
    if array["truncated"] or not 0 < len(numbers) <= INLINE or len(array["shape"]) > 1 or not is_real(numbers):
        return ""
    text = ", ".join(map(sections.short_number, numbers))
    text = f"[{text}]" if array["shape"] else text
    sign = " = " if equals else ""
    return f"{sign}<span class='inline' data-key='{key}' data-inline=''>{text}</span>"


def _check(plan: JSONObject, flow: Flow) -> str:
    """Return the contraction of the whole Jacobian with the given gradient, as a formula with its result."""
    lines, values = [], plan["values"]
    several = len(plan["seed"]) > 1 or len(plan["gradients"]) > 1
    for key, gradient in list(plan["gradients"].items()):
        found = {output: flow.totals.get((output, key)) for output in plan["seed"]}
        if not found or any(item is None for item in found.values()):
            continue
        products = " + ".join(
            f"tensordot({name_math(sections.symbol_of(values[o]), bar=True)}, "
            f"{derivative_math(sections.symbol_of(values[o]), sections.symbol_of(values[key])) if several else '<math><mi>J</mi></math>'}, "
            f"{len(values[o]['shape'])})"
            for o in found
        )
        ours = sum(
            item.pull(np.array(flat_numbers(plan["seed"][o]["data"]))) for o, item in found.items() if item is not None
        )
        ok = numbers_agree(ours, np.array(flat_numbers(gradient["data"])))  # type: ignore[arg-type]
        mark = f"<output data-check='{escape(key)}' class='{'ok' if ok else 'bad'}'>{'✓' if ok else '✗'}</output>"
        lines.append(f"{products} = {name_math(sections.symbol_of(values[key]), bar=True)} {mark}")
    if not lines and plan.get("check"):
        lines.append(code_element(plan["check"]["text"].replace("\n", "; ")))
    return f"<p class='check'>Check: {'; '.join(lines)}</p>" if lines else ""


def _elements(plan: JSONObject) -> str:
    """Return the formulas of the whole Jacobians' elements if they are short."""
    found = [
        sections.elements_html(plan, j["output"], j["input"])
        for j in plan["jacobians"]
        if len(j["index"] or "") <= SHORT
    ]
    return "".join(f"<p class='check formula'>{formula}</p>" for formula in found[:2] if formula)


# -- the other parts ---------------------------------------------------------------------------------------------------


def _graph(plan: JSONObject) -> str:
    collapsed = " Long runs are folded into one card." if plan["graph"].get("collapsed") else ""
    return (
        "<section id='graph' aria-labelledby='graph-head'><h2 id='graph-head'>The graph</h2>"
        "<p class='legend'><span class='key forward'>forward values</span> flow along the arrows; "
        f"<span class='key cotangent'>gradients ∂{escape(plan['scalar'])}/∂·</span> flow back against them.{collapsed}</p>"
        f"<div class='scroll graph-box' role='group' tabindex='0' aria-label='Picture of the graph'>{_picture(plan)}</div>"
        "</section>"
    )


def _picture(plan: JSONObject) -> str:
    """Return the graph; each card links to the part of the page about its value."""
    graph = Graph.from_dict(plan["graph"])
    graph._numbers = arrays_of_nodes(graph.nodes, plan["values"] if len(graph.nodes) <= MOST_CARDS else {})
    places = {key: f"#value-{key}" for key in plan["values"]}
    places |= {key: f"#gradient-{key}" for key in plan["gradients"]}
    places |= {key: f"#step-{step['index']}" for step in plan["steps"] for key in step["outputs"]}
    links = {n.id: places[n.value] for n in graph.nodes if n.value in places}
    return draw_graph(graph, *graph.drawing, links=links, embedded=True)


def _refused(plan: JSONObject) -> str:
    """Return the note on gradients of another shape, if a lesson is about them."""
    wrong = [
        f"<blockquote>{escape(i['text'])}</blockquote>" for i in plan["lessons"] if i["kind"] == "wrong_shape_would"
    ]
    shapes = ", ".join(
        f"{name_math(plan['values'][key]['name'])} has shape {escape(tuple_text(plan['values'][key]['shape']))}"
        for key in plan["outputs"]
    )
    return (
        f"<aside class='refused'><h3>Why must the gradient have the output's shape?</h3><p>{escape(plan['scalar'])} changes with "
        f"every element of the output, so the gradient has one number for each: {shapes}. Other shapes are refused:</p>"
        f"{''.join(wrong)}</aside>"
    ) * bool(wrong)


def _numbers(plan: JSONObject, flow: Flow) -> JSONObject:
    """Return the data that the script needs to run the pass again."""
    if not flow.editable:
        return {"off": flow.off}

    def arrow(at: int, j: int, said: JSONObject) -> JSONObject:
        found = flow.maps.get((at, j))
        return {"in": said["input"], "base": _base(said["downstream"]), "map": found.to_json() if found else None}

    return {
        "values": {
            key: {
                **{name: value[name] for name in ("name", "bar", "shape")},
                "single": value["dtype"] == "float32",
                "stale": key in flow.stale,
            }
            for key, value in plan["values"].items()
        },
        "seed": {key: _base(seed) for key, seed in plan["seed"].items()},
        "steps": [
            {
                "index": step["index"],
                "out": step["output"],
                "base": _base(step["upstream"]),
                "arrows": [arrow(at, j, said) for j, said in enumerate(step["arrows"])],
            }
            for at, step in enumerate(plan["steps"])
        ],
        "gradients": {key: _base(array) for key, array in plan["gradients"].items()},
        "totals": [{"out": o, "in": i, "map": found.to_json()} for (o, i), found in flow.totals.items()],
    }


def _base(array: JSONObject) -> list[Any] | None:
    found = numbers_of_array(array)
    return None if found is None else [item if np.isfinite(item) else str(item) for item in found.tolist()]
