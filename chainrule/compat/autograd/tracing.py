"""The two operators that all others are made of.

A function is handed Arrays, alone or in tuples, lists and dicts. What it returns goes back to NumPy: numbers are NumPy's
scalars.
"""

from __future__ import annotations

from typing import Any

from chainrule import func
from chainrule._src.arrays.tree import tree_leaves, tree_map, tree_structure
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.transforms.grad import pulled
from chainrule._src.transforms.trace import Trace
from chainrule.compat.autograd.kinds import TYPE_MAPPINGS
from chainrule.compat.autograd.runs import Run
from chainrule.compat.autograd.values import conjugate, differentiable, in_containers, shown, zeros_like


def points(x: object) -> Any:
    """What a function is differentiated by, as floats and complex numbers."""
    for leaf in tree_leaves(x):
        TYPE_MAPPINGS.check(leaf)
    return tree_map(differentiable, x)


def recorded(name: str, fun: AnyFunction, x: object) -> tuple[Run, Trace]:
    """Return a function's run in reverse mode, and its trace."""
    if x is None:
        raise TypeError("Can't differentiate w.r.t. None")
    run = Run(fun)
    trace = Trace(name, run, (0,), (points(x),), {}, linked=True)
    trace.hidden = run.hidden
    return run, trace


def make_vjp(fun: AnyFunction, x: object) -> tuple[AnyFunction, Any]:
    """``(vjp, value)``: ``vjp(g)`` pulls a gradient with respect to fun(x) back to x."""
    return vjp_of(*recorded("make_vjp(fun, x)", fun, x), x)


def vjp_of(run: Run, trace: Trace, x: object) -> tuple[AnyFunction, Any]:
    """``(vjp, value)`` of a function that was called."""
    if run.is_constant:
        return lambda g: zeros_like(x), run.constant
    value, pull = pulled(trace)
    spec = tree_structure(value)

    def vjp(g: object) -> object:
        g = tree_map(conjugate, in_containers(spec, g))
        return result_of(run, tree_map(conjugate, pull(g)[0]))

    return vjp, result_of(run, value)


def result_of(run: Run, x: object) -> Any:
    """What a run in reverse mode gives, as programs get it."""
    return shown(tree_map(run.left, x))


def make_jvp(fun: AnyFunction, x: object) -> AnyFunction:
    """Return a function of a tangent of x, which returns ``(fun(x), tangent of fun(x))``."""

    def jvp(g: object) -> tuple[Any, Any]:
        run = Run(fun, forward=True)
        value, tangent = func.jvp(run, (points(x),), (g,))
        if run.is_constant:
            return run.constant, zeros_like(run.constant)
        return shown(value), shown(tangent)

    return jvp
