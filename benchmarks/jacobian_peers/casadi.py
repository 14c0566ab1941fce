"""CasADi: graphs of scalars (SX) or matrices (MX). A cold call builds the Jacobian's graph and function, and calls it.

The programs are rewritten, because CasADi's arrays have two axes in column-major order. The time to build the program's
own graph is excluded; warm calls read and write NumPy's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from jacobian_problems import Entries, Run, problem, works

VERSION = f"casadi {ca.__version__}"


def _slope(n: int) -> Callable[[Any], Any]:
    places = np.arange(n * n).reshape(n, n)
    shifts = [np.roll(places, by, axis).ravel().tolist() for axis in (0, 1) for by in (1, -1)]

    def laplacian(w: Any) -> Any:
        return (w[shifts[0]] + w[shifts[1]] + w[shifts[2]] + w[shifts[3]] - 4 * w) * float(n * n)

    def slope(x: Any) -> Any:
        u, v = x[: n * n], x[n * n :]
        uuv = u * u * v
        return ca.vertcat(1 + uuv - 4.4 * u + 10 * laplacian(u), 3.4 * u - uuv + 10 * laplacian(v))

    return slope


def euler(x: Any, n: int, steps: int) -> Any:
    slope = _slope(n)
    for _ in range(steps):
        x = x + 1e-4 * slope(x)
    return x


def mlp(x: Any, rows: int, width: int, layers: int) -> Any:
    weights = weights_of(2, width, layers)
    h = ca.reshape(x, width, rows)  # an example in each column
    for weight in weights:
        h = ca.tanh(weight.T @ h)
    return ca.vec(h)


def weights_of(seed: int, width: int, layers: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(width, width)) / width**0.5 for _ in range(layers)]


def exp(x: Any, rows: int, width: int) -> Any:
    (weight,) = weights_of(3, width, 1)
    return ca.vec(ca.exp(weight.T @ ca.reshape(x, width, rows)))


def times(x: Any, n: int) -> Any:
    return x * np.random.default_rng(4).normal(size=(2, n))[1]


def outer(x: Any, n: int) -> Any:
    return ca.vec(np.random.default_rng(5).normal(size=(2, n))[1][:, None] @ x.T)


def matrix(m: int, n: int) -> Any:
    return np.random.default_rng(7).normal(size=(m, n))


def rosenbrock(x: Any, n: int) -> Any:
    return ca.sum1((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2)


def cameras(x: Any, cameras: int, points: int, observations: int) -> Any:
    rng = np.random.default_rng(9)
    camera, point = rng.integers(cameras, size=observations), rng.integers(points, size=observations)
    camera[:cameras], point[:points] = np.arange(cameras), np.arange(points)[:observations]
    seen = rng.normal(size=(observations, 2)).T
    ends = 11 * cameras, 11 * cameras + 3 * points
    c = ca.reshape(x[: ends[0]], 11, cameras)[:, camera.tolist()]
    p = ca.reshape(x[ends[0] : ends[1]], 3, points)[:, point.tolist()]
    w = x[ends[1] :]

    def along(a: Any, b: Any) -> Any:
        return ca.sum1(a * b)

    def each(row: Any, count: int) -> Any:
        return ca.repmat(row, count, 1)

    r, local = c[:3, :], p - c[3:6, :]
    angle = ca.sqrt(along(r, r))
    axis = r / each(angle, 3)
    crossed = ca.vertcat(
        axis[1, :] * local[2, :] - axis[2, :] * local[1, :],
        axis[2, :] * local[0, :] - axis[0, :] * local[2, :],
        axis[0, :] * local[1, :] - axis[1, :] * local[0, :],
    )
    turned = local * each(ca.cos(angle), 3) + crossed * each(ca.sin(angle), 3)
    turned = turned + axis * each(along(axis, local) * (1 - ca.cos(angle)), 3)
    plane = turned[:2, :] / each(turned[2, :], 2)
    square = along(plane, plane)
    bent = plane * each(1 + c[9, :] * square + c[10, :] * square * square, 2)
    error = (bent * each(c[6, :], 2) + c[7:9, :] - seen) * each(w.T, 2)
    return ca.vertcat(ca.vec(error), 1 - w * w)


EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "brusselator": lambda x, n: _slope(n)(x),
    "euler": euler,
    "mlp": mlp,
    "exp": exp,
    "times": times,
    "outer": outer,
    "arrowhead": lambda x, n: ca.vertcat(ca.sumsqr(x), x[1:] * x[0]),
    "linear": lambda x, m, n: matrix(m, n) @ x,
    "sine": lambda x, m, n: ca.sin(matrix(m, n) @ x),
    "rosenbrock": rosenbrock,
    "cameras": cameras,
}


def graph(kind: str, sizes: tuple[int, ...], symbols: Any) -> tuple[Callable[[], Any], Any]:
    """Return a function that builds the Jacobian's function, and the point."""
    start = problem(kind, sizes).x.ravel()
    x = symbols.sym("x", start.size)
    y = EXPRESSIONS[kind](x, *sizes)

    def make() -> Any:
        J = ca.hessian(y, x)[0] if kind == "rosenbrock" else ca.jacobian(y, x)
        return ca.Function("J", [x], [J])

    return make, start


def cold(symbols: Any) -> Callable[[str, tuple[int, ...]], Run]:
    def make(kind: str, sizes: tuple[int, ...]) -> Run:
        compute, x = graph(kind, sizes, symbols)
        return lambda: [Entries(compute()(x).nonzeros())]

    return make


def warm(symbols: Any) -> Callable[[str, tuple[int, ...]], Run]:
    def make(kind: str, sizes: tuple[int, ...]) -> Run:
        compute, x = graph(kind, sizes, symbols)
        function = compute()
        data = np.empty(function.nnz_out(0))
        buffers, call = function.buffer()
        buffers.set_arg(0, memoryview(x))
        buffers.set_res(0, memoryview(data))

        def run() -> Any:
            call()
            return [Entries(data)]

        run.kept = function, buffers, x  # type: ignore[attr-defined]
        return run

    return make


WORKS = works({"cold": cold(ca.MX), "warm MX": warm(ca.MX), "warm SX": warm(ca.SX)})
