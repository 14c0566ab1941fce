"""Convert constraints on the user's containers to SciPy's constraints on a vector, with Jacobians and Hessians.

``minimize`` calls ``add_derivatives``, and ``ipopt`` calls ``flat_constraint``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.api.array import unwrap_array
from chainrule._src.arrays.tree import is_container
from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.tape.tensor import Tensor
from chainrule.scipy.derivatives import HessianFunction, JacobianFunction
from chainrule.scipy.vectors import (
    FloatVector,
    Packing,
    flat_function,
    function_name,
    output_value,
    plain_matrix,
    plain_vector,
)


class FlatConstraint(NamedTuple):
    """A nonlinear constraint ``low <= flat(x) <= high`` on the vector.

    Attributes:
        flat: a differentiable function from vector to vector; what: its name in error messages.
        given: SciPy's ``NonlinearConstraint``, with the user's bounds and options.
        jac, hess: the user's derivatives as functions of the vector (of the vector and the multipliers); None if there are none.
    """

    flat: AnyFunction
    what: str
    given: Any
    jac: AnyFunction | None
    hess: AnyFunction | None

    def value(self, x: FloatVector) -> FloatVector:
        return plain_vector(self.flat(np.array(x)), self.what)


def add_derivatives(constraints: Any, packing: Packing, optimize: Any, sparse: bool, compiled: bool) -> Any:
    """Return the constraints of ``minimize`` as functions of the vector; add missing derivatives.

    Args:
        constraints: a constraint or a list: a function that must be 0, ``(function, low, high)``, or SciPy's
            ``NonlinearConstraint``, ``LinearConstraint`` (on the vector) and dictionaries.
        packing: the packing of x0.
        optimize: ``scipy.optimize``.
        sparse: whether the method accepts sparse Jacobians.
        compiled: whether to compile the functions.

    Raises:
        TypeError: an element is not a constraint.
    """
    found = []
    for i, c in enumerate(constraint_list(constraints)):
        what = f"constraints[{i}]"
        if isinstance(c, dict) and not sparse:
            found.append(_dict_constraint(c, what, packing, compiled))
        else:
            c = flat_constraint(c, what, packing, optimize)
            found.append(_with_derivatives(c, compiled, sparse, optimize) if type(c) is FlatConstraint else c)
    return found


def constraint_list(constraints: Any) -> Sequence[Any]:
    single = not isinstance(constraints, (list, tuple)) or _is_triple(constraints)
    return [constraints] if single else constraints


def _is_triple(x: object) -> bool:
    return type(x) is tuple and len(x) == 3 and callable(x[0]) and not callable(x[1]) and not isinstance(x[1], dict)


def flat_constraint(given: Any, what: str, packing: Packing, optimize: Any) -> Any:
    """Convert a constraint of ``minimize`` to a ``FlatConstraint``; return a ``LinearConstraint`` unchanged.

    Raises:
        TypeError: it is not a constraint.
    """
    if isinstance(given, optimize.LinearConstraint):
        return given
    if isinstance(given, dict):
        given = _as_nonlinear(given, what, optimize)
    if _is_triple(given):
        given = optimize.NonlinearConstraint(
            given[0], _constraint_bound(given[1], -np.inf, what), _constraint_bound(given[2], np.inf, what)
        )
    elif callable(given):
        given = optimize.NonlinearConstraint(given, 0, 0)
    if not isinstance(given, optimize.NonlinearConstraint):
        raise TypeError(
            f"{what} is a {type(given).__name__}: expected a function that must be 0, (function, low, high), a "
            "NonlinearConstraint, a LinearConstraint or a dictionary as in SciPy"
        )
    flat = flat_function(given.fun, packing, (), f"{what}: {function_name(given.fun)}()")
    jac, hess = [_user_derivative(f, packing) if callable(f) else None for f in (given.jac, given.hess)]
    return FlatConstraint(flat, what, given, jac, hess)


def _with_derivatives(c: FlatConstraint, compiled: bool, sparse: bool, optimize: Any) -> Any:
    """Return SciPy's ``NonlinearConstraint`` on the vector."""
    given = c.given
    return optimize.NonlinearConstraint(
        c.value,
        given.lb,
        given.ub,
        jac=c.jac or JacobianFunction(c.flat, c.what, compiled, sparse),
        hess=c.hess or _hessian(given.hess, c.flat, c.what, compiled, sparse, optimize),
        keep_feasible=given.keep_feasible,
        finite_diff_rel_step=given.finite_diff_rel_step,
        finite_diff_jac_sparsity=given.finite_diff_jac_sparsity,
    )


def _hessian(given: Any, flat: AnyFunction, what: str, compiled: bool, sparse: bool, optimize: Any) -> Any:
    """Return the Hessian of the v-weighted sum of the constraints, if the method uses it and the user gave none."""
    if type(given) is not optimize.BFGS or not sparse:
        return given
    weighted = HessianFunction(lambda x, v: np.sum(v * flat(x)), what, compiled, sparse)
    return lambda x, v: weighted(x, np.array(v))


def _dict_constraint(given: Params, what: str, packing: Packing, compiled: bool) -> Params:
    """Convert a dictionary constraint ("type", "fun", "jac", "args") to functions of the vector."""
    fun, args = _function_of(given, what), tuple(given.get("args", ()))
    flat = flat_function(fun, packing, args, f"{what}['fun']")
    own = given.get("jac")
    jacobian = (
        _user_derivative(lambda x: own(x, *args), packing)
        if callable(own)
        else JacobianFunction(flat, what, compiled, False)
    )
    return given | {"fun": lambda x: plain_vector(flat(np.array(x)), what), "jac": jacobian, "args": ()}


def _function_of(given: Params, what: str) -> AnyFunction:
    if not callable(given.get("fun")):
        raise TypeError(f"{what} has no function under 'fun'")
    fun: AnyFunction = given["fun"]
    return fun


def _as_nonlinear(given: Params, what: str, optimize: Any) -> Any:
    """Convert a dictionary constraint to a ``NonlinearConstraint``."""
    fun, args = _function_of(given, what), tuple(given.get("args", ()))
    own = given.get("jac")
    jac = {"jac": lambda x: own(x, *args)} if callable(own) else {}
    kind = str(given.get("type")).lower()
    if kind not in ("eq", "ineq"):
        raise ValueError(
            f"{what}['type'] is {given.get('type')!r}: expected 'eq' (fun is 0) or 'ineq' (fun is not negative)"
        )
    high = 0 if kind == "eq" else np.inf
    return optimize.NonlinearConstraint(lambda x: fun(x, *args), 0, high, **jac)


def _user_derivative(function: AnyFunction, packing: Packing) -> AnyFunction:
    """Convert the user's derivative function to a function of the vector."""
    return lambda x, *more: plain_matrix(function(packing.unpack(x), *more))


def _constraint_bound(bound: Any, free: float, what: str) -> FloatVector | float:
    """Return the lower or upper limit of a constraint: a number, or a vector for the function's result."""
    if bound is None:
        return free
    if is_container(bound) or isinstance(unwrap_array(bound), Tensor):
        return plain_vector(bound, what)
    return np.reshape(output_value(bound, what), -1) if np.ndim(bound) else bound
