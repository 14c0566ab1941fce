"""Interpolation with the names of ``scipy.interpolate``, differentiable with respect to evaluation points and values.

SciPy computes the interpolants, and their derivatives with respect to the points. Most interpolants are linear in the
values: they are sums of splines through unit vectors, so derivatives with respect to values exist to any order.

>>> import numpy as np
>>> import chainrule as cr
>>> from chainrule.scipy.interpolate import CubicSpline
>>> x = np.linspace(0, 3, 7)
>>> bool(np.isclose(cr.grad(CubicSpline(x, np.sin(x)))(1.3), np.cos(1.3), atol=1e-3))
True
>>> cr.grad(lambda y: CubicSpline(x, y)(1.0) ** 2)(np.sin(x)).round(3) + 0.0
array([0.   , 0.   , 1.683, 0.   , 0.   , 0.   , 0.   ])
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, array_of, as_arrays
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, AnyFunction, IntoArray, NumpyArray
from chainrule._src.table.curves import curve_at, derivative_at
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.foreign_operands import numbers_of
from chainrule._src.tape.protocol import ArrayLike, on_numbers
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule.scipy.derivatives import scipy_module

__all__ = [
    "Akima1DInterpolator",
    "BSpline",
    "BarycentricInterpolator",
    "CubicHermiteSpline",
    "CubicSpline",
    "Curve",
    "InterpolatedUnivariateSpline",
    "KroghInterpolator",
    "PchipInterpolator",
    "RegularGridInterpolator",
    "UnivariateSpline",
    "evaluate",
    "interp1d",
    "interpn",
    "make_interp_spline",
    "make_smoothing_spline",
]

ndarray = np.ndarray


def _scipy() -> Any:
    return scipy_module("scipy.interpolate", "interpolate")


# -- evaluation --------------------------------------------------------------------------------------------------------


def _evaluate_curve(x: Any, **params: Any) -> AnyArray:
    """Evaluate a curve at x; the result has the type of x."""
    numbers = numbers_of(x)
    x = x if numbers is None else numbers
    if params["order"] <= 0 and getattr(params["curve"], "ext", None) in (3, "const"):  # constant extrapolation
        knots = params["curve"].get_knots()
        x = np.clip(x, knots[0], knots[-1])
    if isinstance(x, (Tensor, ArrayLike)):
        return bind(curve_at, (x,), params)
    found = bind(curve_at, (x._tensor if type(x) is Array else np.asarray(x, float),), params)
    return as_arrays(found)


def evaluate(curve: object, x: object, nu: int = 0) -> Any:
    """Evaluate SciPy's interpolant, or its derivative of order ``nu``, at points that may be differentiated.

    Args:
        curve: a ``CubicSpline``, ``PchipInterpolator``, ``BSpline``, ``PPoly``, ``UnivariateSpline`` or another
            interpolant with a ``derivative`` method.
        x: the points: an array, an ``Array`` or a tensor.

    Raises:
        TypeError: the curve has no derivative.

    >>> import numpy as np
    >>> import scipy.interpolate
    >>> import chainrule as cr
    >>> curve = scipy.interpolate.PchipInterpolator([0., 1., 2.], [0., 1., 4.])
    >>> cr.vmap(cr.grad(lambda x: cr.scipy.interpolate.evaluate(curve, x)))(np.array([0.5, 1.5]))
    array([1.125, 3.125])
    """
    if isinstance(curve, Curve):
        return curve(x, nu)
    if not hasattr(curve, "derivative"):
        raise TypeError(
            f"evaluate(): a {type(curve).__name__} has no derivative: create it with chainrule.scipy.interpolate, which has "
            f"{', '.join(name for name in __all__ if name[0].isupper())}, interp1d, interpn"
        )
    some = derivative_at(curve, np.zeros(()), 0)  # any point: extrapolated or nan
    return _evaluate_curve(x, curve=curve, order=nu, ndim=np.ndim(some))


# -- curves ------------------------------------------------------------------------------------------------------------


class Curve:
    """An interpolant that is called with evaluation points: ``curve(x)``, or ``curve(x, nu)`` for derivatives.

    Args:
        parts: pairs of a function and values (an array, an ``Array`` or a tensor). The function constructs SciPy's
            interpolant of values along the first axis, and is linear in them. The curve is the sum over the pairs.
        axis: the axis of the values.
    """

    def __init__(self, parts: Sequence[tuple[AnyFunction, Any]], axis: int = 0) -> None:
        self._axis = axis
        self._order = 0
        self._terms = []
        for make, y in parts:
            y = np.moveaxis(_as_values(y), axis, 0)
            if isinstance(y, ndarray):
                self._terms.append((make(y), None, y.ndim - 1))
            else:
                self._terms.append((make(np.eye(len(y))), y, 1))

    def __call__(self, x: Any, nu: int = 0) -> Any:
        terms = [self._term(x, self._order + nu, *term) for term in self._terms]
        found = functools.reduce(lambda a, b: a + b, terms)
        n = np.ndim(x)
        return found if not self._axis else np.moveaxis(found, range(n), range(self._axis, self._axis + n))

    @staticmethod
    def _term(x: object, order: int, curve: object, y: AnyArray | None, ndim: int) -> Any:
        at = _evaluate_curve(x, curve=curve, order=order, ndim=ndim)
        return at if y is None else np.tensordot(at, y, ([-1], [0]))

    def derivative(self, nu: int = 1) -> Curve:
        """Return the derivative of order ``nu`` as a curve."""
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__)
        found._order += nu
        return found

    def antiderivative(self, nu: int = 1) -> Curve:
        """Return the antiderivative of order ``nu`` that is zero at the first point, as a curve."""
        return self.derivative(-nu)

    def integrate(self, a: object, b: object) -> Any:
        """Return the integral from a to b."""
        return self(b, -1) - self(a, -1)


def _as_values(y: object) -> Any:
    """Return the values unchanged if they are differentiated, else as a plain array."""
    if isinstance(y, (Tensor, Array, ArrayLike)):
        return y
    numbers = numbers_of(y)
    return np.asarray(y) if numbers is None else numbers


def CubicSpline(
    x: object, y: object, axis: int = 0, bc_type: object = "not-a-knot", extrapolate: object = None
) -> Curve:
    """Return an interpolant like ``scipy.interpolate.CubicSpline``, differentiable in y and the evaluation points.

    Args:
        x: the points of the values, (n,): a constant.
        y: the values, n of them along ``axis``.
        axis, extrapolate: as in SciPy.
        bc_type: as in SciPy, without values of derivatives if y is differentiated.
    """
    if not isinstance(bc_type, str) and not isinstance(_as_values(y), ndarray):
        raise TypeError(
            "CubicSpline(): boundary conditions with values make it nonlinear in y; use a named one, as bc_type='natural'"
        )
    return Curve([(lambda y: _scipy().CubicSpline(x, y, 0, bc_type, extrapolate), y)], axis)


def CubicHermiteSpline(x: object, y: object, dydx: object, axis: int = 0, extrapolate: object = None) -> Curve:
    """Return an interpolant like ``scipy.interpolate.CubicHermiteSpline``, differentiable in y, ``dydx`` and the evaluation points."""
    make = _scipy().CubicHermiteSpline
    by_values = (lambda y: make(x, y, np.zeros_like(y), 0, extrapolate), y)
    return Curve([by_values, (lambda d: make(x, np.zeros_like(d), d, 0, extrapolate), dydx)], axis)


def PchipInterpolator(x: object, y: Any, axis: int = 0, extrapolate: object = None) -> Curve:
    """Return an interpolant like ``scipy.interpolate.PchipInterpolator``, differentiable in y and the evaluation points."""
    y = _as_values(y)
    if isinstance(y, ndarray):
        return Curve([(lambda y: _scipy().PchipInterpolator(x, y, 0, extrapolate), y)], axis)
    y = np.moveaxis(y, axis, 0)
    found = CubicHermiteSpline(x, y, _pchip_slopes(np.asarray(x, float), y), 0, extrapolate)
    found._axis = axis
    return found


def _pchip_slopes(x: AnyArray, y: AnyArray) -> AnyArray:
    """Return the slopes at the points: weighted harmonic means of the slopes on both sides if their signs agree, else 0.

    F. N. Fritsch and J. Butland, A method for constructing local monotone piecewise cubic interpolants (1984).
    """
    h = np.reshape(np.diff(x), (-1, *(1,) * (np.ndim(y) - 1)))
    slopes = np.diff(y, axis=0) / h
    if len(h) == 1:
        return np.concatenate([slopes, slopes])
    left, right = slopes[:-1], slopes[1:]
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    agree = np.sign(left) * np.sign(right) > 0
    inner = np.where(agree, (w1 + w2) / (w1 / np.where(agree, left, 1.0) + w2 / np.where(agree, right, 1.0)), 0.0)
    ends = [_pchip_end(h[0], h[1], slopes[0], slopes[1]), _pchip_end(h[-1], h[-2], slopes[-1], slopes[-2])]
    return np.concatenate([ends[0][None], inner, ends[1][None]])


def _pchip_end(h0: AnyArray, h1: AnyArray, m0: AnyArray, m1: AnyArray) -> AnyArray:
    """Return the slope at an end from three points, with the sign of the first secant and limited steepness."""
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3 * np.abs(m0))
    return np.where(np.sign(d) != np.sign(m0), 0.0, np.where(steep, 3 * m0, d))


def Akima1DInterpolator(x: object, y: object, axis: int = 0, **options: object) -> Curve:
    """Return an interpolant like ``scipy.interpolate.Akima1DInterpolator``, differentiable in the evaluation points, but not y."""
    if not isinstance(_as_values(y), ndarray):
        raise TypeError(
            "Akima1DInterpolator() is not differentiable with respect to y, in which it is nonlinear. CubicSpline, "
            "PchipInterpolator and make_interp_spline are"
        )
    return Curve([(lambda y: _scipy().Akima1DInterpolator(x, y, 0, **options), y)], axis)


def make_interp_spline(x: object, y: object, k: int = 3, axis: int = 0, bc_type: object = None) -> Curve:
    """Return an interpolant like ``scipy.interpolate.make_interp_spline``, of degree k; differentiable in y and the evaluation points."""
    if bc_type is not None and not isinstance(bc_type, str) and not isinstance(_as_values(y), ndarray):
        raise TypeError("make_interp_spline(): boundary conditions with values make it nonlinear in y; use a named one")
    return Curve([(lambda y: _scipy().make_interp_spline(x, y, k, bc_type=bc_type), y)], axis)


def make_smoothing_spline(x: object, y: IntoArray, w: object = None, lam: float | None = None, axis: int = 0) -> Curve:
    """Return an interpolant like ``scipy.interpolate.make_smoothing_spline``, differentiable in the points and, given ``lam``, in y."""
    if lam is None and not isinstance(_as_values(y), ndarray):
        raise TypeError("make_smoothing_spline(): without lam the smoothness depends on y: pass it, as in lam=0.1")

    def make(y: Any) -> object:
        columns = np.reshape(y, (len(y), -1))
        splines = [_scipy().make_smoothing_spline(x, column, w, lam) for column in columns.T]
        c = np.stack([spline.c for spline in splines], -1).reshape(-1, *np.shape(y)[1:])
        return _scipy().BSpline(splines[0].t, c, splines[0].k)

    return Curve([(make, y)], axis)


def BSpline(t: Any, c: object, k: int, extrapolate: object = True, axis: int = 0) -> Curve:
    """Return an interpolant like ``scipy.interpolate.BSpline``: constant knots t, coefficients c, degree k; differentiable in c."""
    count = len(t) - k - 1
    return Curve([(lambda c: _scipy().BSpline(t, c[:count], k, extrapolate), c)], axis)


def BarycentricInterpolator(xi: object, yi: object, axis: int = 0) -> Curve:
    """Return an interpolant like ``scipy.interpolate.BarycentricInterpolator``, differentiable in ``yi`` and the evaluation points."""
    return KroghInterpolator(xi, yi, axis)  # the same polynomial, with derivatives at the points


def KroghInterpolator(xi: object, yi: object, axis: int = 0) -> Curve:
    """Return an interpolant like ``scipy.interpolate.KroghInterpolator``, differentiable in ``yi`` and the evaluation points."""
    return Curve([(lambda y: _scipy().KroghInterpolator(xi, y), yi)], axis)


def UnivariateSpline(x: object, y: object, *args: object, **options: object) -> Curve:
    """Return an interpolant like ``scipy.interpolate.UnivariateSpline``, differentiable in the evaluation points, but not y."""
    if not isinstance(_as_values(y), ndarray):
        raise TypeError(
            "UnivariateSpline() is not differentiable with respect to y, on which its knots depend: use "
            "make_interp_spline(x, y) to interpolate, or make_smoothing_spline(x, y, lam=...) to smooth"
        )
    return Curve([(lambda y: _scipy().UnivariateSpline(x, y, *args, **options), y)])


def InterpolatedUnivariateSpline(x: object, y: object, k: int = 3) -> Curve:
    """Return an interpolant like ``scipy.interpolate.InterpolatedUnivariateSpline``, differentiable in y and the evaluation points."""
    return make_interp_spline(x, y, k)


_DEGREES = {"linear": 1, "slinear": 1, "quadratic": 2, "cubic": 3}


class interp1d:
    """An interpolant like ``scipy.interpolate.interp1d``, differentiable with respect to y and the evaluation points.

    Args:
        kind: "linear", "quadratic", "cubic", or the degree of a spline.
        axis, bounds_error, fill_value: as in SciPy.

    Raises:
        NotImplementedError: SciPy's other kinds.
    """

    def __init__(
        self,
        x: AnyArray,
        y: AnyArray,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        degree = _DEGREES.get(kind, kind)
        if not isinstance(degree, int):
            raise NotImplementedError(
                f"interp1d(kind={kind!r}) is a step function or unknown: use one of {', '.join(_DEGREES)}"
            )
        y = _as_values(y)
        axis %= np.ndim(y)
        x = np.asarray(x)
        order = np.argsort(x, kind="stable")
        if not assume_sorted and (order[1:] < order[:-1]).any():
            x, y = x[order], np.take(y, order, axis)
        self.x = x
        self._curve = make_interp_spline(x, y, degree, axis)
        self._fill = None if isinstance(fill_value, str) else fill_value
        default = self._fill is not None and np.ndim(fill_value) == 0 and np.isnan(fill_value)
        self._strict = default if bounds_error is None else bounds_error

    def __call__(self, x: Any) -> Any:
        x = _as_values(x)
        found = self._curve(x)
        if self._fill is None:
            return found
        if self._strict:
            _check_inside(x, self.x[0], self.x[-1])
            return found
        below, above = self._fill if isinstance(self._fill, tuple) else (self._fill, self._fill)
        index = (..., *(None,) * (np.ndim(found) - np.ndim(x) - self._curve._axis))
        outside = np.where((x < self.x[0])[index], below, found)
        return np.where((x > self.x[-1])[index], above, outside)


def _check_inside(x: object, low: float, high: float) -> None:
    """Raise if a point is outside of the interpolation range."""

    def check(values: NumpyArray) -> NumpyArray:
        if ((values < low) | (values > high)).any():
            raise ValueError(f"a value in x is outside of the interpolation range, {low} to {high}")
        return values

    on_numbers(x._tensor if type(x) is Array else x, check)


# -- grids -------------------------------------------------------------------------------------------------------------


class RegularGridInterpolator:
    """A linear ``scipy.interpolate.RegularGridInterpolator``, differentiable with respect to values and evaluation points.

    Args:
        points: the grid: constant ascending coordinates for each axis.
        values: (n1, ..., nk, ...): an array, an ``Array`` or a tensor.
        bounds_error, fill_value: as in SciPy.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> grid = np.linspace(0, 1, 3)
    >>> f = cr.scipy.interpolate.RegularGridInterpolator((grid, grid), np.outer(grid, grid))
    >>> cr.grad(lambda p: f(p))(np.array([0.3, 0.6]))
    array([0.6, 0.3])
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = np.nan,
    ) -> None:
        if method not in ("linear", "slinear"):
            raise NotImplementedError(f"RegularGridInterpolator(method={method!r}): only 'linear' is supported")
        self.grid = [np.asarray(p, float) for p in points]
        self.values = _as_values(values)
        self._strict, self._fill = bounds_error, fill_value
        shape = tuple(map(len, self.grid))
        if np.shape(self.values)[: len(shape)] != shape or any((np.diff(p) <= 0).any() for p in self.grid):
            raise ValueError(
                f"the grid must have ascending points, here {shape}, but values has the shape {np.shape(values)}"
            )

    def __call__(self, xi: Any) -> Any:
        if isinstance(xi, tuple):
            xi = np.stack(np.broadcast_arrays(*xi), -1)
        xi = _as_values(xi)
        n = len(self.grid)
        if np.ndim(xi) < 1 or np.shape(xi)[-1] != n:
            raise ValueError(
                f"the points must have {n} coordinates along the last axis, but their shape is {np.shape(xi)}"
            )
        coordinates = [xi[..., k] for k in range(n)]
        if self._strict:
            for x, p in zip(coordinates, self.grid, strict=True):
                _check_inside(x, p[0], p[-1])
        found = multilinear(self.grid, self.values, coordinates)
        if self._strict or self._fill is None:
            return found
        outside = functools.reduce(
            lambda a, b: a | b, [(x < p[0]) | (x > p[-1]) for x, p in zip(coordinates, self.grid, strict=True)]
        )
        return np.where(outside[(..., *(None,) * (np.ndim(found) - np.ndim(outside)))], self._fill, found)


