"""Linear algebra: inverses, solutions, determinants and Cholesky factors of the matrices in the last two axes.

``ops.linalg`` applies the primitives.

The formulas are from Giles (2008), "An extended collection of matrix derivative results for forward and reverse
mode algorithmic differentiation", extended to complex matrices; for Cholesky from Murray (2016). The rules consist of
products and solutions, so they are differentiable, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import call_as_one_operation, is_array, is_recorded, scalar_to_array
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.messages import errors
from chainrule._src.rules.kinds import call, opaque
from chainrule._src.rules.rules import conjugate
from chainrule._src.table import gufuncs, triangular
from chainrule._src.table.recent_factors import has_shared_factors, inverse_for_rules
from chainrule._src.tape.protocol import on_numbers, predicate_holds

ndarray = np.ndarray
raw = np.linalg


def H(x: AnyArray) -> AnyArray:
    """Return the conjugate transpose of the matrices in the last two axes."""
    return conjugate(x.mT)


def eye(n: int, x: AnyArray) -> Any:
    """Return the identity in the real dtype of ``x``."""
    return np.eye(n, dtype=np.dtype(x.dtype.type(0).real.dtype))


def _at_matrix(x: AnyArray) -> Any:
    """Reshape one number per matrix so that it multiplies matrices."""
    return np.reshape(x, (*shape_of(x), 1, 1))


def _trace_of_product(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return tr(aᵀb) for each matrix."""
    return np.sum(a * b, axis=(-2, -1))


def is_zero(g: AnyArray) -> bool:
    """Return whether a cotangent is an array of zeros, as the engine fills in for an unused output."""
    return is_array(g) and not g.any()


def _batch_element(index: tuple[int, ...], x: AnyArray) -> str:
    """Return PyTorch's text for the position of a matrix in a batch."""
    if x.ndim == 2:
        return ""
    return f"(Batch element {int(np.ravel_multi_index(index, x.shape[:-2]))}): "


# -- inverse and solution --------------------------------------------------------------------------------------------


def dependent_column(matrix: AnyArray) -> int:
    """Return the first column that is linearly dependent on those before it, counted from 1."""
    for k in range(1, matrix.shape[-1] + 1):
        if raw.matrix_rank(matrix[:, :k]) < k:
            return k
    return matrix.shape[-1]


def _singular(x: AnyArray) -> errors.LinAlgError:
    for index in np.ndindex(x.shape[:-2]):
        try:
            raw.inv(x[index])
        except raw.LinAlgError:
            return errors.singular_inverse(_batch_element(index, x), dependent_column(x[index]))
    return errors.LinAlgError("linalg.inv: the input matrix is singular")


@opaque(
    vjp=lambda g, out: -(H(out) @ g @ H(out)),
    jvp=lambda t, out: -(out @ t @ out),
    naming="LinalgInvExBackward0",
    samples=[call((3, 3), make="general"), call((2, 2, 2), make="general")],
    promotion="float",
    structure="ab:ij",
)
def inv(x: AnyArray) -> AnyArray | None:
    """Return the inverse of every matrix."""
    try:
        return gufuncs.inv(x)
    except raw.LinAlgError:
        raise _singular(x) from None


def _adjoint_solution(x: AnyArray, y: AnyArray) -> AnyArray | None:
    """Solve with the conjugate transpose of a matrix that ``solve`` has accepted.

    The LU factors of the transpose of a numerically singular matrix can have an exact zero pivot although those of the matrix have
    none. Relative changes of the entries by a few units of rounding remove the zero. They are not larger than the errors of LU factors.
    """
    try:
        return solve(H(x), y)
    except errors.LinAlgError:
        n, real = shape_of(x)[-1], np.finfo(dtype_of(x))
        factors = 1 + 4 * real.eps * np.sin(np.arange(n * n)).reshape(n, n)
        return solve(H(x) * factors.astype(real.dtype), y)


