"""A chemical reaction that spreads on a grid, solved by an implicit method with and without a Jacobian.

The Jacobian of the right-hand side has six entries in a row. SciPy's differences fill a dense one, chainrule finds the entries.

    python examples/brusselator.py [size]
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import chainrule as cr

SLOW = 24  # the largest grid on which SciPy is left to compute the Jacobian by differences


def brusselator(size: int) -> tuple[Any, dict[str, Any]]:
    """The right-hand side, and the fields to start from, on a periodic grid."""
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


def timed(call: Any) -> tuple[Any, float]:
    began = time.perf_counter()
    return call(), time.perf_counter() - began


def main(size: int) -> None:
    rates, start = brusselator(size)
    jacobian, seconds = timed(lambda: cr.jacobian(lambda y: rates(0.0, y), start, layout="csr", hstack=True))
    n = 2 * size**2
    print(f"{n} unknowns; the Jacobian has {jacobian.nnz} entries of {n**2}: {1e3 * seconds:.1f} ms")
    path, seconds = timed(lambda: cr.scipy.solve_ivp(rates, (0, 1), start, method="BDF"))
    print(f"BDF with it: {seconds:.2f} s, {path.nfev} evaluations")
    if size > SLOW:
        return

    def flat(t: float, y: Any) -> Any:
        u, v = y.reshape(2, size, size)
        return np.concatenate([part.ravel() for part in rates(t, {"u": u, "v": v}).values()])

    first = np.concatenate([start["u"].ravel(), start["v"].ravel()])
    slow, seconds = timed(lambda: solve_ivp(flat, (0, 1), first, method="BDF"))
    apart = np.max(np.abs(slow.y[: n // 2, -1].reshape(size, size) - path.y["u"][..., -1]))
    print(f"BDF with differences in a dense one: {seconds:.2f} s, {slow.nfev} evaluations, results {apart:.0e} apart")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
