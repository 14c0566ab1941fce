"""``solve_ivp``: SciPy's, of functions of containers, with the Jacobian that implicit methods ask for filled in."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule.scipy.derivatives import JacobianOf, maybe_compiled, scipy_module
from chainrule.scipy.progress import progress_bar
from chainrule.scipy.vectors import (
    FloatVector,
    Packing,
    flat_output,
    function_name,
    output_value,
    plain_matrix,
    plain_value,
    plain_vector,
)

ndarray = np.ndarray

METHODS = ("RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA")
SPARSE = ("Radau", "BDF")  # these take sparse Jacobians


def solve_ivp(
    fun: AnyFunction,
    t_span: Sequence[float],
    y0: object,
    method: object = "RK45",
    t_eval: object = None,
    dense_output: bool = False,
    events: object = None,
    vectorized: bool = False,
    args: tuple[Any, ...] | None = None,
    *,
    compile: bool = False,
    progress: bool = False,
    **options: Any,
) -> Any:
    """``scipy.integrate.solve_ivp`` with the Jacobian of ``fun`` filled in where the method is an implicit one.

    Args:
        fun: ``fun(t, y, *args)`` returns dy/dt, in the structure and shapes of y.
        t_span, t_eval, dense_output: as for SciPy.
        y0: the state to start from: an array or tensor of floating point (or complex) numbers, or a container of them. A
            list or tuple of numbers is an array, as for SciPy.
        method: as for SciPy. "Radau" and "BDF" get a Jacobian, which is sparse where it is large and most of it is zero;
            "LSODA" gets a dense one, or a banded one if ``lband`` and ``uband`` say so.
        events: as for SciPy; functions of ``(t, y, *args)`` with y like y0.
        vectorized: ``fun`` takes states as columns. Nothing is gained by that here: the Jacobian needs no differences.
        args: more arguments of ``fun`` and ``events``, which are constants.
        compile: replay ``fun`` and its Jacobian as compiled plans: for calls by the hundreds (see ``cr.compile``).
        progress: draw a bar of tqdm (which must be installed) from one end of ``t_span`` to the other.
        options: those of the method. ``jac`` is used in place of what would be filled in: a matrix, a function of
            ``(t, y, *args)`` that returns one, or None for differences.

    Returns:
        SciPy's ``OdeResult``. ``y`` is like y0, with the points of time along one more axis, the last. So is what
        ``sol(t)`` returns. ``y_events`` has for each event what is like y0 with its occurrences along the first axis.

    Raises:
        TypeError: y0 is not of floating point numbers.
        ValueError: there is no such method; ``fun`` returns something else than is like y0.
        ModuleNotFoundError: SciPy, or for ``progress`` tqdm, is not installed.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> def pendulum(t, y):
    ...     return {"angle": y["speed"], "speed": -np.sin(y["angle"]) - 0.2 * y["speed"]}
    >>> path = cr.scipy.solve_ivp(pendulum, (0, 10), {"angle": 1.0, "speed": 0.0}, method="BDF", rtol=1e-8, atol=1e-8)
    >>> float(path.y["angle"][-1].round(4)), path.njev > 0
    (-0.3583, True)
    """
    integrate = scipy_module("scipy.integrate", "solve_ivp")
    name = method if isinstance(method, str) else function_name(method)
    if isinstance(method, str) and method not in METHODS:
        raise ValueError(f"solve_ivp(): unknown method {method!r}: SciPy has {', '.join(METHODS)}, or an OdeSolver")
    packing = Packing(y0, "y0", kinds="fc")
    for leaf, path in zip(packing.leaves, packing.paths, strict=True):
        output_value(leaf, f"y0{path}")
    args = () if args is None else tuple(args)
    what = f"{function_name(fun)}()"
    if vectorized and not packing.is_vector:
        raise ValueError("solve_ivp(): vectorized=True is for a state that is one vector, and y0 is none")

    @functools.wraps(fun)
    def flat(x: AnyArray, t: TensorLike) -> AnyArray:
        return flat_output(fun(t, packing.unpack(x), *args), what, *x.shape[1:])

    if "jac" not in options and name in (*SPARSE, "LSODA"):
        banded = options.get("lband") is not None or options.get("uband") is not None
        bands = (options.get("lband") or 0, options.get("uband") or 0)
        padding = bands[0] if _version() < (1, 16) else 0
        jacobian = JacobianOf(flat, what, compile, name in SPARSE or banded)

        def matrix(t: float, x: FloatVector) -> object:
            found = jacobian(x, float(t))
            return _in_bands(found, *bands, padding) if banded else found

        options["jac"] = matrix
    elif callable(options.get("jac")):
        own = options["jac"]
        options["jac"] = lambda t, x: plain_matrix(own(t, packing.unpack(x), *args))
    value = maybe_compiled(flat, compile)

    def derivative(t: float, x: FloatVector) -> FloatVector:
        found = plain_vector(value(np.array(x), float(t)), what) if x.ndim == 1 else output_value(value(x, t), what)
        if found.shape[0] != packing.size:
            raise ValueError(f"{what} returned {found.shape[0]} numbers for a state of {packing.size}")
        return found

    start, end = (float(t) for t in t_span)
    reached = start

    def how_far(_: object, t: float, x: object) -> tuple[float, str]:
        nonlocal reached
        before, reached = reached, max(reached, t) if start < end else min(reached, t)
        return abs(reached - before), ""

    with progress_bar(progress, "solve_ivp", how_far, abs(end - start)) as shown:
        found = integrate.solve_ivp(
            shown(derivative),
            t_span,
            packing.start,
            method,
            t_eval,
            dense_output,
            _events(events, packing, args),
            vectorized,
            **options,
        )
    return found if packing.is_vector else _like_start(found, packing)


def _version() -> tuple[int, int]:
    """SciPy's. Before 1.16 LSODA wanted as many more rows in banded matrices as there are bands below the diagonal."""
    major, minor = scipy_module("scipy", "solve_ivp").__version__.split(".")[:2]
    return int(major), int(minor)


