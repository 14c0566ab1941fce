"""The single checks that ``gradcheck`` is made of. Each raises :class:`GradcheckError`, or returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule.autograd.backward import grad
from chainrule.core.tensor import Tensor, wrap
from chainrule.func import vmap
from chainrule.testing import jacobians
from chainrule.testing.jacobians import array_of, outputs_of, parts_of, pushed, recorded
from chainrule.testing.samples import normal_like


@dataclass(frozen=True)
class Mismatch:
    """Two Jacobians that should be equal, with a row for each element of the input and a column for each of the output.

    ``output`` and ``input`` are positions.
    """

    output: int
    input: int
    output_shape: tuple[int, ...]
    input_shape: tuple[int, ...]
    numerical: Any
    analytical: Any


class GradcheckError(RuntimeError):
    """Raised by ``gradcheck`` and ``gradgradcheck``. ``mismatch`` has the numbers, where the reason is in them."""

    mismatch: Mismatch | None = None


@dataclass(frozen=True)
class Problem:
    """A function at a point, and how exactly its derivatives are to be right there.

    ``wanted`` has the positions of the inputs to check.
    """

    func: Any
    inputs: tuple[Any, ...]
    wanted: list[int]
    eps: float
    atol: float
    rtol: float
    nondet_tol: float = 0.0
    check_grad_dtypes: bool = False

    def outputs(self) -> tuple[Tensor, ...]:
        return outputs_of(self.func(*self.inputs))

    def xs(self) -> list[Tensor]:
        return [self.inputs[i] for i in self.wanted]

    def sizes(self, outputs: Sequence[Tensor]) -> dict[int, int]:
        """The numbers of elements of the floating outputs, by position."""
        return {k: y.numel() for k, y in enumerate(outputs) if y.dtype.kind in "fc"}


def check_jacobians(problem: Problem, backward: bool, forward: bool) -> None:
    """Backward and forward mode against differences, element by element."""
    outputs = problem.outputs()
    sizes = problem.sizes(outputs)
    numerical = {i: jacobians.numerical(problem.func, problem.inputs, i, problem.eps, sizes) for i in problem.wanted}
    if not any(y.requires_grad for y in outputs):
        if any(
            np.any(j != 0) for by_output in numerical.values() for units in by_output.values() for j in units.values()
        ):
            raise GradcheckError(
                "Numerical gradient for function expected to be zero: none of its outputs requires grad, but they "
                "change with the inputs. Something in it cuts the graph (detach, no_grad, conversion to NumPy)."
            )
        return
    if backward:
        for k, y in enumerate(outputs):
            for part in parts_of(y) if y.requires_grad else ():
                found = _analytical(problem, y, part)
                for i, got in zip(problem.wanted, found):
                    expected = jacobians.as_gradient(numerical[i][k], problem.inputs[i], part)
                    if not np.allclose(got, expected, problem.rtol, problem.atol):
                        text = _mismatch(expected, got, k, i, part, y.dtype.kind == "c", False)
                        raise _differs(text, k, i, y, problem.inputs[i], expected, got)
    if forward:
        for i in problem.wanted:
            x = problem.inputs[i]
            for unit in parts_of(x):
                pushed_ = jacobians.by_forward(problem.func, problem.inputs, i, unit, sizes)
                for k in sizes:
                    got, expected = pushed_[k], numerical[i][k][unit]
                    if outputs[k].requires_grad and not np.allclose(got, expected, problem.rtol, problem.atol):
                        text = _mismatch(expected, got, k, i, unit, x.dtype.kind == "c", True)
                        raise _differs(text, k, i, outputs[k], x, expected, got)


def _analytical(problem: Problem, y: Tensor, part: Any) -> list[Any]:
    """One output's Jacobians by backward mode, after two runs that must agree."""
    found, dtypes, sizes = jacobians.by_backward(y, problem.xs(), part)
    again, _, _ = jacobians.by_backward(y, problem.xs(), part)
    if not dtypes and problem.check_grad_dtypes:
        raise GradcheckError("Gradient has dtype mismatch: a gradient does not have the dtype of its input")
    if not sizes:
        raise GradcheckError("Analytical gradient has incorrect size: a gradient does not have the shape of its input")
    for one, two in zip(found, again):
        if not np.abs(one - two).max(initial=0) <= problem.nondet_tol and not np.array_equal(one, two, equal_nan=True):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                f"gives different values (by up to {np.abs(one - two).max():.3g}). The tolerance for nondeterminism "
                f"was {problem.nondet_tol}. (Does the backward pass draw random numbers, or keep state? If this is "
                "meant, give nondet_tol.)"
            )
    return found


def _differs(text: str, k: int, i: int, y: Tensor, x: Tensor, expected: Any, got: Any) -> GradcheckError:
    error = GradcheckError(text)
    error.mismatch = Mismatch(k, i, tuple(y.shape), tuple(x.shape), expected, got)
    return error


