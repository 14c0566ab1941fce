"""``JacobianOperator``: products with a Jacobian, by forward and reverse mode, without computing it.

``api`` calls ``jacobian_operators`` for ``layout="operator"``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.tree import unflatten_rows
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyDType, Shape
from chainrule._src.jacobians.operands import as_operand, match_shape
from chainrule._src.jacobians.trace import check_in_memory
from chainrule._src.messages import errors
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.arguments import as_caller_type, data_if_unrecorded, data_of
from chainrule._src.transforms.flat_function import FlatFunction
from chainrule._src.transforms.grad import vjp
from chainrule._src.transforms.vmap import vmap


class JacobianOperator:
    """The derivative of y = f(x) at a point as a linear map, by forward and reverse mode.

    The function runs once, when the operator is made. Each product with a vector costs about as much as one run, and needs no
    further memory. ``jacobian(f, x, layout="operator")`` makes it.

    Args:
        function: from one array or tensor to one array or tensor.
        x: the point.
        create_graph: record products, so that they can be differentiated with respect to the values that the function uses.
            Default: record them if f(x) is on the tape.

    Attributes:
        shape: ``(*y.shape, *x.shape)``; ``out_shape`` and ``in_shape`` are its parts.
        matrix_shape: ``(m, n)``, the numbers of elements.
        dtype: NumPy's dtype of the entries.
        value: f(x).

    >>> import numpy as np
    >>> import chainrule as cr
    >>> A = cr.jacobian(lambda x: np.cumsum(x ** 2), np.array([1., 2., 3.]), layout="operator")
    >>> A @ np.array([1., 0., 0.])
    array([2., 2., 2.])
    >>> A.rmatvec(np.array([0., 0., 1.]))
    array([2., 4., 6.])
    """

    __module__ = "chainrule.jacobians"
    __array_ufunc__ = None  # so that ``array @ A`` calls __rmatmul__

    def __init__(self, function: Callable[[Any], object], x: Any, create_graph: bool | None = None) -> None:
        self.value, pull = vjp(function, x)
        if create_graph is None:  # the value is on the tape if one of its operands is
            create_graph = isinstance(data_if_unrecorded(self.value), Tensor)
        self._pull = functools.partial(pull, create_graph=create_graph)
        y, point = data_of(self.value), data_of(x)
        self.out_shape: Shape = tuple(shape_of(y))
        self.in_shape: Shape = tuple(shape_of(point))
        self.dtype: NumpyDType = np.result_type(dtype_of(y), dtype_of(point))
        self.tensors = isinstance(x, Tensor)
        self._dtypes = dtype_of(y), dtype_of(point)
        zeros = np.zeros(self.out_shape, self._dtypes[0])
        push = vjp(lambda g: pull(g)[0], zeros)[1]  # the transpose of a linear map
        self._push = functools.partial(push, create_graph=create_graph)

    @property
    def shape(self) -> Shape:
        return self.out_shape + self.in_shape

    @property
    def matrix_shape(self) -> tuple[int, int]:
        return math.prod(self.out_shape), math.prod(self.in_shape)

    def matvec(self, v: object) -> Any:
        """Return ``J @ v`` for v of x's shape, or flat: an array or tensor like y, or flat.

        Raises:
            ValueError: v has another shape.
        """
        return self._checked(v, "A.matvec(v)", reverse=False, batch=False)

    def rmatvec(self, u: object) -> Any:
        """Return ``Jᴴ @ u`` for u of y's shape, or flat: an array or tensor like x, or flat. (For real numbers Jᴴ is Jᵀ.)

        Raises:
            ValueError: u has another shape.
        """
        return self._checked(u, "A.rmatvec(u)", reverse=True, batch=False)

    def matmat(self, V: object) -> Any:
        """Return ``J @ V`` for V of x's shape, or flat, with further trailing axes: all products in one batch.

        Raises:
            ValueError: V has another shape.
        """
        return self._checked(V, "A.matmat(V)", reverse=False)

    def rmatmat(self, U: object) -> Any:
        """Return ``Jᴴ @ U`` for U of y's shape, or flat, with further trailing axes: all products in one batch.

        Raises:
            ValueError: U has another shape.
        """
        return self._checked(U, "A.rmatmat(U)", reverse=True)

    def __matmul__(self, v: object) -> Any:
        """Return ``matvec(v)``, or ``matmat(v)`` if v has further trailing axes."""
        return NotImplemented if as_operand(v) is None else self._checked(v, "A @ v", reverse=False)

    def __rmatmul__(self, u: object) -> Any:
        """Return ``u @ J``, for u of y's shape, or flat."""
        x = as_operand(u)
        if x is None:
            return NotImplemented
        found = self._checked(np.conjugate(x), "u @ A", reverse=True, batch=False)
        return as_caller_type(np.conjugate(as_operand(found)), self.tensors or isinstance(u, Tensor))

    def to_scipy(self) -> Any:
        """Return the operator as a ``scipy.sparse.linalg.LinearOperator`` of shape ``matrix_shape``.

        Raises:
            ImportError: SciPy is not installed.
        """
        try:
            from scipy.sparse.linalg import LinearOperator
        except ImportError:
            raise errors.needs_scipy("JacobianOperator.to_scipy()") from None
        m, n = self.matrix_shape

        def plain(product: Callable[[Any], Any], size: int) -> Callable[[Any], Any]:
            def of_columns(v: AnyArray) -> Any:
                found = np.asarray(data_of(product(np.reshape(v, (size, -1)))))
                return found[:, 0] if np.ndim(v) == 1 else found

            return of_columns

        push, pull = plain(self.matmat, n), plain(self.rmatmat, m)
        return LinearOperator((m, n), matvec=push, rmatvec=pull, matmat=push, rmatmat=pull, dtype=self.dtype)

    def __repr__(self) -> str:
        return f"<JacobianOperator {self.out_shape} by {self.in_shape}, {self.dtype}>"

    def _checked(self, v: object, call: str, reverse: bool, batch: bool = True) -> Any:
        """Return the product with v, whose shape starts with that of x (or y), in the caller's form."""
        takes, gives = (self.out_shape, self.in_shape) if reverse else (self.in_shape, self.out_shape)
        x = as_operand(v)
        flat, more = (None, ()) if x is None else match_shape(shape_of(x), takes)
        if flat is None or (more and not batch):
            have = type(v).__name__ if x is None else shape_of(x)
            raise errors.jacobian_operand(
                call, have, takes, "y" if reverse else "x", gives, "at the end" if batch else "only in A @ v"
            )
        found = self._products(np.reshape(x, (*takes, *more)), len(takes), more, reverse)
        found = np.reshape(found, (*((math.prod(gives),) if flat else gives), *more))
        return as_caller_type(found, self.tensors or isinstance(v, Tensor))

    def _products(self, x: Any, ndim: int, more: Shape, reverse: bool) -> Any:
        """Return the product with one vector, or with each vector along further axes."""
        dtype = self._dtypes[0 if reverse else 1]
        if dtype_of(x).kind == "c" and dtype.kind != "c":
            real, imag = (self._products(part, ndim, more, reverse) for part in (np.real(x), np.imag(x)))
            return real + 1j * imag
        if dtype_of(x) != dtype:
            x = np.astype(x, dtype)
        product = self._pull if reverse else self._push
        if not more:
            return as_operand(product(x)[0])
        count = math.prod(more)
        lead = np.moveaxis(np.reshape(x, (*shape_of(x)[:ndim], count)), -1, 0)
        if not count:
            gives = self.in_shape if reverse else self.out_shape
            return np.zeros((*gives, *more), self.dtype)
        return np.moveaxis(as_operand(vmap(lambda v: product(v)[0])(lead)), 0, -1)


