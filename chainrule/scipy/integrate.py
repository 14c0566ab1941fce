"""Differentiable integrals and solvers of differential equations, with the names of ``scipy.integrate``.

``quad`` calls SciPy's, which subdivides the interval adaptively. Derivatives are those of a quadrature sum over the same
intervals: with respect to the limits and to all values that the integrand uses. Rules for samples are linear in them.

>>> import numpy as np
>>> import chainrule as cr
>>> area = lambda k, b: cr.scipy.integrate.quad(lambda x: np.exp(-k * x), 0, b)[0]
>>> by_k, by_b = cr.grad(area, (0, 1))(1.5, 2.0)
>>> np.allclose(by_k, (4 * np.exp(-3) - 1) / 1.5**2), np.allclose(by_b, np.exp(-3))
(True, True)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array, array_of, unwrap_array
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, TensorLike
from chainrule._src.jacobians.forms import Arguments
from chainrule._src.jacobians.solution import solved
from chainrule._src.messages import errors
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.arguments import data_of
from chainrule._src.transforms.vmap import vmap
from chainrule.scipy.along import record_call
from chainrule.scipy.derivatives import scipy_module
from chainrule.scipy.solve_bvp import solve_bvp
from chainrule.scipy.solve_ivp import solve_ivp

__all__ = ["cumulative_simpson", "cumulative_trapezoid", "quad", "romb", "simpson", "solve_bvp", "solve_ivp"]

ndarray = np.ndarray

_POINTS = 20  # points of the Gauss rule in each interval
_GRADED = 0.25 ** np.arange(1, 16)  # ends of intervals graded towards the limits, where derivatives may be singular


def _is_differentiated(x: object) -> bool:
    return isinstance(x, (Tensor, Array, ArrayLike))


# -- functions ---------------------------------------------------------------------------------------------------------


def quad(
    func: AnyFunction,
    a: Any,
    b: Any,
    args: object = (),
    full_output: int = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    **options: object,
) -> Any:
    """Integrate ``func(x, *args)`` from a to b, as ``scipy.integrate.quad``, with derivatives.

    Args:
        func: a function from a number (a 0-d array) to a number. ``vmap`` calls it with many numbers at once, if it can.
        a, b: the limits, which may be infinite.
        args: further arguments. Values that ``vmap`` maps over must be among them; others may be closed over.
        epsabs, epsrel, limit: as in SciPy.

    Returns:
        The integral, and SciPy's estimate of its error (a number).

    Warns:
        UserWarning: the quadrature sum for the derivatives is less accurate than the integral.

    Raises:
        NotImplementedError: SciPy's other options, if an argument is differentiated.
    """
    scipy_quad = scipy_module("scipy.integrate", "integrate.quad").quad
    args = args if type(args) is tuple else (args,)
    inputs = (a, b, *args, _sample_value(func, a, b, args))
    if not any(map(_is_differentiated, inputs)):
        return scipy_quad(func, a, b, args, full_output, epsabs, epsrel, limit=limit, **options)
    if full_output or options:
        named = ", ".join([*options, *["full_output"] * bool(full_output)])
        raise NotImplementedError(f"quad(): derivatives are not supported with {named}")
    kind = tuple([not _is_differentiated(x) and bool(np.isinf(x)) for x in (a, b)])
    arguments = Arguments((a, b, *args))
    error = [0.0]

    def compute(*operands: Tensor) -> NumpyArray:
        low, high, *rest = arguments.with_tensors(operands)
        low, high = _number(low), _number(high)
        value, error[0], info = scipy_quad(
            lambda x: _number(func(np.float64(x), *rest)), low, high, (), 1, epsabs, epsrel, limit=limit
        )[:3]
        found = np.zeros((limit + 1, 2))
        found[0, 0] = value
        starts, ends = info["alist"][: info["last"]], info["blist"][: info["last"]]
        if not any(kind):
            starts, ends = ((x - low) / (high - low) if high != low else 0 * x for x in (starts, ends))
        found[1 : 1 + info["last"]] = np.sort([starts, ends], 0).T  # intervals run downwards if b < a
        return found

    found = bind(solved, arguments.operands, {"compute": compute})
    found = found if isinstance(found, Tensor) else wrap(found)  # if only closed-over values are differentiated
    found = array_of(found)
    total = _quadrature_sum(func, a, b, args, kind, found[1:])
    value = found[0, 0]
    result = total - total.detach() + value
    _check(data_of(total), data_of(value), max(epsabs, error[0]), epsrel)
    tensors = any(isinstance(x, (Tensor, ArrayLike)) for x in inputs)
    return unwrap_array(result) if tensors else result, error[0]


def _sample_value(func: AnyFunction, a: TensorLike, b: TensorLike, args: tuple[AnyArray, ...]) -> AnyArray:
    """Return the function's value at a point between the limits."""
    finite = [x for x in (a, b) if _is_differentiated(x) or np.isfinite(x)]
    return func(sum(finite, np.float64(0.0)) / (len(finite) or 1) if len(finite) != 1 else finite[0] * 1.0, *args)


def _number(x: object) -> float:
    """Return a 0-d value as a number, without derivatives.

    Raises:
        RuntimeError: the value is batched by vmap.
    """
    data = data_of(x)
    data = data.read() if isinstance(data, ArrayLike) else data
    if data is None:
        raise RuntimeError(
            "quad(): the integrand closes over a value that vmap maps over. Pass it as an argument: "
            "quad(lambda x, k: ..., a, b, args=(k,))"
        )
    return float(np.reshape(data, ()))


