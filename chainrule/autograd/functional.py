"""Derivatives of functions of tensors, with the names of ``torch.autograd.functional``.

``func`` takes the tensors in ``inputs`` as its arguments and returns a tensor or a tuple of tensors. Everywhere
``create_graph`` makes the results differentiable themselves, and ``strict`` turns a derivative that is zero because there
is no path at all into an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.autograd.backward import grad
from chainrule.autograd.dense import forward, rows
from chainrule.core import engine
from chainrule.core.levels import entered, within
from chainrule.core.modes import inference_mode
from chainrule.core.node import Leaf
from chainrule.core.tensor import Tensor, wrap, wrapped
from chainrule.interpreters.dual import Dual
from chainrule.ops.creation import ones_like, zeros_like
from chainrule.ops.joining import stack
from chainrule.table.shape import alias

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_RETURNED = "outputs of the user-provided function"
_ONE_OUTPUT = "the user-provided function returns"
_ONE_INPUT = "the input to the user-provided function is"

Tensors = tuple[Tensor, ...]


def _tensors(function: str, what: str, value: Any) -> tuple[Tensors, bool]:
    """A tensor or tuple of tensors as a tuple, and whether it was one."""
    if not isinstance(value, tuple):
        if not isinstance(value, Tensor):
            raise errors.functional_type(function, what, value)
        return (value,), False
    for i, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise errors.functional_type(function, what, item, i)
    return value, True


def _starts(inputs: Tensors, create_graph: bool) -> Tensors:
    """The inputs at a new place on the tape, which is connected to their own where the result is to be recorded."""
    return tuple(alias(x) if create_graph and x._edge is not None else _leaf(x) for x in inputs)


def _leaf(x: Tensor) -> Tensor:
    if x.dtype.kind not in "fc":
        raise errors.integer_requires_grad(x)
    fresh = wrap(x._raw)
    fresh._edge = Leaf(fresh)
    return fresh


def _call(function: str, func: Callable[..., Any], xs: Sequence[Tensor], strict: bool) -> tuple[Tensors, bool]:
    outputs, several = _tensors(function, _RETURNED, func(*xs))
    if strict:
        _check_recorded(outputs)
    return outputs, several


def _check_recorded(outputs: Tensors) -> None:
    for i, y in enumerate(outputs):
        if not y.requires_grad:
            raise errors.functional_output_cut(i, y)


def _vector(function: str, v: Any, like: Tensors, several: bool, owner: str) -> Tensors | tuple[None, ...]:
    """The vector to multiply with, checked; None where it may be left out."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise errors.functional_v_none(owner)
        return (None,)
    vs, _ = _tensors(function, "v", v)
    if len(vs) != len(like):
        raise errors.functional_v_count(len(like) if several else 1, len(vs))
    for i, (given, other) in enumerate(zip(vs, like)):
        if given.shape != other.shape:
            raise errors.functional_v_size(i if several else None, other.shape, given.shape)
    return vs


def _gradients(
    outputs: Tensors, xs: Tensors, cotangents: Sequence[Any], create_graph: bool, keep: bool = False
) -> tuple[Any, ...]:
    """``grad``, with None for inputs without a path, and for all of them where nothing is on the tape."""
    pairs = [(y, ones_like(y) if g is None else g) for y, g in zip(outputs, cotangents) if y.requires_grad]
    if not pairs:
        return (None,) * len(xs)
    ys, gs = zip(*pairs)
    return grad(ys, xs, gs, keep or None, create_graph, allow_unused=True)


def _filled(grads: Sequence[Any], xs: Sequence[Tensor], strict: bool, create_graph: bool, what: str) -> Tensors:
    """Zeros for None; with ``strict`` an error for it, and for a recorded result that does not depend on anything."""
    if strict:
        subject = "The output of the user-provided function" if what == "jacobian" else "The jacobian"
        _check_dependence(grads, subject, what, create_graph)
    return tuple(zeros_like(x) if g is None else g for g, x in zip(grads, xs))


