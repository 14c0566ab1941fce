"""Logistic regression on a chunked table: functions of Dask arrays are differentiated directly.

Each step of the fit reads every chunk once and returns a sum of 21 numbers. Newton's method, whose Hessian is a second
derivative of the same loss, needs seven passes over the data.

    python examples/dask_logistic.py
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import chainrule as cr

PENALTY = 1.0


def table(rows: int, columns: int, chunk: int) -> tuple[Any, Any]:
    """Return features and labels. They are drawn here; a real program reads them with da.from_zarr or dd.read_parquet."""
    x = da.random.default_rng(0).normal(size=(rows, columns), chunks=(chunk, columns))
    weights = np.where(np.arange(columns) < columns // 4, 1.0, 0.0) * (-1.0) ** np.arange(columns)
    probability = 1 / (1 + np.exp(-(x @ weights) - 0.5))
    return x, (da.random.default_rng(1).uniform(size=rows, chunks=chunk) < probability) * 1.0


def loss(p: Any, x: Any, y: Any) -> Any:
    """Return the sum of −log p(label) and a penalty; the last parameter is the constant."""
    z = x @ p[:-1] + p[-1]
    return np.sum(np.logaddexp(0, z) - y * z) + 0.5 * PENALTY * np.sum(p[:-1] ** 2)


def newton(x: Any, y: Any, tolerance: float = 1e-8) -> tuple[Any, Any, list[float]]:
    """Return the parameters, the Hessian, and the norm of the gradient after each pass."""
    p, lengths = np.zeros(x.shape[1] + 1), []
    while not lengths or (lengths[-1] > tolerance * lengths[0] and len(lengths) < 20):
        slope, curvature = cr.compute(cr.grad(loss)(p, x, y), cr.func.hessian(loss)(p, x, y))  # one pass for both
        lengths.append(float(np.linalg.norm(slope)))
        p = p - np.linalg.solve(curvature, slope)
    return p, curvature, lengths


def solve(rows: int = 400_000, columns: int = 20, chunk: int = 50_000) -> SimpleNamespace:
    x, y = table(rows, columns, chunk)
    p, curvature, lengths = newton(x, y)
    errors = np.sqrt(np.diagonal(np.linalg.inv(curvature)))
    print(
        f"{rows:,} rows in {x.numblocks[0]} chunks; {len(lengths)} passes; gradient {lengths[0]:.0e} → {lengths[-1]:.0e}"
    )
    print(
        f"constant {p[-1]:.4f} ± {errors[-1]:.4f}; first weights {', '.join(f'{w:.4f}' for w in p[:3])}, ± {errors[0]:.4f}"
    )
    return SimpleNamespace(x=x, y=y, p=p, errors=errors, lengths=lengths)


def draw(found: SimpleNamespace) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=(3, 2))
    place = np.arange(len(found.p) - 1)
    left.errorbar(place, found.p[:-1], 1.96 * found.errors[:-1], fmt="o", ms=4, color="C0", capsize=3)
    left.axhline(0, color="0.55", lw=0.8)
    left.set(title="Weights, with 95 % intervals", xlabel="feature", xticks=place[:: max(1, len(place) // 10)])
    right.semilogy(np.arange(1, len(found.lengths) + 1), found.lengths, "o-", color="C0")
    right.set(title="Newton's method", xlabel="passes over the data", ylabel="length of the gradient")
    return figure


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that fit 100,000 rows in four chunks, which are in memory."""
    x, y = (a.persist() for a in table(100_000, 20, 25_000))
    found = {
        "chainrule, Newton's method": lambda: newton(x, y)[0],
        "chainrule, L-BFGS-B": lambda: (
            cr.scipy.minimize(
                loss, np.zeros(21), args=(x, y), method="L-BFGS-B", options={"ftol": 1e-12, "gtol": 1e-3}
            ).x
        ),
    }
    with contextlib.suppress(ImportError):
        from dask_ml.linear_model import LogisticRegression

        theirs = LogisticRegression(C=1 / PENALTY, solver="lbfgs", tol=1e-8)
        found["dask-ml, lbfgs"] = lambda: np.append((fit := theirs.fit(x, y)).coef_, fit.intercept_)
    with contextlib.suppress(ImportError):
        from sklearn import linear_model

        in_memory, labels = np.asarray(x), np.asarray(y)
        other = linear_model.LogisticRegression(C=1 / PENALTY, tol=1e-8)
        found["scikit-learn, all rows in memory"] = lambda: np.append(
            (fit := other.fit(in_memory, labels)).coef_, fit.intercept_
        )
    return found


if __name__ == "__main__":
    draw(solve()).savefig("dask_logistic.png", dpi=150)
