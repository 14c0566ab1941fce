"""The benchmarked Jacobians are the same by all routes of chainrule, and by hand-written code."""

from __future__ import annotations

import importlib
import pathlib
import sys

import numpy as np
import pytest

SIZES = {
    "brusselator": (4,), "euler": (4, 2), "bratu": (4,), "mlp": (3, 4, 3), "exp": (3, 4), "times": (5,), "outer": (4,),
    "arrowhead": (5,), "linear": (4, 3), "sine": (4, 3), "rosenbrock": (6,), "cameras": (3, 6, 10),
}  # fmt: skip


@pytest.fixture(scope="module")
def works():
    """Return the works of chainrule's routes and of NumPy's, by kind and route."""
    root = pathlib.Path(__file__).parents[2]
    before = list(sys.path)
    sys.path[:0] = [str(root / "benchmarks"), str(root)]
    try:
        ours, by_hand = (importlib.import_module(f"jacobian_peers.{name}") for name in ("chainrule", "numpy"))
    finally:
        sys.path[:] = before
    return ours.WORKS, by_hand.WORKS


@pytest.mark.parametrize("kind", SIZES)
def test_routes_agree(works, kind):
    ours, by_hand = works
    routes = [f"{kind}/{route}" for route in ("csr", "dense", "structured", "prepared", "prepared dense")]
    runs = [ours[route](*SIZES[kind]) for route in routes]
    runs += [make(*SIZES[kind]) for route, make in by_hand.items() if route.startswith(f"{kind}/")]
    answers = [float(np.asarray(entries)) for run in runs for entries in run()]
    assert len(answers) >= 5 and answers[0] > 0
    np.testing.assert_allclose(answers, answers[0], rtol=1e-12)
