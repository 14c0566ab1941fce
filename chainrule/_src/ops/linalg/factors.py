"""LU and Householder factors, eigenvalues of general matrices, and the ``_ex`` functions, which return errors as ``info``.

They are public in ``chainrule.linalg``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays import return_types
from chainrule._src.arrays.any_array import is_array, lies_within
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import matrices, products, shaping
from chainrule._src.ops.arguments import constant_on_device_of, tensor_of
from chainrule._src.ops.linalg.decompositions import matrices_of
from chainrule._src.ops.linalg.numpy_functions import broadcast_stacks, float_matrices
from chainrule._src.rules.primitive import Primitive
from chainrule._src.table import eigen, lapack
from chainrule._src.table import linalg as primitives
from chainrule._src.table import lu as _lu_rows
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.foreign import innermost_foreign
from chainrule._src.tape.protocol import implements, predicate_holds
from chainrule._src.tape.tensor import Tensor, wrap

ndarray = np.ndarray


# -- eigenvalues -----------------------------------------------------------------------------------------------------


@op(out=True)
def eig(A: Tensor) -> Any:
    """Return eigenvalues and eigenvectors of square matrices, as ``(eigenvalues, eigenvectors)``; both are complex.

    Args:
        A: (..., n, n), floating or complex.

    The eigenvectors have length 1. A loss must not depend on their phases. Gradients through eigenvectors need distinct
    eigenvalues; gradients through eigenvalues do not.

    >>> import chainrule as cr
    >>> cr.linalg.eig(cr.tensor([[0., 1.], [-1., 0.]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    A = matrices_of("linalg.eig", A, True)
    if type(A._raw) is ndarray and not np.isfinite(A._raw).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return return_types.linalg_eig(*bind(eigen.eig, (A,), {"strict": True}))


@op(out=True)
def eigvals(A: Tensor) -> Tensor:
    """Return the eigenvalues of square matrices, in no order; they are complex."""
    return eig(A).eigenvalues


@implements(np.linalg.eig)
def _numpy_eig(a: Any) -> Any:
    w, v = eigen.eig(float_matrices("eig", a, True), strict=True)
    if a.dtype.kind != "c" and _real(w):
        w, v = np.real(w), np.real(v)
    return return_types.linalg_eig(w, v)


@implements(np.linalg.eigvals)
def _numpy_eigvals(a: Any) -> Any:
    return _numpy_eig(a).eigenvalues


def _real(w: Any) -> bool:
    """Return whether all eigenvalues are real; up to version 2.4, NumPy returns them as real numbers then."""
    if trace_hooks.is_tracing() and not is_array(getattr(w, "_raw", w)):
        return False
    return not _always_complex() and predicate_holds(w, _has_no_imaginary_part)


def _has_no_imaginary_part(x: AnyArray) -> Any:
    return np.asarray(not x.imag.any())


@functools.cache
def _always_complex() -> bool:
    return np.linalg.eigvals(np.eye(1)).dtype.kind == "c"


# -- LU factors ------------------------------------------------------------------------------------------------------


def _factors(function: str, A: AnyArray, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    A = matrices_of(function, A)
    if not pivot:
        raise RuntimeError(
            f"{function}: LU without pivoting is not implemented on the CPU, because it may divide by zero on the diagonal. "
            "Use pivot=True"
        )
    return bind(_lu_rows.lu_factor, (A,), {})


def _has_no_zero(LU: Tensor) -> bool:
    """Return whether LU is a plain array without zeros on the diagonals."""
    return type(LU._raw) is ndarray and LU._raw.size > 0 and bool(LU._raw.diagonal(0, -2, -1).all())


def _first_zero(LU: Tensor) -> Tensor:
    """Return for each matrix the index of the first zero on the diagonal, counted from 1; 0 if there is none."""
    if _has_no_zero(LU):
        return wrap(np.zeros(LU._raw.shape[:-2], np.int32))
    zero = ew.eq(shaping.diagonal(LU.detach(), 0, -2, -1), 0)
    if not zero.shape[-1]:
        return zero.sum(-1).to(np.int32)
    first = zero.to(np.int32).argmax(-1)
    return ew.where(zero.any(-1), ew.add(first, 1), 0).to(np.int32)


def refuse(info: Any, message: str) -> None:
    """Raise for the first matrix with a nonzero ``info``, which is the message's ``{k}``."""
    if is_array(info._raw) and info._raw.any():
        flat = info._concrete("info").reshape(-1)
        at = int(np.flatnonzero(flat)[0])
        batch = f"(Batch element {at}): " if info.ndim else ""
        head, colon, rest = message.format(k=int(flat[at])).partition(": ")
        raise errors.LinAlgError(f"{head}{colon}{batch}{rest}")


_ZERO_PIVOT = (
    ": U[{k},{k}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


@op(out=True)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """Return :func:`lu_factor` with ``info`` (the index of a zero on U's diagonal, from 1; else 0) instead of an error."""
    packed, pivots, _ = _factors("linalg.lu_factor", A, pivot)
    info = _first_zero(packed)
    if check_errors:
        refuse(info, "torch.linalg.lu_factor_ex" + _ZERO_PIVOT)
    return return_types.linalg_lu_factor_ex(packed, pivots, info)


@op(out=True)
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """Return the factors of A = P @ L @ U in compact form, as ``(LU, pivots)``, for :func:`lu_solve`.

    Args:
        A: (..., m, n).

    Returns:
        ``LU`` (..., m, n): U on and above the diagonal, L (whose diagonal is ones) below. ``pivots``: row i was
        exchanged with row ``pivots[i]``, counted from 1.

    Raises:
        LinAlgError: U has a zero on its diagonal.

    >>> import chainrule as cr
    >>> cr.linalg.lu_factor(cr.tensor([[1., 2.], [2., 8.]])).LU
    tensor([[ 2.0000,  8.0000],
            [ 0.5000, -2.0000]])
    """
    packed, pivots, _ = _factors("linalg.lu_factor", A, pivot)
    if not _has_no_zero(packed):
        refuse(_first_zero(packed), "torch.linalg.lu_factor" + _ZERO_PIVOT)
    return return_types.linalg_lu_factor(packed, pivots)


def _triangles(packed: Any) -> tuple[Any, Any]:
    m, n = packed.shape[-2:]
    k = min(m, n)
    unit = constant_on_device_of(packed, np.eye(m, k, dtype=packed.dtype))
    return ew.add(matrices.tril(packed[..., :k], -1), unit), matrices.triu(packed[..., :k, :])


def _permutation(order: Any, dtype: object) -> Tensor:
    """Return P with A = P @ (A in that order)."""
    n = order.shape[-1]
    return ew.eq(order.unsqueeze(-2), constant_on_device_of(order, np.arange(n)).unsqueeze(-1)).to(dtype)


@op(out=True)
def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """Return the factors of A = P @ L @ U, as ``(P, L, U)``: a permutation, a unit lower and an upper triangle.

    Args:
        A: (..., m, n); with k = min(m, n), P is (..., m, m), L (..., m, k) and U (..., k, n).
    """
    packed, _, order = _factors("linalg.lu_factor", A, pivot)
    return return_types.linalg_lu(_permutation(order, packed.dtype), *_triangles(packed))


def _pivots(function: str, pivots: Any) -> Tensor:
    pivots = tensor_of(function, pivots)
    if pivots.dtype != np.int32:
        raise RuntimeError(f"{function}: pivots should be a Tensor of scalar type torch.int32")
    return pivots


def _order(function: str, pivots: Tensor, rows_: int) -> Tensor:
    order = lapack.order_in_c(pivots._raw, rows_)
    if order is not None:
        return wrap(order)
    data = pivots._raw if is_array(pivots._raw) else pivots._raw.concrete()
    if data is not None and not lies_within(data, 1, rows_):
        raise RuntimeError(f"{function}: pivots are rows counted from 1: between 1 and {rows_}")
    return bind(_lu_rows.row_order, (pivots,), {"rows": rows_})


@op("lu_unpack", out=True, sample="rand(3, 3), tensor([1, 2, 3]).int()")
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """Unpack the result of :func:`lu_factor` to ``(P, L, U)``; parts that are not requested are empty."""
    packed, pivots = matrices_of("lu_unpack", LU_data), _pivots("lu_unpack", LU_pivots)
    empty = packed.new_zeros((0,))
    m = packed.shape[-2]
    p = _permutation(_order("lu_unpack", pivots, m), packed.dtype) if unpack_pivots else empty
    return return_types.lu_unpack(p, *(_triangles(packed) if unpack_data else (empty, empty)))


def _reordered(B: Any, order: Any) -> Any:
    """Return B with its rows permuted by ``order``, of shape (..., n); leading axes broadcast."""
    if order.ndim == 1 and B.ndim == 2:
        return B[order]
    if type(order._raw) is ndarray and order.numel() and shape_of(order)[:-1] == shape_of(B)[:-2]:
        n, columns = shape_of(B)[-2:]
        count = math.prod(shape_of(B)[:-2])
        flat = order._raw.reshape(count, n) + np.arange(0, count * n, n)[:, None]
        return B.reshape(count * n, columns)[wrap(flat.reshape(-1))].reshape(shape_of(B))
    batch = np.broadcast_shapes(shape_of(order)[:-1], shape_of(B)[:-2])
    shape = (*batch, *shape_of(B)[-2:])
    return np.take_along_axis(np.broadcast_to(B, shape), np.broadcast_to(order[..., None], shape), axis=-2)


def _solved(T: AnyArray, B: AnyArray, upper: bool, unit: bool) -> Tensor:
    T, B = broadcast_stacks(T, B)
    return primitives.solve_triangular(T, B, upper=upper, unitriangular=unit)


@op(out=True, sample="rand(3, 3), tensor([1, 2, 3]).int(), rand(3, 2)")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Return the solution X of A @ X = B, given :func:`lu_factor` of A.

    Args:
        LU, pivots: (..., n, n) and (..., n).
        B: (..., n, k). Leading axes broadcast.
        left: False for X @ A = B.
        adjoint: use Aᴴ in place of A.
    """
    name = "linalg.lu_solve"
    LU, B, pivots = matrices_of(name, LU, True, "LU"), matrices_of(name, B, False, "B"), _pivots(name, pivots)
    if LU.dtype != B.dtype:
        raise RuntimeError(
            f"{name}: Expected LU and B to have the same dtype, but found LU of type {LU.dtype} and B of type "
            f"{B.dtype} instead"
        )
    n = shape_of(LU)[-1]
    if shape_of(pivots) != shape_of(LU)[:-1]:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    if shape_of(B)[-2 if left else -1] != n:
        raise errors.matrix_shapes(name, LU, B, left)
    if not left:
        return shaping.adjoint(lu_solve(LU, pivots, shaping.adjoint(B), adjoint=not adjoint))
    order = _order(name, pivots, n)
    if adjoint:
        H = shaping.adjoint(LU)
        return _reordered(_solved(H, _solved(H, B, False, False), True, True), order.argsort(-1))
    return _solved(LU, _solved(LU, _reordered(B, order), False, True), True, False)


# -- functions that return info instead of raising -------------------------------------------------------------------


def _with_info(
    A: Tensor, operation: Callable[[AnyArray], AnyArray], failures: Primitive, spare: Tensor
) -> tuple[Any, Any]:
    """Apply an operation, and return also which matrices failed and why; results of these are NaN."""
    lazy = innermost_foreign(A)
    if lazy is not None and lazy.library.gpu(lazy.payload) is None:  # errors would be raised when it is computed
        raise errors.foreign_to_numpy(lazy)
    try:
        return operation(A), A.new_zeros(tuple(A.shape[:-2]), dtype=np.int32)
    except errors.LinAlgError:
        info = bind(failures, (A.detach(),), {})
        failed = ew.ne(info, 0).unsqueeze(-1).unsqueeze(-1)
        return ew.where(failed, float("nan"), operation(ew.where(failed, spare, A))), info


def _identity(A: Tensor) -> Tensor:
    return constant_on_device_of(A, np.eye(A.shape[-1], dtype=A.dtype))


@op(out=True)
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """Return the inverse of square matrices, as ``(inverse, info)``; for a singular matrix NaN, and a positive info."""
    A = matrices_of("linalg.inv_ex", A, True)
    out, info = _with_info(A, primitives.inv, _lu_rows.inverse_info, _identity(A))
    if check_errors:
        refuse(
            info,
            "linalg.inv_ex: The diagonal element {k} is zero, the inversion could not be completed because the input "
            "matrix is singular.",
        )
    return return_types.linalg_inv_ex(out, info)


@op(out=True)
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Return the Cholesky factor, as ``(L, info)``; NaN and the order of the first non-positive minor for indefinite matrices."""
    A = matrices_of("linalg.cholesky_ex", A, True)
    L, info = _with_info(A, primitives.cholesky, _lu_rows.cholesky_info, _identity(A))
    if check_errors:
        refuse(
            info,
            "linalg.cholesky_ex: The factorization could not be completed because the input is not positive-definite "
            "(the leading minor of order {k} is not positive-definite).",
        )
    return return_types.linalg_cholesky_ex(shaping.adjoint(L) if upper else L, info)


# -- orthogonal matrices ---------------------------------------------------------------------------------------------


@op("linalg.householder_product orgqr", method=True, out=True, sample="rand(4, 2), rand(2)")
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """Return the first n columns of H₁H₂…H_k, where H_i = I − tau_i·v·vᴴ and v is column i of A, with 1 on the diagonal.

    Args:
        A: (..., m, n) with m ≥ n; elements on and above its diagonal are ignored.
        tau: (..., k) with k ≤ n.
    """
    name = "torch.linalg.householder_product"
    A, tau = matrices_of(name, A), tensor_of("linalg_householder_product", tau)
    m, n = A.shape[-2:]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau.ndim != A.ndim - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {A.ndim}"
        )
    if tau.shape[-1] > n:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if tuple(tau.shape[:-1]) != tuple(A.shape[:-2]):
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if tau.dtype != A.dtype:
        raise RuntimeError(f"{name}: tau dtype {tau.dtype} does not match input dtype {A.dtype}")
    unit = constant_on_device_of(A, np.eye(m, n, dtype=A.dtype))
    V = ew.add(matrices.tril(A, -1), unit)
    Q = ew.where(wrap(np.array(False)), V, unit)  # recorded even if tau is empty
    for i in reversed(range(tau.shape[-1])):
        v = V[..., i : i + 1]
        along = products.matmul(shaping.adjoint(v), Q)
        Q = ew.sub(Q, ew.mul(ew.mul(tau[..., i, None, None], v), along))
    return Q
