"""An interrupted solver resumes from its checkpoint with the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr

pytest.importorskip("scipy", reason="SciPy is not installed: pip install chainrule[scipy]")

START = {"x": np.array([-1.2, 1.0, 0.7]), "c": np.array(0.3)}


def rosenbrock(p: Any) -> Any:
    x = p["x"]
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2) + (p["c"] - x[0]) ** 2


class Counted:
    def __init__(self, stop_after: int | None = None) -> None:
        self.calls = 0
        self.stop_after = stop_after

    def __call__(self, p: Any) -> Any:
        if self.calls == self.stop_after:
            raise KeyboardInterrupt
        self.calls += 1
        return rosenbrock(p)


@pytest.mark.parametrize("method", ["L-BFGS-B", "BFGS", "CG", "TNC", "SLSQP", "Newton-CG", "trust-ncg", "Nelder-Mead"])
def test_a_stopped_solver_goes_on(method: str, tmp_path: Path) -> None:
    whole = Counted()
    expected = cr.scipy.minimize(whole, START, method=method)
    path = tmp_path / "fit.npy"
    stopped = Counted(stop_after=whole.calls // 2)
    with pytest.raises(KeyboardInterrupt):
        cr.scipy.minimize(stopped, START, method=method, checkpoint=path)
    rest = Counted()
    found = cr.scipy.minimize(rest, START, method=method, checkpoint=path)
    assert rest.calls <= whole.calls - stopped.calls + 1  # the last evaluation is repeated
    np.testing.assert_array_equal(found.x["x"], expected.x["x"])
    np.testing.assert_array_equal(found.x["c"], expected.x["c"])
    assert (found.fun, found.nit, found.nfev) == (expected.fun, expected.nit, expected.nfev)


def finished(path: Path) -> Any:
    return cr.scipy.minimize(rosenbrock, START, method="L-BFGS-B", checkpoint=path)


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_an_answer_that_was_not_written_to_its_end_counts_as_none(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "fit.npy"
    expected = finished(path)
    path.write_bytes(path.read_bytes()[:-cut])
    found = finished(path)
    np.testing.assert_array_equal(found.x["x"], expected.x["x"])
    assert finished(path).fun == expected.fun


def test_a_checkpoint_of_another_run_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "fit.npy"
    finished(path)
    with pytest.raises(ValueError, match="another x0"):
        cr.scipy.minimize(rosenbrock, {**START, "c": np.array(0.4)}, method="L-BFGS-B", checkpoint=path)
    with pytest.raises(ValueError, match="another value or derivative"):
        cr.scipy.minimize(lambda p: rosenbrock(p) + 0.1, START, method="L-BFGS-B", checkpoint=path)
    with pytest.raises(ValueError, match="another run"):
        cr.scipy.minimize(rosenbrock, START, method="CG", checkpoint=path)
    path.write_text("something else")
    expected = cr.scipy.minimize(rosenbrock, START, method="L-BFGS-B").fun
    with pytest.raises(ValueError, match="not a checkpoint"):
        finished(path)
    assert path.read_text() == "something else" and expected < 1e-6
