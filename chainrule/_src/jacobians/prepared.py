"""``prepare_jacobian``: compute the sparsity pattern once, and compile the computation of the entries.

The numbers of terms are computed by NumPy calls, so ``compile`` can trace them. The compiled function returns the entries of the
matrix and the number of the pattern that was computed during its trace. If the function reads values (a branch, an index that
depends on data), the plan has guards on them. A call with other values is traced again, and may have another pattern.
"""

from __future__ import annotations

import copy
import importlib
import itertools
import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.api.array import array_of, unfaced
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.tree import TreeSpec, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray
from chainrule._src.compiling.compiled import Compiled
from chainrule._src.compiling.recording import Captured
from chainrule._src.jacobians.assemble import EntryPattern
from chainrule._src.jacobians.compute_terms import terms_to_repeat
from chainrule._src.jacobians.layouts import entry_dtype
from chainrule._src.jacobians.result import Jacobian
from chainrule._src.jacobians.terms import Term, Variable
from chainrule._src.jacobians.trace import JacobianTrace
from chainrule._src.messages import errors
from chainrule._src.tape.modes import recording
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.arguments import as_caller_type, data_of
from chainrule._src.transforms.dense import MEMORY

ndarray = np.ndarray
LAYOUTS = ("csr", "csc", "coo", "dense", "structured")


class Structure(NamedTuple):
    """The pattern of one block (an output with respect to an input), or of the whole matrix.

    Attributes:
        indptr, indices: as in ``scipy.sparse.csr_array``.
        shape: of the matrix; ``out_shape``, ``in_shape``: of the output and the input.
    """

    indptr: NumpyArray
    indices: NumpyArray
    shape: tuple[int, int]
    out_shape: tuple[int, ...]
    in_shape: tuple[int, ...]

    def equals(self, other: Structure) -> bool:
        return (
            (self.out_shape, self.in_shape) == (other.out_shape, other.in_shape)
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
        )


class BlockPatterns(NamedTuple):
    """The result of one trace: the blocks' patterns, row by row, and the tree of the outputs."""

    blocks: list[Structure]
    outer: TreeSpec

    def equals(self, other: BlockPatterns) -> bool:
        same = self.outer == other.outer and len(self.blocks) == len(other.blocks)
        return same and all([x.equals(y) for x, y in zip(self.blocks, other.blocks, strict=True)])


class Patterns:
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
        self.makers.append([_maker(block, self.layout, self.tensors) for block in new.blocks])
        return len(self.found) - 1


class Positions:
    """Captured arrays that the function may index with, on whose content patterns depend.

    A plan has no guards on the content of captured arrays, so it is compared here.
    """

    def __init__(self) -> None:
        self._runs = -1
        self._known: list[tuple[NumpyArray, NumpyArray]] = []

    def note(self, compiled: Compiled[..., Any], runs: int) -> None:
        """Store their content; skip this if ``runs`` shows that there are no new traces."""
        if runs == self._runs:
            return
        self._runs = runs
        arrays: dict[int, NumpyArray] = {}
        for run in compiled.recordings:
            met = [source.content for source in run.sources.values() if type(source) is Captured]
            arrays.update({id(array): array for array in met if array.dtype.kind in "biu"})
        self._known = [(array, array.copy()) for array in arrays.values()]

    def hold(self) -> bool:
        """Return whether all arrays have the stored content."""
        return all([np.array_equal(array, content) for array, content in self._known])


