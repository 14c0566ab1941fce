"""A shortcut for calls whose arguments are arrays and numbers, into a trace that is one call of native code.

``direct_of`` makes it from a tree. ``Compiled.__call__`` calls it. The native code checks the layouts of arrays itself, so the call
needs no signature and no flattening of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule._src.arrays.tree import TreeSpec, tree_unflatten
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.function_trace import Argument, Captured, FunctionTrace
from chainrule._src.compiling.guards.guards import GuardSets
from chainrule._src.compiling.tree import Tree

if TYPE_CHECKING:
    from chainrule._src.compiling.native_executor import _Reporting

ndarray = np.ndarray


class Direct:
    """A shortcut into one trace. ``direct_of`` makes it.

    Args:
        spec: the structure of the result, whose leaves are arrays.
        scalars: the positions of results that are NumPy scalars.
        count: the number of arguments.
        numbers: the positions and types of arguments that are numbers.
        others: the sources of the inputs after the arguments.
        entry: the native code, and its argument for reporting.
        guard_sets: the guards on Python state.
        may_fail: whether the native code may fail.
    """

    __slots__ = (
        "_captured",
        "_code",
        "_count",
        "_guard_sets",
        "_may_fail",
        "_numbers",
        "_others",
        "_reporting",
        "_scalars",
        "_single",
        "_tuple",
        "spec",
    )

    def __init__(
        self,
        spec: TreeSpec,
        scalars: list[int],
        count: int,
        numbers: list[tuple[int, type]],
        others: list[Captured],
        entry: tuple[Any, _Reporting],
        guard_sets: GuardSets,
        may_fail: bool,
    ) -> None:
        self.spec = spec
        self._scalars = scalars
        self._single = spec.kind is None
        self._tuple = spec.kind is tuple and all([child.kind is None for child in spec.children])
        self._count = count
        self._numbers = numbers
        self._others = others
        captured = all([type(source) is Captured for source in others])
        self._captured = tuple([source.content for source in others]) if captured else None
        self._code, self._reporting = entry
        self._guard_sets = guard_sets
        self._may_fail = may_fail

    def call(self, args: tuple[object, ...]) -> Any:
        """Return the result of the function, or None if the arguments or their layouts do not fit or a guard fails."""
        arrays = self._arrays(args)
        outputs = None if arrays is None else self._code(arrays, self._reporting)
        if outputs is None:
            return None
        for i in self._scalars:
            outputs[i] = outputs[i][()]
        if self._single:
            return outputs[0]
        return tuple(outputs) if self._tuple else tree_unflatten(outputs, self.spec)

    def into(self, args: tuple[object, ...], out: list[NumpyArray]) -> bool:
        """Write the results into arrays; return False if arguments or arrays do not fit."""
        arrays = None if self._may_fail else self._arrays(args)
        if arrays is None or any(type(x) is ndarray and np.may_share_memory(x, y) for x in arrays for y in out):
            return False  # native code may write a result before it has read all arguments
        return bool(self._code.run_into(arrays, out, self._reporting))

    def _arrays(self, args: tuple[object, ...]) -> tuple[Any, ...] | None:
        """Return the inputs of the native code, or None."""
        arrays = arrays_of(args, self._count, self._numbers)
        if arrays is None or not self._guard_sets.hold():
            return None
        if self._captured is not None:
            return arrays + self._captured
        return (*arrays, *[source.array(arrays, arrays) for source in self._others])


def numbers_among(args: tuple[object, ...]) -> list[tuple[int, type]] | None:
    """Return the positions and types of arguments that are numbers; None if there are others than arrays and numbers."""
    if not all([type(x) in (ndarray, float, np.float64) for x in args]):
        return None
    return [(i, type(x)) for i, x in enumerate(args) if type(x) is not ndarray]


def arrays_of(args: tuple[object, ...], count: int, numbers: list[tuple[int, type]]) -> tuple[Any, ...] | None:
    """Return arguments with numbers as 0-d arrays; None if the numbers are at other positions or of other types."""
    if len(args) != count:
        return None
    if not numbers:
        return args
    arrays = list(args)
    for i, kind in numbers:
        if type(arrays[i]) is not kind:
            return None
        arrays[i] = np.asarray(arrays[i])
    return tuple(arrays)


def direct_of(tree: Tree, args: tuple[object, ...], report: Callable[[Iterable[str]], None]) -> Direct | None:
    """Return a shortcut into a tree for calls like one with these arguments, or None if the tree cannot have one."""
    segment = tree.root
    trace = segment.trace
    if trace is None or not trace.results or not only_computes(trace) or len(segment.inputs) != len(tree.sources):
        return None
    sources = [tree.sources[number] for number in segment.inputs]
    count = len(args)
    numbers = numbers_among(args)
    # every argument has to be an input of the plan, since the native code checks only the shapes of inputs
    if numbers is None or sum([type(x) is Argument for x in sources]) != count or not _in_order(sources[:count]):
        return None
    entry = segment.plan.entry(report)
    scalars = [i for i, result in enumerate(trace.results) if result.kind == "scalar"]
    return (
        None
        if entry is None
        else Direct(
            trace.spec,
            scalars,
            count,
            numbers,
            sources[count:],
            entry,
            tree.guard_sets,
            segment.plan.may_fail,
        )
    )


def only_computes(trace: FunctionTrace) -> bool:
    """Return whether a trace only computes arrays: it has no effects, no guards on tensors and no backward pass."""
    others = trace.states or trace.generator_states or trace.effects or trace.writes or trace.backward
    return not others and all([result.kind in ("array", "scalar") for result in trace.results])


def _in_order(sources: list[Argument]) -> bool:
    return all([type(source) is Argument and source.at == i for i, source in enumerate(sources)])
