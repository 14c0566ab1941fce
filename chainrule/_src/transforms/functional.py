"""Derivatives of functions of tensors, with the API of ``torch.autograd.functional``.

``chainrule.autograd.functional`` exports the public names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.grad_mode import inference_mode
from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.messages import errors
from chainrule._src.ops.creation import ones_like, zeros_like
from chainrule._src.tape import engine
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule._src.transforms.arguments import interpreter_content
from chainrule._src.transforms.backward import grad
from chainrule._src.transforms.dense import compute_rows
from chainrule._src.transforms.jacobian import forward_jacobian, reverse_jacobian
from chainrule._src.transforms.pushforward import JvpRun
from chainrule._src.transforms.trace import fresh_leaf

_ONE_OUTPUT = "the user-provided function returns"
_ONE_INPUT = "the input to the user-provided function is"

Tensors = tuple[Tensor, ...]


def _tensors(function: str, what: str, value: object) -> tuple[Tensors, bool]:
    """Return a tensor or tuple of tensors as a tuple, and whether it was a tuple."""
    if not isinstance(value, tuple):
        if not isinstance(value, Tensor):
            raise errors.functional_type(function, what, value)
        return (value,), False
    for i, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise errors.functional_type(function, what, item, i)
    return value, True


class _Call:
    """A call of one of the functions below: its options, and ``func`` applied to the inputs.

    Attributes:
        name: the name of the function.
        inputs, outputs: as tuples; ``tuple_in`` and ``tuple_out``: whether they were given as tuples.
        starts: new leaves for the inputs; they are connected to the inputs if the result is recorded.
    """

    starts: Tensors
    outputs: Tensors
    tuple_out: bool

    def __init__(self, name: str, func: AnyFunction, inputs: object, create_graph: bool, strict: bool) -> None:
        errors.check_function(f"functional.{name}", func)
        self.name, self.func = name, func
        self.create_graph, self.strict = create_graph, strict
        self.inputs, self.tuple_in = _tensors(name, "inputs", inputs)

    def vector(self, v: object, like: Tensors, as_tuple: bool, owner: str) -> Tensors | tuple[None, ...]:
        """Check and return the vector to multiply with; (None,) if it is omitted for a single element."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise errors.functional_v_none(owner)
            return (None,)
        vs, _ = _tensors(self.name, "v", v)
        if len(vs) != len(like):
            raise errors.functional_v_count(len(like) if as_tuple else 1, len(vs))
        for i, (have, want) in enumerate(zip(vs, like)):
            if have.shape != want.shape:
                raise errors.functional_v_size(i if as_tuple else None, want.shape, have.shape)
        return vs

    def input_vector(self, v: object) -> Tensors | tuple[None, ...]:
        return self.vector(v, self.inputs, self.tuple_in, _ONE_INPUT)

    def start(self, linked: bool) -> Tensors:
        for x in self.inputs:
            if x.dtype.kind not in "fc":
                raise errors.integer_requires_grad(x)
        self.starts = tuple([fresh_leaf(x if linked else wrap(x._raw)) for x in self.inputs])
        return self.starts

    def run(self, *xs: Tensor) -> Tensors:
        """Run the function; check and return its outputs."""
        outputs, self.tuple_out = _tensors(self.name, "outputs of the user-provided function", self.func(*xs))
        if self.strict:
            for i, y in enumerate(outputs):
                if not y.requires_grad:
                    raise errors.functional_output_cut(i, y)
        return outputs

    def record(self) -> Tensors:
        self.outputs = self.run(*self.start(self.create_graph))
        return self.outputs

    def push(self, vs: Sequence[Tensor | None], recorded: bool) -> list[Any]:
        """Run the function on dual inputs with tangents ``vs``, recording their primals if ``recorded``; return its tangents."""
        xs = self.start(self.create_graph) if recorded else self.inputs
        tangents = [ones_like(x).detach() if v is None else v.to(x.dtype) for v, x in zip(vs, xs)]
        if not self.create_graph:
            tangents = [t.detach() for t in tangents]
        run = JvpRun(
            self.run,
            [*map(interpreter_content, xs)],
            [*map(interpreter_content, tangents)],
            "jvp",
            lift_leaves=not recorded,
        )
        parts = [run.split(y) for y in run.result]
        self.outputs = tuple([tensor_of(primal) for primal, _ in parts])
        return [None if t is None else tensor_of(t) for _, t in parts]

    def scalar(self) -> Tensor:
        """Return the output of a function that must return one element."""
        if self.tuple_out or self.outputs[0].numel() != 1:
            raise errors.functional_scalar(self.name, self.tuple_out)
        return self.outputs[0]

    def check_reached(self) -> None:
        """Raise if no path leads from the outputs to an input."""
        reached = set(engine.reachable([y._edge for y in self.outputs if y._edge is not None]))
        for i, x in enumerate(self.starts):
            if x._edge not in reached:
                raise errors.functional_independent("The output of the user-provided function", i)

    def zeros_for_none(self, grads: Sequence[object], xs: Sequence[Tensor], what: str) -> Tensors:
        """Replace None by zeros; if strict, raise for None, and for an unrecorded result with ``create_graph``."""
        if self.strict:
            subject = "The output of the user-provided function" if what == "jacobian" else "The jacobian"
            _check_dependence(grads, subject, what, self.create_graph)
        return _with_zeros(grads, xs)

    def finish(self, results: Sequence[Tensor], as_tuple: bool) -> Tensor | tuple[Tensor, ...]:
        """Return results as a tuple or a tensor, detached unless ``create_graph``."""
        if not self.create_graph:
            results = [r.detach() if r._edge is not None else r for r in results]
        return tuple(results) if as_tuple else results[0]


