"""Functions of ``scipy.linalg`` that NumPy has none of, by SciPy's names and signatures, with derivatives.

For plain arrays they are SciPy's own. (``np.linalg.solve``, ``inv``, ``det``, ``eigh``, ``svd``, ``qr`` and the others of NumPy's are
differentiable themselves.)

>>> import numpy as np
>>> import chainrule as cr
>>> A = np.array([[4., 1.], [1., 3.]])
>>> G = cr.grad(lambda A: np.trace(cr.scipy.linalg.sqrtm(A)))(A)
>>> np.allclose(G, np.linalg.inv(cr.scipy.linalg.sqrtm(A)) / 2)
True
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from chainrule import linalg
from chainrule._src.api.array import Array, array_of, as_tensors
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, IntoArray, Params
from chainrule._src.ops import matrices
from chainrule._src.table import matrix_functions as rows
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrapped
from chainrule.scipy.derivatives import scipy_module
from chainrule.sparse.arrays import applied, coo

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "coshm",
    "cosm",
    "expm",
    "fractional_matrix_power",
    "hankel",
    "khatri_rao",
    "logm",
    "lu_factor",
    "lu_solve",
    "polar",
    "sinhm",
    "sinm",
    "solve_banded",
    "solve_circulant",
    "solve_continuous_are",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_sylvester",
    "solve_toeplitz",
    "solve_triangular",
    "solveh_banded",
    "sqrtm",
    "tanhm",
    "tanm",
    "toeplitz",
]

F = TypeVar("F", bound=AnyFunction)


def _holds(x: object) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(_holds, x))
    return isinstance(x, (Tensor, Array, ArrayLike))


def _else_scipys(function: F) -> F:
    """Leave calls in which nothing can be differentiated to SciPy."""
    name = function.__name__

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if not _holds(args) and not _holds(list(kwargs.values())):
            return getattr(scipy_module("scipy.linalg", f"linalg.{name}"), name)(*args, **kwargs)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _over_stacks(*cores: int | str) -> Callable[[F], F]:
    """Apply a function to each of a stack of matrices or vectors, as SciPy does: the axes before an argument's own broadcast.

    Args:
        cores: for each of the first arguments, how many axes are its own; "1|2": two, if there are two.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            arrays, others = args[: len(cores)], args[len(cores) :]
            own = [
                min(np.ndim(x), 2) if isinstance(core, str) else core for x, core in zip(arrays, cores, strict=False)
            ]
            shapes = [() if x is None else np.shape(x) for x in arrays]
            stack = np.broadcast_shapes(
                *(shape[: max(len(shape) - n, 0)] for shape, n in zip(shapes, own, strict=True))
            )
            if not stack:
                return function(*args, **kwargs)
            if 0 in stack:
                raise ValueError(f"{function.__name__}(): an empty stack, {stack}: the shape of a result is not known")
            each = [
                x if x is None else np.broadcast_to(x, (*stack, *shape[len(shape) - n :]))
                for x, shape, n in zip(arrays, shapes, own, strict=True)
            ]
            found = [
                function(*(x if x is None else x[index] for x in each), *others, **kwargs)
                for index in np.ndindex(stack)
            ]
            if not isinstance(found[0], tuple):
                return _stacked(found, stack)
            return tuple(_stacked(parts, stack) for parts in zip(*found, strict=True))

        return call  # type: ignore[return-value]

    return decorate


def _stacked(found: Sequence[AnyArray], stack: tuple[int, ...]) -> AnyArray:
    return np.reshape(np.stack(list(found)), (*stack, *np.shape(found[0])))


# -- functions of matrices ---------------------------------------------------------------------------------------------


