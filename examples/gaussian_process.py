"""Fit a Gaussian process by the gradient of its marginal likelihood, in twenty lines of NumPy.

The data are a slow wave plus a fast wave, with a gap without observations. scikit-learn, whose kernels have derivatives
written by hand, finds the same parameters.

    python examples/gaussian_process.py
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import chainrule as cr

NAMES = "size of the slow part", "its length", "size of the periodic", "its length", "noise"
START = np.log([1.0, 3.0, 0.3, 1.0, 0.2])


def truth(x: Any) -> Any:
    return np.sin(x / 2) + 0.4 * np.sin(2 * np.pi * x) + 0.2 * np.cos(6 * np.pi * x)


def data(points: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    x = np.sort(np.concatenate([rng.uniform(0, 6, points // 2), rng.uniform(8.5, 12, points - points // 2)]))
    return x, truth(x) + 0.15 * rng.standard_normal(points)


def kernel(p: Any, a: Any, b: Any) -> Any:
    """Return the covariances of a slow and a periodic component with period 1; the parameters are logarithms."""
    slow, long, fast, short, _ = np.exp(p)
    difference = a[:, None] - b
    return slow**2 * np.exp(-0.5 * (difference / long) ** 2) + fast**2 * np.exp(
        -2 * (np.sin(np.pi * difference) / short) ** 2
    )


def loss(p: Any, x: Any, y: Any) -> Any:
    """Return the negative log marginal likelihood, −log p(y)."""
    K = kernel(p, x, x) + np.exp(2 * p[-1]) * np.eye(len(x))
    L = np.linalg.cholesky(K)
    z = cr.linalg.solve_triangular(L, y[:, None], upper=False)
    return 0.5 * np.sum(z**2) + np.sum(np.log(np.diagonal(L))) + 0.5 * len(x) * np.log(2 * np.pi)


def predict(p: Any, x: Any, y: Any, at: Any) -> tuple[Any, Any]:
    """Return the posterior mean and standard deviation of the function at other points."""
    L = np.linalg.cholesky(kernel(p, x, x) + np.exp(2 * p[-1]) * np.eye(len(x)))
    across = np.linalg.solve(L, kernel(p, x, at))
    variance = np.diagonal(kernel(p, at, at)) - np.sum(across**2, 0)
    return across.T @ np.linalg.solve(L, y), np.sqrt(np.maximum(variance, 0))


def solve(points: int = 120) -> SimpleNamespace:
    x, y = data(points)
    fit = minimize(cr.compile(cr.value_and_grad(loss)), START, args=(x, y), jac=True, method="BFGS")
    errors = np.sqrt(np.diagonal(np.linalg.inv(cr.hessian(loss)(fit.x, x, y))))
    print(f"log marginal likelihood {-loss(START, x, y):.3f} → {-fit.fun:.3f} in {fit.nfev} runs")
    for name, value, error in zip(NAMES, np.exp(fit.x), errors, strict=True):
        print(f"{name:22} {value:6.3f} ± {value * error:.3f}")
    at = np.linspace(0, 12, 500)
    mean, spread = predict(fit.x, x, y, at)
    return SimpleNamespace(x=x, y=y, p=fit.x, fun=fit.fun, at=at, mean=mean, spread=spread)


def draw(found: SimpleNamespace) -> Any:
    figure, axis = plt.subplots(figsize=(10, 4), layout="constrained")
    low, high = (found.mean + sign * 1.96 * found.spread for sign in (-1, 1))
    axis.fill_between(found.at, low, high, color="C0", alpha=0.25, lw=0, label="95 %")
    axis.plot(found.at, found.mean, color="C0", label="the process, given the points")
    axis.plot(found.at, truth(found.at), "--", color="C1", lw=1, label="what the points were drawn from")
    axis.plot(found.x, found.y, ".", color="0.55")
    axis.set(title="A slow part and a periodic one, and what is said where nothing was seen", xlabel="x")
    axis.legend(loc="lower left", ncols=3)
    return figure


def by_sklearn(x: Any, y: Any) -> Any:
    """Return the same model as a regressor of scikit-learn."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, WhiteKernel

    slow, long, fast, short, noise = np.exp(START)
    wave = ExpSineSquared(short, 1.0, periodicity_bounds="fixed")
    parts = ConstantKernel(slow**2) * RBF(long) + ConstantKernel(fast**2) * wave + WhiteKernel(noise**2)
    return GaussianProcessRegressor(parts, alpha=0)


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute the fit."""
    x, y = data(120)
    gradient = cr.value_and_grad(loss)
    fast = cr.compile(gradient)

    def fit(function: Any, jac: bool) -> Any:
        return minimize(function, START, args=(x, y), jac=jac, method="L-BFGS-B").fun

    found = {
        "compiled": lambda: fit(fast, True),
        "not compiled": lambda: fit(gradient, True),
        "SciPy's differences": lambda: fit(loss, False),
    }
    return found | {"scikit-learn": lambda: -by_sklearn(x, y).fit(x[:, None], y).log_marginal_likelihood_value_}


if __name__ == "__main__":
    draw(solve()).savefig("gaussian_process.png", dpi=150)
