"""Matrix functions computed by SciPy, as primitives. The module is loaded at first use.

``scipy.linalg`` calls the primitives.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.kinds import opaque
from chainrule._src.table.linalg import H, hermitian, solve


def scipy_linalg() -> Any:
    return importlib.import_module("scipy.linalg")


def _frechet(x: AnyArray, t: AnyArray, name: str, options: AnyArray) -> AnyArray:
    """Return the derivative of a matrix function at x in direction t: a block of its value at [[x, t], [0, x]].

    R. Mathias, A chain rule for matrix functions and applications (1996).
    """
    n = shape_of(x)[-1]
    block_matrix = np.concatenate(
        [np.concatenate([x, t], -1), np.concatenate([np.zeros((n, n)), x], -1)],
        -2,
    )
    return matrix_function(block_matrix, name=name, options=options)[..., :n, n:]


@opaque(
    vjp={"x": lambda g, x, name, options: _frechet(H(x), g, name, options)},
    jvp={"x": lambda t, x, name, options: _frechet(x, t, name, options)},
    batch=each_example,
    promotion="float",
    listed=False,
)
def matrix_function(x: Any, *, name: Any, options: Any) -> AnyArray:
    """Apply a function of ``scipy.linalg`` that commutes with the conjugate transpose."""
    x = np.asarray(x)
    found = getattr(scipy_linalg(), name)(x, *options)
    return found if found.dtype.kind == "c" or x.dtype.kind != "f" else found.astype(x.dtype, copy=False)


@opaque(
    shared={"gy": lambda g, x, y: sylvester(H(x), H(y), g)},
    vjp={
        "x": lambda gy, out: -gy @ H(out),
        "y": lambda gy, out: -H(out) @ gy,
        "z": lambda gy: gy,
    },
    jvp={
        "x": lambda t, x, y, out: -sylvester(x, y, t @ out),
        "y": lambda t, x, y, out: -sylvester(x, y, out @ t),
        "z": lambda t, x, y: sylvester(x, y, t),
    },
    batch=each_example,
    promotion="float",
    listed=False,
)
def sylvester(x: AnyArray, y: AnyArray, z: AnyArray) -> AnyArray:
    """Return the matrix X with ``x X + X y = z``."""
    return scipy_linalg().solve_sylvester(np.asarray(x), np.asarray(y), np.asarray(z))


# -- Riccati equations -------------------------------------------------------------------------------------------------
#
# With the gain K and the closed loop A - B K, a tangent of X solves a Lyapunov equation (for a discrete system, a Stein
# equation). Its right-hand side is dAᴴ M + Mᴴ dA - Mᴴ dB K - Kᴴ dBᴴ M + dQ + Kᴴ dR K. M is X, or X (A - B K) for a discrete
# system.
# T.-C. Kao and G. Hennequin, Automatic differentiation of Sylvester, Lyapunov, and algebraic Riccati equations (2020).


def _closed_loop(a: AnyArray, b: AnyArray, r: AnyArray, x: AnyArray, discrete: bool) -> tuple[Any, Any, Any]:
    """Return the gain K, the closed loop and M."""
    k = solve(r + H(b) @ x @ b, H(b) @ x @ a) if discrete else solve(r, H(b) @ x)
    closed = a - b @ k
    return k, closed, x @ closed if discrete else x


def discrete_lyapunov(a: AnyArray, q: AnyArray) -> AnyArray:
    """Return X with ``a X aᴴ - X + q = 0``, by solving a linear system of n² unknowns."""
    n = shape_of(a)[0]
    return np.reshape(np.linalg.solve(np.eye(n * n) - np.kron(a, np.conj(a)), np.reshape(q, (n * n,))), (n, n))


def _solve_lyapunov(closed: AnyArray, w: AnyArray, discrete: bool) -> AnyArray:
    """Return X with ``closed X + X closedᴴ + w = 0``, or for a discrete system ``closed X closedᴴ - X + w = 0``."""
    return discrete_lyapunov(closed, w) if discrete else sylvester(closed, H(closed), -w)


def _riccati_shared(
    g: AnyArray, a: AnyArray, b: AnyArray, r: AnyArray, out: AnyArray, discrete: bool
) -> tuple[Any, Any, Any]:
    k, closed, m = _closed_loop(a, b, r, out, discrete)
    return _solve_lyapunov(closed, hermitian(g), discrete), k, m


def _riccati_tangent(right: AnyArray, a: AnyArray, b: AnyArray, r: AnyArray, out: AnyArray, discrete: bool) -> AnyArray:
    k, closed, m = _closed_loop(a, b, r, out, discrete)
    half = right(k, m)
    return _solve_lyapunov(H(closed), half + H(half), discrete)


@opaque(
    shared={"s": lambda g, a, b, r, out, discrete: _riccati_shared(g, a, b, r, out, discrete)},
    vjp={
        "a": lambda s: 2 * s[2] @ s[0],
        "b": lambda s: -2 * s[2] @ s[0] @ H(s[1]),
        "q": lambda s: s[0],
        "r": lambda s: s[1] @ s[0] @ H(s[1]),
    },
    jvp={
        "a": lambda t, a, b, r, out, discrete: _riccati_tangent(lambda k, m: H(t) @ m, a, b, r, out, discrete),
        "b": lambda t, a, b, r, out, discrete: -_riccati_tangent(lambda k, m: H(k) @ H(t) @ m, a, b, r, out, discrete),
        "q": lambda t, a, b, r, out, discrete: _riccati_tangent(lambda k, m: t / 2, a, b, r, out, discrete),
        "r": lambda t, a, b, r, out, discrete: _riccati_tangent(lambda k, m: H(k) @ t @ k / 2, a, b, r, out, discrete),
    },
    batch=each_example,
    promotion="float",
    listed=False,
)
def riccati(a: AnyArray, b: AnyArray, q: AnyArray, r: AnyArray, *, discrete: AnyArray) -> AnyArray:
    """Return the stabilizing solution X of a Riccati equation; q and r must be Hermitian, and so are their gradients."""
    solver = getattr(scipy_linalg(), "solve_discrete_are" if discrete else "solve_continuous_are")
    return solver(*map(np.asarray, (a, b, q, r)))
