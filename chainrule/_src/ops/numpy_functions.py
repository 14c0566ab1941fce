"""NumPy's functions for tensors and other array-likes, with NumPy's signatures and semantics.

NumPy calls them through ``__array_function__`` (``tape.protocol``).

Rules are NumPy code, so rules on Dual and Batched values call these functions, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import scalar_to_array
from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import (
    AnyArray,
    AnyFunction,
    Casting,
    Dims,
    DTypeLike,
    IntoArray,
    NumpyDType,
    ShapeLike,
    TensorLike,
)
from chainrule._src.messages import errors
from chainrule._src.ops import einsum, products
from chainrule._src.ops.numpy_layout import copy_in_order, has_order, layout_of, resolved_order, to_order
from chainrule._src.ops.numpy_lists import asarray_or_tensor, operands, promoted, promotion_operand, sum_of_products
from chainrule._src.ops.numpy_reductions import in_dtype, to_mean_dtype
from chainrule._src.rules.primitive import TABLE
from chainrule._src.table import arithmetic, comparison, trigonometric
from chainrule._src.table import shape as primitives
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.dispatch import bind, rank
from chainrule._src.tape.foreign import innermost_foreign
from chainrule._src.tape.protocol import UFUNCS, ArrayLike, implements, memory_of, predicate_holds, strides_of
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule._src.tape.view import copy_scalar_view, make_read_only

ndarray = np.ndarray


# -- shape and type ---------------------------------------------------------------------------------------------------


@implements(np.shape)
def _shape(a: AnyArray) -> tuple[int, ...]:
    return tuple(shape_of(a))


@implements(np.ndim)
def _ndim(a: AnyArray) -> int:
    return len(shape_of(a))


@implements(np.size)
def _size(a: AnyArray, axis: int | None = None) -> int:
    shape = shape_of(a)
    return int(np.prod(shape, dtype=int)) if axis is None else shape[axis]


@implements(np.zeros_like)
def _zeros_like(
    a: AnyArray, dtype: DTypeLike = None, order: str = "K", subok: bool = True, shape: tuple[int, ...] | None = None
) -> AnyArray:
    return _constant_like(np.zeros_like, a, dtype, order, shape)


@implements(np.ones_like)
def _ones_like(
    a: AnyArray, dtype: DTypeLike = None, order: str = "K", subok: bool = True, shape: tuple[int, ...] | None = None
) -> AnyArray:
    return _constant_like(np.ones_like, a, dtype, order, shape)


@implements(np.full_like)
def _full_like(
    a: Any, fill_value: object, dtype: DTypeLike = None, order: str = "K", subok: bool = True, shape: Any = None
) -> AnyArray:
    if isinstance(fill_value, (Tensor, ArrayLike)):
        shape, dtype = shape_of(a) if shape is None else shape, np.dtype(dtype or dtype_of(a))
        return np.copy(np.astype(np.broadcast_to(fill_value, shape), dtype))
    return _constant_like(np.full_like, a, dtype, order, shape, fill_value)


@implements(np.empty_like)
def _empty_like(
    prototype: AnyArray, dtype: DTypeLike = None, order: str = "K", subok: bool = True, shape: ShapeLike | None = None
) -> AnyArray:
    return _zeros_like(prototype, dtype, order, shape=shape)


def _constant_like(function: Any, a: Any, dtype: Any, order: str, shape: Any, *value: Any) -> Any:
    """Return a constant array with a's dtype and shape by default; if a is of another library, so is the result."""
    raw, dtype = innermost_foreign(a), np.dtype(dtype or dtype_of(a))
    if raw is None:
        raw = layout_of(a)
        order = resolved_order(a, order) if order == "A" else order
    elif shape is None and raw.shape != shape_of(a):  # in vmap, for one example
        shape = shape_of(a)
    options = {} if shape is None else {"shape": shape}
    array = function(raw, *value, dtype=dtype, **options, **({} if order == "K" else {"order": order}))
    return wrap(array) if isinstance(a, Tensor) else array


@implements(np.iscomplexobj)
def _iscomplexobj(x: AnyArray) -> bool:
    return bool(x.dtype.kind == "c")


@implements(np.isrealobj)
def _isrealobj(x: AnyArray) -> bool:
    return bool(x.dtype.kind != "c")


