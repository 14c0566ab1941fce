"""Derivatives of solutions: of roots, fixed points, minima and linear systems, whatever solver found them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.tree import tree_flatten
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.jacobians.forms import Form
from chainrule._src.jacobians.solution import Equation, solution
from chainrule._src.transforms.grad import grad

Solver = Callable[[AnyFunction, Any], Any]

__all__ = ["custom_fixed_point", "custom_root", "fixed_point", "least_squares", "linear_solve", "minimum", "root"]


# -- what users call ---------------------------------------------------------------------------------------------------


def root(f: AnyFunction, x0: object, *args: object, solver: Solver | None = None, tol: float | None = None) -> Any:
    """x with ``f(x, *args) = 0``, as a function of ``args`` that can be differentiated, in both modes and any number of times.

    Args:
        f: from what is like x0 (and ``args``) to as many numbers as x0 has: an array or tensor, or a container of them.
        x0: where to start: an array or tensor of floating point numbers, or a container of them. The solution does not
            depend on it.
        args: what the solution depends on: arrays, tensors, numbers, or containers of them.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``, returns x, or a result that has it as ``x``, as those of
            ``chainrule.scipy.root`` and SciPy do. It gets plain arrays, and under ``vmap`` one example at a time. Without
            it: Newton's method.
        tol: how much, relative to x, Newton's next step may still move it. (The fourth root of the dtype's precision.)

    Returns:
        The solution, like x0.

    Raises:
        RuntimeError: Newton's method did not find one.
        numpy.linalg.LinAlgError: when it is differentiated, and ∂f/∂x is singular there.

    Warns:
        UserWarning: when it is differentiated, and it is no solution within ``tol``.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cube_root = lambda a: cr.implicit.root(lambda x, a: x**3 - a, 1.0, a)
    >>> float(cube_root(8.0)), float(cr.grad(cube_root)(8.0)), float(cr.grad(cr.grad(cube_root))(8.0))
    (2.0, 0.08333333333333333, -0.006944444444444444)
    """
    form = Form(x0, "x0", "root")
    return solution(form, args, Equation("root", form, form.flat(f), tol), _calling(f, solver))


def fixed_point(
    f: AnyFunction, x0: object, *args: object, solver: Solver | None = None, tol: float | None = None
) -> Any:
    """x with ``f(x, *args) = x``, as a function of ``args`` that can be differentiated.

    Args:
        f: from what is like x0 (and ``args``) to the like.
        x0, args, tol: as for :func:`root`.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``: such as one that calls g again and again. Without it:
            Newton's method, which finds also what such iterations move away from.

    Returns:
        The fixed point, like x0.

    Raises:
        RuntimeError, numpy.linalg.LinAlgError: as for :func:`root`.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> def kepler(mean, eccentricity):
    ...     return cr.implicit.fixed_point(lambda E, m, e: m + e * np.sin(E), mean, mean, eccentricity)
    >>> E = kepler(1.0, 0.1)
    >>> abs(float(cr.grad(kepler)(1.0, 0.1)) - 1 / (1 - 0.1 * np.cos(E))) < 1e-12
    np.True_
    """
    form = Form(x0, "x0", "fixed_point")
    return solution(form, args, Equation("fixed_point", form, _moved(form.flat(f)), tol), _calling(f, solver))


def minimum(f: AnyFunction, x0: object, *args: object, solver: Solver | None = None, tol: float | None = None) -> Any:
    """A local minimum of ``f(x, *args)`` over x, as a function of ``args`` that can be differentiated.

    Args:
        f: returns a real number (an array or tensor without axes).
        x0, args, tol: as for :func:`root`.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``, returns the minimum, such as ``chainrule.scipy.minimize``.
            Without it: Newton's method, with a Hessian that is damped where it is not positive definite.

    Returns:
        The x of the minimum, like x0.

    Raises:
        RuntimeError: Newton's method did not find one.
        numpy.linalg.LinAlgError: when it is differentiated, and the Hessian of f is singular there.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> X, y = np.array([[1., 2.], [3., 4.], [5., 7.]]), np.array([1., 0., 2.])
    >>> def ridge(log_weight):
    ...     loss = lambda w, log_weight: np.sum((X @ w - y) ** 2) + np.exp(log_weight) * np.sum(w**2)
    ...     return cr.implicit.minimum(loss, np.zeros(2), log_weight)
    >>> ridge(0.0).round(4), cr.jacrev(ridge)(0.0).round(4)
    (array([-0.1176,  0.3109]), array([ 0.1972, -0.1425]))
    """
    form = Form(x0, "x0", "minimum")
    objective = form.scalar(f)
    return solution(form, args, Equation("minimum", form, grad(objective), tol, objective), _calling(f, solver))


def least_squares(
    f: AnyFunction, x0: object, *args: object, solver: Solver | None = None, tol: float | None = None
) -> Any:
    """The x that minimises the sum of squares of ``f(x, *args)``, as a function of ``args`` that can be differentiated.

    Args:
        f: returns the residuals: an array or tensor, or a container of them.
        x0, args, tol: as for :func:`root`.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``, such as ``chainrule.scipy.least_squares``. Without it: as
            for :func:`minimum`.

    Returns:
        The x of the minimum, like x0.

    Raises:
        RuntimeError, numpy.linalg.LinAlgError: as for :func:`minimum`.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> t = np.linspace(0, 1, 5)
    >>> fit = lambda data: cr.implicit.least_squares(lambda p, data: p[0] + p[1] * t - data, np.zeros(2), data)
    >>> cr.jacrev(fit)(t**2).round(3) + 0.0
    array([[ 0.6,  0.4,  0.2,  0. , -0.2],
           [-0.8, -0.4,  0. ,  0.4,  0.8]])
    """
    form = Form(x0, "x0", "least_squares")
    residuals = form.flat(f)

    def half_sum(x: object, *args: object) -> Any:
        return 0.5 * np.sum(residuals(x, *args) ** 2)

    return solution(form, args, Equation("least_squares", form, grad(half_sum), tol, half_sum), _calling(f, solver))


def linear_solve(matvec: AnyFunction, b: object, *args: object, solver: Solver | None = None) -> Any:
    """x with ``matvec(x, *args) = b``, as a function of ``b`` and ``args`` that can be differentiated.

    The matrix is never asked for: its entries that exist are found from ``matvec``. (``np.linalg.solve`` takes matrices.)

    Args:
        matvec: linear in x: from what is like b (and ``args``) to the like.
        b: the right-hand side: an array or tensor, or a container of them.
        args: what the matrix depends on.
        solver: ``solver(g, b)``, with ``g(x) = matvec(x, *args)``, returns x: for example conjugate gradients. Without it:
            by factors of the matrix.

    Returns:
        The solution, like b.

    Raises:
        numpy.linalg.LinAlgError: the matrix is singular.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> stiffness = lambda x, k: k * (2 * x - np.append(x[1:], 0) - np.append(0, x[:-1]))
    >>> bend = lambda k: cr.implicit.linear_solve(stiffness, np.ones(3), k)
    >>> bend(2.0), cr.jacfwd(bend)(2.0)
    (array([0.75, 1.  , 0.75]), array([-0.375, -0.5  , -0.375]))
    """

    def left(x: object, b: object, *args: object) -> Any:
        product = tree_flatten(matvec(x, *args))[0]
        sides = zip(product, tree_flatten(b)[0], strict=True)
        return [y - side for y, side in sides]

    find = None if solver is None else lambda x0, b, *args: solver(lambda x: matvec(x, *args), b)
    form = Form(b, "b", "linear_solve")
    return solution(form, (b, *args), Equation("linear_solve", form, form.flat(left), np.inf), find)


def custom_root(f: AnyFunction, tol: float | None = None) -> Callable[[AnyFunction], AnyFunction]:
    """Make a solver of ``f(x, *args) = 0`` differentiable: a decorator for ``solver(x0, *args)``.

    What the solver does is not recorded. It gets plain arrays, and under ``vmap`` one example at a time.

    Args:
        f: as for :func:`root`. For a minimum it is the gradient of the function that is minimised.
        tol: as for :func:`root`.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> @cr.implicit.custom_root(lambda x, a: x**2 - a)
    ... def heron(x0, a):
    ...     for _ in range(30):
    ...         x0 = (x0 + a / x0) / 2
    ...     return x0
    >>> float(cr.grad(heron, 1)(1.0, 4.0))
    0.25
    """

    def decorator(solver: AnyFunction) -> AnyFunction:
        @functools.wraps(solver)
        def solve(x0: object, *args: object) -> Any:
            form = Form(x0, "x0", "custom_root")
            return solution(form, args, Equation("custom_root", form, form.flat(f), tol), solver)

        return solve

    return decorator


def custom_fixed_point(f: AnyFunction, tol: float | None = None) -> Callable[[AnyFunction], AnyFunction]:
    """Make a solver of ``f(x, *args) = x`` differentiable: a decorator as :func:`custom_root` is.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> @cr.implicit.custom_fixed_point(lambda x, a: np.cos(a * x))
    ... def iterated(x0, a):
    ...     for _ in range(200):
    ...         x0 = np.cos(a * x0)
    ...     return x0
    >>> x = iterated(1.0, 1.0)
    >>> bool(np.isclose(cr.grad(iterated, 1)(1.0, 1.0), -np.sin(x) * x / (1 + np.sin(x))))
    True
    """

    def decorator(solver: AnyFunction) -> AnyFunction:
        @functools.wraps(solver)
        def solve(x0: object, *args: object) -> Any:
            form = Form(x0, "x0", "custom_fixed_point")
            return solution(form, args, Equation("custom_fixed_point", form, _moved(form.flat(f)), tol), solver)

        return solve

    return decorator


def _moved(image: AnyFunction) -> AnyFunction:
    """x - f(x), which is 0 at a fixed point of f."""
    return lambda x, *args: x - image(x, *args)


def _calling(f: AnyFunction, solver: Solver | None) -> AnyFunction | None:
    """A solver of functions of x alone as one that gets the arguments."""
    return None if solver is None else lambda x0, *args: solver(lambda x: f(x, *args), x0)
