"""Variance, standard deviation, median, and the selection of elements by index along an axis.

``ops.reductions`` and ``ops.ordering`` apply them.
"""

from __future__ import annotations

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray
from chainrule._src.rules.kinds import call, linear, opaque
from chainrule._src.rules.sums import WIDER, accurate_sum
from chainrule._src.table.indexing import scatter_add, take_along_axis
from chainrule._src.table.reduction import EXTREMUM, count, extremum_jvp, extremum_vjp, restore_axes
from chainrule._src.tape.foreign import safe_divisor

# -- variance --------------------------------------------------------------------------------------------------------


def _deviations(x: AnyArray, axis: tuple[int, ...]) -> AnyArray:
    """Return the deviation of every element from the mean."""
    if x.dtype.char in "eF":  # see ``reduction.mean``
        return x - np.mean(x, axis=axis, keepdims=True)
    return x - accurate_sum(x, axis, True) / (count(shape_of(x), axis) or np.nan)


def cast_back(result: AnyArray, x: AnyArray) -> AnyArray:
    """Cast a result computed in a wider dtype to the operand's dtype (for complex operands, to the real one)."""
    return result.astype(np.finfo(x.dtype).dtype, copy=False)


def _scale(x: AnyArray, axis: tuple[int, ...], correction: float) -> float:
    """Return one over the divisor of the squares; infinite where the correction leaves no degrees of freedom."""
    left = count(shape_of(x), axis) - correction
    return 1 / left if left > 0 else np.inf


def _variance(x: AnyArray, axis: tuple[int, ...], keepdims: bool, correction: float) -> AnyArray:
    if x.dtype == np.float16:  # its sums and squares overflow where the variance does not
        return _variance(x.astype(np.float32), axis, keepdims, correction)
    with np.errstate(over="ignore", under="ignore"):
        total = _squares(x, axis, keepdims)
    if x.dtype.char in WIDER and not np.all((total > 1e-28) & (total < np.inf)):  # squares overflowed or underflowed
        total = _squares(x.astype(WIDER[x.dtype.char]), axis, keepdims)
    left = count(shape_of(x), axis) - correction
    return total / left if left > 0 else total * np.inf


def _squares(x: AnyArray, axis: tuple[int, ...], keepdims: bool) -> AnyArray:
    """Return the sum of the squared deviations from the mean."""
    deviations = _deviations(x, axis)
    squares = (
        np.square(np.real(deviations)) + np.square(np.imag(deviations))
        if x.dtype.kind == "c"
        else deviations * deviations
    )
    return accurate_sum(squares, axis, keepdims)


def _var_vjp(g: AnyArray, x: AnyArray, *, axis: tuple[int, ...], keepdims: bool, correction: float) -> AnyArray:
    return restore_axes(g, axis, keepdims, shape_of(x)) * (2 * _scale(x, axis, correction)) * _deviations(x, axis)


def _var_jvp(t: AnyArray, x: AnyArray, *, axis: tuple[int, ...], keepdims: bool, correction: float) -> AnyArray:
    deviations = _deviations(x, axis)
    product = np.real(np.conjugate(deviations) * t) if x.dtype.kind == "c" else deviations * t
    return np.add.reduce(product, axis=axis, keepdims=keepdims) * (2 * _scale(x, axis, correction))


def _half_over(out: AnyArray) -> AnyArray:
    """Return 1 / (2·out), and 0 where out is 0."""
    zero = out == 0
    return np.where(zero, 0, 0.5 / safe_divisor(out, zero))


_SAMPLES = [
    call((2, 3), axis=(-1,), keepdims=False, correction=1),
    call((2, 3, 2), axis=(-3, -1), keepdims=True, correction=0),
    call((4,), axis=(-1,), keepdims=False, correction=1.5),
]
_ONE_ELEMENT_REMEDY = (
    "the unbiased estimate of one element is 0/0, so take more, or correction=0 (ddof=0 of NumPy's functions)"
)
_AWAY = "(x - x.mean(axis, keepdims=True))"
_COUNT = "(x.size / g.size - correction)"


@opaque(
    vjp=_var_vjp,
    jvp=_var_jvp,
    formula=f"(g if keepdims else np.expand_dims(g, axis)) * 2 * {_AWAY} / {_COUNT}",
    samples=_SAMPLES,
    structure="axis",
    remedy=_ONE_ELEMENT_REMEDY,
)
def var(x: AnyArray, *, axis: tuple[int, ...], keepdims: bool, correction: float) -> AnyArray:
    """Return the variance over axes: the sum of squared deviations from the mean, divided by n − correction."""
    return cast_back(_variance(x, axis, keepdims, correction), x)


@opaque(
    vjp=lambda g, x, out, **params: _var_vjp(g * _half_over(out), x, **params),
    jvp=lambda t, x, out, **params: _half_over(out) * _var_jvp(t, x, **params),
    formula=f"(g / out if keepdims else np.expand_dims(g / out, axis)) * {_AWAY} / {_COUNT}",
    samples=_SAMPLES,
    structure="axis",
    remedy=_ONE_ELEMENT_REMEDY,
)
def std(x: AnyArray, *, axis: tuple[int, ...], keepdims: bool, correction: float) -> AnyArray:
    """Return the standard deviation over axes: the root of the variance. Where it is 0, its derivative is 0."""
    return cast_back(np.sqrt(_variance(x, axis, keepdims, correction)), x)


# -- order -----------------------------------------------------------------------------------------------------------


@opaque(
    vjp=extremum_vjp,
    jvp=extremum_jvp,
    formula=EXTREMUM,
    samples=[call((5,), axis=(-1,), keepdims=False), call((2, 3), axis=(-2, -1), keepdims=False)],
    structure="axis",
)
def median(x: AnyArray, *, axis: tuple[int, ...], keepdims: bool) -> AnyArray:
    """Return the (lower) median over the last axes; elements equal to it share the gradient evenly."""
    shape = shape_of(x)
    n = count(shape, axis)
    kept_shape = shape[: len(shape) - len(axis)]
    ordered = np.sort(np.reshape(x, (*kept_shape, n)), axis=-1)
    result = ordered[..., (n - 1) // 2]
    if x.dtype.kind == "f":  # NaN sorts last
        last = ordered[..., -1]
        result = np.where(np.isnan(last), last, result)
    return np.reshape(result, (*kept_shape, *(1,) * len(axis))) if keepdims else result


_PLACES = [
    call((2, 3), np.array([[2], [0]]), axis=-1, keepdims=False, name="MaxBackward0"),
    call((3, 2), np.array([[2, 0], [1, 1]]), axis=-2, keepdims=True, name="TopkBackward0"),
]


@linear(
    transpose={
        "x": lambda g, index, x_shape, *, axis, keepdims, name: scatter_add(
            np.zeros(x_shape, g.dtype), index, g if keepdims else np.expand_dims(g, axis), axis=axis
        )
    },
    naming=lambda params: params["name"],
    samples=_PLACES,
    structure="selection",
)
def pick(x: AnyArray, index: AnyArray, *, axis: int, keepdims: bool, name: str) -> AnyArray:
    """Return the elements at an index along an axis, as max, sort, topk ... return them with their indices."""
    out = take_along_axis(x, index, axis)
    return out if keepdims else np.squeeze(out, axis)
