"""``prepare_jacobian`` and ``prepare_hessian``: compute a sparsity pattern once, and compile the computation of the entries.

``chainrule`` exports both; ``scipy.derivatives`` calls them.

The numbers of terms are computed by NumPy calls, so ``compile`` can trace them. The compiled function returns the entries of the
matrix and the number of the pattern that was computed during its trace. If the function reads values (a branch, an index that
depends on data), the plan has guards on them. A call with other values is traced again, and may have another pattern.

A Hessian is the Jacobian of a gradient, whose entries are averaged with those of its transpose.
"""

from __future__ import annotations

import functools
import itertools
import math
from importlib.util import find_spec
from typing import Any

import numpy as np

from chainrule._src.api.array import array_of, unwrap_array
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.tree import TreeSpec, tree_flatten, tree_unflatten, unflatten_rows
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyDType
from chainrule._src.compiling.compiled import Compiled
from chainrule._src.jacobians.assemble import CsrMatrix, EntryPattern
from chainrule._src.jacobians.compute_terms import terms_to_repeat
from chainrule._src.jacobians.layouts import entry_dtype
from chainrule._src.jacobians.patterns import BlockPattern, BlockPatterns, CapturedIndices, PatternCache, sparse_array
from chainrule._src.jacobians.trace import JacobianTrace
from chainrule._src.messages import errors
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.arguments import as_caller_type, data_of
from chainrule._src.transforms.dense import MEMORY
from chainrule._src.transforms.grad import gradient_function

ndarray = np.ndarray
LAYOUTS = ("csr", "csc", "coo", "dense", "structured")
#: the shape and dtype of an array
Kind = tuple[tuple[int, ...], NumpyDType]


