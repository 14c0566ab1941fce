"""``np.linalg`` for tensors and other array-likes, with NumPy's signatures, and functions that ``chainrule.linalg`` shares.

NumPy calls them through ``__array_function__`` (``tape.protocol``); ``chainrule.linalg`` calls the shared functions.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from chainrule._src.arrays import return_types
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, DTypeLike, IntoArray, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import products
from chainrule._src.ops.numpy_lists import promoted, sum_of_products
from chainrule._src.ops.numpy_reductions import checked_axes
from chainrule._src.table import decompositions, reduction
from chainrule._src.table import linalg as primitives
from chainrule._src.table.shape import cast, clone
from chainrule._src.tape import dispatch
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.protocol import implements, on_numbers
from chainrule._src.tape.tensor import Tensor, tensor_of
from chainrule._src.tape.view import copy_scalar_view

raw = np.linalg


# -- checks ----------------------------------------------------------------------------------------------------------


def checked_matrices(function: str, x: AnyArray, square: bool = False, name: str = "A") -> AnyArray:
    """Check that the operand is a floating or complex stack of (square) matrices, and return it."""
    _check_shape(function, x, square, name)
    dtype = x.dtype
    if dtype.kind not in "fc" or dtype.itemsize == 2:
        raise errors.matrix_dtype(function, x)
    return x


def _check_shape(function: str, x: AnyArray, square: bool, name: str = "A") -> None:
    shape = shape_of(x)
    if len(shape) < 2:
        raise errors.matrix_rank_low(function, x, name)
    if square and shape[-1] != shape[-2]:
        raise errors.matrix_not_square(function, x)


def _floating(a: Any) -> Any:
    """Cast integers to float64, as NumPy does."""
    a = a if hasattr(a, "dtype") else np.asarray(a)
    return np.astype(a, np.dtype(np.float64)) if a.dtype.kind in "iub" else a


def float_matrices(function: str, a: AnyArray, square: bool = False) -> AnyArray:
    return checked_matrices(f"np.linalg.{function}", _floating(a), square)


# -- shared with chainrule.linalg ------------------------------------------------------------------------------------


def broadcast_stacks(a: AnyArray, b: AnyArray) -> tuple[Any, Any]:
    """Broadcast the leading axes of two stacks of matrices."""
    left, right = shape_of(a), shape_of(b)
    if left[:-2] == right[:-2]:
        return a, b
    batch = np.broadcast_shapes(left[:-2], right[:-2])
    return np.broadcast_to(a, (*batch, *left[-2:])), np.broadcast_to(b, (*batch, *right[-2:]))


def solution(function: str, a: AnyArray, b: AnyArray, vector: bool) -> Any:
    """Return X with a @ X = b; if ``vector``, b is a stack of vectors."""
    if vector:
        b = b[..., None]
    if shape_of(a)[-1] != shape_of(b)[-2]:
        raise errors.matrix_shapes(function, a, b)
    x = primitives.solve(*broadcast_stacks(a, b))
    return x[..., 0] if vector else x


def _extreme(function: str, x: AnyArray, axis: int, keepdims: bool, largest: bool) -> AnyArray:
    """Return the largest (0 if there are none) or smallest of non-negative numbers."""
    if not shape_of(x)[axis]:
        if not largest:
            raise IndexError(f"{function}: amin(): Expected reduction dim {axis} to have non-zero size.")
        return np.sum(x, axis=axis, keepdims=keepdims)
    return (np.max if largest else np.min)(x, axis=axis, keepdims=keepdims)


def matrix_norm(function: str, x: Any, ord: object, axes: tuple[int, int], keepdims: bool) -> Any:
    """Return the norm ``ord`` of the matrices in two axes (counted from the end)."""
    if ord in ("fro", None):
        return bind(reduction.vector_norm, (x,), {"ord": 2.0, "axis": axes, "keepdims": keepdims})
    row, column = axes
    if ord in ("nuc", 2, -2):
        matrices = x if axes == (-2, -1) else np.moveaxis(x, axes, (-2, -1))
        s = decompositions.svd(matrices, full_matrices=False)[1]
        value = np.sum(s, axis=-1) if ord == "nuc" else _extreme(function, s, -1, False, ord == 2)
        if not keepdims:
            return value
        shape = list(shape_of(x))
        shape[row] = shape[column] = 1
        return np.reshape(value, tuple(shape))
    if ord not in (1, -1, np.inf, -np.inf):
        raise RuntimeError(f"{function}: Order {ord} not supported. Use 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2.")
    summed, best = (row, column) if abs(ord) == 1 else (column, row)
    sums = np.sum(np.absolute(x), axis=summed, keepdims=True)
    value = _extreme(function, sums, best, True, ord > 0)
    return value if keepdims else np.squeeze(value, (row, column))


def power(a: AnyArray, n: int) -> Any:
    """Return the n-th power of square matrices, by repeated squaring; always a new array."""
    if n == 0:
        size = shape_of(a)[-1]
        return np.where(np.asarray(False), a, np.eye(size, dtype=a.dtype))  # recorded, with a gradient of zero
    if n == 1:
        return clone(a)
    if n < 0:
        a, n = primitives.inv(a), -n
    result = None
    while n:
        if n & 1:
            result = a if result is None else result @ a
        n >>= 1
        if n:
            a = a @ a
    return result


def epsilon(x: Any) -> float:
    """Return the default relative tolerance for singular values: max(m, n)·ε."""
    return max(shape_of(x)[-2:]) * float(np.finfo(x.dtype).eps)


def cross(a: AnyArray, b: AnyArray, axis: int) -> Any:
    """Return the vector product along an axis of length 3."""
    shape = np.broadcast_shapes(shape_of(a), shape_of(b))
    a, b = np.broadcast_to(a, shape), np.broadcast_to(b, shape)
    return np.roll(a, -1, axis) * np.roll(b, -2, axis) - np.roll(a, -2, axis) * np.roll(b, -1, axis)


# -- NumPy's functions -----------------------------------------------------------------------------------------------


@implements(raw.inv, by_shape=True)
def _inv(a: AnyArray) -> AnyArray:
    return primitives.inv(float_matrices("inv", a, True))


@implements(raw.solve, by_shape=True)
def _solve(a: AnyArray, b: AnyArray) -> AnyArray:
    a, b = float_matrices("solve", a, True), _floating(b)
    if b.dtype == np.float16:
        raise errors.matrix_dtype("np.linalg.solve", b)
    dtype = np.promote_types(a.dtype, b.dtype)
    try:
        return solution("np.linalg.solve", dispatch.cast(a, dtype), dispatch.cast(b, dtype), len(shape_of(b)) == 1)
    except raw.LinAlgError as error:
        if "input matrix is singular" not in str(error):
            raise
        raise errors.singular_system("np.linalg.solve") from None


@implements(raw.det, by_shape=True)
def _det(a: AnyArray) -> AnyArray:
    return primitives.det(float_matrices("det", a, True))


@implements(raw.slogdet)
def _slogdet(a: AnyArray) -> Any:
    return return_types.linalg_slogdet(*primitives.slogdet(float_matrices("slogdet", a, True)))


@implements(raw.cholesky, by_shape=True)
def _cholesky(a: AnyArray, /, *, upper: bool = False) -> AnyArray:
    a = _of_triangle(float_matrices("cholesky", a, True), "U" if upper else "L")
    return primitives.H(primitives.cholesky(primitives.H(a))) if upper else primitives.cholesky(a)


def _of_triangle(a: AnyArray, UPLO: str) -> AnyArray:
    """Return the Hermitian matrices that NumPy reads from one triangle; the other triangle has no gradient."""
    half = np.tril(a, -1) if UPLO == "L" else np.triu(a, 1)
    return half + primitives.H(half) + a * np.eye(shape_of(a)[-1], dtype=a.dtype)


@implements(raw.eigh)
def _eigh(a: AnyArray, UPLO: str = "L") -> Any:
    a, UPLO = float_matrices("eigh", a, True), UPLO.upper()
    return return_types.linalg_eigh(*decompositions.eigh(_of_triangle(a, UPLO), UPLO=UPLO))


@implements(raw.eigvalsh)
def _eigvalsh(a: AnyArray, UPLO: str = "L") -> AnyArray:
    return _eigh(a, UPLO).eigenvalues


@implements(raw.svd)
def _svd(a: AnyArray, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = float_matrices("svd", a)
    if not compute_uv:
        return decompositions.svd(a, full_matrices=False)[1]
    return return_types.linalg_svd(
        *decompositions.svd(a, full_matrices=bool(full_matrices) and shape_of(a)[-1] != shape_of(a)[-2])
    )


@implements(raw.svdvals)
def _svdvals(x: AnyArray, /) -> AnyArray:
    return decompositions.svd(float_matrices("svdvals", x), full_matrices=False)[1]


@implements(raw.qr)
def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise errors.numpy_keyword("linalg.qr", f"mode={mode}")
    result = return_types.linalg_qr(
        *decompositions.qr(float_matrices("qr", a), mode="reduced" if mode == "r" else mode)
    )
    return result.R if mode == "r" else result


@implements(raw.pinv)
def _pinv(a: AnyArray, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> AnyArray:
    a = float_matrices("pinv", a)
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else epsilon(a) if rtol is None else rtol
    elif rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    return decompositions.pinv(a, atol=0.0, rtol=_for_each_matrix(rcond))


def _for_each_matrix(tolerance: float) -> Any:
    """Return a tolerance as a number, or as an array that broadcasts against the singular values of each matrix."""
    values = tolerance._array() if isinstance(tolerance, Tensor) else np.asarray(tolerance)
    return values[..., None] if values.ndim else float(values)


@implements(raw.matrix_power)
def _matrix_power(a: AnyArray, n: int) -> AnyArray:
    n = operator.index(n)
    if n >= 0 and a.dtype.kind in "biu":
        return tensor_of(on_numbers(a, lambda x: raw.matrix_power(x, n)))
    if n < 0:
        a = float_matrices("matrix_power", a, True)
    else:  # only products, which also exist for float16
        _check_shape("np.linalg.matrix_power", a, True)
    return a if n == 1 else power(a, n)  # NumPy returns the array itself for n = 1


@implements(raw.matrix_rank)
def _matrix_rank(A: AnyArray, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> AnyArray:
    if len(shape_of(A)) < 2:
        return cast(np.any(A != 0), dtype=np.dtype(np.intp))
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    A = float_matrices("matrix_rank", A)
    s = _svdvals(A)
    if tol is None:
        relative = epsilon(A) if rtol is None else _for_each_matrix(rtol)
        limit = np.max(s, axis=-1, keepdims=True, initial=0) * relative
    else:
        limit = _for_each_matrix(tol)
    return np.count_nonzero(s > limit, axis=-1)


@implements(raw.cond)
def _cond(x: AnyArray, p: Any = None) -> AnyArray:
    x = float_matrices("cond", x)
    if 0 in shape_of(x)[-2:]:
        raise raw.LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = _svdvals(x)
        over, under = (s[..., -1], s[..., 0]) if p == -2 else (s[..., 0], s[..., -1])
        singular = (over == 0) & (under == 0)
        with np.errstate(divide="ignore"):
            return np.where(singular, np.inf, over / np.where(singular, 1, under))
    singular = on_numbers(x, _is_singular)
    safe = np.where(singular[..., None, None], np.eye(shape_of(x)[-1]), x)
    return np.where(singular, np.inf, raw.norm(x, p, axis=(-2, -1)) * raw.norm(primitives.inv(safe), p, axis=(-2, -1)))


def _is_singular(x: AnyArray) -> AnyArray:
    return np.asarray(raw.slogdet(x)[0] == 0)


@implements(raw.norm, by_shape=True)
def _norm(x: AnyArray, ord: object = None, axis: Any = None, keepdims: bool = False) -> AnyArray:
    x = _floating(x)
    n = len(shape_of(x))
    if axis is None and (ord is None or (ord in ("fro", "f") and n == 2) or (ord == 2 and n == 1)):
        return _vector_norm(x, keepdims=keepdims)
    axes = checked_axes(axis, n)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"Invalid norm order '{ord}' for vectors")
        return _vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return matrix_norm("np.linalg.norm", x, "fro" if ord == "f" else ord, (axes[0], axes[1]), bool(keepdims))


@implements(raw.vector_norm, by_shape=True)
def _vector_norm(x: AnyArray, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> AnyArray:
    x = _floating(x)
    n = len(shape_of(x))
    axes = checked_axes(axis, n)
    return bind(reduction.vector_norm, (x,), {"ord": float(ord), "axis": axes, "keepdims": bool(keepdims)})


@implements(raw.matrix_norm)
def _matrix_norm(x: AnyArray, /, *, keepdims: bool = False, ord: object = "fro") -> AnyArray:
    x = _floating(x)
    _check_shape("np.linalg.matrix_norm", x, False)
    if ord in ("nuc", 2, -2):
        x = float_matrices("matrix_norm", x)
    return matrix_norm("np.linalg.matrix_norm", x, ord, (-2, -1), bool(keepdims))


@implements(raw.multi_dot, by_shape=True)
def _multi_dot(arrays: Any, *, out: Any = None) -> Any:
    return copy_scalar_view(
        sum_of_products(lambda *arrays: products.multi_dot([tensor_of(x) for x in arrays]), *arrays)
    )


@implements(raw.cross)
def _cross(x1: AnyArray, x2: AnyArray, /, *, axis: int = -1) -> AnyArray:
    if np.shape(x1)[axis] != 3 or np.shape(x2)[axis] != 3:
        raise ValueError(
            f"Both input arrays must be (arrays of) 3-dimensional vectors, but got shapes {np.shape(x1)} and {np.shape(x2)}"
        )
    return np.cross(x1, x2, axis=axis)


@implements(raw.diagonal)
def _diagonal(x: AnyArray, /, *, offset: int = 0) -> AnyArray:
    return np.diagonal(x, offset, -2, -1)


@implements(raw.trace, by_shape=True)
def _trace(x: AnyArray, /, *, offset: int = 0, dtype: DTypeLike = None) -> AnyArray:
    return np.sum(np.diagonal(x, offset, -2, -1), axis=-1, dtype=dtype)


@implements(raw.matrix_transpose)
def _matrix_transpose(x: AnyArray, /) -> AnyArray:
    return np.swapaxes(x, -1, -2)


@implements(raw.outer, by_shape=True)
def _outer(x1: AnyArray, x2: AnyArray, /) -> AnyArray:
    x1, x2 = tensor_of(x1), tensor_of(x2)
    if len(shape_of(x1)) != 1 or len(shape_of(x2)) != 1:
        dims = f"x1.ndim={len(shape_of(x1))} and x2.ndim={len(shape_of(x2))}"
        raise ValueError(f"Input arrays must be one-dimensional, but they are {dims}.")
    return np.multiply(x1[:, None], x2[None, :])


@implements(raw.matmul)
def _matmul(x1: object, x2: object, /) -> AnyArray:
    return np.matmul(x1, x2)


@implements(raw.lstsq)
def _lstsq(a: AnyArray, b: IntoArray, rcond: float | None = None) -> tuple[AnyArray, AnyArray, TensorLike, AnyArray]:
    a, b = promoted(float_matrices("lstsq", a), _floating(b))
    x = decompositions.pinv(a, atol=0.0, rtol=epsilon(a) if rcond is None else float(rcond)) @ b
    s = decompositions.svd(a, full_matrices=False)[1]
    m, n = shape_of(a)
    rank = _matrix_rank(a) if m and n else 0
    residual = b - a @ x
    residuals = np.atleast_1d(np.sum(np.square(np.absolute(residual)), axis=0)) if m > n else s[:0]
    return x, residuals, rank, s
