"""Solutions of equations as single operations, with rules from the implicit function theorem.

``implicit`` and ``scipy.sparse.linalg`` call ``solve_equation``.

If F(x, θ) = 0, then ∂F/∂x · dx + ∂F/∂θ · dθ = 0 for a small change of θ. The derivative therefore does not depend on the solver, and
the solver is not recorded. The rules solve a linear system with the matrix A = ∂F/∂x.

The solution v of the linear system is also the solution of an equation, A v - b = 0. The same rules differentiate it, with the same
factors of A, to any order.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.arrays.tree import tree_unflatten
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.jacobians.api import jacobian
from chainrule._src.jacobians.factors import Factors
from chainrule._src.jacobians.forms import Arguments, Form
from chainrule._src.jacobians.newton import newton_minimum, newton_root
from chainrule._src.messages import errors
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.kinds import discrete
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.levels import call_untraced
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.node import Node
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule._src.transforms.arguments import as_caller_type, has_tensor
from chainrule._src.transforms.function import Function
from chainrule._src.transforms.function_rule import in_graph
from chainrule._src.transforms.grad import vjp
from chainrule._src.transforms.jvp import jvp

ndarray = np.ndarray
SPARSE = 64  # minimum number of unknowns of a sparse Jacobian
KEPT = 8  # number of factorizations that an equation caches, of its last points (the examples of a batch)


# -- equations ---------------------------------------------------------------------------------------------------------


class Equation:
    """F(x, θ) = 0, with x a vector.

    Args:
        api: the name of the called function.
        form: the structure of x.
        residual: F, of a vector and the user's arguments.
        tol: largest relative change of a solution by a Newton step. None: the fourth root of the precision.
        objective: the minimized function, for a minimum.
    """

    def __init__(
        self,
        api: str,
        form: Form,
        residual: AnyFunction,
        tol: float | None,
        objective: AnyFunction | None = None,
    ) -> None:
        self.api = api
        self.form = form
        self.of_arguments = residual
        self.tol = float(np.finfo(form.dtype).eps) ** 0.25 if tol is None else tol
        self.objective = objective
        self._factored: list[tuple[list[ndarray], Factors]] = []

    arguments: Arguments

    def residual(self, x: object, *operands: object) -> Tensor:
        r = self.of_arguments(x, *self.arguments.with_tensors(operands))
        if tuple(r.shape) != (self.form.size,):
            raise ValueError(
                f"{self.api}(): the function returned {math.prod(r.shape)} numbers for {self.form.size} unknowns: the number "
                "of equations must equal the number of unknowns"
            )
        return r

    def plain_residual(self, x: ndarray, operands: Sequence[object]) -> ndarray:
        with no_grad():
            return self._plain(self.residual(wrap(x), *operands))

    def jacobian(self, x: ndarray, operands: Sequence[object]) -> Any:
        """Return ∂F/∂x: dense, or sparse if it is large and mostly zero."""
        layout = "auto" if x.size >= SPARSE and importlib.util.find_spec("scipy") else "dense"
        with no_grad():
            found = jacobian(lambda x: self.residual(x, *operands), wrap(x), layout=layout)
        return self._plain(found) if isinstance(found, Tensor) else found

    def _plain(self, found: Tensor) -> ndarray:
        """Return the data of a result for constant arguments; raise if the function captured traced values."""
        if type(found._raw) is not ndarray:
            raise _captured(self.api)
        return found._raw

    def factors(self, x: ndarray, operands: Sequence[Tensor]) -> Factors:
        """Return the factors of ∂F/∂x at a solution; they are cached.

        Raises:
            numpy.linalg.LinAlgError: ∂F/∂x is singular.
        """
        point = [np.array(value) for value in (x, *(operand._raw for operand in operands))]
        for known, factors in self._factored:
            if all(map(np.array_equal, known, point)):
                return factors
        factors = Factors(self.jacobian(x, operands), self._singular())
        self._check(x, factors.solve(self.plain_residual(x, operands)))
        self._factored = [*self._factored[1 - KEPT :], (point, factors)]
        return factors

    def clear_factors(self) -> None:
        """Clear the cached factors, because values that the function captures may have changed."""
        self._factored = []

    def _singular(self) -> str:
        what = "the Hessian" if self.objective is not None else "the Jacobian ∂f/∂x"
        return (
            f"{self.api}(): {what} is singular at the solution, so the solution is not a differentiable function of the "
            "arguments there: it may not be isolated, or may vanish under a small change"
        )

    def _check(self, x: ndarray, step: ndarray) -> None:
        """Warn if x does not solve the equation within the tolerance."""
        error = float(np.max(np.abs(step))) / max(1.0, float(np.max(np.abs(x))))
        if not error <= self.tol:
            errors.warn(
                f"{self.api}(): a derivative is taken at a point that does not solve the equation: a Newton step would change "
                f"it by {error:.1e}, relative to its size. The derivative is correct only at a solution: run the solver longer, "
                f"or pass tol={error:.0e} to accept this point"
            )

    def find(self, x0: ndarray, operands: Sequence[Tensor]) -> ndarray:
        """Find a solution by Newton's method."""

        def residual(x: ndarray) -> ndarray:
            return self.plain_residual(x, operands)

        def matrix(x: ndarray) -> Any:
            return self.jacobian(x, operands)

        objective = self.objective
        if objective is None:
            return newton_root(residual, matrix, x0, self.api)
        args = self.arguments.with_tensors(operands)
        return newton_minimum(lambda x: float(objective(wrap(x), *args)), residual, matrix, x0, self.api)