@opaque(
    shared={"gy": lambda g, x: _adjoint_solution(x, g)},
    vjp={"x": lambda gy, out: -(gy @ H(out)), "y": lambda gy: gy},
    jvp={"x": lambda t, x, out: -solve(x, t @ out), "y": lambda t, x: solve(x, t)},
    formula={"x": "-np.linalg.solve(H(x), g) @ H(out)", "y": "np.linalg.solve(H(x), g)"},
    aliases={"x": "A", "y": "B"},
    naming="LinalgSolveExBackward0",
    samples=[call((3, 3), (3, 2), make="general"), call((2, 3, 3), (2, 3, 1), make="general")],
    promotion="none",
    structure={"x": "ab:ij", "y": "kj:ij"},
)
def solve(x: AnyArray, y: AnyArray) -> AnyArray | None:
    """Return the matrix X with x @ X = y; both operands are matrices with the same leading axes."""
    try:
        return gufuncs.solve(x, y)
    except raw.LinAlgError:
        raise errors.singular_system("torch.linalg.solve") from None


def _triangle(x: AnyArray, upper: bool, unit: bool) -> AnyArray:
    """Return the selected triangle, with ones on its diagonal if ``unit``."""
    if unit:
        part = np.triu(x, 1) if upper else np.tril(x, -1)
        return part + np.eye(shape_of(x)[-1], dtype=x.dtype)
    return np.triu(x) if upper else np.tril(x)


def _mask_triangle(x: AnyArray, upper: bool, unit: bool) -> AnyArray:
    """Set the elements outside of the selected triangle to zero."""
    return np.triu(x, int(unit)) if upper else np.tril(x, -int(unit))


def transposed_solution(x: AnyArray, y: AnyArray, upper: bool, unitriangular: bool) -> AnyArray | None:
    """Solve with the conjugate transpose of a triangular matrix."""
    return solve_triangular(H(x), y, upper=not upper, unitriangular=unitriangular)


def over(x: AnyArray, u: AnyArray) -> AnyArray | None:
    """Return x·u⁻¹ for an upper triangular u."""
    return H(transposed_solution(u, H(x), True, False))


def over_transposed(x: AnyArray, u: AnyArray) -> AnyArray | None:
    """Return x·u⁻ᴴ for an upper triangular u."""
    return H(solve_triangular(u, H(x), upper=True, unitriangular=False))


_TRIANGLES = [
    call((3, 3), (3, 2), make="upper", upper=True, unitriangular=False),
    call((3, 3), (3, 2), make="lower", upper=False, unitriangular=False),
    call((2, 3, 3), (2, 3, 1), make="unit_lower", upper=False, unitriangular=True),
]


@opaque(
    vjp={
        "x": lambda g, x, out, *, upper, unitriangular: (
            -_mask_triangle(transposed_solution(x, g, upper, unitriangular) @ H(out), upper, unitriangular)
        ),
        "y": lambda g, x, *, upper, unitriangular: transposed_solution(x, g, upper, unitriangular),
    },
    jvp={
        "x": lambda t, x, out, *, upper, unitriangular: (
            -solve_triangular(
                x, _mask_triangle(t, upper, unitriangular) @ out, upper=upper, unitriangular=unitriangular
            )
        ),
        "y": lambda t, x, **params: solve_triangular(x, t, **params),
    },
    formula={
        "x": "-(np.triu if upper else np.tril)(np.linalg.solve(H(x), g) @ H(out), unitriangular * (2 * upper - 1))",
        "y": "np.linalg.solve(H(x), g)",
    },
    aliases={"x": "A", "y": "B"},
    naming="LinalgSolveTriangularBackward0",
    samples=_TRIANGLES,
    promotion="none",
    structure={"x": "ab:ij", "y": "kj:ij"},
)
def solve_triangular(x: AnyArray, y: AnyArray, *, upper: bool, unitriangular: bool) -> AnyArray | None:
    """Return the matrix X with T @ X = y, where T is the upper or lower triangle of x."""
    if is_array(x) and is_array(y) and x.dtype == y.dtype and x.dtype.char in "fd":
        return triangular.solution(x, y, upper, unitriangular)
    return _triangular_solve(_triangle(x, upper, unitriangular), y, upper)


