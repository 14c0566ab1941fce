"""Explanations of all samples of a primitive, for the tests of formulas."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from chainrule._src.explaining.diagnosis.names import Names
from chainrule._src.explaining.entry import explain_tensors
from chainrule._src.rules.primitive import unsupported
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule.testing.samples import samples_of, with_numbers
from tests.table.chosen import chosen


def explanations(prim, every: bool) -> Iterator[tuple]:
    """Yield the explanations of all samples of a primitive, or of selected ones, for real and complex numbers."""
    samples = [*samples_of(prim), *with_numbers(prim)]
    for sample in samples if every else chosen(samples, prim.name):
        yield from _explained(prim, sample)
        complex_ = prim.domain is None or prim.domain == "complex" or isinstance(prim.domain, tuple)
        if "c" in prim.accepts and sample.may_be_complex and sample.floating and complex_:
            yield from _explained(prim, dataclasses.replace(sample, complex=True))


def _explained(prim, sample) -> Iterator[tuple]:
    nameless = Names(None)  # without names of variables
    names = (prim.operands[-1],) * len(sample.shapes) if prim.variadic else prim.operands
    operands = list(sample.draw(0))
    for i in sample.floating:
        rule = prim.vjps.get(names[i])
        if rule is not None and not isinstance(rule, unsupported):
            operands[i] = wrap(operands[i])
            operands[i]._edge = Leaf(operands[i])
    leaves = [x for x in operands if isinstance(x, Tensor)]
    if not leaves:
        return
    try:
        with np.errstate(all="ignore"):
            out = prim(*operands, **sample.params)
            outs = tuple(o for o in (out if isinstance(out, tuple) else (out,)) if o._edge is not None)
            gs = [_random(o._raw, i) for i, o in enumerate(outs)]
            if outs:
                yield sample, explain_tensors(outs, gs, leaves, nameless, {}, {})
    except (TypeError, ValueError, NotImplementedError, RuntimeError):
        if not sample.complex:  # primitives without complex support raise
            raise


def _random(x, seed: int):
    rng = np.random.default_rng((seed, x.size, 5))
    g = rng.normal(size=x.shape)
    return np.asarray(g + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else g, x.dtype)
