"""Problems with structured Jacobians: partial differential equations, networks, cameras, power flow.

Each is written once, in NumPy style. ``xp`` is the library that computes it: NumPy here, JAX or PyTorch for comparisons. A
maker returns the function and the point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Problem(NamedTuple):
    f: Callable[[Any], Any]
    x: Array


# --- stencils ---------------------------------------------------------------------------------------------------------


def _brusselator_slope(n: int, xp: Any) -> Callable[[Any], Any]:
    def laplacian(w: Any) -> Any:
        return (xp.roll(w, 1, 0) + xp.roll(w, -1, 0) + xp.roll(w, 1, 1) + xp.roll(w, -1, 1) - 4.0 * w) * float(n * n)

    def slope(x: Any) -> Any:
        u, v = x[: n * n].reshape(n, n), x[n * n :].reshape(n, n)
        uuv = u * u * v
        du = 1.0 + uuv - 4.4 * u + 10.0 * laplacian(u)
        dv = 3.4 * u - uuv + 10.0 * laplacian(v)
        return xp.concatenate([du.ravel(), dv.ravel()])

    return slope


def _brusselator_start(n: int) -> Array:
    y, x = np.meshgrid(np.arange(n) / n, np.arange(n) / n, indexing="ij")
    u, v = 22 * (y * (1 - y)) ** 1.5, 27 * (x * (1 - x)) ** 1.5
    return np.concatenate([u.ravel(), v.ravel()])


def brusselator(n: int, xp: Any = np) -> Problem:
    """Return the reaction and diffusion of two substances on n × n points of a torus."""
    return Problem(_brusselator_slope(n, xp), _brusselator_start(n))


def euler_steps(n: int, steps: int, xp: Any = np) -> Problem:
    """Return steps of Euler's method for the Brusselator."""
    slope = _brusselator_slope(n, xp)

    def run(x: Any) -> Any:
        for _ in range(steps):
            x = x + 1e-4 * slope(x)
        return x

    return Problem(run, _brusselator_start(n))


def heat(n: int, xp: Any = np) -> Problem:
    """Return second differences of a rod whose ends are fixed at zero."""
    end = xp.zeros(1)

    def f(u: Any) -> Any:
        rod = xp.concatenate([end, u, end])
        return rod[:-2] - 2.0 * rod[1:-1] + rod[2:]

    return Problem(f, np.linspace(0.0, 1.0, n))


def differences(n: int, times: int, xp: Any = np) -> Problem:
    """Return repeated differences."""

    def f(x: Any) -> Any:
        for _ in range(times):
            x = xp.diff(x)
        return x

    return Problem(f, np.sin(np.arange(float(n))))


def burgers(n: int, xp: Any = np) -> Problem:
    """Return Burgers' equation on a circle: nonlinear advection, and a little diffusion."""
    dx, viscosity = 1.0 / n, 0.01

    def f(u: Any) -> Any:
        right, left = xp.roll(u, -1, 0), xp.roll(u, 1, 0)
        return -u * (right - left) / (2 * dx) + viscosity * (right - 2.0 * u + left) / dx**2

    return Problem(f, 1.5 + np.sin(2 * np.pi * np.arange(n) / n))


def bratu(n: int, xp: Any = np) -> Problem:
    """Return the residual of a nonlinear Poisson equation on n × n interior points of a square with zero boundary values."""

    def f(u: Any) -> Any:
        edged = xp.pad(u, 1)
        around = edged[:-2, 1:-1] + edged[2:, 1:-1] + edged[1:-1, :-2] + edged[1:-1, 2:]
        return (around - 4.0 * u) * float((n + 1) ** 2) + 5.0 * xp.exp(u)

    return Problem(f, np.random.default_rng(0).normal(size=(n, n)))


# --- networks and products --------------------------------------------------------------------------------------------


