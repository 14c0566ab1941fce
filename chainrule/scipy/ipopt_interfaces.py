"""Run Ipopt through cyipopt or CasADi, whichever is installed.

:func:`solve` gets a ``NonlinearProgram``, whose functions take and return vectors of numbers, and returns a ``IpoptResult``.
Both interfaces have the same options (Ipopt's), statuses and signs of multipliers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import Params
from chainrule.scipy.vectors import FloatVector

IndexVector = np.ndarray[Any, np.dtype[np.intp]]
#: Ipopt's options that differ from its own defaults
DEFAULTS: Params = {"print_level": 0, "sb": "yes", "honor_original_bounds": "yes"}
_INFINITE = 1e20  # Ipopt reads numbers from 1e19 as infinite

#: Ipopt's statuses: the number (its ``ApplicationReturnStatus``) and a message.
STATUSES = {
    "Solve_Succeeded": (0, "Ipopt found a local minimum that satisfies the tolerances."),
    "Solved_To_Acceptable_Level": (1, "Ipopt found a local minimum that satisfies the acceptable tolerances."),
    "Infeasible_Problem_Detected": (
        2,
        "Infeasible: Ipopt found no point that satisfies all constraints. {violation} Check the limits of the constraints, or "
        "start from another x0.",
    ),
    "Search_Direction_Becomes_Too_Small": (
        3,
        "Ipopt's steps became too small: the problem may be badly scaled, or a function may not be smooth. {violation}",
    ),
    "Diverging_Iterates": (4, "The iterates diverge: f may have no minimum under these constraints. Add bounds."),
    "User_Requested_Stop": (5, "`callback` raised `StopIteration`."),
    "Feasible_Point_Found": (6, "Ipopt solved the equations, which are as many as the unknowns."),
    "Maximum_Iterations_Exceeded": (
        -1,
        "Ipopt reached the maximum of {maxiter} iterations (options['maxiter']). {violation}",
    ),
    "Restoration_Failed": (
        -2,
        "Ipopt could not reduce the violation of the constraints: they may be infeasible. {violation}",
    ),
    "Error_In_Step_Computation": (-3, "Ipopt could not compute a step: derivatives may not be finite. {violation}"),
    "Maximum_CpuTime_Exceeded": (-4, "Ipopt reached the maximum time, max_cpu_time. {violation}"),
    "Maximum_WallTime_Exceeded": (-5, "Ipopt reached the maximum time, max_wall_time. {violation}"),
    "Not_Enough_Degrees_Of_Freedom": (
        -10,
        "There are more equality constraints ({equations}) than unknowns ({unknowns}). Remove redundant ones, or minimize the "
        "sum of their squares.",
    ),
    "Invalid_Problem_Definition": (-11, "Ipopt rejected the problem."),
    "Invalid_Option": (-12, "Ipopt rejected an option."),
    "Invalid_Number_Detected": (-13, "The function, a constraint or a derivative is NaN or infinite."),
    "Unrecoverable_Exception": (-100, "Ipopt failed."),
    "NonIpopt_Exception_Thrown": (-101, "Ipopt failed."),
    "Insufficient_Memory": (-102, "Ipopt had not enough memory."),
    "Internal_Error": (-199, "Ipopt failed."),
}


SUCCESSES = ("Solve_Succeeded", "Solved_To_Acceptable_Level", "Feasible_Point_Found")


class NonlinearProgram(NamedTuple):
    """A problem for Ipopt.

    Attributes:
        start: the first point.
        bounds, limits: the lower and upper limits of x, and of the constraints.
        objective, gradient, constraints: functions of x.
        jacobian: a function of x that returns the entries at the positions ``jacobian_at`` (rows, columns).
        hessian: a function of x, σ and λ that returns the lower triangle's entries at ``hessian_at``; None for approximations.
        iterate: called after each iteration with x, f(x) and the iteration's number; returns whether to continue.
    """

    start: FloatVector
    bounds: tuple[FloatVector, FloatVector]
    limits: tuple[FloatVector, FloatVector]
    objective: Callable[[FloatVector], float]
    gradient: Callable[[FloatVector], FloatVector]
    constraints: Callable[[FloatVector], FloatVector]
    jacobian: Callable[[FloatVector], FloatVector]
    hessian: Callable[[FloatVector, float, FloatVector], FloatVector] | None
    jacobian_at: tuple[IndexVector, IndexVector]
    hessian_at: tuple[IndexVector, ...]
    iterate: Callable[[FloatVector, float, int], bool]


class IpoptResult(NamedTuple):
    """The result of Ipopt.

    Attributes:
        x: the last point.
        multipliers: λ of the constraints.
        bound_multipliers: those of the bounds, negative at lower bounds.
        status: a key of ``STATUSES``.
    """

    x: FloatVector
    multipliers: FloatVector
    bound_multipliers: FloatVector
    status: str


def solve(program: NonlinearProgram, options: Params) -> IpoptResult:
    """Run Ipopt.

    Raises:
        ModuleNotFoundError: neither cyipopt nor CasADi is installed.
        ValueError: Ipopt has no such option, or not with this value.
    """
    for name, run in INTERFACES.items():
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return run(module, _stopped_by_errors(program), DEFAULTS | options)
    raise ModuleNotFoundError(
        "chainrule.scipy.minimize(method='ipopt') calls Ipopt through cyipopt or CasADi, and neither is installed: pip install "
        "chainrule[ipopt] installs CasADi, which contains Ipopt; chainrule[cyipopt] uses the Ipopt of the system",
        name="casadi",
    )


def _stopped_by_errors(program: NonlinearProgram) -> NonlinearProgram:
    """Return the program with functions that all raise again the first exception that one of them raised.

    Ipopt takes an exception for a point outside of the domain, and would continue.
    """
    raised: list[BaseException] = []

    def stopped(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if raised:
                raise raised[0]
            try:
                return function(*args)
            except BaseException as error:
                raised.append(error)
                raise

        return call

    fields: list[Any] = [stopped(value) if callable(value) else value for value in program]
    return NonlinearProgram(*fields)


def _no_option(names: list[str], error: Exception) -> ValueError:
    given, reason = " or ".join(map(repr, names)), str(error).splitlines()[-1]
    return ValueError(
        f"minimize(method='ipopt'): Ipopt has no option {given}, or not with this value ({reason}). Options have Ipopt's names, "
        "and SciPy's 'maxiter' and 'disp'"
    )


def _with_cyipopt(cyipopt: Any, program: NonlinearProgram, options: Params) -> IpoptResult:
    last = program.start

    def at(function: Callable[..., Any]) -> Callable[..., Any]:
        """Store the point of a first derivative: Ipopt computes both at each iterate, before it calls ``intermediate``."""

        def call(x: FloatVector) -> Any:
            nonlocal last
            last = np.array(x)
            return function(last)

        return call

    def intermediate(mode: int, number: int, fun: float, *_: float) -> bool:
        return program.iterate(last, fun, number)

    callbacks = SimpleNamespace(
        objective=lambda x: program.objective(np.array(x)),
        gradient=at(program.gradient),
        constraints=lambda x: program.constraints(np.array(x)),
        jacobian=at(program.jacobian),
        jacobianstructure=lambda: program.jacobian_at,
        intermediate=intermediate,
    )
    if program.hessian is not None:
        hessian = program.hessian
        callbacks.hessian = lambda x, multipliers, sigma: hessian(np.array(x), sigma, np.array(multipliers))
        callbacks.hessianstructure = lambda: program.hessian_at
    limits = {name: np.clip(side, -_INFINITE, _INFINITE) for name, side in _limits(program).items()}
    problem = cyipopt.Problem(n=len(program.start), m=len(limits["cl"]), problem_obj=callbacks, **limits)
    for name, value in options.items():
        try:
            problem.add_option(name, value)
        except TypeError as error:
            raise _no_option([name], error) from None
    x, found = problem.solve(np.clip(program.start, *program.bounds))
    names = {number: name for name, (number, _) in STATUSES.items()}
    bound_multipliers = np.subtract(found["mult_x_U"], found["mult_x_L"])
    return IpoptResult(
        x, np.array(found["mult_g"]), bound_multipliers, names.get(found["status"], str(found["status"]))
    )


def _limits(program: NonlinearProgram) -> dict[str, FloatVector]:
    (lb, ub), (cl, cu) = program.bounds, program.limits
    return {"lb": lb, "ub": ub, "cl": cl, "cu": cu}


def _with_casadi(casadi: Any, program: NonlinearProgram, options: Params) -> IpoptResult:
    n, m = len(program.start), len(program.limits[0])
    raised: list[BaseException] = []
    column, scalar, none = casadi.Sparsity.dense(n, 1), casadi.Sparsity.dense(1, 1), casadi.Sparsity.dense(0, 0)
    values = casadi.Sparsity.dense(m, 1)

    class Evaluation(casadi.Callback):  # type: ignore[misc]
        """A Python function of vectors, as a function of CasADi. It returns NaN after an exception, which ends the solver."""

        def __init__(
            self, name: str, function: Callable[..., Any], inputs: dict[str, Any], outputs: dict[str, Any]
        ) -> None:
            casadi.Callback.__init__(self)
            self.function, self.inputs, self.outputs = function, inputs, outputs
            self.construct(name, {})

        def get_n_in(self) -> int:
            return len(self.inputs)

        def get_n_out(self) -> int:
            return len(self.outputs)

        def get_name_in(self, i: int) -> str:
            return list(self.inputs)[i]

        def get_name_out(self, i: int) -> str:
            return list(self.outputs)[i]

        def get_sparsity_in(self, i: int) -> Any:
            return list(self.inputs.values())[i]

        def get_sparsity_out(self, i: int) -> Any:
            return list(self.outputs.values())[i]

        def eval(self, args: list[Any]) -> list[Any]:
            try:
                found = self.function(*[np.array(x, float).reshape(-1) for x in args])
            except BaseException as error:  # raised again after the solver has returned
                raised.append(error)
                found = [np.full(sparsity.nnz(), np.nan) for sparsity in self.outputs.values()]
            return [
                casadi.DM(sparsity, np.ravel(value).tolist()) if sparsity.nnz() else casadi.DM(sparsity)
                for value, sparsity in zip(found, self.outputs.values(), strict=True)
            ]

    point = {"x": column, "p": none}
    rows, cols = program.jacobian_at
    by_column = np.lexsort((rows, cols))
    jacobian_at = _columns(casadi, (m, n), rows[by_column], cols[by_column])
    functions = {
        "grad_f": Evaluation(
            "grad_f",
            lambda x, p: (program.objective(x), program.gradient(x)),
            point,
            {"f": scalar, "grad:f:x": column},
        ),
        "jac_g": Evaluation(
            "jac_g",
            lambda x, p: (program.constraints(x), program.jacobian(x)[by_column]),
            point,
            {"g": values, "jac:g:x": jacobian_at},
        ),
    }
    if program.hessian is not None:
        hessian = program.hessian
        functions["hess_lag"] = Evaluation(
            "hess_lag",
            lambda x, p, sigma, multipliers: (hessian(x, float(sigma[0]), multipliers),),
            point | {"lam:f": scalar, "lam:g": values},
            {"triu:hess:gamma:x:x": _columns(casadi, (n, n), *reversed(program.hessian_at))},
        )
    problem = Evaluation(
        "problem", lambda x, p: (program.objective(x), program.constraints(x)), point, {"f": scalar, "g": values}
    )
    numbers = iter(range(1 << 60))
    iterate = Evaluation(
        "iterate",
        lambda x, f, *_: (0.0 if program.iterate(x, float(f[0]), next(numbers)) else 1.0,),
        {"x": column, "f": scalar, "g": values, "lam_x": column, "lam_g": values, "lam_p": none},
        {"ret": scalar},
    )
    settings = functions | {
        "iteration_callback": iterate,
        "no_nlp_grad": True,
        "print_time": False,
        "show_eval_warnings": False,
    }
    try:
        solver = casadi.nlpsol("solver", "ipopt", problem, settings | {"ipopt": options})
    except RuntimeError as error:
        if "option" not in str(error):
            raise
        given = [name for name in options if options[name] != DEFAULTS.get(name)]
        raise _no_option(
            [name for name in given if str(error).rstrip().endswith(f": {name}")] or given, error
        ) from None
    lb, ub, cl, cu = _limits(program).values()
    found = solver(x0=np.clip(program.start, lb, ub), lbx=lb, ubx=ub, lbg=cl, ubg=cu)
    if raised:
        raise raised[0]
    x, multipliers, bound_multipliers = [np.array(found[name], float).reshape(-1) for name in ("x", "lam_g", "lam_x")]
    return IpoptResult(x, multipliers, bound_multipliers, solver.stats()["return_status"])


def _columns(casadi: Any, shape: tuple[int, int], rows: IndexVector, cols: IndexVector) -> Any:
    """Return CasADi's pattern of entries that are sorted by columns."""
    starts = np.searchsorted(cols, np.arange(shape[1] + 1))
    return casadi.Sparsity(*shape, starts.tolist(), rows.tolist())


#: The modules, in the order in which they are tried.
INTERFACES = {"cyipopt": _with_cyipopt, "casadi": _with_casadi}