class PreparedJacobian:
    """A Jacobian with a known pattern, returned by ``prepare_jacobian``. Calling it computes the Jacobian at a point.

    Attributes:
        patterns: number of distinct patterns so far.
        nnz: number of entries of the first pattern.
    """

    __module__ = "chainrule.jacobians"

    def __init__(
        self,
        function: Callable[..., Any],
        x: Any,
        layout: str,
        hstack: bool,
        on_change: str,
        memory: int,
    ) -> None:
        self._point, self._spec = tree_flatten(x)
        self._kinds = [(tuple(shape_of(p)), data_of(unfaced(p)).dtype) for p in self._point]
        self._tensors = any([isinstance(p, Tensor) for p in self._point])
        self._hstack = hstack
        self._on_change = on_change
        self._patterns = patterns = Patterns(layout, self._tensors)
        spec, several = self._spec, type(x) is tuple

        def entries(*leaves: AnyArray) -> tuple[AnyArray, ...]:
            """Return the number of the pattern, and the entries of each block."""
            tree = tree_unflatten(leaves, spec)
            blocks, outer, data = _computed(function, tree, several, hstack, memory)
            number = np.array([patterns.number_of(BlockPatterns(blocks, outer))])
            return array_of(wrap(number)), *[array_of(wrap(_off_tape(part, self._tensors))) for part in data]

        name = getattr(function, "__name__", "the function")
        self._compiled = Compiled(entries, f"the Jacobian of {name}")
        self._positions = Positions()
        self._entries(x)

    def __call__(self, x: Any) -> Any:
        """Compute the Jacobian at a point with the shapes and dtypes of the point of preparation.

        Raises:
            ValueError: the point has other shapes or dtypes.
            RuntimeError: the function runs other operations there, with another pattern; or the point is on the tape, or inside
                a transformation.
        """
        number, *data = self._entries(x)
        k = int(number[0])
        if k and self._on_change == "error":
            raise errors.jacobian_pattern_changed(self._nnz(0), self._nnz(k), self._reads())
        matrices = [make(part) for make, part in zip(self._patterns.makers[k], data, strict=True)]
        if self._tensors and self._patterns.layout == "dense":
            matrices = [as_caller_type(matrix, True) for matrix in matrices]
        if self._hstack:
            return matrices[0]
        outer, inner = self._patterns.found[k].outer, self._spec
        width = inner.num_leaves
        rows = [tree_unflatten(matrices[i : i + width], inner) for i in range(0, len(matrices), width)]
        return tree_unflatten(rows, outer)

    def _entries(self, x: Any) -> Any:
        """Return the number of the pattern, and the entries of each block."""
        if not self._positions.hold():
            self._compiled, self._positions = self._compiled.renewed(), Positions()
        found = self._compiled(*self._arguments(x))
        self._positions.note(self._compiled, self._patterns.runs)
        return found

    def _arguments(self, x: AnyArray | tuple[AnyArray, ...]) -> list[Any]:
        """Return the leaves of a point for the compiled function; raise ValueError for another structure, shape or dtype."""
        leaves, spec = tree_flatten(x)
        if spec != self._spec:
            raise errors.jacobian_other_point(f"a structure of {spec}", f"one of {self._spec}")
        arguments = []
        for leaf, (shape, dtype) in zip(leaves, self._kinds, strict=True):
            tensor = unfaced(leaf)
            data = data_of(tensor)
            if data.dtype != dtype or tuple(shape_of(data)) != shape:
                got = f"{data.dtype.name} of shape {tuple(shape_of(data))}"
                raise errors.jacobian_other_point(got, f"{dtype.name} of shape {shape}")
            if type(data) is not ndarray or (isinstance(tensor, Tensor) and tensor._edge is not None and recording()):
                raise errors.jacobian_prepared_inside()
            if not data.flags.c_contiguous:
                data = np.ascontiguousarray(data)
            arguments.append(wrap(data) if isinstance(leaf, Tensor) else data)
        return arguments

    # -- inspection ----------------------------------------------------------------------------------------------------

    @property
    def patterns(self) -> int:
        return len(self._patterns.found)

    @property
    def nnz(self) -> int:
        return self._nnz(0)

    def _nnz(self, number: int) -> int:
        return sum([len(block.indices) for block in self._patterns.found[number].blocks])

    @property
    def sparsity(self) -> Any:
        """The first pattern, as a SciPy sparse array of ones, for ``jac_sparsity`` (in the tree of the Jacobian)."""
        found = self._patterns.found[0]
        matrices = [_csr(block, np.ones(len(block.indices))) for block in found.blocks]
        if self._hstack:
            return matrices[0]
        width = self._spec.num_leaves
        rows = [tree_unflatten(matrices[i : i + width], self._spec) for i in range(0, len(matrices), width)]
        return tree_unflatten(rows, found.outer)

    @property
    def plan(self) -> Any:
        """The compiled plan of a call, to print."""
        return self._compiled.plan(*self._arguments(tree_unflatten(self._point, self._spec)))

    def _reads(self) -> str:
        """Return the source locations at which the function reads values."""
        guards = [guard for recording in self._compiled.recordings for guard in recording.guards]
        places = dict.fromkeys([str(errors.Where(guard.code, guard.lasti)) for guard in guards])
        return " and ".join([place for place in places if place][:3]) or "in an index or a branch"

    def __repr__(self) -> str:
        blocks = self._patterns.found[0].blocks
        sizes = ", ".join([f"{block.shape[0]} × {block.shape[1]}" for block in blocks[:4]])
        return f"<prepared Jacobian of {sizes}{', …' * (len(blocks) > 4)}: {self.nnz} entries>"


def _off_tape(x: AnyArray, tensors: bool) -> AnyArray:
    """Return the data of entries; raise if they depend on captured tensors that require grad."""
    if isinstance(x, Tensor) and x._edge is not None and not tensors and recording():
        raise errors.jacobian_of_captured("a prepared Jacobian")
    return x._raw if isinstance(x, Tensor) else x


