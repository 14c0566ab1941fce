"""The individual checks of ``gradcheck``. Each raises :class:`GradcheckError` if it fails.

Every Jacobian here has a row for each element of the input and a column for each element of the output. A complex input is perturbed
along 1 and along i. The real and the imaginary part of a complex output are checked separately (``part`` is 1 or i), because a
gradient is defined for real numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule._src.messages.kinds import GradcheckError
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule._src.transforms.backward import grad
from chainrule._src.transforms.dense import compute_rows
from chainrule._src.transforms.differences import (
    central_differences,
    normal_like,
    real_inner_product,
    unit_vectors,
    units_of,
)
from chainrule._src.transforms.pushforward import JvpRun


class Mismatch(NamedTuple):
    """Two Jacobians that should be equal, with a row for each element of the input and a column for each of the output.

    ``output`` and ``input`` are positions.
    """

    output: int
    input: int
    output_shape: tuple[int, ...]
    input_shape: tuple[int, ...]
    numerical: Any
    analytical: Any


def outputs_of(result: Tensor | tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]:
    """Return the result of a function as a tuple of tensors."""
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    for y in outputs:
        if not isinstance(y, Tensor):
            raise TypeError(f"gradcheck expects the function to return tensors, but it returned {type(y).__name__}")
    return outputs


def recorded_outputs(result: Tensor | tuple[Tensor, ...] | list[Tensor]) -> tuple[Tensor, ...]:
    """Return the outputs that require grad."""
    return tuple([y for y in outputs_of(result) if y.requires_grad])


def detached_array(x: Tensor) -> Any:
    """Return the values, without the graph."""
    return x.detach()._array()


class Checks(NamedTuple):
    """A function at a point, and the tolerances for its derivatives.

    ``wanted`` has the positions of the inputs to check.
    """

    func: AnyFunction
    inputs: tuple[Any, ...]
    wanted: list[int]
    eps: float
    atol: float
    rtol: float
    nondet_tol: float = 0.0
    check_grad_dtypes: bool = False

    def outputs(self) -> tuple[Tensor, ...]:
        return outputs_of(self.func(*self.inputs))

    def recorded(self) -> tuple[Tensor, ...]:
        return recorded_outputs(self.func(*self.inputs))

    def xs(self) -> list[Tensor]:
        return [self.inputs[i] for i in self.wanted]

    def run(self) -> tuple[dict[int, Tensor], bool]:
        """Return the floating outputs by position, and whether any output requires grad."""
        outputs = self.outputs()
        floats = {k: y for k, y in enumerate(outputs) if y.dtype.kind in "fc"}
        return floats, any([y.requires_grad for y in outputs])

    # -- derivatives of all floating outputs -------------------------------------------------------------------------

    def difference(self, i: int, direction: AnyArray, floating: Iterable[int]) -> dict[int, Any]:
        """Return the central difference of each floating output, perturbing input i along ``direction``.

        The input is perturbed in place, so that a function that references it elsewhere (as a model's parameter) is affected.
        """
        data = self.inputs[i]._array()
        before = data.copy()
        seen: list[list[Any]] = []

        def moved(x: AnyArray) -> list[Any]:
            data[...] = x
            seen.append([detached_array(y).copy() for y in self.outputs()])
            for k in floating:
                for what in ("shape", "dtype"):
                    one, two = getattr(seen[0][k], what), getattr(seen[-1][k], what)
                    if one != two:
                        raise AssertionError(
                            f"Expected the function to return outputs with the same {what} when inputs are perturbed: output "
                            f"{k} has {what} {one} for a slightly larger input, and {two} for a slightly smaller one"
                        )
            return [seen[-1][k] for k in floating]

        try:
            return dict(zip(floating, central_differences(moved, before, direction, self.eps)))
        finally:
            data[...] = before

    def push(self, moving: Sequence[int], tangents: Sequence[AnyArray], size: int | None = None) -> list[AnyArray]:
        """Return the tangents of all outputs if the inputs ``moving`` have these tangents (``size``: length of a batch axis)."""

        def of_moving(*moved: Tensor) -> tuple[Tensor, ...]:
            at = [x.detach().requires_grad_() if isinstance(x, Tensor) and x.requires_grad else x for x in self.inputs]
            for position, x in zip(moving, moved):
                at[position] = x.requires_grad_()  # the function may call ``grad``
            return outputs_of(self.func(*at))

        run = JvpRun(of_moving, [self.inputs[n].detach()._raw for n in moving], tangents, "jvp", size, "error")
        axis = () if size is None else (size,)
        found = [(y, run.tangents(y)) for y in run.result]
        return [np.zeros((*axis, *y.shape), y.dtype) if t is None else detached_array(tensor_of(t)) for y, t in found]

    def by_input(self, i: int, floats: dict[int, Tensor], forward: bool) -> dict[Any, dict[int, Any]]:
        """Return for each unit and floating output the Jacobian with respect to input i, by forward mode or differences."""
        x = self.inputs[i]
        found = {}
        for unit in units_of(x):
            slopes: list[Any] = []
            for d in unit_vectors(x.shape, unit, np.result_type(type(unit), np.float64)):
                slopes.append(self.push([i], [d.astype(x.dtype)]) if forward else self.difference(i, d, floats))
            found[unit] = {
                k: np.array([s[k].reshape(-1) for s in slopes]).reshape(x.numel(), y.numel()) for k, y in floats.items()
            }
        return found

    def by_backward(self, y: Tensor, part: complex) -> list[Any]:
        """Return one output's Jacobian for each input by reverse mode; raise if two runs differ."""
        xs = self.xs()

        def pull(g: AnyArray, more: bool) -> Sequence[Any]:
            found = grad(y, xs, wrap(g), retain_graph=True, allow_unused=True)
            for x, r in zip(xs, found):
                self._check_dtype(r, x)
                if r is not None and r.shape != x.shape:
                    raise GradcheckError(
                        "Analytical gradient has incorrect size: a gradient does not have the shape of its input"
                    )
            return [None if r is None else detached_array(r) for r in found]

        def jacobians() -> list[Any]:
            found = compute_rows(pull, y, xs, 1, "gradcheck", part)
            return [j.reshape(y.numel(), x.numel()).T for j, x in zip(found, xs)]

        found = jacobians()
        for one, two in zip(found, jacobians()):
            apart = np.abs(one - two).max(initial=0)
            if not apart <= self.nondet_tol and not np.array_equal(one, two, equal_nan=True):
                raise self._not_reentrant(
                    f" (by up to {apart:.3g})",
                    " (Does the backward pass draw random numbers, or keep state? If intended, pass nondet_tol.)",
                )
        return found

    def _check_dtype(self, gradient: Tensor | None, x: Tensor) -> None:
        if self.check_grad_dtypes and gradient is not None and gradient.dtype != x.dtype:
            raise GradcheckError("Gradient has dtype mismatch: a gradient does not have the dtype of its input")

    def _not_reentrant(self, apart: str = "", hint: str = "") -> GradcheckError:
        return GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
            f"different values{apart}. The tolerance for nondeterminism was {self.nondet_tol}.{hint}"
        )

    # -- derivatives against differences -----------------------------------------------------------------------------

    def jacobians(self, backward: bool, forward: bool) -> None:
        """Compare reverse and forward mode with differences, element by element."""
        floats, depends = self.run()
        numerical = {i: self.by_input(i, floats, False) for i in self.wanted}
        if not depends:
            if any(np.any(j != 0) for by_unit in numerical.values() for js in by_unit.values() for j in js.values()):
                raise GradcheckError(
                    "Numerical gradient for function expected to be zero: none of its outputs requires grad, but they "
                    "change with the inputs. The function cuts the graph (detach, no_grad, conversion to NumPy)."
                )
            return
        recorded = {k: y for k, y in floats.items() if y.requires_grad}
        for k, y in recorded.items() if backward else ():
            for part in units_of(y):
                for i, got in zip(self.wanted, self.by_backward(y, part)):
                    expected = _as_gradient({unit: js[k] for unit, js in numerical[i].items()}, part)
                    self._compare(expected, got, k, y, i, part, y.dtype.kind == "c", False)
        for i in self.wanted if forward else ():
            for unit, js in self.by_input(i, floats, True).items():
                for k, y in recorded.items():
                    complex_input = self.inputs[i].dtype.kind == "c"
                    self._compare(numerical[i][unit][k], js[k], k, y, i, unit, complex_input, True)

    def _compare(
        self,
        expected: AnyArray,
        got: AnyArray,
        k: int,
        y: Tensor,
        i: int,
        part: object,
        is_complex: bool,
        forward: bool,
    ) -> None:
        if not np.allclose(got, expected, self.rtol, self.atol):
            text = _mismatch(expected, got, k, i, part, is_complex, forward)
            raise GradcheckError(text, Mismatch(k, i, tuple(y.shape), tuple(self.inputs[i].shape), expected, got))

    def combinations(self, backward: bool, forward: bool) -> None:
        """Compare one random combination of the Jacobian's entries; the number of runs does not depend on the input size."""
        floats, depends = self.run()
        for n, i in enumerate(self.wanted):
            x = self.inputs[i]
            u = _weights(x, 29 + n)
            slopes = self.difference(i, u, floats)
            if not depends:
                if any(np.any(slope != 0) for slope in slopes.values()):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
                continue
            tangents = self.push([i], [u.astype(x.dtype)]) if forward else None
            for k, y in floats.items():
                if not y.requires_grad:
                    continue
                v = _weights(y, 61 + k).real
                atol = self.atol * np.abs(u).sum() * np.abs(v).sum()
                for part in units_of(y):
                    expected = real_inner_product(part * v, slopes[k])
                    found = [(False, self._pulled(y, x, part * v, u))] if backward else []
                    if tangents is not None:
                        found.append((True, real_inner_product(part * v, tangents[k])))
                    for is_forward, got in found:
                        if not np.allclose(got, expected, self.rtol, atol):
                            is_complex = y.dtype.kind == "c" and not is_forward
                            text = _mismatch(expected, got, k, i, part, is_complex, is_forward)
                            raise GradcheckError(text + self._in_slow_mode(is_forward))

    def _pulled(self, y: Tensor, x: Tensor, v: TensorLike, u: TensorLike) -> float:
        """Return the inner product of u and the pullback of the cotangent v; raise if two runs differ."""
        found = []
        for _ in range(2):
            (r,) = grad(y, [x], wrap(np.asarray(v, y.dtype)), retain_graph=True, allow_unused=True)
            if r is None:
                return 0.0
            self._check_dtype(r, x)
            found.append(real_inner_product(detached_array(r), u))
        if abs(found[0] - found[1]) > self.nondet_tol:
            raise self._not_reentrant()
        return found[0]

    def _in_slow_mode(self, forward: bool) -> str:
        text = (
            "\nThe above quantities relating the numerical and analytical jacobians are computed in fast mode: they are "
            "random combinations of the Jacobians' entries. "
        )
        try:
            self.jacobians(not forward, forward)
        except GradcheckError as error:
            return f"{text}In slow mode:\n\n{error}"
        return (
            f"{text}Fast gradcheck failed but element-wise differences are small. This means that the check passes with "
            "fast_mode=False."
        )

    # -- zero and missing cotangents and tangents --------------------------------------------------------------------

    def zero_cotangents(self) -> None:
        """Check that the backward pass of zeros returns zeros, with the inputs' dtypes and shapes."""
        outputs, xs = self.recorded(), self.xs()
        for g, x in zip(_of_zeros(outputs, xs) if outputs else (), xs):
            if g is None:
                continue
            if np.any(detached_array(g) != 0):
                raise GradcheckError(
                    "backward not multiplied by grad_output: the gradient of an output with grad_output 0 is not 0. "
                    "backward must be linear in grad_output."
                )
            if g.dtype != x.dtype:
                raise GradcheckError(f"grad is incorrect type ({g.dtype} is not {x.dtype})")
            if g.shape != x.shape:
                raise GradcheckError(f"grad is incorrect size ({tuple(g.shape)} is not {tuple(x.shape)})")

    def undefined_cotangents(self) -> None:
        """Check that the backward pass works if one of several outputs is unused, and so has no gradient."""
        count = len(self.recorded())
        for left_out in range(count) if count > 1 else ():
            outputs = [y for k, y in enumerate(self.recorded()) if k != left_out]
            try:
                found = _of_zeros(outputs, self.xs())
            except Exception as error:
                raise GradcheckError(
                    "Expected backward function to handle undefined output grads: with no gradient for output "
                    f"{left_out} it raised {type(error).__name__}: {error}. (In a Function with "
                    "set_materialize_grads(False) the gradient of an unused output is None.)"
                ) from error
            if any(g is not None and np.any(detached_array(g) != 0) for g in found):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero: "
                    f"with no gradient for output {left_out} and zeros for the others, they are not."
                )

    def undefined_tangents(self) -> None:
        """Check that forward mode returns the same for a zero tangent and a missing tangent of an input."""
        tangents = [normal_like(detached_array(x), 83 + i) for i, x in zip(self.wanted, self.xs())]
        for n, i in enumerate(self.wanted if len(self.wanted) > 1 else ()):
            before, after = tangents[:n], tangents[n + 1 :]
            with_zero = self.push(self.wanted, [*before, np.zeros_like(tangents[n]), *after])
            without = self.push([j for j in self.wanted if j != i], before + after)
            for k, (got, expected) in enumerate(zip(without, with_zero)):
                if not np.allclose(got, expected):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output with index: {k} when input {i} has an undefined tangent "
                        f"value. Got: {wrap(got)!r} but expected: {wrap(expected)!r}"
                    )

    # -- batches against loops ---------------------------------------------------------------------------------------

    def batched(self) -> None:
        """Compare one batched backward pass with one pass for each example."""
        xs = self.xs()
        for k, y in enumerate(self.outputs()):
            if not y.requires_grad:
                continue
            gs = [normal_like(detached_array(y), 53 + b) for b in range(2)]
            loop = [grad(y, xs, wrap(g), retain_graph=True, allow_unused=True) for g in gs]
            try:
                together = grad(y, xs, wrap(np.stack(gs)), retain_graph=True, allow_unused=True, is_grads_batched=True)
            except RuntimeError as error:
                raise GradcheckError(f"While computing batched gradients, got: {error}") from error
            for batch, i, x, *one in zip(together, self.wanted, xs, *loop):
                expected = np.stack([np.zeros(x.shape) if g is None else detached_array(g) for g in one])
                got = np.zeros_like(expected) if batch is None else detached_array(batch)
                _same_batch(got, expected, k, i, "gradcheck or gradgradcheck failed while testing batched gradients")

    def batched_forward(self) -> None:
        """Compare one batched forward pass with one pass for each example."""
        for i, x in zip(self.wanted, self.xs()):
            tangents = [normal_like(detached_array(x), 71 + b) for b in range(2)]
            loop = [self.push([i], [t]) for t in tangents]
            try:
                together = self.push([i], [np.stack(tangents)], 2)
            except RuntimeError as error:
                raise GradcheckError(f"While computing batched gradients, got: {error}") from error
            what = "gradcheck failed while testing batched gradients in forward mode"
            for k, (got, *one) in enumerate(zip(together, *loop)):
                _same_batch(got, np.stack(one), k, i, what)