def multilinear(grid: Sequence[NumpyArray], values: IntoArray, coordinates: Sequence[IntoArray]) -> AnyArray:
    """Interpolate values on a grid linearly along each axis; extrapolate outside."""
    indices, weights = [], []
    for x, p in zip(coordinates, grid, strict=True):
        k = np.clip(np.searchsorted(p, x, "right") - 1, 0, max(len(p) - 2, 0))
        upper = np.minimum(k + 1, len(p) - 1)
        low, high = _take(p, k), _take(p, upper)
        fraction = (x - low) / np.where(high > low, high - low, 1.0)
        indices.append((k, upper))
        weights.append((1 - fraction, fraction))
    shape = np.shape(values)
    counts, tail = shape[: len(grid)], shape[len(grid) :]
    steps = [math.prod(counts[k + 1 :]) for k in range(len(counts))]
    flat = np.reshape(values, (math.prod(counts), *tail))
    total: Any = 0
    for corner in itertools.product((0, 1), repeat=len(grid)):
        weight = functools.reduce(lambda a, b: a * b, [w[side] for w, side in zip(weights, corner, strict=True)])
        at = sum(step * place[side] for step, place, side in zip(steps, indices, corner, strict=True))
        total = total + weight[(..., *(None,) * len(tail))] * _take(flat, at)
    return total


def _take(values: Any, at: Any) -> AnyArray:
    """Return the elements at indices along the first axis. (``np.take`` does not dispatch on its indices.)"""
    if isinstance(values, ndarray) and not isinstance(at, ndarray):
        values = array_of(wrap(values)) if type(at) is Array else wrap(values)
    return np.take(values, at, 0)


def interpn(
    points: Sequence[object],
    values: object,
    xi: object,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: object = np.nan,
) -> Any:
    """Like a linear ``scipy.interpolate.interpn``, differentiable with respect to the values and the evaluation points."""
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


show(globals())