def conv_net(length: int, conv1d: Callable[..., Any], given: Callable[[Array], Any]) -> Problem:
    """Return three convolutions with rectifiers. ``given`` converts the weights to the library's arrays."""
    rng = np.random.default_rng(1)
    shapes = (8, 1, 5), (4, 8, 3), (2, 4, 3)
    weights = [(given(rng.normal(size=shape)), given(0.1 * rng.normal(size=(shape[0], 1)))) for shape in shapes]

    def f(x: Any) -> Any:
        h = x[None, None, :]
        for weight, bias in weights:
            h = conv1d(h, weight) + bias
            h = h * (h > 0)
        return h[0]

    return Problem(f, rng.normal(size=length))


def mlp(
    rows: int = 32, width: int = 64, layers: int = 3, xp: Any = np, given: Callable[[Array], Any] = np.asarray
) -> Problem:
    """Return a network's outputs as a function of its inputs: a block for each example."""
    rng = np.random.default_rng(2)
    weights = [given(rng.normal(size=(width, width)) / width**0.5) for _ in range(layers)]

    def f(h: Any) -> Any:
        for weight in weights:
            h = xp.tanh(h @ weight)
        return h

    return Problem(f, rng.normal(size=(rows, width)))


def exp_of_product(
    rows: int = 32, width: int = 64, xp: Any = np, given: Callable[[Array], Any] = np.asarray
) -> Problem:
    rng = np.random.default_rng(3)
    weight = given(rng.normal(size=(width, width)) / width**0.5)
    return Problem(lambda x: xp.exp(x @ weight), rng.normal(size=(rows, width)))


def times(n: int, given: Callable[[Array], Any] = np.asarray) -> Problem:
    a, b = np.random.default_rng(4).normal(size=(2, n))
    factor = given(b)
    return Problem(lambda x: x * factor, a)


def outer(n: int, given: Callable[[Array], Any] = np.asarray) -> Problem:
    a, b = np.random.default_rng(5).normal(size=(2, n))
    factor = given(b)
    return Problem(lambda x: x[:, None] * factor, a)


def arrowhead(n: int, xp: Any = np) -> Problem:
    """Return a function whose Jacobian has one full row, one full column, and a diagonal."""

    def f(x: Any) -> Any:
        return xp.concatenate([(x * x).sum()[None], x[1:] * x[0]])

    return Problem(f, np.random.default_rng(6).normal(size=n))


def matrix_vector(m: int, n: int, given: Callable[[Array], Any] = np.asarray) -> Problem:
    rng = np.random.default_rng(7)
    matrix = given(rng.normal(size=(m, n)))
    return Problem(lambda x: matrix @ x, rng.normal(size=n))


def sine_of_product(m: int, n: int, xp: Any = np, given: Callable[[Array], Any] = np.asarray) -> Problem:
    f, x = matrix_vector(m, n, given)
    return Problem(lambda x: xp.sin(f(x)), x)


# --- scalar functions, for Hessians -----------------------------------------------------------------------------------


def rosenbrock(n: int) -> Problem:
    def f(x: Any) -> Any:
        return ((1.0 - x[:-1]) ** 2 + 100.0 * (x[1:] - x[:-1] ** 2) ** 2).sum()

    return Problem(f, np.random.default_rng(8).normal(size=n))


# --- bundle adjustment ------------------------------------------------------------------------------------------------


