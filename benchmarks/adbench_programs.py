"""The programs of `adbench.py`, written once for all libraries with NumPy's functions; the random data are seeded.

The objectives GMM, BA, LSTM and HAND are those of ADBench (Šrajer, Kukelova and Fitzgibbon, "A benchmark of selected
algorithmic differentiation tools on some problems in computer vision and machine learning", 2018). The other programs are
loops of small operations, and a Gaussian process. ``xp`` is the library, ``given`` converts a NumPy array to its array
type, and ``loop(step, carry, xs)`` is its equivalent of ``for x in xs: carry, y = step(carry, x)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import calls
import inputs
from jacobian_problems import Entries
from works import Makers, Run

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Tools:
    xp: Any = np
    given: Callable[[Any], Any] = np.asarray
    loop: Callable[..., Any] = lambda step, carry, xs: python_loop(np, step, carry, xs)


@dataclass(frozen=True)
class Program:
    """A function of arrays, to be differentiated: the gradient of a scalar, or the Jacobian of an array.

    ``row`` and ``gather`` describe a Jacobian with independent rows: ``gather(*parameters)`` returns the inputs of each
    row, and ``row`` computes one row.
    """

    f: Callable[..., Any]
    parameters: Arrays
    jacobian: bool = False
    row: Callable[..., Any] | None = None
    gather: Callable[..., Arrays] | None = None


def python_loop(xp: Any, step: Callable[..., Any], carry: Any, xs: Any) -> tuple[Any, Any]:
    """Compute the same as `scan` by a Python loop."""
    ys = []
    several = isinstance(xs, tuple)
    for i in range(len(xs[0] if several else xs)):
        carry, y = step(carry, tuple([x[i] for x in xs]) if several else xs[i])
        ys.append(y)
    return carry, xp.stack(ys)


# --- ADBench's objectives ---------------------------------------------------------------------------------------------


def gmm(tools: Tools, d: int, k: int, n: int) -> Program:
    """Return the log posterior of a mixture of k Gaussians for n points of d dimensions, with a Wishart prior.

    The precision is LᵀL: a row of ``factors`` contains the logarithms of L's diagonal, then the columns below it.
    """
    xp, rng = tools.xp, np.random.default_rng(1)
    parameters = rng.normal(size=k), rng.uniform(size=(k, d)), 0.3 * rng.normal(size=(k, d * (d + 1) // 2))
    x = tools.given(rng.normal(size=(n, d)))
    where = np.zeros((d, d), int)  # the index of each element of L below the diagonal; 0 is a zero
    columns, rows = np.triu_indices(d, 1)
    where[rows, columns] = 1 + np.arange(len(rows))
    where, zero = tools.given(where), tools.given(np.zeros((k, 1)))

    gamma, m = 1.0, 0.0
    freedom = d + m + 1
    multigamma = d * (d - 1) / 4 * math.log(math.pi) + sum(math.lgamma((freedom - j) / 2) for j in range(d))
    normaliser = k * (freedom * d * math.log(gamma / math.sqrt(2)) - multigamma)
    constant = -0.5 * n * d * math.log(2 * math.pi) - normaliser

    def log_sum_exp(z: Any) -> Any:
        largest = xp.amax(z, -1)
        return largest + xp.log(xp.sum(xp.exp(z - largest[..., None]), -1))

    def log_posterior(weights: Any, means: Any, factors: Any) -> Any:
        diagonal = xp.exp(factors[:, :d])
        log_determinant = xp.sum(factors[:, :d], 1)
        lower = xp.concatenate([zero, factors[:, d:]], 1)[:, where]
        centred = x[:, None] - means
        scaled = diagonal * centred + xp.einsum("kij,nkj->nki", lower, centred)
        terms = weights + log_determinant - 0.5 * xp.sum(scaled**2, 2)
        squares = xp.sum(diagonal**2) + xp.sum(factors[:, d:] ** 2)
        prior = 0.5 * gamma**2 * squares - m * xp.sum(log_determinant)
        return constant + xp.sum(log_sum_exp(terms)) - n * log_sum_exp(weights) + prior

    return Program(log_posterior, parameters)


def gmm_loops(tools: Tools, d: int, k: int, n: int) -> Program:
    """Return the likelihood of the same mixture, computed with scalars."""
    xp, given = tools.xp, gmm(tools, d, k, n)
    x = np.random.default_rng(2).normal(size=(n, d)).tolist()

    def log_likelihood(weights: Any, means: Any, factors: Any) -> Any:
        total = -n * xp.log(xp.sum(xp.exp(weights)))
        for point in x:
            density = 0.0
            for c in range(k):
                centred = [point[j] - means[c, j] for j in range(d)]
                term, below = weights[c], d
                scaled = [xp.exp(factors[c, j]) * centred[j] for j in range(d)]
                for column in range(d):
                    term = term + factors[c, column]
                    for row in range(column + 1, d):
                        scaled[row] = scaled[row] + factors[c, below] * centred[column]
                        below += 1
                for z in scaled:
                    term = term - 0.5 * z * z
                density = density + xp.exp(term)
            total = total + xp.log(density)
        return total

    return Program(log_likelihood, given.parameters)


def ba(tools: Tools, cameras: int, points: int, observations: int) -> Program:
    """Return weighted reprojection errors: predicted minus observed positions of points in images."""
    xp, given, rng = tools.xp, tools.given, np.random.default_rng(3)
    parameters = (
        np.concatenate([
            0.1 * rng.normal(size=(cameras, 3)),  # rotation
            rng.normal(size=(cameras, 3)) - (0, 0, 8),  # centre
            1 + 0.1 * rng.normal(size=(cameras, 1)),  # focal length
            0.1 * rng.normal(size=(cameras, 2)),  # principal point
            0.01 * rng.normal(size=(cameras, 2)),  # radial distortion
        ], axis=1),
        rng.normal(size=(points, 3)),
        1 + 0.1 * rng.normal(size=observations),
    )  # fmt: skip
    camera, point = (given(rng.integers(count, size=observations)) for count in (cameras, points))
    seen = given(rng.normal(size=(observations, 2)))

    def rotated(r: Any, x: Any) -> Any:
        angle = xp.sqrt(xp.sum(r * r, -1))[..., None]
        axis, cosine = r / angle, xp.cos(angle)
        a0, a1, a2 = axis[..., 0], axis[..., 1], axis[..., 2]
        x0, x1, x2 = x[..., 0], x[..., 1], x[..., 2]
        crossed = xp.stack([a1 * x2 - a2 * x1, a2 * x0 - a0 * x2, a0 * x1 - a1 * x0], -1)
        return x * cosine + crossed * xp.sin(angle) + axis * (xp.sum(axis * x, -1)[..., None] * (1.0 - cosine))

    def row(z: Any, seen: Any) -> Any:
        """Return the residual of one or many observations: 11 camera parameters, three of the point, the weight."""
        local = rotated(z[..., :3], z[..., 11:14] - z[..., 3:6])
        plane = local[..., :2] / local[..., 2:]
        square = xp.sum(plane * plane, -1)[..., None]
        distorted = plane * (1.0 + z[..., 9:10] * square + z[..., 10:11] * square * square)
        return z[..., 14:] * (distorted * z[..., 6:7] + z[..., 7:9] - seen)

    def gather(c: Any, p: Any, w: Any) -> Arrays:
        return xp.concatenate([c[camera], p[point], w[:, None]], 1), seen

    def residuals(c: Any, p: Any, w: Any) -> Any:
        return xp.concatenate([row(*gather(c, p, w)).reshape(-1), 1.0 - w**2])

    return Program(residuals, parameters, True, row, gather)


def lstm(tools: Tools, layers: int, characters: int, width: int = 14) -> Program:
    """Return the loss of a network that predicts a text by characters, with elementwise weights."""
    xp, rng = tools.xp, np.random.default_rng(4)
    parameters = 0.5 * rng.normal(size=(2 * layers, 4 * width)), 0.5 * rng.normal(size=(3, width))
    state = tuple([tools.given(0.5 * rng.normal(size=(layers, width))) for _ in range(2)])
    text = tools.given(rng.integers(2, size=(characters, width)).astype(float))

    def sigmoid(z: Any) -> Any:
        return 1.0 / (1.0 + xp.exp(-z))

    def loss(main: Any, extra: Any) -> Any:
        def step(state: Arrays, now_and_next: Arrays) -> tuple[Arrays, Any]:
            hidden, cell = state
            x, target = now_and_next
            x, hiddens, cells = x * extra[0], [], []
            for i in range(layers):
                gates = xp.concatenate([x, hidden[i], x, hidden[i]]) * main[2 * i] + main[2 * i + 1]
                forget, enter, leave = (sigmoid(gates[j * width : (j + 1) * width]) for j in range(3))
                cells.append(cell[i] * forget + enter * xp.tanh(gates[3 * width :]))
                x = leave * xp.tanh(cells[i])
                hiddens.append(x)
            predicted = x * extra[1] + extra[2]
            likely = xp.sum(target * (predicted - xp.log(2.0 + xp.sum(xp.exp(predicted)))))
            return (xp.stack(hiddens), xp.stack(cells)), likely

        return -xp.sum(tools.loop(step, state, (text[:-1], text[1:]))[1]) / ((characters - 1) * width)

    return Program(loss, parameters)


BONES = 22


def hand(tools: Tools, vertices: int, points: int) -> Program:
    """Return the distances between the vertices of a hand model (22 bones, 26 pose parameters) and scanned points."""
    xp, given, rng = tools.xp, tools.given, np.random.default_rng(5)
    # the pose: rotation and translation of the hand, and four angles for the three joints of each finger
    angles = np.full((BONES, 3), 26)  # 26 is a zero
    parents = [-1, 0]
    for finger in range(5):
        first, pose = 2 + 4 * finger, 6 + 4 * finger
        angles[first, :2], angles[first + 1, 0], angles[first + 2, 0] = (pose, pose + 1), pose + 2, pose + 3
        parents += [1, first, first + 1, first + 2]
    relative, absolute = np.tile(np.eye(4), (BONES, 1, 1)), []
    relative[:, :3, 3] = rng.normal(size=(BONES, 3))
    for i, parent in enumerate(parents):
        absolute.append(relative[i] if parent < 0 else absolute[parent] @ relative[i])
    weights = rng.uniform(size=(BONES, 1, vertices)) ** 8
    base = np.concatenate([rng.normal(size=(3, vertices)), np.ones((1, vertices))])
    which, relative, inverse = given(angles), given(relative), given(np.linalg.inv(np.stack(absolute)))
    weights, base = given(weights / weights.sum(0)), given(base)
    scan, vertex = given(rng.normal(size=(points, 3))), given(rng.integers(vertices, size=points))
    none = given(np.zeros(1))

    def turn(sine: Any, cosine: Any, axis: int) -> Any:
        """Return rotation matrices (bones, 4, 4) around an axis."""
        zero, one = xp.zeros_like(sine), xp.ones_like(sine)
        entries = [[one if i == j else zero for j in range(4)] for i in range(4)]
        i, j = [k for k in range(3) if k != axis]
        entries[i][i], entries[i][j], entries[j][i], entries[j][j] = cosine, -sine, sine, cosine
        return xp.stack([entry for row in entries for entry in row], -1).reshape(BONES, 4, 4)

    def turned(r: Any, x: Any) -> Any:
        """Rotate x by Rodrigues' formula."""
        angle = xp.sqrt(xp.sum(r * r))
        a = r / angle
        zero = xp.zeros_like(angle)
        cross = xp.stack([zero, -a[2], a[1], a[2], zero, -a[0], -a[1], a[0], zero]).reshape(3, 3)
        outer = a[:, None] * a
        identity = xp.cos(angle) * given(np.eye(3))
        return (identity + xp.sin(angle) * cross + (1.0 - xp.cos(angle)) * outer) @ x

    def distances(theta: Any) -> Any:
        pose = xp.concatenate([theta, none])[which]
        s, c = xp.sin(pose), xp.cos(pose)
        x, y, z = (turn(s[:, k], c[:, k], axis) for k, axis in ((0, 0), (2, 1), (1, 2)))
        local = relative @ (z @ y @ x)
        posed: list[Any] = []
        for i, parent in enumerate(parents):
            posed.append(local[i] if parent < 0 else posed[parent] @ local[i])
        moved = xp.sum((xp.stack(posed) @ inverse @ base) * weights, 0)[:3]
        return scan - (turned(theta[:3], moved).T + theta[3:6])[vertex]

    return Program(distances, (0.3 * rng.normal(size=26),), True)


