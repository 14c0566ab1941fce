"""``Jacobian``: the result of ``jacobian(f, x, layout="structured")``.

It stores terms, and computes with the simplest equivalent form: blocks if the matrix is block diagonal (often detected by strides
alone), otherwise a CSR matrix. Both forms are computed on first use and cached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import DTypeLike, NumpyDType, Shape, TensorLike
from chainrule._src.jacobians import assemble, solve, spy
from chainrule._src.jacobians.assemble import CsrMatrix, KnownPatterns, has_plain_vals, pattern_from
from chainrule._src.jacobians.blocks import Blocks, blocks_of_sparse, blocks_of_terms
from chainrule._src.jacobians.copies import copy_vals, decode_term, encode_columns, with_variable
from chainrule._src.jacobians.matmul import multiply_by_dense, multiply_sparse, multiply_transpose_by_dense
from chainrule._src.jacobians.operands import as_operand, match_shape
from chainrule._src.jacobians.ordering import TermBlock
from chainrule._src.jacobians.terms import Term, Variable
from chainrule._src.messages import errors
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.protocol import ArrayLike, strip_derivatives
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.arguments import as_caller_type
from chainrule._src.transforms.dense import MEMORY, check_size

ndarray = np.ndarray
_UNKNOWN: Any = object()
_EXPLICITLY = "J.to_scipy() returns only the entries; J.to_dense() makes the dense array regardless"


class Jacobian:
    """The derivative of y with respect to x, as a structured matrix.

    It has a row for each element of y and a column for each element of x. ``jacobian(f, x, layout="structured")`` returns it.

    Attributes:
        shape: ``(*y.shape, *x.shape)``; ``out_shape`` and ``in_shape`` are its parts.
        matrix_shape: ``(m, n)``, the numbers of elements.
        dtype: NumPy's dtype of the entries.
        terms: its summands.
        symmetric: whether it is a Hessian, which is exactly symmetric.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> J = cr.jacobian(lambda x: np.diff(x) ** 2, np.array([1., 2., 4., 7.]), layout="structured")
    >>> J
    <Jacobian (3,) by (4,): terms, 6 of 12 entries, float64>
    >>> J @ np.array([1., 1., 0., 0.])
    array([ 0., -4.,  0.])
    >>> J.to_dense()
    array([[-2.,  2.,  0.,  0.],
           [ 0., -4.,  4.,  0.],
           [ 0.,  0., -6.,  6.]])
    """

    __module__ = "chainrule.jacobians"
    __slots__ = (
        "_blocks",
        "_found_blocks",
        "_known",
        "_sparse",
        "dtype",
        "in_shape",
        "made_by",
        "out_shape",
        "symmetric",
        "tensors",
        "terms",
    )
    __array_ufunc__ = None  # so that ``array @ J`` calls __rmatmul__

    def __init__(
        self,
        terms: Sequence[Term],
        out_shape: Shape,
        in_shape: Shape,
        dtype: DTypeLike = None,
        symmetric: bool = False,
        tensors: bool = False,
        copy: bool = True,
        known: tuple[KnownPatterns | None, object] = (None, None),
    ) -> None:
        """Make a Jacobian from terms.

        Args:
            terms: with respect to one variable of shape ``in_shape``.
            out_shape: the shape of the differentiated value.
            dtype: of the entries; by default, the promoted dtype of the numbers.
            symmetric: make it exactly symmetric; the terms are symmetric up to rounding.
            tensors: whether results are tensors, or arrays.
            copy: whether to copy the numbers, which may be views of the program's arrays.
            known: patterns of Jacobians with the same rows and columns, and the key of this one.
        """
        self._known = known
        self.out_shape = tuple(out_shape)
        self.in_shape = tuple(in_shape)
        self.terms = (
            [Term(term.source, term.cols, copy_vals(term.vals), term.rows) for term in terms] if copy else list(terms)
        )
        self.dtype: NumpyDType = np.dtype(assemble.dtype_of_terms(self.terms) if dtype is None else dtype)
        self.tensors = tensors
        self.symmetric = symmetric
        self.made_by: Any = None
        self._blocks: Any = _UNKNOWN  # by strides
        self._found_blocks: Any = _UNKNOWN  # by entries
        self._sparse: CsrMatrix | None = None
        if symmetric:
            self._symmetrize()

    @classmethod
    def stacked(
        cls,
        blocks: Sequence[TermBlock],
        shape: tuple[int, int],
        dtype: DTypeLike,
        symmetric: bool = False,
        tensors: bool = False,
        patterns: KnownPatterns | None = None,
    ) -> Jacobian:
        """Make one matrix for several outputs and inputs.

        Args:
            blocks: for each block its terms, its number of rows, its first row and its first column.
            shape: the number of elements of all outputs, and of all inputs.
            patterns: the patterns of Jacobians with the same rows and columns.
        """
        matrix = pattern_from(patterns, "stacked", blocks, shape).matrix(
            [term for terms, *_ in blocks for term in terms], dtype
        )
        return cls._of_sparse(matrix, shape[:1], shape[1:], tensors, symmetric)

    @classmethod
    def _of_sparse(
        cls, matrix: CsrMatrix, out_shape: Shape, in_shape: Shape, tensors: bool, symmetric: bool = False
    ) -> Jacobian:
        matrix = matrix.symmetrized() if symmetric else matrix
        dtype = dtype_of(matrix.data)
        found = cls([matrix.term(Variable(in_shape, dtype))], out_shape, in_shape, dtype, tensors=tensors, copy=False)
        found._sparse, found.symmetric = matrix, symmetric
        return found

    @classmethod
    def _of_blocks(cls, blocks: Blocks, out_shape: Shape, in_shape: Shape, tensors: bool) -> Jacobian:
        dtype = dtype_of(blocks.vals)
        term = blocks.term(Variable(in_shape, dtype), out_shape)
        found = cls([term], out_shape, in_shape, dtype, tensors=tensors, copy=False)
        found._blocks = found._found_blocks = blocks
        return found

    def _symmetrize(self) -> None:
        """Replace the terms by those of ``(H + Hᵀ) / 2``."""
        m, n = self.matrix_shape
        if self.out_shape != self.in_shape:
            raise ValueError(f"a Hessian needs equal shapes, not {self.out_shape} and {self.in_shape}")
        blocks = self._blocks_by_strides()
        if blocks is not None and blocks.diagonal:
            return
        variable = Variable(self.in_shape, self.dtype)
        if blocks is not None and blocks.dense:
            H = np.reshape(blocks.matrix(), (1, m, n))
            order = np.arange(n)[None]
            self._blocks = Blocks((H + np.swapaxes(H, 1, 2)) / 2, order, order, (m, n))
            self.terms = [self._blocks.term(variable, self.out_shape)]
        else:
            matrix = self._entries().symmetrized()
            self.terms = [matrix.term(variable)]
            self._sparse, self._blocks = matrix, _UNKNOWN
        self._known = (None, None)  # of the terms before

    # -- structure ----------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self.out_shape + self.in_shape

    @property
    def matrix_shape(self) -> tuple[int, int]:
        return math.prod(self.out_shape), math.prod(self.in_shape)

    @property
    def kind(self) -> str:
        """The structure of the matrix.

        "zero"; "identity"; "diagonal"; "blocks" (block diagonal after a permutation of rows and columns, with blocks of equal
        size, see ``blocks``); "dense"; "csr" (rows of entries, such as products of structured factors); or "terms".
        """
        if not any([term.cols.size for term in self.terms]):
            return "zero"
        blocks = self._any_blocks()
        if blocks is None:
            return "csr" if all([t.rows is not None and t.slots == 1 for t in self.terms]) else "terms"
        if blocks.diagonal:
            vals = [term.vals for term in self.terms]
            return "identity" if len(vals) == 1 and not shape_of(vals[0]) and _is_one(vals[0]) else "diagonal"
        return "dense" if blocks.dense else "blocks"

    @property
    def nnz(self) -> int:
        """The number of entries: of elements that can be nonzero, even if they are zero at this point."""
        blocks = self._blocks_by_strides()
        return self._entries().nnz if blocks is None else blocks.size

    @property
    def blocks(self) -> Any:
        """The read-only blocks ``(k, p, q)`` of a block diagonal matrix (a dense matrix is one block), else None."""
        blocks = self._any_blocks()
        if blocks is None:
            return None
        vals = blocks.vals
        if type(vals) is ndarray:
            vals = vals.view()
            vals.flags.writeable = False
        return self._given(vals)

    @property
    def block_rows(self) -> Any:
        """For each block its matrix rows, ``(k, p)``; None if there are no blocks."""
        blocks = self._any_blocks()
        return None if blocks is None else blocks.rows.copy()

    @property
    def block_cols(self) -> Any:
        """For each block its matrix columns, ``(k, q)``; None if there are no blocks."""
        blocks = self._any_blocks()
        return None if blocks is None else blocks.cols.copy()

    @property
    def bandwidth(self) -> tuple[int, int]:
        """The number of diagonals with entries below and above the main diagonal."""
        system = solve.System(self._entries(), self.out_shape, self.in_shape)
        return system.below, system.above

    def _blocks_by_strides(self) -> Blocks | None:
        if self._blocks is _UNKNOWN:
            self._blocks = blocks_of_terms(self.terms, self.out_shape, self.matrix_shape[1], self.dtype)
        return self._blocks

    def _any_blocks(self) -> Blocks | None:
        blocks = self._blocks_by_strides()
        if blocks is None:
            if self._found_blocks is _UNKNOWN:
                self._found_blocks = blocks_of_sparse(self._entries())
            blocks = self._found_blocks
        return blocks

    def _entries(self) -> CsrMatrix:
        if self._sparse is None:
            shape = self.matrix_shape
            pattern = pattern_from(*self._known, [(self.terms, shape[0], 0, 0)], shape)
            self._sparse = pattern.matrix(self.terms, self.dtype)
        return self._sparse

    def _given(self, x: object, like: object = None) -> Any:
        """Convert a result to the caller's type: a tensor, or an array."""
        return as_caller_type(x, self.tensors or isinstance(like, Tensor))

    # -- conversions --------------------------------------------------------------------------------------------------

    def to_dense(self) -> Any:
        """Return the Jacobian of shape ``(*y.shape, *x.shape)`` as a new array or tensor."""
        matrix = self._sparse
        if matrix is not None and matrix.nnz == sum([term.cols.size for term in self.terms]):  # no duplicate entries
            return self._given(np.reshape(matrix.dense(), self.shape))
        return self._given(assemble.dense_of_terms(self.terms, self.out_shape, self.in_shape, self.dtype))

    def to_scipy(self, format: str = "csr", copy: bool = True) -> Any:
        """Return the matrix as a SciPy sparse array of shape ``matrix_shape``: only numbers, without a history.

        Args:
            format: "csr", "csc", "coo", "bsr", "dia", "dok" or "lil".
            copy: whether to copy the entries; otherwise, they may share memory with the Jacobian.

        Raises:
            RuntimeError: the entries depend on an array of a surrounding function that is being differentiated.
            TypeError: the entries belong to a transformation, such as ``vmap``.
            ImportError: SciPy is not installed.
        """
        matrix = self._entries()
        data = matrix.data
        if isinstance(data, Tensor):
            if data._edge is not None and not self.tensors and is_recording():
                raise errors.jacobian_of_captured("a SciPy array")
            data, copy = data._raw, True
        if type(data) is not ndarray:
            if trace_hooks.is_tracing():
                raise errors.jacobian_compiled("prepare_hessian" if self.symmetric else "prepare_jacobian")
            raise errors.jacobian_inside("to_scipy()")
        try:
            from scipy import sparse
        except ImportError:
            raise errors.jacobian_needs_scipy() from None
        indices, indptr = (x if x.flags.writeable else x.copy() for x in (matrix.indices, matrix.indptr))
        found = sparse.csr_array((data, indices, indptr), shape=matrix.shape, copy=copy)
        found.has_canonical_format = True
        return found.asformat(format)

    def detach(self) -> Jacobian:
        """Return a Jacobian with the same numbers, off the tape."""
        if has_plain_vals(self.terms):
            return self
        terms = [
            Term(t.source, t.cols, strip_derivatives(t.vals) if _recorded(t.vals) else t.vals, t.rows)
            for t in self.terms
        ]
        return self._with(terms)

    def _with(self, terms: list[Term], dtype: DTypeLike = None) -> Jacobian:
        """Return a Jacobian with other terms, and the shapes and symmetry of this one."""
        found = Jacobian(terms, self.out_shape, self.in_shape, dtype or self.dtype, tensors=self.tensors, copy=False)
        found.symmetric = self.symmetric
        return found

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("converting a structured Jacobian makes a new array: copy=False is not possible")
        check_size(self.out_shape, self.in_shape, self.dtype, MEMORY, _EXPLICITLY)
        J = np.asarray(self.to_dense())  # raises if it is recorded
        return J if dtype is None else J.astype(dtype)

    def diagonal(self) -> Any:
        """Return the diagonal of the matrix: in the shape of y if y and x have equal shapes; else flat."""
        m, n = self.matrix_shape
        matrix = self._entries()
        rows = matrix.row_numbers()
        here = np.flatnonzero(rows == matrix.indices)
        found = assemble.scatter_rows(np.take(matrix.data, here), rows[here], min(m, n))
        return self._given(np.reshape(found, self.out_shape if self.out_shape == self.in_shape else (min(m, n),)))

    @property
    def T(self) -> Jacobian:
        """The transpose, of shape ``(*x.shape, *y.shape)``."""
        if self.symmetric:
            return self
        blocks = self._blocks_by_strides()
        if blocks is not None:
            return self._of_blocks(blocks.transposed(), self.in_shape, self.out_shape, self.tensors)
        return self._of_sparse(self._entries().transposed(), self.in_shape, self.out_shape, self.tensors)

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def __matmul__(self, other: TensorLike) -> Any:
        """Return ``J @ v``.

        For v of x's shape (or flat) with any trailing axes, it is an array of y's shape (or flat) with those axes. For the
        Jacobian of x with respect to another variable, it is the Jacobian of y with respect to that variable (chain rule).
        """
        if isinstance(other, Jacobian):
            return self._after(other)
        v = as_operand(other)
        if v is None:
            return NotImplemented
        flat, shape = match_shape(shape_of(v), self.in_shape)
        if flat is None:
            raise errors.jacobian_operand("J @ v", shape_of(v), self.in_shape, "x", self.out_shape, "at the end")
        found = self._times(np.reshape(v, (self.matrix_shape[1], math.prod(shape))))
        return self._given(np.reshape(found, (*((self.matrix_shape[0],) if flat else self.out_shape), *shape)), other)

    def __rmatmul__(self, other: TensorLike) -> Any:
        """Return ``v @ J``, for v of y's shape, or flat, with any leading axes."""
        v = as_operand(other)
        if v is None:
            return NotImplemented
        have = shape_of(v)
        flat, shape = match_shape(have[::-1], self.out_shape[::-1])
        if flat is None:
            raise errors.jacobian_operand("v @ J", have, self.out_shape, "y", self.in_shape, "at the start")
        front = shape[::-1]
        found = self._transposed_times(np.swapaxes(np.reshape(v, (math.prod(front), self.matrix_shape[0])), 0, 1))
        last = (self.matrix_shape[1],) if flat else self.in_shape
        return self._given(np.reshape(np.swapaxes(found, 0, 1), (*front, *last)), other)

    def _times(self, x: object) -> Any:
        """Return the product with a matrix ``(n, c)``."""
        blocks = self._blocks_by_strides()
        return multiply_by_dense(self._entries(), x) if blocks is None else blocks.times(x)

    def _transposed_times(self, x: object) -> Any:
        """Return the product of the transpose with a matrix ``(m, c)``."""
        blocks = self._blocks_by_strides()
        return multiply_transpose_by_dense(self._entries(), x) if blocks is None else blocks.transposed().times(x)

    def _after(self, other: Jacobian) -> Jacobian:
        if other.out_shape != self.in_shape:
            raise errors.jacobian_product(self, other)
        tensors = self.tensors or other.tensors
        mine, others = self._blocks_by_strides(), other._blocks_by_strides()
        blocks = mine.product(others) if mine is not None and others is not None else None
        if blocks is None and others is not None and others.dense:
            whole = self._times(others.matrix())[None]
            blocks = Blocks(whole, np.arange(whole.shape[1])[None], np.arange(whole.shape[2])[None], whole.shape[1:])
        if blocks is None and mine is not None and mine.dense:
            return other.T._after(self.T).T
        if blocks is not None:
            return self._of_blocks(blocks, self.out_shape, other.in_shape, tensors)
        matrix = multiply_sparse(self._entries(), other._entries())
        return self._of_sparse(matrix, self.out_shape, other.in_shape, tensors)

    def __add__(self, other: TensorLike) -> Any:
        if not isinstance(other, Jacobian):
            return NotImplemented
        if (other.out_shape, other.in_shape) != (self.out_shape, self.in_shape):
            raise errors.jacobian_sum(self, other)
        dtype = np.result_type(self.dtype, other.dtype)
        variable = self.terms[0].source if self.terms else Variable(self.in_shape, dtype)
        terms = [*self.terms, *[with_variable(term, variable) for term in other.terms]]
        tensors = self.tensors or other.tensors
        found = Jacobian(terms, self.out_shape, self.in_shape, dtype, tensors=tensors, copy=False)
        found.symmetric = self.symmetric and other.symmetric
        return found

    def __neg__(self) -> Jacobian:
        return self * -1

    def __sub__(self, other: TensorLike) -> Any:
        return self + -other if isinstance(other, Jacobian) else NotImplemented

    def __mul__(self, other: TensorLike) -> Any:
        """Return the product with a number."""
        return self._scaled(np.multiply, other)

    __rmul__ = __mul__

    def __truediv__(self, other: TensorLike) -> Any:
        """Return the quotient by a number."""
        return self._scaled(np.true_divide, other)

    def _scaled(self, operation: np.ufunc, other: TensorLike) -> Any:
        weak = isinstance(other, (int, float, complex))
        scale = other if weak else as_operand(other)
        if scale is None or shape_of(scale):
            return NotImplemented
        dtype = np.result_type(self.dtype, scale if weak else dtype_of(scale))
        terms = []
        for term in self.terms:
            vals = term.vals if _recorded(term.vals) else np.asarray(term.vals, dtype)
            terms.append(Term(term.source, term.cols, operation(vals, scale), term.rows))
        return self._with(terms, dtype)

    def solve(self, b: object) -> Any:
        """Solve ``J @ x = b`` for x; the method depends on the structure.

        A diagonal matrix divides b, and blocks are solved in one batch. Narrow bands use LAPACK's banded solver, sparse matrices
        SuperLU, and dense matrices LU. Bands and sparse matrices need SciPy; without it they are made dense.

        Args:
            b: of y's shape, or flat, with any trailing axes.

        Returns:
            An array or tensor of x's shape, or flat, with those axes.

        Raises:
            numpy.linalg.LinAlgError: the matrix is not square, or singular.
            ValueError: b has another shape.
        """
        m, n = self.matrix_shape
        if m != n:
            raise errors.jacobian_not_square(self)
        right = as_operand(b)
        flat, shape = (None, ()) if right is None else match_shape(shape_of(right), self.out_shape)
        if flat is None:
            have = type(b).__name__ if right is None else shape_of(right)
            raise errors.jacobian_operand("J.solve(b)", have, self.out_shape, "y", self.in_shape, "at the end")
        shapes = solve.Shapes(self.out_shape, self.in_shape)
        found = solve.solve_system(self._any_blocks(), self._entries, shapes, np.reshape(right, (m, math.prod(shape))))
        return self._given(np.reshape(found, (*((n,) if flat else self.in_shape), *shape)), b)

    # -- display ------------------------------------------------------------------------------------------------------

    def spy(self, ax: Any = None, **options: object) -> Any:
        """Plot the positions of the entries with matplotlib.

        Args:
            ax: the axes to draw into, by default the current ones.
            options: for ``ax.plot``.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed. ``print(J.spy_text())`` works without it.
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise errors.jacobian_spy() from None
            ax = pyplot.gca()
        m, n = self.matrix_shape
        matrix = self._entries()
        size = min(6.0, max(0.3, 250 / max(m, n, 1)))
        ax.plot(matrix.indices, matrix.row_numbers(), **{"marker": "s", "ls": "", "ms": size, **options})
        ax.set(xlim=(-0.5, n - 0.5), ylim=(m - 0.5, -0.5), aspect="equal", title=f"{self.nnz} entries")
        return ax

    def spy_text(self) -> str:
        """Return a picture of the positions of the entries, as text."""
        matrix = self._entries()
        return spy.matrix_text(matrix.row_numbers(), matrix.indices, matrix.shape)

    def __repr__(self) -> str:
        m, n = self.matrix_shape
        kind = self.kind
        if kind == "blocks":
            blocks = self._any_blocks()
            assert blocks is not None
            k, p, q = shape_of(blocks.vals)
            kind = f"{k} blocks of {p} × {q}" if k > 1 else f"a block of {p} × {q}"
        symmetric = "symmetric, " if self.symmetric else ""
        return f"<Jacobian {self.out_shape} by {self.in_shape}: {symmetric}{kind}, {self.nnz} of {m * n} entries, {self.dtype}>"

    def _repr_html_(self) -> str:
        matrix = self._entries()
        title = repr(self)[1:-1]
        return (
            f"<div>{title}<br>{spy.matrix_svg(matrix.row_numbers(), matrix.indices, matrix.shape, title=title)}</div>"
        )

    def __reduce__(self) -> Any:
        parts = [(encode_columns(term), term.vals, term.rows) for term in self.terms]
        return Jacobian._restored, (parts, self.out_shape, self.in_shape, self.dtype, self.symmetric, self.tensors)

    @classmethod
    def _restored(
        cls, parts: Any, out_shape: Shape, in_shape: Shape, dtype: NumpyDType, symmetric: bool, tensors: bool
    ) -> Jacobian:
        variable = Variable(in_shape, dtype)
        terms = [decode_term(columns, vals, rows, variable) for columns, vals, rows in parts]
        found = cls(terms, out_shape, in_shape, dtype, tensors=tensors, copy=False)
        found.symmetric = symmetric
        return found


def _recorded(vals: object) -> bool:
    return isinstance(vals, (Tensor, ArrayLike))


def _is_one(x: object) -> bool:
    return not _recorded(x) and bool(x == 1)
