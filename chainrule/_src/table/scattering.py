"""Scatter with a product, a maximum or a minimum as the reduction. (Sums are ``scatter_add``.)

``ops.scattering`` applies them.
"""

from __future__ import annotations

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyDType
from chainrule._src.rules.kinds import call, opaque
from chainrule._src.table.indexing import _grid, crop_to_index, gather, scatter, scatter_add
from chainrule._src.tape.foreign import copy_in_library

ndarray = np.ndarray


def at_index(x: AnyArray, index: AnyArray, axis: int) -> AnyArray:
    """Return the element of x at every index."""
    return gather(crop_to_index(x, index, axis), index, axis=axis)


def products_alone(x: AnyArray, index: AnyArray, src: AnyArray, axis: int) -> AnyArray:
    """Return for every element of x the product of the values scattered to it, without x."""
    return scatter_prod(np.ones_like(x), index, src, axis=axis)


def products_of_others(x: AnyArray, index: AnyArray, src: AnyArray, axis: int) -> AnyArray:
    """Return for every element of src the product of all other factors of its target."""
    if is_array(src) and src.all():
        return at_index(scatter_prod(x, index, src, axis=axis), index, axis) / src
    order = np.argsort(index, axis=axis, kind="stable")
    target, factor = (np.swapaxes(np.take_along_axis(a, order, axis), axis, -1) for a in (index, src))
    after = np.flip(_products_before(np.flip(target, axis=-1), np.flip(factor, axis=-1)), axis=-1)
    others = np.swapaxes(_products_before(target, factor) * after, axis, -1)
    return at_index(x, index, axis) * np.take_along_axis(others, np.argsort(order, axis=axis), axis)


def _products_before(target: AnyArray, factor: AnyArray) -> AnyArray:
    """Return for every factor the product of those before it with the same target; targets are sorted.

    The products are built from products of 1, 2, 4 … factors, without division, so derivatives also hold for zero factors.
    """
    n, step = shape_of(target)[-1], 1
    out = np.concatenate(
        [np.ones_like(factor[..., :1]), np.where(target[..., 1:] == target[..., :-1], factor[..., :-1], 1)], axis=-1
    )
    while step < n:
        together = target[..., step:] == target[..., :-step]
        further = out[..., step:] * np.where(together, out[..., :-step], 1)
        out = np.concatenate([out[..., :step], further], axis=-1)
        step *= 2
    return out


@opaque(
    vjp={
        "x": lambda g, x, index, src, *, axis: g * np.conjugate(products_alone(x, index, src, axis)),
        "src": lambda g, x, index, src, *, axis: (
            at_index(g, index, axis) * np.conjugate(products_of_others(x, index, src, axis))
        ),
    },
    jvp={
        "x": lambda t, x, index, src, *, axis: t * products_alone(x, index, src, axis),
        "src": lambda t, x, index, src, *, axis: scatter_add(
            np.zeros(shape_of(x), x.dtype), index, t * products_of_others(x, index, src, axis), axis=axis
        ),
    },
    samples=[
        call((2, 3), np.array([[0, 2, 2, 1], [1, 1, 0, 2]]), (2, 4), axis=-1),
        call((3, 2), np.array([[2], [2]]), (2, 1), axis=-2),
        call((2,), np.array([1, 0, 1, 1, 1]), np.array([0.7, 2.0, 0.0, 1.5, 1.2]), axis=-1),
    ],
    domain=(0.4, 2),
    naming="ScatterReduceBackward0",
    structure={"x": "diagonal", "src": "scatter"},
)
def scatter_prod(x: AnyArray, index: AnyArray, src: AnyArray, *, axis: int) -> AnyArray | None:
    """Return x with every element of src multiplied into the element at its index along an axis."""
    out = copy_in_library(x)
    if index.size:
        np.multiply.at(out, _grid(index, axis), src)
    return out


def _winners(
    x: AnyArray, index: AnyArray, src: AnyArray, out: AnyArray, axis: int, include_self: bool
) -> tuple[AnyArray, ...]:
    """Return masks of the best elements of x and of src, and how many of them each target has."""
    untouched = scatter(np.ones_like(x, dtype=bool), index, np.zeros(shape_of(index), bool), axis=axis)
    of_x, of_src = ((x == out) | untouched) if include_self else untouched, src == at_index(out, index, axis)
    number = scatter_add(of_x.astype(x.dtype), index, of_src.astype(x.dtype), axis=axis)
    return of_x, of_src, np.where(number == 0, np.nan, number)  # no element equals a NaN


def best_vjp(
    g: AnyArray, x: AnyArray, index: AnyArray, src: AnyArray, out: AnyArray, *, axis: int, include_self: bool
) -> tuple[AnyArray, ...]:
    """Share the cotangent of each target evenly among the best elements: return (x's shares, src's shares)."""
    of_x, of_src, number = _winners(x, index, src, out, axis, include_self)
    share, unknown = g / number, number != number
    of_src = of_src | at_index(unknown, index, axis)
    return np.where(of_x | unknown if include_self else of_x, share, 0), np.where(
        of_src, at_index(share, index, axis), 0
    )


def _best_jvp_x(
    t: AnyArray, x: AnyArray, index: AnyArray, src: AnyArray, out: AnyArray, *, axis: int, include_self: bool
) -> AnyArray:
    of_x, _, number = _winners(x, index, src, out, axis, include_self)
    return np.where(of_x | (number != number) if include_self else of_x, t / number, 0)


def _best_jvp_src(
    t: AnyArray, x: AnyArray, index: AnyArray, src: AnyArray, out: AnyArray, *, axis: int, include_self: bool
) -> AnyArray:
    _, of_src, number = _winners(x, index, src, out, axis, include_self)
    return scatter_add(np.zeros(shape_of(x), t.dtype), index, t * of_src, axis=axis) / number


@opaque(
    shared={"shares": best_vjp},
    vjp={"x": lambda shares: shares[0], "src": lambda shares: shares[1]},
    jvp={"x": _best_jvp_x, "src": _best_jvp_src},
    formula={
        "x": "best_vjp(g, x, index, src, out, axis=axis, include_self=include_self)[0]",
        "src": "best_vjp(g, x, index, src, out, axis=axis, include_self=include_self)[1]",
    },
    samples=[
        call((2, 3), np.array([[0, 2, 2, 1], [1, 1, 0, 2]]), (2, 4), axis=-1, largest=True, include_self=True),
        call((3, 2), np.array([[2], [2]]), (2, 1), axis=-2, largest=False, include_self=False),
    ],
    accepts="biuf",
    naming="ScatterReduceBackward0",
    structure={"x": "diagonal", "src": "scatter"},
)
def scatter_best(
    x: AnyArray, index: AnyArray, src: AnyArray, *, axis: int, largest: bool, include_self: bool
) -> AnyArray | None:
    """Return the maximum (or minimum) of each element of x and the values scattered to it; ties share the gradient."""
    out = copy_in_library(x)
    if not index.size:
        return out
    grid = _grid(index, axis)
    if not include_self:
        out[grid] = _neutral_element(x.dtype, largest)
    with np.errstate(invalid="ignore"):  # nan
        (np.maximum if largest else np.minimum).at(out, grid, src)
    return out


def _neutral_element(dtype: NumpyDType, largest: bool) -> float:
    """Return the neutral element of the maximum (or minimum)."""
    if dtype.kind == "b":
        return not largest
    if dtype.kind == "f":
        return -np.inf if largest else np.inf
    return np.iinfo(dtype).min if largest else np.iinfo(dtype).max
