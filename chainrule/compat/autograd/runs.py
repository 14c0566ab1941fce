"""The runs of functions that are being differentiated, and values without the derivative of one of them.

HIPS autograd keeps one value for each run that is going on, in boxes in boxes. Here all runs in reverse mode share one tape,
where the value one level less is a node of its own: the sweep of its run does not pass it, those of the runs around do.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.api.array import Array, array_of
from chainrule.compat.autograd.values import constant, differentiable, getval, isbox, stacked
from chainrule.core.engine import reachable
from chainrule.core.levels import STACK, Level
from chainrule.core.node import Leaf
from chainrule.core.tensor import Tensor, wrap, wrapped
from chainrule.interpreters.batched import Batched
from chainrule.interpreters.dual import Dual
from chainrule.interpreters.primal import WithPrimal
from chainrule.table.shape import alias
from chainrule.tree import tree_leaves, tree_map


class Run:
    """One run of a function that is differentiated: what it starts from, and whether its result depends on anything.

    Attributes:
        starts: where the arguments are on the tape, in reverse mode.
        level: the level of the tangents, in forward mode.
        hidden: nodes that stand for values one level less.
        depth: how many runs it is inside of.
    """

    constant: Any = None
    is_constant = False
    depth = 0

    def __init__(self, fun: Callable[[Any], Any] | None = None, forward: bool = False) -> None:
        self.fun = fun
        self.forward = forward
        self.level: Level | None = None
        self.starts: set[Any] = set()
        self.hidden: set[Any] = set()

    def __call__(self, x: Any) -> Any:
        if self.forward:
            self.level = STACK.levels[-1]
        else:
            self.starts = {getattr(leaf, "tensor", leaf)._edge for leaf in tree_leaves(x)}
        with self:
            y = tree_map(stacked, self.fun(x))  # type: ignore[misc]
        if constant(y):
            warnings.warn("Output seems independent of input.", stacklevel=7)
            self.constant, self.is_constant = y, True
            return np.zeros(())
        return tree_map(differentiable, y)

    def __enter__(self) -> Run:
        self.depth = len(RUNS.going)
        RUNS.going = [*RUNS.going, self]
        return self

    def __exit__(self, *exc: object) -> None:
        RUNS.going = [run for run in RUNS.going if run is not self]

    def followed(self, x: Any) -> Any:
        """What of a value depends on this run's argument: a tensor, or the Dual of the run's level; None if nothing does."""
        while isinstance(x, (Tensor, WithPrimal, Batched)):
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
        found = [edge]
        for edge in found:  # which grows as it is walked
            if edge in self.starts:
                return True
            if edge not in self.hidden:
                for below in edge.edges:
                    if below is not None and below.seq >= began and below not in seen:
                        seen.add(below)
                        found.append(below)
        return False

    def value(self, x: Any) -> Any:
        """The value, without this run's derivative, of what is ``followed``."""
        if type(x) is Dual:
            return array_of(wrapped(x.primal))
        outside = any(type(start) is not Leaf for start in self.starts)
        if outside or any(run is not self and run.followed(x) is not None for run in RUNS.going):
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
#: where ``new_box`` made values start, and in which run
STARTS: weakref.WeakKeyDictionary[Any, Run] = weakref.WeakKeyDictionary()


def value_of(x: Array) -> Any:
    """``x._value``: the value without the derivative of the innermost run that it depends on. Runs around that go on."""
    for run in reversed(RUNS.going):
        found = run.followed(x.tensor)
        if found is not None:
            lower = run.value(found)
            return lower if isbox(lower) else getval(lower)
    return getval(x)


def depth_of(x: Array) -> int:
    """``x._trace``: how many runs the innermost one that a value depends on is inside of; -1 for none."""
    for run in reversed(RUNS.going):
        if run.followed(x.tensor) is not None:
            return run.depth
    edge = x.tensor._edge
    found = () if edge is None else reachable([edge])
    return max([STARTS[edge].depth for edge in found if edge in STARTS], default=-1)
