"""Matrix decompositions of ``chainrule.linalg``: Cholesky, eigenvalues of Hermitian matrices, singular values, QR; and exp.

``op`` makes these functions public.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.api.declare import op
from chainrule._src.api.operands import operand
from chainrule._src.arrays import return_types
from chainrule._src.messages import errors
from chainrule._src.ops import shaping
from chainrule._src.ops.linalg.numpy_functions import checked_matrices
from chainrule._src.table import decompositions
from chainrule._src.table import linalg as primitives
from chainrule._src.tape.tensor import Tensor


def tensor_like(function: str, x: Any, position: int = 0) -> Tensor:
    """Check that an argument is a tensor or an array; return it as a tensor."""
    if isinstance(x, Tensor):
        return x
    x = operand("linalg_" + function.rpartition(".")[2], position, x)
    if not hasattr(x, "dtype"):
        raise errors.wrong_operand("linalg_" + function.rpartition(".")[2], position, x)
    return x


def matrices_of(function: str, x: Any, square: bool = False, name: str = "A") -> Any:
    """Check that an argument is a floating or complex (square) matrix or stack of matrices, and return it."""
    return checked_matrices(function, tensor_like(function, x), square, name)


@op(out=True)
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Return the lower triangular L with A = L @ Lᴴ (with ``upper`` the U with A = Uᴴ @ U), for positive definite A.

    Raises:
        LinAlgError: a matrix is not positive definite.

    >>> import chainrule as cr
    >>> cr.linalg.cholesky(cr.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    factor = primitives.cholesky(matrices_of("linalg.cholesky", A, True))
    return shaping.adjoint(factor) if upper else factor


@op(out=True)
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Return eigenvalues and eigenvectors of Hermitian matrices, as ``(eigenvalues, eigenvectors)``.

    Args:
        A: (..., n, n), Hermitian; only the triangle ``UPLO`` ("L" or "U") is read.

    Gradients through eigenvectors need distinct eigenvalues.
    """
    return return_types.linalg_eigh(*decompositions.eigh(matrices_of("linalg.eigh", A, True), UPLO=_uplo(UPLO)))


def _uplo(UPLO: str) -> str:
    if str(UPLO).upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


@op(out=True)
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of Hermitian matrices, ascending. Gradients hold for repeated eigenvalues, too."""
    return eigh(A, UPLO).eigenvalues


@op(out=True)
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Return the singular value decomposition A = U @ diag(S) @ Vh, as ``(U, S, Vh)``.

    Args:
        A: (..., m, n).
        full_matrices: make U and Vh square. The extra columns are not determined: a gradient through them raises.
    """
    A = matrices_of("linalg.svd", A)
    return return_types.linalg_svd(
        *decompositions.svd(A, full_matrices=bool(full_matrices) and A.shape[-1] != A.shape[-2])
    )


@op(out=True)
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values, descending. Gradients hold for repeated singular values, too."""
    return decompositions.svd(matrices_of("linalg.svd", A), full_matrices=False)[1]


@op(out=True)
def qr(A: Tensor, mode: str = "reduced") -> Any:
    """Return the decomposition A = Q @ R, as ``(Q, R)``.

    Args:
        mode: "reduced"; "complete" (a square Q; no gradient for more rows than columns); "r" (Q is empty).
    """
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    A = matrices_of("linalg.qr", A)
    q, r = decompositions.qr(A, mode="reduced" if mode == "r" else mode)
    return return_types.linalg_qr(A.new_zeros((0,)) if mode == "r" else q, r)


@op("linalg.matrix_exp matrix_exp", method=True)
def matrix_exp(A: Tensor) -> Tensor:
    """Return the matrix exponential of square matrices."""
    return decompositions.matrix_exp(matrices_of("linalg.matrix_exp", A, True))
