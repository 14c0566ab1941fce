"""Sample a hierarchical logistic model of batting averages by Hamiltonian Monte Carlo with compiled trajectories.

The data are eighteen players of 1970 after 45 times at bat each (Efron and Morris 1975). The model predicts the rest of
the season better than the averages so far.

    python examples/hmc.py
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy import special
from tqdm import trange

import chainrule as cr

HITS = np.array([18, 17, 16, 15, 14, 14, 13, 12, 11, 11, 10, 10, 10, 10, 10, 9, 8, 7])
BATS = 45
REST = np.array([346, 298, 276, 222, 273, 270, 263, 210, 269, 230, 264, 256, 303, 264, 226, 285, 316, 200]) / 1000
CHAINS, LEAPS, STEP = 4, 16, 0.1


def energy(q: Any) -> Any:
    """Return −log p(mean, log spread, z of each player | hits) for each row of q; the logit is mean + spread · z."""
    mean, log_spread, z = q[:, :1], q[:, 1:2], q[:, 2:]
    logits = mean + np.exp(log_spread) * z
    likelihood = np.sum(HITS * logits - BATS * np.logaddexp(0, logits), 1)
    prior = -0.5 * np.sum(z**2, 1) - 0.5 * (mean[:, 0] + 1) ** 2 - 0.5 * ((log_spread[:, 0] + 1.5) / 0.75) ** 2
    return -likelihood - prior


def trajectory(q: Any, momentum: Any, step: Any) -> tuple[Any, Any]:
    """Integrate the trajectory with this initial momentum by leapfrog steps; each row is a chain."""
    force = cr.grad(lambda q: np.sum(energy(q)))
    momentum = momentum - 0.5 * step * force(q)
    for leap in range(LEAPS):
        q = q + step * momentum
        momentum = momentum - (0.5 if leap == LEAPS - 1 else 1.0) * step * force(q)
    return q, momentum


def sample(draws: int, leap_frog: Callable[..., Any], warm_up: int = 200, seed: int = 0) -> tuple[Any, float]:
    """Return the draws of all chains, (draws, chains, parameters), and the acceptance rate."""
    rng = np.random.default_rng(seed)
    q = 0.1 * rng.standard_normal((CHAINS, 2 + len(HITS))) - np.r_[1, 1.5, np.zeros(len(HITS))]
    samples, accepted = [], 0.0
    for number in trange(warm_up + draws, desc="hmc", unit=" draws"):
        momentum = rng.standard_normal(q.shape)
        new, end = leap_frog(q, momentum, STEP * rng.uniform(0.8, 1.2))
        rise = energy(new) + 0.5 * np.sum(end**2, 1) - energy(q) - 0.5 * np.sum(momentum**2, 1)
        take = np.log(rng.uniform(size=CHAINS)) < -rise
        q = np.where(take[:, None], new, q)
        if number >= warm_up:
            samples.append(q)
            accepted += np.mean(take) / draws
    return np.array(samples), accepted


def r_hat(x: Any) -> Any:
    """Return the statistic of Gelman and Rubin, the ratio of total to within-chain spread; 1 if the chains agree."""
    within = np.mean(np.var(x, 0, ddof=1), 0)
    return np.sqrt(np.var(x, (0, 1), ddof=1) / within)


def by_quadrature(points: int = 120) -> tuple[Any, Any, Any]:
    """Return the posterior of mean and log spread on a grid; the players are integrated out by quadrature."""
    mean, log_spread = np.linspace(-1.6, -0.6, points), np.linspace(-4.5, 0.5, points)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    logits = mean[:, None, None, None] + np.exp(log_spread)[:, None, None] * nodes  # mean, spread, player, z
    each = HITS[:, None] * logits - BATS * np.logaddexp(0, logits)
    log = np.sum(special.logsumexp(each, -1, b=weights), -1)
    log += -0.5 * (mean[:, None] + 1) ** 2 - 0.5 * ((log_spread + 1.5) / 0.75) ** 2
    density = np.exp(log - log.max())
    return mean, log_spread, density / np.sum(density)


def solve(draws: int = 2000) -> SimpleNamespace:
    samples, accepted = sample(draws, cr.compile(trajectory))
    mean, log_spread, density = by_quadrature()
    flat = samples.reshape(-1, samples.shape[-1])
    worst = r_hat(samples).max()
    print(f"{CHAINS} chains of {draws} draws, {accepted:.0%} accepted, R̂ at most {worst:.3f}")
    for name, values, exact in (
        ("mean", flat[:, 0], np.sum(density.sum(1) * mean)),
        ("log spread", flat[:, 1], np.sum(density.sum(0) * log_spread)),
    ):
        print(f"{name}: {values.mean():.3f}, by quadrature {exact:.3f}")
    rates = special.expit(flat[:, :1] + np.exp(flat[:, 1:2]) * flat[:, 2:])
    errors = [np.sqrt(np.mean((guess - REST) ** 2)) for guess in (HITS / BATS, rates.mean(0))]
    print(f"root mean square error for the rest of the season: averages so far {errors[0]:.4f}, model {errors[1]:.4f}")
    return SimpleNamespace(
        samples=samples, flat=flat, rates=rates, grid=(mean, log_spread, density), r_hat=worst, errors=errors
    )


def draw(found: SimpleNamespace) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", width_ratios=(2, 3))
    mean, log_spread, density = found.grid
    left.plot(*found.flat[:: max(1, len(found.flat) // 2000), :2].T, ".", ms=2.5, alpha=0.35, label="draws")
    inside = np.sort(density.ravel())[::-1]
    levels = [inside[np.searchsorted(np.cumsum(inside), share)] for share in (0.95, 0.8, 0.5)]
    left.contour(mean, log_spread, density.T, levels, colors="C1", linewidths=1.2)
    left.set(title="All players: draws, and by quadrature", xlabel="mean of the logits", ylabel="log of their spread",
             xlim=(-1.5, -0.7), ylim=(-4, 0))  # fmt: skip
    place = np.arange(len(HITS))
    low, middle, high = np.quantile(found.rates, [0.05, 0.5, 0.95], axis=0)
    right.vlines(place, low, high, color="C0", alpha=0.5, lw=5, label="posterior, 90 %")
    right.plot(place, middle, "_", color="C0", ms=9)
    right.plot(place, HITS / BATS, "o", mfc="none", color="C1", label="after 45 times at bat")
    right.plot(place, REST, "x", color="C2", label="rest of the season")
    right.set(title="Each player", ylabel="batting average", xticks=[], xlabel="players")
    right.legend()
    return figure


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute a hundred trajectories of four chains."""
    rng = np.random.default_rng(0)
    starts = 0.1 * rng.standard_normal((100, 2, CHAINS, 2 + len(HITS)))
    fast = cr.compile(trajectory)
    return {
        "compiled": lambda: [fast(q, p, STEP) for q, p in starts],
        "not compiled": lambda: [trajectory(q, p, STEP) for q, p in starts],
    }


if __name__ == "__main__":
    draw(solve()).savefig("hmc.png", dpi=150)
