"""Where points are, and where cameras stood, from pictures of the points: least squares with a sparse Jacobian.

python examples/bundle_adjustment.py [points]
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import chainrule as cr

CAMERAS, SEEN_BY = 12, 4  # how many there are, and how many see each point


def turned(rotation: Any, x: Any) -> Any:
    """Points, each turned about an axis by an angle: the direction and the length of a vector."""
    angle = np.sqrt(np.sum(rotation**2, 1, keepdims=True))
    axis = rotation / angle
    along = np.sum(axis * x, 1, keepdims=True) * (1 - np.cos(angle))
    return x * np.cos(angle) + np.cross(axis, x) * np.sin(angle) + axis * along


def seen(cameras: Any, points: Any) -> Any:
    """Where cameras (rotation 3, place 3, focal length, principal point 2, distortion 2) see points."""
    x = turned(cameras[:, :3], points - cameras[:, 3:6])
    flat = x[:, :2] / x[:, 2:]
    r2 = np.sum(flat**2, 1, keepdims=True)
    distorted = flat * (1 + cameras[:, 9:10] * r2 + cameras[:, 10:11] * r2**2)
    return distorted * cameras[:, 6:7] + cameras[:, 7:9]


def scene(points: int, rng: np.random.Generator) -> tuple[dict[str, Any], Any, Any]:
    """Cameras and points; which camera made each picture of which point."""
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


def main(points: int) -> None:
    rng = np.random.default_rng(0)
    truth, camera, point = scene(points, rng)
    pictures = seen(truth["cameras"][camera], truth["points"][point]) + rng.normal(0, 0.3, (points * SEEN_BY, 2))

    def residuals(x: Any) -> Any:
        return seen(x["cameras"][camera], x["points"][point]) - pictures

    start = {name: value + rng.normal(0, 0.02, value.shape) for name, value in truth.items()}
    start["cameras"][:, 6:] = [500, 0, 0, 0, 0]
    began = time.perf_counter()
    found = cr.scipy.least_squares(residuals, start, x_scale="jac", ftol=1e-6, compile=True)
    seconds = time.perf_counter() - began
    size = sum(value.size for value in start.values())
    before, after = (np.sqrt(np.mean(residuals(x) ** 2)) for x in (start, found.x))
    print(f"{size} unknowns, {found.fun.size} residuals, {found.jac.nnz} entries in the Jacobian")
    print(f"from {before:.1f} to {after:.2f} pixels apart, in {found.nfev} steps and {seconds:.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
