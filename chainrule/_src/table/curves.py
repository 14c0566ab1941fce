"""SciPy's interpolants as a primitive. The module is loaded at first use, and the primitive is not in ``TABLE``.

``scipy.interpolate`` calls ``curve_at``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.rules.kinds import opaque
from chainrule._src.rules.rules import conjugate

ndarray = np.ndarray


def _append_axes(t: AnyArray, ndim: int) -> AnyArray:
    """Append ``ndim`` axes of length 1."""
    return np.reshape(t, (*shape_of(t), *(1,) * ndim))


def _curve_vjp(g: AnyArray, x: AnyArray, curve: AnyArray, order: int, ndim: int) -> AnyArray:
    products = g * conjugate(curve_at(x, curve=curve, order=order + 1, ndim=ndim))
    return np.sum(products, tuple(range(-ndim, 0))) if ndim else products


@opaque(
    vjp={"x": lambda g, x, curve, order, ndim: _curve_vjp(g, x, curve, order, ndim)},
    jvp={
        "x": lambda t, x, curve, order, ndim: (
            _append_axes(t, ndim) * curve_at(x, curve=curve, order=order + 1, ndim=ndim)
        )
    },
    structure=lambda params: "diagonal" if not params["ndim"] else "dense",
    promotion="float",
    listed=False,
)
def curve_at(x: AnyArray, *, curve: AnyArray, order: AnyArray, ndim: AnyArray) -> AnyArray:
    """Evaluate a constant SciPy interpolant, or a derivative of it, at many points; its values have ``ndim`` axes."""
    return derivative_at(curve, np.asarray(x), order)


def derivative_at(curve: Any, x: NumpyArray, order: int) -> AnyArray:
    """Evaluate a derivative (or, for a negative order, an antiderivative) of a SciPy interpolant at points."""
    if order < 0:
        return curve.antiderivative(-order)(x)
    if not order:
        return curve(x)
    if _is_instance(curve, "UnivariateSpline"):
        try:
            return curve(x, nu=order)
        except ValueError:  # the order is above the degree
            return np.zeros(np.shape(x))
    by_number = _is_instance(curve, "KroghInterpolator") or _is_instance(curve, "BarycentricInterpolator")
    return curve.derivative(x, order) if by_number else curve(x, order)


def _is_instance(curve: AnyArray, name: str) -> bool:
    """Return whether ``curve`` is an instance of the SciPy class with this name, or of a subclass."""
    return any(kind.__name__ == name for kind in type(curve).__mro__)
