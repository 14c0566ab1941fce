"""Solvers with the names of ``scipy.optimize``: root finders and curve fitting with differentiable solutions.

``minimize``, ``least_squares`` and ``root`` are those of ``chainrule.scipy``. They compute derivatives for the solver;
``chainrule.implicit`` differentiates solutions of any equation.

>>> import numpy as np
>>> import chainrule as cr
>>> from chainrule.scipy.optimize import brentq
>>> f = lambda x, a: x**3 + x - a
>>> a, x = 3.0, brentq(f, 0, 2, args=(3.0,))
>>> bool(np.isclose(cr.grad(lambda a: brentq(f, 0, 2, args=(a,)))(a), 1 / (3 * x**2 + 1)))
True
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from chainrule import implicit
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.jacobians.forms import to_tensor
from chainrule._src.transforms.jacrev import jacfwd
from chainrule.scipy.derivatives import scipy_module
from chainrule.scipy.least_squares import least_squares
from chainrule.scipy.minimize import minimize
from chainrule.scipy.root import root
from chainrule.scipy.vectors import arguments, plain_value

__all__ = [
    "bisect",
    "brenth",
    "brentq",
    "curve_fit",
    "least_squares",
    "minimize",
    "newton",
    "ridder",
    "root",
    "toms748",
]


def _scipy_solver(name: str) -> AnyFunction:
    return getattr(scipy_module("scipy.optimize", f"optimize.{name}"), name)


def _root(name: str, f: AnyFunction, x0: float, args: tuple[object, ...], find: AnyFunction) -> AnyArray:
    """Solve ``f(x, *args) = 0``, differentiably; ``find(g)`` finds a root of a function g of a number."""

    def solver(g: AnyFunction, start: AnyArray) -> object:
        return np.reshape(
            find(lambda x: float(np.reshape(plain_value(g(np.float64(x)), f"{name}()"), ()))), np.shape(start)
        )

    return implicit.root(lambda x, *args: f(x, *args), float(x0), *args, solver=solver)


def _bracketing_solver(name: str) -> AnyFunction:
    """Return the public function for one of SciPy's bracketing solvers."""

    def solve(f: AnyFunction, a: float, b: float, args: object = (), **options: object) -> Any:
        if options.get("full_output"):
            raise NotImplementedError(f"{name}(full_output=True) is not supported; SciPy's function has it")
        find = lambda g: _scipy_solver(name)(g, a, b, **options)  # noqa: E731
        return _root(name, f, (a + b) / 2, arguments(args), find)

    solve.__name__ = solve.__qualname__ = name
    solve.__doc__ = f"""``scipy.optimize.{name}``: a root of ``f(x, *args)`` between a and b, differentiable with respect to ``args``.

    Args:
        f: from a number (an array without axes) to one.
        a, b: where f has different signs: constants.
        args: arguments that the root depends on. (Values that f closes over are differentiable once, in reverse mode.)
        options: as in SciPy.

    Returns:
        The root, a 0-d array.
    """
    return solve


brentq, brenth, bisect, ridder, toms748 = map(_bracketing_solver, ["brentq", "brenth", "bisect", "ridder", "toms748"])


def newton(
    func: AnyFunction, x0: object, fprime: AnyFunction | None = None, args: object = (), **options: object
) -> Any:
    """Find a root of ``func(x, *args)`` near x0 by ``scipy.optimize.newton``, differentiable with respect to ``args``.

    Args:
        func: a function from values like x0 to the same shape: a number, or an array of independent equations.
        x0: the start.
        fprime: as in SciPy. Without it, Newton's method is used with the automatic derivative.
        args: arguments that the root depends on.
        options: as in SciPy, with ``fprime``.
    """
    args = arguments(args)
    x0 = to_tensor(x0).detach().numpy() * 1.0
    if fprime is None and not options:
        return implicit.root(func, x0, *args)

    def solver(g: AnyFunction, start: object) -> object:
        derivative = None if fprime is None else lambda x: plain_value(fprime(x, *args), "fprime()")
        return _scipy_solver("newton")(lambda x: plain_value(g(x), "newton()"), start, derivative, **options)

    return implicit.root(func, x0, *args, solver=solver)


def _parameter_count(f: AnyFunction) -> int:
    """Return the number of parameters of a model: its positional arguments after xdata."""
    try:
        kinds = [p.kind for p in inspect.signature(f).parameters.values()]
    except (TypeError, ValueError):  # a function in C
        kinds = []
    count = kinds.count(inspect.Parameter.POSITIONAL_ONLY) + kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if count < 2 or inspect.Parameter.VAR_POSITIONAL in kinds:
        raise ValueError(
            "curve_fit(): unable to determine number of fit parameters from the signature of f: pass p0, a start for each"
        )
    return count - 1


def curve_fit(
    f: AnyFunction, xdata: Any, ydata: Any, p0: Any = None, sigma: object = None, absolute_sigma: bool = False
) -> Any:
    """Fit parameters as ``scipy.optimize.curve_fit``, differentiable with respect to the data and ``sigma``.

    Args:
        f: ``f(xdata, *parameters)`` returns a vector like ydata.
        xdata, ydata: the data; ydata and sigma are vectors.
        p0: the start: a constant number for each parameter. The default is 1 for each parameter in the signature of f.
        sigma, absolute_sigma: as in SciPy; sigma has an uncertainty for each element of ydata.

    Returns:
        The parameters (n,), and their covariance (n, n).

    Raises:
        ValueError: p0 is missing, and the signature of f does not show the number of parameters.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> t = np.linspace(0, 1, 6)
    >>> fit = lambda y: cr.scipy.optimize.curve_fit(lambda t, a, b: a * np.exp(b * t), t, y, [1., 0.])[0]
    >>> fit(2 * np.exp(-t)), cr.jacrev(fit)(2 * np.exp(-t)).shape
    (array([ 2., -1.]), (2, 6))
    """
    scales = () if sigma is None else (sigma,)
    p0 = np.ones(_parameter_count(f)) if p0 is None else np.asarray(p0, float)

    def residuals(p: AnyArray, xdata: object, ydata: Any, *scales: object) -> Any:
        residual = f(xdata, *[p[k] for k in range(len(p0))]) - ydata
        return residual / scales[0] if scales else residual

    data = (xdata, ydata, *scales)
    p = implicit.least_squares(residuals, p0, *data, solver=lambda g, x0: least_squares(g, x0, xtol=1e-12, ftol=1e-12))
    J = jacfwd(lambda p: residuals(p, *data))(p)
    covariance = np.linalg.inv(J.T @ J)
    if not absolute_sigma:
        residual = residuals(p, *data)
        covariance = covariance * (np.sum(residual**2) / (len(residual) - len(p0)))
    return p, covariance


show(globals())
