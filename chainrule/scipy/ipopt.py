"""``minimize(method="ipopt")``: constrained optimization by Ipopt, an interior-point method for large sparse problems.

The constraints of the user become one function c of the vector x, and the problem is to minimize f(x) subject to
``lower <= x <= upper`` and ``low <= c(x) <= high``. Ipopt gets the sparse Jacobian of c and the sparse Hessian of the Lagrangian
``σ f(x) + λ · c(x)``. ``minimize`` calls :func:`minimize_by_ipopt`; ``ipopt_interfaces`` runs the solver.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, Params
from chainrule.scipy.constraints import FlatConstraint, constraint_list, flat_constraint
from chainrule.scipy.derivatives import HessianFunction, JacobianFunction, LastCallCache, maybe_compiled
from chainrule.scipy.ipopt_interfaces import STATUSES, SUCCESSES, IndexVector, NonlinearProgram, solve
from chainrule.scipy.vectors import FloatVector, Packing, plain_vector


class ConstraintRows(NamedTuple):
    """The rows of one constraint of the user in c.

    Attributes:
        what: the constraint's name in error messages.
        rows: its rows in c.
        low, high: its limits, one for each row.
    """

    what: str
    rows: slice
    low: FloatVector
    high: FloatVector


class FixedMatrix:
    """A sum of matrices whose entries stay at the positions of the first call, as Ipopt requires.

    Args:
        parts: functions that return matrices (dense or sparse), and for each the slice of its rows in the sum.
        width: number of columns of the sum.
        first: the arguments of the first call.
        lower: whether only the lower triangle is stored.
        what: its name in error messages.

    Attributes:
        rows, cols: the positions of the entries, row by row.
    """

    def __init__(
        self,
        parts: Sequence[tuple[AnyFunction, slice]],
        width: int,
        first: tuple[Any, ...],
        lower: bool,
        what: str,
    ) -> None:
        self.parts, self.width, self.lower, self.what = parts, width, lower, what
        self._sparse = importlib.import_module("scipy.sparse")
        self._patterns: list[Any] = []  # for each part, its first index arrays and the positions of its entries
        found = [self._entries(function(*first), rows) for function, rows in parts]
        every = [keys[self._stored(keys)] for keys, _, _ in found]
        self.keys = np.unique(np.concatenate([np.zeros(0, np.intp), *every]))
        self.rows, self.cols = np.divmod(self.keys, self.width)
        for keys, _, indices in found:
            stored = self._stored(keys)
            self._patterns.append((indices, stored, self.keys.searchsorted(keys[stored])))

    def _stored(self, keys: IndexVector) -> Any:
        return keys // self.width >= keys % self.width if self.lower else np.ones(len(keys), bool)

    def _entries(self, matrix: Any, rows: slice) -> tuple[IndexVector, FloatVector, Any]:
        """Return the flat positions of a matrix's entries in the sum, their values, and its index arrays (None if dense)."""
        dense = not self._sparse.issparse(matrix)
        matrix = np.atleast_2d(matrix) if dense else self._sparse.csr_array(matrix)
        if matrix.shape != (rows.stop - rows.start, self.width):
            expected = f"{rows.stop - rows.start} × {self.width}"
            raise ValueError(f"{self.what}: a given derivative has the shape {matrix.shape}, expected {expected}")
        if dense:
            return rows.start * self.width + np.arange(matrix.size), matrix.reshape(-1), None
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        row_numbers = np.repeat(np.arange(rows.start, rows.stop), np.diff(matrix.indptr))
        return row_numbers * self.width + matrix.indices, matrix.data, (matrix.indptr, matrix.indices)

    def __call__(self, *args: Any) -> FloatVector:
        """Return the entries of the sum, in the order of ``rows`` and ``cols``.

        Raises:
            RuntimeError: there is an entry at another position.
        """
        total = np.zeros(len(self.keys))
        for (function, rows), (known, stored, places) in zip(self.parts, self._patterns, strict=True):
            matrix = function(*args)
            indices = (matrix.indptr, matrix.indices) if getattr(matrix, "format", "") == "csr" else None
            if known is None and indices is None and not self._sparse.issparse(matrix):
                total[places] += np.reshape(matrix, -1)[stored]
            elif known is not None and indices is not None and all(map(_same, known, indices)):
                total[places] += matrix.data[stored]
            else:
                keys, values, _ = self._entries(matrix, rows)
                keep = self._stored(keys)
                self._add(total, keys[keep], values[keep])
        return total

    def _add(self, total: FloatVector, keys: IndexVector, values: FloatVector) -> None:
        """Add entries at other positions than those of the first call; zeros outside of the pattern are dropped."""
        places = np.minimum(self.keys.searchsorted(keys), len(self.keys) - 1)
        known = self.keys[places] == keys if len(self.keys) else np.zeros(len(keys), bool)
        if np.any(values[~known]):
            row, col = divmod(int(keys[~known & (values != 0)][0]), self.width)
            raise RuntimeError(
                f"minimize(method='ipopt'): {self.what} has an entry in row {row} and column {col} that it did not have at the "
                "start: a function branches or indexes on computed values. Ipopt needs a fixed sparsity pattern: use np.where "
                "in place of `if`, or method='trust-constr'"
            )
        total[places[known]] += values[known]


