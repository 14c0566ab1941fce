"""An explanation as nested dicts and lists of plain Python values: what pages are made of, and what JSON can hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.explaining.jacobian import Walk

_CELLS = 256  # numbers of an array that are written out; of a larger one only a corner is
_EDGE = 4
_JACOBIAN = 4096  # numbers of a local Jacobian that are written out
_JACOBIANS = 65536  # and of all of them together


def to_dict(e: Any) -> dict[str, Any]:
    """See ``Explanation.to_dict``."""
    budget, walk = [_JACOBIANS], Walk(e)
    return {
        "version": 1,
        "title": e.title,
        "scalar": e.scalar,
        "outputs": [v.id for v in e.outputs],
        "wrt": [v.id for v in e.wrt],
        "seed": {v.id: array(seed) for v, seed in zip(e.outputs, e.seeds)},
        "default_seed": e.default_seed,
        "values": {v.id: value_dict(v) for v in e.values.values()},
        "steps": [_step(step, budget, walk) for step in e.steps],
        "gradients": {v.id: array(v.gradient) for v in e.wrt if v.gradient is not None},
        "jacobians": [_jacobian(j) for j in e.jacobians],
        "check": _check(e),
        "graph": _graph(e),
        "lessons": [{"kind": kind, "text": text} for kind, text in e.lessons],
    }


def array(x: Any) -> dict[str, Any]:
    """``{"shape", "dtype", "data", "truncated"}``; of a large array only the corner with the lowest indices."""
    x = np.asarray(x)
    cut = x.size > _CELLS
    shown = x[tuple(slice(_EDGE) for _ in x.shape)] if cut else x
    return {"shape": list(x.shape), "dtype": str(x.dtype), "data": plain(shown), "truncated": cut}


def plain(x: Any) -> Any:
    """Nested lists of numbers; what JSON has no number for (nan, infinities, complex numbers) as text."""
    if isinstance(x, np.ndarray) and x.ndim:
        if x.dtype.kind in "biu" or (x.dtype.kind == "f" and bool(np.isfinite(x).all())):
            return x.tolist()
        return [plain(part) for part in x]
    item = x.item() if isinstance(x, (np.ndarray, np.generic)) else x
    if isinstance(item, float) and not math.isfinite(item):
        return "nan" if item != item else "inf" if item > 0 else "-inf"
    if isinstance(item, complex):
        return f"{item.real:.6g}{item.imag:+.6g}j"
    return item


def line(where: Any) -> dict[str, Any] | None:
    """A source line."""
    return None if where is None else {"file": where.file, "line": where.line, "text": where.text}


def value_dict(v: Any) -> dict[str, Any]:
    return {
        "name": v.name,
        "bar": v.bar,
        "shape": list(v.shape),
        "dtype": str(v.dtype),
        "role": v.role,
        "data": None if v.data is None else array(v.data),
        "gradient": None if v.gradient is None else array(v.gradient),
        "why_constant": v.why_constant,
        "line": line(v.line),
    }


def _step(step: Any, budget: list[int], walk: Walk) -> dict[str, Any]:
    notes = list(step.notes)
    notes += [a._rule.words for a in step.arrows if a._rule.words and a._rule.words not in notes]
    return {
        "index": step.index,
        "op": step.op,
        "call": step.call,
        "node": step.node_name,
        "doc": step.doc,
        "line": line(step.source_line),
        "output": step.output.id,
        "outputs": [v.id for v in step.outputs],
        "upstream": array(step.upstream),
        "upstreams": [array(g) for g in step.upstreams],
        "terms": [{"from": index, "operand": operand, "array": array(g)} for index, operand, g in step.terms],
        "arrows": [_arrow(arrow, budget, walk) for arrow in step.arrows],
        "constants": [v.id for v in step.constants],
        "notes": notes,
    }


def _arrow(arrow: Any, budget: list[int], walk: Walk) -> dict[str, Any]:
    jacobian = None
    if arrow.jacobian_size <= min(_JACOBIAN, budget[0]):
        jacobian = arrow.jacobian(_JACOBIAN)
        budget[0] -= arrow.jacobian_size
    return {
        "operand": arrow.operand,
        "input": arrow.input.id,
        "jacobian_shape": list(arrow.jacobian_shape),
        "jacobian_size": arrow.jacobian_size,
        "structure": arrow.structure,
        "structure_text": arrow.structure_text,
        "built": arrow.built,
        "rule": {
            "numpy": arrow.rule_numpy,
            "latex": arrow.rule_latex,
            "mathml": arrow.rule_mathml,
            "index": arrow.rule_index,
        },
        "element": _forms(walk.jacobian(arrow)),
        "numbers": arrow.numbers,
        "unbroadcast": arrow.unbroadcast,
        "downstream": array(arrow.downstream),
        "jacobian": None if jacobian is None else plain(jacobian),
    }


def _jacobian(j: Any) -> dict[str, Any]:
    about = {"output": j.output.id, "input": j.input.id, "shape": list(j.shape), "paths": j.paths}
    return {**about, **_forms(j)}


def _forms(j: Any) -> dict[str, str | None]:
    return {"index": j.index, "latex": j.latex, "mathml": j.mathml}


def _check(e: Any) -> dict[str, Any] | None:
    check = e.check()
    return {"ok": check.ok, "text": check.text}


def _graph(e: Any) -> dict[str, Any]:
    graph = e.graph
    if hasattr(graph, "to_dict"):
        found: dict[str, Any] = graph.to_dict()
        return found
    return {"nodes": [], "edges": [], "layout": {}, "collapsed": False}
