"""Linear systems with sparse matrices and linear operators, with SciPy's names and differentiable solutions.

A matrix is one of SciPy's (a constant), a ``chainrule.sparse.SparseArray``, or dense. Right-hand sides are arrays,
``Array``s and tensors. The iterative solvers also take a :class:`LinearOperator`, whose function may close over
differentiated values.

>>> import numpy as np
>>> import scipy.sparse
>>> import chainrule as cr
>>> A = scipy.sparse.diags_array([[-1.] * 3, [4.] * 4, [-1.] * 3], offsets=[-1, 0, 1])
>>> cr.grad(lambda b: np.sum(cr.scipy.sparse.linalg.spsolve(A, b) ** 2))(np.ones(4)).round(3)
array([0.281, 0.397, 0.397, 0.281])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.api.grad_mode import no_grad
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, IntoArray, NumpyArray, Params
from chainrule._src.jacobians.forms import Form
from chainrule._src.jacobians.solution import Equation, solve_equation
from chainrule._src.messages import errors
from chainrule._src.ops.sparse import product
from chainrule._src.tape.foreign_operands import is_linear_operator, is_sparse
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.grad import vjp
from chainrule._src.transforms.jvp import jvp
from chainrule.scipy.derivatives import scipy_module
from chainrule.sparse import SparseArray, like

__all__ = [
    "LinearOperator",
    "aslinearoperator",
    "bicgstab",
    "cg",
    "cgs",
    "eigsh",
    "factorized",
    "gmres",
    "lgmres",
    "minres",
    "splu",
    "spsolve",
]

ndarray = np.ndarray


# -- direct ------------------------------------------------------------------------------------------------------------


def spsolve(A: object, b: object) -> AnyArray:
    """Solve ``A @ x = b`` for a sparse matrix A, differentiably in b and the entries of A.

    Args:
        A: a square matrix (n, n) of SciPy's, or a ``SparseArray``.
        b: a dense vector (n,) or matrix (n, k).

    Raises:
        numpy.linalg.LinAlgError: A is singular. (SciPy warns and returns nan.)

    >>> import numpy as np
    >>> import chainrule as cr
    >>> solve = cr.scipy.sparse.linalg.spsolve
    >>> A = cr.sparse.coo(np.array([2., 1., 4.]), [0, 0, 1], [0, 1, 1], (2, 2))
    >>> cr.grad(lambda A, b: np.sum(solve(A, b)))(A, np.array([1., 2.])).toarray()
    array([[-0.125 , -0.25  ],
           [ 0.    , -0.0625]])
    """
    return splu(A).solve(b)


class splu:
    """LU factors of a sparse matrix. ``splu(A).solve(b)`` is differentiable in b and the entries of a ``SparseArray``.

    Args:
        A: as in :func:`spsolve`. It is factored when the first system is solved.

    >>> import numpy as np
    >>> import scipy.sparse
    >>> import chainrule as cr
    >>> factors = cr.scipy.sparse.linalg.splu(scipy.sparse.csc_array([[2., 1.], [0., 4.]]))
    >>> cr.jacrev(factors.solve)(np.ones(2))
    array([[ 0.5  , -0.125],
           [ 0.   ,  0.25 ]])
    """

    def __init__(self, A: Any) -> None:
        self._matrix = like(A)
        self.shape = self._matrix.shape

    def solve(self, b: Any, trans: str = "N") -> AnyArray:
        """Solve ``A @ x = b`` (trans="N"), ``A.T @ x = b`` ("T") or ``A.conj().T @ x = b`` ("H")."""
        if trans not in ("N", "T", "H"):
            raise ValueError(f"splu(A).solve(b, trans={trans!r}): trans must be 'N', 'T' or 'H'")
        if trans == "H":
            return np.conj(self._matrix.T.solve(np.conj(b)))
        return (self._matrix if trans == "N" else self._matrix.T).solve(b)


def factorized(A: object) -> AnyFunction:
    """Return a function that solves ``A @ x = b`` for given b: ``splu(A).solve``."""
    return splu(A).solve


# -- linear operators --------------------------------------------------------------------------------------------------


class LinearOperator:
    """A linear map, defined by a differentiable function of vectors.

    Args:
        shape: the numbers of rows and columns, (m, n).
        matvec: a function from (n,) to (m,). It may close over differentiated values.
        rmatvec: the adjoint function from (m,) to (n,); by default the VJP of ``matvec``.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> from chainrule.scipy.sparse.linalg import LinearOperator, cg
    >>> def total(k):
    ...     stiff = LinearOperator((4, 4), lambda u: k * (2 * u - np.append(u[1:], 0) - np.append(0, u[:-1])))
    ...     return np.sum(cg(stiff, np.ones(4), rtol=1e-10)[0])
    >>> round(float(cr.grad(total)(2.0)), 6), -total(2.0) / 2
    (-2.5, np.float64(-2.5))
    """

    __array_ufunc__ = None  # makes ``array @ A`` call this class
    ndim = 2

    def __init__(self, shape: tuple[int, int], matvec: AnyFunction, rmatvec: AnyFunction | None = None) -> None:
        self.shape = tuple(shape)
        self._matvec = matvec
        self._rmatvec = rmatvec

    def matvec(self, x: object) -> AnyArray:
        """Return the product with a vector."""
        return self._product(x, 1)

    def matmat(self, x: object) -> Any:
        """Return the products with the columns of a matrix."""
        return self._product(x, 2)

    def rmatvec(self, x: IntoArray) -> AnyArray:
        """Return the product of the conjugate transpose with a vector, by ``rmatvec`` or the VJP of ``matvec``."""
        if self._rmatvec is not None:
            return self._rmatvec(x)
        anywhere = np.zeros(self.shape[1], np.result_type(x, np.float32))
        return vjp(self._matvec, wrap(anywhere) if isinstance(x, Tensor) else anywhere)[1](x)[0]

    def _product(self, x: Any, ndim: int) -> AnyArray:
        if np.ndim(x) != ndim or np.shape(x)[0] != self.shape[1]:
            raise ValueError(f"an operator of shape {self.shape} takes ({self.shape[1]},), not {tuple(np.shape(x))}")
        if ndim == 1:
            return self._matvec(x)
        return np.stack([self._matvec(x[:, k]) for k in range(np.shape(x)[1])], -1)

    def __matmul__(self, x: AnyArray) -> AnyArray:
        return self._product(x, np.ndim(x))

    dot = __mul__ = __call__ = __matmul__

    def __repr__(self) -> str:
        return f"<LinearOperator {self.shape}>"


def aslinearoperator(A: Any) -> LinearOperator:
    """Convert SciPy's linear operator, or a matrix, to a :class:`LinearOperator`, whose products are differentiable.

    For an operator L of SciPy's, ``L @ u`` calls SciPy and needs plain arrays; ``aslinearoperator(L) @ u`` also takes
    tensors and Arrays.

    >>> import numpy as np
    >>> import scipy.sparse.linalg
    >>> import chainrule as cr
    >>> L = scipy.sparse.linalg.aslinearoperator(np.array([[1., 2.], [3., 4.]]))
    >>> cr.grad(lambda u: np.sum(cr.scipy.sparse.linalg.aslinearoperator(L) @ u))(np.ones(2))
    array([4., 6.])
    """
    if isinstance(A, LinearOperator):
        return A
    if is_linear_operator(A):
        return LinearOperator(A.shape, _times(A), _times(A.H))
    if is_sparse(A):
        return LinearOperator(A.shape, _times(A), _times(A.conj().T))
    return LinearOperator(np.shape(A), lambda x: A @ x)


def _times(A: object) -> AnyFunction:
    """Return a function that multiplies SciPy's constant matrix or operator by vectors."""
    return lambda x: product(A, x) if _differentiable(x) else A @ x