def _of_matrix(name: str, what: str) -> Callable[[AnyArray], AnyArray]:
    @_over_stacks(2)
    def function(A: object) -> AnyArray:
        return applied(rows.matrix_function, (A,), name=name, options=())

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The {what} of a square matrix, as ``scipy.linalg.{name}``, with derivatives of any order."""
    return _else_scipys(function)


sqrtm = _of_matrix("sqrtm", "square root")
logm = _of_matrix("logm", "logarithm")
cosm, sinm, tanm = _of_matrix("cosm", "cosine"), _of_matrix("sinm", "sine"), _of_matrix("tanm", "tangent")
coshm, sinhm = _of_matrix("coshm", "hyperbolic cosine"), _of_matrix("sinhm", "hyperbolic sine")
tanhm = _of_matrix("tanhm", "hyperbolic tangent")


@_else_scipys
def expm(A: Any) -> AnyArray:
    """Return the exponential of a square matrix, as ``scipy.linalg.expm``."""
    return linalg.matrix_exp(A)


@_else_scipys
@_over_stacks(2)
def fractional_matrix_power(A: object, t: float) -> AnyArray:
    """Return a square matrix to a power that need not be whole, as ``scipy.linalg.fractional_matrix_power``; t is a constant."""
    return applied(rows.matrix_function, (A,), name="fractional_matrix_power", options=(float(t),))


@_else_scipys
def polar(a: IntoArray, side: str = "right") -> tuple[AnyArray, AnyArray]:
    """Unitary and positive semidefinite factors of a matrix, ``a = u @ p`` (or ``p @ u`` for side "left")."""
    if side not in ("right", "left"):
        raise ValueError(f"polar(side={side!r}): side is 'right' or 'left'")
    w, s, vh = np.linalg.svd(a, full_matrices=False)
    p = _adjoint(vh) @ (s[..., None] * vh) if side == "right" else w @ (s[..., None] * _adjoint(w))
    return w @ vh, p


def _adjoint(x: Any) -> AnyArray:
    return np.conj(np.swapaxes(x, -1, -2))


# -- factors -----------------------------------------------------------------------------------------------------------


@_else_scipys
def cholesky(a: Any, lower: bool = False) -> AnyArray:
    """Return the Cholesky factor: as for SciPy the upper one, of the upper triangle, if ``lower`` does not say otherwise."""
    return np.linalg.cholesky(a, upper=not lower)


@_else_scipys
def cho_factor(a: object, lower: bool = False) -> tuple[AnyArray, bool]:
    """What :func:`cho_solve` takes. (Elements beyond the triangle are 0 here.)"""
    return cholesky(a, lower), lower


@_else_scipys
def cho_solve(c_and_lower: tuple[Any, bool], b: object) -> AnyArray:
    """Return x with ``a @ x = b``, from ``cho_factor(a)``."""
    return _cho_solve(c_and_lower[0], b, c_and_lower[1])


@_over_stacks(2, "1|2")
def _cho_solve(c: object, b: object, lower: bool) -> AnyArray:
    L = c if lower else _adjoint(c)
    return solve_triangular(_adjoint(L), solve_triangular(L, b, lower=True))


@_else_scipys
@_over_stacks(2, "1|2")
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """Return x with ``a @ x = b``, for a triangular matrix; ``trans`` 1 or "T" for its transpose, 2 or "C" for the adjoint."""
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"solve_triangular(trans={trans!r}): trans is 0, 1 or 2, or 'N', 'T' or 'C'")
    turned = trans not in (0, "N")
    a = (np.swapaxes(a, -1, -2) if trans in (1, "T") else _adjoint(a)) if turned else a
    columns = _tensor(b)[:, None] if np.ndim(b) == 1 else _tensor(b)
    x = linalg.solve_triangular(_tensor(a), columns, upper=lower is turned, unitriangular=unit_diagonal)
    return _faced(x[:, 0] if np.ndim(b) == 1 else x, a, b)


@_else_scipys
def lu_factor(a: Any) -> tuple[AnyArray, AnyArray]:
    """LU factors in one matrix, and the row that each was exchanged with, counted from 0 as SciPy does."""
    lu, pivots = linalg.lu_factor(a)
    return lu, pivots - 1


@_else_scipys
def lu_solve(lu_and_piv: tuple[Any, Any], b: object, trans: int = 0) -> AnyArray:
    """Return x with ``a @ x = b``, from ``lu_factor(a)``; ``trans`` 1 for the transpose, 2 for the adjoint."""
    return _lu_solve(*lu_and_piv, b, trans)


@_over_stacks(2, 1, "1|2")
def _lu_solve(lu: Any, piv: object, b: Any, trans: int) -> Any:
    columns = _tensor(b)[:, None] if np.ndim(b) == 1 else _tensor(b)
    pivots = _tensor(piv) + 1
    if trans == 1:
        x = linalg.lu_solve(_tensor(lu), pivots, columns.conj(), adjoint=True).conj()
    else:
        x = linalg.lu_solve(_tensor(lu), pivots, columns, adjoint=trans == 2)
    return _faced(x[:, 0] if np.ndim(b) == 1 else x, lu, b)


def _tensor(x: object) -> Tensor:
    opened = as_tensors(x)
    return (
        opened
        if isinstance(opened, Tensor)
        else wrapped(opened if isinstance(opened, ArrayLike) else np.asarray(opened))
    )


def _faced(tensor: Any, *given: object) -> AnyArray:
    """Return a result in the face of what it was computed from."""
    return tensor if any(isinstance(x, (Tensor, ArrayLike)) for x in given) else array_of(tensor)


# -- matrices with structure -------------------------------------------------------------------------------------------


@_else_scipys
def block_diag(*arrs: object) -> AnyArray:
    """Return a matrix with blocks on its diagonal, as ``scipy.linalg.block_diag``."""
    return _over_stacks(*[2] * len(arrs))(_block_diag)(*arrs)


def _block_diag(*arrs: object) -> AnyArray:
    found = matrices.block_diag(*map(_tensor, arrs))
    return _faced(found, *arrs)


@_else_scipys
@_over_stacks(1, 1)
def toeplitz(c: IntoArray, r: IntoArray | None = None) -> AnyArray:
    """Return a matrix with constant diagonals, from its first column and its first row (without one: the column's conjugate)."""
    c = np.ravel(c)
    r = np.conj(c) if r is None else np.ravel(r)
    m, n = len(c), len(r)
    both = np.concatenate([np.flip(c, 0), r[1:]])
    return both[m - 1 - np.arange(m)[:, None] + np.arange(n)]


@_else_scipys
def hankel(c: IntoArray, r: IntoArray | None = None) -> AnyArray:
    """Return a matrix with constant antidiagonals, from its first column and its last row (without one: zeros)."""
    c = np.ravel(c)
    r = np.zeros(len(c), dtype_of(c)) if r is None else np.ravel(r)
    return np.concatenate([c, r[1:]])[np.arange(len(c))[:, None] + np.arange(len(r))]


@_else_scipys
@_over_stacks(1)
def circulant(c: Any) -> AnyArray:
    """Return a matrix whose columns are rotations of c."""
    n = len(c)
    return c[(np.arange(n)[:, None] - np.arange(n)) % n]


@_else_scipys
@_over_stacks(1)
def companion(a: Any) -> Any:
    """Return the matrix whose characteristic polynomial has the coefficients a."""
    first = -a[1:] / a[0]
    return np.concatenate([first[None], np.eye(len(first))[:-1]])


@_else_scipys
@_over_stacks(2, 2)
def khatri_rao(a: Any, b: Any) -> AnyArray:
    """Kronecker products of the columns of two matrices."""
    return np.reshape(a[:, None] * b[None], (-1, np.shape(b)[1]))


# -- systems with structure --------------------------------------------------------------------------------------------


@_else_scipys
def solve_banded(l_and_u: tuple[int, int], ab: object, b: object) -> AnyArray:
    """Return x with ``a @ x = b``, for a banded matrix: ``ab[u + i - j, j] = a[i, j]``, with l diagonals below and u above."""
    return _solve_banded(ab, b, *l_and_u)


@_over_stacks(2, "1|2")
def _solve_banded(ab: Any, b: Any, lower: int, upper: int) -> AnyArray:
    n = np.shape(ab)[-1]
    if np.shape(ab)[0] != lower + upper + 1:
        raise ValueError(
            f"l and u are {lower} and {upper}, which makes {lower + upper + 1} rows of ab, not {np.shape(ab)[0]}"
        )
    k, col = (index.reshape(-1) for index in np.indices((lower + upper + 1, n)))
    row = col + k - upper
    inside = (row >= 0) & (row < n)
    return coo(ab[k[inside], col[inside]], row[inside], col[inside], (n, n)).solve(b)


@_else_scipys
@_over_stacks(2, "1|2")
def solveh_banded(ab: AnyArray, b: object, lower: bool = False) -> AnyArray:
    """Return x with ``a @ x = b``, for a positive definite banded matrix of which ``ab`` has one triangle."""
    u = np.shape(ab)[0] - 1
    n = np.shape(ab)[1]
    k, col = (index.reshape(-1) for index in np.indices((u + 1, n)))
    row = col + k if lower else col + k - u
    inside = (row >= 0) & (row < n)
    row, col, entries = row[inside], col[inside], ab[k[inside], col[inside]]
    off = np.flatnonzero(row != col)
    data = np.concatenate([entries, np.conj(entries[off])])
    return coo(data, np.append(row, col[off]), np.append(col, row[off]), (n, n)).solve(b)


@_else_scipys
def solve_toeplitz(c_or_cr: object, b: object) -> AnyArray:
    """Return x with ``toeplitz(c, r) @ x = b``, by elimination."""
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    return _solve_toeplitz(c, r, b)


@_over_stacks(1, 1, "1|2")
def _solve_toeplitz(c: Any, r: Any, b: Any) -> AnyArray:
    return np.linalg.solve(toeplitz(c, r), b)


@_else_scipys
def solve_circulant(c: IntoArray, b: IntoArray) -> AnyArray:
    """Return x with ``circulant(c) @ x = b``, by Fourier transforms."""
    if np.ndim(c) > 1:
        raise NotImplementedError(
            f"solve_circulant(c, b): c is a vector here, and has the shape {np.shape(c)}: use vmap"
        )
    spectrum = np.fft.fft(c)
    x = np.fft.ifft(np.fft.fft(b, axis=0) / (spectrum if np.ndim(b) == 1 else spectrum[:, None]), axis=0)
    return x if "c" in (dtype_of(c).kind, dtype_of(b).kind) else np.real(x)


@_else_scipys
@_over_stacks(2, 2, 2)
def solve_sylvester(a: object, b: object, q: object) -> AnyArray:
    """X with ``a @ X + X @ b = q``."""
    return applied(rows.sylvester, (a, b, q))


@_else_scipys
@_over_stacks(2, 2, 2, 2)
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, **options: object) -> AnyArray:
    """X with ``aᴴ X + X a - X b r⁻¹ bᴴ X + q = 0``: the cost of a linear-quadratic regulator, whose gain is ``r⁻¹ bᴴ X``.

    Shapes: a and q (n, n), b (n, m), r (m, m). Derivatives by q and r are by their Hermitian parts.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> pole = lambda m: np.stack([0.0, 1.0, -1 / m, -0.1 / m]).reshape(2, 2)  # a mass on a spring
    >>> cost = lambda m: np.trace(
    ...     cr.scipy.linalg.solve_continuous_are(pole(m), np.stack([0.0, 1 / m])[:, None], np.eye(2), np.eye(1)))
    >>> round(float(cr.grad(cost)(1.3)), 5), round(float(cost(1.3001) - cost(1.2999)) / 0.0002, 5)
    (2.12287, 2.12287)
    """
    return _riccati("solve_continuous_are", (a, b, q, r), False, options)