class PreparedJacobian:
    """A Jacobian or Hessian with a known pattern, returned by ``prepare_jacobian`` and ``prepare_hessian``.

    Calling it computes the matrix at a point. The call has the arguments of preparation: ``prepared(x, *args)``.

    Attributes:
        patterns: number of distinct patterns so far.
        nnz: number of entries of the first pattern.
    """

    __module__ = "chainrule.jacobians"

    def __init__(
        self,
        function: AnyFunction,
        x: Any,
        args: tuple[object, ...],
        layout: str,
        hstack: bool,
        on_change: str,
        memory: int,
        hessian: bool,
    ) -> None:
        self._what = "Hessian" if hessian else "Jacobian"
        self._point, self._spec = tree_flatten(x)
        self._args, self._args_spec = tree_flatten(args)
        self._kinds = [_kind_of(p) for p in self._point]
        self._args_kinds = [_kind_of(p) if _is_array(p) else None for p in self._args]
        self._tensors = any([isinstance(p, Tensor) for p in self._point])
        self._hstack = hstack
        self._on_change = on_change
        self._patterns = patterns = PatternCache(layout, self._tensors)
        several = type(x) is tuple
        if hessian:
            argnums = tuple(range(len(x))) if several else 0
            differentiated = gradient_function("prepare_hessian(f, x)", function, argnums)
        else:
            differentiated = function
        count, spec, args_spec = len(self._point), self._spec, self._args_spec

        def entries(*leaves: AnyArray) -> tuple[AnyArray, ...]:
            """Return the number of the pattern, and the entries of each block."""
            tree, more = tree_unflatten(leaves[:count], spec), tree_unflatten(leaves[count:], args_spec)
            bound = functools.wraps(function)(lambda *xs: differentiated(*xs, *more)) if more else differentiated
            blocks, outer, data = _computed(bound, tuple(tree) if several else tree, hstack, memory, hessian)
            number = np.array([patterns.number_of(BlockPatterns(blocks, outer))])
            return array_of(wrap(number)), *[array_of(wrap(self._off_tape(part))) for part in data]

        name = getattr(function, "__name__", "the function")
        self._compiled = Compiled(entries, f"the {self._what} of {name}")
        self._captured = CapturedIndices()
        self._entries(x, args)

    def __call__(self, x: Any, *args: Any) -> Any:
        """Compute the matrix at a point with the shapes and dtypes of the point of preparation.

        Raises:
            ValueError: the point, or an array of ``args``, has other shapes or dtypes.
            RuntimeError: the function runs other operations there, with another pattern; or an argument is on the tape, or
                inside a transformation.
        """
        number, *data = self._entries(x, args)
        k = int(number[0])
        if k and self._on_change == "error":
            raise errors.jacobian_pattern_changed(self._what, self._nnz(0), self._nnz(k), self._reads())
        matrices = [make(part) for make, part in zip(self._patterns.makers[k], data, strict=True)]
        if self._tensors and self._patterns.layout == "dense":
            matrices = [as_caller_type(matrix, True) for matrix in matrices]
        return self._as_tree(matrices, self._patterns.found[k].outer)

    def _as_tree(self, matrices: list[Any], outer: TreeSpec) -> Any:
        """Return the matrices of all blocks in the outputs' tree of the inputs' trees; with ``hstack`` the only matrix."""
        if self._hstack:
            return matrices[0]
        width = self._spec.num_leaves
        rows = [matrices[i : i + width] for i in range(0, len(matrices), width)]
        return unflatten_rows(rows, self._spec, outer)

    def _entries(self, x: Any, args: tuple[object, ...]) -> Any:
        """Return the number of the pattern, and the entries of each block."""
        if not self._captured.unchanged():
            self._compiled, self._captured = self._compiled.renewed(), CapturedIndices()
        found = self._compiled(*self._leaves(x, args))
        self._captured.store(self._compiled, self._patterns.runs)
        return found

    def _leaves(self, x: Any, args: tuple[object, ...]) -> list[Any]:
        """Return the leaves of all arguments for the compiled function; raise ValueError for other structures or arrays."""
        leaves, spec = tree_flatten(x)
        if spec != self._spec:
            raise self._other("the point", f"a structure of {spec}", f"one of {self._spec}")
        found = [self._plain(leaf, kind, "the point") for leaf, kind in zip(leaves, self._kinds, strict=True)]
        if not args and not self._args:
            return found
        leaves, spec = tree_flatten(args)
        if spec != self._args_spec:
            count, expected = len(spec.children), len(self._args_spec.children)
            if count != expected:
                raise self._other("the number of args", str(count), str(expected))
            raise self._other("args", f"a structure of {spec}", f"one of {self._args_spec}")
        for leaf, kind in zip(leaves, self._args_kinds, strict=True):
            if kind is not None:
                if not _is_array(leaf) and not isinstance(leaf, (int, float, complex, np.generic)):
                    raise self._other("an argument of args", f"of type {type(leaf).__name__}", "an array")
                found.append(self._plain(leaf, kind, "an array of args"))
            elif _is_array(leaf):
                raise self._other("an argument of args", "an array", "a number or another object")
            else:
                found.append(leaf)
        return found

    def _plain(self, leaf: Any, kind: Kind, what: str) -> Any:
        """Return an array or tensor off the tape, in C order; raise if it has another shape or dtype."""
        shape, dtype = kind
        if type(leaf) is ndarray and leaf.dtype == dtype and leaf.shape == shape and leaf.flags.c_contiguous:
            return leaf
        tensor = unwrap_array(leaf)
        data = data_of(tensor)
        if data.dtype != dtype or tuple(shape_of(data)) != shape:
            got = f"{data.dtype.name} of shape {tuple(shape_of(data))}"
            raise self._other(what, got, f"{dtype.name} of shape {shape}")
        if type(data) is not ndarray or (isinstance(tensor, Tensor) and tensor._edge is not None and is_recording()):
            raise errors.jacobian_prepared_inside(self._what, what)
        if not data.flags.c_contiguous:
            data = np.ascontiguousarray(data)
        return wrap(data) if isinstance(leaf, Tensor) else data

    def _other(self, what: str, got: str, expected: str) -> ValueError:
        return errors.jacobian_other_point(self._what, what, got, expected)

    def _off_tape(self, x: AnyArray) -> AnyArray:
        """Return the data of entries; raise if they depend on captured tensors that require grad."""
        if isinstance(x, Tensor) and x._edge is not None and not self._tensors and is_recording():
            raise errors.jacobian_of_captured(f"a prepared {self._what}")
        return x._raw if isinstance(x, Tensor) else x

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
        return self._as_tree([sparse_array(block, np.ones(len(block.indices))) for block in found.blocks], found.outer)

    @property
    def plan(self) -> Any:
        """The compiled plan of a call, to print."""
        x, args = tree_unflatten(self._point, self._spec), tree_unflatten(self._args, self._args_spec)
        return self._compiled.plan(*self._leaves(x, args))

    def _reads(self) -> str:
        """Return the source locations at which the function reads values."""
        guards = [guard for recording in self._compiled.recordings for guard in recording.guards]
        locations = dict.fromkeys([str(errors.Where(guard.code, guard.lasti)) for guard in guards])
        return " and ".join([location for location in locations if location][:3]) or "in an index or a branch"

    def __repr__(self) -> str:
        blocks = self._patterns.found[0].blocks
        sizes = ", ".join([f"{block.shape[0]} × {block.shape[1]}" for block in blocks[:4]])
        return f"<prepared {self._what} of {sizes}{', …' * (len(blocks) > 4)}: {self.nnz} entries>"


