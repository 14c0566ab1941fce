"""Convert an explanation to nested dicts and lists of plain Python values, for JSON and for ``page``.

``Explanation.to_dict`` calls it with an ``ExplanationData``.
"""

from __future__ import annotations

from chainrule._src.arrays.types import JSONObject
from chainrule._src.explaining.contributions import contributions_of, joint_norm
from chainrule._src.explaining.explanation_data import ExplanationData
from chainrule._src.explaining.folds import folds_of
from chainrule._src.explaining.jacobian import IndexForm, Walk
from chainrule._src.explaining.json_values import (
    array_dict,
    attributes_dict,
    finite_or_none,
    json_numbers,
    line_dict,
    value_dict,
)
from chainrule._src.explaining.steps import Arrow, Step

SEVERAL, LONG = 8, 60  # a pass with more steps has contributions by term; one with more steps has folds
_JACOBIAN = 4096  # most elements of a local Jacobian that is written
_JACOBIANS = 65536  # most elements of all local Jacobians together
_FORMS = ("index", "latex", "mathml")


def to_dict(e: ExplanationData, ends: int | None = None) -> JSONObject:
    """Implement ``Explanation.to_dict``; with ``ends``, only that many first and last steps have all forms of their rules."""
    budget, walk = [_JACOBIANS], Walk(e)
    whole = {step.index for part in (e.steps[:ends], e.steps[-ends:] if ends else ()) for step in part}
    long, several = len(e.steps) > LONG, len(e.steps) > SEVERAL
    by_term = contributions_of(e, "term") if several else None
    return {
        "version": 1,
        "title": e.title,
        "scalar": e.scalar,
        "outputs": [v.id for v in e.outputs],
        "wrt": [v.id for v in e.wrt],
        "seed": {v.id: array_dict(seed) for v, seed in zip(e.outputs, e.seeds)},
        "default_seed": e.default_seed,
        "values": {v.id: value_dict(v) for v in e.values.values()},
        "steps": [_step(step, budget, walk if step.index in whole else None) for step in e.steps],
        "gradients": {v.id: array_dict(v.gradient) for v in e.wrt if v.gradient is not None},
        "jacobians": [_jacobian(j) for j in e.jacobians],
        "check": {"ok": e.check().ok, "text": e.check().text},
        "graph": e.graph.to_dict(),
        "lessons": [lesson._asdict() for lesson in e.lessons],
        "folds": folds_of(e, by_term) if by_term is not None and long else None,
        "contributions": [
            c.to_dict() for c in (by_term, contributions_of(e, "line") if long else None) if c is not None
        ],
    }


def _step(step: Step, budget: list[int], walk: Walk | None) -> JSONObject:
    return {
        **attributes_dict(step, "index", "op", "call", "doc"),
        "node": step.node_name,
        "line": line_dict(step.source_line),
        "output": step.output.id,
        "outputs": [v.id for v in step.outputs],
        "upstream": array_dict(step.upstream),
        "norm": finite_or_none(joint_norm([step.upstream])),
        "upstreams": [array_dict(g) for g in step.upstreams],
        "terms": [{"from": index, "operand": operand, "array": array_dict(g)} for index, operand, g in step.terms],
        "arrows": [_arrow(arrow, budget, walk) for arrow in step.arrows],
        "constants": [v.id for v in step.constants],
        "notes": list(step.notes),
    }


def _arrow(arrow: Arrow, budget: list[int], walk: Walk | None) -> JSONObject:
    jacobian, forms = None, ("numpy", "latex", "mathml", "index")
    if arrow.jacobian_size <= min(_JACOBIAN, budget[0]):
        jacobian = arrow.jacobian(_JACOBIAN)
        budget[0] -= arrow.jacobian_size
    return {
        **attributes_dict(arrow, "operand", "jacobian_size", "structure", "structure_text", "built", "unbroadcast"),
        "numbers": None if walk is None else arrow.numbers,
        "input": arrow.input.id,
        "note": arrow.words,
        "jacobian_shape": list(arrow.jacobian_shape),
        "rule": {kind: getattr(arrow, f"rule_{kind}") for kind in (forms if walk is not None else forms[:1])},
        "element": dict.fromkeys(_FORMS) if walk is None else attributes_dict(walk.jacobian(arrow), *_FORMS),
        "downstream": array_dict(arrow.downstream),
        "jacobian": None if jacobian is None else json_numbers(jacobian),
    }


def _jacobian(j: IndexForm) -> JSONObject:
    return {"output": j.output.id, "input": j.input.id, "shape": list(j.shape), **attributes_dict(j, "paths", *_FORMS)}