# --- loops of small operations ----------------------------------------------------------------------------------------


def kalman(tools: Tools, states: int, steps: int) -> Program:
    """Return the negative log likelihood of observations by the Kalman filter in its textbook form."""
    xp, rng = tools.xp, np.random.default_rng(6)
    transition = 0.9 * np.eye(states) + 0.1 * rng.normal(size=(states, states)) / states
    parameters = transition, np.array([-1.0, -0.5])  # the second array contains the log variances of the noise
    observed = tools.given(rng.normal(size=(steps, states)))
    sight, identity = tools.given(np.eye(states) + 0.1 * rng.normal(size=(states, states))), tools.given(np.eye(states))
    start = tools.given(np.zeros(states)), identity

    def loss(transition: Any, logs: Any) -> Any:
        moved, seen = xp.exp(logs[0]) * identity, xp.exp(logs[1]) * identity

        def step(state: Arrays, y: Any) -> tuple[Arrays, Any]:
            x, P = state
            x, P = transition @ x, transition @ P @ transition.T + moved
            S = sight @ P @ sight.T + seen
            off = y - sight @ x
            gain = xp.linalg.solve(S, sight @ P).T
            cost = 0.5 * (xp.linalg.slogdet(S)[1] + off @ xp.linalg.solve(S, off))
            return (x + gain @ off, P - gain @ sight @ P), cost

        return xp.sum(tools.loop(step, start, observed)[1])

    return Program(loss, parameters)