def _check_dependence(grads: Sequence[Any], subject: str, what: str, create_graph: bool) -> None:
    """Raise for a gradient that is not there, and for one that is to be recorded and is not."""
    for i, g in enumerate(grads):
        if g is None:
            raise errors.functional_independent(subject, i)
        if create_graph and not g.requires_grad:
            raise errors.functional_independent(
                f"The {what} of the user-provided function", i, "strict mode when create_graph=True"
            )


def _given(results: Tensors, several: bool, create_graph: bool) -> Any:
    """Results in the form the caller's tensors had, off the tape unless they are to be on it."""
    ready = results if create_graph else tuple(r.detach() if r._edge is not None else r for r in results)
    return ready if several else ready[0]


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``func(*inputs)``, and the product of a vector with its Jacobian: Σ v · ∂output/∂input for each input.

    Args:
        v: of the outputs' shapes; may be None for one output of one element.

    Returns:
        ``(outputs, products)``; the products have the inputs' shapes.

    Raises:
        RuntimeError: ``v`` has another shape or number than the outputs.

    >>> import chainrule as cr
    >>> cr.autograd.functional.vjp(cr.exp, cr.zeros(2), cr.tensor([1., 3.]))
    (tensor([1., 1.]), tensor([1., 3.]))
    """
    errors.check_function("functional.vjp", func)
    with inference_mode(False):
        given, several = _tensors("vjp", "inputs", inputs)
        xs = _starts(given, create_graph)
        outputs, several_out = _call("vjp", func, xs, strict)
        vs = _vector("vjp", v, outputs, several_out, _ONE_OUTPUT)
        products = _filled(_gradients(outputs, xs, vs, create_graph), xs, strict, create_graph, "jacobian")
    return _given(outputs, several_out, create_graph), _given(products, several, create_graph)


class _Moving:
    """Runs a function on inputs that move along ``vs``, recording their primals where ``recorded``."""

    def __init__(self, xs: Tensors, vs: Sequence[Any], create_graph: bool, strict: bool, recorded: bool) -> None:
        self.recorded = recorded
        self.strict = strict
        self.starts = _starts(xs, create_graph) if recorded else xs
        self.tangents = [ones_like(x).detach() if v is None else v.to(x.dtype) for v, x in zip(vs, xs)]
        if not create_graph:
            self.tangents = [t.detach() for t in self.tangents]

    @within
    def call(self, function: str, func: Callable[..., Any]) -> tuple[Tensors, list[Any], bool]:
        """The outputs' primals and tangents (None where one does not move), and whether they came as a tuple."""
        with entered("jvp", Dual, lift_leaves=not self.recorded) as level:
            args = [wrap(Dual(_inside(x), _inside(t), level)) for x, t in zip(self.starts, self.tangents)]
            outputs, several = _tensors(function, _RETURNED, func(*args))
            if self.strict:
                _check_recorded(outputs)
            primals, tangents = zip(*[_apart(y, level) for y in outputs]) if outputs else ((), ())
        return primals, list(tangents), several


def _inside(x: Tensor) -> Any:
    return x._raw if x._edge is None else x


