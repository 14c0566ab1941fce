"""Inverses, linear systems, determinants and products of ``torch.linalg``, and its top-level aliases.

``op`` makes these functions public, in ``chainrule.linalg``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays import return_types
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import calculus, joining, matrices, products, shaping
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import constant_on_device_of, takes_tensors
from chainrule._src.ops.linalg import numpy_functions as shared
from chainrule._src.ops.linalg.decompositions import cholesky, matrices_of, qr, svd, svdvals, tensor_like
from chainrule._src.ops.linalg.factors import inv_ex, lu_factor, lu_factor_ex, lu_solve, refuse
from chainrule._src.ops.linalg.norms import matrix_norm
from chainrule._src.table import decompositions
from chainrule._src.table import linalg as primitives
from chainrule._src.tape.protocol import as_array
from chainrule._src.tape.tensor import Tensor


def _same_dtype(function: str, a: Tensor, b: Tensor) -> None:
    if a.dtype != b.dtype:
        raise errors.matrix_dtypes(function, a, b)


# -- inverse and solution --------------------------------------------------------------------------------------------


@op("linalg.inv inverse", method=True, out=True)
def inv(A: Tensor) -> Tensor:
    """Return the inverse of square matrices.

    Args:
        A: (..., n, n), floating or complex.

    Raises:
        LinAlgError: a matrix is singular, or not square.

    >>> import chainrule as cr
    >>> cr.linalg.inv(cr.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return primitives.inv(matrices_of("linalg.inv", A, True))


def _is_vector(A: Tensor, B: Tensor) -> bool:
    """Return whether PyTorch treats B as (a batch of) vectors: it has one axis, or A's shape without the last axis."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


@op(out=True)
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return the solution X of A @ X = B (of X @ A = B with ``left=False``).

    Args:
        A: (..., n, n).
        B: (..., n, k); or vectors: (n,), or A's shape without the last axis. Leading axes broadcast.

    Raises:
        LinAlgError: a matrix is singular, or the shapes do not match.
        RuntimeError: the dtypes differ.

    >>> import chainrule as cr
    >>> cr.linalg.solve(cr.tensor([[2., 0.], [0., 4.]]), cr.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    name = "linalg.solve"
    A = matrices_of(name, A, True)
    B = tensor_like(name, B, 1)
    if not B.ndim:
        raise errors.matrix_rank_low(name, B, "B")
    _same_dtype(name, A, B)
    vector = _is_vector(A, B)
    if left:
        return shared.solution(name, A, B, vector)
    if vector:
        raise RuntimeError(f"{name}: Vector broadcasting of the left hand side is not supported for left=False.")
    if B.shape[-1] != A.shape[-1]:
        raise errors.matrix_shapes(name, A, B, False)
    return shared.solution(name, A.mT, B.mT, False).mT


@op(out=True)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """Return the solution X of A @ X = B, as ``(result, info)``; for a singular matrix NaN, and a positive info."""
    A = matrices_of("linalg.solve_ex", A, True)
    info = inv_ex(A.detach()).info
    if check_errors:
        refuse(info, "torch.linalg.solve_ex: The solver failed because the input matrix is singular.")
    if type(info._raw) is np.ndarray and not info._raw.any():
        return return_types.linalg_solve_ex(solve(A, B, left=left), info)
    failed = ew.ne(info, 0).unsqueeze(-1).unsqueeze(-1)
    X = solve(ew.where(failed, constant_on_device_of(A, np.eye(A.shape[-1], dtype=A.dtype)), A), B, left=left)
    failed = failed.squeeze(-1) if _is_vector(A, B) else failed
    return return_types.linalg_solve_ex(ew.where(failed, float("nan"), X), info)


@op(out=True)
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Return the solution X of T @ X = B (of X @ T = B with ``left=False``), where T is the upper or lower triangle of A.

    Args:
        A: (..., n, n). Only the triangle is read; with ``unitriangular``, its diagonal is taken as ones.
        B: (..., n, k), or (..., k, n) with ``left=False``. Leading axes broadcast.
    """
    name = "linalg.solve_triangular"
    A, B = matrices_of(name, A, True), matrices_of(name, B, False, "B")
    _same_dtype(name, A, B)
    if shape_of(B)[-2 if left else -1] != shape_of(A)[-1]:
        raise errors.matrix_shapes(name, A, B, left)
    if not left:
        A, B, upper = A.mT, B.mT, not upper
    A, B = shared.broadcast_stacks(A, B)
    x = primitives.solve_triangular(A, B, upper=bool(upper), unitriangular=bool(unitriangular))
    return x if left else x.mT


@op(out=True)
def pinv(A: Tensor, *, atol: object = None, rtol: object = None, hermitian: bool = False) -> Tensor:
    """Return the Moore–Penrose pseudoinverse, of shape (..., n, m) for A of shape (..., m, n).

    Args:
        atol, rtol: singular values up to max(atol, rtol·largest) count as zero. By default rtol is max(m, n)·ε, or 0
            if atol is given.
    """
    A = matrices_of("linalg.pinv", A, hermitian)
    atol, rtol = _tolerances(A, atol, rtol)
    return decompositions.pinv(_hermitian_from_lower(A) if hermitian else A, atol=atol, rtol=rtol)


def _tolerances(A: AnyArray, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Return both tolerances, as numbers or as arrays that broadcast against the singular values of each matrix."""
    absolute, relative = (_tolerance(x) for x in (atol, rtol))
    if relative is None:
        relative = shared.epsilon(A) if absolute is None else np.where(absolute > 0, 0.0, shared.epsilon(A))
        relative = float(relative) if np.ndim(relative) == 0 else relative
    return 0.0 if absolute is None else absolute, relative


def _tolerance(x: Any) -> Any:
    x = x._array() if isinstance(x, Tensor) else x
    return x[..., None] if np.ndim(x) else None if x is None else float(x)


def _hermitian_from_lower(A: Any) -> Any:
    """Return Hermitian matrices with the lower triangles of A; the gradient passes as if A were Hermitian."""
    plain = A.detach()
    below = matrices.tril(plain, -1)
    middle = matrices.diag_embed(ew.real(shaping.diagonal(plain, 0, -2, -1)))
    return ew.add(A, ew.sub(ew.add(ew.add(below, shaping.adjoint(below)), middle), plain))


@op(also={"b": "B"})
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Return the X of minimal norm that minimizes ‖A @ X − B‖.

    Returns:
        A named tuple ``(solution, residuals, rank, singular_values)``. Parts that ``driver`` does not compute are empty:
        residuals with "gelsy" (the default), the rank with "gels", the singular values with both.
    """
    name = "linalg.lstsq"
    A, B = matrices_of(name, A), tensor_like(name, B, 1)
    _same_dtype(name, A, B)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver}"
        )
    vector = _is_vector(A, B)
    b = B.unsqueeze(-1) if vector else B
    if b.shape[-2] != A.shape[-2]:
        raise RuntimeError(
            f"torch.linalg.lstsq: input.size(-2) should match other.size(-{1 if vector else 2}): got shapes "
            f"{tuple(A.shape)} and {tuple(B.shape)}"
        )
    m, n = A.shape[-2:]
    rtol = shared.epsilon(A) if rcond is None else float(rcond)
    x = products.matmul(decompositions.pinv(A, atol=0.0, rtol=rtol), b)
    s = svdvals(A)
    rank = matrix_rank(A.detach(), rtol=rtol)
    empty = A.new_zeros((0,), dtype=s.dtype)
    residuals = s.reshape(-1)[:0]
    if m > n and driver in ("gels", "gelsd", "gelss") and (driver == "gels" or bool((rank == n).all())):
        residuals = ew.square(ew.abs(products.matmul(A, x) - b)).sum(-2)
    return return_types.linalg_lstsq(
        x.squeeze(-1) if vector else x,
        residuals,
        A.new_zeros((0,), dtype=np.int64) if driver == "gels" else rank,
        s.detach() if driver in ("gelsd", "gelss") else empty,
    )