def robertson(tools: Tools, steps: int) -> Program:
    """Solve Robertson's stiff reactions by the linearly implicit Euler method, with a 3 × 3 system in each step."""
    xp, identity = tools.xp, tools.given(np.eye(3))
    start, times = tools.given(np.array([1.0, 0.0, 0.0])), tools.given(np.geomspace(1e-4, 10.0, steps))

    def loss(logs: Any) -> Any:
        rates = xp.exp(logs)
        k1, k2, k3 = rates[0], rates[1], rates[2]

        def step(y: Any, h: Any) -> tuple[Any, Any]:
            first, second, third = k1 * y[0], k2 * y[1] ** 2, k3 * y[1] * y[2]
            slope = xp.stack([third - first, first - third - second, second])
            a, b, c = 2.0 * k2 * y[1], k3 * y[2], k3 * y[1]
            zero = xp.zeros_like(a)
            jacobian = xp.stack([-k1, b, c, k1, -b - a, -c, zero, a, zero]).reshape(3, 3)
            y = y + xp.linalg.solve(identity - h * jacobian, h * slope)
            return y, y

        return xp.sum(tools.loop(step, start, times)[1] ** 2)

    return Program(loss, (np.log([0.04, 3e7, 1e4]),))


def lotka_volterra(tools: Tools, steps: int) -> Program:
    """Return the misfit of a four-parameter model, integrated by the classical Runge–Kutta method."""
    parameters, start, observed, h = inputs.lotka_volterra(steps)
    start, observed = tools.given(start), tools.given(observed)

    def loss(parameters: Any) -> Any:
        slope = calls.lotka_volterra_slope(tools.xp, parameters)

        def step(z: Any, y: Any) -> tuple[Any, Any]:
            z = calls.runge_kutta(slope, z, h)
            return z, (z - y) ** 2

        return tools.xp.sum(tools.loop(step, start, observed)[1]) / steps

    return Program(loss, (parameters,))


