"""A lens designed by gradient: rays are traced through it, and its back moves until they meet in one point.

Light falls on the flat side of a lens. Behind a spherical back the outer rays cross too early; which back brings all of them to the focus
is known since Descartes, a hyperboloid with the conic constant −n². The search, which knows nothing of it, comes to the same.

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
    """How far the back is behind its apex at a height; p are its curvature and its conic constant."""
    square = height**2
    return -p[0] * square / (1 + np.sqrt(1 - (1 + p[1]) * p[0] ** 2 * square))


def bent(direction: Any, normal: Any, ratio: float) -> Any:
    """Snell's law for unit vectors: the directions behind a surface, where light comes from a medium of that relative index."""
    along = np.sum(direction * normal, -1, keepdims=True)
    return ratio * direction + (np.sqrt(1 - ratio**2 * (1 - along**2)) - ratio * along) * normal


def trace(p: Any, heights: Any) -> tuple[Any, Any]:
    """Where rays that arrive parallel to the axis leave the lens, and in which direction, as (across, along)."""
    place = np.stack([heights, depth(p, heights)], -1)
    slope = cr.vmap(cr.grad(depth, 1), (None, 0))(p, heights)
    normal = np.stack([-slope, np.ones_like(slope)], -1) / np.sqrt(1 + slope**2)[:, None]
    return place, bent(np.array([0.0, 1.0]), normal, INDEX)


def spot(p: Any, heights: Any) -> Any:
    """Where rays meet the plane of the focus, as distances from the axis."""
    place, direction = trace(p, heights)
    return place[:, 0] + direction[:, 0] / direction[:, 1] * (FOCUS - place[:, 1])


def search(heights: Any, jac: Any = None, **options: Any) -> Any:
    """Curvature and conic constant with the least squares of the distances, from the sphere that is right near the axis."""
    weights = np.sqrt(heights / np.sum(heights))  # each ray stands for a ring of light
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
        place, direction = trace(p, heights)
        end = place + direction / direction[:, 1:] * (FOCUS + 5 - place[:, 1:])
        for height, at, last in zip(heights, place, end, strict=True):
            axis.plot([-THICKNESS - 6, at[1], last[1]], [height, at[0], last[0]], color="C1", lw=0.7)
        axis.axvline(FOCUS, color="0.55", lw=0.8, ls=":")
        axis.set(title=f"Rays: {name}", xlabel="mm", xlim=(-10, FOCUS + 5), ylim=(-9.5, 9.5))
    heights = np.linspace(0.1, APERTURE, 200)
    for label, p, colour in (("a sphere", SPHERE, "C1"), ("found", found.p, "C0")):
        axes[2].semilogx(np.abs(spot(p, heights)) + 1e-15, heights, color=colour, label=label)
    axes[2].set(title="Distance from the focus", xlabel="mm", ylabel="height of the ray, mm")
    axes[2].legend()
    return figure


def ways() -> dict[str, Callable[[], Any]]:
    """Return the search."""
    heights = np.linspace(0, APERTURE, 41)[1:]
    return {
        "chainrule": lambda: search(heights).x,
        "chainrule, compile=True": lambda: search(heights, compile=True).x,
        "SciPy's differences": lambda: search(heights, jac="3-point").x,
    }


if __name__ == "__main__":
    draw(solve()).savefig("lens.png", dpi=150)