def _same(a: AnyArray, b: AnyArray) -> bool:
    return a is b or np.array_equal(a, b)


def minimize_by_ipopt(
    flat: AnyFunction,
    given: Params,
    packing: Packing,
    bounds: Any,
    constraints: Any,
    compiled: bool,
    tol: float | None,
    callback: AnyFunction | None,
    options: Params | None,
) -> Any:
    """Minimize by Ipopt.

    Args:
        flat: the function from a vector to a 0-d array, for the Lagrangian.
        given: "fun" and "jac", functions of a vector for the solver; the user's "hess", if there is one.
        packing: the packing of x0.
        bounds: ``Bounds`` of the vector, or None.
        constraints: as the user passed them.
        compiled, tol, callback, options: as for ``minimize``; ``callback`` is a function of the vector.

    Returns:
        An ``OptimizeResult`` whose ``x``, ``jac`` and ``bound_multipliers`` are vectors.
    """
    optimize = importlib.import_module("scipy.optimize")
    settings, exact = _settings(options, tol, bounds, given.get("hess"), optimize)
    lower = np.full(packing.size, -np.inf) if bounds is None else np.broadcast_to(bounds.lb, packing.size).astype(float)
    upper = np.full(packing.size, np.inf) if bounds is None else np.broadcast_to(bounds.ub, packing.size).astype(float)
    _check_order(lower, upper, "bounds")
    first = np.clip(packing.start, lower, upper)
    rows, value, jacobian, hessian = _derivatives(flat, given, packing, constraints, first, compiled, exact, optimize)
    in_order = sorted(rows, key=lambda c: c.rows.start)
    counts = {"nfev": 0, "njev": 0, "nhev": 0, "nit": 0}

    def counted(name: str, function: AnyFunction) -> AnyFunction:
        def call(*args: Any) -> Any:
            counts[name] += 1
            return function(*args)

        return call

    def iterate(x: FloatVector, fun: float, number: int) -> bool:
        """Call the user's callback after an iteration; return whether to continue."""
        counts["nit"] = number
        if callback is None or number == 0:
            return True
        result = optimize.OptimizeResult(x=np.array(x), fun=float(fun), nit=number)
        try:
            callback(intermediate_result=result) if _takes_result(callback) else callback(result.x)
        except StopIteration:
            return False
        return True

    program = NonlinearProgram(
        packing.start,
        (lower, upper),
        (_joined([c.low for c in in_order]), _joined([c.high for c in in_order])),
        LastCallCache(counted("nfev", given["fun"])),
        LastCallCache(counted("njev", given["jac"])),
        LastCallCache(value),
        jacobian,
        None if hessian is None else counted("nhev", hessian),
        (jacobian.rows, jacobian.cols),
        (np.zeros(0, np.intp),) * 2 if hessian is None else (hessian.rows, hessian.cols),
        iterate,
    )
    solution = solve(program, settings)
    return _result(solution, program, rows, dict(counts), settings, optimize)


