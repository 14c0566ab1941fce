"""Bundle adjustment: estimate points and cameras from pictures, by least squares with a sparse Jacobian.

python examples/bundle_adjustment.py [points]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from scipy.optimize import least_squares

import chainrule as cr

CAMERAS, SEEN_BY = 12, 4  # the number of cameras, and of cameras that see each point
OPTIONS = {"x_scale": "jac", "ftol": 1e-6}


def rotate(rotation: Any, x: Any) -> Any:
    """Rotate points by rotation vectors, whose direction is the axis and whose length is the angle."""
    angle = np.sqrt(np.sum(rotation**2, 1, keepdims=True))
    axis = rotation / angle
    along = np.sum(axis * x, 1, keepdims=True) * (1 - np.cos(angle))
    return x * np.cos(angle) + np.cross(axis, x) * np.sin(angle) + axis * along


def project(cameras: Any, points: Any) -> Any:
    """Project points onto cameras (rotation 3, position 3, focal length, principal point 2, distortion 2)."""
    x = rotate(cameras[:, :3], points - cameras[:, 3:6])
    flat = x[:, :2] / x[:, 2:]
    r2 = np.sum(flat**2, 1, keepdims=True)
    distorted = flat * (1 + cameras[:, 9:10] * r2 + cameras[:, 10:11] * r2**2)
    return distorted * cameras[:, 6:7] + cameras[:, 7:9]


def scene(points: int, rng: np.random.Generator) -> tuple[dict[str, Any], Any, Any]:
    """Return the cameras and points, and the indices of the camera and the point of each observation."""
    cameras = np.zeros((CAMERAS, 11))
    cameras[:, :3] = rng.normal(0, 0.2, (CAMERAS, 3))
    cameras[:, 3:7] = [0, 0, -6, 500]
    cameras[:, 3:6] += rng.normal(0, 0.5, (CAMERAS, 3))
    which = np.argsort(rng.random((points, CAMERAS)), 1)[:, :SEEN_BY]
    return (
        {"cameras": cameras, "points": rng.normal(0, 1, (points, 3))},
        which.ravel(),
        np.repeat(np.arange(points), SEEN_BY),
    )


def problem(points: int) -> tuple[Any, Any, Any, Any]:
    """Return the residual function, the initial scene, the true scene, and the indices of the observations."""
    rng = np.random.default_rng(0)
    truth, camera, point = scene(points, rng)
    pictures = project(truth["cameras"][camera], truth["points"][point]) + rng.normal(0, 0.3, (points * SEEN_BY, 2))

    def residuals(x: Any) -> Any:
        return project(x["cameras"][camera], x["points"][point]) - pictures

    start = {name: value + rng.normal(0, 0.02, value.shape) for name, value in truth.items()}
    start["cameras"][:, 6:] = [500, 0, 0, 0, 0]
    return residuals, start, truth, (camera, point)


def solve(points: int = 500) -> SimpleNamespace:
    residuals, start, truth, _ = problem(points)
    found = cr.scipy.least_squares(residuals, start, **OPTIONS)
    size = sum(value.size for value in start.values())
    before, after = (np.sqrt(np.mean(residuals(x) ** 2)) for x in (start, found.x))
    print(f"{size} unknowns, {found.fun.size} residuals, {found.jac.nnz} entries in the Jacobian")
    print(f"from {before:.1f} to {after:.2f} pixels apart, in {found.nfev} steps")
    return SimpleNamespace(x=found.x, jac=found.jac, start=residuals(start), end=residuals(found.x), truth=truth)


def draw(found: SimpleNamespace) -> Any:
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
    for axis, name, away, colour in ((axes[0], "start", found.start, "C1"), (axes[1], "found", found.end, "C0")):
        axis.plot(*away.T, ".", ms=2, alpha=0.5, color=colour)
        axis.set(title=f"Seen − predicted: {name}", xlabel="pixels", aspect="equal", adjustable="datalim")
    axes[2].spy(found.jac[:400, :], markersize=0.8, color="C0", aspect="auto")
    axes[2].set(title="Jacobian, the first 400 rows", xlabel="cameras, then points", xticks=[], yticks=[])
    return figure


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute the final cost for 100 points."""
    residuals, start, _, (camera, point) = problem(100)
    flat = np.concatenate([start["cameras"].ravel(), start["points"].ravel()])

    def of_vector(v: Any) -> Any:
        return residuals(
            {"cameras": v[: 11 * CAMERAS].reshape(-1, 11), "points": v[11 * CAMERAS :].reshape(-1, 3)}
        ).ravel()

    pattern = sparse.lil_array((2 * len(camera), len(flat)), dtype=int)  # from SciPy's cookbook
    row = np.arange(len(camera))
    for k in range(11):
        pattern[2 * row, camera * 11 + k] = pattern[2 * row + 1, camera * 11 + k] = 1
    for k in range(3):
        at = 11 * CAMERAS + point * 3 + k
        pattern[2 * row, at] = pattern[2 * row + 1, at] = 1
    return {
        "chainrule, compile=True": lambda: cr.scipy.least_squares(residuals, start, compile=True, **OPTIONS).cost,
        "chainrule": lambda: cr.scipy.least_squares(residuals, start, **OPTIONS).cost,
        "SciPy, with the pattern": lambda: least_squares(of_vector, flat, jac_sparsity=pattern, **OPTIONS).cost,
        "SciPy, without the pattern": lambda: least_squares(of_vector, flat, **OPTIONS).cost,
    }


if __name__ == "__main__":
    draw(solve(int(sys.argv[1]) if len(sys.argv) > 1 else 500)).savefig("bundle_adjustment.png", dpi=150)
