"""``root``: SciPy's solver for functions of containers, with an automatic Jacobian."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, Params
from chainrule.scipy.derivatives import JacobianFunction, maybe_compiled, scipy_module
from chainrule.scipy.minimize import like_start
from chainrule.scipy.progress import progress_bar
from chainrule.scipy.vectors import Packing, arguments, flat_function, function_name, plain_matrix, plain_vector

#: Whether each method uses a Jacobian.
METHODS = {
    "hybr": True,
    "lm": True,
    "broyden1": False,
    "broyden2": False,
    "anderson": False,
    "linearmixing": False,
    "diagbroyden": False,
    "excitingmixing": False,
    "krylov": False,
    "df-sane": False,
}


def root(
    fun: AnyFunction,
    x0: object,
    args: object = (),
    method: str = "hybr",
    jac: object = None,
    tol: float | None = None,
    callback: AnyFunction | None = None,
    options: Params | None = None,
    *,
    compile: bool = False,
    progress: bool = False,
) -> Any:
    """Solve ``fun(x, *args) = 0`` by ``scipy.optimize.root``, with the Jacobian of ``fun`` computed automatically.

    Args:
        fun: ``fun(x, *args)`` returns as many numbers as x0 has: an array or tensor, or a container of them.
        x0: the start: an array or tensor of floating-point numbers, or a container of them. A list or tuple of
            numbers is an array, as in SciPy.
        args: further arguments of ``fun``, which are constants.
        method: as in SciPy. Only "hybr" and "lm" use a Jacobian.
        jac: replaces the automatic Jacobian: a function that takes a value like x0 and returns a matrix; True if ``fun``
            returns a pair of value and Jacobian; False for finite differences.
        tol, callback, options: as in SciPy. ``callback`` gets values like x0.
        compile: compile ``fun`` and its Jacobian; pays off for hundreds of calls (see ``cr.compile``).
        progress: show a tqdm progress bar (tqdm must be installed), with the calls of ``fun`` and its largest residual.

    Returns:
        SciPy's ``OptimizeResult``. ``x`` is like x0; ``fun`` is the vector of residuals.

    Raises:
        TypeError: x0 is not of floating-point dtype.
        ValueError: the method is unknown; ``fun`` returns more or fewer numbers than x0 has.
        ModuleNotFoundError: SciPy is not installed, or tqdm for ``progress``.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> def equations(p):
    ...     return [p["x"] ** 2 + p["y"] ** 2 - 1, p["x"] - p["y"]]
    >>> found = cr.scipy.root(equations, {"x": 1.0, "y": 0.0})
    >>> found.success, float(found.x["x"].round(6)), float(found.x["y"].round(6))
    (True, 0.707107, 0.707107)
    """
    optimize = scipy_module("scipy.optimize", "root")
    if not isinstance(method, str) or method.lower() not in METHODS:
        raise ValueError(f"root(): unknown method {method!r}: SciPy has {', '.join(METHODS)}")
    packing = Packing(x0, "x0")
    args = arguments(args)
    what = f"{function_name(fun)}()"
    flat = flat_function(fun, packing, args, what)
    value = maybe_compiled(flat, compile)

    def equations(x: object) -> AnyArray:
        found = plain_vector(value(np.array(x)), what)
        if found.size != packing.size:
            raise ValueError(
                f"{what} returned {found.size} numbers for {packing.size} unknowns: root() needs as many equations as "
                "unknowns (least_squares() does not)"
            )
        return found

    given: Any = {"fun": equations, "jac": None}
    if jac is True:
        given = {"fun": lambda x: _value_and_jacobian(fun(packing.unpack(x), *args), what), "jac": True}
    elif callable(jac):
        given["jac"] = lambda x: plain_matrix(jac(packing.unpack(x), *args))
    elif jac is None and METHODS[method.lower()]:
        given["jac"] = JacobianFunction(flat, what, compile, False)
    if callback is not None and not packing.is_vector:
        given["callback"] = lambda x, f: callback(packing.results(x), f)
    elif callback is not None:
        given["callback"] = callback
    with progress_bar(progress, "root", _progress) as tracked:
        given["fun"] = tracked(given["fun"])
        found = optimize.root(x0=packing.start, method=method, tol=tol, options=options, **given)
    return like_start(found, packing, ("x",))


def _progress(found: object, *_: object) -> tuple[float, str]:
    residual = np.asarray(found[0] if isinstance(found, tuple) else found)
    largest = np.max(np.abs(residual), initial=0)
    return 1, f"largest={largest:.3g}"


def _value_and_jacobian(found: tuple[AnyArray, ...], what: str) -> tuple[AnyArray, AnyArray]:
    """Convert the value and Jacobian of a function that returns both."""
    value, matrix = found
    return plain_vector(value, what), plain_matrix(matrix)
