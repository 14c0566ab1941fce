"""A reaction–diffusion equation on a grid, solved by an implicit method with and without a sparse Jacobian.

The Jacobian of the right-hand side has six nonzeros per row. SciPy's finite differences fill a dense matrix; chainrule
detects the sparsity pattern.

    python examples/brusselator.py [size]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import chainrule as cr


def brusselator(size: int) -> tuple[Any, dict[str, Any]]:
    """Return the right-hand side and the initial fields on a periodic grid."""
    dx = 1 / size
    x = np.arange(size) * dx

    def laplacian(w: Any) -> Any:
        neighbours = np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1)
        return (neighbours - 4 * w) / dx**2

    def rates(t: Any, y: Any) -> Any:
        u, v = y["u"], y["v"]
        reaction = u**2 * v
        return {"u": 1 + reaction - 4.4 * u + 10 * laplacian(u), "v": 3.4 * u - reaction + 10 * laplacian(v)}

    bump = (x * (1 - x)) ** 1.5
    return rates, {"u": 22 * np.tile(bump, (size, 1)), "v": 27 * np.tile(bump, (size, 1)).T}


def by_differences(size: int, **options: Any) -> Any:
    """Solve with SciPy's finite differences: the Jacobian is dense unless ``jac_sparsity`` gives the pattern."""
    rates, start = brusselator(size)

    def flat(t: float, y: Any) -> Any:
        u, v = y.reshape(2, size, size)
        return np.concatenate([part.ravel() for part in rates(t, {"u": u, "v": v}).values()])

    first = np.concatenate([part.ravel() for part in start.values()])
    return solve_ivp(flat, (0, 1), first, method="BDF", **options)


def solve(size: int = 32) -> SimpleNamespace:
    rates, start = brusselator(size)
    jacobian = cr.jacobian(lambda y: rates(0.0, y), start, layout="csr", hstack=True)
    n = 2 * size**2
    print(f"{n} unknowns; the Jacobian has {jacobian.nnz} entries of {n**2}")
    path = cr.scipy.solve_ivp(rates, (0, 1), start, method="BDF")
    print(f"BDF with it: {path.t.size - 1} steps, {path.nfev} evaluations")
    return SimpleNamespace(size=size, jacobian=jacobian, path=path)


def draw(found: SimpleNamespace) -> Any:
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.9), layout="constrained", width_ratios=(3, 3, 4, 3))
    y, t = found.path.y, found.path.t
    for axis, name in zip(axes, y, strict=False):
        shown = axis.imshow(y[name][..., 0], origin="lower", cmap=plt.rcParams["image.cmap"])
        axis.set(title=f"{name} at the start", xticks=[], yticks=[])
        figure.colorbar(shown, ax=axis, orientation="horizontal", aspect=15)
        low, middle, high = (function(y[name], axis=(0, 1)) for function in (np.min, np.mean, np.max))
        (line,) = axes[2].semilogx(t[1:], middle[1:], label=f"mean of {name}")
        axes[2].fill_between(t[1:], low[1:], high[1:], color=line.get_color(), alpha=0.25, lw=0)
    axes[2].set(title="From least to greatest", xlabel="t", ylim=(0, 5))
    axes[2].legend(loc="upper right")
    axes[3].spy(found.jacobian, markersize=0.3, color="C0")
    axes[3].set(title="The Jacobian's entries", xticks=[], yticks=[])
    return figure


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute the final u on a 24 × 24 grid, small enough for a dense Jacobian."""
    rates, start = brusselator(24)
    pattern = cr.jacobian(lambda y: rates(0.0, y), start, layout="csr", hstack=True)
    return {
        "chainrule.scipy.solve_ivp": lambda: (
            cr.scipy.solve_ivp(rates, (0, 1), start, method="BDF").y["u"][..., -1].ravel()
        ),
        "SciPy, with the pattern": lambda: by_differences(24, jac_sparsity=pattern).y[:576, -1],
        "SciPy, without the pattern": lambda: by_differences(24).y[:576, -1],
    }


if __name__ == "__main__":
    draw(solve(int(sys.argv[1]) if len(sys.argv) > 1 else 32)).savefig("brusselator.png", dpi=150)
