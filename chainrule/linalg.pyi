"""Made by tools/stubs.py from the declarations."""

from typing import Any
from chainrule._src.arrays.types import DTypeLike
from chainrule._src.arrays.types import TensorLike
from chainrule._src.messages.kinds import LinAlgError as LinAlgError
from chainrule._src.tape.tensor import Tensor
from collections.abc import Sequence
def cholesky(A: Tensor, *, upper: bool = ..., out: Tensor | None = ...) -> Tensor:
    """Return the lower triangular L with A = L @ Lᴴ (with ``upper`` the U with A = Uᴴ @ U), for positive definite A."""
def cholesky_ex(A: Tensor, *, upper: bool = ..., check_errors: bool = ..., out: Tensor | None = ...) -> Any:
    """Return the Cholesky factor, as ``(L, info)``; NaN and the order of the first non-positive minor for indefinite matrices."""
def cond(A: Tensor, p: object = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the condition number: the ratio of the largest and smallest singular values, or ‖A‖·‖A⁻¹‖ in the norm ``p``."""
def cross(input: Tensor, other: Tensor, *, dim: int = ..., out: Tensor | None = ...) -> Tensor:
    """Return the vector product along ``dim``, which has length 3."""
def det(A: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the determinant of square matrices (..., n, n)."""
def diagonal(A: Tensor, *, offset: int = ..., dim1: int = ..., dim2: int = ...) -> Tensor:
    """Return the diagonals of matrices, as a view."""
def eig(A: Tensor, *, out: Tensor | None = ...) -> Any:
    """Return eigenvalues and eigenvectors of square matrices, as ``(eigenvalues, eigenvectors)``; both are complex."""
def eigh(A: Tensor, UPLO: str = ..., *, out: Tensor | None = ...) -> Any:
    """Return eigenvalues and eigenvectors of Hermitian matrices, as ``(eigenvalues, eigenvectors)``."""
def eigvals(A: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the eigenvalues of square matrices, in no order; they are complex."""
def eigvalsh(A: Tensor, UPLO: str = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the eigenvalues of Hermitian matrices, ascending. Gradients hold for repeated eigenvalues, too."""
def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the first n columns of H₁H₂…H_k, where H_i = I − tau_i·v·vᴴ and v is column i of A, with 1 on the diagonal."""
def inv(A: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the inverse of square matrices."""
def inv_ex(A: Tensor, *, check_errors: bool = ..., out: Tensor | None = ...) -> Any:
    """Return the inverse of square matrices, as ``(inverse, info)``; for a singular matrix NaN, and a positive info."""
def lstsq(A: Tensor, B: Tensor, rcond: float | None = ..., *, driver: str | None = ...) -> Any:
    """Return the X of minimal norm that minimizes ‖A @ X − B‖."""
def lu(A: Tensor, *, pivot: bool = ..., out: Tensor | None = ...) -> Any:
    """Return the factors of A = P @ L @ U, as ``(P, L, U)``: a permutation, a unit lower and an upper triangle."""
def lu_factor(A: Tensor, *, pivot: bool = ..., out: Tensor | None = ...) -> Any:
    """Return the factors of A = P @ L @ U in compact form, as ``(LU, pivots)``, for :func:`lu_solve`."""
def lu_factor_ex(A: Tensor, *, pivot: bool = ..., check_errors: bool = ..., out: Tensor | None = ...) -> Any:
    """Return :func:`lu_factor` with ``info`` (the index of a zero on U's diagonal, from 1; else 0) instead of an error."""
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = ..., adjoint: bool = ..., out: Tensor | None = ...) -> Tensor:
    """Return the solution X of A @ X = B, given :func:`lu_factor` of A."""
def matmul(input: Any, other: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the matrix product ``input @ other`` of vectors, matrices, or stacks of matrices (leading axes broadcast)."""
def matrix_exp(A: Tensor) -> Tensor:
    """Return the matrix exponential of square matrices."""
def matrix_norm(A: Tensor, ord: Any = ..., dim: Any = ..., keepdim: bool = ..., *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return the norm of the matrices in two axes: "fro", "nuc", inf, -inf, 1, -1, 2 or -2."""
def matrix_power(A: Tensor, n: int, *, out: Tensor | None = ...) -> Tensor:
    """Return the n-th power of square matrices; for negative n, of the inverse."""
def matrix_rank(A: Tensor, tol: object = ..., hermitian: bool = ..., *, atol: Any = ..., rtol: TensorLike | None = ..., out: Tensor | None = ...) -> Tensor:
    """Return how many singular values are above max(atol, rtol·largest). It has no gradient."""
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor:
    """Return the product of several matrices, in the order that takes the fewest multiplications."""
def norm(A: Tensor, ord: object = ..., dim: Any = ..., keepdim: bool = ..., *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return a vector norm (if ``dim`` is an int, or the tensor is 1-D) or a matrix norm (for two dims, or a 2-D tensor)."""
def pinv(A: Tensor, *, atol: object = ..., rtol: object = ..., hermitian: bool = ..., out: Tensor | None = ...) -> Tensor:
    """Return the Moore–Penrose pseudoinverse, of shape (..., n, m) for A of shape (..., m, n)."""
def qr(A: Tensor, mode: str = ..., *, out: Tensor | None = ...) -> Any:
    """Return the decomposition A = Q @ R, as ``(Q, R)``."""
def slogdet(A: Tensor, *, out: Tensor | None = ...) -> Any:
    """Return sign and logarithm of the absolute value of the determinant, as ``(sign, logabsdet)``."""
def solve(A: Tensor, B: Tensor, *, left: bool = ..., out: Tensor | None = ...) -> Tensor:
    """Return the solution X of A @ X = B (of X @ A = B with ``left=False``)."""
def solve_ex(A: Tensor, B: Tensor, *, left: bool = ..., check_errors: bool = ..., out: Tensor | None = ...) -> Any:
    """Return the solution X of A @ X = B, as ``(result, info)``; for a singular matrix NaN, and a positive info."""
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = ..., unitriangular: bool = ..., out: Tensor | None = ...) -> Tensor:
    """Return the solution X of T @ X = B (of X @ T = B with ``left=False``), where T is the upper or lower triangle of A."""
def svd(A: Tensor, full_matrices: bool = ..., *, driver: str | None = ..., out: Tensor | None = ...) -> Any:
    """Return the singular value decomposition A = U @ diag(S) @ Vh, as ``(U, S, Vh)``."""
def svdvals(A: Tensor, *, driver: str | None = ..., out: Tensor | None = ...) -> Tensor:
    """Return the singular values, descending. Gradients hold for repeated singular values, too."""
def tensorinv(A: Tensor, ind: int = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the inverse of A as a linear map, from its axes from ``ind`` on to the axes before."""
def tensorsolve(A: Tensor, B: Tensor, dims: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return X with tensordot(A, X, X.ndim) = B."""
def vander(x: Tensor, N: int | None = ...) -> Tensor:
    """Return the matrix of powers x⁰, x¹ … of the elements of the last axis."""
def vecdot(x: Tensor, y: Tensor, *, dim: int = ..., out: Tensor | None = ...) -> Tensor:
    """Return Σ conj(x)·y along ``dim``."""
def vector_norm(x: Tensor, ord: Any = ..., dim: Any = ..., keepdim: bool = ..., *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return the norm (Σ |x|^ord)^(1/ord) over ``dim`` (by default of all elements, for any shape)."""
