"""PyTorch's reductions, with ``dim`` and ``keepdim`` (or NumPy's ``axis`` and ``keepdims``).

``op`` makes these functions public: ``chainrule.sum``, ``chainrule.prod`` …
"""

from __future__ import annotations

import builtins
from typing import Any, SupportsIndex

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays import return_types
from chainrule._src.arrays.dtypes import as_dtype
from chainrule._src.arrays.types import AnyFunction, Dims, DTypeLike, Params, TensorLike
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import axes_of, axis_of, tensor_of, to_float, to_sum_dtype
from chainrule._src.rules.primitive import TABLE, Primitive
from chainrule._src.table import reduction, statistics
from chainrule._src.table import shape as moves
from chainrule._src.tape.dispatch import bind, cast, record_unary
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)


# -- sums ------------------------------------------------------------------------------------------------------------


@op(method=True, out=True, cached=True)
def sum(
    input: TensorLike,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike = None,
    axis: Dims = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Return the sum over ``dim`` (an int, a tuple, or None for all axes). Booleans and integers are summed as int64.

    >>> import chainrule as cr
    >>> cr.sum(cr.tensor([[1., 2.], [3., 4.]]), dim=0)
    tensor([4., 6.])
    """
    if dim is None and axis is None and dtype is None and not (keepdim or keepdims) and type(input) is Tensor:
        params = _full_reduction(input)
        if params is not None:
            return record_unary(reduction.sum, input, params)
    return _total("sum", reduction.sum, input, dim if axis is None else axis, _either(keepdim, keepdims), dtype)


#: number of dimensions -> parameters of a full reduction
_FULL_REDUCTIONS = tuple({"axis": tuple(range(-ndim, 0)), "keepdims": False} for ndim in range(9))


def _full_reduction(input: Tensor) -> Params | None:
    """Return the parameters of a full reduction, for plain float arrays: the fast path; else None."""
    x = input._raw
    if type(x) is ndarray and ((dtype := x.dtype) is float32 or dtype is float64) and (ndim := x.ndim) < 9:
        return _FULL_REDUCTIONS[ndim]
    return None


@op(method=True, out=True, cached=True)
def prod(input: TensorLike, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """Return the product of all elements, or along ``dim``. The gradient is correct for elements that are zero, too."""
    return _total("prod", reduction.prod, input, dim, keepdim, dtype)


def _either(keepdim: bool, keepdims: bool | None) -> bool:
    return keepdim if keepdims is None else builtins.bool(keepdims)


def _total(name: str, row: Primitive, input: TensorLike, dim: Dims, keepdim: bool, dtype: DTypeLike) -> Tensor:
    x = to_sum_dtype(tensor_of(name, input), dtype)
    result = bind(row, (x,), _over(name, x, dim, keepdim))
    return result if dtype is None else cast(result, x.dtype)  # NumPy's reduction widens small integers


def _over(name: str, x: Tensor, dim: Dims, keepdim: bool) -> Params:
    """Return the parameters of a sum or mean; ``dims`` is set if the caller gave the axes."""
    params = {"axis": axes_of(name, dim, x.ndim), "keepdims": keepdim}
    return params if dim is None else {**params, "dims": True}


@op(method=True, out=True, cached=True)
def mean(
    input: TensorLike,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike = None,
    axis: Dims = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Return the mean over ``dim``.

    Raises:
        RuntimeError: the tensor has an integer dtype, and no floating ``dtype`` is given.
    """
    if dim is None and axis is None and dtype is None and not (keepdim or keepdims) and type(input) is Tensor:
        params = _full_reduction(input)
        if params is not None:
            return record_unary(reduction.mean, input, params)
    x = tensor_of("mean", input)
    if dtype is not None:
        x = cast(x, as_dtype(dtype))
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{x.dtype}. Use .float().mean(), or mean(dtype=float32)."
        )
    return bind(reduction.mean, (x,), _over("mean", x, dim if axis is None else axis, _either(keepdim, keepdims)))