def _triangular_solve(x: AnyArray, y: AnyArray, upper: bool) -> AnyArray | None:
    """Return x⁻¹ @ y for triangular x, by recursive halving. NumPy's ``solve`` would spend most of its time in an LU."""
    n = x.shape[-1]
    if n <= _SMALL:
        return solve.value(x, y)
    above, below = slice(n // 2), slice(n // 2, None)
    first, second = (below, above) if upper else (above, below)
    solved = _triangular_solve(x[..., first, first], y[..., first, :], upper)
    rest = _triangular_solve(x[..., second, second], y[..., second, :] - x[..., second, first] @ solved, upper)
    return np.concatenate((rest, solved) if upper else (solved, rest), axis=-2)


_SMALL = 32  # largest size at which the LU decomposition takes no measurable time


# -- determinants ----------------------------------------------------------------------------------------------------


def _cofactors(x: Any, out: Any) -> AnyArray:
    """Return ∂det/∂x: det(x)·x⁻ᵀ, or for stacks with a singular matrix, products of the other singular values.

    If the result is differentiated again, det(x)·x⁻ᵀ is used for well-conditioned matrices only: its derivatives are differences of
    numbers that are larger than the result by the condition number.
    """
    if is_recorded(x) or is_recorded(out):
        if is_recorded(x) and _has_inverse(x.inside):
            # A replay with a singular matrix fails here, and then runs eagerly instead.
            return _at_matrix(out) * inv(x).mT
        return call_as_one_operation(_cofactors, x, out)
    if type(x) is ndarray:
        try:
            return _at_matrix(np.asarray(out)) * gufuncs.inv(x).mT
        except raw.LinAlgError:
            u, s, vh = raw.svd(x)
            n = s.shape[-1]
            others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
            phase = _at_matrix(np.asarray(raw.det(u) * raw.det(vh)))
            return phase * np.conjugate((u * others[..., None, :]) @ vh)
    ill = on_numbers(x, _is_ill_conditioned)
    if not predicate_holds(ill, np.any):
        return _at_matrix(out) * inv(x).mT
    at = ill[..., None, None]
    usual = _at_matrix(out) * inv(np.where(at, np.eye(shape_of(x)[-1], dtype=x.dtype), x)).mT
    return np.where(at, _cofactors_without_inverse(x), usual)


def _has_inverse(x: AnyArray) -> bool:
    try:
        gufuncs.inv(x)
    except raw.LinAlgError:
        return False
    return True


_SMALL_SINGULAR_VALUE = 1e-3  # relative to the largest one
_FEW_ROWS = 3  # maximum number of rows for which the polynomial is accurate


def _is_ill_conditioned(x: AnyArray) -> AnyArray:
    """Return a mask of the matrices that have no inverse, or one with a large condition number ‖|x⁻¹| |x|‖.

    Scaling the rows does not change this number (Skeel, 1979). Derivatives of det(x)·x⁻¹ lose as many digits as the number has. The
    limit is a third of the digits of the dtype. With rows of length 1 the number is at most about 2 / det(x) (Guggenheimer et al., 1995).
    """
    value, limit = raw.det(x), np.finfo(x.dtype).eps ** (-1 / 3)
    with np.errstate(all="ignore"):
        rows = np.add.reduce(np.square(np.abs(x)), -1)
        if np.all(np.square(np.abs(value) * (limit / 2)) > np.multiply.reduce(rows, -1)):
            return np.zeros(x.shape[:-2], bool)
        singular = np.asarray(value == 0)
        regular = np.where(_at_matrix(singular), np.eye(x.shape[-1], dtype=x.dtype), x) if singular.any() else x
        inverse = raw.inv(regular)
        condition = np.max(np.sum(np.abs(inverse) @ np.abs(x), -1), -1, initial=0)
    return np.asarray(singular | (condition > limit))


def _cofactors_without_inverse(x: AnyArray) -> AnyArray:
    """Return the transposed adjugate without x⁻¹, so that derivatives of all orders are accurate for singular x, too.

    The singular vectors u and v of the values of x are constants, so y = uᴴ·x·v is diagonal up to rounding. The block of y with the
    large singular values is inverted. The Schur complement of this block has the small singular values. Its adjugate is computed by a
    polynomial if it has few rows or contains only rounding errors, and recursively otherwise.
    """
    n = shape_of(x)[-1]
    if n <= _FEW_ROWS:
        return _adjugate(x).mT
    small = 1
    counts = on_numbers(x, _small_singular_values)
    while small < n and predicate_holds(counts, _exceeds(small)):
        small += 1
    if small == n:  # a matrix of zeros
        return _adjugate(x).mT
    uh, v = on_numbers(x, _left_singular_vectors), on_numbers(x, _right_singular_vectors)
    y, k = uh @ x @ v, n - small
    large = y[..., :k, :k]
    inverse, scale = inv(large), _at_matrix(det(large))
    left, right = inverse @ y[..., :k, k:], y[..., k:, :k] @ inverse
    schur = y[..., k:, k:] - y[..., k:, :k] @ left
    is_rounding = predicate_holds(on_numbers(x, _negligible_singular_values), _exceeds(small - 1))
    adjugate = _adjugate(schur) if is_rounding else _cofactors_without_inverse(schur).mT
    corner = scale * adjugate
    rest = scale * (schur @ adjugate)[..., :1, :1] * inverse + left @ corner @ right
    rows = [np.concatenate([rest, -left @ corner], -1), np.concatenate([-corner @ right, corner], -1)]
    return (_at_matrix(on_numbers(x, _phase)) * (v @ np.concatenate(rows, -2) @ uh)).mT


def _small_singular_values(x: AnyArray) -> AnyArray:
    return _singular_values_up_to(_SMALL_SINGULAR_VALUE, x)


def _negligible_singular_values(x: AnyArray) -> AnyArray:
    return _singular_values_up_to(1000 * float(np.finfo(x.dtype).eps), x)


def _singular_values_up_to(fraction: float, x: AnyArray) -> AnyArray:
    """Count the singular values of every matrix that are at most a fraction of the largest one."""
    s = raw.svd(x, compute_uv=False)
    return np.asarray(np.sum(s <= fraction * s[..., :1], -1))


@functools.cache
def _exceeds(number: int) -> Callable[[Any], Any]:
    return lambda counts: np.any(counts > number)


def _left_singular_vectors(x: AnyArray) -> AnyArray:
    return np.conjugate(raw.svd(x)[0].mT)


def _right_singular_vectors(x: AnyArray) -> AnyArray:
    return np.conjugate(raw.svd(x)[2].mT)


def _phase(x: AnyArray) -> AnyArray:
    """Return det(u)·det(vᴴ) of the singular vectors."""
    u, _, vh = raw.svd(x)
    return np.asarray(raw.det(u) * raw.det(vh))


def _adjugate(x: AnyArray) -> AnyArray:
    """Return det(x)·x⁻¹ as a polynomial of x (Faddeev–LeVerrier): derivatives of all orders hold, also for singular x."""
    n = shape_of(x)[-1]
    eye = np.eye(n, dtype=x.dtype)
    out = eye + 0 * x
    for k in range(1, n):
        product = x @ out
        out = product - eye * _at_matrix(np.trace(product, 0, -2, -1) / k)
    return out if n % 2 else -out


@opaque(
    vjp=lambda g, x, out: _at_matrix(g) * conjugate(_cofactors(x, out)),
    jvp=lambda t, x, out: _trace_of_product(_cofactors(x, out), t),
    formula="(g * np.conjugate(out))[..., None, None] * H(np.linalg.inv(x))",
    aliases={"x": "A"},
    naming="LinalgDetBackward0",
    samples=[call((3, 3), make="general"), call((2, 2, 2), make="general")],
    promotion="float",
    structure="ab:",
)
def det(x: AnyArray) -> AnyArray:
    """Return the determinant of every matrix. The derivative holds for singular matrices, too."""
    return gufuncs.det(x)


def _inv_or_nan(x: AnyArray, logabsdet: AnyArray) -> AnyArray:
    """Return the inverse, and NaN for singular matrices. If none is singular, invert x itself: a trace reuses its factors."""
    value = getattr(logabsdet, "inside", None) if is_recorded(logabsdet) else logabsdet
    if isinstance(value, (ndarray, np.generic)) and not (value == -np.inf).any():
        if is_array(x) and has_shared_factors(x):
            return call_as_one_operation(inverse_for_rules, x)
        return inv(x)  # if this fails in a replay, the function runs eagerly
    return inv(np.where((logabsdet == -np.inf)[..., None, None], np.array(np.nan, dtype_of(x)), x))


def _slogdet_vjp(g: tuple[AnyArray, ...], x: AnyArray, sign: TensorLike, logabsdet: TensorLike) -> AnyArray:
    g_sign, g_log = g
    if x.dtype.kind == "c":
        g_log = g_log - 1j * np.imag(np.conjugate(g_sign) * sign)
    return _at_matrix(g_log) * H(_inv_or_nan(x, logabsdet))


def _slogdet_jvp(t: AnyArray, x: AnyArray, sign: AnyArray, logabsdet: AnyArray) -> tuple[TensorLike, ...]:
    trace = _trace_of_product(_inv_or_nan(x, logabsdet).mT, t)
    if x.dtype.kind == "c":
        return sign * (1j * np.imag(trace)), np.real(trace)
    return np.zeros_like(sign), trace


@opaque(
    vjp=_slogdet_vjp,
    jvp=_slogdet_jvp,
    outputs=("sign", "logabsdet"),
    formula=(
        "(g[1] - (1j * np.imag(np.conjugate(g[0]) * sign) if x.dtype.kind == 'c' else 0))[..., None, None]"
        " * H(np.linalg.inv(x))"
    ),
    aliases={"x": "A"},
    naming="LinalgSlogdetBackward0",
    samples=[call((3, 3), make="general"), call((2, 2, 2), make="general")],
    promotion="float",
    structure="ab:,",
    remedy="the matrix is singular: its log-determinant is -inf and has no gradient, so add a small number to the diagonal",
)
def slogdet(x: AnyArray) -> tuple[AnyArray, ...]:
    """Return the sign and the logarithm of the absolute value of the determinant of every matrix."""
    sign, logabsdet = gufuncs.slogdet(x)
    return scalar_to_array(sign), scalar_to_array(logabsdet)


# -- cholesky --------------------------------------------------------------------------------------------------------


def _half(x: AnyArray) -> AnyArray:
    """Return the lower triangle, with half of the diagonal."""
    return np.tril(x) - 0.5 * x * eye(shape_of(x)[-1], x)


def hermitian(x: AnyArray) -> AnyArray:
    """Return the Hermitian part: the projection of a derivative on the space of Hermitian matrices."""
    return 0.5 * (x + H(x))


def _cholesky_vjp(g: AnyArray, out: AnyArray) -> AnyArray:
    phi = _half(H(out) @ g)
    left = transposed_solution(out, hermitian(phi), False, False)  # L⁻ᴴ·middle
    return H(transposed_solution(out, H(left), False, False))


def _cholesky_jvp(t: AnyArray, out: AnyArray) -> AnyArray:
    left = solve_triangular(out, hermitian(t), upper=False, unitriangular=False)  # L⁻¹·dA
    return out @ _half(H(solve_triangular(out, H(left), upper=False, unitriangular=False)))


def bad_minor(matrix: AnyArray) -> int:
    """Return the order of the first leading minor that is not positive definite; 0 if all are."""
    for k in range(1, matrix.shape[-1] + 1):
        try:
            raw.cholesky(matrix[:k, :k])
        except raw.LinAlgError:
            return k
    return 0


def _not_positive(x: AnyArray) -> errors.LinAlgError:
    for index in np.ndindex(x.shape[:-2]):
        k = bad_minor(x[index])
        if k:
            return errors.not_positive_definite(_batch_element(index, x), k)
    return errors.LinAlgError("linalg.cholesky: the input is not positive-definite")


@opaque(
    vjp=_cholesky_vjp,
    jvp=_cholesky_jvp,
    formula=(
        "(lambda P, K: 0.5 * H(K) @ (P + H(P)) @ K)"
        "(np.tril(H(out) @ g) * (1 - 0.5 * np.eye(out.shape[-1])), np.linalg.inv(out))"
    ),
    naming="LinalgCholeskyExBackward0",
    samples=[call((3, 3), make="spd"), call((2, 2, 2), make="spd")],
    promotion="float",
    structure="ab:ij",
)
def cholesky(x: AnyArray) -> AnyArray | None:
    """Return the lower triangular L with L @ Lᴴ = x, for positive definite x. The gradient is Hermitian."""
    try:
        return gufuncs.cholesky(x)
    except raw.LinAlgError:
        raise _not_positive(x) from None