@op(out=True, sample="rand(2, 3, 6)")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of A as a linear map, from its axes from ``ind`` on to the axes before."""
    A = tensor_like("tensorinv", A)
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, rest = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if np.prod(first) != np.prod(rest):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{np.prod(rest, dtype=int)} != {np.prod(first, dtype=int)}"
        )
    flat = A.reshape(int(np.prod(first)), int(np.prod(rest)))
    return inv(flat).reshape(*rest, *first)


@op(out=True, also={"other": "B"}, sample="rand(2, 3, 6), rand(2, 3)")
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """Return X with tensordot(A, X, X.ndim) = B."""
    A, B = tensor_like("tensorsolve", A), tensor_like("tensorsolve", B, 1)
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    rest = tuple(A.shape[B.ndim :])
    n = B.numel()
    if np.prod(rest, dtype=int) != n or np.prod(tuple(A.shape[: B.ndim]), dtype=int) != n:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {np.prod(rest, dtype=int)} != {np.prod(tuple(A.shape[: B.ndim]), dtype=int)}"
        )
    return solve(A.reshape(n, n), B.reshape(n)).reshape(*rest)


# -- determinants ----------------------------------------------------------------------------------------------------


@op("linalg.det det", method=True, out=True)
def det(A: Tensor) -> Tensor:
    """Return the determinant of square matrices (..., n, n).

    >>> import chainrule as cr
    >>> cr.linalg.det(cr.tensor([[2., 1.], [1., 3.]]))
    tensor(5.)
    """
    return primitives.det(matrices_of("linalg.det", A, True))


@op("linalg.slogdet slogdet", method=True, out=True)
def slogdet(A: Tensor) -> Any:
    """Return sign and logarithm of the absolute value of the determinant, as ``(sign, logabsdet)``."""
    return return_types.linalg_slogdet(*primitives.slogdet(matrices_of("linalg.slogdet", A, True)))


@op("logdet", method=True)
def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of the determinant; NaN where it is negative."""
    sign, logabsdet = primitives.slogdet(matrices_of("logdet", input, True))
    if sign.dtype.kind == "c":
        return ew.add(logabsdet, ew.log(sign))
    return ew.where(ew.eq(sign, -1), float("nan"), logabsdet)


