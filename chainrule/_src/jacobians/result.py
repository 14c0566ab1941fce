"""``Jacobian``: what ``jacobian(f, x, layout="structured")`` returns.

It holds terms, and computes with the simplest form that they have: blocks where the matrix is block diagonal, which one look
at strides often tells, and otherwise rows of a sparse matrix. Both are made when they are first needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import DTypeLike, NumpyDType, Shape, TensorLike
from chainrule._src.jacobians import assemble, solve, spy
from chainrule._src.jacobians.assemble import EntryPattern, Sparse, is_plain
from chainrule._src.jacobians.blocks import Blocks, blocks_of_sparse, blocks_of_terms
from chainrule._src.jacobians.copies import of_variable, own, read, written
from chainrule._src.jacobians.matmul import multiplied, times, transposed_times
from chainrule._src.jacobians.operands import matched, operand
from chainrule._src.jacobians.ordering import TermBlock
from chainrule._src.jacobians.terms import Term, Variable
from chainrule._src.messages import errors
from chainrule._src.tape.modes import recording
from chainrule._src.tape.protocol import ArrayLike, detached
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.arguments import as_caller_type
from chainrule._src.transforms.dense import MEMORY, check_size

ndarray = np.ndarray
_UNKNOWN: Any = object()
_EXPLICITLY = "J.to_scipy() has its entries alone; J.to_dense() makes it all the same"


class Jacobian:
    """The derivative of y with respect to x, as a matrix that knows its structure.

    It has a row for each element of y and a column for each element of x. ``jacobian(f, x, layout="structured")`` makes it.

    Attributes:
        shape: ``(*y.shape, *x.shape)``; ``out_shape`` and ``in_shape`` are its parts.
        matrix_shape: ``(m, n)``, the numbers of elements.
        dtype: NumPy's dtype of the entries.
        terms: the parts that it is the sum of.
        symmetric: whether it is a Hessian, whose entries are equal in pairs to the last bit.

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
        "_sparse",
        "dtype",
        "in_shape",
        "made_by",
        "out_shape",
        "symmetric",
        "tensors",
        "terms",
    )
    __array_ufunc__ = None  # so that ``array @ J`` comes here

    def __init__(
        self,
        terms: Sequence[Term],
        out_shape: Shape,
        in_shape: Shape,
        dtype: DTypeLike = None,
        symmetric: bool = False,
        tensors: bool = False,
        copy: bool = True,
    ) -> None:
        """From terms.

        Args:
            terms: with respect to one variable of shape ``in_shape``.
            out_shape: the shape of the value whose Jacobian it is.
            dtype: of the entries; without it, what the numbers promote to.
            symmetric: make it exactly symmetric; it is so but for rounding.
            tensors: whether results are tensors, or arrays.
            copy: whether the numbers are copied, which are views of what the program computed with.
        """
        self.out_shape = tuple(out_shape)
        self.in_shape = tuple(in_shape)
        self.terms = (
            [Term(term.source, term.cols, own(term.vals), term.rows) for term in terms] if copy else list(terms)
        )
        self.dtype: NumpyDType = np.dtype(assemble.dtype_of_terms(self.terms) if dtype is None else dtype)
        self.tensors = tensors
        self.symmetric = symmetric
        self.made_by: Any = None
        self._blocks: Any = _UNKNOWN  # by strides
        self._found_blocks: Any = _UNKNOWN  # by entries
        self._sparse: Sparse | None = None
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
    ) -> Jacobian:
        """One matrix for several outputs and inputs.

        Args:
            blocks: the terms of each, with the number of its rows, its first row and its first column.
            shape: the numbers of all elements of the outputs, and of the inputs.
        """
        matrix = EntryPattern(blocks, shape).matrix([term for terms, *_ in blocks for term in terms], dtype)
        return cls._of_sparse(matrix, shape[:1], shape[1:], tensors, symmetric)

    @classmethod
    def _of_sparse(
        cls, matrix: Sparse, out_shape: Shape, in_shape: Shape, tensors: bool, symmetric: bool = False
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
        """Make the terms those of ``(H + Hᵀ) / 2``."""
        m, n = self.matrix_shape
        if self.out_shape != self.in_shape:
            raise ValueError(f"a Hessian has the shape of x twice, not {self.out_shape} and {self.in_shape}")
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

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self.out_shape + self.in_shape

    @property
    def matrix_shape(self) -> tuple[int, int]:
        return math.prod(self.out_shape), math.prod(self.in_shape)

    @property
    def kind(self) -> str:
        """The structure.

        "zero"; "identity"; "diagonal"; "blocks" (block diagonal once rows and columns are put in order, with blocks of one
        size: ``blocks`` has them); "dense"; "csr" (rows of entries, as products of structured factors are); or "terms".
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
        """The number of entries: of the places that can be nonzero. What is zero at this point is among them."""
        blocks = self._blocks_by_strides()
        return self._entries().nnz if blocks is None else blocks.size

    @property
    def blocks(self) -> Any:
        """The blocks ``(k, p, q)`` of a block diagonal matrix (a dense one is one block), else None. Don't write to them."""
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
        """For each block the rows that it is in, ``(k, p)``; None if there are no blocks."""
        blocks = self._any_blocks()
        return None if blocks is None else blocks.rows.copy()

    @property
    def block_cols(self) -> Any:
        """For each block the columns that it is in, ``(k, q)``; None if there are no blocks."""
        blocks = self._any_blocks()
        return None if blocks is None else blocks.cols.copy()

    @property
    def bandwidth(self) -> tuple[int, int]:
        """How far entries reach below and above the diagonal of the matrix."""
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

    def _entries(self) -> Sparse:
        if self._sparse is None:
            pattern = EntryPattern.of(self.terms, self.out_shape, self.matrix_shape[1])
            self._sparse = pattern.matrix(self.terms, self.dtype)
        return self._sparse

    def _given(self, x: object, like: object = None) -> Any:
        """A result as the caller wants it: a tensor, or an array."""
        return as_caller_type(x, self.tensors or isinstance(like, Tensor))

    # -- other forms --------------------------------------------------------------------------------------------------

    def to_dense(self) -> Any:
        """The whole Jacobian, of shape ``(*y.shape, *x.shape)``, as an array or a tensor of its own."""
        matrix = self._sparse
        if matrix is not None and matrix.nnz == sum([term.cols.size for term in self.terms]):  # nothing was added up
            return self._given(np.reshape(matrix.dense(), self.shape))
        return self._given(assemble.dense(self.terms, self.out_shape, self.in_shape, self.dtype))

    def to_scipy(self, format: str = "csr", copy: bool = True) -> Any:
        """The matrix as a sparse array of SciPy's, of shape ``matrix_shape``: numbers alone, without a history.

        Args:
            format: "csr", "csc", "coo", "bsr", "dia", "dok" or "lil".
            copy: whether the entries are copied; otherwise, writing to them may write to the Jacobian's own.

        Raises:
            RuntimeError: the entries depend on an array of a surrounding function that is being differentiated.
            TypeError: the entries belong to a transformation, such as ``vmap``.
            ImportError: SciPy is not installed.
        """
        matrix = self._entries()
        data = matrix.data
        if isinstance(data, Tensor):
            if data._edge is not None and not self.tensors and recording():
                raise errors.jacobian_of_captured("an array of SciPy's")
            data, copy = data._raw, True
        if type(data) is not ndarray:
            raise errors.jacobian_inside("to_scipy()")
        try:
            from scipy import sparse
        except ImportError:
            raise errors.jacobian_needs_scipy() from None
        found = sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=copy)
        found.has_canonical_format = True
        return found.asformat(format)

    def detach(self) -> Jacobian:
        """The same numbers, off the tape."""
        if is_plain(self.terms):
            return self
        terms = [Term(t.source, t.cols, detached(t.vals) if _recorded(t.vals) else t.vals, t.rows) for t in self.terms]
        return self._with(terms)

    def _with(self, terms: list[Term], dtype: DTypeLike = None) -> Jacobian:
        """Another of these shapes, which is symmetric if this one is."""
        found = Jacobian(terms, self.out_shape, self.in_shape, dtype or self.dtype, tensors=self.tensors, copy=False)
        found.symmetric = self.symmetric
        return found

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("a structured Jacobian becomes an array by computing one: copy=False cannot be had")
        check_size(self.out_shape, self.in_shape, self.dtype, MEMORY, _EXPLICITLY)
        J = np.asarray(self.to_dense())  # raises if it is recorded
        return J if dtype is None else J.astype(dtype)

    def diagonal(self) -> Any:
        """The entries at equal positions in y and x: in their shape, if they have one shape; else in one axis."""
        m, n = self.matrix_shape
        matrix = self._entries()
        rows = matrix.row_numbers()
        here = np.flatnonzero(rows == matrix.indices)
        found = assemble.placed(np.take(matrix.data, here), rows[here], min(m, n))
        return self._given(np.reshape(found, self.out_shape if self.out_shape == self.in_shape else (min(m, n),)))

    @property
    def T(self) -> Jacobian:
        """The transpose: of shape ``(*x.shape, *y.shape)``."""
        if self.symmetric:
            return self
        blocks = self._blocks_by_strides()
        if blocks is not None:
            return self._of_blocks(blocks.transposed(), self.in_shape, self.out_shape, self.tensors)
        return self._of_sparse(self._entries().transposed(), self.in_shape, self.out_shape, self.tensors)

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def __matmul__(self, other: TensorLike) -> Any:
        """``J @ v``.

        For v of x's shape, or flat, with any axes behind that: an array like y, or flat, with those axes. For another
        Jacobian, of x: the chain rule.
        """
        if isinstance(other, Jacobian):
            return self._after(other)
        v = operand(other)
        if v is None:
            return NotImplemented
        flat, shape = matched(shape_of(v), self.in_shape)
        if flat is None:
            raise errors.jacobian_operand("J @ v", shape_of(v), self.in_shape, "x", self.out_shape, "behind")
        found = self._times(np.reshape(v, (self.matrix_shape[1], math.prod(shape))))
        return self._given(np.reshape(found, (*((self.matrix_shape[0],) if flat else self.out_shape), *shape)), other)

    def __rmatmul__(self, other: TensorLike) -> Any:
        """``v @ J``, for v of y's shape, or flat, with any axes in front of that."""
        v = operand(other)
        if v is None:
            return NotImplemented
        have = shape_of(v)
        flat, shape = matched(have[::-1], self.out_shape[::-1])
        if flat is None:
            raise errors.jacobian_operand("v @ J", have, self.out_shape, "y", self.in_shape, "in front")
        front = shape[::-1]
        found = self._transposed_times(np.swapaxes(np.reshape(v, (math.prod(front), self.matrix_shape[0])), 0, 1))
        last = (self.matrix_shape[1],) if flat else self.in_shape
        return self._given(np.reshape(np.swapaxes(found, 0, 1), (*front, *last)), other)

    def _times(self, x: object) -> Any:
        """The product with a matrix ``(n, c)``."""
        blocks = self._blocks_by_strides()
        return times(self._entries(), x) if blocks is None else blocks.times(x)

    def _transposed_times(self, x: object) -> Any:
        """The product of the transpose with a matrix ``(m, c)``."""
        blocks = self._blocks_by_strides()
        return transposed_times(self._entries(), x) if blocks is None else blocks.transposed().times(x)

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
        matrix = multiplied(self._entries(), other._entries())
        return self._of_sparse(matrix, self.out_shape, other.in_shape, tensors)

    def __add__(self, other: TensorLike) -> Any:
        if not isinstance(other, Jacobian):
            return NotImplemented
        if (other.out_shape, other.in_shape) != (self.out_shape, self.in_shape):
            raise errors.jacobian_sum(self, other)
        dtype = np.result_type(self.dtype, other.dtype)
        variable = self.terms[0].source if self.terms else Variable(self.in_shape, dtype)
        terms = [*self.terms, *[of_variable(term, variable) for term in other.terms]]
        tensors = self.tensors or other.tensors
        found = Jacobian(terms, self.out_shape, self.in_shape, dtype, tensors=tensors, copy=False)
        found.symmetric = self.symmetric and other.symmetric
        return found

    def __neg__(self) -> Jacobian:
        return self * -1

    def __sub__(self, other: TensorLike) -> Any:
        return self + -other if isinstance(other, Jacobian) else NotImplemented

    def __mul__(self, other: TensorLike) -> Any:
        """The product with a number."""
        return self._scaled(np.multiply, other)

    __rmul__ = __mul__

    def __truediv__(self, other: TensorLike) -> Any:
        """The quotient by a number."""
        return self._scaled(np.true_divide, other)

    def _scaled(self, operation: np.ufunc, other: TensorLike) -> Any:
        weak = isinstance(other, (int, float, complex))
        scale = other if weak else operand(other)
        if scale is None or shape_of(scale):
            return NotImplemented
        dtype = np.result_type(self.dtype, scale if weak else dtype_of(scale))
        terms = []
        for term in self.terms:
            vals = term.vals if _recorded(term.vals) else np.asarray(term.vals, dtype)
            terms.append(Term(term.source, term.cols, operation(vals, scale), term.rows))
        return self._with(terms, dtype)

    def solve(self, b: object) -> Any:
        """The solution x of ``J @ x = b``, by structure.

        A diagonal is divided by, blocks are solved in one batch, a narrow band by LAPACK's banded solver, a sparse matrix by
        SuperLU, and a dense one by LU. Bands and sparse matrices need SciPy; without it they are made dense.

        Args:
            b: of y's shape, or flat, with any axes behind that.

        Returns:
            An array or tensor of x's shape, or flat, with those axes.

        Raises:
            numpy.linalg.LinAlgError: the matrix is not square, or singular.
            ValueError: b has another shape.
        """
        m, n = self.matrix_shape
        if m != n:
            raise errors.jacobian_not_square(self)
        right = operand(b)
        flat, shape = (None, ()) if right is None else matched(shape_of(right), self.out_shape)
        if flat is None:
            have = type(b).__name__ if right is None else shape_of(right)
            raise errors.jacobian_operand("J.solve(b)", have, self.out_shape, "y", self.in_shape, "behind")
        found = solve.solution(self, np.reshape(right, (m, math.prod(shape))))
        return self._given(np.reshape(found, (*((n,) if flat else self.in_shape), *shape)), b)

    # -- showing it ---------------------------------------------------------------------------------------------------

    def spy(self, ax: Any = None, **options: object) -> Any:
        """Draw where the entries are, with matplotlib.

        Args:
            ax: the axes to draw into, by default the current ones.
            options: for ``ax.plot``.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed. ``print(J.spy_text())`` needs nothing.
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
        """Where the entries are, as a picture made of characters."""
        matrix = self._entries()
        return spy.text(matrix.row_numbers(), matrix.indices, matrix.shape)

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
        return f"<div>{title}<br>{spy.svg(matrix.row_numbers(), matrix.indices, matrix.shape, title=title)}</div>"

    def __reduce__(self) -> Any:
        parts = [(written(term), term.vals, term.rows) for term in self.terms]
        return Jacobian._restored, (parts, self.out_shape, self.in_shape, self.dtype, self.symmetric, self.tensors)

    @classmethod
    def _restored(
        cls, parts: Any, out_shape: Shape, in_shape: Shape, dtype: NumpyDType, symmetric: bool, tensors: bool
    ) -> Jacobian:
        variable = Variable(in_shape, dtype)
        terms = [read(columns, vals, rows, variable) for columns, vals, rows in parts]
        found = cls(terms, out_shape, in_shape, dtype, tensors=tensors, copy=False)
        found.symmetric = symmetric
        return found


def _recorded(vals: object) -> bool:
    return isinstance(vals, (Tensor, ArrayLike))


def _is_one(x: object) -> bool:
    return not _recorded(x) and bool(x == 1)