def _derivatives(
    flat: AnyFunction,
    given: Params,
    packing: Packing,
    constraints: Any,
    first: FloatVector,
    compiled: bool,
    exact: bool,
    optimize: Any,
) -> tuple[list[ConstraintRows], AnyFunction, FixedMatrix, FixedMatrix | None]:
    """Return the rows of each constraint, c, its Jacobian, and the Hessian of the Lagrangian (None if not ``exact``).

    Constraints with automatic Jacobians come first in c, then those with the user's Jacobians, then linear ones.
    """
    several = [
        flat_constraint(c, f"constraints[{i}]", packing, optimize) for i, c in enumerate(constraint_list(constraints))
    ]
    automatic = [i for i, c in enumerate(several) if type(c) is FlatConstraint and c.jac is None]
    by_user = [i for i, c in enumerate(several) if type(c) is FlatConstraint and c.jac is not None]
    linear = [i for i, c in enumerate(several) if type(c) is not FlatConstraint]
    matrices = {i: _matrix(several[i].A, packing.size, f"constraints[{i}]") for i in linear}
    rows: dict[int, ConstraintRows] = {}
    count = 0
    for i in (*automatic, *by_user, *linear):
        c, what = several[i], f"constraints[{i}]"
        values = c.value(first) if type(c) is FlatConstraint else matrices[i] @ first
        if values.dtype.kind == "c":
            raise TypeError(f"{what} is complex, and limits are real: constrain its real and imaginary parts")
        rows[i] = _rows(c.given if type(c) is FlatConstraint else c, what, count, values.size)
        count += values.size
    combined = _combined([several[i] for i in automatic])
    run = maybe_compiled(combined, compiled)

    def value(x: FloatVector) -> FloatVector:
        parts = [plain_vector(run(np.array(x)), "constraints")] if automatic else []
        parts += [several[i].value(x) for i in by_user] + [matrices[i] @ x for i in linear]
        return _joined(parts)

    parts: list[tuple[AnyFunction, slice]] = []
    if automatic:
        together = slice(0, rows[automatic[-1]].rows.stop)
        parts.append((JacobianFunction(combined, "constraints", compiled, True), together))
    parts += [(several[i].jac, rows[i].rows) for i in by_user]
    parts += [(lambda x, i=i: matrices[i], rows[i].rows) for i in linear]
    jacobian = FixedMatrix(parts, packing.size, (first,), False, "the Jacobian of the constraints")
    hessian = None
    if exact:
        nonlinear = [(several[i], rows[i].rows) for i in (*automatic, *by_user)]
        added = _hessian_parts(flat, given.get("hess"), nonlinear, compiled)
        parts = [(function, slice(0, packing.size)) for function in added]
        at = (first, 1.0, np.ones(count))
        hessian = FixedMatrix(parts, packing.size, at, True, "the Hessian of the Lagrangian")
    return [rows[i] for i in range(len(several))], value, jacobian, hessian


def _hessian_parts(
    flat: AnyFunction,
    user_hessian: AnyFunction | None,
    constraints: list[tuple[FlatConstraint, slice]],
    compiled: bool,
) -> list[AnyFunction]:
    """Return functions of x, σ and λ whose sum is the Hessian of the Lagrangian: one for all automatic derivatives.

    Args:
        constraints: the nonlinear ones, with their rows in c.
    """
    parts: list[AnyFunction] = []
    automatic = [(c, rows) for c, rows in constraints if c.hess is None]
    if user_hessian is None or automatic:
        combined = _combined([c for c, _ in automatic])

        def lagrangian(x: Any, sigma: Any, multipliers: Any) -> Any:
            weighted = np.sum(multipliers * combined(x)) if automatic else 0.0
            return weighted if user_hessian is not None else sigma * flat(x) + weighted

        second = HessianFunction(lagrangian, "the Lagrangian", compiled, True)
        at = np.concatenate([np.zeros(0, np.intp), *[np.arange(rows.start, rows.stop) for _, rows in automatic]])
        parts.append(lambda x, sigma, multipliers: second(x, float(sigma), multipliers[at]))
    if user_hessian is not None:
        parts.append(lambda x, sigma, multipliers: sigma * user_hessian(x))
    for c, rows in constraints:
        if c.hess is not None:
            parts.append(lambda x, sigma, multipliers, hess=c.hess, rows=rows: hess(x, multipliers[rows]))
    return parts


def _joined(vectors: list[FloatVector]) -> FloatVector:
    """Concatenate vectors, of which there may be none."""
    return np.concatenate([np.zeros(0), *vectors])


def _combined(constraints: list[FlatConstraint]) -> AnyFunction:
    """Return the function of the vector that concatenates the values of constraints."""

    def combined(x: Any) -> Any:
        values = [c.flat(x) for c in constraints]
        return values[0] if len(values) == 1 else np.concatenate(values)

    return combined


