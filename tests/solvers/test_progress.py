"""``progress=True``: a progress bar of tqdm, which does not change results, and is loaded on first use."""

from __future__ import annotations

import io
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


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", SOLVERS)
def test_a_bar_shows_how_far_a_solver_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    solve, said = SOLVERS[name]
    plain = solve()
    assert terminal.getvalue() == ""
    found = solve(progress=True)
    bar = terminal.getvalue()
    assert said.format(nfev=found.nfev) in bar and BESIDE.get(name.split(",")[0], "") in bar and "\r" in bar
    for part in ("x", "y", "nfev"):
        np.testing.assert_array_equal(found.get(part), plain.get(part))


@pytest.mark.parametrize("name", SOLVERS)
def test_a_file_gets_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    solve, said = SOLVERS[name]
    found = solve(progress=True)
    out, log = capsys.readouterr()
    assert out == "" and log.count("\n") == 1 and "\r" not in log and "█" not in log
    assert said.format(nfev=found.nfev).removeprefix("|") in log and BESIDE.get(name.split(",")[0], "") in log


def test_a_solver_that_fails_writes_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")

    def f(x: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cr.scipy.minimize(f, START, progress=True)
    assert capsys.readouterr().err.startswith("minimize: 0 calls [")


def test_without_tqdm_the_bar_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    solve, _ = SOLVERS["minimize"]
    with pytest.raises(ModuleNotFoundError, match=r"chainrule\.scipy\.minimize\(progress=True\).*pip install tqdm"):
        solve(progress=True)
    assert solve().success