def _with_zeros(grads: Sequence[Any], xs: Sequence[Tensor]) -> Tensors:
    return tuple([zeros_like(x) if g is None else g for g, x in zip(grads, xs)])


def _gradients(
    outputs: Sequence[Tensor], xs: Tensors, cotangents: Sequence[Tensor | None], create_graph: bool, keep: bool = False
) -> tuple[Any, ...]:
    """Call ``grad``; return None for inputs without a path, and for all inputs if no output is on the tape."""
    pairs = [(y, ones_like(y) if g is None else g) for y, g in zip(outputs, cotangents) if y.requires_grad]
    if not pairs:
        return (None,) * len(xs)
    ys, gs = zip(*pairs)
    return grad(ys, xs, gs, keep or None, create_graph, allow_unused=True)


def _check_dependence(grads: Sequence[Any], subject: str, what: str, create_graph: bool) -> None:
    """Raise for a missing gradient, and for an unrecorded one with ``create_graph``."""
    for i, g in enumerate(grads):
        if g is None:
            raise errors.functional_independent(subject, i)
        if create_graph and not g.requires_grad:
            raise errors.functional_independent(
                f"The {what} of the user-provided function", i, "strict mode when create_graph=True"
            )


def _check_gradient(grads: Sequence[Tensor | None]) -> None:
    """Raise for a first derivative that does not depend on the input."""
    for i, g in enumerate(grads):
        if g is None or not g.requires_grad:
            raise errors.functional_hessian_independent(i)


