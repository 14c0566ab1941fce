"""Primitives with other libraries' arrays. `make foreign` checks all primitives with every library."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from chainrule._src.rules.kinds import elementwise, linear
from chainrule._src.rules.primitive import TABLE, call
from tests.foreign import checking

RESULTS = json.loads((Path(__file__).parents[2] / "tools" / "foreign.json").read_text())
QUICK = ["cholesky", "cholesky_info", "det", "getitem", "median", "softmax"]


def test_no_row_has_a_defect() -> None:
    assert len(RESULTS) > 180 and set(RESULTS) <= set(TABLE), "run make foreign"
    assert not [name for name, found in RESULTS.items() if "defect" in found.values()]


@pytest.mark.parametrize(
    "name, kind",
    [
        pytest.param(name, kind, marks=pytest.mark.slow if (name, kind) == ("cholesky", "Dask") else ())
        for name in QUICK
        for kind in ("Dask", "unyt")
    ],
)
def test_row(name: str, kind: str) -> None:
    pytest.importorskip(checking.KINDS[kind].package)
    result = checking.row_on(TABLE[name], checking.KINDS[kind])
    assert result.word == RESULTS[name][kind], result.first("defect") or result.first("refuses")


def test_a_row_that_computes_is_found() -> None:
    pytest.importorskip("dask.array")

    @linear(transpose=lambda g: g, samples=[call((2, 3))], listed=False)
    def reads(x):
        """The elements, with a conversion."""
        return x * float(np.sum(np.asarray(getattr(x, "payload", x))) != 0)

    found = checking.row_on(reads, checking.KINDS["Dask"])
    assert found.word == "defect" and "Converted: a Dask array was computed" in found.first("defect")


def test_a_row_that_is_wrong_is_found() -> None:
    pytest.importorskip("unyt")

    @elementwise(d=lambda x: np.asarray(1.0 if type(x) is np.ndarray else 2.0), listed=False)
    def another(x):
        """The elements, with another derivative for other libraries' arrays."""
        return np.positive(x)

    assert checking.row_on(another, checking.KINDS["unyt"]).word == "defect"


def test_a_row_that_loses_units_is_found() -> None:
    pytest.importorskip("unyt")

    @elementwise(d=lambda x: np.ones_like(x), listed=False)
    def more(x):
        """Add one in any unit."""
        return x + getattr(x, "payload", x) / getattr(x, "payload", x) * getattr(getattr(x, "payload", 1), "units", 1)

    assert "in metres" in checking.row_on(more, checking.KINDS["unyt"]).first("defect")
