"""The ADBench objectives and loops of the benchmark: all methods of chainrule give the same gradient."""

from __future__ import annotations

import importlib
import pathlib
import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr

KINDS = [
    "gmm",
    "gmm_loops",
    "ba",
    "hand",
    "lstm",
    "kalman",
    "robertson",
    "lotka_volterra",
    "van_der_pol",
    "bodies",
    "burgers",
    "gp",
]
WAYS = ["eager", "compiled", "scan", "prepared"]


@pytest.fixture(scope="module")
def benchmark() -> dict[str, Any]:
    """Return the methods of chainrule, and the programs."""
    root = pathlib.Path(__file__).parents[2]
    before = list(sys.path)
    sys.path[:0] = [str(root / "benchmarks"), str(root)]
    try:
        ways = {way: importlib.import_module(f"adbench_peers.{way}").WORKS for way in WAYS}
        sizes = {work.kind: work.sizes for work in importlib.import_module("adbench").QUICK}
        return {**ways, "sizes": sizes, "programs": importlib.import_module("adbench_programs")}
    finally:
        sys.path[:] = before


def test_every_program_is_compared(benchmark: dict[str, Any]) -> None:
    assert set(KINDS) == set(benchmark["programs"].PROGRAMS) == set(benchmark["sizes"])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind: str, benchmark: dict[str, Any]) -> None:
    sizes = benchmark["sizes"][kind]
    runs = {way: benchmark[way][kind](*sizes) for way in WAYS if kind in benchmark[way]}
    found = {way: [[np.asarray(part) for part in run()] for _ in range(3)] for way, run in runs.items()}
    expected = found["eager"][0]
    assert all(np.isfinite(part).all() and part.any() for part in expected)
    for way, calls in found.items():
        for parts in calls:
            assert len(parts) == len(expected)
            for part, right in zip(parts, expected):
                if way in ("eager", "compiled"):
                    assert part.tobytes() == right.tobytes(), way
                else:
                    np.testing.assert_allclose(part, right, rtol=1e-11, atol=1e-12 * np.abs(right).max(), err_msg=way)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_the_differences_of_objectives(kind: str, benchmark: dict[str, Any]) -> None:
    """Compared along a direction; a Jacobian with independent rows is compared completely."""
    programs, sizes = benchmark["programs"], benchmark["sizes"][kind]
    program = programs.PROGRAMS[kind](programs.Tools(), *sizes)
    rng = np.random.default_rng(0)
    direction = [rng.normal(size=np.shape(x)) * (np.abs(x).mean() + 0.1) for x in program.parameters]

    def moved(h: float) -> Any:
        return program.f(*(x + h * d for x, d in zip(program.parameters, direction)))

    h = 1e-4
    slope = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
    if program.row:
        whole = cr.prepare_jacobian(program.f, program.parameters, hstack=True)
        found = whole(program.parameters) @ np.concatenate([d.ravel() for d in direction])
    else:
        gradient = [np.asarray(part) for part in benchmark["eager"][kind](*sizes)()]
        found = sum(np.tensordot(g, d, np.ndim(d)) for g, d in zip(gradient, direction))
    np.testing.assert_allclose(found, slope, rtol=1e-7, atol=1e-7 * np.abs(slope).max())
