"""The shortest way into a plan: a call whose arguments are arrays, and a recording that is one call of native code.

That code looks itself at what the arrays are like, so such a call has no signature, and takes nothing apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule._src.arrays.tree import TreeSpec, tree_unflatten
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.recording import Argument, Captured, Recording
from chainrule._src.compiling.state.guards import References
from chainrule._src.compiling.tree import Tree

if TYPE_CHECKING:
    from chainrule._src.compiling.native_executor import _Reporting

ndarray = np.ndarray


class Direct:
    """Calls of one recording by arrays in a row. ``direct_of`` says whether there is one.

    Args:
        spec: the structure of what it returns, all of it arrays.
        scalars: the positions of those that are scalars of NumPy's.
        count: how many arguments it has.
        numbers: the positions of arguments that are numbers, and their types.
        others: the sources of the arrays that come after them.
        entry: native code, and what it is given besides arrays.
        references: what the function read of Python's state.
        may_fail: whether there may be no results.
    """

    __slots__ = (
        "_code",
        "_count",
        "_fixed",
        "_may_fail",
        "_numbers",
        "_others",
        "_references",
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
        references: References,
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
        self._fixed = tuple([source.content for source in others]) if captured else None
        self._code, self._reporting = entry
        self._references = references
        self._may_fail = may_fail

    def call(self, args: tuple[object, ...]) -> Any:
        """What the function returns; None for arguments that are no arrays, or of another layout."""
        arrays = self._arrays(args)
        made = None if arrays is None else self._code(arrays, self._reporting)
        if made is None:
            return None
        for i in self._scalars:
            made[i] = made[i][()]
        if self._single:
            return made[0]
        return tuple(made) if self._tuple else tree_unflatten(made, self.spec)

    def into(self, args: tuple[object, ...], out: list[NumpyArray]) -> bool:
        """Have the results written into arrays; False for arguments, or arrays, of another layout."""
        arrays = None if self._may_fail else self._arrays(args)
        if arrays is None or any(type(x) is ndarray and np.may_share_memory(x, y) for x in arrays for y in out):
            return False  # a result may be written before all arguments are read
        return bool(self._code.run_into(arrays, out, self._reporting))

    def _arrays(self, args: tuple[object, ...]) -> tuple[Any, ...] | None:
        """What the native code is called with."""
        arrays = arrays_of(args, self._count, self._numbers)
        if arrays is None or not self._references.hold():
            return None
        if self._fixed is not None:
            return arrays + self._fixed
        return (*arrays, *[source.array(arrays, arrays) for source in self._others])


def numbers_among(args: tuple[object, ...]) -> list[tuple[int, type]] | None:
    """Which arguments are numbers, and their types; None if there are others than arrays and numbers."""
    if not all([type(x) in (ndarray, float, np.float64) for x in args]):
        return None
    return [(i, type(x)) for i, x in enumerate(args) if type(x) is not ndarray]


def arrays_of(args: tuple[object, ...], count: int, numbers: list[tuple[int, type]]) -> tuple[Any, ...] | None:
    """Arguments with arrays in the place of numbers; None if there are others than those that were served."""
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
    """The short way for calls like one with these arguments, which a tree has served; None if there is none."""
    segment = tree.root
    recording = segment.recording
    if (
        recording is None
        or not recording.results
        or not only_computes(recording)
        or len(segment.inputs) != len(tree.sources)
    ):
        return None
    sources = [tree.sources[number] for number in segment.inputs]
    count = len(args)
    numbers = numbers_among(args)
    # an argument that the plan does not read is not in its place: nobody would look at its shape
    if numbers is None or sum([type(x) is Argument for x in sources]) != count or not _in_order(sources[:count]):
        return None
    entry = segment.plan.entry(report)
    scalars = [i for i, result in enumerate(recording.results) if result.kind == "scalar"]
    return (
        None
        if entry is None
        else Direct(
            recording.spec,
            scalars,
            count,
            numbers,
            sources[count:],
            entry,
            tree.references,
            segment.plan.may_fail,
        )
    )


def only_computes(recording: Recording) -> bool:
    """Whether a recording does nothing besides giving arrays, whatever the tensors are like that it meets."""
    others = recording.states or recording.drawn or recording.effects or recording.writes or recording.backward
    return not others and all([result.kind in ("array", "scalar") for result in recording.results])


def _in_order(sources: list[Argument]) -> bool:
    return all([type(source) is Argument and source.at == i for i, source in enumerate(sources)])