def _differentiable(*values: object) -> bool:
    return any(isinstance(x, (Tensor, Array, ArrayLike)) for x in values)


# -- iterative ---------------------------------------------------------------------------------------------------------


class IteratedEquation(Equation):
    """The equation A x - b = 0. The linear systems of its derivatives are solved by the same iterative method."""

    def __init__(self, api: str, form: Form, residual: AnyFunction, iterate: AnyFunction) -> None:
        super().__init__(api, form, residual, np.inf)
        self.iterate = iterate

    def factors(self, x: NumpyArray, operands: object) -> Any:
        return IterativeFactors(self, x, operands)


class IterativeFactors:
    """An iterative solver of systems with the matrix of an equation or its transpose, used in place of LU factors."""

    def __init__(self, equation: IteratedEquation, x: NumpyArray, operands: Any, transposed: bool = False) -> None:
        self._init_args = equation, x, operands
        self._equation, self._x = equation, x
        self._function = lambda v: equation.residual(v, *operands)
        self._transposed = transposed

    @property
    def T(self) -> IterativeFactors:
        return IterativeFactors(*self._init_args, not self._transposed)

    def solve(self, b: NumpyArray, transposed: bool = False) -> NumpyArray:
        point, transposed = wrap(self._x), transposed ^ self._transposed
        with no_grad():
            pull = vjp(self._function, point)[1] if transposed else None

            def matvec(v: object) -> AnyArray:
                found = pull(wrap(v))[0] if pull else jvp(self._function, (point,), (wrap(v),))[1]
                return found._raw

            found, info = self._equation.iterate(matvec, b, transposed)
            if info:  # some methods break down for right-hand sides such as unit vectors; gmres does not
                found, info = self._equation.iterate(matvec, b, transposed, by="gmres")
        if info:
            errors.warn(f"{self._equation.api}(): the system of a derivative did not converge (info {info})")
        return np.asarray(found)


