"""``linearize`` (the derivative of a function at a point) and ``linear_transpose`` (the transpose of a linear function).

``chainrule.func`` exports both.

Both use the pullback, which is linear in its cotangent. It is the transpose of the derivative, so ``linearize`` records
the pullback and transposes it again by a second pullback.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.grad_mode import inference_mode
from chainrule._src.arrays.tree import TreeSpec, leaf_paths, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, R, TensorLike
from chainrule._src.tape import engine
from chainrule._src.tape.node import Node, leading_to
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.arguments import (
    array_id,
    as_caller_type,
    data_of,
    flatten_like,
    has_tensor,
    is_array,
    own_copy,
)
from chainrule._src.transforms.grad import cotangents_like
from chainrule._src.transforms.trace import Trace, fresh_leaf

ndarray = np.ndarray


def linearize(func: Callable[..., R], *primals: TensorLike) -> tuple[R, AnyFunction]:
    """Compute ``func(*primals)`` and a function that applies its derivative at the primals to any number of tangents.

    The function runs once, and the values that its derivative needs are saved. For a single tangent, :func:`jvp` is
    cheaper.

    Args:
        func: a function from arrays or tensors (or nested containers of them) to arrays or tensors.
        primals: the arguments of ``func``.

    Returns:
        ``(output, jvp_fn)``; ``jvp_fn(*tangents)`` returns the tangent of the output. The tangents must have the
        structure, shapes and dtypes of the primals.

    Raises:
        RuntimeError: the output contains a value that has no derivative; tangents don't match the primals.

    >>> import chainrule as cr
    >>> y, push = cr.func.linearize(lambda x: x ** 2, cr.tensor([1., 2.]))
    >>> push(cr.tensor([1., 1.])), push(cr.tensor([0., 1.]))
    (tensor([2., 4.]), tensor([0., 4.]))
    """
    trace = Trace("linearize(f, *primals)", func, range(len(primals)), primals, {})
    outputs, spec = trace.outputs()
    with inference_mode(False):
        slots = [fresh_leaf(np.zeros(tuple(y._raw.shape), y._raw.dtype)) for y in outputs]
        gradients = trace.sweep_to_inputs(outputs, slots, True, create_graph=True)
    structure = tree_flatten(primals)[1]
    tensors = has_tensor(trace.leaves)
    targets = [slot._edge for slot in slots]
    trace.edges += targets
    trace.set_starts(sys.maxsize)

    def jvp_fn(*tangents: AnyArray) -> Any:
        as_tensors = tensors or has_tensor(tree_flatten(tangents)[0])
        ts = _tangents_like(trace, structure, tangents)
        reached = [(g, t) for g, t in zip(gradients, ts, strict=True) if g is not None]
        try:
            trace.set_starts(trace.began)
            found = trace.sweep_to_inputs(
                [g for g, _ in reached], [t for _, t in reached], True, None, targets, targets
            )
        finally:
            trace.set_starts(sys.maxsize)
        foreign = {array_id(t._raw if isinstance(t, Tensor) else t) for t in ts}
        for i, (t, y) in enumerate(zip(found, outputs, strict=True)):
            t = np.zeros(tuple(y._raw.shape), y._raw.dtype) if t is None else own_copy(t, foreign)
            found[i] = as_caller_type(t, as_tensors)
        return tree_unflatten(found, spec)

    return tree_unflatten([trace.value(y) for y in outputs], spec), jvp_fn


def _tangents_like(trace: Trace, structure: TreeSpec, tangents: tuple[AnyArray, ...]) -> list[Any]:
    leaves = flatten_like(
        structure, tangents, "Expected the tangents {got} to have the same argspec as the primals {spec}"
    )
    for i, (t, x) in enumerate(zip(leaves, trace.starts, strict=True)):
        if not is_array(t):
            t = np.asarray(data_of(t), x._raw.dtype)
        data = data_of(t)
        for what, have, want in (
            ("shape", tuple(data.shape), tuple(x._raw.shape)),
            ("dtype", data.dtype, x._raw.dtype),
        ):
            if have != want:
                raise RuntimeError(
                    f"tangent:{i} with {what} {have} in flattened pytree doesn't match the {what} {want} of the "
                    f"corresponding primal (primals{leaf_paths(structure)[i]})."
                )
        leaves[i] = t if isinstance(t, Tensor) else data
    return leaves


def linear_transpose(func: AnyFunction, *primals: object) -> AnyFunction:
    """Return the transpose of a linear function.

    Args:
        func: a function that is linear (jointly in all its arguments). It is called once, at zeros.
        primals: arrays or tensors (or nested containers of them) like its arguments: only shapes and dtypes matter.

    Returns:
        A function that takes a cotangent like the output of ``func`` and returns a tuple of cotangents like the
        arguments. For complex numbers it is the transpose without conjugation.

    Raises:
        RuntimeError: the function is not linear: it has a constant term, or an operation in it is not linear in the
            operands that depend on the arguments. (Branches on comparisons of the arguments are not detected.)

    >>> import chainrule as cr
    >>> A = cr.tensor([[1., 2., 3.], [4., 5., 6.]])
    >>> transposed = cr.func.linear_transpose(lambda x: A @ x, cr.zeros(3))
    >>> transposed(cr.tensor([1., 0.]))
    (tensor([1., 2., 3.]),)
    """
    leaves, structure = tree_flatten(primals)
    zeros = [_zeros_like(x) for x in leaves]
    args = tree_unflatten(zeros, structure)
    trace = Trace("linear_transpose(f, *primals)", func, range(len(primals)), args, {})
    outputs, spec = trace.outputs()
    trace.leaves = leaves
    _check_linear(trace, outputs)

    def transposed(*cotangents: object) -> Any:
        gs = [_conj(g) for g in cotangents_like(outputs, spec, cotangents)]
        found = trace.sweep_to_inputs(outputs, gs, True)
        return trace.unflatten_gradients([_conj(g) for g in found], foreign=gs)

    return transposed


def _zeros_like(x: object) -> Any:
    data = data_of(x)
    zeros = np.zeros(tuple(data.shape), data.dtype)
    return wrap(zeros) if isinstance(x, Tensor) else zeros


def _conj(g: AnyArray) -> Any:
    return np.conjugate(g) if g is not None and g.dtype.kind == "c" else g


def _check_linear(trace: Trace, outputs: list[Tensor]) -> None:
    for y in outputs:
        if type(y._raw) is ndarray and y._raw.any():
            raise RuntimeError(
                "linear_transpose(f, *primals): f is not linear: f(0) is not 0, so it has a constant term. Subtract "
                "f(0), or use vjp, which computes the derivative of any function."
            )
    order = engine.reachable([y._edge for y in outputs if y._edge is not None])
    active = leading_to(order, set(trace.edges))
    for node in order:
        if isinstance(node, Node) and node in active and node not in trace.edges and not _linear(node, active):
            raise RuntimeError(
                f"linear_transpose(f, *primals): f is not linear: {node.name()} is not linear in the operands that "
                "depend on the arguments. Use vjp, which computes the derivative of any function at a point."
            )


def _linear(node: Node, active: set[Any]) -> bool:
    """Return whether every needed rule uses only saved values that don't depend on the arguments."""
    prim = node.prim
    if prim.variadic:
        return not prim.saves
    active_operands = {i for i, edge in enumerate(node.edges) if edge in active}
    for name, users in zip(prim.saves, prim.save_users, strict=True):
        needed = users is None or any(i in active_operands for i in users)
        if needed and (name not in prim.operands or prim.operands.index(name) in active_operands):
            return False
    return True


__all__ = ["linear_transpose", "linearize"]