def bundle_adjustment(
    cameras: int, points: int, observations: int, xp: Any = np, given: Callable[[Array], Any] = np.asarray
) -> Problem:
    """Return weighted reprojection errors (as in ADBench): predicted minus observed positions of points in images.

    The unknowns are the cameras (three numbers of rotation, the centre, the focal length, the principal point, two of
    distortion), the points and a weight for each observation.
    """
    rng = np.random.default_rng(9)
    camera = rng.integers(cameras, size=observations)
    point = rng.integers(points, size=observations)
    camera[:cameras], point[:points] = np.arange(cameras), np.arange(points)[:observations]
    seen = given(rng.normal(size=(observations, 2)))
    start = np.concatenate([
        np.concatenate([
            0.1 * rng.normal(size=(cameras, 3)),  # rotations
            rng.normal(size=(cameras, 3)) - (0, 0, 8),  # centres
            1 + 0.1 * rng.normal(size=(cameras, 5)) * (1, 1, 1, 0.1, 0.1) - (0, 1, 1, 1, 1),
        ], axis=1).ravel(),
        rng.normal(size=3 * points),
        1 + 0.1 * rng.normal(size=observations),
    ])  # fmt: skip
    which_camera, which_point = given(camera), given(point)

    def rotated(r: Any, x: Any) -> Any:
        """Rotate x around the axis r by the angle |r| with Rodrigues' formula."""
        angle = xp.sqrt((r * r).sum(1))[:, None]
        cosine, axis = xp.cos(angle), r / angle
        a0, a1, a2 = axis[:, 0], axis[:, 1], axis[:, 2]
        x0, x1, x2 = x[:, 0], x[:, 1], x[:, 2]
        crossed = xp.stack([a1 * x2 - a2 * x1, a2 * x0 - a0 * x2, a0 * x1 - a1 * x0], 1)
        along = (axis * x).sum(1)[:, None]
        return x * cosine + crossed * xp.sin(angle) + axis * along * (1.0 - cosine)

    def residuals(x: Any) -> Any:
        ends = 11 * cameras, 11 * cameras + 3 * points
        c = x[: ends[0]].reshape(cameras, 11)[which_camera]
        p = x[ends[0] : ends[1]].reshape(points, 3)[which_point]
        w = x[ends[1] :]
        local = rotated(c[:, :3], p - c[:, 3:6])
        plane = local[:, :2] / local[:, 2:]
        square = (plane * plane).sum(1)[:, None]
        bent = plane * (1.0 + c[:, 9:10] * square + c[:, 10:11] * square * square)
        error = (bent * c[:, 6:7] + c[:, 7:9] - seen) * w[:, None]
        return xp.concatenate([error.ravel(), 1.0 - w * w])

    return Problem(residuals, start)


# --- optimal power flow -----------------------------------------------------------------------------------------------


class Grid(NamedTuple):
    """A power network in MATPOWER's columns, per unit."""

    demand: Array  # (buses, 2): active, reactive
    generators: Array  # (generators,): their buses
    branches: Array  # (branches, 5): from, to, r, x, b
    taps: Array  # (branches,)
    shunts: dict[int, float]  # by bus: susceptance


def _five_buses() -> Grid:
    branches = [
        (0, 1, 0.00281, 0.0281, 0.00712), (0, 3, 0.00304, 0.0304, 0.00658), (0, 4, 0.00064, 0.0064, 0.03126),
        (1, 2, 0.00108, 0.0108, 0.01852), (2, 3, 0.00297, 0.0297, 0.00674), (3, 4, 0.00297, 0.0297, 0.00674),
    ]  # fmt: skip
    demand = np.array([(0, 0), (300, 98.61), (300, 98.61), (400, 131.47), (0, 0)]) / 100
    return Grid(demand, np.array([0, 0, 2, 3, 4]), np.array(branches), np.ones(6), {})


def _fourteen_buses() -> Grid:
    branches = [
        (1, 2, 0.01938, 0.05917, 0.0528), (1, 5, 0.05403, 0.22304, 0.0492), (2, 3, 0.04699, 0.19797, 0.0438),
        (2, 4, 0.05811, 0.17632, 0.034), (2, 5, 0.05695, 0.17388, 0.0346), (3, 4, 0.06701, 0.17103, 0.0128),
        (4, 5, 0.01335, 0.04211, 0), (4, 7, 0, 0.20912, 0), (4, 9, 0, 0.55618, 0), (5, 6, 0, 0.25202, 0),
        (6, 11, 0.09498, 0.1989, 0), (6, 12, 0.12291, 0.25581, 0), (6, 13, 0.06615, 0.13027, 0),
        (7, 8, 0, 0.17615, 0), (7, 9, 0, 0.11001, 0), (9, 10, 0.03181, 0.0845, 0), (9, 14, 0.12711, 0.27038, 0),
        (10, 11, 0.08205, 0.19207, 0), (12, 13, 0.22092, 0.19988, 0), (13, 14, 0.17093, 0.34802, 0),
    ]  # fmt: skip
    active = [0, 21.7, 94.2, 47.8, 7.6, 11.2, 0, 0, 29.5, 9, 3.5, 6.1, 13.5, 14.9]
    reactive = [0, 12.7, 19, -3.9, 1.6, 7.5, 0, 0, 16.6, 5.8, 1.8, 1.6, 5.8, 5]
    taps = np.ones(20)
    taps[[7, 8, 9]] = 0.978, 0.969, 0.932
    table = np.array(branches, dtype=float)
    table[:, :2] -= 1
    return Grid(np.array([active, reactive]).T / 100, np.array([0, 1, 2, 5, 7]), table, taps, {8: 0.19})


