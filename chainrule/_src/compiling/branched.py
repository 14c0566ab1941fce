"""A shortcut for functions in which Python reads values: native code per segment, chosen by the values that were read.

``branched_of`` makes it from a tree. ``Compiled.__call__`` calls it for arguments that are arrays and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.tree import tree_unflatten
from chainrule._src.arrays.types import NumpyArray, TensorLike
from chainrule._src.compiling.direct import arrays_of, numbers_among, only_computes
from chainrule._src.compiling.function_trace import Argument, FunctionTrace
from chainrule._src.compiling.tree import Segment, Tree


class BranchNode:
    """A segment of a tree as native code.

    Attributes:
        code, reporting: the native code, and its argument for reporting floating-point exceptions.
        input_numbers: the numbers of its inputs after the arguments.
        outputs: the numbers of its outputs; strides: of outputs with strides other than C order's.
        read_number: the number of the value that Python reads at its end.
        branches: the following nodes, by the bytes that Python read.
        trace: the trace that ends here, or None.
    """

    __slots__ = ("branches", "code", "input_numbers", "outputs", "read_number", "reporting", "strides", "trace")

    def __init__(self, segment: Segment, entry: tuple[Any, Any], count: int) -> None:
        self.code, self.reporting = entry
        self.input_numbers = segment.inputs[count:]
        self.outputs, self.strides = segment.outputs, segment.strides
        self.read_number = -1 if segment.guard is None else segment.guard.var.number
        self.branches: dict[bytes, BranchNode] = {}
        self.trace = segment.trace


class Branched:
    """A shortcut into the traces of a tree. ``branched_of`` makes it.

    Args:
        tree: the tree.
        root: the node of its first segment.
        count, numbers: the number of arguments, and the positions and types of the numbers among them.
    """

    __slots__ = ("_count", "_numbers", "_root", "_tree", "spec")

    def __init__(self, tree: Tree, root: BranchNode, count: int, numbers: list[tuple[int, type]]) -> None:
        self.spec = None  # the structure of results depends on the branch
        self._tree = tree
        self._root = root
        self._count = count
        self._numbers = numbers

    def call(self, args: tuple[object, ...]) -> Any:
        """Return the result of the function, or None if the arguments do not fit or no branch has the value that is read."""
        arrays = arrays_of(args, self._count, self._numbers)
        values = None if arrays is None else self._tree.inputs_of(arrays, arrays)
        if arrays is None or values is None:
            return None
        node: BranchNode | None = self._root
        while node is not None:
            arrays_out = node.code((*arrays, *[values[number] for number in node.input_numbers]), node.reporting)
            if arrays_out is None:
                return None
            if node.trace is not None:
                return _as_returned_by_function(node.trace, arrays_out)
            values.update(zip(node.outputs, arrays_out, strict=True))
            for number, strides in node.strides:
                if values[number].strides != strides:
                    values[number] = with_strides(values[number], strides)
            node = node.branches.get(values[node.read_number].tobytes())
        return None

    def into(self, args: tuple[object, ...], out: Sequence[object]) -> bool:
        return False


def _as_returned_by_function(trace: FunctionTrace, arrays_out: list[NumpyArray]) -> TensorLike | tuple[TensorLike, ...]:
    """Return the outputs of a trace in the form that the function returned."""
    results = [array[()] if x.kind == "scalar" else array for x, array in zip(trace.results, arrays_out, strict=True)]
    return results[0] if trace.spec.kind is None else tree_unflatten(results, trace.spec)


def branched_of(tree: Tree, args: tuple[object, ...], report: Callable[[Iterable[str]], None]) -> Branched | None:
    """Return a shortcut into a tree for calls like one with these arguments, or None if the tree cannot have one."""
    numbers = numbers_among(args)
    if numbers is None or tree.states or tree.generators or tree.writes:
        return None
    count = len(args)
    arguments = [source.at for source in tree.sources.values() if type(source) is Argument]
    if arguments != list(range(count)):
        return None
    nodes: dict[Segment, BranchNode] = {}
    for segment in tree.segments():
        trace = segment.trace
        if trace is not None and not (trace.results and only_computes(trace)):
            continue  # ``Compiled._replay`` handles traces with effects
        entry = segment.plan.entry(report)
        if entry is not None:
            nodes[segment] = BranchNode(segment, entry, count)
    for segment, node in nodes.items():
        node.branches = {key: nodes[after] for key, after in segment.branches.items() if after in nodes}
    return Branched(tree, nodes[tree.root], count, numbers) if tree.root in nodes else None
