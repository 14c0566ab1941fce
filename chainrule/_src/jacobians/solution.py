"""A solution as one operation, with rules by the implicit function theorem.

Where F(x, θ) = 0 holds, a small change of θ moves x so that it goes on holding: ∂F/∂x · dx + ∂F/∂θ · dθ = 0. So how x was
found does not matter, and none of it is recorded: the rules solve a linear system with A = ∂F/∂x.

That system's solution is a solution as well, of the equation A v - b = 0, and gets its own derivatives by the same rules with
the same factors of A. So derivatives of any order follow.
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
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import LOCAL, recording
from chainrule._src.tape.node import Node
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap, wrapped
from chainrule._src.transforms.arguments import as_caller_type, has_tensor
from chainrule._src.transforms.function import Function
from chainrule._src.transforms.function_rule import in_graph
from chainrule._src.transforms.grad import vjp
from chainrule._src.transforms.jvp import jvp

ndarray = np.ndarray
SPARSE = 64  # unknowns, from which on a sparse Jacobian is worth looking for
KEPT = 8  # factored matrices that an equation remembers: of the last points, such as the examples of a batch


# -- equations ---------------------------------------------------------------------------------------------------------


class Equation:
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
                f"{self.api}(): the function returned {math.prod(r.shape)} numbers for {self.form.size} unknowns: there must "
                "be as many equations as unknowns"
            )
        return r

    def plain_residual(self, x: ndarray, operands: Sequence[object]) -> ndarray:
        with no_grad():
            return self._plain(self.residual(wrap(x), *operands))

    def jacobian(self, x: ndarray, operands: Sequence[object]) -> Any:
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
        self._factored = [*self._factored[1 - KEPT :], (point, factors)]
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


class LinearSystem:
    """A v - b = 0, with A = ∂F/∂x of an equation, or its transpose; the operands are b, x and those of the equation."""

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
        with no_grad():  # what the function captures is on the tape
            return _pulled(ctx, g)

    @staticmethod
    def jvp(ctx: Any, equation: object, value: object, captured: object, *tangents: Tensor | None) -> Tensor | None:
        x, *operands = ctx.saved_tensors
        at = [i for i, t in enumerate(tangents) if t is not None and operands[i]._raw.dtype.kind in "fc"]
        if not at:
            return None
        points, directions = tuple(operands[i] for i in at), tuple(tangents[i] for i in at)
        change = jvp(_in_places(ctx.equation, x, operands, at), points, directions)[1]
        return _solve(ctx.equation, -change, x, operands, transposed=False)


def _pulled(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of all that a solution was made of, for one of the solution."""
    x, *operands = ctx.saved_tensors
    w = -_solve(ctx.equation, g, x, operands, transposed=True)
    outside = isinstance(ctx._now, Node) and "call" not in ctx._now.params  # inside of transformations it does not know
    needed = ctx.needs_input_grad[3:] if outside else [True] * len(operands)
    at = [i for i, x in enumerate(operands) if needed[i] and x._raw.dtype.kind in "fc"]
    grads: list[Tensor | None] = [None] * len(operands)
    if at:
        pulled = vjp(_in_places(ctx.equation, x, operands, at), *[operands[i] for i in at])[1](w)
        for i, gradient in zip(at, pulled, strict=True):
            grads[i] = gradient
    return None, None, w if ctx.captures else None, *grads


def _in_places(equation: Any, x: Tensor, operands: Sequence[object], at: list[int]) -> AnyFunction:
    """The residual as a function of some of its operands."""

    def residual(*some: object) -> Tensor:
        every = list(operands)
        for i, operand in zip(at, some, strict=True):
            every[i] = operand
        return equation.residual(x, *every)

    return residual


def _solve(equation: Equation | LinearSystem, b: Tensor, x: Tensor, operands: list[Tensor], transposed: bool) -> Tensor:
    """v with A v = b (or Aᵀ v = b), for the Jacobian A of an equation at its solution x."""

    def compute(b: Tensor, x: Tensor, *operands: Tensor) -> ndarray:
        return equation.factors(x._raw, operands).solve(b._raw, transposed).astype(b._raw.dtype)

    value = bind(solved, [b, x, *operands], {"compute": compute})
    return attached(LinearSystem(equation, transposed), value, [b, x, *operands])


def solution(form: Form, args: tuple[object, ...], equation: Equation, find: AnyFunction | None) -> Any:
    """The solution of an equation in the user's containers, attached to what it depends on."""
    arguments = equation.arguments = Arguments(args)
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
    x = attached(equation, value, arguments.operands)
    tensors = has_tensor([*form.leaves, *arguments.leaves])
    return tree_unflatten([as_caller_type(part, tensors, set()) for part in form.parts(x)], form.spec)


def _x_of(found: object, api: str) -> Any:
    """What a solver found; of a result of SciPy's its ``x``, with a warning if there was no success."""
    if not (hasattr(found, "x") and hasattr(found, "success")):
        return found
    if not found.success:
        errors.warn(f"{api}(): the solver reports no success: {getattr(found, 'message', '')}")
    return found.x


# -- what differentiation reaches a solution by ------------------------------------------------------------------------


def attached(equation: Equation | LinearSystem, value: Tensor, operands: list[Tensor]) -> Tensor:
    """A solution as a function of its operands, and of what the user's function uses beside them."""
    with_constants = equation.residual(value, *map(_constant, operands))
    beside = derivatives_of(with_constants)
    if not beside and _maps(with_constants) <= _maps(value):
        return Solution.apply(equation, value, None, *operands)
    if len(beside) != 1 or beside.union(*map(derivatives_of, operands)) != {_TAPE}:
        raise _captured(equation.api)
    return Solution.apply(equation, value, with_constants, *operands)


def _captured(api: str) -> RuntimeError:
    return RuntimeError(
        f"{api}(): the function uses something from around it that is differentiated more than once, or is inside of a "
        f"transformation (vmap, jvp, ...). Pass it as an argument: {api}(lambda x, a: ..., x0, a)"
    )


def _constant(x: object) -> Any:
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


def derivatives_of(x: object) -> set[object]:
    """The tapes and tangents that a value is on: for a tape how many are inside of it, for a tangent its level."""
    if isinstance(x, Tensor):
        inner = derivatives_of(x._raw)
        return inner | {("tape", len(inner))} if x._edge is not None and recording() else inner
    if type(x) is Dual:
        inner = derivatives_of(x.primal)
        return inner if x.tangent is None else inner | {x.level}
    if type(x) is Batched:
        return derivatives_of(x.payload)
    return set()


def _maps(x: object) -> set[object]:
    """The levels of vmap that have different numbers of a value for their examples."""
    if isinstance(x, Tensor):
        return _maps(x._raw)
    if type(x) is Dual:
        return _maps(x.primal)
    if type(x) is Batched:
        return _maps(x.payload) | (set() if x.shared else {x.level})
    return set()
