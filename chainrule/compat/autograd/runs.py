"""The runs of functions that are being differentiated, and values without the derivative of one of them.

HIPS autograd keeps one value for each run that is going on, in boxes in boxes. Here all runs in reverse mode share one tape,
where the value one level less is a node of its own: the sweep of its run does not pass it, those of the runs around do.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, array_of
from chainrule._src.arrays.tree import tree_leaves, tree_map
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.interpreters.primal import WithPrimal
from chainrule._src.table.shape import alias
from chainrule._src.tape.engine import reachable
from chainrule._src.tape.levels import STACK, Level
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.node import Leaf, next_seq
from chainrule._src.tape.tensor import Tensor, wrap, wrapped
from chainrule.compat.autograd.values import constant, differentiable, getval, isbox, stacked


class Run:
    """One run of a function that is differentiated: what it starts from, and whether its result depends on anything.

    Attributes:
        starts: where the arguments are on the tape, in reverse mode.
        level: the level of the tangents, in forward mode.
        hidden: nodes that stand for values one level less.
        began: its time; that of a run inside of it is later.
        depth: how many runs it is inside of.
    """

    constant: Any = None
    is_constant = False
    depth = 0

    def __init__(self, fun: Callable[[Any], Any] | None = None, forward: bool = False) -> None:
        self.fun = fun
        self.forward = forward
        self.level: Level | None = None
        self.starts: weakref.WeakSet[Any] = weakref.WeakSet()
        self.hidden: weakref.WeakSet[object] = weakref.WeakSet()
        self.began = next_seq()

    def __call__(self, x: Any) -> Any:
        if self.forward:
            self.level = STACK.levels[-1]
        else:
            for leaf in tree_leaves(x):
                self.start(leaf)
        with self:
            y = tree_map(stacked, self.fun(x))  # type: ignore[misc]
        if constant(y):
            warnings.warn("Output seems independent of input.", stacklevel=7)
            self.constant, self.is_constant = y, True
            return np.zeros(())
        return tree_map(differentiable, y)

    def start(self, x: Any) -> None:
        edge = getattr(x, "tensor", x)._edge
        self.starts.add(edge)
        STARTS[edge] = self

    def __enter__(self) -> Run:
        self.depth = len(GOING.runs)
        GOING.runs = (*GOING.runs, self)
        return self

    def __exit__(self, *exc: object) -> None:
        GOING.runs = tuple([run for run in GOING.runs if run is not self])

    def followed(self, x: AnyArray) -> Any:
        """What of a value depends on this run's argument: a tensor, or the Dual of the run's level; None if nothing does."""
        for part in _layers(x):
            if isinstance(part, Tensor):
                if part._edge is not None and self._reaches_starts(part._edge):
                    return part
            elif type(part) is Dual and part.level == self.level and part.tangent is not None:
                return part
        return None

    def _reaches_starts(self, edge: Any) -> bool:
        seen = {edge}
        found = [edge]
        for edge in found:  # which grows as it is walked
            if edge in self.starts:
                return True
            if edge not in self.hidden:
                for below in edge.edges:
                    if below is not None and below.seq >= self.began and below not in seen:
                        seen.add(below)
                        found.append(below)
        return False

    def value(self, x: Any, outside: bool) -> Any:
        """Return the value, without this run's derivative, of what is ``followed``. ``outside``: other runs follow it, too."""
        if type(x) is Dual:
            return array_of(wrapped(x.primal))
        return (
            self.hide(x) if outside or any(type(start) is not Leaf for start in self.starts) else array_of(wrap(x._raw))
        )

    def hide(self, x: object) -> Array:
        """Return a tensor whose derivative belongs to the runs around this one alone."""
        lower = alias(x)
        if lower._edge is not None:
            lower._view = None
            self.hidden.add(lower._edge)
        return array_of(lower)

    def left(self, x: TensorLike) -> Any:
        """Return a result, or what a rule is given, outside of the run that it was computed in."""
        return self.hide(x.tensor) if type(x) is Array and x.tensor._edge is not None else x


class _Going(threading.local):
    """The runs whose functions are being called in this thread, the outermost first."""

    runs: tuple[Run, ...] = ()


GOING = _Going()
#: where values start on the tape, and in which run
STARTS: weakref.WeakKeyDictionary[Any, Run] = weakref.WeakKeyDictionary()


def _layers(x: AnyArray) -> Iterator[object]:
    """Return a tensor, what its data is made of, and so on, as far as runs put them around each other."""
    while isinstance(x, (Tensor, WithPrimal, Batched)):
        yield x
        x = x._raw if isinstance(x, Tensor) else x.inside


def runs_of(x: Array) -> list[tuple[Run, Any]]:
    """Return the runs that a value depends on, the innermost first, and what of the value does. Runs may have ended."""
    runs = {run for run in GOING.runs if run.forward}
    for part in _layers(x.tensor):
        if isinstance(part, Tensor) and part._edge is not None:
            runs.update([STARTS[edge] for edge in reachable([part._edge]) if edge in STARTS])
    found = [(run, run.followed(x.tensor)) for run in sorted(runs, key=lambda run: -run.began)]
    return [(run, part) for run, part in found if part is not None]


def value_of(x: Array) -> AnyArray:
    """``x._value``: the value without the derivative of the innermost run that it depends on. Runs around that go on."""
    found = runs_of(x)
    if found:
        run, part = found[0]
        lower = run.value(part, len(found) > 1)
        if isbox(lower):
            return lower
    return getval(x)


def depth_of(x: Array) -> int:
    """``x._trace``: how many runs the innermost one that a value depends on is inside of; -1 for none."""
    found = runs_of(x)
    return found[0][0].depth if found else -1


def sweeping() -> Run | None:
    """Return the run whose gradients are being computed."""
    wanted = None if LOCAL.sweep is None else LOCAL.sweep.wanted
    return STARTS.get(next(iter(wanted))) if wanted else None
