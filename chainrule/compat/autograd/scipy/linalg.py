"""``autograd.scipy.linalg``: functions with rules; SciPy's other functions take only plain arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from chainrule import linalg as _ours
from chainrule._src.api.array import Array, holds
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule.compat.autograd.extend import defjvp, defjvp_argnum, defvjp, defvjp_argnums, primitive

globals().update(
    {
        name: primitive(x) if inspect.isfunction(x) else x
        for name, x in vars(scipy.linalg).items()
        if not name.startswith("_")
    }
)

__all__ = [*scipy.linalg.__all__]

# -- a x + x b = q -----------------------------------------------------------------------------------------------------

solve_sylvester = primitive(scipy.linalg.solve_sylvester)


def _sylvester_vjp(
    argnums: tuple[int, ...], x: AnyArray, args: tuple[AnyArray, ...], kwargs: object
) -> Callable[[Any], Any]:
    """Return the VJP. The solution w of the transposed equation is the gradient of q; −w xᵀ and −xᵀ w are those of a and b."""
    a, b, _ = args

    def vjp(g: AnyArray) -> list[AnyArray]:
        w = solve_sylvester(a.T, b.T, g)
        return [(-w @ x.T, -x.T @ w, w)[i] for i in argnums]

    return vjp


def _sylvester_jvp(argnum: int, t: AnyArray, x: AnyArray, args: tuple[AnyArray, ...], kwargs: object) -> AnyArray:
    return solve_sylvester(args[0], args[1], (-t @ x, -x @ t, t)[argnum])


defvjp_argnums(solve_sylvester, _sylvester_vjp)
defjvp_argnum(solve_sylvester, _sylvester_jvp)

# -- roots: x x = a ----------------------------------------------------------------------------------------------------

sqrtm = primitive(scipy.linalg.sqrtm)
defvjp(sqrtm, lambda x, a: lambda g: solve_sylvester(x.T, x.T, g))
defjvp(sqrtm, lambda t, x, a: solve_sylvester(x, x, t))

# -- linear systems ----------------------------------------------------------------------------------------------------


def solve_triangular(
    a: AnyArray, b: AnyArray, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **options: object
) -> AnyArray:
    """Solve a x = b for a triangular matrix a (with ``trans``: aᵀ x = b, or aᴴ x = b)."""
    if not holds((a, b), Array):
        return scipy.linalg.solve_triangular(a, b, trans, lower, unit_diagonal, **options)
    if trans in (1, "T", 2, "C"):
        a, lower = np.swapaxes(a, -1, -2), not lower
        a = np.conj(a) if trans in (2, "C") else a
    columns = b[..., None] if np.ndim(b) == 1 else b
    solve: Any = _ours.solve_triangular
    x = solve(Array(a), Array(columns), upper=not lower, unitriangular=unit_diagonal)
    return x[..., 0] if np.ndim(b) == 1 else x


def _band(lower: int, upper: int, n: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return for each entry ab[upper + i - j, j] of a band: i, j, and whether the element is inside of the matrix."""
    band_row, j = np.indices((lower + upper + 1, n))
    i = band_row - upper + j
    return np.clip(i, 0, n - 1), j, (i >= 0) & (i < n)


def _transposed_band(l_and_u: tuple[int, ...], ab: AnyArray) -> AnyArray:
    lower, upper = l_and_u
    row, i, in_band = _band(upper, lower, np.shape(ab)[1])
    return np.where(in_band, ab[upper + i - row, row], 0.0)


def _banded_vjp(argnums: tuple[int, ...], x: AnyArray, args: Any, kwargs: object) -> Callable[[Any], Any]:
    """Return the VJP. The solution w of the transposed system is the gradient of b; −w xᵀ on the band is that of a."""
    (lower, upper), ab, _ = args
    i, j, in_band = _band(lower, upper, np.shape(ab)[1])

    def vjp(g: TensorLike) -> list[Any]:
        w = solve_banded((upper, lower), _transposed_band((lower, upper), ab), g)
        products = w[i] * x[j]
        by_band = np.where(in_band, -(np.sum(products, axis=-1) if np.ndim(x) == 2 else products), 0.0)
        return [(None, by_band, w)[k] for k in argnums]

    return vjp


solve_banded = primitive(scipy.linalg.solve_banded)
defvjp_argnums(solve_banded, _banded_vjp)

show(globals())
