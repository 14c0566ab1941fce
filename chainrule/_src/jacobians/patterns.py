"""The patterns of a prepared Jacobian, and the functions that make matrices of its entries.

``prepared`` computes the entries of each block with a compiled function. Each pattern has one function per block, which
returns the entries in the layout that the user chose.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.tree import TreeSpec
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.compiling.compiled import Compiled
from chainrule._src.compiling.function_trace import Captured
from chainrule._src.jacobians.result import Jacobian
from chainrule._src.jacobians.terms import Term, Variable


class BlockPattern(NamedTuple):
    """The pattern of one block (an output with respect to an input), or of the whole matrix.

    Attributes:
        indptr, indices: as in ``scipy.sparse.csr_array``.
        shape: of the matrix; ``out_shape``, ``in_shape``: of the output and the input.
        symmetric: whether the block is a Hessian's diagonal block.
    """

    indptr: NumpyArray
    indices: NumpyArray
    shape: tuple[int, int]
    out_shape: tuple[int, ...]
    in_shape: tuple[int, ...]
    symmetric: bool = False

    def equals(self, other: BlockPattern) -> bool:
        return (
            (self.out_shape, self.in_shape) == (other.out_shape, other.in_shape)
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
        )


class BlockPatterns(NamedTuple):
    """The result of one trace: the blocks' patterns, row by row, and the tree of the outputs."""

    blocks: list[BlockPattern]
    outer: TreeSpec

    def equals(self, other: BlockPatterns) -> bool:
        same = self.outer == other.outer and len(self.blocks) == len(other.blocks)
        return same and all([x.equals(y) for x, y in zip(self.blocks, other.blocks, strict=True)])


class PatternCache:
    """The distinct patterns so far, and the functions that make results with each of them.

    Attributes:
        runs: how often the function was traced.
    """

    def __init__(self, layout: str, tensors: bool) -> None:
        self.layout = layout
        self.tensors = tensors
        self.runs = 0
        self.found: list[BlockPatterns] = []
        self.makers: list[list[Callable[[Any], Any]]] = []

    def number_of(self, new: BlockPatterns) -> int:
        """Return the number of a pattern; add it if it is new."""
        self.runs += 1
        for number, known in enumerate(self.found):
            if known.equals(new):
                return number
        self.found.append(new)
        self.makers.append([make_maker(block, self.layout, self.tensors) for block in new.blocks])
        return len(self.found) - 1


class CapturedIndices:
    """Captured arrays that the function may index with, on whose content patterns depend.

    A plan has no guards on the content of captured arrays, so it is compared here.
    """

    def __init__(self) -> None:
        self._runs = -1
        self._known: list[tuple[NumpyArray, NumpyArray]] = []

    def store(self, compiled: Compiled[..., Any], runs: int) -> None:
        """Store the content of the captured arrays; skip this if ``runs`` shows that there are no new traces."""
        if runs == self._runs:
            return
        self._runs = runs
        arrays: dict[int, NumpyArray] = {}
        for run in compiled.recordings:
            met = [source.content for source in run.sources.values() if type(source) is Captured]
            arrays.update({id(array): array for array in met if array.dtype.kind in "biu"})
        self._known = [(array, array.copy()) for array in arrays.values()]

    def unchanged(self) -> bool:
        """Return whether all arrays have the stored content."""
        return all([np.array_equal(array, content) for array, content in self._known])


def make_maker(block: BlockPattern, layout: str, tensors: bool) -> Callable[[Any], Any]:
    """Return the function that makes a matrix of entries. Sparse matrices share the read-only index arrays."""
    if layout == "dense":
        return _dense_maker(block)
    if layout == "structured":
        return _structured_maker(block, tensors)
    for array in (block.indptr, block.indices):
        array.flags.writeable = False
    like = sparse_array(block, np.zeros(len(block.indices)))

    def csr(data: AnyArray) -> Any:
        made = copy.copy(like)
        made.data = data
        return made

    return csr if layout == "csr" else lambda data: csr(data).asformat(layout)


def sparse_array(block: BlockPattern, data: AnyArray) -> Any:
    """Return a ``scipy.sparse.csr_array`` that shares the index arrays of the pattern."""
    sparse = importlib.import_module("scipy.sparse")
    return sparse.csr_array((data, block.indices, block.indptr), block.shape)


def _structured_maker(block: BlockPattern, tensors: bool) -> Callable[[Any], Any]:
    rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    cols = block.indices.astype(np.intp)[None]

    def structured(data: AnyArray) -> Any:
        term = Term(Variable(block.in_shape, data.dtype), cols, data[None], rows)
        found = Jacobian([term], block.out_shape, block.in_shape, data.dtype, tensors=tensors, copy=False)
        found.symmetric = block.symmetric  # the data is
        return found

    return structured


def _dense_maker(block: BlockPattern) -> Callable[[Any], Any]:
    m, n = block.shape
    shape = (*block.out_shape, *block.in_shape)
    positions = np.repeat(np.arange(m) * n, np.diff(block.indptr)) + block.indices
    if len(positions) == m * n:
        return lambda data: data.reshape(shape)

    def dense(data: AnyArray) -> AnyArray:
        made = np.zeros(m * n, data.dtype)
        made[positions] = data
        return made.reshape(shape)

    return dense