@implements(np.result_type)
def _result_type(*arrays_and_dtypes: Any) -> NumpyDType:
    return np.result_type(*[dtype_of(a) if isinstance(a, (Tensor, ArrayLike)) else a for a in arrays_and_dtypes])


@implements(np.can_cast)
def _can_cast(from_: Any, to: Any, casting: Casting = "safe") -> bool:
    return np.can_cast(dtype_of(from_) if isinstance(from_, (Tensor, ArrayLike)) else from_, to, casting)


@implements(np.may_share_memory)
def _may_share_memory(a: AnyArray, b: AnyArray, max_work: Any = 0) -> bool:
    return bool(np.may_share_memory(memory_of(a), memory_of(b), max_work))


@implements(np.shares_memory)
def _shares_memory(a: AnyArray, b: AnyArray, max_work: Any = -1) -> bool:
    return bool(np.shares_memory(memory_of(a), memory_of(b), max_work))


def _astype(x: AnyArray, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike = None) -> AnyArray:
    return x if x.dtype == np.dtype(dtype) and not copy else primitives.cast(x, dtype=np.dtype(dtype))


if hasattr(np, "astype"):
    implements(np.astype)(_astype)


@implements(np.copy, by_shape=True)
def _copy(a: AnyArray, order: str | None = "K", subok: bool = False) -> AnyArray:
    return copy_in_order(a, order or "K")


# Constructors are dispatched here only if they are called with a tensor as ``like=``.


@implements(np.array, np.asarray, np.asanyarray)
def _array(
    object: IntoArray, dtype: DTypeLike = None, *, copy: object = None, order: str | None = "K", ndmin: int = 0
) -> AnyArray:
    array: Any = tensor_of(asarray_or_tensor(object))
    array = primitives.clone(array) if copy else array
    array = to_order(array if dtype is None else np.astype(array, np.dtype(dtype)), order or "K")
    return np.reshape(array, (1,) * max(0, ndmin - len(shape_of(array))) + tuple(shape_of(array)))


def _wrapping(function: AnyFunction) -> AnyFunction:
    return lambda *args, **options: wrap(function(*args, **options))


for _function in (np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.arange, np.tri):
    implements(_function)(_wrapping(_function))


@implements(np.array_repr)
def _array_repr(arr: TensorLike, *args: Any, **kwargs: Any) -> str:
    numbers = _printable(arr)
    return repr(arr) if numbers is None else np.array_repr(numbers, *args, **kwargs)


@implements(np.array_str)
def _array_str(a: Any, *args: Any, **kwargs: Any) -> str:
    numbers = _printable(a)
    return repr(a) if numbers is None else np.array_str(numbers, *args, **kwargs)


def _printable(a: Any) -> Any:
    """Return the plain array to print; None if the values are not a single array."""
    data = a._raw if isinstance(a, Tensor) else a
    return data.concrete() if isinstance(data, ArrayLike) else data


# -- elementwise ------------------------------------------------------------------------------------------------------


@implements(np.where, by_shape=True)
def _where(condition: TensorLike, x: IntoArray | None = None, y: TensorLike | None = None) -> Any:
    if x is None and y is None:
        return tensor_of(condition).nonzero(as_tuple=True)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    return comparison.where(condition, *operands(x, y))


@implements(np.clip, by_shape=True)
def _clip(
    a: AnyArray,
    a_min: IntoArray | None = None,
    a_max: IntoArray | None = None,
    out: object = None,
    *,
    min: TensorLike | None = None,
    max: TensorLike | None = None,
) -> AnyArray:
    low, high = operands(a_min if min is None else min, a_max if max is None else max)
    if (low is None) != (high is None):
        return comparison.clamp_max(a, high) if low is None else comparison.clamp_min(a, low)
    if rank(low) or rank(high) or isinstance(low, ndarray) or isinstance(high, ndarray):
        kind = np.result_type(*map(promotion_operand, (a, low, high)))
        return comparison.clamp_between(*[in_dtype(x, kind) if hasattr(x, "dtype") else x for x in (a, low, high)])
    return comparison.clamp(a, min=low, max=high)


@implements(np.real)
def _real(val: AnyArray) -> AnyArray:
    return arithmetic.real(val) if val.dtype.kind == "c" else val