def _apart(y: Tensor, level: int) -> tuple[Tensor, Any]:
    data = y._raw
    if type(data) is not Dual or data.level != level:
        return y, None
    tangent = data.tangent
    return wrapped(data.primal), None if tangent is None else wrapped(tangent)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``func(*inputs)``, and the product of its Jacobian with a vector: how the outputs move when the inputs move along v.

    Args:
        v: of the inputs' shapes; may be None for one input of one element.

    Returns:
        ``(outputs, products)``; the products have the outputs' shapes.

    Raises:
        RuntimeError: ``v`` has another shape or number than the inputs.

    >>> import chainrule as cr
    >>> cr.autograd.functional.jvp(lambda x: x ** 2, cr.tensor([1., 2.]), cr.tensor([1., 10.]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    errors.check_function("functional.jvp", func)
    with inference_mode(False):
        given, several = _tensors("jvp", "inputs", inputs)
        vs = _vector("jvp", v, given, several, _ONE_INPUT)
        moving = _Moving(given, vs, create_graph, strict, create_graph or strict)
        outputs, tangents, several_out = moving.call("jvp", func)
        if strict:
            _check_strict(outputs, moving.starts)
        products = _filled(tangents, outputs, strict, create_graph, "jacobian")
    return _given(outputs, several_out, create_graph), _given(products, several_out, create_graph)


def _check_strict(outputs: Tensors, xs: Tensors) -> None:
    """Raise if nothing leads from the outputs to an input."""
    reached = set(engine.reachable([y._edge for y in outputs if y._edge is not None]))
    for i, x in enumerate(xs):
        if x._edge not in reached:
            raise errors.functional_independent("The output of the user-provided function", i)


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
        vectorize: compute many rows in one batched backward pass.
        strategy: "reverse-mode", or (with ``vectorize``) "forward-mode", which computes many columns in one pass.

    Returns:
        For one output and one input a tensor of shape ``(*output.shape, *input.shape)``; a tuple with one for each input,
        where ``inputs`` is a tuple; a tuple of those with one for each output, where the function returns a tuple.

    >>> import chainrule as cr
    >>> cr.autograd.functional.jacobian(lambda x: x * x, cr.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    errors.check_function("functional.jacobian", func)
    if strategy not in ("reverse-mode", "forward-mode"):
        raise errors.functional_strategy()
    if strict and vectorize:
        raise errors.functional_strict_vectorize()
    given, several = _tensors("jacobian", "inputs", inputs)
    with inference_mode(False):
        if strategy == "forward-mode":
            parts, several_out = _columns(func, given, create_graph, vectorize)
        else:
            xs = _starts(given, create_graph)
            outputs, several_out = _call("jacobian", func, xs, strict)
            parts = [_rows(i, y, xs, create_graph, strict, vectorize) for i, y in enumerate(outputs)]
    shaped = tuple(_given(row, several, create_graph) for row in parts)
    return shaped if several_out else shaped[0]


def _columns(
    func: Callable[..., Any], given: Tensors, create_graph: bool, vectorize: bool
) -> tuple[list[Tensors], bool]:
    if not vectorize:
        raise errors.functional_forward_loop()
    form = [False]

    def flat(*args: Tensor) -> Tensors:
        outputs, form[0] = _call("jacobian", func, args, False)
        return outputs

    xs = _starts(given, True) if create_graph else tuple(wrap(x._raw) for x in given)
    return [tuple(row) for row in forward(flat, xs, create_graph)], form[0]


def _rows(index: int, y: Tensor, xs: Tensors, create_graph: bool, strict: bool, vectorize: bool) -> Tensors:
    """∂y/∂x for every x."""
    n = y.numel()
    if not y.requires_grad or n == 0:
        return tuple(wrap(np.zeros((*y.shape, *x.shape), x.dtype)) for x in xs)
    if vectorize:
        return tuple(rows(y, xs, create_graph))
    eye = wrap(np.eye(n, dtype=y.dtype).reshape(n, *y.shape))
    by_row = []
    for i in range(n):
        row = _gradients((y,), xs, (eye[i],), create_graph, True)
        if strict:
            _check_dependence(row, f"Output {index} of the user-provided function", "jacobian", create_graph)
        by_row.append([zeros_like(x) if g is None else g for g, x in zip(row, xs)])
    return tuple(stack([row[k] for row in by_row]).reshape(*y.shape, *x.shape) for k, x in enumerate(xs))


def _one_element(function: str, func: Callable[..., Any], xs: Sequence[Tensor], strict: bool) -> Tensor:
    outputs, several = _call(function, func, xs, strict)
    return _single(function, outputs, several)


def _single(function: str, outputs: Tensors, several: bool) -> Tensor:
    if several:
        raise errors.functional_scalar(function, True)
    if outputs[0].numel() != 1:
        raise errors.functional_scalar(function, False)
    return outputs[0]


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The matrix of second derivatives of a function that returns one element.

    Args:
        vectorize, outer_jacobian_strategy: how the Jacobian of the gradient is computed, as in :func:`jacobian`.

    Returns:
        For one input a tensor of shape ``(*input.shape, *input.shape)``; for a tuple of inputs a tuple of tuples, where
        entry ``[i][j]`` has shape ``(*inputs[i].shape, *inputs[j].shape)``.

    Raises:
        RuntimeError: the function returns several tensors or several elements.

    >>> import chainrule as cr
    >>> cr.autograd.functional.hessian(lambda x: (x ** 3).sum(), cr.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    errors.check_function("functional.hessian", func)
    given, several = _tensors("hessian", "inputs", inputs)
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise errors.functional_strategy()

    def gradient(*args: Tensor) -> Tensors:
        xs = _starts(args, True)
        y = _one_element("hessian", func, xs, strict)
        grads = _gradients((y,), xs, (None,), True)
        if strict:
            _check_gradient(grads)
        return _filled(grads, xs, False, True, "jacobian")

    result = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if several else result[0][0]


def _check_gradient(grads: Sequence[Any]) -> None:
    for i, g in enumerate(grads):
        if g is None or not g.requires_grad:
            raise errors.functional_hessian_independent(i)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``func(*inputs)``, which has one element, and the product of a vector with its Hessian, by two backward passes.

    Args:
        v: of the inputs' shapes; may be None for one input of one element.

    Returns:
        ``(output, products)``; the products have the inputs' shapes.

    >>> import chainrule as cr
    >>> cr.autograd.functional.vhp(lambda x: (x ** 3).sum(), cr.tensor([1., 2.]), cr.tensor([1., 1.]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    errors.check_function("functional.vhp", func)
    with inference_mode(False):
        given, several = _tensors("vhp", "inputs", inputs)
        vs = _vector("vhp", v, given, several, _ONE_INPUT)
        xs = _starts(given, create_graph)
        y = _one_element("vhp", func, xs, strict)
        first = _filled(_gradients((y,), xs, (None,), True), xs, strict, False, "jacobian")
        if strict:
            _check_gradient(first)
        products = _filled(_gradients(first, xs, vs, create_graph), xs, strict, create_graph, "hessian")
    return _given((y,), False, create_graph), _given(products, several, create_graph)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``func(*inputs)``, which has one element, and the product of its Hessian with a vector.

    The derivative along v is computed in forward mode, and its gradient in reverse.

    Args:
        v: of the inputs' shapes; may be None for one input of one element.

    Returns:
        ``(output, products)``; the products have the inputs' shapes.

    >>> import chainrule as cr
    >>> cr.autograd.functional.hvp(lambda x: (x ** 3).sum(), cr.tensor([1., 2.]), cr.tensor([1., 1.]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    errors.check_function("functional.hvp", func)
    with inference_mode(False):
        given, several = _tensors("hvp", "inputs", inputs)
        vs = _vector("hvp", v, given, several, _ONE_INPUT)
        moving = _Moving(given, vs, create_graph, strict, True)
        xs = moving.starts
        outputs, tangents, several_out = moving.call("hvp", func)
        y = _single("hvp", outputs, several_out)
        if strict:
            _check_strict((y,), xs)
            _check_gradient(_gradients((y,), xs, (None,), True, True))
        moved = tuple(t for t in tangents if t is not None)
        found = _gradients(moved, xs, (None,) * len(moved), create_graph)
        products = _filled(found, xs, strict, create_graph, "hessian")
    return _given((y,), False, create_graph), _given(products, several, create_graph)