def _matrix(matrix: Any, width: int, what: str) -> Any:
    """Return the matrix of a ``LinearConstraint``: dense or sparse, with a column for each element of x."""
    matrix = (
        matrix if importlib.import_module("scipy.sparse").issparse(matrix) else np.atleast_2d(np.asarray(matrix, float))
    )
    if matrix.shape[1] != width:
        raise ValueError(f"{what} has a matrix of {matrix.shape[1]} columns, but x has {width} elements")
    return matrix


def _rows(given: Any, what: str, start: int, size: int) -> ConstraintRows:
    """Return the rows of a constraint, with its limits.

    Raises:
        ValueError: the limits do not fit the size, a lower limit is above the upper one, or ``keep_feasible`` is set.
    """
    if np.any(given.keep_feasible):
        raise ValueError(f"{what} has keep_feasible, but Ipopt's iterates may violate constraints; they keep bounds")
    low, high = [np.asarray(limit, float) for limit in (given.lb, given.ub)]
    for name, limit in (("lower", low), ("upper", high)):
        if limit.shape not in ((), (1,), (size,)):
            raise ValueError(f"{what} has {size} elements, but its {name} limit has shape {limit.shape}")
    low, high = np.broadcast_to(low, size), np.broadcast_to(high, size)
    _check_order(low, high, what)
    return ConstraintRows(what, slice(start, start + size), low, high)


def _check_order(low: FloatVector, high: FloatVector, what: str) -> None:
    wrong = np.flatnonzero(~(low <= high))
    if wrong.size:
        k = int(wrong[0])
        raise ValueError(f"{what}: at element {k} the lower limit {low[k]:g} is not below the upper limit {high[k]:g}")


def _settings(options: Params | None, tol: float | None, bounds: Any, hess: Any, optimize: Any) -> tuple[Params, bool]:
    """Return Ipopt's options, and whether it uses exact Hessians.

    SciPy's "maxiter" and "disp" are renamed. All other names are Ipopt's.
    """
    found = dict(options or {})
    display = int(found.pop("disp", 0))
    settings: Params = {"print_level": 5 if display == 1 else display} if display else {}
    if tol is not None:
        settings["tol"] = float(tol)
    if "maxiter" in found:
        settings["max_iter"] = int(found.pop("maxiter"))
    if bounds is not None and np.any(bounds.keep_feasible):
        settings["bound_relax_factor"] = 0.0
    if isinstance(hess, optimize.HessianUpdateStrategy):
        settings["hessian_approximation"] = "limited-memory"
    elif hess is not None and not callable(hess):
        raise ValueError(f"minimize(method='ipopt'): hess is a function, a HessianUpdateStrategy or None, not {hess!r}")
    settings |= found
    return settings, settings.get("hessian_approximation") != "limited-memory"


def _takes_result(callback: AnyFunction) -> bool:
    return set(inspect.signature(callback).parameters) == {"intermediate_result"}


def _result(
    solution: Any,
    program: NonlinearProgram,
    rows: list[ConstraintRows],
    counts: dict[str, int],
    settings: Params,
    optimize: Any,
) -> Any:
    x = solution.x
    values, fun, gradient = program.constraints(x), program.objective(x), program.gradient(x)
    violations = [(_violation(values[row.rows], row.low, row.high), row.what) for row in rows]
    violations.append((_violation(x, *program.bounds), "bounds"))
    (worst, element), where = max(violations, key=lambda found: found[0][0])
    code, text = STATUSES.get(solution.status, (-199, f"Ipopt stopped with the status {solution.status}."))
    violation = (
        f"The largest violation is {worst:.3g}, in {where}, element {element}."
        if worst
        else "The last point satisfies all constraints."
    )
    equations = int(np.sum(program.limits[0] == program.limits[1]))
    maxiter = settings.get("max_iter", 3000)
    message = text.format(maxiter=maxiter, violation=violation, equations=equations, unknowns=len(x))
    return optimize.OptimizeResult(
        x=x, fun=fun, jac=gradient, success=solution.status in SUCCESSES,
        status=code, message=message, constr=[values[row.rows] for row in rows], constr_violation=worst,
        v=[solution.multipliers[row.rows] for row in rows], bound_multipliers=solution.bound_multipliers, **counts,
    )  # fmt: skip


def _violation(values: FloatVector, low: FloatVector, high: FloatVector) -> tuple[float, int]:
    """Return the largest violation of limits, and its element."""
    if not values.size:
        return 0.0, 0
    violation = np.maximum(np.maximum(low - values, values - high), 0)
    k = int(np.argmax(violation))
    return float(violation[k]), k