def van_der_pol(tools: Tools, steps: int) -> Program:
    """Integrate an oscillator by the classical Runge–Kutta method, as a function of its damping and initial state."""
    times = tools.given(np.zeros(steps))

    def loss(parameters: Any) -> Any:
        damping = parameters[0]

        def slope(z: Any) -> Any:
            x, v = z[0], z[1]
            return tools.xp.stack([v, damping * (1.0 - x * x) * v - x])

        def step(z: Any, _: Any) -> tuple[Any, Any]:
            z = calls.runge_kutta(slope, z, 0.01)
            return z, z[0] ** 2

        return tools.xp.sum(tools.loop(step, parameters[1:], times)[1]) / steps

    return Program(loss, (np.array([1.5, 2.0, 0.0]),))


def bodies(tools: Tools, count: int, steps: int) -> Program:
    """Integrate gravitating bodies by leapfrog steps, as a function of their initial positions and masses."""
    xp, rng = tools.xp, np.random.default_rng(8)
    times, still = tools.given(np.zeros(steps)), tools.given(np.zeros((count, 3)))

    def loss(places: Any, masses: Any) -> Any:
        def kicked(x: Any, v: Any) -> Any:
            apart = x[None] - x[:, None]
            weights = masses / (xp.sum(apart * apart, -1) + 0.1) ** 1.5
            return v + 0.005 * xp.sum(weights[:, :, None] * apart, 1)

        def step(carry: Any, _: Any) -> tuple[Any, Any]:
            x, v = carry
            x = x + 0.005 * v
            v = kicked(x, v)
            return (x + 0.005 * v, v), v[0, 0]

        (x, _), _ = tools.loop(step, (places, still), times)
        return xp.sum(x * x)

    return Program(loss, (rng.normal(size=(count, 3)), rng.uniform(0.5, 1.5, count)))