def _iterative(name: str, A: Any, b: Any, x0: object, M: object, options: Params) -> tuple[Any, int]:
    """Call SciPy's iterative solver, with a differentiable solution."""
    linalg = scipy_module("scipy.sparse.linalg", f"sparse.linalg.{name}")
    solver = getattr(linalg, name)
    is_own_type = isinstance(A, (SparseArray, LinearOperator))
    if not is_own_type and not _differentiable(A, b, x0):
        return solver(A, b, x0=x0, M=M, **options)
    if len(A.shape) != 2 or A.shape[0] != A.shape[1] or np.shape(b) not in ((A.shape[0],), (A.shape[0], 1)):
        raise ValueError(f"{name}(A, b): A has the shape {tuple(A.shape)}, and b {tuple(np.shape(b))}")
    b = np.reshape(b, (-1,))
    matvec, args = _product_with(A)
    dtype = _dtype_of(b)
    infos = [0]

    def iterate(
        matvec: AnyFunction, b: object, transposed: bool, start: object = None, by: str = name
    ) -> tuple[Any, int]:
        if is_sparse(A):  # a constant: products need no derivative of the equation
            plain = A.T if transposed else A
        else:
            plain = linalg.LinearOperator(A.shape, matvec=matvec, dtype=dtype)
        preconditioner = None if M is None else linalg.aslinearoperator(M)
        if preconditioner is not None and transposed:
            preconditioner = preconditioner.T
        solver_options = {key: value for key, value in options.items() if by == name or key in ("rtol", "atol")}
        return getattr(linalg, by)(plain, b, x0=start, M=preconditioner, **solver_options)

    def find(start: object, b: object, *args: object) -> AnyArray:
        found, infos[0] = iterate(lambda v: _plain_array(matvec(v, *args)), _plain_array(b), False, _start(x0))
        if infos[0]:
            errors.warn(f"{name}(): the solver did not converge (info {infos[0]}), so its result is not a solution")
        return found if isinstance(start, ndarray) else wrap(found)

    form = Form(b, "b", name)
    residual = form.flat(lambda x, b, *args: matvec(x, *args) - b)
    x = solve_equation(form, (b, *args), IteratedEquation(name, form, residual, iterate), find)
    return x, infos[0]


# -- eigenvalues -------------------------------------------------------------------------------------------------------


def eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: float | None = None,
    which: str = "LM",
    v0: object = None,
    *,
    return_eigenvectors: bool = True,
    **options: object,
) -> Any:
    """Return a few eigenvalues and eigenvectors of a symmetric matrix by ``scipy.sparse.linalg.eigsh``, differentiably.

    Args:
        A: a real symmetric matrix (n, n): a ``SparseArray``, dense, a :class:`LinearOperator`, or a constant of SciPy's.
            Its two triangles are independent entries: the gradient has a part for each.
        M: the positive definite matrix of ``A @ v = w * M @ v``: a ``SparseArray``, dense, or a constant of SciPy's.
        k, sigma, which, v0, options: as in SciPy; constants.

    Returns:
        The eigenvalues (k,), and the eigenvectors in the columns of an (n, k) array, with ``v.T @ M @ v = 1``. Only the
        eigenvalues if ``return_eigenvectors`` is False.

    Raises:
        NotImplementedError: the matrix is complex.
        numpy.linalg.LinAlgError: (when differentiated) an eigenvalue is multiple, so its eigenvectors are not unique.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> K = cr.sparse.diags([-np.ones(9), 2 * np.ones(10), -np.ones(9)], [-1, 0, 1])
    >>> lowest = lambda K: cr.scipy.sparse.linalg.eigsh(K, 1, sigma=0.0)[0][0]
    >>> cr.grad(lowest)(K).diagonal()[:5].round(3)                     # the square of the eigenvector
    array([0.014, 0.053, 0.104, 0.15 , 0.178])
    """
    linalg: Any = scipy_module("scipy.sparse.linalg", "sparse.linalg.eigsh")
    options |= {"k": k, "sigma": sigma, "which": which}
    if (
        not isinstance(A, (SparseArray, LinearOperator))
        and not isinstance(M, SparseArray)
        and not _differentiable(A, M)
    ):
        return linalg.eigsh(A, M=M, v0=v0, return_eigenvectors=return_eigenvectors, **options)
    if len(A.shape) != 2 or A.shape[0] != A.shape[1] or (M is not None and tuple(M.shape) != tuple(A.shape)):
        shapes = f"A has the shape {tuple(A.shape)}" + ("" if M is None else f", M {tuple(M.shape)}")
        raise ValueError(f"eigsh(A): A must be a square matrix: {shapes}")
    n = A.shape[0]
    times_a, of_a = _product_with(A)
    times_m, of_m = (np.positive, ()) if M is None else _product_with(M)
    dtype = np.result_type(*[x.dtype for x in (*of_a, *of_m)], np.float32 if of_a or of_m else np.float64)
    if dtype.kind != "f":
        raise NotImplementedError(f"eigsh(A) is differentiable for real matrices only, and A is {dtype}")
    v0 = np.random.default_rng(0).standard_normal(n) if v0 is None else v0  # the same numbers in each call

    def find(start: object, *args: object) -> AnyArray:
        numbers = [_plain_array(x) for x in args]
        matrices = [_plain(A, times_a, numbers[: len(of_a)], dtype)]
        matrices.append(None if M is None else _plain(M, times_m, numbers[len(of_a) :], dtype))
        w, v = linalg.eigsh(matrices[0], M=matrices[1], v0=np.asarray(v0, dtype), **options)
        found = np.concatenate([v, w[None]]).astype(dtype)
        return found if isinstance(start, ndarray) else wrap(found)

    def residual(x: Any, *args: Any) -> AnyArray:
        v, w = x[:-1], x[-1]
        mv = times_m(v, *args[len(of_a) :])
        return np.concatenate([times_a(v, *args[: len(of_a)]) - mv * w, 0.5 * (np.sum(v * mv, 0) - 1)[None]])

    form = Form(np.zeros((n + 1, k), dtype), "v", "eigsh")
    args = (*of_a, *of_m)
    x = solve_equation(form, args, Equation("eigsh", form, form.flat(residual), None), find)
    return (x[-1], x[:-1]) if return_eigenvectors else x[-1]


