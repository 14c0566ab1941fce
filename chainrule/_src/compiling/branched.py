"""A shortcut for functions in which Python reads values: it runs the native code of a tree's segments.

Each value that Python reads selects the next segment. ``branched_of`` makes a ``Branched`` from all trees of a signature.
``Compiled.__call__`` calls it for arguments that are arrays and numbers.
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

#: the maximum number of sequences of read values for which the trees are cached
MAX_CACHED_READS = 512


class BranchNode:
    """A segment of a tree as native code.

    Attributes:
        code, reporting: the native code, and its argument for reporting floating-point exceptions.
        input_numbers: the numbers of its inputs after the arguments.
        outputs: the numbers of its outputs; strides: the strides of outputs that are not in C order.
        checks: the values that the code compares with the recorded ones.
        read_number: the number of the value that Python reads at its end.
        branches: the next nodes, by the bytes of the value that Python reads.
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


class NativeTree:
    """The native code of a tree. ``native_tree_of`` makes it."""

    __slots__ = ("_root", "tree")

    def __init__(self, tree: Tree, root: BranchNode) -> None:
        self.tree = tree
        self._root = root

    def run(self, arrays: tuple[Any, ...]) -> tuple[Any, list[bytes | None] | None]:
        """Run the segments on the path of the values that Python reads.

        Returns:
            (result of the function, None);
            (None, bytes of the values that Python has read) if there is no branch for the last of these values, or (None, []) if a
            guard does not hold: another tree may hold then;
            (None, None) if native code refused the arrays or failed.
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
    """A shortcut into all trees of a signature. ``branched_of`` makes it.

    Args:
        trees: the trees; the first one is tried first.
        count, numbers: the number of arguments, and the positions and types of the numbers among them.
    """

    __slots__ = ("_by_reads", "_count", "_first", "_last", "_numbers", "_trees", "spec")

    def __init__(self, trees: list[NativeTree], count: int, numbers: list[tuple[int, type]]) -> None:
        self.spec = None  # the structure of results depends on the branch
        self._trees = trees
        self._last = self._first = trees[0]
        self._by_reads: dict[tuple[bytes | None, ...], list[NativeTree]] = {}
        self._count = count
        self._numbers = numbers

    def call(self, args: tuple[object, ...]) -> Any:
        """Return the result of the function; None if the arguments do not fit, or no tree has a branch for a value that is read."""
        arrays = arrays_of(args, self._count, self._numbers)
        if arrays is None:
            return None
        native_tree: NativeTree | None = self._first
        tried: list[NativeTree] = []
        while native_tree is not None:
            result, reads = native_tree.run(arrays)
            if result is not None:
                if tried or native_tree is not self._last:
                    # The next call tries this tree first if the last two calls ended in it, else the tree with the longest trace.
                    self._first = native_tree if native_tree is self._last else self._trees_for([])[0]
                    self._last = native_tree
                return result
            if reads is None:
                return None
            tried.append(native_tree)
            native_tree = next((other for other in self._trees_for(reads) if other not in tried), None)
        return None

    def _trees_for(self, reads: list[bytes | None]) -> list[NativeTree]:
        """Return the trees with a trace that begins with these reads, in the order of decreasing lengths of their longest traces.

        The run of a trace ends at the first value that differs. The longest trace therefore gives the most values for the next choice.
        """
        key = tuple(reads)
        found = self._by_reads.get(key)
        if found is None:
            if len(self._by_reads) >= MAX_CACHED_READS:
                self._by_reads.clear()
            lengths = {native_tree: native_tree.tree.reads_beginning_with(reads) for native_tree in self._trees}
            found = sorted(
                [native_tree for native_tree in self._trees if lengths[native_tree]], key=lambda each: -lengths[each]
            )
            self._by_reads[key] = found
        return found

    def into(self, args: tuple[object, ...], out: Sequence[object]) -> bool:
        """Return False: this shortcut cannot write into ``out``."""
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
            tree.shortcut = native_tree_of(tree, len(args), report_of(tree)) or False
    found = [tree.shortcut for tree in trees if tree.shortcut]
    return Branched(found, len(args), numbers) if found else None


def native_tree_of(tree: Tree, count: int, report: Callable[[Iterable[str]], None]) -> NativeTree | None:
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
    return NativeTree(tree, nodes[tree.root]) if tree.root in nodes else None