def _as_gradient(by_unit: dict[complex, AnyArray], part: complex) -> AnyArray:
    """Return the gradient of the real (or imaginary) part of the output, as backward defines it: ∂/∂Re + i ∂/∂Im."""
    of = {unit: j.imag if part == 1j else np.real(j) for unit, j in by_unit.items()}
    return of[1.0] + 1j * of[1j] if 1j in of else of[1.0]


def _mismatch(expected: Any, got: Any, k: int, i: int, part: object, is_complex: bool, forward: bool) -> str:
    prefix = ""
    if is_complex:
        word, element = ("imaginary" if part == 1j else "real"), ("inputs" if forward else "outputs")
        prefix = f"While considering the {word} part of complex {element} only, "
    mode = "computed with forward mode " if forward else ""
    numerical, analytical = [repr(wrap(v)) if getattr(v, "ndim", 0) else repr(float(v)) for v in (expected, got)]
    return (
        f"{prefix}Jacobian {mode}mismatch for output {k} with respect to input {i},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _weights(x: Tensor, seed: int) -> AnyArray:
    """Return random numbers between 0.2 and 1 (for complex x, in both parts)."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(0.2, 1, tuple(x.shape))
    return u + 1j * rng.uniform(0.2, 1, tuple(x.shape)) if x.dtype.kind == "c" else u


def _of_zeros(outputs: Sequence[Tensor], xs: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    zeros = [wrap(np.zeros(y.shape, y.dtype)) for y in outputs]
    found: tuple[Any, ...] = grad(list(outputs), list(xs), zeros, allow_unused=True)
    return found


def _same_batch(got: AnyArray, expected: AnyArray, k: int, i: int, what: str) -> None:
    if got.shape != expected.shape or not np.allclose(got, expected):
        raise GradcheckError(
            f"For output {k} and input {i}:\n\n{what}: vmap over the derivative differs from one call for each "
            f"example.\n\nGot:\n{wrap(got)!r}\n\nExpected:\n{wrap(expected)!r}"
        )
