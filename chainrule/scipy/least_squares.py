"""``least_squares``: SciPy's solver for functions of containers, with an automatic, if possible sparse, Jacobian."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, Params
from chainrule.scipy.bounds import lower_upper_bounds
from chainrule.scipy.derivatives import JacobianFunction, maybe_compiled, scipy_module
from chainrule.scipy.minimize import callback_for, like_start
from chainrule.scipy.progress import progress_bar
from chainrule.scipy.vectors import Packing, arguments, flat_function, function_name, plain_matrix, plain_vector

METHODS = ("trf", "dogbox", "lm")


def least_squares(
    fun: AnyFunction,
    x0: object,
    jac: object = None,
    bounds: object = (-np.inf, np.inf),
    method: str = "trf",
    *,
    args: object = (),
    kwargs: Params | None = None,
    callback: AnyFunction | None = None,
    compile: bool = False,
    progress: bool = False,
    **options: object,
) -> Any:
    """Minimize a sum of squares by ``scipy.optimize.least_squares``, with the Jacobian of ``fun`` computed automatically.

    Args:
        fun: ``fun(x, *args, **kwargs)`` returns the residuals: an array or tensor, or a container of them.
        x0: the start: an array or tensor of floating-point numbers, or a container of them. A list or tuple of
            numbers is an array, as in SciPy.
        jac: replaces the automatic Jacobian: "2-point", "3-point", "cs", or a function that takes a value like x0 and
            returns a matrix.
        bounds: ``(low, high)``; each is a number, or has x0's structure with a number or array for each array. Also
            the forms of :func:`minimize`.
        method: "trf" and "dogbox" get a sparse Jacobian if it is large and mostly zero, unless ``tr_solver="exact"``;
            "lm" gets a dense one.
        args, kwargs: further arguments of ``fun``, which are constants.
        compile: compile ``fun`` and its Jacobian; pays off for hundreds of calls (see ``cr.compile``).
        progress: show a tqdm progress bar (tqdm must be installed), with the calls of ``fun`` and half the last sum of squares.
        callback, options: as in SciPy: ``loss``, ``x_scale``, ``ftol`` ... (``jac_sparsity`` is detected and not needed.)

    Returns:
        SciPy's ``OptimizeResult``. ``x``, ``grad`` and ``active_mask`` are like x0; ``fun`` is the vector of all residuals.

    Raises:
        TypeError: x0 is not of floating-point dtype.
        ValueError: the method is unknown; the bounds don't fit x0.
        ModuleNotFoundError: SciPy is not installed, or tqdm for ``progress``.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> t = np.linspace(0, 4, 50)
    >>> data = 2 * np.exp(-0.7 * t) + 0.3
    >>> def residuals(p):
    ...     return p["scale"] * np.exp(-p["rate"] * t) + p["rest"] - data
    >>> found = cr.scipy.least_squares(residuals, {"scale": 1.0, "rate": 1.0, "rest": 0.0})
    >>> {name: float(value.round(6)) for name, value in found.x.items()}
    {'scale': 2.0, 'rate': 0.7, 'rest': 0.3}
    """
    optimize = scipy_module("scipy.optimize", "least_squares")
    if method not in METHODS:
        raise ValueError(f"least_squares(): unknown method {method!r}: SciPy has {', '.join(METHODS)}")
    packing = Packing(x0, "x0")
    args, kwargs = arguments(args), kwargs or {}
    what = f"{function_name(fun)}()"
    flat = flat_function(functools.wraps(fun)(lambda x, *args: fun(x, *args, **kwargs)), packing, args, what)
    if jac is None:
        options.pop("jac_sparsity", None)
        jac_of_vector: object = JacobianFunction(
            flat, what, compile, method != "lm" and options.get("tr_solver") != "exact"
        )
    elif callable(jac):
        jac_of_vector = lambda x: plain_matrix(jac(packing.unpack(x), *args, **kwargs))  # noqa: E731
    else:
        jac_of_vector = jac
    value = maybe_compiled(flat, compile)
    if callback is not None:
        options["callback"] = callback_for(callback, packing)
    progress_of = lambda found, *_: (1, f"cost={np.vdot(found, found).real / 2:.6g}")  # noqa: E731
    with progress_bar(progress, "least_squares", progress_of) as tracked:
        found = optimize.least_squares(
            tracked(lambda x: plain_vector(value(np.array(x)), what)),
            packing.start,
            jac_of_vector,
            lower_upper_bounds(bounds, packing, optimize.Bounds),
            method,
            **options,
        )
    if "active_mask" in found:
        found.active_mask = packing.results(found.active_mask, dtype=int)
    return like_start(found, packing, ("x", "grad"))