# -- rank and condition ----------------------------------------------------------------------------------------------


@op(out=True)
def cond(A: Tensor, p: object = None) -> Tensor:
    """Return the condition number: the ratio of the largest and smallest singular values, or ‖A‖·‖A⁻¹‖ in the norm ``p``."""
    A = tensor_like("linalg.cond", A)
    if A.ndim < 2:
        raise errors.matrix_rank_low("linalg.cond", A)
    if A.shape[-1] == 0 == A.shape[-2]:
        return A.abs().sum((-2, -1))
    if p in (None, 2, -2):
        s = svdvals(A)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    A = matrices_of("linalg.cond", A, True)
    inverse, info = inv_ex(A)
    singular = info > 0
    inverse = ew.where(singular.unsqueeze(-1).unsqueeze(-1), 0, inverse)
    return ew.where(singular, np.inf, matrix_norm(A, p) * matrix_norm(inverse, p))


@op(out=True)
def matrix_rank(
    A: Tensor, tol: object = None, hermitian: bool = False, *, atol: Any = None, rtol: TensorLike | None = None
) -> Tensor:
    """Return how many singular values are above max(atol, rtol·largest). It has no gradient."""
    A = matrices_of("torch.linalg.matrix_rank", A, hermitian, "input")
    atol, rtol = _tolerances(A, tol if tol is not None else atol, rtol)
    plain = A.detach()
    s = svdvals(_hermitian_from_lower(plain) if hermitian else plain)
    if not s.shape[-1]:
        return s.sum(-1).to(np.int64)
    largest = s.amax(-1, keepdim=True)
    limit = ew.maximum(ew.mul(largest, _like(rtol, s)), _like(atol, s))
    return ew.gt(s, limit).sum(-1)


def _like(tolerance: TensorLike, s: Tensor) -> Tensor:
    return tolerance if isinstance(tolerance, Tensor) else constant_on_device_of(s, as_array(tolerance, s.dtype))


# -- products and vectors --------------------------------------------------------------------------------------------


