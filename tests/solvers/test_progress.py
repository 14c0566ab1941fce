"""``progress=True``: a progress bar of tqdm, which does not change results, and is loaded on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

pytest.importorskip("scipy")


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def decay(t: float, y: Any) -> Any:
    return -50 * (y - np.cos(t))


START = np.array([-1.2, 1.0])
SOLVERS: dict[str, tuple[Callable[..., Any], str]] = {
    "minimize": (lambda **more: cr.scipy.minimize(rosenbrock, START, **more), "minimize: {nfev} calls ["),
    "minimize, jac=True": (
        lambda **more: cr.scipy.minimize(cr.value_and_grad(rosenbrock), START, jac=True, **more),
        "minimize: {nfev} calls [",
    ),
    "least_squares": (
        lambda **more: cr.scipy.least_squares(lambda x: x**2 - 2, START, **more),
        "least_squares: {nfev} calls [",
    ),
    "root": (lambda **more: cr.scipy.root(lambda x: x**2 - 2, START, **more), "calls ["),
    "root, jac=True": (
        lambda **more: cr.scipy.root(lambda x: (x**2 - 2, np.diag(2 * x)), START, jac=True, **more),
        "calls [",
    ),
    "solve_ivp": (
        lambda **more: cr.scipy.solve_ivp(decay, (0, 2), np.zeros(1), method="BDF", **more),
        "solve_ivp: 100%",
    ),
    "solve_ivp, backwards": (
        lambda **more: cr.scipy.solve_ivp(lambda t, y: y, (3, 1), np.ones(1), **more),
        "| 2/2 [",
    ),
}
BESIDE = {"minimize": "fun=", "least_squares": "cost=", "root": "largest="}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_bar_shows_how_far_a_solver_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    solve, said = SOLVERS[name]
    plain = solve()
    assert not any(capsys.readouterr())
    found = solve(progress=True)
    out, bar = capsys.readouterr()
    assert out == "" and said.format(nfev=found.nfev) in bar and BESIDE.get(name.split(",")[0], "") in bar
    for part in ("x", "y", "nfev"):
        np.testing.assert_array_equal(found.get(part), plain.get(part))


def test_without_tqdm_the_bar_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    solve, _ = SOLVERS["minimize"]
    with pytest.raises(ModuleNotFoundError, match=r"chainrule\.scipy\.minimize\(progress=True\).*pip install tqdm"):
        solve(progress=True)
    assert solve().success
