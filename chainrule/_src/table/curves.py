"""Interpolants of SciPy's as rows. The module loads when it is first used, and its row is no part of the table of operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.rules.kinds import opaque
from chainrule._src.rules.rules import conjugate

ndarray = np.ndarray


def _spread(t: AnyArray, ndim: int) -> AnyArray:
    """With further axes of length 1 behind."""
    return np.reshape(t, (*shape_of(t), *(1,) * ndim))


def _curve_vjp(g: AnyArray, x: AnyArray, curve: AnyArray, order: int, ndim: int) -> AnyArray:
    products = g * conjugate(curve_at(x, curve=curve, order=order + 1, ndim=ndim))
    return np.sum(products, tuple(range(-ndim, 0))) if ndim else products


@opaque(
    vjp={"x": lambda g, x, curve, order, ndim: _curve_vjp(g, x, curve, order, ndim)},
    jvp={"x": lambda t, x, curve, order, ndim: _spread(t, ndim) * curve_at(x, curve=curve, order=order + 1, ndim=ndim)},
    structure=lambda params: "diagonal" if not params["ndim"] else "dense",
    promotion="float",
    listed=False,
)
def curve_at(x: AnyArray, *, curve: AnyArray, order: AnyArray, ndim: AnyArray) -> AnyArray:
    """A constant curve of SciPy's, or a derivative of it, at each of many points; its values have ``ndim`` axes."""
    return derivative_at(curve, np.asarray(x), order)


def derivative_at(curve: Any, x: NumpyArray, order: int) -> AnyArray:
    """A derivative (or, with a negative order, an antiderivative) of an interpolant of SciPy's, at points."""
    if order < 0:
        return curve.antiderivative(-order)(x)
    if not order:
        return curve(x)
    if _is(curve, "UnivariateSpline"):
        try:
            return curve(x, nu=order)
        except ValueError:  # the order is larger than the degree
            return np.zeros(np.shape(x))
    by_number = _is(curve, "KroghInterpolator") or _is(curve, "BarycentricInterpolator")
    return curve.derivative(x, order) if by_number else curve(x, order)


def _is(curve: AnyArray, name: str) -> bool:
    """Whether it is an interpolant of a class of SciPy's, or of one that is made of it."""
    return any(kind.__name__ == name for kind in type(curve).__mro__)
