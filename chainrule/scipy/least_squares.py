"""``least_squares``: SciPy's, of functions of containers, with a Jacobian that is sparse where it can be."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, Params
from chainrule.scipy.bounds import two_sides
from chainrule.scipy.derivatives import JacobianOf, maybe_compiled, scipy_module
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
    """``scipy.optimize.least_squares`` with the Jacobian of ``fun`` filled in.

    Args:
        fun: ``fun(x, *args, **kwargs)`` returns the residuals: an array or tensor, or a container of them.
        x0: where to start: an array or tensor of floating point numbers, or a container of them. A list or tuple of
            numbers is an array, as for SciPy.
        jac: in the place of what would be filled in: "2-point", "3-point", "cs", or a function of what is like x0 that
            returns a matrix.
        bounds: ``(low, high)``, each a number, or with x0's structure a number or array for each array in it; or as
            for :func:`minimize`.
        method: "trf" and "dogbox" get a sparse Jacobian where it is large and most of it is zero, unless
            ``tr_solver="exact"``; "lm" gets a dense one.
        args, kwargs: more arguments of ``fun``, which are constants.
        compile: replay ``fun`` and its Jacobian as compiled plans: for calls by the hundreds (see ``cr.compile``).
        progress: draw a bar of tqdm (which must be installed), with the calls of ``fun`` and half its last sum of squares.
        callback, options: as for SciPy: ``loss``, ``x_scale``, ``ftol`` ... (``jac_sparsity`` is found, and so not needed.)

    Returns:
        SciPy's ``OptimizeResult``. ``x``, ``grad`` and ``active_mask`` are like x0, ``fun`` is the vector of all residuals.

    Raises:
        TypeError: x0 is not of floating point numbers.
        ValueError: there is no such method; the bounds don't fit x0.
        ModuleNotFoundError: SciPy, or for ``progress`` tqdm, is not installed.

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
        jac_of_vector: object = JacobianOf(flat, what, compile, method != "lm" and options.get("tr_solver") != "exact")
    elif callable(jac):
        jac_of_vector = lambda x: plain_matrix(jac(packing.unpack(x), *args, **kwargs))  # noqa: E731
    else:
        jac_of_vector = jac
    value = maybe_compiled(flat, compile)
    if callback is not None:
        options["callback"] = callback_for(callback, packing)
    how_far = lambda found, *_: (1, f"cost={np.vdot(found, found).real / 2:.6g}")  # noqa: E731
    with progress_bar(progress, "least_squares", how_far) as shown:
        found = optimize.least_squares(
            shown(lambda x: plain_vector(value(np.array(x)), what)),
            packing.start,
            jac_of_vector,
            two_sides(bounds, packing, optimize.Bounds),
            method,
            **options,
        )
    if "active_mask" in found:
        found.active_mask = packing.results(found.active_mask, dtype=int)
    return like_start(found, packing, ("x", "grad"))
