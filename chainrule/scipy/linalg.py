"""Differentiable functions of ``scipy.linalg`` that NumPy does not have, with SciPy's names and signatures.

For plain arrays they call SciPy. (``np.linalg.solve``, ``inv``, ``det``, ``eigh``, ``svd``, ``qr`` and NumPy's other functions
are differentiable themselves.)

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
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, IntoArray, Params
from chainrule._src.ops import matrices
from chainrule._src.table import matrix_functions as primitives
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, tensor_of
from chainrule.scipy.derivatives import scipy_module
from chainrule.sparse.arrays import apply_primitive, coo

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


def _contains_differentiable(x: object) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(_contains_differentiable, x))
    return isinstance(x, (Tensor, Array, ArrayLike))


def _scipy_fallback(function: F) -> F:
    """Call SciPy's function if no argument is differentiable."""
    name = function.__name__

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if not _contains_differentiable(args) and not _contains_differentiable(list(kwargs.values())):
            return getattr(scipy_module("scipy.linalg", f"linalg.{name}"), name)(*args, **kwargs)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _batched(*cores: int | str) -> Callable[[F], F]:
    """Apply a function to batches of matrices or vectors, as SciPy does: leading axes of the arguments broadcast.

    Args:
        cores: for each of the first arguments, the number of its core axes; "1|2" means two if there are two.
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
                raise ValueError(f"{function.__name__}(): empty batch {stack}: the shape of a result is unknown")
            each = [
                x if x is None else np.broadcast_to(x, (*stack, *shape[len(shape) - n :]))
                for x, shape, n in zip(arrays, shapes, own, strict=True)
            ]
            found = [
                function(*(x if x is None else x[index] for x in each), *others, **kwargs)
                for index in np.ndindex(stack)
            ]
            if not isinstance(found[0], tuple):
                return _reshape_batch(found, stack)
            return tuple(_reshape_batch(parts, stack) for parts in zip(*found, strict=True))

        return call  # type: ignore[return-value]

    return decorate


def _reshape_batch(found: Sequence[AnyArray], stack: tuple[int, ...]) -> AnyArray:
    return np.reshape(np.stack(list(found)), (*stack, *np.shape(found[0])))


# -- functions of matrices ---------------------------------------------------------------------------------------------


def _matrix_function(name: str, what: str) -> Callable[[AnyArray], AnyArray]:
    @_batched(2)
    def function(A: object) -> AnyArray:
        return apply_primitive(primitives.matrix_function, (A,), name=name, options=())

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"""Return the {what} of a square matrix, as ``scipy.linalg.{name}``; differentiable to any order."""
    )
    return _scipy_fallback(function)


sqrtm = _matrix_function("sqrtm", "square root")
logm = _matrix_function("logm", "logarithm")
cosm, sinm, tanm = (
    _matrix_function("cosm", "cosine"),
    _matrix_function("sinm", "sine"),
    _matrix_function("tanm", "tangent"),
)
coshm, sinhm = _matrix_function("coshm", "hyperbolic cosine"), _matrix_function("sinhm", "hyperbolic sine")
tanhm = _matrix_function("tanhm", "hyperbolic tangent")


@_scipy_fallback
def expm(A: Any) -> AnyArray:
    """Return the exponential of a square matrix, as ``scipy.linalg.expm``."""
    return linalg.matrix_exp(A)


@_scipy_fallback
@_batched(2)
def fractional_matrix_power(A: object, t: float) -> AnyArray:
    """Return a square matrix to a real, constant power t, as ``scipy.linalg.fractional_matrix_power``."""
    return apply_primitive(primitives.matrix_function, (A,), name="fractional_matrix_power", options=(float(t),))


@_scipy_fallback
def polar(a: IntoArray, side: str = "right") -> tuple[AnyArray, AnyArray]:
    """Return the unitary and positive semidefinite factors of a matrix, ``a = u @ p`` (or ``p @ u`` for side "left")."""
    if side not in ("right", "left"):
        raise ValueError(f"polar(side={side!r}): side must be 'right' or 'left'")
    w, s, vh = np.linalg.svd(a, full_matrices=False)
    p = _adjoint(vh) @ (s[..., None] * vh) if side == "right" else w @ (s[..., None] * _adjoint(w))
    return w @ vh, p


def _adjoint(x: Any) -> AnyArray:
    return np.conj(np.swapaxes(x, -1, -2))


# -- factors -----------------------------------------------------------------------------------------------------------


@_scipy_fallback
def cholesky(a: Any, lower: bool = False) -> AnyArray:
    """Return the Cholesky factor: by default the upper one of the upper triangle, as in SciPy."""
    return np.linalg.cholesky(a, upper=not lower)


@_scipy_fallback
def cho_factor(a: object, lower: bool = False) -> tuple[AnyArray, bool]:
    """Return the factor and ``lower`` for :func:`cho_solve`. (Elements outside of the triangle are 0 here.)"""
    return cholesky(a, lower), lower


@_scipy_fallback
def cho_solve(c_and_lower: tuple[Any, bool], b: object) -> AnyArray:
    """Return x with ``a @ x = b``, from ``cho_factor(a)``."""
    return _cho_solve(c_and_lower[0], b, c_and_lower[1])


@_batched(2, "1|2")
def _cho_solve(c: object, b: object, lower: bool) -> AnyArray:
    L = c if lower else _adjoint(c)
    return solve_triangular(_adjoint(L), solve_triangular(L, b, lower=True))


@_scipy_fallback
@_batched(2, "1|2")
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """Solve ``a @ x = b`` for a triangular matrix; ``trans`` 1 or "T" uses its transpose, 2 or "C" its adjoint."""
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"solve_triangular(trans={trans!r}): trans must be 0, 1 or 2, or 'N', 'T' or 'C'")
    transposed = trans not in (0, "N")
    a = (np.swapaxes(a, -1, -2) if trans in (1, "T") else _adjoint(a)) if transposed else a
    columns = _tensor(b)[:, None] if np.ndim(b) == 1 else _tensor(b)
    x = linalg.solve_triangular(_tensor(a), columns, upper=lower is transposed, unitriangular=unit_diagonal)
    return _restore_type(x[:, 0] if np.ndim(b) == 1 else x, a, b)


@_scipy_fallback
def lu_factor(a: Any) -> tuple[AnyArray, AnyArray]:
    """Return the LU factors in one matrix, and the pivot rows, counted from 0 as in SciPy."""
    lu, pivots = linalg.lu_factor(a)
    return lu, pivots - 1


@_scipy_fallback
def lu_solve(lu_and_piv: tuple[Any, Any], b: object, trans: int = 0) -> AnyArray:
    """Solve ``a @ x = b`` with ``lu_factor(a)``; ``trans`` 1 uses the transpose, 2 the adjoint."""
    return _lu_solve(*lu_and_piv, b, trans)


@_batched(2, 1, "1|2")
def _lu_solve(lu: Any, piv: object, b: Any, trans: int) -> Any:
    columns = _tensor(b)[:, None] if np.ndim(b) == 1 else _tensor(b)
    pivots = _tensor(piv) + 1
    if trans == 1:
        x = linalg.lu_solve(_tensor(lu), pivots, columns.conj(), adjoint=True).conj()
    else:
        x = linalg.lu_solve(_tensor(lu), pivots, columns, adjoint=trans == 2)
    return _restore_type(x[:, 0] if np.ndim(b) == 1 else x, lu, b)


def _tensor(x: object) -> Tensor:
    opened = as_tensors(x)
    return (
        opened
        if isinstance(opened, Tensor)
        else tensor_of(opened if isinstance(opened, ArrayLike) else np.asarray(opened))
    )


def _restore_type(tensor: Any, *given: object) -> AnyArray:
    """Return a tensor if an operand is a tensor, else an Array."""
    return tensor if any(isinstance(x, (Tensor, ArrayLike)) for x in given) else array_of(tensor)


# -- matrices with structure -------------------------------------------------------------------------------------------


@_scipy_fallback
def block_diag(*arrs: object) -> AnyArray:
    """Return a matrix with blocks on its diagonal, as ``scipy.linalg.block_diag``."""
    return _batched(*[2] * len(arrs))(_block_diag)(*arrs)


def _block_diag(*arrs: object) -> AnyArray:
    found = matrices.block_diag(*map(_tensor, arrs))
    return _restore_type(found, *arrs)


@_scipy_fallback
@_batched(1, 1)
def toeplitz(c: IntoArray, r: IntoArray | None = None) -> AnyArray:
    """Return a matrix with constant diagonals, from its first column and first row (default: the column's conjugate)."""
    c = np.ravel(c)
    r = np.conj(c) if r is None else np.ravel(r)
    m, n = len(c), len(r)
    both = np.concatenate([np.flip(c, 0), r[1:]])
    return both[m - 1 - np.arange(m)[:, None] + np.arange(n)]


@_scipy_fallback
def hankel(c: IntoArray, r: IntoArray | None = None) -> AnyArray:
    """Return a matrix with constant antidiagonals, from its first column and last row (default: zeros)."""
    c = np.ravel(c)
    r = np.zeros(len(c), dtype_of(c)) if r is None else np.ravel(r)
    return np.concatenate([c, r[1:]])[np.arange(len(c))[:, None] + np.arange(len(r))]


@_scipy_fallback
@_batched(1)
def circulant(c: Any) -> AnyArray:
    """Return a matrix whose columns are rotations of c."""
    n = len(c)
    return c[(np.arange(n)[:, None] - np.arange(n)) % n]


@_scipy_fallback
@_batched(1)
def companion(a: Any) -> Any:
    """Return the matrix whose characteristic polynomial has the coefficients a."""
    first = -a[1:] / a[0]
    return np.concatenate([first[None], np.eye(len(first))[:-1]])


@_scipy_fallback
@_batched(2, 2)
def khatri_rao(a: Any, b: Any) -> AnyArray:
    """Return the Kronecker products of the columns of two matrices."""
    return np.reshape(a[:, None] * b[None], (-1, np.shape(b)[1]))


# -- systems with structure --------------------------------------------------------------------------------------------


@_scipy_fallback
def solve_banded(l_and_u: tuple[int, int], ab: object, b: object) -> AnyArray:
    """Solve ``a @ x = b`` for a banded matrix: ``ab[u + i - j, j] = a[i, j]``, with l diagonals below and u above."""
    return _solve_banded(ab, b, *l_and_u)


@_batched(2, "1|2")
def _solve_banded(ab: Any, b: Any, lower: int, upper: int) -> AnyArray:
    n = np.shape(ab)[-1]
    if np.shape(ab)[0] != lower + upper + 1:
        raise ValueError(f"l = {lower} and u = {upper} require {lower + upper + 1} rows of ab, not {np.shape(ab)[0]}")
    k, col = (index.reshape(-1) for index in np.indices((lower + upper + 1, n)))
    row = col + k - upper
    inside = (row >= 0) & (row < n)
    return coo(ab[k[inside], col[inside]], row[inside], col[inside], (n, n)).solve(b)


@_scipy_fallback
@_batched(2, "1|2")
def solveh_banded(ab: AnyArray, b: object, lower: bool = False) -> AnyArray:
    """Solve ``a @ x = b`` for a positive definite banded matrix; ``ab`` contains one triangle."""
    u = np.shape(ab)[0] - 1
    n = np.shape(ab)[1]
    k, col = (index.reshape(-1) for index in np.indices((u + 1, n)))
    row = col + k if lower else col + k - u
    inside = (row >= 0) & (row < n)
    row, col, entries = row[inside], col[inside], ab[k[inside], col[inside]]
    off = np.flatnonzero(row != col)
    data = np.concatenate([entries, np.conj(entries[off])])
    return coo(data, np.append(row, col[off]), np.append(col, row[off]), (n, n)).solve(b)


@_scipy_fallback
def solve_toeplitz(c_or_cr: object, b: object) -> AnyArray:
    """Solve ``toeplitz(c, r) @ x = b``, by elimination."""
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    return _solve_toeplitz(c, r, b)


@_batched(1, 1, "1|2")
def _solve_toeplitz(c: Any, r: Any, b: Any) -> AnyArray:
    return np.linalg.solve(toeplitz(c, r), b)


@_scipy_fallback
def solve_circulant(c: IntoArray, b: IntoArray) -> AnyArray:
    """Solve ``circulant(c) @ x = b``, by Fourier transforms."""
    if np.ndim(c) > 1:
        raise NotImplementedError(
            f"solve_circulant(c, b): c must be a vector, but has the shape {np.shape(c)}: use vmap"
        )
    spectrum = np.fft.fft(c)
    x = np.fft.ifft(np.fft.fft(b, axis=0) / (spectrum if np.ndim(b) == 1 else spectrum[:, None]), axis=0)
    return x if "c" in (dtype_of(c).kind, dtype_of(b).kind) else np.real(x)


@_scipy_fallback
@_batched(2, 2, 2)
def solve_sylvester(a: object, b: object, q: object) -> AnyArray:
    """Solve ``a @ X + X @ b = q`` for X."""
    return apply_primitive(primitives.sylvester, (a, b, q))


@_scipy_fallback
@_batched(2, 2, 2, 2)
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, **options: object) -> AnyArray:
    """Solve ``aᴴ X + X a - X b r⁻¹ bᴴ X + q = 0``: the cost X of a linear-quadratic regulator with the gain ``r⁻¹ bᴴ X``.

    Shapes: a and q (n, n), b (n, m), r (m, m). Derivatives are with respect to the Hermitian parts of q and r.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> pole = lambda m: np.stack([0.0, 1.0, -1 / m, -0.1 / m]).reshape(2, 2)  # a mass on a spring
    >>> cost = lambda m: np.trace(
    ...     cr.scipy.linalg.solve_continuous_are(pole(m), np.stack([0.0, 1 / m])[:, None], np.eye(2), np.eye(1)))
    >>> round(float(cr.grad(cost)(1.3)), 5), round(float(cost(1.3001) - cost(1.2999)) / 0.0002, 5)
    (2.12287, 2.12287)
    """
    return _riccati("solve_continuous_are", (a, b, q, r), False, options)


