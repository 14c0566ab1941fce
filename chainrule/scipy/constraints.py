"""Constraints of the user's containers, with their Jacobians and Hessians."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import unfaced
from chainrule._src.arrays.tree import is_container
from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.tape.tensor import Tensor
from chainrule.scipy.derivatives import HessianOf, JacobianOf
from chainrule.scipy.vectors import (
    FloatVector,
    Packing,
    flat_function,
    function_name,
    output_value,
    plain_matrix,
    plain_vector,
)


def with_derivatives(constraints: Any, packing: Packing, optimize: Any, sparse: bool, compiled: bool) -> Any:
    """Return the constraints of ``minimize`` as functions of the vector, with what derivatives they lack.

    Args:
        constraints: one, or a list of them: a function (which is to be 0), ``(function, low, high)``, and SciPy's
            ``NonlinearConstraint``, ``LinearConstraint`` (of the vector) and dictionaries.
        packing: that of x0.
        optimize: ``scipy.optimize``.
        sparse: whether the method takes sparse Jacobians.
        compiled: whether to replay recordings.

    Raises:
        TypeError: something is no constraint.
    """
    single = not isinstance(constraints, (list, tuple)) or _is_triple(constraints)
    several = [constraints] if single else constraints
    return [_constraint(c, f"constraints[{i}]", packing, optimize, sparse, compiled) for i, c in enumerate(several)]


def _is_triple(x: object) -> bool:
    return type(x) is tuple and len(x) == 3 and callable(x[0]) and not callable(x[1]) and not isinstance(x[1], dict)


def _constraint(given: Any, what: str, packing: Packing, optimize: Any, sparse: bool, compiled: bool) -> Any:
    if isinstance(given, optimize.LinearConstraint):
        return given
    if isinstance(given, dict):
        if not callable(given.get("fun")):
            raise TypeError(f"{what} has no function under 'fun'")
        if not sparse:
            return _old_style(given, what, packing, compiled)
        given = _new_style(given, optimize)
    if _is_triple(given):
        given = optimize.NonlinearConstraint(given[0], _side(given[1], -np.inf, what), _side(given[2], np.inf, what))
    elif callable(given):
        given = optimize.NonlinearConstraint(given, 0, 0)
    if not isinstance(given, optimize.NonlinearConstraint):
        raise TypeError(
            f"{what} is a {type(given).__name__}: expected a function that is to be 0, (function, low, high), a "
            "NonlinearConstraint, a LinearConstraint or a dictionary as for SciPy"
        )
    flat = flat_function(given.fun, packing, (), f"{what}: {function_name(given.fun)}()")
    jacobian = JacobianOf(flat, what, compiled, sparse)
    jac = given.jac if callable(given.jac) else None
    return optimize.NonlinearConstraint(
        lambda x: plain_vector(flat(np.array(x)), what),
        given.lb,
        given.ub,
        jac=_users(given.jac, packing) if jac else jacobian,
        hess=_users(given.hess, packing)
        if callable(given.hess)
        else _hessian(given.hess, flat, what, compiled, sparse, optimize),
        keep_feasible=given.keep_feasible,
        finite_diff_rel_step=given.finite_diff_rel_step,
        finite_diff_jac_sparsity=given.finite_diff_jac_sparsity,
    )


def _hessian(given: Any, flat: AnyFunction, what: str, compiled: bool, sparse: bool, optimize: Any) -> Any:
    """Return the Hessian of the constraints' sum weighted by v, where the method uses it and SciPy's default would stand."""
    if type(given) is not optimize.BFGS or not sparse:
        return given
    weighted = HessianOf(lambda x, v: np.sum(v * flat(x)), what, compiled, sparse)
    return lambda x, v: weighted(x, np.array(v))


def _old_style(given: Params, what: str, packing: Packing, compiled: bool) -> Params:
    """Return a dictionary with "type", "fun" and perhaps "jac" and "args", for functions of the vector."""
    args = tuple(given.get("args", ()))
    flat = flat_function(given["fun"], packing, args, f"{what}['fun']")
    own = given.get("jac")
    jacobian = _users(lambda x: own(x, *args), packing) if callable(own) else JacobianOf(flat, what, compiled, False)
    return given | {"fun": lambda x: plain_vector(flat(np.array(x)), what), "jac": jacobian, "args": ()}


def _new_style(given: Params, optimize: Any) -> Any:
    """What a dictionary says as a ``NonlinearConstraint``."""
    args = tuple(given.get("args", ()))
    own = given.get("jac")
    jac = {"jac": lambda x: own(x, *args)} if callable(own) else {}
    high = 0 if given.get("type", "").lower() == "eq" else np.inf
    return optimize.NonlinearConstraint(lambda x: given["fun"](x, *args), 0, high, **jac)


def _users(function: AnyFunction, packing: Packing) -> AnyFunction:
    """Return a derivative that the user wrote, of the vector."""
    return lambda x, *more: plain_matrix(function(packing.unpack(x), *more))


def _side(bound: Any, free: float, what: str) -> FloatVector | float:
    """Return low or high of a constraint: a number, or one for each element of what the function returns."""
    if bound is None:
        return free
    if is_container(bound) or isinstance(unfaced(bound), Tensor):
        return plain_vector(bound, what)
    return np.reshape(output_value(bound, what), -1) if np.ndim(bound) else bound
