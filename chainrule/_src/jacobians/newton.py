"""Newton's method for roots and minima of functions of one vector; ``solution`` calls it if there is no other solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.jacobians.factors import Factors

STEPS = 100
HALVINGS = 40


def newton_root(
    residual: Callable[[NumpyArray], NumpyArray], jacobian: Callable[[NumpyArray], Any], x: NumpyArray, api: str
) -> NumpyArray:
    """Find x where the residual is 0: each step solves the linearized equation, and is halved until the residual shrinks.

    Raises:
        RuntimeError: the residual no longer shrinks, or not fast enough.
        numpy.linalg.LinAlgError: the Jacobian is singular at an iterate.
    """
    singular = (
        f"{api}(): the Jacobian is singular at a point that Newton's method reached. Start elsewhere, or pass a solver"
    )
    r = residual(x)
    for _ in range(STEPS):
        if not np.any(r):
            return x
        step = -Factors(jacobian(x), singular).solve(r)
        before = np.linalg.norm(r)
        size = 1.0
        for _ in range(HALVINGS):
            r = residual(x + size * step)
            if np.linalg.norm(r) <= (1 - 1e-4 * size) * before:
                break
            size /= 2
        else:
            if _is_small(step, x):
                return x  # converged to the precision that rounding allows
            break
        x = x + size * step
        if size == 1 and _is_rounding(step, x):
            return x
    raise RuntimeError(
        f"{api}(): Newton's method did not find a solution: the residual is {np.max(np.abs(r)):.1e} where it stopped. Start "
        "closer to a solution, or pass a solver"
    )


def newton_minimum(
    function: Callable[[NumpyArray], float],
    gradient: Callable[[NumpyArray], NumpyArray],
    hessian: Callable[[NumpyArray], Any],
    x: NumpyArray,
    api: str,
) -> NumpyArray:
    """Find a local minimum by Newton's method; add a multiple of the identity to a Hessian that is not positive definite.

    Raises:
        RuntimeError: the function no longer decreases, or not fast enough; or the method reached a maximum or a saddle.
    """
    identity = np.eye(x.size, dtype=x.dtype)
    value, damping = function(x), 0.0
    for _ in range(STEPS):
        g = gradient(x)
        matrix = np.asarray(hessian(x))
        if not np.any(g):
            if _is_indefinite(matrix):
                raise RuntimeError(
                    f"{api}(): Newton's method reached a maximum or a saddle point: the gradient is 0 and the Hessian has a "
                    "negative eigenvalue there. Start elsewhere, or pass a solver"
                )
            return x
        for _ in range(HALVINGS):
            step = _step(matrix + damping * identity, g)
            if step is not None:
                new = function(x + step)
                if new <= value + 1e-4 * np.dot(g, step):
                    break
                if _is_small(step, x):  # rounding of the function hides the decrease: compare gradients
                    if np.linalg.norm(gradient(x + step)) < np.linalg.norm(g):
                        break
                    return x
            damping = max(4 * damping, 1e-3 * float(np.max(np.abs(matrix), initial=1e-3)))
        else:
            break
        x, value = x + step, new
        if _is_rounding(step, x):
            return x
        damping = damping / 8 if damping > 1e-12 else 0.0
    raise RuntimeError(
        f"{api}(): Newton's method did not find a minimum: the gradient is {np.max(np.abs(g)):.1e} where it stopped. Start "
        "closer to a minimum, or pass a solver, such as chainrule.scipy.minimize"
    )


def _step(matrix: AnyArray, g: NumpyArray) -> NumpyArray | None:
    """Return Newton's step, or None if the matrix is not positive definite."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    return -np.linalg.solve(matrix, g)


def _is_indefinite(matrix: AnyArray) -> bool:
    """Return whether a symmetric matrix has a negative eigenvalue, beyond rounding."""
    values = np.linalg.eigvalsh(matrix) if matrix.size else np.zeros(1)
    return bool(values[0] < -np.sqrt(np.finfo(values.dtype).eps) * np.max(np.abs(values)))


def _is_small(step: NumpyArray, x: NumpyArray) -> bool:
    return _relative(step, x) <= np.sqrt(np.finfo(x.dtype).eps)


def _is_rounding(step: NumpyArray, x: NumpyArray) -> bool:
    return _relative(step, x) <= 4 * np.finfo(x.dtype).eps


def _relative(step: NumpyArray, x: NumpyArray) -> float:
    """Return the size of a step relative to x (or to 1 if x is near 0)."""
    return float(np.max(np.abs(step)) / max(1.0, np.max(np.abs(x))))
