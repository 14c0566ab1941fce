"""Hand-written NumPy code: derivatives derived by hand, with a known pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from jacobian_problems import Entries, Run, problem

VERSION = f"NumPy {np.__version__}"


def weights_of(seed: int, width: int, layers: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(width, width)) / width**0.5 for _ in range(layers)]


def brusselator_values(n: int) -> Run:
    """Return the varying values in an array of six per row; the constant ones are set in advance."""
    x = problem("brusselator", (n,)).x
    size, strength = n * n, 10.0 * n * n
    data = np.full((2, size, 6), strength)

    def run() -> Any:
        u, v = x[:size], x[size:]
        twice = 2.0 * u * v
        square = u * u
        values = data.copy()
        values[0, :, 0] = twice - (4.4 + 4.0 * strength)
        values[0, :, 5] = square
        values[1, :, 0] = -square - 4.0 * strength
        values[1, :, 5] = 3.4 - twice
        return [Entries(values)]

    return run


def exp_blocks(rows: int, width: int) -> Run:
    x, (weight,) = problem("exp", (rows, width)).x, weights_of(3, width, 1)
    return lambda: [Entries(np.exp(x @ weight)[:, :, None] * weight.T)]


def exp_dense(rows: int, width: int) -> Run:
    x, (weight,) = problem("exp", (rows, width)).x, weights_of(3, width, 1)

    def run() -> Any:
        J = np.zeros((rows, width, rows, width))
        np.multiply(np.exp(x @ weight)[:, :, None], weight.T, out=np.einsum("iaib->iab", J))
        return [Entries(J)]

    return run


def mlp_blocks(rows: int, width: int, layers: int) -> Run:
    x, weights = problem("mlp", (rows, width, layers)).x, weights_of(2, width, layers)

    def run() -> Any:
        h, J = x, None
        for weight in weights:
            h = np.tanh(h @ weight)
            J = weight.T if J is None else weight.T @ J
            J = J * (1.0 - h * h)[:, :, None]
        return [Entries(J)]

    return run


def times_dense(n: int) -> Run:
    b = np.random.default_rng(4).normal(size=(2, n))[1]

    def run() -> Any:
        J = np.zeros((n, n))
        J.reshape(-1)[:: n + 1] = b
        return [Entries(J)]

    return run


def outer_dense(n: int) -> Run:
    b = np.random.default_rng(5).normal(size=(2, n))[1]

    def run() -> Any:
        J = np.zeros((n, n, n))
        np.einsum("iji->ij", J)[...] = b
        return [Entries(J)]

    return run


def rosenbrock_dense(n: int) -> Run:
    x = problem("rosenbrock", (n,)).x

    def run() -> Any:
        H = np.zeros((n, n))
        flat = H.reshape(-1)
        off = -400.0 * x[:-1]
        flat[1 :: n + 1] = off
        flat[n :: n + 1] = off
        diagonal = flat[:: n + 1]
        diagonal[:-1] = 2.0 + 1200.0 * x[:-1] ** 2 - 400.0 * x[1:]
        diagonal[1:] += 200.0
        return [Entries(H)]

    return run


WORKS = {
    "brusselator/values": brusselator_values,
    "exp/blocks": exp_blocks,
    "exp/dense": exp_dense,
    "mlp/blocks": mlp_blocks,
    "times/dense": times_dense,
    "outer/dense": outer_dense,
    "rosenbrock/dense": rosenbrock_dense,
}