@implements(np.imag)
def _imag(val: AnyArray) -> AnyArray:
    if val.dtype.kind == "c":
        return arithmetic.imag(val)
    zeros = np.where(np.zeros(val.shape, bool), val, val.dtype.type(0))
    is_array = shape_of(val) or (isinstance(val, Tensor) and trace_hooks.is_array(val._raw))
    return (
        make_read_only(bind(primitives.alias, (zeros,), {})) if is_array else zeros
    )  # NumPy's result is read-only, too


@implements(np.angle)
def _angle(z: AnyArray, deg: bool = False) -> AnyArray:
    dtype = np.result_type(dtype_of(z), np.int64) if dtype_of(z).kind == "b" else dtype_of(z)
    if dtype.kind == "f":
        z = np.where(z == 0, np.copysign(1.0, z), z)  # the angle of -0. is π
    out = arithmetic.angle(z if dtype.kind in "fc" else in_dtype(z, np.arctan2.resolve_dtypes((dtype, dtype, None))[2]))
    return out * (180 / np.pi) if deg else out


@implements(np.round, np.around)
def _round(a: AnyArray, decimals: int = 0, out: object = None) -> AnyArray:
    if a.dtype.kind == "b" and decimals:
        np.round(np.True_, decimals)  # raises
    if a.dtype.kind in "iu":
        return primitives.clone(a) if decimals >= 0 else in_dtype(_round(in_dtype(a, np.float64), decimals), a.dtype)
    return comparison.round(a * 10.0**decimals) / 10.0**decimals if decimals else comparison.round(a)


@implements(np.nan_to_num)
def _nan_to_num(
    x: AnyArray, copy: bool = True, nan: TensorLike = 0.0, posinf: object = None, neginf: object = None
) -> AnyArray:
    if not copy:
        raise errors.numpy_keyword("nan_to_num", "copy=False")
    if isinstance(nan, (Tensor, ArrayLike)):
        return np.where(np.isnan(x), nan, _nan_to_num(x, posinf=posinf, neginf=neginf))
    return comparison.nan_to_num(
        copy_in_order(x, "K") if 0 in strides_of(x) else x, nan=nan, posinf=posinf, neginf=neginf
    )


def _float_power(x: Any, y: Any) -> AnyArray:
    """Compute a power in at least float64."""
    x, y = [z if type(z) in (int, float, complex) else asarray_or_tensor(z) for z in (x, y)]
    operand_types = [dtype_of(z) if hasattr(z, "dtype") else type(z) for z in (x, y)]
    dtype = np.float_power.resolve_dtypes((*operand_types, None))[-1]
    x, y = [in_dtype(z, dtype) if hasattr(z, "dtype") else np.asarray(z, dtype) for z in (x, y)]
    return np.power(x, y)


UFUNCS[np.float_power] = _float_power


def _modf(x: AnyArray) -> tuple[AnyArray, AnyArray]:
    x = in_dtype(x, np.modf.resolve_dtypes((dtype_of(x), None, None))[1])
    integer_part = comparison.trunc(x)
    if predicate_holds(x, _is_no_infinity):
        return x - integer_part, integer_part
    infinite = np.isinf(x)
    return np.where(infinite, 0, x - np.where(infinite, 0, integer_part)), integer_part


def _is_no_infinity(x: AnyArray) -> AnyArray:
    return np.asarray(not np.isinf(x).any())


UFUNCS[np.modf] = _modf


@implements(np.sinc)
def _sinc(x: AnyArray) -> AnyArray:
    return trigonometric.sinc(to_mean_dtype(x))


@implements(np.i0)
def _i0(x: AnyArray) -> AnyArray:
    if x.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    return TABLE["i0"](to_mean_dtype(x))


@implements(np.fix)
def _fix(x: AnyArray, out: object = None) -> AnyArray:
    return comparison.trunc(x)


@implements(np.isclose)
def _isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> AnyArray:
    a, b = operands(a, b)
    b = in_dtype(b, np.result_type(b.dtype, 1.0)) if hasattr(b, "dtype") else np.asarray(b, np.result_type(b, 1.0))
    a, b = promoted(a, b)
    with np.errstate(invalid="ignore"):
        near = ((abs(a - b) <= atol + rtol * abs(b)) & np.isfinite(b)) | (a == b)
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near