def jacobian_operators(function: AnyFunction, x: object, hstack: bool, create_graph: bool | None = None) -> Any:
    """Return the derivatives of a function of a tree, in the results' tree of the arguments' trees; or one operator.

    Args:
        function: from arrays or tensors, or trees of them, to the same.
        x: its argument; a tuple holds several.
        create_graph: as for ``JacobianOperator``.
        hstack: return one operator from all elements of the arguments (flat) to all elements of the results.
    """
    call = FlatFunction(function, x)
    points = call.points
    for leaf in call.leaves():
        check_in_memory(leaf)

    def block(i: int, j: int) -> JacobianOperator:
        def of_one(leaf: object) -> Any:
            return call([*points[:j], leaf, *points[j + 1 :]])[i]

        return JacobianOperator(of_one, points[j], create_graph)

    if hstack:
        shapes = [tuple(np.shape(point)) for point in points]
        ends = np.cumsum([math.prod(shape) for shape in shapes])

        def of_all(flat: Array) -> Any:
            parts = [flat[end - math.prod(shape) : end].reshape(shape) for end, shape in zip(ends, shapes, strict=True)]
            return np.concatenate([y.reshape(-1) for y in call(parts)])

        whole = np.concatenate([np.reshape(point, (-1,)) for point in points])
        return JacobianOperator(of_all, whole, create_graph)
    first = block(0, 0)
    rows = [[first if i == j == 0 else block(i, j) for j in range(len(points))] for i in range(call.outer.num_leaves)]
    return unflatten_rows(rows, call.inner, call.outer)
