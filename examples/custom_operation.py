"""Define differentiation rules for the Voigt profile, check them, and fit a spectrum.

SciPy computes the profile of a spectral line (a Gaussian convolved with a Lorentzian) in compiled code, which cannot be
traced. Its partial derivatives follow from Faddeeva's function w, for which w′(z) = 2i/√π − 2zw(z).

    python examples/custom_operation.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy import special

import chainrule as cr
from chainrule.primitive import elementwise
from chainrule.testing import rulecheck

START = np.array(
    [[-1.8, 0.3, 0.3, 3.0], [0.8, 0.3, 0.3, 3.0], [3.3, 0.3, 0.3, 3.0]]
)  # position, σ, γ, strength of a line
TRUTH = np.array([[-2.0, 0.35, 0.25, 4.0], [1.0, 0.2, 0.5, 6.0], [3.5, 0.3, 0.1, 1.5]])
NOISE = 0.1


def by_x(x: Any, sigma: Any, gamma: Any, v: Any, l: Any) -> tuple[Any, Any]:
    """Return ∂V/∂x and ∂L/∂x, where V + iL = w((x + iγ) / (σ√2)) / (σ√(2π))."""
    return -(x * v - gamma * l) / sigma**2, 1 / (math.pi * sigma**2) - (x * l + gamma * v) / sigma**2


def profile_partials(x: Any, sigma: Any, gamma: Any, out: Any) -> tuple[Any, Any, Any]:
    """Return the partial derivatives of V, which satisfies the heat equation ∂V/∂σ = σ ∂²V/∂x²."""
    v_x, l_x = by_x(x, sigma, gamma, out, dispersion(x, sigma, gamma))
    return v_x, -(out + x * v_x - gamma * l_x) / sigma, -l_x


def dispersion_partials(x: Any, sigma: Any, gamma: Any, out: Any) -> tuple[Any, Any, Any]:
    """Return the partial derivatives of L."""
    v_x, l_x = by_x(x, sigma, gamma, voigt(x, sigma, gamma), out)
    return l_x, -(out + x * l_x + gamma * v_x) / sigma, v_x


def partials(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a rule for each operand. The parameter names of a rule select its inputs."""
    return {
        "x": lambda x, sigma, gamma, out: function(x, sigma, gamma, out)[0],
        "sigma": lambda x, sigma, gamma, out: function(x, sigma, gamma, out)[1],
        "gamma": lambda x, sigma, gamma, out: function(x, sigma, gamma, out)[2],
    }


DOMAIN = ((-2.0, 2.0), (0.3, 1.0), (0.2, 1.0))  # where the rules are checked


@elementwise(d=partials(profile_partials), ufunc=special.voigt_profile, accepts="f", domain=DOMAIN)
def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    """Return the Voigt profile V. With this rule, special.voigt_profile itself is differentiable, too."""


@elementwise(d=partials(dispersion_partials), accepts="f", domain=DOMAIN)
def dispersion(x: Any, sigma: Any, gamma: Any) -> Any:
    """Return the dispersion L. The derivatives of V contain L and those of L contain V, so all orders exist."""
    return np.imag(special.wofz((x + 1j * gamma) / (sigma * math.sqrt(2)))) / (sigma * math.sqrt(2 * math.pi))


def spectrum(p: Any, x: Any) -> Any:
    """Return a sum of spectral lines, written with SciPy's function."""
    place, sigma, gamma, strength = p.T
    return np.sum(strength * special.voigt_profile(x[:, None] - place, sigma, gamma), 1)


def measured(points: int) -> tuple[Any, Any]:
    x = np.linspace(-6, 6, points)
    return x, spectrum(TRUTH, x) + NOISE * np.random.default_rng(0).standard_normal(points)


def fit(x: Any, y: Any, **options: Any) -> Any:
    """Fit the lines by least squares, with bounds that keep σ and γ positive."""
    low = np.broadcast_to([-np.inf, 1e-3, 1e-3, 0], START.shape)
    return cr.scipy.least_squares(lambda p: (spectrum(p, x) - y) / NOISE, START, bounds=(low, np.inf), **options)


def spoilt() -> str:
    """Return the message of the check for a rule with a wrong sign."""
    wrong = partials(profile_partials) | {
        "gamma": lambda x, sigma, gamma, out: profile_partials(x, sigma, gamma, out)[2] * -1.0
    }

    @elementwise(d=wrong, accepts="f", domain=DOMAIN)
    def voigt_with_a_wrong_sign(x: Any, sigma: Any, gamma: Any) -> Any:
        return special.voigt_profile(x, sigma, gamma)

    try:
        rulecheck(voigt_with_a_wrong_sign)
    except AssertionError as error:
        return str(error)
    return "nothing"


def solve(points: int = 400) -> SimpleNamespace:
    rulecheck(voigt)
    rulecheck(dispersion)
    print("both rules hold; of one with a wrong sign, rulecheck says:", spoilt().splitlines()[0], sep="\n  ")
    x, y = measured(points)
    found = fit(x, y)
    errors = np.sqrt(np.diagonal(np.linalg.inv(found.jac.T @ found.jac))).reshape(START.shape)
    for line, error in zip(found.x, errors, strict=True):
        print(
            ", ".join(
                f"{name} {v:.3f} ± {e:.3f}"
                for name, v, e in zip(("place", "σ", "γ", "strength"), line, error, strict=True)
            )
        )
    return SimpleNamespace(x=x, y=y, p=found.x, errors=errors, spoilt=spoilt())


def draw(found: SimpleNamespace) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2))
    left.plot(found.x, found.y, ".", ms=3, color="0.55", label="measured")
    left.plot(found.x, spectrum(found.p, found.x), color="C0", label="fit")
    for line in found.p:
        left.plot(found.x, spectrum(line[None], found.x), "--", lw=1, color="C1")
    left.set(title="Three lines", xlabel="frequency")
    left.legend()
    at, step = np.linspace(-3, 3, 200), 1e-5
    point = np.linspace(-3, 3, 25)
    for number, name in enumerate(("x", "σ", "γ")):
        slope = cr.vmap(cr.grad(voigt, number), (0, None, None))(at, 0.5, 0.4)
        right.plot(at, slope, color=f"C{number}", label=f"∂V/∂{name}")
        low, high = ([point, 0.5, 0.4] for _ in range(2))
        low[number], high[number] = low[number] - step, high[number] + step
        differences = (special.voigt_profile(*high) - special.voigt_profile(*low)) / (2 * step)
        right.plot(point, differences, ".", color=f"C{number}")
    right.set(title="The rule (lines), differences (points)", xlabel="x")
    right.legend()
    return figure


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute the fit."""
    x, y = measured(400)
    return {
        "chainrule, with the rule": lambda: fit(x, y).x.ravel(),
        "the same, compile=True": lambda: fit(x, y, compile=True).x.ravel(),
        "SciPy's differences": lambda: fit(x, y, jac="2-point").x.ravel(),
    }


if __name__ == "__main__":
    draw(solve()).savefig("custom_operation.png", dpi=150)