def _mismatch(expected: Any, got: Any, k: int, i: int, part: Any, is_complex: bool, forward: bool) -> str:
    prefix = ""
    if is_complex:
        word, element = ("imaginary" if part == 1j else "real"), ("inputs" if forward else "outputs")
        prefix = f"While considering the {word} part of complex {element} only, "
    mode = "computed with forward mode " if forward else ""
    return (
        f"{prefix}Jacobian {mode}mismatch for output {k} with respect to input {i},\n"
        f"numerical:{_printed(expected)}\nanalytical:{_printed(got)}\n"
    )


def _printed(value: Any) -> str:
    return repr(wrap(value)) if getattr(value, "ndim", 0) else repr(float(value))


def check_combinations(problem: Problem, backward: bool, forward: bool) -> None:
    """The same on one random combination of the Jacobian's entries: a few runs, however large the inputs are."""
    outputs = problem.outputs()
    floating = list(problem.sizes(outputs))
    for n, i in enumerate(problem.wanted):
        x = problem.inputs[i]
        u = _weights(x, 29 + n)
        moved = jacobians.difference(problem.func, problem.inputs, i, u, problem.eps, floating)
        if not any(y.requires_grad for y in outputs):
            if any(np.any(m != 0) for m in moved):
                raise GradcheckError("Numerical gradient for function expected to be zero")
            continue
        tangents = pushed(problem.func, problem.inputs, [i], [wrap(u.astype(x.dtype))]) if forward else None
        for k, slope in zip(floating, moved):
            y = outputs[k]
            if not y.requires_grad:
                continue
            v = _weights(y, 61 + k).real
            atol = problem.atol * np.abs(u).sum() * np.abs(v).sum()
            for part in parts_of(y):
                expected = _inner(part * v, slope)
                found = [(False, _pulled(problem, y, i, part * v, u))] if backward else []
                if tangents is not None:
                    found.append((True, _inner(part * v, array_of(tangents[k]))))
                for is_forward, got in found:
                    if not np.allclose(got, expected, problem.rtol, atol):
                        is_complex = y.dtype.kind == "c" and not is_forward
                        text = _mismatch(expected, got, k, i, part, is_complex, is_forward)
                        raise GradcheckError(text + _in_slow_mode(problem, not is_forward, is_forward))


def _pulled(problem: Problem, y: Tensor, i: int, v: Any, u: Any) -> float:
    x = problem.inputs[i]
    twice = [grad(y, [x], wrap(np.asarray(v, y.dtype)), retain_graph=True, allow_unused=True)[0] for _ in range(2)]
    if twice[0] is None or twice[1] is None:
        return 0.0
    if problem.check_grad_dtypes and twice[0].dtype != x.dtype:
        raise GradcheckError("Gradient has dtype mismatch: a gradient does not have the dtype of its input")
    one, two = _inner(array_of(twice[0]), u), _inner(array_of(twice[1]), u)
    if abs(one - two) > problem.nondet_tol:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
            f"different values. The tolerance for nondeterminism was {problem.nondet_tol}."
        )
    return one


def _weights(x: Any, seed: int) -> Any:
    """Random numbers between 0.2 and 1 in every place (and for complex x in both parts)."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(0.2, 1, tuple(x.shape))
    return u + 1j * rng.uniform(0.2, 1, tuple(x.shape)) if x.dtype.kind == "c" else u


def _inner(a: Any, b: Any) -> float:
    return float(np.real(np.sum(np.conj(a) * b)))


def _in_slow_mode(problem: Problem, backward: bool, forward: bool) -> str:
    text = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed in fast mode: they are "
        "random combinations of the Jacobians' entries. "
    )
    try:
        check_jacobians(problem, backward, forward)
    except GradcheckError as error:
        return f"{text}In slow mode:\n\n{error}"
    return (
        f"{text}Fast gradcheck failed but element-wise differences are small. This means that the check passes with "
        "fast_mode=False."
    )


def check_zero(problem: Problem) -> None:
    """Backward of zeros gives zeros, of the inputs' dtypes and shapes."""
    outputs, xs = recorded(problem.func(*problem.inputs)), problem.xs()
    if not outputs:
        return
    for g, x in zip(_of_zeros(outputs, xs), xs):
        if g is None:
            continue
        if np.any(array_of(g) != 0):
            raise GradcheckError(
                "backward not multiplied by grad_output: the gradient of an output with grad_output 0 is not 0. "
                "The backward must be linear in the gradient it is given."
            )
        if g.dtype != x.dtype:
            raise GradcheckError(f"grad is incorrect type ({g.dtype} is not {x.dtype})")
        if g.shape != x.shape:
            raise GradcheckError(f"grad is incorrect size ({tuple(g.shape)} is not {tuple(x.shape)})")


