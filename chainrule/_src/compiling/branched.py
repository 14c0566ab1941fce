"""A shortcut for functions in which Python reads values: native code per segment, chosen by the values that were read.

``branched_of`` makes it from the trees of a signature. ``Compiled.__call__`` calls it for arguments that are arrays and numbers.
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
from chainrule._src.compiling.value_checks import reads_up_to

#: the maximum number of sequences of values for which the tree is remembered
MOST = 512


class BranchNode:
    """A segment of a tree as native code.

    Attributes:
        code, reporting: the native code, and its argument for reporting floating-point exceptions.
        input_numbers: the numbers of its inputs after the arguments.
        outputs: the numbers of its outputs; strides: of outputs with strides other than C order's.
        checks: the values that the code compares with the recorded ones.
        read_number: the number of the value that Python reads at its end.
        branches: the following nodes, by the bytes that Python read.
        trace: the trace that ends here, or None.
    """

    __slots__ = (
        "branches",
        "checks",
        "code",
        "input_numbers",
        "outputs",
        "read_number",
        "reporting",
        "strides",
        "trace",
    )

    def __init__(self, segment: Segment, entry: tuple[Any, Any], count: int) -> None:
        self.code, self.reporting = entry
        self.input_numbers = segment.inputs[count:]
        self.outputs, self.strides = segment.outputs, segment.strides
        self.checks = segment.checks
        self.read_number = -1 if segment.guard is None else segment.guard.var.number
        self.branches: dict[bytes, BranchNode] = {}
        self.trace = segment.trace


class BranchedTree:
    """The segments of a tree as native code. ``branched_tree_of`` makes it."""

    __slots__ = ("_root", "tree")

    def __init__(self, tree: Tree, root: BranchNode) -> None:
        self.tree = tree
        self._root = root

    def run(self, arrays: tuple[Any, ...]) -> tuple[Any, list[bytes | None] | None]:
        """Return the result of the function for these arguments, and None.

        If it is None, return the bytes of the values that Python has read up to one without a branch (none if a guard fails), or
        None if the arrays do not fit.
        """
        values = self.tree.inputs_of(arrays, arrays)
        if values is None:
            return None, []
        reads: list[bytes | None] = []
        node: BranchNode | None = self._root
        while node is not None:
            arrays_out = node.code((*arrays, *[values[number] for number in node.input_numbers]), node.reporting)
            if type(arrays_out) is tuple:  # a check failed
                return None, reads_up_to(reads, node.checks, *arrays_out)
            if arrays_out is None:
                return None, None
            if node.trace is not None:
                return _as_returned_by_function(node.trace, arrays_out), None
            values.update(zip(node.outputs, arrays_out, strict=True))
            for number, strides in node.strides:
                if values[number].strides != strides:
                    values[number] = with_strides(values[number], strides)
            key = values[node.read_number].tobytes()
            if node.checks:
                reads += [check.content for check in node.checks]
            reads.append(key)
            node = node.branches.get(key)
        return None, reads


class Branched:
    """A shortcut into the traces of the trees of a signature. ``branched_of`` makes it.

    Args:
        trees: the trees; the first one is tried first.
        count, numbers: the number of arguments, and the positions and types of the numbers among them.
    """

    __slots__ = ("_by_reads", "_count", "_first", "_last", "_numbers", "_trees", "spec")

    def __init__(self, trees: list[BranchedTree], count: int, numbers: list[tuple[int, type]]) -> None:
        self.spec = None  # the structure of results depends on the branch
        self._trees = trees
        self._last = self._first = trees[0]
        self._by_reads: dict[tuple[bytes | None, ...], list[BranchedTree]] = {}
        self._count = count
        self._numbers = numbers

    def call(self, args: tuple[object, ...]) -> Any:
        """Return the result of the function, or None if the arguments do not fit or no branch has the value that is read."""
        arrays = arrays_of(args, self._count, self._numbers)
        if arrays is None:
            return None
        branched: BranchedTree | None = self._first
        tried: list[BranchedTree] = []
        while branched is not None:
            result, reads = branched.run(arrays)
            if result is not None:
                if (
                    tried or branched is not self._last
                ):  # the longest trace, unless two calls in a row take the same path
                    self._first = branched if branched is self._last else self._trees_for([])[0]
                    self._last = branched
                return result
            if reads is None:
                return None
            tried.append(branched)
            branched = next((other for other in self._trees_for(reads) if other not in tried), None)
        return None

    def _trees_for(self, reads: list[bytes | None]) -> list[BranchedTree]:
        """Return the trees with a trace in which Python reads these values first, the one with the longest trace first.

        A run of the longest trace ends at the next value that differs, and then all values up to it are known.
        """
        key = tuple(reads)
        found = self._by_reads.get(key)
        if found is None:
            if len(self._by_reads) >= MOST:
                self._by_reads.clear()
            lengths = {branched: branched.tree.reads_beginning_with(reads) for branched in self._trees}
            found = sorted([branched for branched in self._trees if lengths[branched]], key=lambda each: -lengths[each])
            self._by_reads[key] = found
        return found

    def into(self, args: tuple[object, ...], out: Sequence[object]) -> bool:
        return False


def _as_returned_by_function(trace: FunctionTrace, arrays_out: list[NumpyArray]) -> TensorLike | tuple[TensorLike, ...]:
    """Return the outputs of a trace in the form that the function returned."""
    results = [array[()] if x.kind == "scalar" else array for x, array in zip(trace.results, arrays_out, strict=True)]
    return results[0] if trace.spec.kind is None else tree_unflatten(results, trace.spec)


def branched_of(
    trees: list[Tree], args: tuple[object, ...], report_of: Callable[[Tree], Callable[[Iterable[str]], None]]
) -> Branched | None:
    """Return a shortcut into trees for calls like one with these arguments, or None if none of the trees can have one.

    Args:
        report_of: returns the function that reports the floating-point exceptions of a tree.
    """
    numbers = numbers_among(args)
    if numbers is None:
        return None
    for tree in trees:
        if tree.shortcut is None:
            tree.shortcut = branched_tree_of(tree, len(args), report_of(tree)) or False
    found = [tree.shortcut for tree in trees if tree.shortcut]
    return Branched(found, len(args), numbers) if found else None


def branched_tree_of(tree: Tree, count: int, report: Callable[[Iterable[str]], None]) -> BranchedTree | None:
    """Return the segments of a tree as native code, or None if it has effects or its arguments are not arrays and numbers."""
    if tree.states or tree.generators or tree.writes:
        return None
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
    return BranchedTree(tree, nodes[tree.root]) if tree.root in nodes else None
