"""``minimize``: SciPy's, of functions of containers, with all derivatives filled in."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, IntoArray, Params, TensorLike
from chainrule.scipy.bounds import element_bounds
from chainrule.scipy.constraints import with_derivatives
from chainrule.scipy.derivatives import Objective, scipy_module
from chainrule.scipy.journal import Journal
from chainrule.scipy.progress import progress_bar
from chainrule.scipy.vectors import FloatVector, Packing, arguments, function_name, plain_matrix, plain_value

#: Which derivatives each method asks for: the gradient (g); the Hessian as a matrix (h), or its products with vectors (p).
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
    """``scipy.optimize.minimize`` with gradients, Hessians and Hessian products of ``fun`` filled in.

    Args:
        fun: ``fun(x, *args)`` returns a real number (an array or tensor without axes).
        x0: where to start: an array or tensor of floating point numbers, or a container of them. ``fun`` is called with
            the like, and what is differentiated is ordinary code. A list or tuple of numbers is an array, as for SciPy.
        args: more arguments of ``fun``, which are constants.
        method: as for SciPy; what it can use of gradient, Hessian (sparse for "trust-constr", where it is) and Hessian
            products is computed.
        jac, hess, hessp: in place of what would be filled in, as for SciPy, as functions of what is like x0. What they
            return is like x0, too, but for ``hess``, which is a matrix of all elements.
        bounds: None, ``Bounds``, or with the structure of x0, and for each array in it None, a pair ``(low, high)`` or a
            pair for each element. low and high are None, numbers or arrays. For a dictionary or dataclass one pair of
            numbers may stand for all.
        constraints: one or a list of: a function of what is like x0 that is to be 0; ``(function, low, high)``; SciPy's
            ``NonlinearConstraint`` and dictionaries, whose Jacobians and Hessians are filled in; ``LinearConstraint``.
        tol, callback, options: as for SciPy. ``callback`` gets what is like x0.
        compile: replay ``fun`` and its derivatives as compiled plans: for calls by the hundreds (see ``cr.compile``).
        checkpoint: a file that keeps the values and gradients (and products with the Hessian) that were computed. Where
            it is there, the solver goes on from where it was stopped, as if it had not been.
        progress: draw a bar of tqdm (which must be installed), with the calls of ``fun`` and its last value.

    Where ``fun`` computes with Dask arrays, value and gradient are computed together, with one pass over the data.

    Returns:
        SciPy's ``OptimizeResult``. ``x`` and the gradient (``jac``, for "trust-constr" ``grad``) are like x0.

    Raises:
        TypeError: x0 is not of floating point numbers.
        ValueError: there is no such method; bounds or what a given derivative returned don't fit x0; the checkpoint is of
            another run.
        ModuleNotFoundError: SciPy, or for ``progress`` tqdm, is not installed.

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
        return fun(packing.unpack(x), *args)

    journal = None if checkpoint is None else Journal(checkpoint, packing.start)
    objective = Objective(flat, what, compile, sparse, journal)
    given: dict[str, Any] = {"fun": objective.value, "jac": objective.gradient}
    if jac is True:
        given |= _both(fun, packing, args)
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
    with progress_bar(progress, "minimize", _how_far) as shown:
        given["fun"] = shown(given["fun"])
        found = optimize.minimize(
            x0=packing.start,
            method=method,
            bounds=element_bounds(bounds, packing, optimize.Bounds),
            constraints=with_derivatives(constraints, packing, optimize, sparse, compile),
            tol=tol,
            callback=callback_for(callback, packing),
            options=options,
            **given,
        )
    return like_start(found, packing, ("x", "jac", "grad"))


def _uses(method: object, bounds: object, constraints: object) -> str:
    """Which derivatives a method takes: letters of METHODS."""
    if method is None or callable(method):
        return "g"
    if not isinstance(method, str) or method.lower() not in METHODS:
        raise ValueError(f"minimize(): unknown method {method!r}: SciPy has {', '.join(METHODS)}")
    return METHODS[method.lower()]


def _how_far(found: object, *_: object) -> tuple[float, str]:
    return 1, f"fun={found[0] if isinstance(found, tuple) else found:.6g}"


def _both(fun: AnyFunction, packing: Packing, args: tuple[object, ...]) -> Params:
    """``jac=True``: fun returns its value and its gradient."""

    def value_and_gradient(x: FloatVector) -> tuple[float, FloatVector]:
        value, gradient = fun(packing.unpack(x), *args)
        return float(plain_value(value, "fun's value")), packing.pack_like(gradient, "fun's gradient")

    return {"fun": value_and_gradient, "jac": True}


def like_start(found: Any, packing: Packing, names: tuple[str, ...]) -> Any:
    """SciPy's result, with the named vectors in the structure of the start."""
    for name in names:
        vector = found.get(name)
        if isinstance(vector, np.ndarray) and vector.shape == (packing.size,):
            found[name] = packing.results(vector)
    return found


def callback_for(callback: AnyFunction | None, packing: Packing) -> AnyFunction | None:
    """Return the user's callback, for containers in the place of vectors. SciPy tells two kinds by their parameters."""
    if callback is None or packing.is_vector:
        return callback
    if set(inspect.signature(callback).parameters) == {"intermediate_result"}:

        def with_result(intermediate_result: Any) -> object:
            result = type(intermediate_result)(intermediate_result)
            return callback(intermediate_result=like_start(result, packing, ("x",)))

        return with_result
    return lambda x, *more: callback(packing.results(x), *more)
