"""Robust regression on a pandas table, with errors that follow Student's t distribution.

The data are Brownlee's stack loss: 21 days of a plant that oxidizes ammonia. The degrees of freedom are estimated, too;
the fit gives outliers a small weight.

    python examples/robust_regression.py
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import optimize
from scipy import stats as theirs

import chainrule as cr
from chainrule import stats

PLANT = pd.DataFrame(
    {
        "air": [80, 80, 75, 62, 62, 62, 62, 62, 58, 58, 58, 58, 58, 58, 50, 50, 50, 50, 50, 56, 70],
        "water": [27, 27, 25, 24, 22, 23, 24, 24, 23, 18, 18, 17, 18, 19, 18, 18, 19, 19, 20, 20, 20],
        "acid": [89, 88, 90, 87, 87, 87, 93, 93, 87, 80, 89, 88, 82, 93, 89, 86, 72, 79, 80, 82, 91],
        "loss": [42, 37, 37, 28, 18, 18, 19, 20, 15, 14, 14, 13, 11, 12, 8, 7, 8, 8, 9, 15, 15],
    },
    dtype=float,
)


NAMES = "constant", "air", "water", "acid"


def predicted(p: Any, table: Any) -> Any:
    """Return the predicted loss. Columns of a table are operands like arrays."""
    return p["constant"] + p["air"] * table["air"] + p["water"] * table["water"] + p["acid"] * table["acid"]


def student(p: Any, table: Any) -> Any:
    """Return the negative log likelihood; its parameters include the logarithms of scale and degrees of freedom."""
    away = table["loss"] - predicted(p, table)
    return -np.sum(stats.t.logpdf(away, np.exp(p["log_df"]), scale=np.exp(p["log_scale"])))


def least_squares(table: Any) -> Any:
    """Return the ordinary least-squares fit, used as initial guess and for comparison."""
    columns = np.column_stack([np.ones(len(table)), table[["air", "water", "acid"]]])
    return np.linalg.lstsq(columns, table["loss"].to_numpy())[0]


def solve() -> SimpleNamespace:
    usual = least_squares(PLANT)
    start = dict(zip(NAMES, usual, strict=True)) | {"log_scale": np.log(2.0), "log_df": np.log(3.0)}
    fit = cr.scipy.minimize(student, start, args=(PLANT,), method="trust-exact")
    hessian = cr.hessian(
        lambda p: student(p, PLANT), fit.x, layout="csr", hstack=True
    )  # of all parameters, as one matrix
    errors = np.sqrt(np.diagonal(np.linalg.inv(hessian.toarray())))
    print(f"{'':9}{'least squares':>14}{'Student t':>12}{'standard error':>16}")
    for name, before, error in zip(NAMES, usual, errors, strict=False):
        print(f"{name:9}{before:14.3f}{fit.x[name]:12.3f}{error:16.3f}")
    df, scale = np.exp(fit.x["log_df"]), np.exp(fit.x["log_scale"])
    away = (PLANT["loss"] - predicted(fit.x, PLANT)) / scale
    weight = (df + 1) / (df + away**2)  # weighted least squares with these weights gives the same fit
    odd = weight.nsmallest(4)
    print(
        f"degrees of freedom {df:.2f}, scale {scale:.2f}; trusted least: days {', '.join(str(day + 1) for day in sorted(odd.index))}"
    )
    return SimpleNamespace(x=fit.x, fun=fit.fun, usual=usual, errors=errors, weight=weight, df=df, scale=scale)


def draw(found: SimpleNamespace) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    day = np.arange(1, len(PLANT) + 1)
    for name, p, colour, move in (
        ("least squares", dict(zip(NAMES, found.usual, strict=True)), "C1", -0.15),
        ("Student t", found.x, "C0", 0.15),
    ):
        left.vlines(day + move, 0, PLANT["loss"] - predicted(p, PLANT), color=colour, lw=3, label=name)
    left.axhline(0, color="0.55", lw=0.8)
    left.set(title="What is left of the loss", xlabel="day", ylabel="measured − predicted")
    left.legend()
    right.bar(day, found.weight / found.weight.max(), color="C0")
    right.set(title="How much each day is trusted", xlabel="day", ylabel="weight, of the largest")
    return figure


def by_scipy() -> Any:
    """Maximize the same likelihood with SciPy's distribution and finite differences."""
    columns = np.column_stack([np.ones(len(PLANT)), PLANT[["air", "water", "acid"]]])
    wanted = PLANT["loss"].to_numpy()

    def loss(p: Any) -> Any:
        return -np.sum(theirs.t.logpdf(wanted - columns @ p[:4], np.exp(p[5]), scale=np.exp(p[4])))

    return optimize.minimize(loss, np.append(least_squares(PLANT), np.log([2.0, 3.0])), method="BFGS").x


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute the fit."""
    start = dict(zip(NAMES, least_squares(PLANT), strict=True)) | {"log_scale": np.log(2.0), "log_df": np.log(3.0)}

    def fit(**options: Any) -> Any:
        return np.array(list(cr.scipy.minimize(student, start, args=(PLANT,), **options).x.values()))

    return {
        "chainrule, trust-exact with Hessians": lambda: fit(method="trust-exact"),
        "chainrule, BFGS, compile=True": lambda: fit(method="BFGS", compile=True),
        "SciPy's distribution and differences, BFGS": by_scipy,
    }


if __name__ == "__main__":
    draw(solve()).savefig("robust_regression.png", dpi=150)