class LinearSystem:
    """The equation A v - b = 0, where A is ∂F/∂x of an equation or its transpose. The operands are b, x, and those of F."""

    api: str

    def __init__(self, equation: Equation | LinearSystem, transposed: bool) -> None:
        self.equation = equation
        self.transposed = transposed
        self.api = equation.api

    def residual(self, v: object, b: object, x: Tensor, *operands: Tensor) -> Tensor:
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
def solved(*operands: object, compute: Callable[..., ndarray]) -> ndarray:
    """Run a solver on plain arrays, without recording and outside of all transformations; the result is a constant."""
    with no_grad():
        return call_untraced(lambda: compute(*map(wrap, operands)))  # the tensors are made outside of the trace, too


class Solution(Function):
    """A solution with a known value, as a function of the equation's operands.

    ``captured`` is the residual with constant operands, if the user's function captures values that are differentiated; else
    None.
    """

    @staticmethod
    def forward(equation: object, value: Tensor, captured: Tensor | None, *operands: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[object, ...], output: Tensor) -> None:
        ctx.equation, _, captured, *operands = inputs
        ctx.captures = captured is not None
        ctx.save_for_backward(output, *operands)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        if g is None:
            return (None,) * (3 + len(ctx.saved_tensors[1:]))
        if not ctx.captures:
            return _pulled(ctx, g)
        if in_graph():
            raise _captured(ctx.equation.api)
        with no_grad():  # captured values are on the tape
            return _pulled(ctx, g)

    @staticmethod
    def jvp(ctx: Any, equation: object, value: object, captured: object, *tangents: Tensor | None) -> Tensor | None:
        x, *operands = ctx.saved_tensors
        at = [i for i, t in enumerate(tangents) if t is not None and operands[i]._raw.dtype.kind in "fc"]
        if not at:
            return None
        points, directions = tuple(operands[i] for i in at), tuple(tangents[i] for i in at)
        change = jvp(_with_operands(ctx.equation, x, operands, at), points, directions)[1]
        return _solve(ctx.equation, -change, x, operands, transposed=False)


