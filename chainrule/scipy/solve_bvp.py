"""``solve_bvp``: SciPy's solver for functions of containers, with both Jacobians computed automatically."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.tree import tree_flatten, tree_map
from chainrule._src.arrays.types import AnyArray, AnyFunction, IntoArray
from chainrule._src.transforms.arguments import array_like
from chainrule._src.transforms.jacrev import jacfwd
from chainrule.scipy.derivatives import maybe_compiled, scipy_module
from chainrule.scipy.solve_ivp import Path
from chainrule.scipy.vectors import Packing, flat_output, function_name, output_value, plain_value, plain_vector

ndarray = np.ndarray


def solve_bvp(
    fun: AnyFunction,
    bc: AnyFunction,
    x: IntoArray,
    y: Any,
    p: Any = None,
    S: object = None,
    fun_jac: AnyFunction | None = None,
    bc_jac: AnyFunction | None = None,
    tol: float = 1e-3,
    max_nodes: int = 1000,
    verbose: int = 0,
    bc_tol: float | None = None,
    *,
    compile: bool = False,
) -> Any:
    """Solve a boundary value problem by ``scipy.integrate.solve_bvp``, with the Jacobians computed automatically.

    Args:
        fun: ``fun(x, y)``, or ``fun(x, y, p)``, returns dy/dx at all points of the mesh, in the structure and shapes of y.
        bc: ``bc(ya, yb)``, or ``bc(ya, yb, p)``, returns the boundary residuals: an array or a container of arrays, with as
            many numbers as y (at one point) and p have.
        x: the initial mesh, of shape (m,).
        y: a guess at the solution: arrays or tensors whose last axis has length m.
        p: a guess at unknown parameters: an array, tensor or number, or a container of them.
        fun_jac, bc_jac: replace the automatic Jacobians, as in SciPy; they take arguments like y and p.
        compile: compile all functions (see ``cr.compile``).
        S, tol, max_nodes, verbose, bc_tol: as in SciPy.

    Returns:
        SciPy's result. ``y``, ``yp`` and ``sol(x)`` are like y, ``p`` is like p.

    Raises:
        TypeError: y or p is not of floating-point dtype.
        ValueError: the last axis of y is not as long as the mesh.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.linspace(0, 1, 5)
    >>> def equation(x, y):
    ...     return {"u": y["du"], "du": -np.exp(y["u"])}
    >>> def at_ends(a, b):
    ...     return [a["u"], b["u"]]
    >>> found = cr.scipy.solve_bvp(equation, at_ends, x, {"u": np.zeros(5), "du": np.zeros(5)})
    >>> found.success, float(found.sol(0.5)["u"].round(4))
    (True, 0.1405)
    """
    integrate = scipy_module("scipy.integrate", "solve_bvp")
    mesh = np.asarray(plain_value(array_like(x), "x"), float)
    guess = array_like(y)
    if isinstance(guess, np.ndarray) and guess.dtype.kind in "iu":
        guess = guess.astype(float)
    for leaf in tree_flatten(guess)[0]:
        shape = np.shape(leaf)
        if not shape or shape[-1] != mesh.size:
            raise ValueError(
                f"solve_bvp(): the last axis of the arrays of y must have the mesh's length {mesh.size}: got {shape}"
            )
    packing = Packing(tree_map(lambda leaf: leaf[..., 0], guess), "y")
    parameters = None if p is None else Packing(p, "p")
    f, g = f"{function_name(fun)}()", f"{function_name(bc)}()"

    state = np.concatenate([np.reshape(plain_value(leaf, "y"), (-1, mesh.size)) for leaf in tree_flatten(guess)[0]])

    def with_parameters(p: tuple[object, ...]) -> tuple[Any, ...]:
        return tuple(parameters.unpack(part) for part in p) if parameters is not None else ()

    def flat_fun(x: AnyArray, y: AnyArray, *p: object) -> AnyArray:
        return flat_output(fun(x, packing.unpack(y), *with_parameters(p)), f, y.shape[1])

    def flat_bc(a: AnyArray, b: AnyArray, *p: object) -> AnyArray:
        return flat_output(bc(packing.unpack(a), packing.unpack(b), *with_parameters(p)), g)

    def by_state(x: AnyArray, y: AnyArray, *p: object) -> AnyArray:
        # The equation acts point by point, so one change shared by all points gives each point's Jacobian.
        return jacfwd(lambda change: flat_fun(x, y + change[:, None], *p))(np.zeros(packing.size))

    derivatives = maybe_compiled(flat_fun, compile)
    ends = maybe_compiled(flat_bc, compile)
    jacobian_by_state = maybe_compiled(by_state, compile)
    jacobian_by_parameters = maybe_compiled(lambda x, y, p: jacfwd(lambda p: flat_fun(x, y, p))(p), compile)
    jacobian_of_ends = maybe_compiled(jacfwd(flat_bc, tuple(range(2 if p is None else 3))), compile)

    def both_jacobians(x: ndarray, y: ndarray, *p: ndarray) -> object:
        found = [jacobian_by_state(x, y, *p), *(jacobian_by_parameters(x, y, part) for part in p)]
        at_points = [plain_value(part, f).transpose(0, 2, 1) for part in found]
        return at_points[0] if p == () else tuple(at_points)

    def end_jacobians(*ends: ndarray) -> tuple[AnyArray, ...]:
        return tuple(plain_value(part, g) for part in jacobian_of_ends(*ends))

    found = integrate.solve_bvp(
        lambda x, y, *p: output_value(derivatives(x, y, *p), f),
        lambda a, b, *p: plain_vector(ends(a, b, *p), g),
        mesh,
        state,
        None if parameters is None else parameters.start,
        S,
        both_jacobians if fun_jac is None else lambda x, y, *p: fun_jac(x, packing.unpack(y), *with_parameters(p)),
        end_jacobians
        if bc_jac is None
        else lambda a, b, *p: bc_jac(packing.unpack(a), packing.unpack(b), *with_parameters(p)),
        tol,
        max_nodes,
        verbose,
        bc_tol,
    )
    if parameters is not None:
        found.p = parameters.results(found.p)
    if not packing.is_vector:
        found.y, found.yp, found.sol = packing.results(found.y), packing.results(found.yp), Path(found.sol, packing)
    return found