@_scipy_fallback
@_batched(2, 2, 2, 2)
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, **options: object) -> AnyArray:
    """Solve ``aᴴ X a - X - aᴴ X b (r + bᴴ X b)⁻¹ bᴴ X a + q = 0`` for X, the cost of a discrete-time regulator.

    Shapes: a and q (n, n), b (n, m), r (m, m). Derivatives are with respect to the Hermitian parts of q and r; they solve
    a system of n² unknowns.
    """
    return _riccati("solve_discrete_are", (a, b, q, r), True, options)


def _riccati(name: str, operands: tuple[AnyArray, ...], discrete: bool, options: Params) -> AnyArray:
    given = [key for key, value in options.items() if value is not None and key != "balanced"]
    if given:
        raise NotImplementedError(f"{name}({given[0]}=): only the equation with a, b, q and r is differentiable")
    return apply_primitive(primitives.riccati, operands, discrete=discrete)


@_scipy_fallback
@_batched(2, 2)
def solve_continuous_lyapunov(a: object, q: object) -> AnyArray:
    """Solve ``a @ X + X @ aᴴ = q`` for X."""
    return apply_primitive(primitives.sylvester, (a, _adjoint(a), q))


@_scipy_fallback
@_batched(2, 2)
def solve_discrete_lyapunov(a: Any, q: Any) -> AnyArray:
    """Solve ``a @ X @ aᴴ - X + q = 0`` for X, by elimination with n² unknowns."""
    return primitives.discrete_lyapunov(a, q)


show(globals())
