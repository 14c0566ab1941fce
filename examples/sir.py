"""Fit a differential equation to an epidemic in a boarding school, with standard errors from the Hessian.

The data are 763 boys on 14 days of January 1978 (British Medical Journal, 4 March 1978). The fit differentiates through
the steps of a Runge–Kutta method; standard errors come from second derivatives, the confidence band from first ones. A
bootstrap of two hundred simulated epidemics, fitted with one recording, checks these errors.

    python examples/sir.py
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import curve_fit, minimize

import chainrule as cr

BOYS = 763
IN_BED = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4], dtype=float)
DAYS = np.arange(14.0)
START = np.log([1.0, 0.3])  # infections by one boy per day; recoveries of one boy per day
LIMITS = [(-3, 2)] * 2


def rates(y: Any, p: Any) -> Any:
    """Return the rates of change of susceptible and infected boys; p contains the logarithms of both rates."""
    infection, recovery = np.exp(p)
    new = infection * y[0] * y[1] / BOYS
    return np.array([-new, new - recovery * y[1]])


def infected(p: Any, steps: int = 4) -> Any:
    """Return the number of infected boys on each day by the Runge–Kutta method."""
    y, h = np.array([BOYS - IN_BED[0], IN_BED[0]]), 1 / steps
    found = [y[1]]
    for _ in DAYS[1:]:
        for _ in range(steps):
            k1 = rates(y, p)
            k2 = rates(y + h / 2 * k1, p)
            k3 = rates(y + h / 2 * k2, p)
            k4 = rates(y + h * k3, p)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        found.append(y[1])
    return np.array(found)


def loss(p: Any, counts: Any) -> Any:
    """Return the negative log likelihood for normal errors, maximized over their variance, up to a constant."""
    return len(DAYS) / 2 * np.log(np.sum((infected(p) - counts) ** 2))


def fit_all(samples: Any, function: Any, start: Any) -> Any:
    """Fit each sample of counts; ``function`` returns the loss and its gradient."""
    return np.array(
        [minimize(function, start, args=(counts,), jac=True, method="L-BFGS-B", bounds=LIMITS).x for counts in samples]
    )


def solve(again: int = 200) -> SimpleNamespace:
    fast = cr.compile(cr.value_and_grad(loss))
    p = fit_all([IN_BED], fast, START)[0]
    covariance = np.linalg.inv(cr.hessian(loss)(p, IN_BED))
    values, errors = np.exp(p), np.sqrt(np.diagonal(covariance))
    ratio, spread = np.exp(p[0] - p[1]), np.sqrt([1, -1] @ covariance @ [1, -1])
    slopes = cr.jacfwd(infected)(p)
    band = np.sqrt(np.einsum("ti,ij,tj->t", slopes, covariance, slopes))
    for name, value, error in zip(("infections by one in a day", "recoveries in a day"), values, errors, strict=True):
        print(f"{name}: {value:.3f} ± {value * error:.3f}")
    print(f"basic reproduction number: {ratio:.2f} ± {ratio * spread:.2f}")
    curve = infected(p)
    noise = np.sqrt(np.mean((curve - IN_BED) ** 2))
    samples = curve + noise * np.random.default_rng(0).standard_normal((again, len(DAYS)))
    refits = fit_all(samples, fast, p)
    print(
        f"{again} epidemics drawn and fitted again: ± {np.std(np.exp(refits[:, 0])):.3f} and {np.std(np.exp(refits[:, 1])):.3f}"
    )
    return SimpleNamespace(p=p, covariance=covariance, curve=curve, band=band, noise=noise, refits=refits)


def draw(found: SimpleNamespace) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2))
    left.plot(DAYS, found.curve, color="C0", label="fit")
    for spread, alpha in ((found.band, 0.35), (np.hypot(found.band, found.noise), 0.15)):
        low, high = (found.curve + sign * 1.96 * spread for sign in (-1, 1))
        left.fill_between(DAYS, low, high, color="C0", alpha=alpha, lw=0)
    left.plot(DAYS, IN_BED, "o", color="C1", label="boys in bed")
    left.set(title="The curve, its band, and that of new counts (95 %)", xlabel="day", ylim=(-40, 360))
    left.legend()
    width = 4 * np.sqrt(np.diagonal(found.covariance))
    grid = np.linspace(found.p - width, found.p + width, 60).T
    pairs = np.stack(np.meshgrid(*grid), -1).reshape(-1, 2)
    curves = cr.vmap(infected)(pairs)  # 3,600 epidemics at once
    squares = np.sum((curves - IN_BED) ** 2, 1) / np.sum((found.curve - IN_BED) ** 2)
    fall = len(DAYS) / 2 * np.log(squares)
    across, up = np.exp(grid[0]), np.exp(grid[1])
    right.contour(across, up, fall.reshape(60, 60), [0.5, 2, 4.5], colors="C0")
    angle = np.linspace(0, 2 * np.pi, 100)
    ellipse = found.p + 2 * (np.linalg.cholesky(found.covariance) @ [np.cos(angle), np.sin(angle)]).T
    right.plot(*np.exp(ellipse).T, "--", color="C1", label="two standard errors")
    right.plot(*np.exp(found.refits).T, ".", color="C2", ms=3, alpha=0.6, zorder=0, label="fitted again")
    right.set(
        title="Log likelihood, down 0.5, 2 and 4.5", xlabel="infections by one in a day", ylabel="recoveries in a day"
    )
    right.legend(loc="upper left", fontsize="small", markerscale=3)
    return figure


def by_curve_fit(counts: Any) -> Any:
    """Fit with SciPy's curve_fit, finite differences and SciPy's solver; return both rates and their covariance."""

    def curve(days: Any, *p: float) -> Any:
        y0 = [BOYS - IN_BED[0], IN_BED[0]]
        return solve_ivp(lambda _, y: rates(y, np.array(p)), (0, 13), y0, t_eval=days, rtol=1e-9, atol=1e-9).y[1]

    return curve_fit(curve, DAYS, counts, START)


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute ten fits; the time of the recording is not included."""
    samples = IN_BED + 10 * np.random.default_rng(0).standard_normal((10, len(DAYS)))
    gradient = cr.value_and_grad(loss)
    fast = cr.compile(gradient)
    return {
        "compiled": lambda: fit_all(samples, fast, START),
        "not compiled": lambda: fit_all(samples, gradient, START),
        "SciPy's curve_fit around solve_ivp": lambda: np.array([by_curve_fit(counts)[0] for counts in samples]),
    }


if __name__ == "__main__":
    draw(solve()).savefig("sir.png", dpi=150)
