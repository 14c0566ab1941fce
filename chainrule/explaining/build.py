"""Writes ``data/formulas.json``: the MathML of every formula that the table's rows give rise to.

``python -m chainrule.explaining.build`` after a change to a formula. It needs latex2mathml (the extra ``explain``); what
it writes is package data, so that showing formulas needs nothing.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import pathlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule import table
from chainrule.core.node import Leaf
from chainrule.core.tensor import Tensor, wrap
from chainrule.errors.source import Names
from chainrule.explaining import latex
from chainrule.explaining.entry import explained
from chainrule.explaining.explanation import Explanation
from chainrule.explaining.index_calls import MUL, NoForm
from chainrule.explaining.steps import Arrow
from chainrule.explaining.terms import Part
from chainrule.explaining.whole import partial_of
from chainrule.rows.primitive import TABLE, Primitive, unsupported

FILE = pathlib.Path(__file__).parent / "data" / "formulas.json"


def explanations(prim: Primitive) -> Iterator[tuple[Any, Explanation]]:
    """The explanation of every sample of a row, of real and complex numbers."""
    module = importlib.import_module("chainrule.testing.samples")
    for sample in [*module.samples_of(prim), *module.with_numbers(prim)]:
        yield from _one(prim, sample)
        if "c" in prim.accepts and sample.may_be_complex and sample.floating and _takes_complex(prim):
            yield from _one(prim, dataclasses.replace(sample, complex=True))


def _takes_complex(prim: Primitive) -> bool:
    return prim.domain is None or prim.domain == "complex" or isinstance(prim.domain, tuple)


def _one(prim: Primitive, sample: Any) -> Iterator[tuple[Any, Explanation]]:
    names = (prim.operands[-1],) * len(sample.shapes) if prim.variadic else prim.operands
    given: list[Any] = []
    for i, x in enumerate(sample.draw(0)):
        rule = prim.vjps.get(names[i])
        given.append(_leaf(x) if i in sample.floating and rule is not None and not isinstance(rule, unsupported) else x)
    leaves = [x for x in given if isinstance(x, Tensor)]
    if not leaves:
        return
    try:
        with np.errstate(all="ignore"):
            out = prim(*given, **sample.params)
    except (TypeError, ValueError, NotImplementedError, RuntimeError):
        if not sample.complex:
            raise
        return  # not for complex numbers
    outs = tuple(o for o in (out if isinstance(out, tuple) else (out,)) if o._edge is not None)
    if not outs:
        return
    gs = [_random(o._raw, i) for i, o in enumerate(outs)]
    try:
        with np.errstate(all="ignore"):
            yield sample, explained(outs, gs, leaves, Names(None), {}, {})
    except (TypeError, NotImplementedError):
        if not sample.complex:
            raise


def _leaf(x: Any) -> Tensor:
    tensor = wrap(x)
    tensor._edge = Leaf(tensor)
    return tensor


def _random(x: Any, seed: int) -> Any:
    rng = np.random.default_rng((seed, x.size, 5))
    g = np.asarray(rng.normal(size=x.shape))
    return np.asarray(g + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else g, x.dtype)


def arrows(prim: Primitive) -> Iterator[Arrow]:
    """The arrows of all its samples."""
    for _, e in explanations(prim):
        for step in e.steps:
            yield from step.arrows


def partials(arrow: Arrow) -> Iterator[str]:
    """Templates of the factors of an elementwise rule's partial derivative."""
    if arrow.step.record.node.prim.kind != "elementwise":
        return
    try:
        product = partial_of(arrow)
    except NoForm:
        return
    for factor in product.factors:
        if isinstance(factor, Part):
            for needed in (0, MUL):
                yield latex.template_of(factor.formula, factor.tree, needed, latex.Elementwise)[0]


def templates() -> dict[str, str]:
    """LaTeX templates with their MathML."""
    for module in pkgutil.iter_modules(table.__path__, "chainrule.table."):  # some load when they are needed
        importlib.import_module(module.name)
    found: dict[str, str] = {}
    for prim in TABLE.values():
        if prim.kind == "discrete":
            continue
        for arrow in arrows(prim):
            formula = arrow._rule.formula
            if formula is not None:
                for text in (latex.template(formula)[0], *partials(arrow)):
                    found.setdefault(text, latex.converted(text) or "")
    return dict(sorted(found.items()))


def text() -> str:
    """What the file should hold."""
    return json.dumps(templates(), ensure_ascii=False, indent=0) + "\n"


if __name__ == "__main__":
    if latex.converted("x") is None:
        raise SystemExit("this needs latex2mathml: pip install 'chainrule[explain]'")
    FILE.write_text(text(), encoding="utf-8")
    print(f"{FILE.name}: {len(templates())} formulas, {FILE.stat().st_size} bytes")
