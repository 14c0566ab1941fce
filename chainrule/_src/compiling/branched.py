"""The short way into recordings that read values: from one piece of native code to the next, as what was read says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.tree import tree_unflatten
from chainrule._src.arrays.types import NumpyArray, TensorLike
from chainrule._src.compiling.direct import arrays_of, numbers_among, only_computes
from chainrule._src.compiling.recording import Argument, Recording
from chainrule._src.compiling.tree import Segment, Tree


class BranchNode:
    """A segment of a tree: native code, and what follows it.

    Attributes:
        code, reporting: what is called, and what it is given besides arrays.
        inner: the numbers of what it takes after the arguments.
        makes, strides, read: the numbers of what it makes, those that are wanted in other strides, and of what Python reads.
        branches: what follows, by the bytes that were read.
        recording: at the end of a function, what it came to.
    """

    __slots__ = ("branches", "code", "inner", "makes", "read", "recording", "reporting", "strides")

    def __init__(self, segment: Segment, entry: tuple[Any, Any], count: int) -> None:
        self.code, self.reporting = entry
        self.inner = segment.takes[count:]
        self.makes, self.strides = segment.makes, segment.strides
        self.read = -1 if segment.guard is None else segment.guard.var.number
        self.branches: dict[bytes, BranchNode] = {}
        self.recording = segment.recording


class Branched:
    """Calls of the recordings of a tree. ``branched_of`` says whether there is one.

    Args:
        tree: where the recordings are.
        root: where they begin.
        count, numbers: how many arguments there are, and which of them are numbers.
    """

    __slots__ = ("_count", "_numbers", "_root", "_tree", "spec")

    def __init__(self, tree: Tree, root: BranchNode, count: int, numbers: list[tuple[int, type]]) -> None:
        self.spec = None  # results have the structure of the recording that served
        self._tree = tree
        self._root = root
        self._count = count
        self._numbers = numbers

    def call(self, args: tuple[object, ...]) -> Any:
        """What the function returns; None for arguments of another kind, or where something was read for the first time."""
        arrays = arrays_of(args, self._count, self._numbers)
        values = None if arrays is None else self._tree.start(arrays, arrays)
        if arrays is None or values is None:
            return None
        node: BranchNode | None = self._root
        while node is not None:
            made = node.code((*arrays, *[values[number] for number in node.inner]), node.reporting)
            if made is None:
                return None
            if node.recording is not None:
                return _returned(node.recording, made)
            values.update(zip(node.makes, made, strict=True))
            for number, strides in node.strides:
                if values[number].strides != strides:
                    values[number] = with_strides(values[number], strides)
            node = node.branches.get(values[node.read].tobytes())
        return None

    def into(self, args: tuple[object, ...], out: Sequence[object]) -> bool:
        return False


def _returned(recording: Recording, made: list[NumpyArray]) -> TensorLike | tuple[TensorLike, ...]:
    """The arrays of a recording as its function returns them."""
    faces = [array[()] if x.face == "scalar" else array for x, array in zip(recording.results, made, strict=True)]
    return faces[0] if recording.spec.kind is None else tree_unflatten(faces, recording.spec)


def branched_of(tree: Tree, args: tuple[object, ...], report: Callable[[Iterable[str]], None]) -> Branched | None:
    """The short way for calls like one with these arguments, which a tree has served; None if there is none."""
    numbers = numbers_among(args)
    if numbers is None or tree.states or tree.generators or tree.writes:
        return None
    count = len(args)
    arguments = [source.at for source in tree.sources.values() if type(source) is Argument]
    if arguments != list(range(count)):
        return None
    nodes: dict[Segment, BranchNode] = {}
    for segment in tree.segments():
        recording = segment.recording
        if recording is not None and not (recording.results and only_computes(recording)):
            continue  # such an end is left to the long way
        entry = segment.plan.entry(report)
        if entry is not None:
            nodes[segment] = BranchNode(segment, entry, count)
    for segment, node in nodes.items():
        node.branches = {key: nodes[after] for key, after in segment.branches.items() if after in nodes}
    return Branched(tree, nodes[tree.root], count, numbers) if tree.root in nodes else None
