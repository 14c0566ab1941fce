"""``chainrule.implicit``: solutions of equations as differentiable functions, by implicit differentiation.

Each function makes an ``Equation`` of roots, fixed points, minima or linear systems, and calls ``solve_equation``, which runs
any solver.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from chainrule._src.arrays.tree import tree_flatten
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.jacobians.forms import Form
from chainrule._src.jacobians.solution import Equation, solve_equation
from chainrule._src.transforms.grad import grad

F = TypeVar("F", bound=AnyFunction)
Solver = Callable[[AnyFunction, Any], Any]

__all__ = ["custom_fixed_point", "custom_root", "fixed_point", "least_squares", "linear_solve", "minimum", "root"]


# -- public functions --------------------------------------------------------------------------------------------------


def root(f: AnyFunction, x0: object, *args: object, solver: Solver | None = None, tol: float | None = None) -> Any:
    """Solve ``f(x, *args) = 0`` for x. The solution is differentiable in ``args``, in both modes and any number of times.

    Args:
        f: a function of x (like x0) and ``args`` that returns as many numbers as x0 has: an array or tensor, or a container of
            them.
        x0: the starting point: an array or tensor of floating point numbers, or a container of them. The solution has no
            derivative with respect to it.
        args: the arguments that the solution depends on: arrays, tensors, numbers, or containers of them.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``, returns x, or a result with an attribute ``x``, like those of
            ``chainrule.scipy.root`` and SciPy. It gets plain arrays, and under ``vmap`` one example at a time. Default:
            Newton's method.
        tol: largest relative change of x by another Newton step. Default: the fourth root of the dtype's precision.

    Returns:
        The solution, like x0.

    Raises:
        RuntimeError: Newton's method did not find a solution.
        numpy.linalg.LinAlgError: when the solution is differentiated, and ∂f/∂x is singular there.

    Warns:
        UserWarning: when the result is differentiated, and it is not a solution within ``tol``.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cube_root = lambda a: cr.implicit.root(lambda x, a: x**3 - a, 1.0, a)
    >>> float(cube_root(8.0)), float(cr.grad(cube_root)(8.0)), float(cr.grad(cr.grad(cube_root))(8.0))
    (2.0, 0.08333333333333333, -0.006944444444444444)
    """
    form = Form(x0, "x0", "root")
    return solve_equation(form, args, Equation("root", form, form.flat(f), tol), _calling(f, solver))


def fixed_point(
    f: AnyFunction, x0: object, *args: object, solver: Solver | None = None, tol: float | None = None
) -> Any:
    """Solve ``f(x, *args) = x`` for x. The fixed point is differentiable in ``args``.

    Args:
        f: a function of x (like x0) and ``args`` that returns an x.
        x0, args, tol: as for :func:`root`.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``, for example an iteration of g. Default: Newton's method, which
            also finds fixed points that repel such iterations.

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
    return solve_equation(form, args, Equation("fixed_point", form, _moved(form.flat(f)), tol), _calling(f, solver))


def minimum(f: AnyFunction, x0: object, *args: object, solver: Solver | None = None, tol: float | None = None) -> Any:
    """Find a local minimum of ``f(x, *args)`` over x. The minimizer is differentiable in ``args``.

    Args:
        f: returns a real number (an array or tensor without axes).
        x0, args, tol: as for :func:`root`.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``, returns the minimizer, for example
            ``chainrule.scipy.minimize``. Default: Newton's method; the Hessian is damped if it is not positive definite.

    Returns:
        The minimizer, like x0.

    Raises:
        RuntimeError: Newton's method did not find a minimum.
        numpy.linalg.LinAlgError: when the minimizer is differentiated, and the Hessian of f is singular there.

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
    return solve_equation(form, args, Equation("minimum", form, grad(objective), tol, objective), _calling(f, solver))


def least_squares(
    f: AnyFunction, x0: object, *args: object, solver: Solver | None = None, tol: float | None = None
) -> Any:
    """Minimize the sum of squares of ``f(x, *args)`` over x. The minimizer is differentiable in ``args``.

    Args:
        f: returns the residuals: an array or tensor, or a container of them.
        x0, args, tol: as for :func:`root`.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``, for example ``chainrule.scipy.least_squares``. Default: as for
            :func:`minimum`.

    Returns:
        The minimizer, like x0.

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

    return solve_equation(
        form, args, Equation("least_squares", form, grad(half_sum), tol, half_sum), _calling(f, solver)
    )


def linear_solve(matvec: AnyFunction, b: object, *args: object, solver: Solver | None = None) -> Any:
    """Solve ``matvec(x, *args) = b`` for x. The solution is differentiable in ``b`` and ``args``.

    Its sparse matrix is computed from ``matvec``. (``np.linalg.solve`` takes matrices.)

    Args:
        matvec: a function of x (like b) and ``args``, linear in x, that returns the product (like b).
        b: the right-hand side: an array or tensor, or a container of them.
        args: the arguments that the matrix depends on.
        solver: ``solver(g, b)``, with ``g(x) = matvec(x, *args)``, returns x: for example conjugate gradients. Default: a
            factorization of the matrix.

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
    return solve_equation(form, (b, *args), Equation("linear_solve", form, form.flat(left), np.inf), find)


def custom_root(f: AnyFunction, tol: float | None = None) -> Callable[[F], F]:
    """Make a solver of ``f(x, *args) = 0`` differentiable: a decorator for ``solver(x0, *args)``.

    The operations of the solver are not recorded. It gets plain arrays, and under ``vmap`` one example at a time.

    Args:
        f: as for :func:`root`. For a minimum, the gradient of the minimized function.
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

    def decorator(solver: F) -> F:
        @functools.wraps(solver)
        def solve(x0: object, *args: object) -> Any:
            form = Form(x0, "x0", "custom_root")
            return solve_equation(form, args, Equation("custom_root", form, form.flat(f), tol), solver)

        return solve  # type: ignore[return-value]

    return decorator


def custom_fixed_point(f: AnyFunction, tol: float | None = None) -> Callable[[F], F]:
    """Make a solver of ``f(x, *args) = x`` differentiable: a decorator, like :func:`custom_root`.

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

    def decorator(solver: F) -> F:
        @functools.wraps(solver)
        def solve(x0: object, *args: object) -> Any:
            form = Form(x0, "x0", "custom_fixed_point")
            return solve_equation(form, args, Equation("custom_fixed_point", form, _moved(form.flat(f)), tol), solver)

        return solve  # type: ignore[return-value]

    return decorator


def _moved(image: AnyFunction) -> AnyFunction:
    """Return the function x - f(x), which is 0 at a fixed point of f."""
    return lambda x, *args: x - image(x, *args)


def _calling(f: AnyFunction, solver: Solver | None) -> AnyFunction | None:
    """Convert ``solver(g, x0)`` to a solver that takes x0 and the arguments."""
    return None if solver is None else lambda x0, *args: solver(lambda x: f(x, *args), x0)
