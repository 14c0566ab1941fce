"""Optimize the back surface of a lens by differentiating a ray tracer.

Light enters the flat side of a lens. Behind a spherical back, the outer rays cross too early. The back that focuses all
rays is a hyperboloid with conic constant −n² (Descartes); the optimization finds it.

    python examples/lens.py
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import chainrule as cr

INDEX, APERTURE, FOCUS, THICKNESS = 1.5, 8.0, 30.0, 4.0  # lengths in mm; the focus counts from the apex of the back
SPHERE = np.array(
    [1 / (FOCUS * (INDEX - 1)), 0.0]
)  # curvature and conic constant that are right for rays near the axis


def depth(p: Any, height: Any) -> Any:
    """Return the distance of the back surface behind its apex at a height; p is (curvature, conic constant)."""
    square = height**2
    return -p[0] * square / (1 + np.sqrt(1 - (1 + p[1]) * p[0] ** 2 * square))


def refract(direction: Any, normal: Any, ratio: float) -> Any:
    """Return the refracted unit vectors by Snell's law; ratio is the relative index of the medium before the surface."""
    cosine = np.sum(direction * normal, -1, keepdims=True)
    return ratio * direction + (np.sqrt(1 - ratio**2 * (1 - cosine**2)) - ratio * cosine) * normal


def trace(p: Any, heights: Any) -> tuple[Any, Any]:
    """Return positions and directions, as (across, along), at which rays parallel to the axis leave the lens."""
    position = np.stack([heights, depth(p, heights)], -1)
    slope = cr.vmap(cr.grad(depth, 1), (None, 0))(p, heights)
    normal = np.stack([-slope, np.ones_like(slope)], -1) / np.sqrt(1 + slope**2)[:, None]
    return position, refract(np.array([0.0, 1.0]), normal, INDEX)


def spot(p: Any, heights: Any) -> Any:
    """Return the distances from the axis at which rays meet the focal plane."""
    position, direction = trace(p, heights)
    return position[:, 0] + direction[:, 0] / direction[:, 1] * (FOCUS - position[:, 1])


def search(heights: Any, jac: Any = None, **options: Any) -> Any:
    """Fit curvature and conic constant by least squares of the distances, starting from the paraxial sphere."""
    weights = np.sqrt(heights / np.sum(heights))  # each ray represents a ring of light
    scale = [0.1, 1.0]  # of curvatures in 1/mm, and of conic constants
    stop = {"xtol": 1e-15, "ftol": None, "gtol": None}
    return cr.scipy.least_squares(
        lambda p: weights * spot(p, heights), SPHERE, jac=jac, x_scale=scale, **stop, **options
    )


def solve(rays: int = 40) -> SimpleNamespace:
    heights = np.linspace(0, APERTURE, rays + 1)[1:]
    fit = search(heights)
    for name, p in (("sphere", SPHERE), ("found", fit.x)):
        size = np.sqrt(np.average(spot(p, heights) ** 2, weights=heights))
        print(f"{name:6}: curvature {p[0]:.6f} / mm, conic constant {p[1]:8.5f}, spot {1e3 * size:.4f} µm")
    print(f"Descartes: 1 / (f (n − 1)) = {SPHERE[0]:.6f}, −n² = {-(INDEX**2):.2f}")
    return SimpleNamespace(heights=heights, p=fit.x, loss=2 * fit.cost)


def draw(found: SimpleNamespace) -> Any:
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained", width_ratios=(3, 3, 2))
    rim = np.linspace(-APERTURE, APERTURE, 101)
    for axis, (name, p) in zip(axes, (("a sphere", SPHERE), ("found", found.p)), strict=False):
        back = depth(p, rim)
        axis.fill_betweenx(rim, np.full_like(rim, -THICKNESS), back, color="C0", alpha=0.25, lw=0)
        heights = np.linspace(-APERTURE, APERTURE, 21)
        heights = heights[heights != 0]
        position, direction = trace(p, heights)
        end = position + direction / direction[:, 1:] * (FOCUS + 5 - position[:, 1:])
        for height, at, last in zip(heights, position, end, strict=True):
            axis.plot([-THICKNESS - 6, at[1], last[1]], [height, at[0], last[0]], color="C1", lw=0.7)
        axis.axvline(FOCUS, color="0.55", lw=0.8, ls=":")
        axis.set(title=f"Rays: {name}", xlabel="mm", xlim=(-10, FOCUS + 5), ylim=(-9.5, 9.5))
    heights = np.linspace(0.1, APERTURE, 200)
    for label, p, colour in (("a sphere", SPHERE, "C1"), ("found", found.p, "C0")):
        axes[2].semilogx(np.abs(spot(p, heights)) + 1e-15, heights, color=colour, label=label)
    axes[2].set(title="Distance from the focus", xlabel="mm", ylabel="height of the ray, mm")
    axes[2].legend()
    return figure


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute the fit."""
    heights = np.linspace(0, APERTURE, 41)[1:]
    return {
        "chainrule": lambda: search(heights).x,
        "chainrule, compile=True": lambda: search(heights, compile=True).x,
        "SciPy's differences": lambda: search(heights, jac="3-point").x,
    }


if __name__ == "__main__":
    draw(solve()).savefig("lens.png", dpi=150)
