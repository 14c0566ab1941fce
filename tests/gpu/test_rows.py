"""All primitives on a GPU: value, VJP, JVP and second derivatives equal the CPU's. A substitute replaces CuPy.

Here a few samples of each primitive run; ``make cuda`` runs all of them on a GPU.
"""

from __future__ import annotations

from typing import Any

import pytest

import chainrule as cr
from chainrule._src.ops import scipy_special
from chainrule._src.rules.primitive import TABLE, Primitive
from chainrule.testing.rulecheck import every_sample
from tests.foreign import checking

#: primitives that CuPy does not support, which raise
REFUSED = {
    "lu_factor": "would be converted to a NumPy array",
    "row_order": "would be converted to a NumPy array",
    "scatter_prod": "np.multiply.at is not available",
}
#: SciPy functions that CuPy lacks, or whose derivative is a function that it lacks
BESSEL = {
    "j0",
    "j1",
    "y0",
    "y1",
    "i0",
    "i1",
    "i0e",
    "i1e",
    "k0",
    "k1",
    "k0e",
    "k1e",
    "jv",
    "yv",
    "iv",
    "kv",
    "kn",
    "ive",
    "kve",
}
LACKING = BESSEL | {
    "airy_ai", "airy_aip", "betaincc", "betainccinv", "dawsn", "erfi", "ndtri_exp", "owens_t", "stdtr", "stdtrit",
}  # fmt: skip


def outcomes(prim: Primitive, most: int | None) -> list[checking.Outcome]:
    kind = checking.KINDS["CuPy"]
    samples = list(every_sample(prim))[:most]
    return [checking.check(prim, sample, kind, at) for sample in samples for at in checking.positions(sample, kind)]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_row_computes_what_it_does_on_the_cpu(cupy: Any, name: str) -> None:
    found = outcomes(TABLE[name], 2)
    assert found
    for outcome in found:
        if name in REFUSED:
            assert outcome.result == "refuses" and REFUSED[name] in outcome.said
        else:
            assert outcome.result == "works", (outcome.stage, outcome.said)


@pytest.mark.parametrize("name", sorted(scipy_special.ROWS))
def test_a_function_of_scipys_computes_what_it_does_on_the_cpu(cupy: Any, name: str) -> None:
    for outcome in outcomes(scipy_special.ROWS[name], 1):
        assert outcome.result == ("refuses" if name in LACKING else "works"), (outcome.stage, outcome.said)


@pytest.mark.gpu
@pytest.mark.skipif(not cr.cuda.is_available(), reason="no GPU: not run on hardware (make cuda)")
def test_on_hardware() -> None:
    wrong = {}
    for name, prim in {**TABLE, **scipy_special.ROWS}.items():
        found = [outcome for outcome in outcomes(prim, None) if outcome.result == "defect"]
        if found:
            wrong[name] = found[0]
    assert not wrong
