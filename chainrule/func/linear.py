"""Linear maps that are taken from functions: a derivative at a point, and the transpose of a linear function.

Both follow from the pullback. It is linear in its cotangent, so pulling back through *it*, recorded, gives the
derivative itself: the transpose of the transpose.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.core import engine
from chainrule.core.array import unfaced
from chainrule.core.modes import inference_mode
from chainrule.core.node import Node
from chainrule.core.tensor import Tensor, wrap
from chainrule.func.arguments import data_of, dressed, has_tensor, is_array, own
from chainrule.func.reverse import Trace, cotangents_like, differentiable_outputs, start
from chainrule.tree import leaf_paths, leaves_like, tree_flatten, tree_unflatten

ndarray = np.ndarray


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``func(*primals)`` and its derivative there as a linear function of tangents, which can be called many times.

    The function runs once, and what its derivative needs is kept. For one tangent only, :func:`jvp` is cheaper.

    Args:
        func: from arrays or tensors (or nested containers of them) to the same.
        primals: the point.

    Returns:
        ``(output, jvp_fn)``; ``jvp_fn(*tangents)`` takes what has the structure, shapes and dtypes of the primals and
        returns the output's tangent.

    Raises:
        RuntimeError: the output holds something that has no derivative; tangents don't match the primals.

    >>> import chainrule as cr
    >>> y, push = cr.func.linearize(lambda x: x ** 2, cr.tensor([1., 2.]))
    >>> push(cr.tensor([1., 1.])), push(cr.tensor([0., 1.]))
    (tensor([2., 4.]), tensor([0., 4.]))
    """
    trace = Trace("linearize(f, *primals)", func, range(len(primals)), primals, {})
    outputs, spec = differentiable_outputs(trace, "linearize(f, *primals)")
    with inference_mode(False):
        slots = [start(np.zeros(tuple(y._raw.shape), y._raw.dtype)) for y in outputs]
        gradients = trace.pull(outputs, slots, True, create_graph=True)
    structure = tree_flatten(primals)[1]
    tensors = has_tensor(trace.given)
    targets = [slot._edge for slot in slots]
    trace.edges += targets
    trace.set_starts(sys.maxsize)

    def jvp_fn(*tangents: Any) -> Any:
        as_given = tensors or has_tensor(tree_flatten(tangents)[0])
        ts = _tangents(trace, structure, tangents)
        paths = [(g, t) for g, t in zip(gradients, ts, strict=True) if g is not None]
        try:
            trace.set_starts(trace.since)
            found = trace.pull([g for g, _ in paths], [t for _, t in paths], True, None, targets, targets)
        finally:
            trace.set_starts(sys.maxsize)
        zeros = [np.zeros(tuple(y._raw.shape), y._raw.dtype) if t is None else t for t, y in zip(found, outputs)]
        taken = {id(t) for t in ts}
        return tree_unflatten([dressed(own(t, taken), as_given) for t in zeros], spec)

    return tree_unflatten([trace.value(y) for y in outputs], spec), jvp_fn


def _tangents(trace: Trace, structure: Any, tangents: tuple[Any, ...]) -> list[Any]:
    try:
        leaves = leaves_like(structure, tangents, strict=True)
    except ValueError as error:
        raise RuntimeError(
            f"Expected the tangents {tree_flatten(tangents)[1]} to have the same argspec as the primals {structure}: {error}"
        ) from None
    leaves = [unfaced(t) for t in leaves]
    for i, (t, x) in enumerate(zip(leaves, trace.starts, strict=True)):
        if not is_array(t):
            leaves[i] = t = np.asarray(data_of(t), x._raw.dtype)
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


def linear_transpose(func: Callable[..., Any], *primals: Any) -> Callable[..., Any]:
    """The transpose of a linear function.

    Args:
        func: linear (jointly in all its arguments). It is called once, at zeros.
        primals: arrays or tensors (or nested containers of them) like its arguments: only shapes and dtypes matter.

    Returns:
        A function from what is like ``func``'s output to a tuple of what is like its arguments. For complex numbers it is
        the transpose without conjugation.

    Raises:
        RuntimeError: the function turns out not to be linear: it has a constant term, or an operation in it is not
            linear in what depends on the arguments. (Branches on comparisons of the arguments go unnoticed.)

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
    outputs, spec = differentiable_outputs(trace, "linear_transpose(f, *primals)")
    trace.given = leaves
    _check_linear(trace, outputs)

    def transposed(*cotangents: Any) -> Any:
        gs = [_conj(g) for g in cotangents_like(outputs, spec, cotangents)]
        found = trace.pull(outputs, gs, True)
        used = {id(g) for g in gs}
        found = [g.copy() if type(g) is ndarray and id(g) in used else _conj(g) for g in found]
        return trace.arranged(found, False)

    return transposed


def _zeros_like(x: Any) -> Any:
    data = data_of(x)
    zeros = np.zeros(tuple(data.shape), data.dtype)
    return wrap(zeros) if isinstance(x, Tensor) else zeros


def _conj(g: Any) -> Any:
    return np.conjugate(g) if g is not None and g.dtype.kind == "c" else g


def _check_linear(trace: Trace, outputs: list[Tensor]) -> None:
    for y in outputs:
        if type(y._raw) is ndarray and y._raw.any():
            raise RuntimeError(
                "linear_transpose(f, *primals): f is not linear: f(0) is not 0, so it has a constant term. Subtract "
                "f(0), or use vjp, which takes the derivative of any function."
            )
    order = engine.reachable([y._edge for y in outputs if y._edge is not None])
    active = engine.leading_to(order, set(trace.edges))
    for node in order:
        if isinstance(node, Node) and node in active and node not in trace.edges and not _linear(node, active):
            raise RuntimeError(
                f"linear_transpose(f, *primals): f is not linear: {node.name()} is not linear in what depends on the "
                "arguments. Use vjp, which takes the derivative of any function at a point."
            )


def _linear(node: Node, active: set[Any]) -> bool:
    """Whether no rule that is needed reads a value that depends on the arguments."""
    prim = node.prim
    if prim.variadic:
        return not prim.saves
    on = {i for i, edge in enumerate(node.edges) if edge in active}
    for name, users in zip(prim.saves, prim.save_users, strict=True):
        needed = users is None or any(i in on for i in users)
        if needed and (name not in prim.operands or prim.operands.index(name) in on):
            return False
    return True


__all__ = ["linear_transpose", "linearize"]