@op(method=True)
def nansum(input: TensorLike, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """Return the sum over ``dim``, with NaN counted as 0."""
    x = tensor_of("nansum", input)
    return sum(ew.where(ew.isnan(x), 0.0, x) if x.dtype.kind in "fc" else x, dim, keepdim, dtype=dtype)


@op(method=True, out=True)
def nanmean(input: TensorLike, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """Return the mean over ``dim`` of the elements that are not NaN."""
    x = tensor_of("nanmean", input, "fc" if dtype is None else "biufc")
    return nansum(x, dim, keepdim, dtype=dtype) / sum(ew.logical_not(ew.isnan(x)), dim, keepdim)


@op(method=True)
def count_nonzero(input: TensorLike, dim: Dims = None) -> Tensor:
    """Return how many elements are nonzero."""
    return sum(ew.ne(tensor_of("count_nonzero", input), 0), dim)


@op(method=True, out=True)
def any(input: TensorLike, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether any element is nonzero."""
    return _truth("any", reduction.any, input, dim, keepdim)


@op(method=True, out=True)
def all(input: TensorLike, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether all elements are nonzero."""
    return _truth("all", reduction.all, input, dim, keepdim)


def _truth(name: str, row: Primitive, input: TensorLike, dim: Dims, keepdim: bool) -> Tensor:
    x = tensor_of(name, input)
    axes = () if dim == () else axes_of(name, dim, x.ndim)
    result = bind(row, (x,), {"axis": axes, "keepdims": keepdim})
    return cast(result, x.dtype) if x.dtype == np.uint8 else result  # uint8 was PyTorch's boolean dtype


# -- extrema ---------------------------------------------------------------------------------------------------------


@op(method=True, out=True, cached=True)
def amax(input: TensorLike, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """Return the maximum over ``dim``; tied elements share the gradient evenly."""
    return _extremum("amax", reduction.amax, input, dim, keepdim)


@op(method=True, out=True, cached=True)
def amin(input: TensorLike, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """Return the minimum over ``dim``; tied elements share the gradient evenly."""
    return _extremum("amin", reduction.amin, input, dim, keepdim)


def _extremum(name: str, row: Primitive, input: TensorLike, dim: Dims, keepdim: bool, node_name: str = "") -> Tensor:
    x = tensor_of(name, input, "biuf")
    axes = axes_of(name, dim, x.ndim)
    nonempty(name, x, axes, dim is None or dim == ())
    named = {"name": node_name} if node_name else {}
    return bind(row, (x,), {"axis": axes, "keepdims": keepdim, **named})


def nonempty(name: str, x: Tensor, axes: tuple[int, ...], all_axes: bool = False) -> None:
    """Raise if an element must be selected from an empty axis."""
    for a in axes:
        if x._raw.shape[a] == 0:
            if all_axes:
                raise RuntimeError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
                    f"dim with the 'dim' argument: the shape is {tuple(x.shape)}."
                )
            raise IndexError(f"{name}(): Expected reduction dim {a % x.ndim} to have non-zero size.")


@op(method=True, out=True)
def aminmax(input: TensorLike, *, dim: SupportsIndex | None = None, keepdim: bool = False) -> Any:
    """Return the minimum and the maximum."""
    return return_types.aminmax(amin(input, dim, keepdim), amax(input, dim, keepdim))


@op(method=True, out=True, cached=True)
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the maximum of all elements, ``(values, indices)`` along ``dim``, or the elementwise maximum with a tensor."""
    return _best("max", ew.maximum, reduction.amax, reduction.argmax, input, dim, keepdim, other)


@op(method=True, out=True, cached=True)
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the minimum of all elements, ``(values, indices)`` along ``dim``, or the elementwise minimum with a tensor."""
    return _best("min", ew.minimum, reduction.amin, reduction.argmin, input, dim, keepdim, other)


def _best(
    name: str,
    of_two: AnyFunction,
    of_all: Primitive,
    where: Primitive,
    input: TensorLike,
    dim: object,
    keepdim: bool,
    other: TensorLike,
) -> Any:
    """Implement all forms of ``max`` or ``min``, with the given function and primitives."""
    if isinstance(dim, Tensor) or other is not None:
        return of_two(input, dim if other is None else other)
    if dim is None:
        return _extremum(name, of_all, input, None, keepdim, f"{name.capitalize()}Backward1")
    x = tensor_of(name, input, "biuf")
    result = getattr(return_types, name)
    axis = axis_of(name, dim, x.ndim)
    if axis is None:
        return result(*of_0d(x))
    nonempty(name, x, (axis,))
    indices = bind(where, (x,), {"axis": axis, "keepdims": True})
    return result(*select_values(name, x, indices, axis, keepdim))


def of_0d(x: Any) -> tuple[Any, Any]:
    """Return the value and the index of the only element of a 0-d tensor."""
    return x.clone(), x.new_zeros((), dtype=np.int64)


def select_values(name: str, x: Tensor, indices: Any, axis: int, keepdim: bool, overload: int = 0) -> tuple[Any, Any]:
    """Return values at indices along an axis, and the indices; the axis is dropped unless ``keepdim``."""
    params = {"axis": axis, "keepdims": keepdim, "name": f"{name.capitalize()}Backward{overload}"}
    values = bind(statistics.pick, (x, indices), params)
    return values, indices if keepdim else indices.squeeze(axis)


@op(method=True)
def argmax(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the maximum of all elements (flattened) or along ``dim``. It has no gradient."""
    return _arg("argmax", reduction.argmax, input, dim, keepdim)


@op(method=True)
def argmin(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the minimum of all elements (flattened) or along ``dim``. It has no gradient."""
    return _arg("argmin", reduction.argmin, input, dim, keepdim)


def _arg(name: str, row: Primitive, input: TensorLike, dim: int | None, keepdim: bool) -> Tensor:
    x = tensor_of(name, input, "biuf")
    axis = -1 if dim is None else axis_of(name, dim, x.ndim)
    flat = x.reshape(-1) if dim is None else x
    if axis is None:
        return x.new_zeros((), dtype=np.int64)
    nonempty(name, flat, (axis,))
    result = bind(row, (flat,), {"axis": axis, "keepdims": keepdim and dim is not None})
    return result.reshape((1,) * x.ndim) if keepdim and dim is None else result


# -- variance --------------------------------------------------------------------------------------------------------


@op(method=True, out=True, cached=True)
def var(
    input: TensorLike, dim: Dims = None, unbiased: Any = None, keepdim: bool = False, *, correction: int | None = None
) -> Tensor:
    """Return the variance over ``dim``, divided by n − correction (1 by default; 0 with ``unbiased=False``)."""
    return _spread("var", statistics.var, input, dim, unbiased, keepdim, correction)[0]


@op(method=True, out=True, cached=True)
def std(
    input: TensorLike, dim: Dims = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """Return the standard deviation over ``dim``, the square root of :func:`var`. Its gradient is 0 where it is 0."""
    return _spread("std", statistics.std, input, dim, unbiased, keepdim, correction)[0]


@op(out=True)
def var_mean(
    input: TensorLike, dim: Dims = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean."""
    result, x, axes = _spread("var_mean", statistics.var, input, dim, unbiased, keepdim, correction)
    return (result, bind(reduction.mean, (x,), axes))


@op(out=True)
def std_mean(
    input: TensorLike, dim: Dims = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean."""
    result, x, axes = _spread("std_mean", statistics.std, input, dim, unbiased, keepdim, correction)
    return (result, bind(reduction.mean, (x,), axes))


def _spread(
    name: str, row: Primitive, input: TensorLike, dim: Dims, unbiased: Any, keepdim: bool, correction: int | None
) -> tuple[Tensor, Tensor, Params]:
    x = tensor_of(name, input)
    if isinstance(dim, builtins.bool):  # var(x, False)
        dim, unbiased = None, dim
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}: only support floating point and complex dtypes, got {x.dtype}: call .float() first"
        )
    axes = {"axis": axes_of(name, dim, x.ndim), "keepdims": keepdim}
    less = correction if correction is not None else 0 if unbiased is False else 1
    return bind(row, (x,), {**axes, "correction": less}), x, axes


# -- exponentials and norms ------------------------------------------------------------------------------------------


@op("logsumexp special.logsumexp", method=True, out=True, cached=True)
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Tensor:
    """Return log Σ exp(x) over ``dim``, computed without overflow."""
    x = to_float(tensor_of("logsumexp", input))
    return bind(reduction.logsumexp, (x,), {"axis": axes_of("logsumexp", dim, x.ndim), "keepdims": keepdim})


@op("softmax special.softmax", method=True, cached=True)
def softmax(input: TensorLike, dim: int | None = None, dtype: DTypeLike = None) -> Tensor:
    """Return exp(x) / Σ exp(x) along ``dim``: positive numbers that sum to 1."""
    return _soft("softmax", reduction.softmax, input, dim, dtype)


@op("log_softmax special.log_softmax", method=True, cached=True)
def log_softmax(input: TensorLike, dim: int | None = None, dtype: DTypeLike = None) -> Tensor:
    """Return the logarithm of the softmax along ``dim``, computed without overflow."""
    return _soft("log_softmax", reduction.log_softmax, input, dim, dtype)


def _soft(name: str, row: Primitive, input: TensorLike, dim: int | None, dtype: DTypeLike) -> Tensor:
    x = tensor_of(name, input)
    x = tensor_of(name, x if dtype is None else cast(x, as_dtype(dtype)), row.accepts)
    if dim is None:
        raise TypeError(f"{name}() missing 1 required positional argument: 'dim' (the axis whose elements sum to 1)")
    axis = axis_of(name, dim, x.ndim)
    if axis is None:
        return moves.unsafe_view(bind(row, (x.reshape(1),), {"axis": -1}), shape=())
    if not x.numel():
        return x.clone()
    return bind(row, (x,), {"axis": axis})


@op(method=True, out=True, cached=True)
def norm(
    input: TensorLike, p: Any = "fro", dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None
) -> Tensor:
    """Return the p-norm over ``dim`` (all axes by default). Its gradient is 0 where it is 0."""
    x = tensor_of("norm", input)
    x = x if dtype is None else cast(x, as_dtype(dtype))
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype}: call .float() "
            "first"
        )
    if p == "nuc":
        return _nuclear(x, dim, keepdim)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported: norm takes numbers, 'fro' and 'nuc'")
    return vector_norm(x, 2.0 if p in ("fro", None) else float(p), axes_of("norm", dim, x.ndim), keepdim)


def vector_norm(x: Tensor, ord: float, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    """Return the norm over axes; raise for empty axes if the norm has no identity."""
    if (ord < 0 or ord == np.inf) and 0 in [x.shape[axis] for axis in axes]:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord:g} norm over dimensions {axes} of shape {tuple(x.shape)}, which "
            "have no elements: the operation does not have an identity"
        )
    return bind(reduction.vector_norm, (x,), {"ord": ord, "axis": axes, "keepdims": keepdim})


def _nuclear(x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    """Return the nuclear norm of the matrices in two axes: the sum of their singular values."""
    axes = axes_of("norm", dim, x.ndim)
    if len(axes) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(str(a % x.ndim) for a in axes)} for p='nuc'"
        )
    matrices = x.movedim(axes, (-2, -1))
    total = sum(bind(TABLE["svd"], (matrices,), {"full_matrices": False})[1], -1)
    if keepdim:
        for a in sorted(a % x.ndim for a in axes):
            total = total.unsqueeze(a)
    return total


@op(method=True)
def dist(input: TensorLike, other: TensorLike, p: float = 2) -> Tensor:
    """Return the p-norm of input − other."""
    return norm(ew.sub(input, other), p)
