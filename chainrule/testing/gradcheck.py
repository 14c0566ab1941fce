"""``gradcheck`` and ``gradgradcheck``: is the gradient of a function what its values say?

A central difference with ε = 10⁻⁶ in float64 is good to about nine digits; in float32 it is good to none, which is why
inputs of other dtypes are warned about.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.backward import grad
from chainrule.core.tensor import Tensor, wrap
from chainrule.func.transforms import jvp
from chainrule.testing.samples import normal_like


class GradcheckError(RuntimeError):
    """Raised by :func:`gradcheck` and :func:`gradgradcheck`."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 0.001,
    raise_exception: bool = True,
    check_undefined_grad: bool = True,
    nondet_tol: float = 0.0,
    check_batched_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of ``func`` at ``inputs`` against central differences of its values.

    Args:
        func: takes the inputs, returns a tensor or several.
        inputs: a tensor or a tuple; those that require grad are checked, and should be float64 or complex128.
        eps: how far inputs are moved.
        atol, rtol: |analytical − numerical| ≤ atol + rtol·|numerical| is asked of every entry of the Jacobian.
        raise_exception: raise if a check fails; else return False.
        check_undefined_grad: differentiate the outputs also one at a time, so that backward meets outputs that nothing
            was done with (this is how Jacobians are computed here, so it is always done).
        nondet_tol: how far two runs of backward may be apart.
        check_batched_grad: also compare ``grad(..., is_grads_batched=True)`` with one call for each row.
        check_forward_ad: also check forward mode.
        check_backward_ad: check backward mode.
        fast_mode: compare one random combination of the Jacobian's entries instead of all of them.
        masked: accepted as in PyTorch; there are no sparse tensors here.

    Returns:
        True if all checks pass.

    Raises:
        GradcheckError: a check failed.
        ValueError: no input requires grad.

    >>> import chainrule as cr
    >>> from chainrule.testing import gradcheck
    >>> gradcheck(cr.sin, cr.tensor([0., 1.], dtype=cr.float64, requires_grad=True))
    True
    """
    if not (check_backward_ad or check_forward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    wanted = _differentiable(given)
    try:
        _check(
            func,
            tuple(given),
            wanted,
            eps,
            atol,
            rtol,
            nondet_tol,
            check_batched_grad,
            check_forward_ad,
            check_backward_ad,
            fast_mode,
        )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 0.001,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check second derivatives: :func:`gradcheck` of the gradient as a function of ``inputs`` and ``grad_outputs``.

    Args:
        grad_outputs: the cotangents at which the gradient is taken; random ones without it.
        gen_non_contig_grad_outputs: make the random ones non-contiguous.
        check_grad_dtypes: first derivatives must have their inputs' dtypes (they always must here).
        check_fwd_over_rev: differentiate the gradient in forward mode.
        check_rev_over_rev: differentiate the gradient in reverse mode.
        (the others as in :func:`gradcheck`)
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    wanted = _differentiable(given)
    if grad_outputs is None:
        cotangents = tuple(
            _random_cotangent(y, 97 + i, gen_non_contig_grad_outputs) for i, y in enumerate(_recorded(func(*given)))
        )
    else:
        cotangents = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
    n = len(cotangents)

    def first(*args: Any) -> tuple[Any, ...]:
        at, gs = args[:-n], args[-n:]
        found = grad(_recorded(func(*at)), [at[i] for i in wanted], gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        first,
        (*given, *cotangents),
        eps,
        atol,
        rtol,
        raise_exception,
        check_undefined_grad,
        nondet_tol,
        check_batched_grad,
        check_fwd_over_rev,
        check_rev_over_rev,
        fast_mode,
        masked,
    )


def _random_cotangent(y: Tensor, seed: int, strided: bool) -> Tensor:
    g = normal_like(y.detach()._array(), seed)
    if strided and g.ndim:
        wide = np.zeros((*g.shape, 2), g.dtype)
        wide[..., 0] = g
        g = wide[..., 0]
    return wrap(g).requires_grad_()


def _differentiable(inputs: Sequence[Any]) -> list[int]:
    """The positions of the inputs to check."""
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i in wanted:
        x = inputs[i]
        if x.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex.",
                UserWarning,
                stacklevel=3,
            )
        if x.numel() and any(step == 0 and length > 1 for step, length in zip(x._array().strides, x.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    return wanted


def _outputs(result: Any) -> tuple[Tensor, ...]:
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    for y in outputs:
        if not isinstance(y, Tensor):
            raise TypeError(f"gradcheck expects the function to return tensors, but it returned {type(y).__name__}")
    return outputs


def _recorded(result: Any) -> tuple[Tensor, ...]:
    return tuple(y for y in _outputs(result) if y.requires_grad)


def _check(
    func: Any,
    inputs: tuple[Any, ...],
    wanted: list[int],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    batched: bool,
    forward: bool,
    backward: bool,
    fast: bool,
) -> None:
    outputs = _outputs(func(*inputs))
    floating = [k for k, y in enumerate(outputs) if y.dtype.kind in "fc"]
    recorded = [k for k in floating if outputs[k].requires_grad]
    numerical = {i: _numerical(func, inputs, i, eps, floating) for i in wanted}
    if not recorded:
        jacobians = [j for by_output in numerical.values() for by_unit in by_output.values() for j in by_unit.values()]
        if any(np.any(np.abs(j) > atol) for j in jacobians):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    if backward:
        for k in recorded:
            for part in _parts(outputs[k]):
                rows = _analytical(func, inputs, wanted, k, part)
                again = _analytical(func, inputs, wanted, k, part)
                for n, i in enumerate(wanted):
                    if rows[n].shape != (inputs[i].numel(), outputs[k].numel()):
                        raise GradcheckError("Analytical gradient has incorrect size")
                    if np.abs(rows[n] - again[n]).max(initial=0) > nondet_tol:
                        raise GradcheckError(
                            "Backward is not reentrant, i.e., running backward with same input and grad_output "
                            "multiple times gives different values, although analytical gradient matches numerical "
                            f"gradient. The tolerance for nondeterminism was {nondet_tol}. (Does the forward pass "
                            "draw random numbers?)"
                        )
                    expected = _as_gradient(numerical[i][k], inputs[i], part)
                    _agree(rows[n], expected, k, i, atol, rtol, part, fast, outputs[k].dtype.kind == "c", "")
        if batched:
            _check_batched(func, inputs, wanted, recorded, atol, rtol)
    if forward:
        for i in wanted:
            for unit in _parts(inputs[i]):
                columns = _pushed(func, inputs, wanted, i, unit)
                for k in floating:
                    expected = numerical[i][k][unit]
                    _agree(columns[k], expected, k, i, atol, rtol, 1.0, fast, False, " in forward mode")


def _parts(x: Any) -> tuple[Any, ...]:
    """The real, and for complex numbers the imaginary, unit."""
    return (1.0, 1j) if x.dtype.kind == "c" else (1.0,)


def _numerical(
    func: Any, inputs: tuple[Any, ...], i: int, eps: float, floating: list[int]
) -> dict[int, dict[Any, Any]]:
    """For each output, and each unit (1, and i for a complex input) in which elements of input i are moved, the
    central differences: an array of (input elements, output elements).
    """
    data = inputs[i]._array()
    found: dict[int, dict[Any, Any]] = {k: {} for k in floating}
    for unit in _parts(inputs[i]):
        columns: dict[int, list[Any]] = {k: [] for k in floating}
        for index in np.ndindex(data.shape):
            before = data[index]
            try:  # in place, so that a function that knows its inputs from elsewhere (a model its parameters) sees it
                data[index] = before + eps * unit
                above = [y.detach()._array().copy() for y in _outputs(func(*inputs))]
                data[index] = before - eps * unit
                below = [y.detach()._array().copy() for y in _outputs(func(*inputs))]
            finally:
                data[index] = before
            for k in floating:
                columns[k].append(((above[k] - below[k]) / (2 * eps)).reshape(-1))
        for k in floating:
            size = _outputs_size(func, inputs, k) if not columns[k] else columns[k][0].size
            found[k][unit] = np.array(columns[k]).reshape(len(columns[k]), size)
    return found


def _outputs_size(func: Any, inputs: tuple[Any, ...], k: int) -> int:
    return int(_outputs(func(*inputs))[k].numel())


def _as_gradient(by_unit: dict[Any, Any], x: Any, part: Any) -> Any:
    """What backward gives for the real (or imaginary) part of the output: ∂/∂Re + i ∂/∂Im."""

    def of(j: Any) -> Any:
        return j.imag if part == 1j else np.real(j)

    return of(by_unit[1.0]) + 1j * of(by_unit[1j]) if x.dtype.kind == "c" else of(by_unit[1.0])


def _analytical(func: Any, inputs: tuple[Any, ...], wanted: list[int], k: int, part: Any) -> list[Any]:
    """For each input the gradients of each element of output k, as columns."""
    y = _outputs(func(*inputs))[k]
    columns: list[list[Any]] = [[] for _ in wanted]
    for index in np.ndindex(tuple(y.shape)):
        g = np.zeros(y.shape, y.dtype)
        g[index] = part
        found = grad(y, [inputs[i] for i in wanted], wrap(g), retain_graph=True, allow_unused=True)
        for n, (i, r) in enumerate(zip(wanted, found)):
            if r is not None and r.dtype != inputs[i].dtype:
                raise GradcheckError(
                    f"Analytical gradient has incorrect dtype: {r.dtype} for an input of {inputs[i].dtype}"
                )
            columns[n].append(
                np.zeros(inputs[i].numel(), inputs[i].dtype) if r is None else r.detach()._array().reshape(-1)
            )
    return [
        np.array(c).reshape(len(c), -1).T if c else np.zeros((inputs[i].numel(), 0)) for i, c in zip(wanted, columns)
    ]


def _pushed(func: Any, inputs: tuple[Any, ...], wanted: list[int], i: int, unit: Any) -> list[Any]:
    """The derivatives of all outputs along each element of input i, by forward mode, as rows."""

    def of_wanted(*moved: Any) -> tuple[Any, ...]:
        at = list(inputs)
        for position, x in zip(wanted, moved):
            at[position] = x.requires_grad_()  # the function may ask for gradients
        return _outputs(func(*at))

    primals = tuple(inputs[n].detach() for n in wanted)
    rows: list[list[Any]] = []
    for index in np.ndindex(tuple(inputs[i].shape)):
        tangents = tuple(np.zeros(x.shape, x.dtype) for x in primals)
        tangents[wanted.index(i)][index] = unit
        _, moved = jvp(of_wanted, primals, tuple(map(wrap, tangents)))
        rows.append([t.detach()._array().reshape(-1) for t in moved])
    sizes = [y.numel() for y in _outputs(func(*inputs))]
    return [np.array([row[k] for row in rows]).reshape(len(rows), size) for k, size in enumerate(sizes)]


def _agree(
    got: Any,
    expected: Any,
    k: int,
    i: int,
    atol: float,
    rtol: float,
    part: Any,
    fast: bool,
    complex_output: bool,
    mode: str,
) -> None:
    if fast and got.size:
        weights = normal_like(np.zeros(got.shape), 41)
        got, expected = np.sum(got * weights), np.sum(expected * weights)
    if np.allclose(got, expected, rtol, atol):
        return
    which = ""
    if complex_output:
        which = f"While considering the {'imaginary' if part == 1j else 'real'} part of complex outputs only, "
    raise GradcheckError(
        f"{which}Jacobian mismatch{mode} for output {k} with respect to input {i},\n"
        f"numerical:{wrap(np.asarray(expected))!r}\nanalytical:{wrap(np.asarray(got))!r}\n"
    )


def _check_batched(
    func: Any, inputs: tuple[Any, ...], wanted: list[int], recorded: list[int], atol: float, rtol: float
) -> None:
    """One batched backward pass against one pass for each example."""
    outputs = _outputs(func(*inputs))
    xs = [inputs[i] for i in wanted]
    for k in recorded:
        y = outputs[k]
        gs = [normal_like(y.detach()._array(), 53 + b) for b in range(2)]
        loop = [grad(y, xs, wrap(g), retain_graph=True, allow_unused=True) for g in gs]
        together = grad(y, xs, wrap(np.stack(gs)), retain_graph=True, allow_unused=True, is_grads_batched=True)
        for n, i in enumerate(wanted):
            batch = together[n]
            if batch is None:
                continue
            single = [row[n] for row in loop]
            rows = np.stack([np.zeros(xs[n].shape) if g is None else g.detach()._array() for g in single])
            if not np.allclose(batch.detach()._array(), rows, rtol, atol):
                raise GradcheckError(
                    f"For output {k} and input {i}: vmap over backward (is_grads_batched=True) gives\n{batch!r}\n"
                    f"but one backward for each example gives\n{wrap(rows)!r}\n"
                )