@_else_scipys
@_over_stacks(2, 2, 2, 2)
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, **options: object) -> AnyArray:
    """X with ``aᴴ X a - X - aᴴ X b (r + bᴴ X b)⁻¹ bᴴ X a + q = 0``, of a system in steps of time.

    Shapes: a and q (n, n), b (n, m), r (m, m). Derivatives are by the Hermitian parts of q and r, in n² unknowns.
    """
    return _riccati("solve_discrete_are", (a, b, q, r), True, options)


def _riccati(name: str, operands: tuple[AnyArray, ...], discrete: bool, options: Params) -> AnyArray:
    given = [key for key, value in options.items() if value is not None and key != "balanced"]
    if given:
        raise NotImplementedError(
            f"{name}({given[0]}=): there are derivatives by a, b, q and r, and of the equation without it"
        )
    return applied(rows.riccati, operands, discrete=discrete)


@_else_scipys
@_over_stacks(2, 2)
def solve_continuous_lyapunov(a: object, q: object) -> AnyArray:
    """X with ``a @ X + X @ aᴴ = q``."""
    return applied(rows.sylvester, (a, _adjoint(a), q))


@_else_scipys
@_over_stacks(2, 2)
def solve_discrete_lyapunov(a: Any, q: Any) -> AnyArray:
    """X with ``a @ X @ aᴴ - X + q = 0``, by elimination in n² unknowns."""
    return rows.discrete_lyapunov(a, q)