def vjp(
    func: AnyFunction, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of a vector with its Jacobian: Σ v · ∂output/∂input for each input.

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
    call = _Call("vjp", func, inputs, create_graph, strict)
    with inference_mode(False):
        outputs = call.record()
        vs = call.vector(v, outputs, call.tuple_out, _ONE_OUTPUT)
        products = call.zeros_for_none(_gradients(outputs, call.starts, vs, create_graph), call.starts, "jacobian")
    return call.finish(outputs, call.tuple_out), call.finish(products, call.tuple_in)


def jvp(
    func: AnyFunction, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of its Jacobian with a vector: the derivative of the outputs along v.

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
    call = _Call("jvp", func, inputs, create_graph, strict)
    with inference_mode(False):
        tangents = call.push(call.input_vector(v), create_graph or strict)
        if strict:
            call.check_reached()
        products = call.zeros_for_none(tangents, call.outputs, "jacobian")
    return call.finish(call.outputs, call.tuple_out), call.finish(products, call.tuple_out)


def jacobian(
    func: AnyFunction,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Compute the generalized Jacobian of a function at ``inputs``.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors (the function's arguments).
        create_graph: make the result differentiable.
        strict: raise if an output does not depend on an input (else that part is zeros).
        vectorize: compute many rows in one batched backward pass.
        strategy: "reverse-mode", or (with ``vectorize``) "forward-mode", which computes many columns in one pass.

    Returns:
        For one output and one input, a tensor of shape ``(*output.shape, *input.shape)``. If ``inputs`` is a tuple, a tuple with
        one tensor for each input. If the function returns a tuple, a tuple of these with one for each output.

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
    call = _Call("jacobian", func, inputs, create_graph, strict)
    with inference_mode(False):
        if strategy == "forward-mode":
            if not vectorize:
                raise errors.functional_forward_loop()
            xs = call.start(True) if create_graph else tuple([wrap(x._raw) for x in call.inputs])
            found = forward_jacobian(call.run, xs)
        else:
            found = [_rows(call, i, y, vectorize) for i, y in enumerate(call.record())]
    shaped = tuple([call.finish(row, call.tuple_in) for row in found])
    return shaped if call.tuple_out else shaped[0]


def _rows(call: _Call, index: int, y: Tensor, vectorize: bool) -> list[Tensor]:
    """Return ∂y/∂x for every input x."""
    xs, create_graph = call.starts, call.create_graph
    if not y.requires_grad or y.numel() == 0:
        return [wrap(np.zeros((*y.shape, *x.shape), x.dtype)) for x in xs]
    if vectorize:
        return reverse_jacobian(y, xs, create_graph)

    def pull(cotangent: AnyArray, more: bool) -> Sequence[Any]:
        row = _gradients((y,), xs, (wrap(cotangent),), create_graph, True)
        if call.strict:
            _check_dependence(row, f"Output {index} of the user-provided function", "jacobian", create_graph)
        return row

    return [tensor_of(x) for x in compute_rows(pull, y, xs, 1, "jacobian")]


def hessian(
    func: AnyFunction,
    inputs: object,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Compute the matrix of second derivatives of a function that returns one element.

    Args:
        vectorize, outer_jacobian_strategy: as in :func:`jacobian`, for the Jacobian of the gradient.

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
    arguments, as_tuple = _tensors("hessian", "inputs", inputs)

    def gradient(*args: Tensor) -> Tensors:
        call = _Call("hessian", func, args, True, strict)
        call.record()
        grads = _gradients((call.scalar(),), call.starts, (None,), True)
        if strict:
            _check_gradient(grads)
        return _with_zeros(grads, call.starts)

    result = jacobian(gradient, arguments, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if as_tuple else result[0][0]


def vhp(
    func: AnyFunction, inputs: object, v: object = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, which has one element, and the product of a vector with its Hessian (two backward passes).

    Args:
        v: of the inputs' shapes; may be None for one input of one element.

    Returns:
        ``(output, products)``; the products have the inputs' shapes.

    >>> import chainrule as cr
    >>> cr.autograd.functional.vhp(lambda x: (x ** 3).sum(), cr.tensor([1., 2.]), cr.tensor([1., 1.]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    call = _Call("vhp", func, inputs, create_graph, strict)
    with inference_mode(False):
        vs = call.input_vector(v)
        call.record()
        xs = call.starts
        grads = _gradients((call.scalar(),), xs, (None,), True)
        if strict:
            _check_dependence(grads, "The output of the user-provided function", "jacobian", False)
            _check_gradient(grads)
        products = _gradients(_with_zeros(grads, xs), xs, vs, create_graph)
        products = call.zeros_for_none(products, xs, "hessian")
    return call.finish(call.outputs, False), call.finish(products, call.tuple_in)


def hvp(
    func: AnyFunction, inputs: object, v: object = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, which has one element, and the product of its Hessian with a vector.

    The derivative along v is computed in forward mode, and its gradient in reverse mode.

    Args:
        v: of the inputs' shapes; may be None for one input of one element.

    Returns:
        ``(output, products)``; the products have the inputs' shapes.

    >>> import chainrule as cr
    >>> cr.autograd.functional.hvp(lambda x: (x ** 3).sum(), cr.tensor([1., 2.]), cr.tensor([1., 1.]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    call = _Call("hvp", func, inputs, create_graph, strict)
    with inference_mode(False):
        tangents = [t for t in call.push(call.input_vector(v), True) if t is not None]
        y = call.scalar()
        if strict:
            call.check_reached()
            _check_gradient(_gradients((y,), call.starts, (None,), True, True))
        products = _gradients(tangents, call.starts, (None,) * len(tangents), create_graph)
        products = call.zeros_for_none(products, call.starts, "hessian")
    return call.finish(call.outputs, False), call.finish(products, call.tuple_in)