def _is_array(x: object) -> bool:
    """Return whether x is an array or a tensor, not a number."""
    return isinstance(unwrap_array(x), (Tensor, ArrayLike, ndarray)) or is_foreign(type(x))


def _kind_of(x: object) -> Kind:
    data = data_of(unwrap_array(x))
    return tuple(shape_of(data)), data.dtype


def _computed(
    function: AnyFunction, x: Any, hstack: bool, memory: int, hessian: bool
) -> tuple[list[BlockPattern], TreeSpec, list[Any]]:
    """Return the blocks' patterns, the outputs' tree, and the entries of each block."""
    trace = JacobianTrace(function, x, False, "hessian" if hessian else "jacobian")
    found = terms_to_repeat(trace, api="prepare_hessian" if hessian else "prepare_jacobian", memory=memory)
    pairs = list(itertools.product(trace.results, trace.variables))
    terms_of_pairs = [terms for row in found for terms in row]
    dtypes = [entry_dtype(terms, y, v) for terms, (y, v) in zip(terms_of_pairs, pairs, strict=True)]
    if hstack:
        ms, ns = [math.prod(y.shape) for y in trace.results], [v.size for v in trace.variables]
        rows, cols = np.cumsum([0, *ms]).tolist(), np.cumsum([0, *ns]).tolist()
        every = [(found[i][k], m, rows[i], cols[k]) for i, m in enumerate(ms) for k in range(len(ns))]
        size = (rows[-1], cols[-1])
        all_terms = [term for terms in terms_of_pairs for term in terms]
        grid = [[EntryPattern(every, size).matrix(all_terms, np.result_type(*dtypes))]]
        shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [(size[:1], size[1:])]
    else:
        matrices = [
            EntryPattern.of(terms, y.shape, v.size).matrix(terms, dtype)
            for terms, (y, v), dtype in zip(terms_of_pairs, pairs, dtypes, strict=True)
        ]
        width = len(trace.variables)
        grid = [matrices[i : i + width] for i in range(0, len(matrices), width)]
        shapes = [(tuple(y.shape), v.shape) for y, v in pairs]
    if hessian:
        _symmetrize(grid)
    blocks = [(matrix, hessian and i == j) for i, row in enumerate(grid) for j, matrix in enumerate(row)]
    structures = [
        BlockPattern(matrix.indptr, matrix.indices, matrix.shape, *shape, symmetric)
        for (matrix, symmetric), shape in zip(blocks, shapes, strict=True)
    ]
    return structures, trace.outer, [matrix.data for matrix, _ in blocks]


def _symmetrize(grid: list[list[CsrMatrix]]) -> None:
    """Replace the blocks of a Hessian by those of ``(H + Hᵀ) / 2``."""
    for i, row in enumerate(grid):
        row[i] = row[i].symmetrized()
        for j in range(i + 1, len(row)):
            row[j] = row[j].averaged(grid[j][i].transposed())
            grid[j][i] = row[j].transposed()


