"""Derivatives of solutions: of roots, fixed points, minima and linear systems, whatever solver found them.

Where F(x, θ) = 0 holds, a small change of θ moves x so that it goes on holding: ∂F/∂x · dx + ∂F/∂θ · dθ = 0 (the implicit
function theorem). So how x was found does not matter, and none of it is recorded: a solution is one operation, whose rules
solve a linear system with A = ∂F/∂x.

That system's solution is a solution as well, of the equation A v - b = 0, and gets its own derivatives by the same rules with
the same factors of A. So derivatives of any order follow.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.api.array import Array, faced
from chainrule.api.grad_mode import no_grad
from chainrule.autograd.function import Function
from chainrule.autograd.function_rule import in_graph
from chainrule.core.dispatch import bind
from chainrule.core.levels import STACK
from chainrule.core.modes import LOCAL, recording
from chainrule.core.node import Node
from chainrule.core.protocol import ArrayLike
from chainrule.core.tensor import Tensor, wrap, wrapped
from chainrule.core.versions import protected
from chainrule.func import grad, jvp, vjp
from chainrule.interpreters.batched import Batched
from chainrule.interpreters.dual import Dual
from chainrule.jacobians.api import jacobian
from chainrule.jacobians.factors import Factors
from chainrule.jacobians.newton import newton_minimum, newton_root
from chainrule.rows.batching import each_example
from chainrule.rows.kinds import discrete
from chainrule.transform.arguments import array_like, as_caller_type, data_of, has_tensor, tensor_in
from chainrule.tree import leaf_paths, tree_flatten, tree_unflatten

ndarray = np.ndarray
SPARSE = 64  # unknowns, from which on a sparse Jacobian is worth looking for
KEPT = 8  # factored matrices that an equation remembers, but one: those of a batch's examples
Solver = Callable[[Callable[..., Any], Any], Any]

__all__ = ["custom_fixed_point", "custom_root", "fixed_point", "least_squares", "linear_solve", "minimum", "root"]


# -- what users call ---------------------------------------------------------------------------------------------------


def root(f: Callable[..., Any], x0: Any, *args: Any, solver: Solver | None = None, tol: float | None = None) -> Any:
    """x with ``f(x, *args) = 0``, as a function of ``args`` that can be differentiated, in both modes and any number of times.

    Args:
        f: from what is like x0 (and ``args``) to as many numbers as x0 has: an array or tensor, or a container of them.
        x0: where to start: an array or tensor of floating point numbers, or a container of them. The solution does not
            depend on it.
        args: what the solution depends on: arrays, tensors, numbers, or containers of them.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``, returns x, or a result that has it as ``x``, as those of
            ``chainrule.scipy.root`` and SciPy do. It gets plain arrays, and under ``vmap`` one example at a time. Without
            it: Newton's method.
        tol: how much, relative to x, Newton's next step may still move it. (The fourth root of the dtype's precision.)

    Returns:
        The solution, like x0.

    Raises:
        RuntimeError: Newton's method did not find one.
        numpy.linalg.LinAlgError: when it is differentiated, and ∂f/∂x is singular there.

    Warns:
        UserWarning: when it is differentiated, and it is no solution within ``tol``.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cube_root = lambda a: cr.implicit.root(lambda x, a: x**3 - a, 1.0, a)
    >>> float(cube_root(8.0)), float(cr.grad(cube_root)(8.0)), float(cr.grad(cr.grad(cube_root))(8.0))
    (2.0, 0.08333333333333333, -0.006944444444444444)
    """
    form = _Form(x0, "x0", "root")
    return _solution(form, args, _Equation("root", form, form.flat(f), tol), _calling(f, solver))


def fixed_point(
    f: Callable[..., Any], x0: Any, *args: Any, solver: Solver | None = None, tol: float | None = None
) -> Any:
    """x with ``f(x, *args) = x``, as a function of ``args`` that can be differentiated.

    Args:
        f: from what is like x0 (and ``args``) to the like.
        x0, args, tol: as for :func:`root`.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``: such as one that calls g again and again. Without it:
            Newton's method, which finds also what such iterations move away from.

    Returns:
        The fixed point, like x0.

    Raises:
        RuntimeError, numpy.linalg.LinAlgError: as for :func:`root`.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> def kepler(mean, eccentricity):
    ...     return cr.implicit.fixed_point(lambda E, m, e: m + e * np.sin(E), mean, mean, eccentricity)
    >>> E = kepler(1.0, 0.1)
    >>> abs(float(cr.grad(kepler)(1.0, 0.1)) - 1 / (1 - 0.1 * np.cos(E))) < 1e-12
    np.True_
    """
    form = _Form(x0, "x0", "fixed_point")
    return _solution(form, args, _Equation("fixed_point", form, _moved(form.flat(f)), tol), _calling(f, solver))


def minimum(f: Callable[..., Any], x0: Any, *args: Any, solver: Solver | None = None, tol: float | None = None) -> Any:
    """A local minimum of ``f(x, *args)`` over x, as a function of ``args`` that can be differentiated.

    Args:
        f: returns a real number (an array or tensor without axes).
        x0, args, tol: as for :func:`root`.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``, returns the minimum, such as ``chainrule.scipy.minimize``.
            Without it: Newton's method, with a Hessian that is damped where it is not positive definite.

    Returns:
        The x of the minimum, like x0.

    Raises:
        RuntimeError: Newton's method did not find one.
        numpy.linalg.LinAlgError: when it is differentiated, and the Hessian of f is singular there.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> X, y = np.array([[1., 2.], [3., 4.], [5., 7.]]), np.array([1., 0., 2.])
    >>> def ridge(log_weight):
    ...     loss = lambda w, log_weight: np.sum((X @ w - y) ** 2) + np.exp(log_weight) * np.sum(w**2)
    ...     return cr.implicit.minimum(loss, np.zeros(2), log_weight)
    >>> ridge(0.0).round(4), cr.jacrev(ridge)(0.0).round(4)
    (array([-0.1176,  0.3109]), array([ 0.1972, -0.1425]))
    """
    form = _Form(x0, "x0", "minimum")
    objective = form.scalar(f)
    return _solution(form, args, _Equation("minimum", form, grad(objective), tol, objective), _calling(f, solver))


def least_squares(
    f: Callable[..., Any], x0: Any, *args: Any, solver: Solver | None = None, tol: float | None = None
) -> Any:
    """The x that minimises the sum of squares of ``f(x, *args)``, as a function of ``args`` that can be differentiated.

    Args:
        f: returns the residuals: an array or tensor, or a container of them.
        x0, args, tol: as for :func:`root`.
        solver: ``solver(g, x0)``, with ``g(x) = f(x, *args)``, such as ``chainrule.scipy.least_squares``. Without it: as
            for :func:`minimum`.

    Returns:
        The x of the minimum, like x0.

    Raises:
        RuntimeError, numpy.linalg.LinAlgError: as for :func:`minimum`.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> t = np.linspace(0, 1, 5)
    >>> fit = lambda data: cr.implicit.least_squares(lambda p, data: p[0] + p[1] * t - data, np.zeros(2), data)
    >>> cr.jacrev(fit)(t**2).round(3) + 0.0
    array([[ 0.6,  0.4,  0.2,  0. , -0.2],
           [-0.8, -0.4,  0. ,  0.4,  0.8]])
    """
    form = _Form(x0, "x0", "least_squares")
    residuals = form.flat(f)

    def half_sum(x: Any, *args: Any) -> Any:
        return 0.5 * np.sum(residuals(x, *args) ** 2)

    return _solution(form, args, _Equation("least_squares", form, grad(half_sum), tol, half_sum), _calling(f, solver))


def linear_solve(matvec: Callable[..., Any], b: Any, *args: Any, solver: Solver | None = None) -> Any:
    """x with ``matvec(x, *args) = b``, as a function of ``b`` and ``args`` that can be differentiated.

    The matrix is never asked for: its entries that exist are found from ``matvec``. (``np.linalg.solve`` takes matrices.)

    Args:
        matvec: linear in x: from what is like b (and ``args``) to the like.
        b: the right-hand side: an array or tensor, or a container of them.
        args: what the matrix depends on.
        solver: ``solver(g, b)``, with ``g(x) = matvec(x, *args)``, returns x: for example conjugate gradients. Without it:
            by factors of the matrix.

    Returns:
        The solution, like b.

    Raises:
        numpy.linalg.LinAlgError: the matrix is singular.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> stiffness = lambda x, k: k * (2 * x - np.append(x[1:], 0) - np.append(0, x[:-1]))
    >>> bend = lambda k: cr.implicit.linear_solve(stiffness, np.ones(3), k)
    >>> bend(2.0), cr.jacfwd(bend)(2.0)
    (array([0.75, 1.  , 0.75]), array([-0.375, -0.5  , -0.375]))
    """

    def left(x: Any, b: Any, *args: Any) -> Any:
        product = tree_flatten(matvec(x, *args))[0]
        sides = zip(product, tree_flatten(b)[0], strict=True)
        return [y - side for y, side in sides]

    find = None if solver is None else lambda x0, b, *args: solver(lambda x: matvec(x, *args), b)
    form = _Form(b, "b", "linear_solve")
    return _solution(form, (b, *args), _Equation("linear_solve", form, form.flat(left), np.inf), find)


def custom_root(f: Callable[..., Any], tol: float | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a solver of ``f(x, *args) = 0`` differentiable: a decorator for ``solver(x0, *args)``.

    What the solver does is not recorded. It gets plain arrays, and under ``vmap`` one example at a time.

    Args:
        f: as for :func:`root`. For a minimum it is the gradient of the function that is minimised.
        tol: as for :func:`root`.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> @cr.implicit.custom_root(lambda x, a: x**2 - a)
    ... def heron(x0, a):
    ...     for _ in range(30):
    ...         x0 = (x0 + a / x0) / 2
    ...     return x0
    >>> float(cr.grad(heron, 1)(1.0, 4.0))
    0.25
    """

    def decorator(solver: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(solver)
        def solve(x0: Any, *args: Any) -> Any:
            form = _Form(x0, "x0", "custom_root")
            return _solution(form, args, _Equation("custom_root", form, form.flat(f), tol), solver)

        return solve

    return decorator


def custom_fixed_point(
    f: Callable[..., Any], tol: float | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a solver of ``f(x, *args) = x`` differentiable: a decorator as :func:`custom_root` is.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> @cr.implicit.custom_fixed_point(lambda x, a: np.cos(a * x))
    ... def iterated(x0, a):
    ...     for _ in range(200):
    ...         x0 = np.cos(a * x0)
    ...     return x0
    >>> x = iterated(1.0, 1.0)
    >>> bool(np.isclose(cr.grad(iterated, 1)(1.0, 1.0), -np.sin(x) * x / (1 + np.sin(x))))
    True
    """

    def decorator(solver: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(solver)
        def solve(x0: Any, *args: Any) -> Any:
            form = _Form(x0, "x0", "custom_fixed_point")
            return _solution(form, args, _Equation("custom_fixed_point", form, _moved(form.flat(f)), tol), solver)

        return solve

    return decorator


def _moved(image: Callable[..., Any]) -> Callable[..., Any]:
    """x - f(x), which is 0 at a fixed point of f."""
    return lambda x, *args: x - image(x, *args)


def _calling(f: Callable[..., Any], solver: Solver | None) -> Callable[..., Any] | None:
    """A solver of functions of x alone as one that gets the arguments."""
    return None if solver is None else lambda x0, *args: solver(lambda x: f(x, *args), x0)


# -- containers and vectors --------------------------------------------------------------------------------------------


class _Form:
    """The structure of x: how one vector is made of its arrays, and they of the vector."""

    def __init__(self, x0: Any, what: str, api: str) -> None:
        self.api = api
        self.leaves, self.spec = tree_flatten(array_like(x0))
        self.start = [_tensor(x) for x in self.leaves]
        for x, path in zip(self.start, leaf_paths(self.spec), strict=True):
            if x._raw.dtype.kind != "f":
                raise TypeError(
                    f"{api}(): {what}{path} is of dtype {x.dtype}: a solution that can be differentiated is of floating point "
                    "numbers" + (" (complex ones as two)" if x._raw.dtype.kind == "c" else "")
                )
        self.shapes = [tuple(x._raw.shape) for x in self.start]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.size = sum(self.sizes)
        if not self.size:
            raise ValueError(f"{api}(): {what} holds no numbers: there is nothing to solve for")
        self.dtypes = [x._raw.dtype for x in self.start]
        self.dtype = np.result_type(*self.dtypes)
        self.is_vector = self.spec.num_leaves == 1 and self.spec.kind is None and len(self.shapes[0]) == 1

    def pack(self, tree: Any, what: str) -> ndarray:
        """Plain arrays in the structure of x as one vector.

        Raises:
            ValueError: they have another structure or other shapes.
        """
        leaves, spec = tree_flatten(tree)
        if spec != self.spec:
            raise ValueError(f"{self.api}(): {what} has the structure {spec}, and x0 has {self.spec}")
        parts = [data_of(tensor_in(x)) for x in leaves]
        for part, shape, path in zip(parts, self.shapes, leaf_paths(spec), strict=True):
            if tuple(part.shape) != shape and (shape or part.size != 1):  # SciPy's solvers make a vector of a number
                raise ValueError(f"{self.api}(): {what}{path} has shape {part.shape}, and x0{path} has {shape}")
        return np.concatenate([np.reshape(part, -1) for part in parts]).astype(self.dtype)

    def parts(self, x: Tensor) -> list[Tensor]:
        """The arrays that a vector is made of."""
        if self.is_vector:
            return [x]
        ends = itertools.accumulate(self.sizes)
        along = zip(ends, self.sizes, self.shapes, self.dtypes, strict=True)
        return [x[end - size : end].reshape(shape).astype(dtype) for end, size, shape, dtype in along]

    def unpack(self, x: Any) -> Any:
        """A vector in the structure of x, as functions of the user's are handed it."""
        parts = self.parts(x if type(x) is Tensor else wrapped(x))
        return tree_unflatten([faced(part, leaf) for part, leaf in zip(parts, self.leaves, strict=True)], self.spec)

    def flat(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """A function of x as a function from vector to vector."""

        def function(x: Any, *args: Any) -> Any:
            leaves = [_tensor(y) for y in tree_flatten(f(self.unpack(x), *args))[0]]
            if len(leaves) == 1 and len(leaves[0]._raw.shape) == 1:
                return leaves[0]
            return np.concatenate([np.reshape(y, -1) for y in leaves])

        return function

    def scalar(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """A function of x to a number as a function of a vector."""
        return lambda x, *args: f(self.unpack(x), *args)


class _Arguments:
    """What a solution depends on: tensors to differentiate by and to map over, and everything else, which stays as it is."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.leaves, self.spec = tree_flatten(args)
        self.at = [i for i, x in enumerate(self.leaves) if _is_operand(x)]
        self.operands = [_tensor(self.leaves[i]) for i in self.at]

    def with_tensors(self, tensors: Sequence[Any], plain: bool = False) -> Any:
        """The arguments with tensors in the places of the operands; or with arrays for what was given as arrays."""
        leaves = list(self.leaves)
        for i, x in zip(self.at, tensors, strict=True):
            bare = plain and not isinstance(leaves[i], (Tensor, ArrayLike))
            leaves[i] = x._raw if bare else faced(x, leaves[i])
        return tree_unflatten(leaves, self.spec)


def _is_operand(x: Any) -> bool:
    if isinstance(x, (Tensor, Array, ArrayLike)):
        return True
    return isinstance(x, (ndarray, np.generic)) and x.dtype.kind in "fc"


def _tensor(x: Any) -> Tensor:
    """An array, tensor or number as a tensor."""
    tensor = tensor_in(x)
    if isinstance(tensor, Tensor):
        return tensor
    data = data_of(tensor)
    return wrapped(protected(data) if type(data) is ndarray and data is x else data)


# -- equations ---------------------------------------------------------------------------------------------------------


class _Equation:
    """F(x, θ) = 0, with x a vector.

    Args:
        api: what the user called.
        form: the structure of x.
        residual: F, of a vector and the user's arguments.
        tol: how much Newton's next step may move a solution. None: the fourth root of the precision.
        objective: what x is the minimum of, if it is one.
    """

    def __init__(
        self,
        api: str,
        form: _Form,
        residual: Callable[..., Any],
        tol: float | None,
        objective: Callable[..., Any] | None = None,
    ) -> None:
        self.api = api
        self.form = form
        self.of_arguments = residual
        self.tol = float(np.finfo(form.dtype).eps) ** 0.25 if tol is None else tol
        self.objective = objective
        self._factored: list[tuple[list[ndarray], Factors]] = []

    arguments: _Arguments

    def residual(self, x: Any, *operands: Any) -> Any:
        r = self.of_arguments(x, *self.arguments.with_tensors(operands))
        if tuple(r.shape) != (self.form.size,):
            raise ValueError(
                f"{self.api}(): the function returned {math.prod(r.shape)} numbers for {self.form.size} unknowns: there must "
                "be as many equations as unknowns"
            )
        return r

    def plain_residual(self, x: ndarray, operands: Sequence[Any]) -> ndarray:
        with no_grad():
            return self._plain(self.residual(wrap(x), *operands))

    def jacobian(self, x: ndarray, operands: Sequence[Any]) -> Any:
        """∂F/∂x, dense, or sparse where it is large and most of it is zero."""
        layout = "auto" if x.size >= SPARSE and importlib.util.find_spec("scipy") else "dense"
        with no_grad():
            found = jacobian(lambda x: self.residual(x, *operands), wrap(x), layout=layout)
        return self._plain(found) if isinstance(found, Tensor) else found

    def _plain(self, found: Tensor) -> ndarray:
        """The numbers of what was computed for constant arguments."""
        if type(found._raw) is not ndarray:
            raise _captured(self.api)
        return found._raw

    def factors(self, x: ndarray, operands: Sequence[Tensor]) -> Factors:
        """Factors of ∂F/∂x at a solution, where they are computed once.

        Raises:
            numpy.linalg.LinAlgError: it is singular.
        """
        point = [np.array(value) for value in (x, *(operand._raw for operand in operands))]
        for known, factors in self._factored:
            if all(map(np.array_equal, known, point)):
                return factors
        factors = Factors(self.jacobian(x, operands), self._singular())
        self._check(x, factors.solve(self.plain_residual(x, operands)))
        self._factored = [*self._factored[-KEPT:], (point, factors)]
        return factors

    def forget(self) -> None:
        """What was computed for another solution: what the function uses from around it may have changed since."""
        self._factored = []

    def _singular(self) -> str:
        what = "the Hessian" if self.objective is not None else "the Jacobian by x"
        return (
            f"{self.api}(): {what} is singular at the solution. There the solution is no differentiable function of the "
            "arguments: it may be one of many, or about to vanish"
        )

    def _check(self, x: ndarray, step: ndarray) -> None:
        """Warn if a solution is none."""
        error = float(np.max(np.abs(step))) / max(1.0, float(np.max(np.abs(x))))
        if not error <= self.tol:
            errors.warn(
                f"{self.api}(): a derivative is taken at a point that does not solve the equation: Newton's next step would move "
                f"it by {error:.1e}, relative to its size. It is the derivative of a solution only at a solution: let the solver "
                f"go on, or say what is near enough by tol={error:.0e}"
            )

    def find(self, x0: ndarray, operands: Sequence[Tensor]) -> ndarray:
        """A solution, by Newton's method."""

        def residual(x: ndarray) -> ndarray:
            return self.plain_residual(x, operands)

        def matrix(x: ndarray) -> Any:
            return self.jacobian(x, operands)

        objective = self.objective
        if objective is None:
            return newton_root(residual, matrix, x0, self.api)
        args = self.arguments.with_tensors(operands)
        return newton_minimum(lambda x: float(objective(wrap(x), *args)), residual, matrix, x0, self.api)


class _LinearSystem:
    """A v - b = 0, with A = ∂F/∂x of an equation, or its transpose; the operands are b, x and those of the equation."""

    api: str

    def __init__(self, equation: Any, transposed: bool) -> None:
        self.equation = equation
        self.transposed = transposed
        self.api = equation.api

    def residual(self, v: Any, b: Any, x: Any, *operands: Any) -> Any:
        function = lambda x: self.equation.residual(x, *operands)  # noqa: E731
        if self.transposed:
            return vjp(function, x)[1](v)[0] - b
        return jvp(function, (x,), (v,))[1] - b

    def factors(self, v: ndarray, operands: Sequence[Tensor]) -> Factors:
        _, x, *rest = operands
        factors: Factors = self.equation.factors(x._raw, rest)
        return factors.T if self.transposed else factors


# -- solutions as operations -------------------------------------------------------------------------------------------


@discrete(listed=False, batch=each_example)
def solved(*operands: Any, compute: Callable[..., ndarray]) -> ndarray:
    """What a solver makes of plain arrays, a constant to derivatives: as if there were no transformations around it."""
    levels, recorder, watch = STACK.levels, LOCAL.recorder, LOCAL.watch
    STACK.levels, LOCAL.recorder, LOCAL.watch = [], None, None
    try:
        with no_grad():
            return compute(*map(wrap, operands))
    finally:
        STACK.levels, LOCAL.recorder, LOCAL.watch = levels, recorder, watch


class Solution(Function):
    """A solution whose value is known, as a function of what its equation depends on.

    ``captured`` is what is left of the equation with everything else a constant, where the user's function uses something
    from around it that is differentiated; else None.
    """

    @staticmethod
    def forward(equation: Any, value: Any, captured: Any, *operands: Any) -> Any:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.equation, _, captured, *operands = inputs
        ctx.captures = captured is not None
        ctx.save_for_backward(output, *operands)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        if g is None:
            return (None,) * (3 + len(ctx.saved_tensors[1:]))
        if not ctx.captures:
            return _pulled(ctx, g)
        if in_graph():
            raise _captured(ctx.equation.api)
        with no_grad():  # what the function captures is on the tape
            return _pulled(ctx, g)

    @staticmethod
    def jvp(ctx: Any, equation: Any, value: Any, captured: Any, *tangents: Any) -> Any:
        x, *operands = ctx.saved_tensors
        at = [i for i, t in enumerate(tangents) if t is not None and operands[i]._raw.dtype.kind in "fc"]
        if not at:
            return None
        points, directions = tuple(operands[i] for i in at), tuple(tangents[i] for i in at)
        change = jvp(_in_places(ctx.equation, x, operands, at), points, directions)[1]
        return _solve(ctx.equation, -change, x, operands, transposed=False)


def _pulled(ctx: Any, g: Any) -> tuple[Any, ...]:
    """The gradients of all that a solution was made of, for one of the solution."""
    x, *operands = ctx.saved_tensors
    w = -_solve(ctx.equation, g, x, operands, transposed=True)
    outside = isinstance(ctx._now, Node) and "call" not in ctx._now.params  # inside of transformations it does not know
    needed = ctx.needs_input_grad[3:] if outside else [True] * len(operands)
    at = [i for i, x in enumerate(operands) if needed[i] and x._raw.dtype.kind in "fc"]
    grads: list[Any] = [None] * len(operands)
    if at:
        pulled = vjp(_in_places(ctx.equation, x, operands, at), *[operands[i] for i in at])[1](w)
        for i, gradient in zip(at, pulled, strict=True):
            grads[i] = gradient
    return None, None, w if ctx.captures else None, *grads


def _in_places(equation: Any, x: Any, operands: list[Any], at: list[int]) -> Callable[..., Any]:
    """The residual as a function of some of its operands."""

    def residual(*some: Any) -> Any:
        every = list(operands)
        for i, operand in zip(at, some, strict=True):
            every[i] = operand
        return equation.residual(x, *every)

    return residual


def _solve(equation: Any, b: Any, x: Any, operands: list[Any], transposed: bool) -> Any:
    """v with A v = b (or Aᵀ v = b), for the Jacobian A of an equation at its solution x."""

    def compute(b: Tensor, x: Tensor, *operands: Tensor) -> ndarray:
        return equation.factors(x._raw, operands).solve(b._raw, transposed).astype(b._raw.dtype)

    value = bind(solved, [b, x, *operands], {"compute": compute})
    return _attached(_LinearSystem(equation, transposed), value, [b, x, *operands])


def _solution(form: _Form, args: tuple[Any, ...], equation: _Equation, find: Callable[..., Any] | None) -> Any:
    """The solution of an equation in the user's containers, attached to what it depends on."""
    arguments = equation.arguments = _Arguments(args)
    count = len(form.start)

    def compute(*operands: Tensor) -> ndarray:
        equation.forget()
        starts, rest = operands[:count], operands[count:]
        if find is None:
            start = np.concatenate([np.reshape(x._raw, -1) for x in starts]).astype(form.dtype)
            return equation.find(start, rest)
        leaves = [
            x if isinstance(leaf, (Tensor, ArrayLike)) else x._raw for x, leaf in zip(starts, form.leaves, strict=True)
        ]
        found = find(tree_unflatten(leaves, form.spec), *arguments.with_tensors(rest, plain=True))
        return form.pack(_x_of(found, equation.api), "what the solver returned")

    value = bind(solved, [*form.start, *arguments.operands], {"compute": compute})
    x = _attached(equation, value, arguments.operands)
    tensors = has_tensor([*form.leaves, *arguments.leaves])
    return tree_unflatten([as_caller_type(part, tensors, set()) for part in form.parts(x)], form.spec)


def _x_of(found: Any, api: str) -> Any:
    """What a solver found; of a result of SciPy's its ``x``, with a warning if there was no success."""
    if not (hasattr(found, "x") and hasattr(found, "success")):
        return found
    if not found.success:
        errors.warn(f"{api}(): the solver reports no success: {getattr(found, 'message', '')}")
    return found.x


# -- what differentiation reaches a solution by ------------------------------------------------------------------------


def _attached(equation: Any, value: Tensor, operands: list[Any]) -> Any:
    """A solution as a function of its operands, and of what the user's function uses beside them."""
    with_constants = equation.residual(value, *map(_constant, operands))
    beside = _derivatives_of(with_constants)
    if not beside and _maps(with_constants) <= _maps(value):
        return Solution.apply(equation, value, None, *operands)
    if len(beside) != 1 or beside.union(*map(_derivatives_of, operands)) != {_TAPE}:
        raise _captured(equation.api)
    return Solution.apply(equation, value, with_constants, *operands)


def _captured(api: str) -> RuntimeError:
    return RuntimeError(
        f"{api}(): the function uses something from around it that is differentiated more than once, or is inside of a "
        f"transformation (vmap, jvp, ...). Pass it as an argument: {api}(lambda x, a: ..., x0, a)"
    )


def _constant(x: Any) -> Any:
    """A value without history and tangents, as batched as it is."""
    if isinstance(x, Tensor):
        return wrapped(_constant(x._raw))
    if type(x) is Dual:
        return _constant(x.primal)
    if type(x) is Batched:
        inner = _constant(x.payload)
        return Batched(inner._raw if isinstance(inner, Tensor) else inner, x.level, x.shared)
    return x


_TAPE = ("tape", 0)  # outside of all transformations


def _derivatives_of(x: Any) -> set[Any]:
    """The tapes and tangents that a value is on: for a tape how many are inside of it, for a tangent its level."""
    if isinstance(x, Tensor):
        inner = _derivatives_of(x._raw)
        return inner | {("tape", len(inner))} if x._edge is not None and recording() else inner
    if type(x) is Dual:
        inner = _derivatives_of(x.primal)
        return inner if x.tangent is None else inner | {x.level}
    if type(x) is Batched:
        return _derivatives_of(x.payload)
    return set()


def _maps(x: Any) -> set[Any]:
    """The levels of vmap that have different numbers of a value for their examples."""
    if isinstance(x, Tensor):
        return _maps(x._raw)
    if type(x) is Dual:
        return _maps(x.primal)
    if type(x) is Batched:
        return _maps(x.payload) | (set() if x.shared else {x.level})
    return set()
