"""Estimate the variances of a state-space model of the Nile by maximum likelihood, with standard errors.

A Kalman filter is a loop of small matrix products. Its likelihood is differentiated twice and compiled. The data, the
flow of the Nile at Aswan from 1871 to 1970, and the model are from the book of Durbin and Koopman.

    python examples/kalman.py
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import chainrule as cr

FLOW = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
    831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
    781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
    744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
], dtype=float)  # fmt: skip
START = np.log([10_000.0, 10_000.0])


def local_level(p: Any) -> tuple[Any, ...]:
    """Return the local level model, a random walk plus noise: transition, observation, and their variances, exp(p)."""
    noise, step_variance = np.exp(p)
    return np.eye(1), np.ones(1), noise, step_variance * np.eye(1)


def kalman_filter(y: Any, p: Any) -> tuple[Any, Any, Any]:
    """Return the log likelihood of the observations given the first one, and the means and variances of the state."""
    transition, observation, noise, step_variance = local_level(p)
    mean, covariance = y[:1], noise * np.eye(1)
    likelihood, means, variances = 0.0, [mean], [covariance]
    for value in y[1:]:
        mean, covariance = transition @ mean, transition @ covariance @ transition.T + step_variance
        surprise = value - observation @ mean
        variance = observation @ covariance @ observation + noise
        gain = covariance @ observation / variance
        mean, covariance = mean + gain * surprise, covariance - np.outer(gain, observation @ covariance)
        likelihood = likelihood - 0.5 * (np.log(2 * np.pi * variance) + surprise**2 / variance)
        means.append(mean)
        variances.append(covariance)
    return likelihood, np.stack(means), np.stack(variances)


def loss(p: Any, y: Any) -> Any:
    return -kalman_filter(y, p)[0]


def solve(years: int = 100) -> SimpleNamespace:
    y = FLOW[:years]
    fit = minimize(cr.compile(cr.value_and_grad(loss)), START, args=(y,), jac=True, method="BFGS")
    covariance = np.linalg.inv(cr.hessian(loss)(fit.x, y))  # of the estimates of the logarithms
    variances = np.exp(fit.x)
    errors = variances * np.sqrt(np.diagonal(covariance))
    print(f"log likelihood {-fit.fun:.4f} after {fit.nit} steps")
    for name, value, error in zip(("noise of an observation", "step of the level"), variances, errors, strict=True):
        print(f"variance of the {name}: {value:7.0f} ± {error:.0f}")
    _, means, spreads = kalman_filter(y, fit.x)
    return SimpleNamespace(y=y, p=fit.x, fun=fit.fun, variances=variances, errors=errors, covariance=covariance,
                           level=means[:, 0], spread=np.sqrt(spreads[:, 0, 0]))  # fmt: skip


def draw(found: SimpleNamespace) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2))
    year = 1871 + np.arange(len(found.y))
    left.plot(year, found.y, ".", color="0.55", label="measured")
    left.plot(year, found.level, color="C0", label="level, given the past")
    left.fill_between(
        year, *(found.level + sign * 1.96 * found.spread for sign in (-1, 1)), color="C0", alpha=0.2, lw=0
    )
    left.set(title="The Nile at Aswan", ylabel="flow in a year, 10⁸ m³", ylim=(400, 1450))
    left.legend(loc="upper right")

    width = 3 * np.sqrt(np.diagonal(found.covariance))
    across, up = (np.linspace(p - w, p + w, 40) for p, w in zip(found.p, width, strict=True))
    grid = np.stack(np.meshgrid(across, up), -1)
    drop = cr.vmap(loss, (0, None))(grid.reshape(-1, 2), found.y).reshape(40, 40) - found.fun  # the filter, 1,600 times
    right.contour(across, up, drop, [0.5, 2, 4.5], colors="C0")
    angle = np.linspace(0, 2 * np.pi, 100)
    ellipse = found.p + 2 * (np.linalg.cholesky(found.covariance) @ [np.cos(angle), np.sin(angle)]).T
    right.plot(*ellipse.T, "--", color="C1", label="two standard errors")
    right.plot(*found.p, "o", color="C1")
    right.set(
        title="Log likelihood, down 0.5, 2 and 4.5",
        xlabel="log variance of the noise",
        ylabel="log variance of the steps",
    )
    right.legend(loc="upper right")
    return figure


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute the same fit by different methods."""
    fast = cr.compile(cr.value_and_grad(loss))

    def fit(function: Any, jac: bool) -> Any:
        return np.exp(minimize(function, START, args=(FLOW,), jac=jac, method="BFGS").x)

    found = {
        "compiled": lambda: fit(fast, True),
        "not compiled": lambda: fit(cr.value_and_grad(loss), True),
        "NumPy, with SciPy's differences": lambda: fit(loss, False),
    }
    try:
        from statsmodels.tsa.statespace.structural import UnobservedComponents
    except ImportError:
        return found
    model = UnobservedComponents(FLOW, "llevel")
    return found | {"statsmodels (a filter in Cython, differences)": lambda: model.fit(disp=False).params}


if __name__ == "__main__":
    draw(solve()).savefig("kalman.png", dpi=150)