def burgers(tools: Tools, points: int, steps: int) -> Program:
    """Return the final energy of a wave under Burgers' equation, as a function of the initial wave."""
    xp, times = tools.xp, tools.given(np.zeros(steps))
    width = 2 * np.pi / points

    def loss(wave: Any) -> Any:
        def step(u: Any, _: Any) -> tuple[Any, Any]:
            before, after = xp.roll(u, 1), xp.roll(u, -1)
            u = u - 0.1 * width * u * (after - before) / (2 * width) + 0.1 * (after - 2.0 * u + before)
            return u, u[0]

        u, _ = tools.loop(step, wave, times)
        return xp.sum(u * u) * width

    return Program(loss, (np.sin(np.arange(points) * width),))


def gaussian_process(tools: Tools, points: int) -> Program:
    """Return the negative log marginal likelihood, as a function of log length, log scale and log noise."""
    xp, rng = tools.xp, np.random.default_rng(7)
    x = np.sort(rng.uniform(0, 10, points))
    y, identity = tools.given(np.sin(x) + 0.1 * rng.normal(size=points)), tools.given(np.eye(points))
    squares = tools.given((x[:, None] - x) ** 2)

    def loss(logs: Any) -> Any:
        p = xp.exp(logs)
        kernel = p[1] * xp.exp(-0.5 * squares / p[0] ** 2) + p[2] * identity
        return 0.5 * (y @ xp.linalg.solve(kernel, y) + xp.linalg.slogdet(kernel)[1])

    return Program(loss, (np.array([0.1, -0.2, -2.0]),))


PROGRAMS: dict[str, Callable[..., Program]] = {
    "gmm": gmm, "gmm_loops": gmm_loops, "ba": ba, "lstm": lstm, "hand": hand, "kalman": kalman, "robertson": robertson,
    "lotka_volterra": lotka_volterra, "van_der_pol": van_der_pol, "bodies": bodies, "burgers": burgers, "gp": gaussian_process,
}  # fmt: skip


# --- library interface ------------------------------------------------------------------------------------------------


def derivative(program: Program, func: Any) -> Callable[..., Any]:
    """Return the gradient or Jacobian by JAX's transformations or those of the same names."""
    if program.row is None or program.gather is None:
        if program.jacobian:
            return lambda x: [func.jacfwd(program.f)(x)]
        gradient: Callable[..., Any] = func.grad(program.f, tuple(range(len(program.parameters))))
        return gradient
    blocks, gather = func.vmap(func.jacrev(program.row)), program.gather
    ends = func.vmap(func.grad(lambda w: 1.0 - w**2))
    return lambda *parameters: [blocks(*gather(*parameters)), ends(parameters[-1])]


def results(program: Program, parts: Any) -> list[Any]:
    """Convert results to NumPy arrays; a Jacobian in parts is reduced to the sum of absolute values."""
    arrays = [np.asarray(part) for part in parts]
    return [Entries(np.concatenate([a.ravel() for a in arrays]))] if program.row else arrays


def works(
    tools: Tools, derive: Callable[[Program], Callable[..., Any]], given: Callable[[Any], Any] = np.asarray
) -> Makers:
    """Return the makers of all programs. Preparation for a program counts as part of its first call."""

    def maker(kind: str) -> Callable[..., Run]:
        def make(*sizes: int) -> Run:
            program = PROGRAMS[kind](tools, *sizes)
            parameters, made = [given(array) for array in program.parameters], []

            def run() -> Any:
                if not made:
                    made.append(derive(program))
                return results(program, made[0](*parameters))

            return run

        return make

    return {kind: maker(kind) for kind in PROGRAMS}
