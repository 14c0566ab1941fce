"""``solve_ivp``: SciPy's solver for functions of containers, with an automatic Jacobian for implicit methods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule.scipy.derivatives import JacobianFunction, maybe_compiled, scipy_module
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
SPARSE = ("Radau", "BDF")  # methods that accept sparse Jacobians


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
    """Solve an initial value problem by ``scipy.integrate.solve_ivp``, with an automatic Jacobian for implicit methods.

    Args:
        fun: ``fun(t, y, *args)`` returns dy/dt, in the structure and shapes of y.
        t_span, t_eval, dense_output: as in SciPy.
        y0: the initial state: an array or tensor of floating-point (or complex) numbers, or a container of them. A list
            or tuple of numbers is an array, as in SciPy.
        method: as in SciPy. "Radau" and "BDF" get a Jacobian that is sparse if it is large and mostly zero. "LSODA" gets
            a dense one, or a banded one if ``lband`` and ``uband`` are given.
        events: as in SciPy; functions of ``(t, y, *args)`` with y like y0.
        vectorized: ``fun`` takes states as columns. This has no advantage here: the Jacobian needs no finite differences.
        args: further arguments of ``fun`` and ``events``, which are constants.
        compile: compile ``fun`` and its Jacobian; pays off for hundreds of calls (see ``cr.compile``).
        progress: show a tqdm progress bar (tqdm must be installed) over ``t_span``.
        options: options of the method. ``jac`` replaces the automatic Jacobian: a matrix, a function of ``(t, y, *args)``
            that returns one, or None for finite differences.

    Returns:
        SciPy's ``OdeResult``. ``y`` and the results of ``sol(t)`` are like y0, with time as an additional last axis.
        ``y_events`` contains for each event a value like y0, with the occurrences along the first axis.

    Raises:
        TypeError: y0 is not of floating-point dtype.
        ValueError: the method is unknown; the result of ``fun`` is not like y0.
        ModuleNotFoundError: SciPy is not installed, or tqdm for ``progress``.

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
        raise ValueError("solve_ivp(): vectorized=True requires a state that is one vector, and y0 is not")

    @functools.wraps(fun)
    def flat(x: AnyArray, t: TensorLike) -> AnyArray:
        return flat_output(fun(t, packing.unpack(x), *args), what, *x.shape[1:])

    if "jac" not in options and name in (*SPARSE, "LSODA"):
        banded = options.get("lband") is not None or options.get("uband") is not None
        bands = (options.get("lband") or 0, options.get("uband") or 0)
        padding = bands[0] if _version() < (1, 16) else 0
        jacobian = JacobianFunction(flat, what, compile, name in SPARSE or banded)

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

    def progress_of(_: object, t: float, x: object) -> tuple[float, str]:
        nonlocal reached
        before, reached = reached, max(reached, t) if start < end else min(reached, t)
        return abs(reached - before), ""

    with progress_bar(progress, "solve_ivp", progress_of, abs(end - start)) as tracked:
        found = integrate.solve_ivp(
            tracked(derivative),
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
    """Return SciPy's version. Before 1.16, LSODA needed extra rows in banded matrices, one for each lower band."""
    major, minor = scipy_module("scipy", "solve_ivp").__version__.split(".")[:2]
    return int(major), int(minor)


def _in_bands(matrix: Any, lower: int, upper: int, padding: int) -> ndarray:
    """Return a matrix in LSODA's banded layout: element (i, j) at [i - j + upper, j].

    Raises:
        ValueError: the matrix has entries outside of the bands.
    """
    rows, columns = matrix.nonzero()
    below, above = int(np.max(rows - columns, initial=0)), int(np.max(columns - rows, initial=0))
    if below > lower or above > upper:
        raise ValueError(
            f"solve_ivp(): the Jacobian has entries {below} below and {above} above the diagonal, but the call has "
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
    """A solution as a function of t: values like the start, with the axes of t last. ``of_vector`` is SciPy's function."""

    def __init__(self, of_vector: Any, packing: Packing) -> None:
        self.of_vector = of_vector
        self._packing = packing

    def __call__(self, t: Any, *more: Any) -> Any:
        return self._packing.results(np.asarray(self.of_vector(t, *more)))
