"""Derivatives of functions of tensors, with the names of ``torch.autograd.functional``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.autograd.backward import grad
from chainrule.core.modes import enable_grad
from chainrule.core.tensor import Tensor, wrap
from chainrule.ops.creation import zeros_like
from chainrule.ops.joining import stack


def _inputs(name: str, inputs: Any, create_graph: bool) -> tuple[tuple[Tensor, ...], bool]:
    several = isinstance(inputs, (tuple, list))
    given = tuple(inputs) if several else (inputs,)
    for i, x in enumerate(given):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"The inputs given to {name} must be either a Tensor or a tuple of Tensors but the value at index {i} has type "
                f"{type(x)}."
            )
    fresh = tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in given)
    return fresh, several


def _outputs(name: str, result: Any) -> tuple[tuple[Tensor, ...], bool]:
    several = isinstance(result, (tuple, list))
    outputs = tuple(result) if several else (result,)
    for i, y in enumerate(outputs):
        if not isinstance(y, Tensor):
            raise TypeError(
                f"The outputs of the user-provided function given to {name} must be either a Tensor or a tuple of Tensors but "
                f"the value at index {i} has type {type(y)}."
            )
    return outputs, several


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The generalized Jacobian of a function at ``inputs``.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors (the function's arguments).
        create_graph: make the result differentiable.
        strict: raise if an output does not depend on an input (else that part is zeros).
        vectorize: compute all rows in one batched backward pass.

    Returns:
        For one output and one input a tensor of shape ``(*output.shape, *input.shape)``; a tuple with one for each input,
        where ``inputs`` is a tuple; a tuple of those with one for each output, where the function returns a tuple.

    >>> import chainrule as cr
    >>> cr.autograd.functional.jacobian(lambda x: x * x, cr.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    with enable_grad():
        xs, several_in = _inputs("jacobian", inputs, create_graph)
        ys, several_out = _outputs("jacobian", func(*xs))
        rows = tuple(_rows(y, xs, create_graph, strict, vectorize) for y in ys)
    shaped = tuple(row if several_in else row[0] for row in rows)
    return shaped if several_out else shaped[0]


def _rows(y: Tensor, xs: tuple[Tensor, ...], create_graph: bool, strict: bool, vectorize: bool) -> tuple[Tensor, ...]:
    """∂y/∂x for every x."""
    n = y.numel()
    if y._edge is None or n == 0:
        if strict and y._edge is None:
            raise RuntimeError(
                "The Jacobian of an output that does not require grad: it is independent of the inputs (strict=True)."
            )
        return tuple(wrap(np.zeros((*y.shape, *x.shape), y.dtype)) for x in xs)
    eye = wrap(np.eye(n, dtype=y.dtype).reshape(n, *y.shape))
    if vectorize:
        found = grad(y, xs, eye, retain_graph=True, create_graph=create_graph, allow_unused=True, is_grads_batched=True)
        parts = [None if g is None else g.reshape(*y.shape, *x.shape) for g, x in zip(found, xs)]
    else:
        by_row = [
            grad(y, xs, eye[i], retain_graph=True, create_graph=create_graph, allow_unused=True) for i in range(n)
        ]
        parts = []
        for k, x in enumerate(xs):
            grads = [row[k] for row in by_row]
            if all(g is None for g in grads):
                parts.append(None)
                continue
            parts.append(stack([zeros_like(x) if g is None else g for g in grads]).reshape(*y.shape, *x.shape))
    if strict and any(p is None for p in parts):
        raise RuntimeError(f"Output is independent of input {parts.index(None)}. This is not allowed in strict mode.")
    return tuple(wrap(np.zeros((*y.shape, *x.shape), y.dtype)) if p is None else p for p, x in zip(parts, xs))


def jacobian_of(y: Any, x: Any) -> Any:
    """The generalized Jacobian ∂y/∂x, of shape ``(*y.shape, *x.shape)``: of tensors already computed, or of a function.

    Args:
        y: a tensor that was computed from ``x``, or a function of ``x``.
        x: a tensor that requires grad (any tensor, with a function); or a tuple of them, for a tuple of Jacobians.

    Raises:
        RuntimeError: ``y`` does not depend on anything that requires grad, or ``x`` does not require grad.

    >>> import chainrule as cr
    >>> b = cr.tensor([4., 5., 6.], requires_grad=True)
    >>> c = cr.tensor([1., 2., 3.]) * b
    >>> cr.jacobian(c, b)
    tensor([[1., 0., 0.],
            [0., 2., 0.],
            [0., 0., 3.]])
    """
    if not isinstance(y, Tensor):
        if not callable(y):
            raise TypeError(f"jacobian(): the first argument must be a Tensor or a function, not {type(y).__name__}")
        return jacobian(y, x, vectorize=True)
    if y._edge is None:
        raise errors.no_grad_fn(0, y)
    several = isinstance(x, (tuple, list))
    xs = tuple(x) if several else (x,)
    for i, t in enumerate(xs):
        if not isinstance(t, Tensor):
            raise errors.not_a_tensor("jacobian", "x", t)
        if t._edge is None:
            raise errors.input_requires_no_grad(i, t)
    parts = _rows(y, xs, False, False, True)
    return parts if several else parts[0]


jacobian_of.__name__ = jacobian_of.__qualname__ = "jacobian"
