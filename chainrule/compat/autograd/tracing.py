"""Values in and out, and the two operators that all others are made of.

A function is handed Arrays, alone or in tuples, lists and dicts. What it returns goes back to NumPy: numbers are NumPy's
scalars. Gradients of complex values are HIPS autograd's, the conjugates of chainrule's.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import func
from chainrule.api.array import Array, array_of, carries, plain_or_stacked
from chainrule.core.levels import STACK, Level
from chainrule.core.node import Leaf
from chainrule.core.tensor import Tensor, wrap, wrapped
from chainrule.func.reverse import pulled
from chainrule.interpreters.dual import Dual
from chainrule.table.shape import alias
from chainrule.transform.reverse import Trace
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


def constant(y: Any) -> bool:
    """Whether a result depends on nothing that is differentiated."""
    return not any(isinstance(leaf, Tensor) or isbox(leaf) for leaf in tree_leaves(y))


class Run:
    """One run of a function that is differentiated: what it starts from, and whether its result depends on anything.

    HIPS autograd keeps one value for each run that is going on, in boxes in boxes. Here all runs in reverse mode share one
    tape. The value of an array one level less is a node of its own that this run's sweep does not pass, and those of the
    runs around it do.

    Attributes:
        starts: where the arguments are on the tape, in reverse mode.
        level: the level of the tangents, in forward mode.
        hidden: nodes that stand for values one level less.
    """

    constant: Any = None
    is_constant = False

    def __init__(self, fun: Function, forward: bool = False) -> None:
        self.fun = fun
        self.forward = forward
        self.level: Level | None = None
        self.starts: set[Any] = set()
        self.hidden: set[Any] = set()

    def __call__(self, x: Any) -> Any:
        y = tree_map(stacked, self._called(x))
        if constant(y):
            warnings.warn("Output seems independent of input.", stacklevel=7)
            self.constant, self.is_constant = y, True
            return np.zeros(())
        return tree_map(differentiable, y)

    def _called(self, x: Any) -> Any:
        if self.forward:
            self.level = STACK.levels[-1]
        else:
            self.starts = {getattr(leaf, "tensor", leaf)._edge for leaf in tree_leaves(x)}
        with self:
            return self.fun(x)

    def __enter__(self) -> Run:
        RUNS.going = [*RUNS.going, self]
        return self

    def __exit__(self, *exc: object) -> None:
        RUNS.going = [run for run in RUNS.going if run is not self]

    def followed(self, x: Any) -> Any:
        """What of a value depends on this run's argument: a tensor, or the Dual of the run's level; None if nothing does."""
        while not isinstance(x, np.ndarray):
            if isinstance(x, Tensor):
                if self.starts and x._edge is not None and self._reaches_starts(x._edge):
                    return x
                x = x._raw
            else:
                if type(x) is Dual and x.level == self.level and x.tangent is not None:
                    return x
                x = x.inside
        return None

    def _reaches_starts(self, edge: Any) -> bool:
        began = min(start.seq for start in self.starts)
        seen = {edge}
        stack = [edge]
        while stack:
            edge = stack.pop()
            if edge in self.starts:
                return True
            if edge not in self.hidden:
                more = {below for below in edge.edges if below is not None and below.seq >= began} - seen
                seen |= more
                stack += more
        return False

    def value(self, x: Any) -> Any:
        """The value, without this run's derivative, of what is ``followed``."""
        if type(x) is Dual:
            return array_of(wrapped(x.primal))
        if any(type(start) is not Leaf for start in self.starts) or RUNS.going[0] is not self:
            lower = alias(x)
            if lower._edge is not None:
                lower._view = None
                self.hidden.add(lower._edge)
                return array_of(lower)
        return array_of(wrap(x._raw))


class _Runs(threading.local):
    """The runs that are going on in this thread, the outermost first."""

    going: Sequence[Run] = ()


RUNS = _Runs()


def value_of(x: Array) -> Any:
    """``x._value``: the value without the derivative of the innermost run that it depends on. Runs around that go on."""
    for run in reversed(RUNS.going):
        found = run.followed(x.tensor)
        if found is not None:
            lower = run.value(found)
            return lower if isbox(lower) else getval(lower)
    return getval(x)


def stacked(x: Any) -> Any:
    """An array of objects that are Arrays as one Array."""
    found = plain_or_stacked(x)
    return array_of(found) if isinstance(found, Tensor) and found is not x else found


def zeros_like(x: Any) -> Any:
    return tree_map(lambda leaf: np.zeros_like(differentiable(getval(leaf)))[()], x)


def recorded(name: str, fun: Function, x: Any) -> tuple[Run, Trace]:
    """A function's run in reverse mode, and its trace."""
    if x is None:
        raise TypeError("Can't differentiate w.r.t. None")
    run = Run(fun)
    trace = Trace(name, run, (0,), (tree_map(differentiable, x),), {}, linked=True)
    trace.hidden = run.hidden
    return run, trace


def make_vjp(fun: Function, x: Any) -> tuple[Function, Any]:
    """``(vjp, value)``: ``vjp(g)`` pulls a gradient with respect to fun(x) back to x."""
    return vjp_of(*recorded("make_vjp(fun, x)", fun, x), x)


def vjp_of(run: Run, trace: Trace, x: Any) -> tuple[Function, Any]:
    """``(vjp, value)`` of a function that was called."""
    if run.is_constant:
        return lambda g: zeros_like(x), run.constant
    value, pull = pulled(trace)

    def vjp(g: Any) -> Any:
        return shown(tree_map(conjugate, pull(tree_map(conjugate, g))[0]))

    return vjp, shown(value)


def make_jvp(fun: Function, x: Any) -> Function:
    """A function of a tangent of x, which returns ``(fun(x), tangent of fun(x))``."""

    def jvp(g: Any) -> tuple[Any, Any]:
        run = Run(fun, forward=True)
        value, tangent = func.jvp(run, (tree_map(differentiable, x),), (g,))
        if run.is_constant:
            return run.constant, zeros_like(run.constant)
        return shown(value), shown(tangent)

    return jvp