def _in_bands(matrix: Any, lower: int, upper: int, padding: int) -> ndarray:
    """Return a matrix as LSODA takes banded ones: element (i, j) at [i - j + upper, j].

    Raises:
        ValueError: there is something outside of the bands.
    """
    rows, columns = matrix.nonzero()
    below, above = int(np.max(rows - columns, initial=0)), int(np.max(columns - rows, initial=0))
    if below > lower or above > upper:
        raise ValueError(
            f"solve_ivp(): the Jacobian has entries {below} below and {above} above the diagonal, and the call says "
            f"lband={lower} and uband={upper}"
        )
    packed = np.zeros((lower + upper + 1 + padding, matrix.shape[1]))
    packed[rows - columns + upper, columns] = matrix[rows, columns]
    return packed


def _events(events: Any, packing: Packing, args: tuple[Any, ...]) -> list[AnyFunction] | None:
    """Return the user's events as functions of the vector."""
    if events is None:
        return None
    several = [events] if callable(events) else events
    return [_event(event, packing, args) for event in several]


def _event(event: AnyFunction, packing: Packing, args: tuple[object, ...]) -> Callable[..., float]:
    def of_vector(t: float, x: FloatVector) -> float:
        return float(plain_value(event(t, packing.unpack(x), *args), f"{function_name(event)}()"))

    vars(of_vector).update(terminal=getattr(event, "terminal", False), direction=getattr(event, "direction", 0))
    return of_vector


def _like_start(found: Any, packing: Packing) -> Any:
    found.y = packing.results(found.y)
    if found.sol is not None:
        found.sol = Path(found.sol, packing)
    if found.y_events is not None:
        found.y_events = [packing.results(states.reshape(-1, packing.size), axis=1) for states in found.y_events]
    return found


class Path:
    """A solution as a function: what is like the start, with the axes of t at the end. ``of_vector`` is SciPy's own."""

    def __init__(self, of_vector: Any, packing: Packing) -> None:
        self.of_vector = of_vector
        self._packing = packing

    def __call__(self, t: Any, *more: Any) -> Any:
        return self._packing.results(np.asarray(self.of_vector(t, *more)))