def prepare_jacobian(
    function: AnyFunction,
    x: object,
    layout: str = "csr",
    *,
    args: object = (),
    hstack: bool = False,
    on_change: str = "error",
    memory: int = MEMORY,
) -> PreparedJacobian:
    """Compute the sparsity pattern of a function's Jacobian, to compute the Jacobian faster at further points.

    Args:
        function: of ``x``, or of ``x`` and further arguments.
        x: a point: an array, a tensor or a number, or a tree of them; a tuple holds several arguments.
        layout: the type of results: "csr", "csc", "coo" (SciPy sparse arrays), "dense" or "structured" (a :class:`Jacobian`).
        args: further arguments of ``function``, which the Jacobian treats as constants: a tuple, or a single argument. Each call
            passes its own values, in arrays of the same shapes and dtypes.
        hstack: return one matrix for all outputs and all inputs.
        on_change: the action at a point with another pattern, because the function branches or indexes on computed values:
            "error", or "record": compute the new pattern and cache it.
        memory: as for :func:`jacobian`.

    Returns:
        A function of points, and of further arguments: ``prepared(x, *args)``. Its ``sparsity`` can be passed to SciPy
        (``jac_sparsity``), and its ``plan`` can be printed. The sparse arrays that it returns share read-only index arrays:
        ``copy()`` a result to change its pattern.

    Raises:
        ValueError: ``layout`` or ``on_change`` is unknown.
        ImportError: SciPy is not installed, and the layout needs it.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> prepared = cr.prepare_jacobian(lambda x: np.diff(x) ** 2, np.zeros(3))
    >>> prepared(np.array([1., 2., 4.])).toarray()
    array([[-2.,  2.,  0.],
           [ 0., -4.,  4.]])
    >>> scaled = cr.prepare_jacobian(lambda x, c: c * x ** 2, np.zeros(2), args=(np.zeros(2),))
    >>> scaled(np.array([1., 2.]), np.array([3., 5.])).diagonal()
    array([ 6., 20.])
    """
    return _prepare("prepare_jacobian", function, x, layout, args, hstack, on_change, memory)


def prepare_hessian(
    function: AnyFunction,
    x: object,
    layout: str = "csr",
    *,
    args: object = (),
    hstack: bool = False,
    on_change: str = "error",
    memory: int = MEMORY,
) -> PreparedJacobian:
    """Compute the sparsity pattern of a scalar function's Hessian, to compute the Hessian faster at further points.

    For the Hessian of a Lagrangian, pass the multipliers in ``args``: they can change in each call.

    Args:
        function: of ``x``, or of ``x`` and further arguments; it returns a scalar.
        x, layout, args, hstack, on_change, memory: as for :func:`prepare_jacobian`.

    Returns:
        A function of points, and of further arguments: ``prepared(x, *args)``, as :func:`prepare_jacobian` returns it. The
        matrices are exactly symmetric, with the same entries as those of :func:`hessian`.

    Raises:
        RuntimeError: the function's result is not a scalar.
        ValueError, ImportError: as for :func:`prepare_jacobian`.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> def lagrangian(x, multipliers):
    ...     return np.sum(x ** 4) + np.sum(multipliers * x[1:] * x[:-1])
    >>> H = cr.prepare_hessian(lagrangian, np.zeros(3), args=np.zeros(2))
    >>> H(np.array([1., 2., 3.]), np.array([5., 7.])).toarray()
    array([[ 12.,   5.,   0.],
           [  5.,  48.,   7.],
           [  0.,   7., 108.]])
    """
    return _prepare("prepare_hessian", function, x, layout, args, hstack, on_change, memory)


def _prepare(
    api: str, function: AnyFunction, x: object, layout: str, args: object, hstack: bool, on_change: str, memory: int
) -> PreparedJacobian:
    if layout not in LAYOUTS:
        raise errors.jacobian_choice(api, "layout", layout, LAYOUTS)
    if layout != "dense" and find_spec("scipy") is None:
        raise errors.jacobian_needs_scipy()
    if on_change not in ("error", "record"):
        raise ValueError(f"{api}(): on_change is 'error' or 'record', not {on_change!r}")
    further = args if type(args) is tuple else (args,)
    return PreparedJacobian(function, x, further, layout, hstack, on_change, memory, api == "prepare_hessian")
