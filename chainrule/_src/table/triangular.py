"""Solutions of triangular systems of real numbers, by substitution. ``table.linalg`` calls ``solution`` with plain or traced arrays.

NumPy's ``solve`` would factor the matrix first. LAPACK's trtrs is not called: in OpenBLAS, it uses threads even for the smallest
systems. Systems of at most ``SMALL`` rows are solved in double precision, with the same bits in ``native/linear_algebra.c``. Larger ones
are halved recursively, so that most of the work is matrix products.
"""

from __future__ import annotations

import functools

import numpy as np

from chainrule._src.arrays.any_array import call_as_one_operation
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.messages import errors
from chainrule._src.native import LOOPS

SMALL = 32  # maximum number of rows of a system that is not halved


def solution(x: AnyArray, y: AnyArray, upper: bool, unit: bool) -> AnyArray:
    """Return the solution of T @ X = y, where T is a triangle of x.

    Raises:
        LinAlgError: a number on the diagonal of T is zero.
    """
    n = x.shape[-1]
    if n <= SMALL:
        return call_as_one_operation(small_solution, x, y, upper, unit)
    above, below = slice(n // 2), slice(n // 2, None)
    first, second = (below, above) if upper else (above, below)
    solved = solution(x[..., first, first], y[..., first, :], upper, unit)
    others = y[..., second, :] - np.matmul(x[..., second, first], solved)
    rest = solution(x[..., second, second], others, upper, unit)
    return np.concatenate((rest, solved) if upper else (solved, rest), axis=-2)


def small_solution(x: NumpyArray, y: NumpyArray, upper: bool, unit: bool) -> NumpyArray:
    """Return the solution for at most ``SMALL`` rows; ``compile`` records it as one call."""
    found = LOOPS.triangular_solution(x, y, upper, unit) if in_c() else None
    if found is None:
        found = solution_in_numpy(x, y, upper, unit)
    if found is None or found is False:
        raise errors.singular_system("torch.linalg.solve")
    return found


def solution_in_numpy(x: NumpyArray, y: NumpyArray, upper: bool, unit: bool) -> NumpyArray | None:
    """Return the solution; None if a number on the diagonal is zero."""
    n = x.shape[-1]
    if not unit and (x.diagonal(0, -2, -1) == 0).any():
        return None
    out, wide = y.astype(np.float64, order="C"), x.astype(np.float64)
    with np.errstate(all="ignore"):
        for k in reversed(range(n)) if upper else range(n):
            if not unit:
                out[..., k, :] /= wide[..., k, k, None]
            others = slice(k) if upper else slice(k + 1, None)
            out[..., others, :] -= wide[..., others, k, None] * out[..., k, None, :]
    return out.astype(y.dtype, copy=False)


@functools.cache
def in_c() -> bool:
    """Return whether the extension computes the bits of the reference, on samples."""
    if LOOPS is None:
        return False
    numbers = np.random.default_rng(0)
    for n, sides in ((1, 1), (3, 2), (7, 1), (20, 5)):
        for dtype in (np.float32, np.float64):
            x, y = (numbers.standard_normal((2, n, k)).astype(dtype) for k in (n, sides))
            for upper, unit in ((False, False), (True, False), (False, True), (True, True)):
                found, expected = LOOPS.triangular_solution(x, y, upper, unit), solution_in_numpy(x, y, upper, unit)
                if found is None or found is False or expected is None or found.tobytes() != expected.tobytes():
                    return False
    return True
