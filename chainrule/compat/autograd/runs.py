"""Active runs of differentiated functions, and values without the derivative of one run.

``tracing`` starts a run for each call of a differentiated function.

HIPS autograd nests boxes, one for each active run. Here all reverse-mode runs share one tape. A value without the innermost
derivative is an alias node on the tape: the backward pass of its run stops at that node, those of enclosing runs pass it.
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
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule.compat.autograd.values import constant, differentiable, getval, isbox, stack_objects


class Run:
    """One run of a differentiated function: its inputs on the tape, and its result if that is constant.

    Attributes:
        starts: the edges of the arguments, in reverse mode.
        level: the level of the tangents, in forward mode.
        hidden: alias nodes at which this run's backward pass stops.
        start_seq: the sequence number of the start; larger for nested runs.
        depth: the number of enclosing runs.
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
        self.start_seq = next_seq()

    def __call__(self, x: Any) -> Any:
        if self.forward:
            self.level = STACK.levels[-1]
        else:
            for leaf in tree_leaves(x):
                self.start(leaf)
        with self:
            y = tree_map(stack_objects, self.fun(x))  # type: ignore[misc]
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
        self.depth = len(ACTIVE.runs)
        ACTIVE.runs = (*ACTIVE.runs, self)
        return self

    def __exit__(self, *exc: object) -> None:
        ACTIVE.runs = tuple([run for run in ACTIVE.runs if run is not self])

    def dependent_part(self, x: AnyArray) -> Any:
        """Return the part of a value that depends on this run's argument: a tensor, or the Dual of its level; or None."""
        for part in _nested_values(x):
            if isinstance(part, Tensor):
                if part._edge is not None and self._reaches_starts(part._edge):
                    return part
            elif type(part) is Dual and part.level == self.level and part.tangent is not None:
                return part
        return None

    def _reaches_starts(self, edge: Any) -> bool:
        seen = {edge}
        found = [edge]
        for edge in found:  # the list grows during the iteration
            if edge in self.starts:
                return True
            if edge not in self.hidden:
                for below in edge.edges:
                    if below is not None and below.seq >= self.start_seq and below not in seen:
                        seen.add(below)
                        found.append(below)
        return False

    def value(self, x: Any, outside: bool) -> Any:
        """Return a dependent part without this run's derivative. ``outside``: other runs depend on it, too."""
        if type(x) is Dual:
            return array_of(tensor_of(x.primal))
        return (
            self.detach_from_run(x)
            if outside or any(type(start) is not Leaf for start in self.starts)
            else array_of(wrap(x._raw))
        )

    def detach_from_run(self, x: object) -> Array:
        """Return an alias of a tensor that has derivatives only in the enclosing runs."""
        lower = alias(x)
        if lower._edge is not None:
            lower._view = None
            self.hidden.add(lower._edge)
        return array_of(lower)

    def outside_of_run(self, x: TensorLike) -> Any:
        """Return a value computed in this run for use outside of it, without this run's derivative."""
        return self.detach_from_run(x.tensor) if type(x) is Array and x.tensor._edge is not None else x


class _ActiveRuns(threading.local):
    """The active runs of this thread, outermost first."""

    runs: tuple[Run, ...] = ()


ACTIVE = _ActiveRuns()
#: Maps edges of a run's inputs to the run.
STARTS: weakref.WeakKeyDictionary[Any, Run] = weakref.WeakKeyDictionary()


def _nested_values(x: AnyArray) -> Iterator[object]:
    """Iterate over a tensor, its data, the data's content, and so on, through nested tensors and interpreters."""
    while isinstance(x, (Tensor, WithPrimal, Batched)):
        yield x
        x = x._raw if isinstance(x, Tensor) else x.inside


def runs_of(x: Array) -> list[tuple[Run, Any]]:
    """Return the runs that a value depends on, innermost first, with the dependent part. Runs may have ended.

    Runs of the same depth that follow each other are one level, as boxes with the same ``_trace`` are in HIPS autograd.
    """
    runs = {run for run in ACTIVE.runs if run.forward}
    for part in _nested_values(x.tensor):
        if isinstance(part, Tensor) and part._edge is not None:
            runs.update([STARTS[edge] for edge in reachable([part._edge]) if edge in STARTS])
    found = [(run, run.dependent_part(x.tensor)) for run in sorted(runs, key=lambda run: (-run.depth, -run.start_seq))]
    return [(run, part) for run, part in found if part is not None]


def value_of(x: Array) -> AnyArray:
    """Return ``x._value``: the value without the derivatives of its innermost level; outer runs still differentiate it."""
    found = runs_of(x)
    lower: Any = x
    while found and isbox(lower):
        run, part = found.pop(0)
        if lower is not x:
            part = run.dependent_part(lower.tensor)
        if part is not None:
            lower = run.value(part, outside=bool(found))
        if found and found[0][0].depth < run.depth:
            break
    return lower if lower is not x and isbox(lower) else getval(x)


def depth_of(x: Array) -> int:
    """Return ``x._trace``: the depth of the innermost run that a value depends on; -1 for none."""
    found = runs_of(x)
    return found[0][0].depth if found else -1


def current_run() -> Run | None:
    """Return the run whose backward pass is active."""
    wanted = None if LOCAL.sweep is None else LOCAL.sweep.wanted
    return STARTS.get(next(iter(wanted))) if wanted else None
