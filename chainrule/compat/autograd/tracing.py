"""``make_vjp`` and ``make_jvp``, from which all other operators are built.

``differential_operators`` calls both functions.

The differentiated function gets Arrays, alone or in tuples, lists and dicts. Results are converted to NumPy arrays and
scalars.
"""

from __future__ import annotations

from typing import Any

from chainrule import func
from chainrule._src.arrays.tree import tree_leaves, tree_map, tree_structure
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.transforms.grad import result_and_pullback
from chainrule._src.transforms.trace import Trace
from chainrule.compat.autograd.kinds import TYPE_MAPPINGS
from chainrule.compat.autograd.runs import Run
from chainrule.compat.autograd.values import conjugate, differentiable, match_containers, to_scalars, zeros_like


def as_differentiable(x: object) -> Any:
    """Convert the argument of a differentiated function to floats and complex numbers."""
    for leaf in tree_leaves(x):
        TYPE_MAPPINGS.check(leaf)
    return tree_map(differentiable, x)


def record_run(name: str, fun: AnyFunction, x: object) -> tuple[Run, Trace]:
    """Run a function in reverse mode; return the run and its trace."""
    if x is None:
        raise TypeError("Can't differentiate w.r.t. None")
    run = Run(fun)
    trace = Trace(name, run, (0,), (as_differentiable(x),), {}, linked=True)
    trace.hidden = run.hidden
    return run, trace


def make_vjp(fun: AnyFunction, x: object) -> tuple[AnyFunction, Any]:
    """Return ``(vjp, value)``; ``vjp(g)`` maps a gradient with respect to fun(x) to one with respect to x."""
    return vjp_from_trace(*record_run("make_vjp(fun, x)", fun, x), x)


def vjp_from_trace(run: Run, trace: Trace, x: object) -> tuple[AnyFunction, Any]:
    """Return ``(vjp, value)`` of a recorded run."""
    if run.is_constant:
        return lambda g: zeros_like(x), run.constant
    value, pull = result_and_pullback(trace)
    spec = tree_structure(value)

    def vjp(g: object) -> object:
        g = tree_map(conjugate, match_containers(spec, g))
        return public_result(run, tree_map(conjugate, pull(g)[0]))

    return vjp, public_result(run, value)


def public_result(run: Run, x: object) -> Any:
    """Convert a result of a reverse-mode run for the program, without the run's derivative."""
    return to_scalars(tree_map(run.outside_of_run, x))


def make_jvp(fun: AnyFunction, x: object) -> AnyFunction:
    """Return a function of a tangent of x that returns ``(fun(x), tangent of fun(x))``."""

    def jvp(g: object) -> tuple[Any, Any]:
        run = Run(fun, forward=True)
        value, tangent = func.jvp(run, (as_differentiable(x),), (g,))
        if run.is_constant:
            return run.constant, zeros_like(run.constant)
        return to_scalars(value), to_scalars(tangent)

    return jvp