def _quadrature_sum(
    func: AnyFunction, a: object, b: object, args: tuple[object, ...], kind: tuple[bool, ...], intervals: AnyArray
) -> Any:
    """Return the quadrature sum over intervals of [0, 1], which [a, b] is mapped to as in SciPy."""
    plain = data_of(intervals)
    if type(plain) is ndarray:  # drop empty intervals (under vmap their number differs between examples)
        intervals = intervals[np.flatnonzero(plain[:, 1] > plain[:, 0])]
    starts, ends = intervals[:, 0], intervals[:, 1]
    cuts = np.concatenate([[0.0], _GRADED[::-1], 1 - _GRADED[1:], [1.0]])
    first, last = np.maximum(starts[:, None], cuts[:-1]), np.minimum(ends[:, None], cuts[1:])
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    width = np.maximum(last - first, 0.0)[..., None]
    t = (first[..., None] + width * (points + 1) / 2).reshape(-1)
    weight = (width * weights / 2).reshape(-1)
    if type(data_of(t)) is ndarray:
        inside = np.flatnonzero(data_of(weight))
        t, weight = t[inside], weight[inside]
    return np.sum(weight * _mapped_integrand(func, a, b, args, kind, t))


def _mapped_integrand(
    func: AnyFunction, a: Any, b: Any, args: tuple[Any, ...], kind: tuple[bool, ...], t: Any
) -> AnyArray:
    """Return the integrand, transformed to [0, 1], at the points t."""
    if kind == (False, False):
        return _evaluate(func, a + (b - a) * t, args) * (b - a)
    t = np.where(t > 0, t, 1.0)  # points at 0 have no weight
    distance, jacobian = (1 - t) / t, 1 / t**2
    if kind == (True, True):
        both = _evaluate(func, distance, args) + _evaluate(func, -distance, args)
        return both * jacobian * np.sign(b)
    x = a + np.sign(b) * distance if kind[1] else b + np.sign(a) * distance
    sign = np.sign(b) if kind[1] else -np.sign(a)
    return _evaluate(func, x, args) * jacobian * sign


def _evaluate(func: AnyFunction, x: Any, args: tuple[Any, ...]) -> Any:
    """Return the function's values at many points, with vmap if possible."""
    try:
        return vmap(lambda x: func(x, *args))(x)
    except (RuntimeError, TypeError, ValueError):  # the function needs concrete values
        return np.stack([func(x[i], *args) for i in range(len(x))])


def _check(total: object, value: object, epsabs: float, epsrel: float) -> None:
    if type(total) is type(value) is ndarray and not abs(total - value) <= 10 * max(epsabs, epsrel * abs(float(value))):
        errors.warn(
            f"quad(): the quadrature sum for derivatives is {float(total):.6g}, but the integral is {float(value):.6g}: the "
            "integrand has peaks or singularities, so derivatives may be equally inaccurate. Split the interval there"
        )


# -- samples -----------------------------------------------------------------------------------------------------------


def _linear(name: str, y: Any, axis: int, *args: object, **options: object) -> AnyArray:
    """Apply SciPy's rule, which is linear in y, as a matrix: its images of the unit vectors."""
    rule = getattr(scipy_module("scipy.integrate", f"integrate.{name}"), name)
    if not _is_differentiated(y):
        return rule(y, *args, axis=axis, **options)
    for x in (*args, *options.values()):
        if _is_differentiated(x):
            raise TypeError(
                f"{name}(): x and dx must be constants. np.trapezoid is differentiable with respect to x, too"
            )
    found = record_call(rule, y, *args, axis=axis, **options)
    if found is not None:
        return found
    y = np.moveaxis(y, axis, -1)
    matrix = rule(np.eye(np.shape(y)[-1]), *args, axis=0, **options)
    found = np.tensordot(y, matrix, ([-1], [-1 if matrix.ndim == 1 else 1]))
    return found if matrix.ndim == 1 else np.moveaxis(found, -1, axis)


def simpson(y: object, x: object = None, *, dx: float = 1.0, axis: int = -1) -> AnyArray:
    """Compute ``scipy.integrate.simpson``, differentiable with respect to the samples y."""
    return _linear("simpson", y, axis, x=_sample_points(x, axis), dx=dx)


def romb(y: object, dx: float = 1.0, axis: int = -1) -> AnyArray:
    """Compute ``scipy.integrate.romb``, differentiable with respect to the samples y."""
    return _linear("romb", y, axis, dx=dx)


def cumulative_simpson(y: Any, *, x: Any = None, dx: float = 1.0, axis: int = -1, initial: Any = None) -> AnyArray:
    """Compute ``scipy.integrate.cumulative_simpson``, differentiable with respect to the samples y."""
    if initial is not None and np.any(initial):
        return cumulative_simpson(y, x=x, dx=dx, axis=axis, initial=0) + initial
    return _linear("cumulative_simpson", y, axis, x=x, dx=dx, initial=initial)


def cumulative_trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1, initial: object = None) -> AnyArray:
    """Compute ``scipy.integrate.cumulative_trapezoid``, differentiable with respect to the samples y and x."""
    y = np.moveaxis(y, axis, -1)
    step = dx if x is None else np.diff(x if np.ndim(x) == 1 else np.moveaxis(x, axis, -1))
    found = np.cumsum((y[..., 1:] + y[..., :-1]) * step / 2, -1)
    if initial is not None:
        if initial != 0:
            raise ValueError("cumulative_trapezoid(): initial must be None or 0")
        found = np.concatenate([np.zeros((*np.shape(y)[:-1], 1)), found], -1)
    return np.moveaxis(found, -1, axis)


def _sample_points(x: Any, axis: int) -> AnyArray | None:
    if x is not None and np.ndim(x) != 1:
        raise NotImplementedError(f"the sample points x must be a vector, but x has the shape {np.shape(x)}")
    return x


show(globals())