def _plain(A: object, times: AnyFunction, numbers: Sequence[object], dtype: DTypeLike) -> Any:
    """Return a matrix with the given entries, in a form that SciPy accepts."""
    if isinstance(A, SparseArray):
        return A.with_data(numbers[0]).to_scipy()
    if isinstance(A, LinearOperator):
        linalg = scipy_module("scipy.sparse.linalg", "sparse.linalg.eigsh")
        return linalg.LinearOperator(A.shape, matvec=lambda v: _plain_array(times(v)), dtype=dtype)
    return numbers[0] if numbers else A


def _product_with(A: object) -> tuple[AnyFunction, tuple[Any, ...]]:
    """Return a function that multiplies A by a vector, and the differentiable arguments of it (A's entries)."""
    if isinstance(A, SparseArray):
        return lambda x, data: A.with_data(data) @ x, (A.data,)
    if isinstance(A, LinearOperator):
        return lambda x: A @ x, ()
    if is_sparse(A) or is_linear_operator(A):
        return _times(A), ()
    return lambda x, A: A @ x, (A,)


def _plain_array(x: object) -> AnyArray:
    """Return the plain array of a vector that depends only on constants."""
    tensor = x._tensor if type(x) is Array else x
    return tensor._raw if isinstance(tensor, Tensor) else np.asarray(tensor)


def _start(x0: object) -> AnyArray | None:
    return None if x0 is None else _plain_array(x0)


def _dtype_of(b: AnyArray) -> Any:
    dtype = b.dtype
    return dtype if dtype.kind in "fc" else np.dtype(float)


def _iterative_solver(name: str) -> AnyFunction:
    """Return the public function for one of SciPy's iterative solvers."""

    def solve(A: object, b: object, x0: object = None, *, M: object = None, **options: object) -> tuple[AnyArray, int]:
        return _iterative(name, A, b, x0, M, options)

    solve.__name__ = solve.__qualname__ = name
    solve.__doc__ = f"""Solve ``A @ x = b`` by ``scipy.sparse.linalg.{name}``; the same method computes the derivatives.

    Args:
        A: a matrix or linear operator (n, n) of SciPy's (a constant), a ``SparseArray``, a :class:`LinearOperator`, or dense.
        b: the right-hand side (n,).
        x0, M, options: as in SciPy; constants. Reverse mode uses the transpose of the preconditioner M.

    Returns:
        The solution, and SciPy's ``info``: 0 if it converged.

    Warns:
        UserWarning: the solver, or the system of a derivative, did not converge.
    """
    return solve


bicgstab, cg, cgs, gmres, lgmres, minres = map(
    _iterative_solver, ["bicgstab", "cg", "cgs", "gmres", "lgmres", "minres"]
)

show(globals())
