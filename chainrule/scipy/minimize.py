"""``minimize``: SciPy's solver for functions of containers, with automatic gradients, Hessians and Hessian products."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyFunction, IntoArray, Params, TensorLike
from chainrule.scipy.bounds import element_bounds
from chainrule.scipy.constraints import add_derivatives
from chainrule.scipy.derivatives import LastCallCache, Objective, scipy_module
from chainrule.scipy.ipopt import minimize_by_ipopt
from chainrule.scipy.journal import Journal
from chainrule.scipy.progress import progress_bar
from chainrule.scipy.vectors import FloatVector, Packing, arguments, function_name, plain_matrix, plain_value

#: The derivatives each method uses: the gradient (g), the Hessian as a matrix (h), Hessian-vector products (p), or the
#: Hessian of the Lagrangian (l).
METHODS = {
    "nelder-mead": "",
    "powell": "",
    "cobyla": "",
    "cobyqa": "",
    "cg": "g",
    "bfgs": "g",
    "l-bfgs-b": "g",
    "tnc": "g",
    "slsqp": "g",
    "newton-cg": "gp",
    "trust-ncg": "gp",
    "trust-krylov": "gp",
    "trust-constr": "gh",
    "dogleg": "gh",
    "trust-exact": "gh",
    "ipopt": "gl",
}


def minimize(
    fun: AnyFunction,
    x0: IntoArray,
    args: object = (),
    method: str | AnyFunction | None = None,
    jac: object = None,
    hess: object = None,
    hessp: object = None,
    bounds: object = None,
    constraints: object = (),
    tol: float | None = None,
    callback: AnyFunction | None = None,
    options: Params | None = None,
    *,
    compile: bool = False,
    checkpoint: object = None,
    progress: bool = False,
) -> Any:
    """Minimize a function by ``scipy.optimize.minimize``, with the derivatives of ``fun`` computed automatically.

    Args:
        fun: ``fun(x, *args)`` returns a real number (a 0-d array or tensor).
        x0: the start: an array or tensor of floating-point numbers, or a container of them. ``fun`` is called with
            values of the same structure. A list or tuple of numbers is an array, as in SciPy.
        args: further arguments of ``fun``, which are constants.
        method: as in SciPy; the gradient, Hessian (for "trust-constr" sparse if possible) and Hessian products that it
            uses are computed. "ipopt" is Ipopt, for large problems with constraints, called through cyipopt or CasADi; it
            gets the sparse Jacobian of the constraints and the sparse Hessian of the Lagrangian.
        jac, hess, hessp: replace the automatic derivatives, as in SciPy. They take values like x0. ``jac`` and ``hessp``
            return values like x0, ``hess`` a matrix of all elements.
        bounds: None, ``Bounds``, or the structure of x0 with None, a pair ``(low, high)`` or a pair for each element in
            place of each array. low and high are None, numbers or arrays. If x0 is a dictionary or dataclass, one pair of
            numbers may apply to all elements.
        constraints: one constraint or a list: a function of a value like x0 that must be 0; ``(function, low, high)``;
            SciPy's ``NonlinearConstraint`` and dictionaries, with automatic Jacobians and Hessians; ``LinearConstraint``.
        tol, callback, options: as in SciPy. ``callback`` gets values like x0. For "ipopt", ``options`` has "maxiter", "disp"
            and Ipopt's own options.
        compile: compile ``fun`` and its derivatives; pays off for hundreds of calls (see ``cr.compile``).
        checkpoint: a file to store computed values, gradients and Hessian products in. If the file exists, the solver
            resumes from it, with the same result as without the interruption.
        progress: show a tqdm progress bar (tqdm must be installed), with the calls of ``fun`` and its last value.

    If ``fun`` computes with Dask arrays, value and gradient are computed together, in one pass over the data.

    Returns:
        SciPy's ``OptimizeResult``. ``x`` and the gradient (``jac``, for "trust-constr" ``grad``) are like x0. For "ipopt" it
        also has the values ``constr`` and multipliers ``v`` of each constraint, the ``bound_multipliers`` (like x0), and the
        largest violation ``constr_violation``; ``status`` is Ipopt's number (2: infeasible), ``message`` explains it.

    Raises:
        TypeError: x0 is not of floating-point dtype.
        ValueError: the method is unknown; the bounds or a given derivative's result don't fit x0; the checkpoint is of
            another run.
        ModuleNotFoundError: SciPy is not installed, or tqdm for ``progress``, or cyipopt and CasADi for "ipopt".

    >>> import numpy as np
    >>> import chainrule as cr
    >>> def loss(p):
    ...     return np.sum((p["w"] - np.array([1., 2.])) ** 2) + (p["b"] - 3) ** 2
    >>> found = cr.scipy.minimize(loss, {"w": np.zeros(2), "b": 0.0}, bounds={"w": (None, 1.5), "b": None})
    >>> found.success, found.x["w"].round(6), float(found.x["b"].round(6))
    (True, array([1. , 1.5]), 3.0)
    """
    optimize = scipy_module("scipy.optimize", "minimize")
    packing = Packing(x0, "x0")
    args = arguments(args)
    uses = _uses(method, bounds, constraints)
    sparse = method is not None and not callable(method) and method.lower() == "trust-constr"
    what = f"{function_name(fun)}()"

    @functools.wraps(fun)
    def flat(x: TensorLike) -> object:
        result = fun(packing.unpack(x), *args)
        if hasattr(result, "shape") and shape_of(result):
            raise ValueError(
                f"{what} returned an array of shape {tuple(shape_of(result))}, but minimize() needs a scalar, such as np.sum or "
                "np.mean of the array. least_squares() minimizes the sum of squares"
            )
        return result

    journal = None if checkpoint is None else Journal(checkpoint, packing.start)
    objective = Objective(flat, what, compile, sparse, journal)
    given: dict[str, Any] = {"fun": objective.value, "jac": objective.gradient}
    if "l" in uses and (isinstance(jac, str) or jac is False or hessp is not None):
        raise ValueError("minimize(method='ipopt'): jac is a function, True or None (automatic), and hessp is not used")
    if jac is True:
        given |= _value_and_gradient(fun, packing, args)
        given |= _separate(given["fun"]) if "l" in uses else {}
    elif callable(jac):
        given = {
            "fun": objective.plain,
            "jac": lambda x: packing.pack_like(jac(packing.unpack(x), *args), "jac's result"),
        }
    elif jac is not None or "g" not in uses:
        given = {"fun": objective.plain, "jac": jac or None}
    if callable(hess):
        given["hess"] = lambda x: plain_matrix(hess(packing.unpack(x), *args))
    elif hess is not None:
        given["hess"] = hess
    elif callable(hessp):
        given["hessp"] = lambda x, p: packing.pack_like(
            hessp(packing.unpack(x), packing.unpack(p), *args), "hessp's result"
        )
    elif "h" in uses:
        given["hess"] = objective.hessian
    elif "p" in uses:
        given["hessp"] = objective.hessian_product
    with progress_bar(progress, "minimize", _progress) as tracked:
        given["fun"] = tracked(given["fun"])
        if "l" in uses:
            found = minimize_by_ipopt(
                flat,
                given,
                packing,
                element_bounds(bounds, packing, optimize.Bounds),
                constraints,
                compile,
                tol,
                callback_for(callback, packing),
                options,
            )
            return like_start(found, packing, ("x", "jac", "bound_multipliers"))
        found = optimize.minimize(
            x0=packing.start,
            method=method,
            bounds=element_bounds(bounds, packing, optimize.Bounds),
            constraints=add_derivatives(constraints, packing, optimize, sparse, compile),
            tol=tol,
            callback=callback_for(callback, packing),
            options=options,
            **given,
        )
    return like_start(found, packing, ("x", "jac", "grad"))


def _uses(method: object, bounds: object, constraints: object) -> str:
    """Return the derivatives that a method uses, as letters of METHODS."""
    if method is None or callable(method):
        return "g"
    if not isinstance(method, str) or method.lower() not in METHODS:
        raise ValueError(f"minimize(): unknown method {method!r}: use one of {', '.join(METHODS)}")
    return METHODS[method.lower()]


def _progress(found: object, *_: object) -> tuple[float, str]:
    return 1, f"fun={found[0] if isinstance(found, tuple) else found:.6g}"


def _separate(both: AnyFunction) -> Params:
    """Return a function that returns value and gradient as two functions, which share the last call."""
    cached = LastCallCache(both)
    return {"fun": lambda x: cached(x)[0], "jac": lambda x: cached(x)[1]}


def _value_and_gradient(fun: AnyFunction, packing: Packing, args: tuple[object, ...]) -> Params:
    """Return the arguments for ``jac=True``, where fun returns its value and its gradient."""

    def value_and_gradient(x: FloatVector) -> tuple[float, FloatVector]:
        value, gradient = fun(packing.unpack(x), *args)
        return float(plain_value(value, "fun's value")), packing.pack_like(gradient, "fun's gradient")

    return {"fun": value_and_gradient, "jac": True}


def like_start(found: Any, packing: Packing, names: tuple[str, ...]) -> Any:
    """Convert the named vectors of SciPy's result to the structure of the start."""
    for name in names:
        vector = found.get(name)
        if isinstance(vector, np.ndarray) and vector.shape == (packing.size,):
            found[name] = packing.results(vector)
    return found


def callback_for(callback: AnyFunction | None, packing: Packing) -> AnyFunction | None:
    """Wrap the user's callback to get containers instead of vectors. SciPy has two kinds, which differ in parameters."""
    if callback is None or packing.is_vector:
        return callback
    if set(inspect.signature(callback).parameters) == {"intermediate_result"}:

        def with_result(intermediate_result: Any) -> object:
            result = type(intermediate_result)(intermediate_result)
            return callback(intermediate_result=like_start(result, packing, ("x",)))

        return with_result
    return lambda x, *more: callback(packing.results(x), *more)
