"""NumPy's differences, cumulative sums and interpolation for tensors: composites with NumPy's signatures.

NumPy calls them through ``__array_function__`` (``tape.protocol``).

The search for an interval (``interp``) and the number of periods (``unwrap``) have no derivative. The values computed from
them have one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import is_array, is_recorded
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, Dims, DTypeLike, IntoArray, NumpyDType, TensorLike
from chainrule._src.ops.numpy_layout import with_axis_order_of
from chainrule._src.ops.numpy_lists import asarray_or_tensor, promoted, promotion_operand
from chainrule._src.ops.numpy_reductions import checked_axes, refuse_booleans, sliced, without_nan
from chainrule._src.table import indexing
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.protocol import ArrayLike, implements
from chainrule._src.tape.tensor import Tensor, wrap

ndarray = np.ndarray
_FLOAT = np.dtype(np.float64)


def as_arraylike(x: IntoArray) -> AnyArray:
    """Convert numbers and lists to arrays; return arrays and tensors unchanged."""
    return x if isinstance(x, (Tensor, ArrayLike, ndarray)) else asarray_or_tensor(x)


def plain_values(x: Any) -> Any:
    """Return the values as a plain array, or as a value that stands for one in a trace; None inside ``vmap``."""
    if isinstance(x, Tensor):
        x = x._raw
    if not isinstance(x, ArrayLike):
        return np.asarray(x)
    if not x.readable:
        return None
    while isinstance(x, (ArrayLike, Tensor)) and not is_recorded(x):
        x = x._raw if isinstance(x, Tensor) else x.inside
    return x


def read_values(x: Any) -> Any:
    """Return ``plain_values(x)`` as a plain array, for code that needs the values."""
    found = plain_values(x)
    return found.read() if is_recorded(found) else found


def to_inexact(x: Any) -> Any:
    """Cast integers and booleans to float64."""
    x = as_arraylike(x)
    return cast(x, _FLOAT) if x.dtype.kind in "iub" else x


def cast_safely(x: AnyArray, dtype: NumpyDType) -> AnyArray:
    """Cast to a dtype that holds all values of x's; raise NumPy's error for complex numbers where real ones are needed."""
    if not np.can_cast(x.dtype, dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {np.dtype(x.dtype)!r} to {dtype!r} according to the rule 'safe'")
    return cast(x, dtype)


def wrap_result(x: AnyArray) -> Any:
    """Wrap a result that was computed outside of rules as a tensor; return values that flow through a rule unchanged."""
    return wrap(x) if isinstance(x, (ndarray, np.generic)) else x


def take(x: Any, index: AnyArray, axis: int = -1) -> AnyArray:
    return bind(indexing.take, (x, as_arraylike(index)), {"axis": axis})


# -- differences -----------------------------------------------------------------------------------------------------


@implements(np.gradient)
def _gradient(f: Any, *varargs: Any, axis: Dims = None, edge_order: int = 1) -> Any:
    f = as_arraylike(f)
    refuse_booleans(f)
    f = to_inexact(f)
    ndim = len(shape_of(f))
    axes = checked_axes(tuple(axis) if isinstance(axis, list) else axis, ndim)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    spacings = _spacings(varargs, [shape_of(f)[k] for k in axes])
    slopes = tuple(with_axis_order_of(_slope(f, h, k, edge_order), f) for h, k in zip(spacings, axes, strict=True))
    return slopes[0] if len(axes) == 1 else slopes


def _spacings(spacings: tuple[Any, ...], lengths: list[int]) -> list[TensorLike]:
    """Return one spacing per axis: a number, or the distances between neighbours."""
    if not spacings:
        return [1.0] * len(lengths)
    if len(spacings) == 1 and not np.ndim(spacings[0]):
        return [spacings[0]] * len(lengths)
    if len(spacings) != len(lengths):
        raise TypeError("invalid number of arguments")
    return [_distances(h, n) for h, n in zip(spacings, lengths, strict=True)]


def _distances(h: IntoArray, n: int) -> Any:
    if not np.ndim(h):
        return h
    if np.ndim(h) != 1:
        raise ValueError("distances must be either scalars or 1d")
    if np.shape(h)[0] != n:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    differences = np.diff(to_inexact(h))
    even = is_array(differences) and differences.size and (differences == differences[0]).all()
    return differences[0] if even else differences


def _slope(f: Any, h: Any, axis: int, edge_order: int) -> Any:
    """Return the derivative along an axis: second-order differences inside, one-sided ones of ``edge_order`` at the ends."""
    g = np.moveaxis(f, axis, -1)
    if shape_of(g)[-1] < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    inside, first, last = (_even if not np.ndim(h) else _uneven)(g, h, edge_order)
    return cast(np.moveaxis(np.concatenate([first, inside, last], axis=-1), -1, axis), f.dtype)


def _even(g: AnyArray, h: TensorLike, edge_order: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    inside = (g[..., 2:] - g[..., :-2]) / (2.0 * h)
    if edge_order == 1:
        return inside, (g[..., 1:2] - g[..., :1]) / h, (g[..., -1:] - g[..., -2:-1]) / h
    first = (-1.5 * g[..., :1] + 2.0 * g[..., 1:2] - 0.5 * g[..., 2:3]) / h
    last = (0.5 * g[..., -3:-2] - 2.0 * g[..., -2:-1] + 1.5 * g[..., -1:]) / h
    return inside, first, last


def _uneven(g: AnyArray, h: AnyArray, edge_order: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the derivative of the parabola through three neighbours at distances p and q."""
    p, q = h[:-1], h[1:]
    inside = -q / (p * (p + q)) * g[..., :-2] + (q - p) / (p * q) * g[..., 1:-1] + p / (q * (p + q)) * g[..., 2:]
    if edge_order == 1:
        return inside, (g[..., 1:2] - g[..., :1]) / h[0], (g[..., -1:] - g[..., -2:-1]) / h[-1]
    p, q = h[0], h[1]
    first = (
        -(2 * p + q) / (p * (p + q)) * g[..., :1] + (p + q) / (p * q) * g[..., 1:2] - p / (q * (p + q)) * g[..., 2:3]
    )
    p, q = h[-2], h[-1]
    last = (
        q / (p * (p + q)) * g[..., -3:-2]
        - (p + q) / (p * q) * g[..., -2:-1]
        + (2 * q + p) / (q * (p + q)) * g[..., -1:]
    )
    return inside, first, last