def _computed(
    function: AnyFunction, tree: tuple[AnyArray, ...], several: bool, hstack: bool, memory: int
) -> tuple[list[Structure], TreeSpec, list[Any]]:
    """Return the blocks' patterns, the outputs' tree, and the entries of each block."""
    x = tuple(tree) if several else tree
    trace = JacobianTrace(function, x, False)
    found = terms_to_repeat(trace, function, x, api="prepare_jacobian", memory=memory)
    ms = [math.prod(y.shape) for y in trace.results]
    ns = [v.size for v in trace.variables]
    if hstack:
        rows, cols = np.cumsum([0, *ms]).tolist(), np.cumsum([0, *ns]).tolist()
        every = [(found[i][k], m, rows[i], cols[k]) for i, m in enumerate(ms) for k in range(len(ns))]
        pairs = itertools.product(trace.results, trace.variables)
        dtype = np.result_type(*[entry_dtype(terms, y, v) for (terms, *_), (y, v) in zip(every, pairs, strict=True)])
        size = (rows[-1], cols[-1])
        whole = EntryPattern(every, size)
        data = whole.data([term for terms, *_ in every for term in terms], dtype)
        return [Structure(whole.indptr, whole.indices, size, size[:1], size[1:])], trace.outer, [data]
    blocks, entries = [], []
    for y, row in zip(trace.results, found, strict=True):
        for variable, terms in zip(trace.variables, row, strict=True):
            pattern = EntryPattern.of(terms, y.shape, variable.size)
            blocks.append(Structure(pattern.indptr, pattern.indices, pattern.shape, y.shape, variable.shape))
            entries.append(pattern.data(terms, entry_dtype(terms, y, variable)))
    return blocks, trace.outer, entries


# -- results of one pattern --------------------------------------------------------------------------------------------


def _maker(block: Structure, layout: str, tensors: bool) -> Callable[[Any], Any]:
    """Return the function that makes a matrix of entries. Sparse matrices share the read-only index arrays."""
    if layout == "dense":
        return _dense_maker(block)
    if layout == "structured":
        return _structured_maker(block, tensors)
    for array in (block.indptr, block.indices):
        array.flags.writeable = False
    like = _csr(block, np.zeros(len(block.indices)))

    def csr(data: AnyArray) -> Any:
        made = copy.copy(like)
        made.data = data
        return made

    return csr if layout == "csr" else lambda data: csr(data).asformat(layout)


def _csr(block: Structure, data: AnyArray) -> Any:
    sparse = importlib.import_module("scipy.sparse")
    return sparse.csr_array((data, block.indices, block.indptr), block.shape)


def _structured_maker(block: Structure, tensors: bool) -> Callable[[Any], Any]:
    rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    cols = block.indices.astype(np.intp)[None]

    def structured(data: AnyArray) -> Any:
        term = Term(Variable(block.in_shape, data.dtype), cols, data[None], rows)
        return Jacobian([term], block.out_shape, block.in_shape, data.dtype, tensors=tensors, copy=False)

    return structured


def _dense_maker(block: Structure) -> Callable[[Any], Any]:
    m, n = block.shape
    shape = (*block.out_shape, *block.in_shape)
    places = np.repeat(np.arange(m) * n, np.diff(block.indptr)) + block.indices
    if len(places) == m * n:
        return lambda data: data.reshape(shape)

    def dense(data: AnyArray) -> AnyArray:
        made = np.zeros(m * n, data.dtype)
        made[places] = data
        return made.reshape(shape)

    return dense


def prepare_jacobian(
    function: AnyFunction,
    x: object,
    layout: str = "csr",
    *,
    hstack: bool = False,
    on_change: str = "error",
    memory: int = MEMORY,
) -> PreparedJacobian:
    """Compute the sparsity pattern of a function's Jacobian, to compute the Jacobian faster at further points.

    Args:
        function: of ``x``.
        x: a point: an array, a tensor or a number, or a tree of them; a tuple holds several arguments.
        layout: the type of results: "csr", "csc", "coo" (SciPy sparse arrays), "dense" or "structured" (a :class:`Jacobian`).
        hstack: return one matrix for all outputs and all inputs.
        on_change: the action at a point with another pattern, because the function branches or indexes on computed values:
            "error", or "record": compute the new pattern and cache it.
        memory: as for :func:`jacobian`.

    Returns:
        A function of points. Its ``sparsity`` can be passed to SciPy (``jac_sparsity``), and its ``plan`` can be printed. The
        sparse arrays that it returns share read-only index arrays: ``copy()`` a result to change its pattern.

    Raises:
        ValueError: ``layout`` or ``on_change`` is unknown.
        ImportError: SciPy is not installed, and the layout needs it.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> prepared = cr.prepare_jacobian(lambda x: np.diff(x) ** 2, np.zeros(3))
    >>> prepared(np.array([1., 2., 4.])).toarray()
    array([[-2.,  2.,  0.],
           [ 0., -4.,  4.]])
    """
    if layout not in LAYOUTS:
        raise ValueError(f"prepare_jacobian(): layout is one of {', '.join(map(repr, LAYOUTS))}, not {layout!r}")
    if layout != "dense" and find_spec("scipy") is None:
        raise errors.jacobian_needs_scipy()
    if on_change not in ("error", "record"):
        raise ValueError(f"prepare_jacobian(): on_change is 'error' or 'record', not {on_change!r}")
    return PreparedJacobian(function, x, layout, hstack, on_change, memory)