def _pulled(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients of a solution's operands, from the gradient of the solution."""
    x, *operands = ctx.saved_tensors
    w = -_solve(ctx.equation, g, x, operands, transposed=True)
    outside = isinstance(ctx._now, Node) and "call" not in ctx._now.params  # else needs_input_grad is not available
    needed = ctx.needs_input_grad[3:] if outside else [True] * len(operands)
    at = [i for i, x in enumerate(operands) if needed[i] and x._raw.dtype.kind in "fc"]
    grads: list[Tensor | None] = [None] * len(operands)
    if at:
        pulled = vjp(_with_operands(ctx.equation, x, operands, at), *[operands[i] for i in at])[1](w)
        for i, gradient in zip(at, pulled, strict=True):
            grads[i] = gradient
    return None, None, w if ctx.captures else None, *grads


def _with_operands(equation: Any, x: Tensor, operands: Sequence[object], at: list[int]) -> AnyFunction:
    """Return the residual as a function of some of its operands."""

    def residual(*some: object) -> Tensor:
        every = list(operands)
        for i, operand in zip(at, some, strict=True):
            every[i] = operand
        return equation.residual(x, *every)

    return residual


def _solve(equation: Equation | LinearSystem, b: Tensor, x: Tensor, operands: list[Tensor], transposed: bool) -> Tensor:
    """Solve A v = b (or Aᵀ v = b), for the Jacobian A of an equation at its solution x."""

    def compute(b: Tensor, x: Tensor, *operands: Tensor) -> ndarray:
        return equation.factors(x._raw, operands).solve(b._raw, transposed).astype(b._raw.dtype)

    value = bind(solved, [b, x, *operands], {"compute": compute})
    return attach_derivatives(LinearSystem(equation, transposed), value, [b, x, *operands])


def solve_equation(form: Form, args: tuple[object, ...], equation: Equation, find: AnyFunction | None) -> Any:
    """Solve an equation; return the solution in the user's containers, differentiable in its arguments."""
    arguments = equation.arguments = Arguments(args)
    count = len(form.start)

    def compute(*operands: Tensor) -> ndarray:
        equation.clear_factors()
        starts, rest = operands[:count], operands[count:]
        if find is None:
            start = np.concatenate([np.reshape(x._raw, -1) for x in starts]).astype(form.dtype)
            return equation.find(start, rest)
        leaves = [
            x if isinstance(leaf, (Tensor, ArrayLike)) else x._raw for x, leaf in zip(starts, form.leaves, strict=True)
        ]
        found = find(tree_unflatten(leaves, form.spec), *arguments.with_tensors(rest, plain=True))
        return form.pack(_x_of(found, equation.api), "the solver's result")

    value = bind(solved, [*form.start, *arguments.operands], {"compute": compute})
    x = attach_derivatives(equation, value, arguments.operands)
    tensors = has_tensor([*form.leaves, *arguments.leaves])
    return tree_unflatten([as_caller_type(part, tensors, set()) for part in form.parts(x)], form.spec)


def _x_of(found: object, api: str) -> Any:
    """Return a solver's solution; for a SciPy result its ``x``, with a warning if ``success`` is false."""
    if not (hasattr(found, "x") and hasattr(found, "success")):
        return found
    if not found.success:
        errors.warn(f"{api}(): the solver did not succeed: {getattr(found, 'message', '')}")
    return found.x


# -- attaching derivatives ---------------------------------------------------------------------------------------------


def attach_derivatives(equation: Equation | LinearSystem, value: Tensor, operands: list[Tensor]) -> Tensor:
    """Return a solution as a differentiable function of its operands, and of the values that the user's function captures."""
    with_constants = equation.residual(value, *map(_constant, operands))
    captured = derivatives_of(with_constants)
    if not captured and _maps(with_constants) <= _maps(value):
        return Solution.apply(equation, value, None, *operands)
    if len(captured) != 1 or captured.union(*map(derivatives_of, operands)) != {_TAPE}:
        raise _captured(equation.api)
    return Solution.apply(equation, value, with_constants, *operands)


def _captured(api: str) -> RuntimeError:
    return RuntimeError(
        f"{api}(): the function captures a value that is differentiated more than once, or is inside of a transformation "
        f"(vmap, jvp, ...). Pass it as an argument: {api}(lambda x, a: ..., x0, a)"
    )


def _constant(x: object) -> Any:
    """Return a value without history and tangents, but with its batch axes."""
    if isinstance(x, Tensor):
        return tensor_of(_constant(x._raw))
    if type(x) is Dual:
        return _constant(x.primal)
    if type(x) is Batched:
        inner = _constant(x.payload)
        return Batched(inner._raw if isinstance(inner, Tensor) else inner, x.level, x.shared)
    return x


_TAPE = ("tape", 0)  # outside of all transformations


def derivatives_of(x: object) -> set[object]:
    """Return the tapes and tangent levels of a value: ("tape", number of derivatives inside of it), or a Dual's level."""
    if isinstance(x, Tensor):
        inner = derivatives_of(x._raw)
        return inner | {("tape", len(inner))} if x._edge is not None and is_recording() else inner
    if type(x) is Dual:
        inner = derivatives_of(x.primal)
        return inner if x.tangent is None else inner | {x.level}
    if type(x) is Batched:
        return derivatives_of(x.payload)
    return set()


def _maps(x: object) -> set[object]:
    """Return the vmap levels at which a value differs between examples."""
    if isinstance(x, Tensor):
        return _maps(x._raw)
    if type(x) is Dual:
        return _maps(x.primal)
    if type(x) is Batched:
        return _maps(x.payload) | (set() if x.shared else {x.level})
    return set()