@implements(np.ediff1d)
def _ediff1d(ary: AnyArray, to_end: TensorLike | None = None, to_begin: IntoArray | None = None) -> AnyArray:
    flat = np.reshape(as_arraylike(ary), (-1,))
    parts: list[Any] = [flat[1:] - flat[:-1]]
    for name, extra in (("to_begin", to_begin), ("to_end", to_end)):
        if extra is None:
            continue
        extra = as_arraylike(extra)
        if not np.can_cast(extra.dtype, flat.dtype, casting="same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        extra = cast(np.reshape(extra, (-1,)), flat.dtype)
        parts = [extra, *parts] if name == "to_begin" else [*parts, extra]
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


@implements(np.unwrap)
def _unwrap(p: AnyArray, discont: float | None = None, axis: int = -1, *, period: TensorLike = 2 * np.pi) -> AnyArray:
    p = as_arraylike(p)
    kind = np.result_type(p.dtype, promotion_operand(period))
    if kind.kind in "iub":
        correction = _turns_of_integers(cast(np.diff(p, axis=axis), kind), period)
    else:
        step = to_inexact(np.diff(p, axis=axis))
        half = period / 2
        wrapped_step = np.remainder(step + half, period) - half
        wrapped_step = np.where((wrapped_step == -half) & (step > 0), half, wrapped_step)
        correction = np.round((wrapped_step - step) / period) * period
    step = np.absolute(np.diff(p, axis=axis))
    correction = np.where(step < (period / 2 if discont is None else discont), 0, correction)
    rest = np.add(*promoted(sliced(p, 1, None, axis), np.cumsum(correction, axis=axis)))
    return with_axis_order_of(
        np.concatenate([cast(part, kind) for part in (sliced(p, 0, 1, axis), rest)], axis=axis), p
    )


def _turns_of_integers(step: AnyArray, period: Any) -> AnyArray:
    half, odd = period // 2, period % 2
    low = cast(-half, step.dtype) if hasattr(half, "dtype") else np.asarray(-half, step.dtype)
    wrapped_step = np.remainder(step - low, period) + low
    return (wrapped_step if odd else np.where((wrapped_step == -half) & (step > 0), half, wrapped_step)) - step


# -- cumulative sums -------------------------------------------------------------------------------------------------


def _cumulative(name: str, function: AnyFunction, neutral: int) -> AnyFunction:
    def run(
        x: AnyArray,
        /,
        *,
        axis: int | None = None,
        dtype: DTypeLike = None,
        out: object = None,
        include_initial: bool = False,
    ) -> AnyArray:
        x = np.atleast_1d(as_arraylike(x))
        ndim = len(shape_of(x))
        if axis is None and ndim > 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        along = 0 if axis is None else axis
        total = function(x, axis=along, dtype=dtype)
        if not include_initial:
            return total
        shape = list(shape_of(total))
        shape[along] = 1
        return np.concatenate([np.full(shape, neutral, total.dtype), total], axis=along)

    run.__name__ = name
    return run


if hasattr(np, "cumulative_sum"):  # since NumPy 2.1
    implements(np.cumulative_sum)(_cumulative("cumulative_sum", np.cumsum, 0))
    implements(np.cumulative_prod)(_cumulative("cumulative_prod", np.cumprod, 1))


@implements(np.nancumsum)
def _nancumsum(a: AnyArray, axis: int | None = None, dtype: DTypeLike = None, out: object = None) -> AnyArray:
    return np.cumsum(without_nan(a, 0), axis=axis, dtype=dtype)


@implements(np.nancumprod)
def _nancumprod(a: AnyArray, axis: int | None = None, dtype: DTypeLike = None, out: object = None) -> AnyArray:
    return np.cumprod(without_nan(a, 1), axis=axis, dtype=dtype)


# -- interpolation ---------------------------------------------------------------------------------------------------


@implements(np.interp)
def _interp(x: AnyArray, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> AnyArray:
    x, xp, fp = cast_safely(as_arraylike(x), _FLOAT), cast_safely(as_arraylike(xp), _FLOAT), to_inexact(fp)
    fp = cast_safely(fp, np.dtype(np.complex128) if fp.dtype.kind == "c" else _FLOAT)
    if len(shape_of(xp)) != 1 or len(shape_of(fp)) != 1:
        raise ValueError("Data points must be 1-D sequences")
    if shape_of(xp) != shape_of(fp):
        raise ValueError("fp and xp are not of the same length.")
    if not shape_of(xp)[0]:
        raise ValueError("array of sample points is empty")
    if period is not None:
        x, xp, fp = _reduced_to_period(x, xp, fp, period)
        left = right = None
    value = _chord(x, xp, fp) if shape_of(xp)[0] > 1 else fp[0]
    value = np.where(x > xp[-1], fp[-1] if right is None else right, value)
    return np.where(x < xp[0], fp[0] if left is None else left, value)


def _reduced_to_period(
    x: AnyArray, xp: AnyArray, fp: AnyArray, period: TensorLike
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Reduce everything to one period, and add one sample at either end."""
    if not isinstance(period, (Tensor, ArrayLike)) and period == 0:
        raise ValueError("period must be a non-zero value")
    period = np.absolute(period)
    x, xp = np.remainder(x, period), np.remainder(xp, period)
    order = np.argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, np.concatenate([fp[-1:], fp, fp[:1]])


def _chord(x: AnyArray, xp: AnyArray, fp: AnyArray) -> AnyArray:
    """Interpolate linearly between the samples on both sides."""
    interval = np.clip(_last_sample(x, xp), 0, shape_of(xp)[0] - 2)
    low, high, start, end = take(xp, interval), take(xp, interval + 1), take(fp, interval), take(fp, interval + 1)
    width = high - low
    value = start + (end - start) / np.where(width == 0, 1.0, width) * (x - low)
    return np.where((width == 0) & (x == high), end, value)


def _last_sample(x: AnyArray, xp: AnyArray) -> AnyArray:
    """Return the index of the last sample that is at most x."""
    numbers, samples = plain_values(x), plain_values(xp)
    if numbers is None or samples is None:
        return np.sum(xp <= np.expand_dims(x, -1), axis=-1) - 1
    return np.searchsorted(samples, numbers, side="right") - 1
