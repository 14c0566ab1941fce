"""Topology optimization of a beam, differentiating through a sparse linear solve.

The problem is the MBB beam of Sigmund's "99 line" program, with its optimality criterion method. That program contains
derivatives worked out by hand; here the compliance is differentiated automatically.

    python examples/topology.py
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

import chainrule as cr
from chainrule.scipy.sparse.linalg import spsolve

SOFT, POISSON, POWER = 1e-9, 0.3, 3.0  # stiffness of void elements, Poisson's ratio, penalization power


def element() -> Any:
    """Return the stiffness matrix of one square element by two-point quadrature; corners are counter-clockwise."""
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    elastic = np.array([[1, POISSON, 0], [POISSON, 1, 0], [0, 0, (1 - POISSON) / 2]]) / (1 - POISSON**2)
    K = np.zeros((8, 8))
    for x, y in corners / np.sqrt(3):
        slopes = np.stack([corners[:, 0] * (1 + y * corners[:, 1]), corners[:, 1] * (1 + x * corners[:, 0])]) / 2
        strain = np.zeros((3, 8))
        strain[0, ::2], strain[1, 1::2], strain[2, ::2], strain[2, 1::2] = slopes[0], slopes[1], slopes[1], slopes[0]
        K += strain.T @ elastic @ strain / 4
    return K


class Beam:
    """Half of a symmetric beam of w × h elements, supported at its outer corner and loaded in the middle."""

    def __init__(self, w: int, h: int, radius: float):
        corner = np.arange((w + 1) * (h + 1)).reshape(
            w + 1, h + 1
        )  # columns from left to right, each from top to bottom
        around = [corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1], corner[:-1, :-1]]
        own = np.stack([2 * c.reshape(-1, 1) + [0, 1] for c in around], 1).reshape(-1, 8)
        self.places = np.repeat(own, 8, 1).ravel(), np.tile(own, 8).ravel()
        fixed = np.append(2 * corner[0], 2 * corner[-1, -1] + 1)
        self.free = np.setdiff1d(np.arange(2 * corner.size), fixed)
        self.load = np.zeros(2 * corner.size)
        self.load[1] = -1
        self.element = element().ravel()
        x, y = np.divmod(np.arange(w * h), h)
        kernel = sparse.csr_array(np.maximum(0, radius - np.hypot(x - x[:, None], y - y[:, None])))
        self.blur = sparse.diags_array(1 / kernel.sum(1)) @ kernel
        self.shape = w, h

    def compliance(self, density: Any) -> Any:
        """Return the compliance: the displacement at the load times the load."""
        stiffness = SOFT + (self.blur @ density) ** POWER * (1 - SOFT)
        entries = (stiffness[:, None] * self.element).reshape(-1)
        K = cr.sparse.coo_array((entries, self.places))[np.ix_(self.free, self.free)]
        load = self.load[self.free]
        return load @ spsolve(K, load)

    def by_hand(self, density: Any) -> tuple[Any, Any]:
        """Return the compliance and its gradient, derived by hand."""
        blurred = self.blur @ density
        entries = (SOFT + blurred**POWER * (1 - SOFT))[:, None] * self.element
        K = sparse.coo_array((entries.ravel(), self.places)).tocsc()[self.free][:, self.free]
        u = np.zeros(len(self.load))
        u[self.free] = sparse.linalg.spsolve(K, self.load[self.free])
        element_energy = u[self.places[0].reshape(-1, 64)] * u[self.places[1].reshape(-1, 64)] @ self.element
        return self.load @ u, -(self.blur.T @ (POWER * blurred ** (POWER - 1) * (1 - SOFT) * element_energy))


def solve(w: int = 60, h: int = 20, radius: float = 2.4, steps: int = 160, share: float = 0.5) -> SimpleNamespace:
    beam = Beam(w, h, radius)
    gradient = cr.value_and_grad(beam.compliance)
    density, film, values = np.full(w * h, share), [], []
    weight = beam.blur.T @ np.ones(w * h)  # the weight of each element in the volume
    for step in range(steps + 1):
        value, slope = gradient(density)
        film.append(beam.blur @ density)
        values.append(float(value))
        low, high = 0.0, 1e9
        while high - low > 1e-6 * high:  # bisect the Lagrange multiplier of the volume constraint
            price = (low + high) / 2
            wanted = density * np.sqrt(-slope / (weight * price))
            new = np.clip(wanted, np.maximum(0, density - 0.2), np.minimum(1, density + 0.2))
            low, high = (price, high) if weight @ new > share * w * h else (low, price)
        density = new
        if step % 40 == 0 or step == steps:
            print(f"step {step:3}: compliance {value:8.2f}, share of material {np.mean(film[-1]):.4f}")
    return SimpleNamespace(beam=beam, density=density, film=film, values=values, slope=slope)


def draw(found: SimpleNamespace) -> Any:
    figure, axes = plt.subplots(3, 2, figsize=(10, 3.6), layout="constrained")
    last = len(found.film) - 1
    for axis, step in zip(axes.T.ravel(), (0, 3, 8, 15, 30, last), strict=False):
        half = found.film[min(step, last)].reshape(found.beam.shape).T
        axis.imshow(np.hstack([half[:, ::-1], half]), cmap=plt.rcParams["image.cmap"], vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[], title=f"step {min(step, last)}, compliance {found.values[min(step, last)]:.0f}")
    return figure


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute the gradient by different methods."""
    beam = Beam(60, 20, 2.4)
    density = np.random.default_rng(0).uniform(0.2, 1, 1200)

    def differences() -> Any:
        value = beam.compliance(density)
        return value, np.array([(beam.compliance(density + 1e-6 * unit) - value) / 1e-6 for unit in np.eye(1200)])

    gradient = cr.value_and_grad(beam.compliance)
    return {
        "chainrule": lambda: gradient(density)[1],
        "the adjoint by hand, SciPy": lambda: beam.by_hand(density)[1],
        "differences": lambda: differences()[1],
    }


if __name__ == "__main__":
    draw(solve()).savefig("topology.png", dpi=150)