@op("linalg.matrix_power matrix_power", method=True, out=True)
def matrix_power(A: Tensor, n: int) -> Tensor:
    """Return the n-th power of square matrices; for negative n, of the inverse."""
    A = tensor_like("matrix_power", A)
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool):
        raise TypeError(f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    if A.ndim < 2:
        raise errors.matrix_rank_low("linalg.matrix_power", A)
    if A.shape[-1] != A.shape[-2]:
        raise errors.matrix_not_square("linalg.matrix_power", A)
    if n < 0:
        matrices_of("linalg.matrix_power", A)
    return shared.power(A, int(n))


@op(out=True, sample="[rand(2, 3), rand(3, 4), rand(4, 5)]")
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of several matrices, in the order that takes the fewest multiplications."""
    return products.multi_dot(tensors)


@op(out=True)
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the vector product along ``dim``, which has length 3.

    >>> import chainrule as cr
    >>> cr.linalg.cross(cr.tensor([1., 0., 0.]), cr.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    a, b = tensor_like("cross", input), tensor_like("cross", other, 1)
    if a.ndim != b.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    return calculus.cross_along("linalg.cross", a, b, dim)


@op(out=True)
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return Σ conj(x)·y along ``dim``."""
    return ew.mul(ew.conj(tensor_like("vecdot", x)), y).sum(dim)


@op()
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return the diagonals of matrices, as a view."""
    return shaping.diagonal(A, offset, dim1, dim2)


@op(sample="rand(3)")
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Return the matrix of powers x⁰, x¹ … of the elements of the last axis."""
    x = joining.atleast_1d(tensor_like("vander", x))
    n = x.shape[-1] if N is None else N
    if N is not None and N <= 1:
        raise RuntimeError("N must be greater than 1.")
    x = x.long() if x.dtype.kind in "biu" else x
    return ew.pow(x.unsqueeze(-1), constant_on_device_of(x, np.arange(n)))


# -- names at the top level and methods ------------------------------------------------------------------------------


@op("cholesky", method=True, out=True)
def top_cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return the Cholesky factor, as :func:`linalg.cholesky` does."""
    return cholesky(input, upper=upper)


@op("pinverse", method=True)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return the pseudoinverse, as :func:`linalg.pinv` does with ``rtol=rcond``."""
    return pinv(input, rtol=rcond)


@op("qr", method=True)
def top_qr(input: Tensor, some: bool = True) -> Any:
    """Return the QR decomposition, as :func:`linalg.qr` does; ``some=False`` means the mode "complete"."""
    return qr(input, "reduced" if some else "complete")


@op("svd", method=True)
def top_svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """Return the singular value decomposition with V itself, not Vᴴ: input = U @ diag(S) @ Vᴴ. See :func:`linalg.svd`."""
    u, s, vh = svd(input, full_matrices=not some)
    if not compute_uv:
        u, vh = shaping.clone(u) * 0, shaping.clone(vh) * 0
    return return_types.svd(u, s, shaping.adjoint(vh))


@op("cholesky_inverse", method=True, out=True)
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of the matrix whose Cholesky factor is L."""
    L = matrices_of("cholesky_inverse", L, True)
    half = solve_triangular(L, constant_on_device_of(L, np.eye(L.shape[-1], dtype=L.dtype)), upper=upper)
    return products.matmul(half, shaping.adjoint(half)) if upper else products.matmul(shaping.adjoint(half), half)


@op("cholesky_solve", method=True, out=True, also={"input": "B", "input2": "L"}, sample="rand(3, 2), eye(3)")
@takes_tensors
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Return the solution X of A @ X = B, where L is the Cholesky factor of A."""
    lower = shaping.adjoint(L) if upper else L
    return solve_triangular(shaping.adjoint(lower), solve_triangular(lower, B, upper=False), upper=True)


@op("lu", method=True)
def top_lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """Return :func:`linalg.lu_factor`; with ``get_infos``, :func:`linalg.lu_factor_ex`."""
    return lu_factor_ex(A, pivot=pivot) if get_infos else tuple(lu_factor(A, pivot=pivot))


@op("lu_solve", method=True, out=True, sample="rand(3, 2), rand(3, 3), tensor([1, 2, 3]).int()")
def top_lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Solve as :func:`linalg.lu_solve` does, with the right-hand side as the first argument."""
    return lu_solve(LU_data, LU_pivots, b)


@op("triangular_solve", method=True, out=True, also={"input": "b"})
@takes_tensors
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """Solve as :func:`linalg.solve_triangular` does, with the right-hand side first; return A, too."""
    upper = upper != transpose
    solution = solve_triangular(A.mT if transpose else A, b, upper=upper, unitriangular=unitriangular)
    return return_types.triangular_solve(solution, shaping.clone(A))