@implements(np.allclose)
def _allclose(a: IntoArray, b: IntoArray, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return bool(np.all(_isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def _array_equal(a1: IntoArray, a2: IntoArray, equal_nan: bool = False) -> bool:
    a1, a2 = asarray_or_tensor(a1), asarray_or_tensor(a2)
    if shape_of(a1) != shape_of(a2):
        return False
    same = a1 == a2
    return bool(np.all(same | (np.isnan(a1) & np.isnan(a2)) if equal_nan else same))


# -- products ---------------------------------------------------------------------------------------------------------


@implements(np.dot, by_shape=True)
def _dot(a: Any, b: Any, out: object = None) -> Any:
    a, b = operands(a, b)
    if not shape_of(a) or not shape_of(b):
        return np.multiply(*promoted(a, b))
    if len(shape_of(b)) <= 2:
        return products.numpy_matmul(a, b)
    return sum_of_products(lambda a, b: products.tensordot(a, b, ([-1], [-2])), a, b)


def _matmul(x: AnyArray, y: AnyArray) -> AnyArray:
    if isinstance(x, (list, tuple)) or isinstance(y, (list, tuple)):
        x, y = operands(x, y)
    product = products.numpy_matmul(x, y)
    n = len(shape_of(product))
    if n < 4 or len(shape_of(x)) < 2 or len(shape_of(y)) < 2 or 0 in (*shape_of(x), *shape_of(y)):
        return product
    stacks = np.add(layout_of(x)[..., :1, 0], layout_of(y)[..., :1, 0])  # the memory layout of a ufunc's result
    return primitives.with_memory_order(
        product, [k for k in primitives.memory_order(stacks) if k < n - 2] + [n - 2, n - 1]
    )


UFUNCS[np.matmul] = _matmul


@implements(np.inner, by_shape=True)
def _inner(a: Any, b: Any) -> AnyArray:
    a, b = operands(a, b)
    if shape_of(a) and shape_of(b) and shape_of(a)[-1] != shape_of(b)[-1]:
        raise ValueError(
            f"shapes {shape_of(a)} and {shape_of(b)} not aligned: {shape_of(a)[-1]} != {shape_of(b)[-1]} (last)"
        )
    return copy_scalar_view(sum_of_products(products.inner, a, b))


@implements(np.outer, by_shape=True)
def _outer_product(a: Any, b: Any, out: object = None) -> AnyArray:
    a, b = operands(a, b)
    return np.multiply(np.reshape(a, (-1, 1)), np.reshape(b, (1, -1)))


def _conj(x: AnyArray) -> AnyArray:
    """Return the conjugate in x's dtype: ``np.conjugate`` would convert booleans to small integers."""
    return x if dtype_of(x).kind == "b" else np.conjugate(x)


@implements(np.vdot, by_shape=True)
def _vdot(a: AnyArray, b: IntoArray) -> AnyArray:
    return np.dot(_conj(np.reshape(a, (-1,))), np.reshape(b, (-1,)))


@implements(np.tensordot, by_shape=True)
def _tensordot(a: Any, b: Any, axes: Dims = 2) -> AnyArray:
    a, b = operands(a, b)
    _check_summed(shape_of(a), shape_of(b), axes)
    return sum_of_products(lambda a, b: products.tensordot(a, b, axes), a, b)


def _check_summed(a: Any, b: Any, axes: Any) -> None:
    """Raise where contracted axes differ in length: PyTorch broadcasts an axis of length 1, NumPy does not."""
    if isinstance(axes, (int, np.integer)):
        pairs = zip(a[len(a) - axes :], b, strict=False)
    else:
        left, right = ([k] if isinstance(k, (int, np.integer)) else k for k in axes)
        pairs = zip([a[k] for k in left], [b[k] for k in right], strict=False)
    if any(m != n for m, n in pairs):
        raise ValueError(f"shape-mismatch for sum: operands of shapes {tuple(a)} and {tuple(b)}, over axes {axes}")


@implements(np.kron, by_shape=True)
def _kron(a: IntoArray, b: IntoArray) -> AnyArray:
    return copy_scalar_view(products.kron(*promoted(a, b)))


@implements(np.einsum, by_shape=True)
def _einsum(subscripts: Any, *factors: Any, out: object = None, optimize: bool = False) -> AnyArray:
    if not isinstance(subscripts, str):
        subscripts, factors = einsum.with_letters(subscripts, *factors)
    arrays = promoted(*factors)
    result = in_dtype(einsum.contract_operands(subscripts, arrays), arrays[0].dtype)  # integer sums keep their dtype
    if optimize is False and np.ndim(result) > 1 and not all(has_order(x, "C") for x in arrays):
        result = primitives.with_memory_order(result, _einsum_order(subscripts, arrays))
    return copy_scalar_view(result)


def _einsum_order(subscripts: str, arrays: Sequence[AnyArray]) -> list[int]:
    """Return the axes of ``np.einsum``'s result as they lie in memory, the slowest first.

    They follow from the operands' strides. NumPy computes them here for the first two elements along each axis.
    """
    corners = [layout_of(x)[(slice(0, 2),) * np.ndim(x)] for x in arrays]
    with np.errstate(all="ignore"):
        return primitives.memory_order(np.einsum(subscripts, *corners))


def _vecdot(a: AnyArray, b: AnyArray) -> AnyArray:
    m, n = np.shape(a)[-1:], np.shape(b)[-1:]
    if not m or m != n:
        raise ValueError(f"vecdot: the last axes of shapes {np.shape(a)} and {np.shape(b)} are contracted, but differ")
    return np.matmul(np.expand_dims(_conj(a), -2), np.expand_dims(b, -1))[..., 0, 0]


if hasattr(np, "vecdot"):  # since NumPy 2.0
    UFUNCS[np.vecdot] = _vecdot


@implements(np.cross, by_shape=True)
def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = operands(a, b)
    a, b = promoted(np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1))
    if shape_of(a)[-1] != 3 or shape_of(b)[-1] != 3:
        raise ValueError(
            f"incompatible dimensions for cross product: both need 3 along their axis, got {shape_of(a)} and "
            f"{shape_of(b)}"
        )
    after, before = [1, 2, 0], [2, 0, 1]
    product = a[..., after] * b[..., before] - a[..., before] * b[..., after]
    return np.moveaxis(to_order(product, "C"), -1, axisc)


@implements(np.polyval)
def _polyval(p: IntoArray, x: AnyArray) -> AnyArray:
    x = np.asarray(x) if isinstance(x, (int, float, complex, list)) else x  # arrays promote as NumPy's do
    p = asarray_or_tensor(p)
    total = np.zeros_like(x)
    for k in range(shape_of(p)[0]):
        total = np.add(
            *promoted(scalar_to_array(np.multiply(total, x)), p[k, ...])
        )  # p[k] would be a scalar, which is weak
    return total


def _is_finite(x: AnyArray) -> AnyArray:
    return np.asarray(np.isfinite(x).all())


@implements(np.convolve)
def _convolve(a: IntoArray, v: AnyArray, mode: str = "full") -> AnyArray:
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"Use one of 'valid', 'same', or 'full' for convolve/correlate mode, and not {mode!r}")
    a, v = (x if np.shape(x) else np.reshape(x, (1,)) for x in (asarray_or_tensor(a), asarray_or_tensor(v)))
    for name, x in (("a", a), ("v", v)):
        if len(np.shape(x)) > 1:
            raise ValueError("object too deep for desired array")
        if not np.shape(x)[0]:
            raise ValueError(f"{name} cannot be empty")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    n, m = np.shape(a)[0], np.shape(v)[0]
    if n < m:
        return _convolve(v, a, mode)
    windows = np.pad(a, m - 1)[np.arange(n + m - 1)[:, None] + np.arange(m)]
    if predicate_holds(v, _is_finite):
        full = np.matmul(windows, np.flip(v))
    else:  # a short kernel: pad the ends with nothing, because 0 times infinity is NaN
        inside = np.pad(np.ones(n, bool), m - 1)[np.arange(n + m - 1)[:, None] + np.arange(m)]
        full = np.sum(np.where(inside, windows * np.flip(v), 0), axis=-1)
    if mode == "full":
        return full
    start, length = ((m - 1) // 2, n) if mode == "same" else (m - 1, n - m + 1)
    return full[start : start + length]


@implements(np.correlate)
def _correlate(a: AnyArray, v: AnyArray, mode: str = "valid") -> AnyArray:
    return _convolve(a, _conj(np.flip(v)), mode)