def _of_zeros(outputs: Sequence[Tensor], xs: Sequence[Tensor]) -> tuple[Any, ...]:
    zeros = [wrap(np.zeros(y.shape, y.dtype)) for y in outputs]
    return grad(list(outputs), list(xs), zeros, allow_unused=True)


def check_undefined(problem: Problem) -> None:
    """Backward works where one of several outputs was not used, so that no gradient arrives there."""
    count = len(recorded(problem.func(*problem.inputs)))
    for left_out in range(count) if count > 1 else ():
        outputs = recorded(problem.func(*problem.inputs))
        try:
            found = _of_zeros([y for k, y in enumerate(outputs) if k != left_out], problem.xs())
        except Exception as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: with no gradient for output "
                f"{left_out} it raised {type(error).__name__}: {error}. (In a Function with set_materialize_grads(False) "
                "the gradient of an unused output is None.)"
            ) from error
        if any(g is not None and np.any(array_of(g) != 0) for g in found):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero: "
                f"without a gradient for output {left_out}, and zeros for the others, they are not."
            )


def check_undefined_tangents(problem: Problem) -> None:
    """Forward mode gives the same whether an input's tangent is zero or it has none."""
    tangents = [wrap(_normal(problem.inputs[i], 83 + i)) for i in problem.wanted]
    for n, i in enumerate(problem.wanted):
        zero = [*tangents[:n], wrap(np.zeros_like(array_of(tangents[n]))), *tangents[n + 1 :]]
        with_zero = pushed(problem.func, problem.inputs, problem.wanted, zero)
        others = [j for j in problem.wanted if j != i]
        if not others:
            continue
        without = pushed(problem.func, problem.inputs, others, tangents[:n] + tangents[n + 1 :])
        for k, (got, expected) in enumerate(zip(without, with_zero)):
            if not np.allclose(array_of(got), array_of(expected)):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {k} when input {i} has an undefined tangent "
                    f"value. Got: {got!r} but expected: {expected!r}"
                )


def _normal(x: Tensor, seed: int) -> Any:
    return normal_like(array_of(x), seed)


def check_batched(problem: Problem) -> None:
    """One batched backward pass against one pass for each example."""
    xs = problem.xs()
    for k, y in enumerate(problem.outputs()):
        if not y.requires_grad:
            continue
        gs = [_normal(y, 53 + b) for b in range(2)]
        loop = [grad(y, xs, wrap(g), retain_graph=True, allow_unused=True) for g in gs]
        try:
            together = grad(y, xs, wrap(np.stack(gs)), retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}") from error
        for n, (i, x) in enumerate(zip(problem.wanted, xs)):
            rows = np.stack([np.zeros(x.shape) if g is None else array_of(g) for g in (one[n] for one in loop)])
            _same_batch(together[n], rows, k, i, "gradcheck or gradgradcheck failed while testing batched gradients")


def check_batched_forward(problem: Problem) -> None:
    """One batched forward pass against one pass for each example."""
    for i in problem.wanted:
        tangents = [_normal(problem.inputs[i], 71 + b) for b in range(2)]

        def push(t: Tensor, i: int = i) -> tuple[Tensor, ...]:
            return pushed(problem.func, problem.inputs, [i], [t])

        loop = [push(wrap(t)) for t in tangents]
        try:
            together = vmap(push)(wrap(np.stack(tangents)))
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}") from error
        for k in range(len(loop[0])):
            rows = np.stack([array_of(one[k]) for one in loop])
            _same_batch(together[k], rows, k, i, "gradcheck failed while testing batched gradients in forward mode")


def _same_batch(batch: Tensor | None, rows: Any, k: int, i: int, what: str) -> None:
    got = np.zeros_like(rows) if batch is None else array_of(batch)
    if got.shape != rows.shape or not np.allclose(got, rows):
        raise GradcheckError(
            f"For output {k} and input {i}:\n\n{what}: vmap over the derivative does not give what one call for each "
            f"example gives.\n\nGot:\n{wrap(got)!r}\n\nExpected:\n{wrap(rows)!r}"
        )


def overlapping(array: Any) -> bool:
    """Whether two elements of the array are the same memory."""
    offsets = np.zeros((1,), np.int64)
    for length, step in zip(array.shape, array.strides):
        offsets = (offsets[:, None] + np.arange(length) * step).reshape(-1)
    return len(np.unique(offsets)) < array.size


def nested_tensors(inputs: Sequence[Any]) -> Iterator[int]:
    """The positions of inputs that are containers with tensors that require grad."""
    for i, x in enumerate(inputs):
        items = x.values() if isinstance(x, dict) else x if isinstance(x, (tuple, list)) else ()
        if any(isinstance(item, Tensor) and item.requires_grad for item in items):
            yield i