GRIDS = {5: _five_buses, 14: _fourteen_buses}


def power_flow(buses: int, xp: Any = np, given: Callable[[Array], Any] = np.asarray) -> Problem:
    """Return the constraints of optimal power flow (as in rosetta-opf): Ohm's and Kirchhoff's laws, and limits.

    The unknowns are the angles and magnitudes of voltages, the production of generators, and the flows into each branch at
    its two ends.
    """
    grid = GRIDS[buses]()
    count, machines = len(grid.branches), len(grid.generators)
    start_bus, end_bus = grid.branches[:, :2].astype(int).T
    r, reactance, charging = grid.branches[:, 2:].T
    admittance = 1 / (r + 1j * reactance)
    g, b, tap = given(admittance.real.copy()), given(admittance.imag.copy()), given(grid.taps)
    half = given(charging / 2)
    demand, shunted = given(grid.demand), np.array(list(grid.shunts), dtype=int)
    shunt, at_shunts = given(np.array(list(grid.shunts.values()))), given(shunted)
    fr, to = given(start_bus), given(end_bus)

    def sums(places: Array) -> Callable[[Any], Any]:
        """Return a function that sums by bus: buses with fewer terms than others are padded with zeros."""
        lists = [np.flatnonzero(places == bus) for bus in range(buses)]
        table = np.full((buses, max(map(len, lists))), len(places))
        for row, found in zip(table, lists):
            row[: len(found)] = found
        which, zero = given(table), xp.zeros(1)
        return lambda flows: xp.concatenate([flows, zero])[which].sum(1)

    of_generators, of_starts, of_ends = sums(grid.generators), sums(start_bus), sums(end_bus)
    of_shunts = sums(shunted)

    def residuals(x: Any) -> Any:
        angle, magnitude = x[:buses], x[buses : 2 * buses]
        made = x[2 * buses : 2 * buses + 2 * machines].reshape(2, machines)
        p_fr, p_to, q_fr, q_to = (x[2 * buses + 2 * machines + k * count :][:count] for k in range(4))
        v_fr, v_to = magnitude[fr], magnitude[to]
        delta = angle[fr] - angle[to]
        across = v_fr * v_to / tap
        cosine, sine = across * xp.cos(delta), across * xp.sin(delta)
        flow_p_fr = g / tap**2 * v_fr**2 - g * cosine - b * sine - p_fr
        flow_p_to = g * v_to**2 - g * cosine + b * sine - p_to
        flow_q_fr = -(b + half) / tap**2 * v_fr**2 + b * cosine - g * sine - q_fr
        flow_q_to = -(b + half) * v_to**2 + b * cosine + g * sine - q_to
        balance_p = of_generators(made[0]) - demand[:, 0] - of_starts(p_fr) - of_ends(p_to)
        held = demand[:, 1] - of_shunts(shunt * magnitude[at_shunts] ** 2)
        balance_q = of_generators(made[1]) - held - of_starts(q_fr) - of_ends(q_to)
        limits = [p_fr**2 + q_fr**2, p_to**2 + q_to**2, delta, angle[:1]]
        return xp.concatenate([flow_p_fr, flow_p_to, flow_q_fr, flow_q_to, balance_p, balance_q, *limits])

    rng = np.random.default_rng(10)
    voltages = np.concatenate([0.1 * rng.normal(size=buses), 1 + 0.05 * rng.normal(size=buses)])
    return Problem(residuals, np.concatenate([voltages, rng.normal(size=2 * machines + 4 * count)]))
