"""``root``: SciPy's, of functions of containers, with the Jacobian filled in."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, Params
from chainrule.scipy.derivatives import JacobianOf, maybe_compiled, scipy_module
from chainrule.scipy.minimize import like_start
from chainrule.scipy.progress import progress_bar
from chainrule.scipy.vectors import Packing, arguments, flat_function, function_name, plain_matrix, plain_vector

#: Whether each method takes a Jacobian.
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
    """``scipy.optimize.root`` with the Jacobian of ``fun`` filled in.

    Args:
        fun: ``fun(x, *args)`` returns as many numbers as x0 has: an array or tensor, or a container of them.
        x0: where to start: an array or tensor of floating point numbers, or a container of them. A list or tuple of
            numbers is an array, as for SciPy.
        args: more arguments of ``fun``, which are constants.
        method: as for SciPy. "hybr" and "lm" take a Jacobian; the others are told apart by getting none.
        jac: in the place of what would be filled in: a function of what is like x0 that returns a matrix; True if
            ``fun`` returns it beside its value; False for differences.
        tol, callback, options: as for SciPy. ``callback`` gets what is like x0.
        compile: replay ``fun`` and its Jacobian as compiled plans: for calls by the hundreds (see ``cr.compile``).
        progress: draw a bar of tqdm (which must be installed), with the calls of ``fun`` and its largest number.

    Returns:
        SciPy's ``OptimizeResult``. ``x`` is like x0, ``fun`` the vector of what is left of the equations.

    Raises:
        TypeError: x0 is not of floating point numbers.
        ValueError: there is no such method; ``fun`` returns more or fewer numbers than x0 has.
        ModuleNotFoundError: SciPy, or for ``progress`` tqdm, is not installed.

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
        given = {"fun": lambda x: _both(fun(packing.unpack(x), *args), what), "jac": True}
    elif callable(jac):
        given["jac"] = lambda x: plain_matrix(jac(packing.unpack(x), *args))
    elif jac is None and METHODS[method.lower()]:
        given["jac"] = JacobianOf(flat, what, compile, False)
    if callback is not None and not packing.is_vector:
        given["callback"] = lambda x, f: callback(packing.results(x), f)
    elif callback is not None:
        given["callback"] = callback
    with progress_bar(progress, "root", _how_far) as shown:
        given["fun"] = shown(given["fun"])
        found = optimize.root(x0=packing.start, method=method, tol=tol, options=options, **given)
    return like_start(found, packing, ("x",))


def _how_far(found: object, *_: object) -> tuple[float, str]:
    left = np.asarray(found[0] if isinstance(found, tuple) else found)
    largest = np.max(np.abs(left), initial=0)
    return 1, f"largest={largest:.3g}"


def _both(found: tuple[AnyArray, ...], what: str) -> tuple[AnyArray, AnyArray]:
    """Value and matrix of a function that returns both."""
    value, matrix = found
    return plain_vector(value, what), plain_matrix(matrix)
