"""Values in and out, and the two operators that all others are made of.

A function is handed Arrays, alone or in tuples, lists and dicts. What it returns goes back to NumPy: numbers are NumPy's
scalars. Gradients of complex values are HIPS autograd's, the conjugates of chainrule's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import func
from chainrule.api.array import Array, array_of, carries, plain_or_stacked
from chainrule.core.tensor import Tensor
from chainrule.tree import tree_leaves, tree_map

Function = Callable[..., Any]


def getval(x: Any) -> Any:
    """The plain value of an Array, without its derivatives; anything else as it is."""
    if type(x) is not Array:
        return x
    raw = x.tensor._raw
    value = raw if isinstance(raw, np.ndarray) else raw.read()
    if value is None:
        raise TypeError("getval() of an array inside vmap: it stands for many values, and has none of its own")
    return value[()]


def isbox(x: Any) -> bool:
    """Whether a value is followed by a derivative that is being taken."""
    return type(x) is Array and carries(x)


def conjugate(x: Any) -> Any:
    """From chainrule's gradient of a complex value to HIPS autograd's, and back."""
    return np.conj(x) if np.iscomplexobj(x) else x


def shown(x: Any) -> Any:
    """A result as programs get it: NumPy's scalars for 0-d arrays."""
    return tree_map(lambda leaf: leaf[()] if isinstance(leaf, np.ndarray) and not leaf.ndim else leaf, x)


def differentiable(x: Any) -> Any:
    """What is differentiated by: floats and complex numbers; integers become floats."""
    if isinstance(x, (Array, Tensor)):
        return x
    value = np.asarray(x)
    if value.dtype.kind in "iub":
        return value.astype(float)
    if value.dtype.kind not in "fc":
        raise TypeError(f"Can't differentiate w.r.t. type {type(x)}")
    return value


def detached(x: Any) -> Any:
    """A value that leaves the function it was computed in, without the derivative that was taken there."""
    return getval(x) if type(x) is Array else x


def constant(y: Any) -> bool:
    """Whether a result depends on nothing that is differentiated."""
    return not any(isinstance(leaf, Tensor) or isbox(leaf) for leaf in tree_leaves(y))


class Result:
    """Calls a function, and remembers what it returned where that depends on nothing."""

    constant: Any = None
    is_constant = False

    def __init__(self, fun: Function) -> None:
        self.fun = fun

    def __call__(self, x: Any) -> Any:
        y = tree_map(stacked, self.fun(x))
        if constant(y):
            warnings.warn("Output seems independent of input.", stacklevel=6)
            self.constant, self.is_constant = y, True
            return np.zeros(())
        return tree_map(differentiable, y)


def stacked(x: Any) -> Any:
    """An array of objects that are Arrays as one Array."""
    found = plain_or_stacked(x)
    return array_of(found) if isinstance(found, Tensor) and found is not x else found


def zeros_like(x: Any) -> Any:
    return tree_map(lambda leaf: np.zeros_like(differentiable(getval(leaf)))[()], x)


def make_vjp(fun: Function, x: Any) -> tuple[Function, Any]:
    """``(vjp, value)``: ``vjp(g)`` pulls a gradient with respect to fun(x) back to x."""
    if x is None:
        raise TypeError("Can't differentiate w.r.t. None")
    result = Result(fun)
    value, pull = func.vjp(result, tree_map(differentiable, x))
    if result.is_constant:
        return lambda g: zeros_like(x), result.constant

    def vjp(g: Any) -> Any:
        return shown(tree_map(conjugate, pull(tree_map(conjugate, g))[0]))

    return vjp, shown(value)


def make_jvp(fun: Function, x: Any) -> Function:
    """A function of a tangent of x, which returns ``(fun(x), tangent of fun(x))``."""

    def jvp(g: Any) -> tuple[Any, Any]:
        result = Result(fun)
        value, tangent = func.jvp(result, (tree_map(differentiable, x),), (g,))
        if result.is_constant:
            return result.constant, zeros_like(result.constant)
        return shown(value), shown(tangent)

    return jvp
