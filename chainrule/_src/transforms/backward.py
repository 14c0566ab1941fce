"""``backward``, ``autograd.grad`` and ``Tensor.backward``: check tensors and gradients, and run a sweep of the engine."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.messages import errors
from chainrule._src.ops.creation import zeros_like
from chainrule._src.tape import engine, ties
from chainrule._src.tape.dispatch import rank
from chainrule._src.tape.foreign import ones_of, zeros_on_device_of
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.node import Edge, Freed, Leaf, Node, output_of
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.saved import saved_tensors
from chainrule._src.tape.tensor import Tensor, attach_methods, tensor_of, wrap

ndarray = np.ndarray


def _later(module: str) -> Any:
    """Import a module that few backward passes need."""
    return importlib.import_module("chainrule._src.transforms." + module)


def _is_dual(x: object) -> bool:
    """Return whether a tensor is dual, so that its history is that of its primal. (Imports forward mode if so.)"""
    return isinstance(x, Tensor) and x._edge is None and isinstance(x._raw, ArrayLike) and _later("duals").is_dual(x)


class GradientEdge(NamedTuple):
    """An edge of the graph: a node and the index of one of its outputs. Can replace a tensor in ``grad`` and ``backward``."""

    node: Any
    output_nr: int = 0
    ownership_token: Any = None  # see Origin


GradientEdge.__module__ = "chainrule.autograd.graph"


class Origin:
    """Shape, dtype and edge of the tensor that a :class:`GradientEdge` was taken from."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        data = tensor._raw
        self.tensor = wrap(np.broadcast_to(np.zeros((), data.dtype), data.shape), tensor._edge)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin) and self.tensor._edge is other.tensor._edge

    def __hash__(self) -> int:
        return hash(self.tensor._edge)


def _several(value: Any) -> Any:
    """Convert an iterator to a tuple; return other values unchanged."""
    plain = isinstance(value, (Tensor, GradientEdge, tuple, list, dict, str, ndarray)) or not isinstance(
        value, Iterable
    )
    return value if plain else tuple(value)


def _sequence(function: str, argument: str, value: object) -> tuple[Any, ...]:
    if isinstance(value, (Tensor, GradientEdge)):
        return (value,)
    items = value if isinstance(value, (tuple, list)) else (value,)
    for item in items:
        if not isinstance(item, (Tensor, GradientEdge)):
            if argument == "inputs" and function == "backward":
                raise errors.inputs_type(item)
            raise errors.not_a_tensor(function, argument, item)
    return tuple(items)


def first_cotangent(index: int, output: Tensor, gradient: Any, create_graph: bool, batched: bool = False) -> Any:
    """Check and return the cotangent with which a sweep starts: raw data, or a tensor with ``create_graph``.

    A ``batched`` cotangent has a leading batch axis.
    """
    data = output._raw
    if gradient is None:
        if math.prod(data.shape) != 1:
            raise errors.implicit_scalar(output)
        if data.dtype.kind == "c":
            raise errors.implicit_not_real(data.dtype)
        one = ones_of(data)
        return wrap(one) if create_graph else one
    gradient = _as_tensor(gradient)
    raw = gradient._raw
    if batched:
        if not raw.shape or raw.shape[1:] != data.shape:
            raise errors.batched_gradient_shape(index, gradient, output)
    elif raw.shape != data.shape:
        raise errors.gradient_shape(index, gradient, output)
    if raw.dtype != data.dtype:
        if raw.dtype.kind == "c" and data.dtype.kind != "c":
            raise errors.gradient_dtype(index, gradient, output)
        return gradient.to(data.dtype) if create_graph else raw.astype(data.dtype)
    if create_graph:
        return gradient
    return raw if type(raw) is ndarray or rank(gradient) == rank(output) else gradient


def _as_tensor(gradient: AnyArray) -> Tensor:
    if isinstance(gradient, Tensor):
        return gradient
    if isinstance(gradient, (ndarray, np.generic)):
        return wrap(gradient)
    raise errors.gradient_type(gradient)


def _cotangents(gradients: object, count: int) -> tuple[AnyArray | None, ...]:
    """Return the caller's gradients as a tuple, one (or None) for each of ``count`` outputs."""
    if gradients is None:
        return (None,) * count
    if isinstance(gradients, (Tensor, ndarray, np.generic)):
        grads: tuple[Any, ...] = (gradients,)
    elif isinstance(gradients, Iterable) and not isinstance(gradients, str):
        grads = tuple(gradients)
    else:
        raise errors.gradient_type(gradients)
    if len(grads) != count:
        raise errors.gradient_count(count, len(grads))
    return grads


def _starts(
    function: str, outputs: object, gradients: object, create_graph: bool, batched: bool = False
) -> tuple[list[Any], list[Any]]:
    """Return the outputs' edges, and a cotangent for each, with which a sweep starts."""
    tensors = _sequence(function, "tensors" if function == "backward" else "outputs", outputs)
    edges = []
    cotangents = []
    for i, (output, gradient) in enumerate(zip(tensors, _cotangents(gradients, len(tensors)))):
        if batched and gradient is None:
            raise errors.batched_gradient_missing(i)
        if isinstance(output, GradientEdge) and isinstance(output.ownership_token, Origin):
            output = output.ownership_token.tensor
        elif isinstance(output, GradientEdge):
            if gradient is None:
                raise errors.edge_has_no_shape()
            g = _as_tensor(gradient)
            edges.append(_edge_of(output))
            cotangents.append(g if create_graph else g._raw)
            continue
        if output._edge is None:
            raise errors.no_grad_fn(i, output)
        edges.append(output._edge)
        cotangents.append(first_cotangent(i, output, gradient, create_graph, batched))
    sizes = {g.shape[0] for g in cotangents} if batched else ()
    if len(sizes) > 1:
        raise errors.batched_gradient_sizes(sorted(sizes))
    return edges, cotangents


def _edge_of(edge: GradientEdge) -> Any:
    """Return the tape's edge of a GradientEdge."""
    node = edge.node
    return output_of(node, edge.output_nr) if isinstance(node, Node) and len(node.prim.outputs) > 1 else node


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the gradients of leaves and add them to their ``.grad``.

    Args:
        tensors: the outputs.
        grad_tensors: for each output ∂L/∂output, of the output's shape; may be None for scalar outputs.
        retain_graph: keep the graph's saved values for another backward (default: the value of ``create_graph``).
        create_graph: record the backward pass, so that gradients can be differentiated again.
        inputs: the tensors whose gradients are computed; default: all leaves.

    Raises:
        RuntimeError: an output is not a scalar and has no gradient; a gradient has the wrong shape; an output does not
            require grad; the graph's saved values were freed or overwritten. ``.grad`` is unchanged in all cases.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    tensors, grad_tensors, inputs = _several(tensors), _several(grad_tensors), _several(inputs)
    if inputs is not None and not isinstance(inputs, (Tensor, GradientEdge)) and len(inputs) == 0:
        raise errors.empty_inputs("backward")
    if _any_dual(tensors):
        tensors, grad_tensors = _primals(tensors), _primals(grad_tensors)
    edges, starts = _starts("backward", tensors, grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else bool(retain_graph)
    if inputs is None:
        engine.sweep(edges, starts, retain_graph=keep, create_graph=create_graph, ties=True)
        return
    wanted = _sequence("backward", "inputs", inputs)
    targets = [_target(i, t) for i, t in enumerate(wanted)]
    for tensor in wanted:
        if isinstance(tensor, Tensor):
            tensor.retain_grad()
    engine.sweep(edges, starts, targets, retain_graph=keep, create_graph=create_graph, ties=True)


def _target(index: int, tensor: Any) -> Edge:
    if isinstance(tensor, GradientEdge):
        return _edge_of(tensor)
    if tensor._edge is None:
        inner = tensor._raw.recorded if _is_dual(tensor) else None
        if inner is None:
            raise errors.input_requires_no_grad(index, tensor)
        return _target(index, inner)
    return tensor._edge


def _any_dual(tensors: object) -> bool:
    if isinstance(tensors, (tuple, list)):
        return any([_is_dual(t) for t in tensors])
    return _is_dual(tensors)


def _primals(tensors: object) -> Any:
    if isinstance(tensors, (tuple, list)):
        return tuple(_later("duals").primal_and_tangent(t)[0] for t in tensors)
    return _later("duals").primal_and_tangent(tensors)[0]


def grad(
    outputs: object,
    inputs: object,
    grad_outputs: object = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Compute gradients of ``outputs`` with respect to ``inputs``, and return them without adding them to ``.grad``.

    ``grad_outputs`` holds for each output ∂L/∂output, one number per element (so it has the output's shape); the result for
    input x is Σ ∂L/∂output · ∂output/∂x. ``ones_like(output)`` means L = output.sum().

    Args:
        outputs: the tensors to differentiate: one, or an iterable of them.
        inputs: the tensors to differentiate with respect to (leaves or not): one, an iterable, or a dictionary of them.
        grad_outputs: may be None for scalar outputs.
        retain_graph: keep the graph's saved values for another backward (default: the value of ``create_graph``).
        create_graph: record the backward pass, so that the results can be differentiated again.
        allow_unused: return None for an input that the outputs do not depend on, instead of raising.
        is_grads_batched: every grad_output has an extra leading axis; a gradient is computed for each entry in one pass.
        materialize_grads: return zeros instead of None for unused inputs.

    Returns:
        A tuple with one tensor for each input, or a dictionary with the keys of ``inputs``.

    >>> import chainrule as cr
    >>> x = cr.tensor([1., 2., 3., 4.], requires_grad=True)
    >>> y = cr.outer(x, x)
    >>> cr.autograd.grad(y, x, grad_outputs=cr.ones_like(y))
    (tensor([20., 20., 20., 20.]),)
    """
    outputs, inputs, grad_outputs = _several(outputs), _several(inputs), _several(grad_outputs)
    wanted = _sequence("grad", "inputs", tuple(inputs.values()) if isinstance(inputs, dict) else inputs)
    if not wanted:
        raise errors.empty_inputs("grad")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    found = _gradients(
        outputs,
        wanted,
        grad_outputs,
        retain_graph=create_graph if retain_graph is None else bool(retain_graph),
        create_graph=create_graph,
        allow_unused=allow_unused,
        is_grads_batched=is_grads_batched,
        materialize_grads=materialize_grads,
    )
    return dict(zip(inputs, found, strict=True)) if isinstance(inputs, dict) else found


def _gradients(
    outputs: object,
    wanted: tuple[object, ...],
    grad_outputs: object,
    block: Node | None = None,
    *,
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool | None,
    is_grads_batched: bool,
    materialize_grads: bool,
) -> tuple[Tensor | None, ...]:
    """Implement ``grad`` for checked inputs; ignore paths through the edge ``block``."""
    if _any_dual(outputs):
        if block is not None:
            raise errors.blocked_below()
        tensors = _sequence("grad", "outputs", outputs)
        return _later("duals").grad_of_duals(
            _gradients,
            tensors,
            wanted,
            _cotangents(grad_outputs, len(tensors)),
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=allow_unused,
            is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads,
        )
    edges, cotangents = _starts("grad", outputs, grad_outputs, create_graph, is_grads_batched)
    targets = [_target(i, t) for i, t in enumerate(wanted)]
    order = None if block is None else [edge for edge in engine.reachable(edges) if edge is not block]

    def pull(gs: list[AnyArray]) -> list[AnyArray | None]:
        found = engine.sweep(
            edges,
            [wrap(g) for g in gs] if create_graph and is_grads_batched else gs,
            targets,
            retain_graph=retain_graph,
            create_graph=create_graph,
            accumulate=False,
            retain_grads=not is_grads_batched,  # .grad of non-leaf tensors cannot hold a batch
            ties=True,
            order=order,
        )
        for i, (g, tensor) in enumerate(zip(found, wanted)):
            if g is ties.ZERO:
                found[i] = (
                    zeros_on_device_of(tensor, tensor.shape, tensor.dtype) if isinstance(tensor, Tensor) else None
                )
        return found

    found = (
        _later("dense").pull_batch(pull, cotangents, "grad(is_grads_batched=True)")
        if is_grads_batched
        else pull(cotangents)
    )
    results: list[Tensor | None] = []
    arguments = _later("arguments")
    foreign = {arguments.array_id(g) for g in cotangents}
    for i, (g, tensor) in enumerate(zip(found, wanted)):
        if g is None:
            if not (allow_unused or materialize_grads):
                raise errors.unused_input(i, tensor, outputs)
            if materialize_grads and isinstance(tensor, GradientEdge):
                raise errors.materialize_edge(i)
            results.append(zeros_like(tensor, requires_grad=create_graph) if materialize_grads else None)
            continue
        result = g if isinstance(g, Tensor) else wrap(arguments.own_copy(g, foreign))
        if result._edge is None:
            if not create_graph:
                result._cut = errors.GRADIENT
            elif result._cut is None or not result._cut.of_gradient:
                result._cut = errors.LINEAR
        results.append(result)
    return tuple(results)


def _tensor_backward(
    self: Tensor,
    gradient: object = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: object = None,
) -> None:
    """Compute the gradients of the leaves that this tensor was computed from, and add them to their ``.grad``.

    Args:
        gradient: ∂L/∂self, of this tensor's shape; may be omitted for a scalar. The gradient of a leaf x is
            Σ gradient · ∂self/∂x.
        retain_graph: keep the graph's saved values for another backward (default: the value of ``create_graph``).
        create_graph: record the backward pass, so that gradients can be differentiated again.
        inputs: the tensors whose gradients are computed; default: all leaves.

    >>> import chainrule as cr
    >>> a = cr.tensor([1., 2., 3.], requires_grad=True)
    >>> (a * a).backward(cr.ones(3))
    >>> a.grad
    tensor([2., 4., 6.])
    """
    if inputs is None and not create_graph and type(self._raw) is ndarray and self._edge is not None:
        start = first_cotangent(0, self, gradient, False)
        engine.sweep([self._edge], [start], retain_graph=bool(retain_graph), create_graph=False)
        return
    backward(self, None if gradient is None else [gradient], retain_graph, create_graph, inputs=inputs)


_tensor_backward.__name__ = "backward"
_tensor_backward.__qualname__ = "Tensor.backward"
attach_methods(backward=_tensor_backward)


def _call_node(self: Node, *cotangents: Tensor) -> Any:
    """Apply the node's rule to a cotangent of its output; return a cotangent for each operand that needs one."""
    if len(cotangents) != len(self.prim.outputs):
        raise errors.node_arguments(len(self.prim.outputs), len(cotangents))
    if type(self.saved) is Freed:
        raise errors.second_backward(self)
    tensors = all(isinstance(c, Tensor) for c in cotangents)
    recorded = tensors and is_recording() and any(c._edge is not None for c in cotangents)
    saved = saved_tensors(self) if recorded else self.saved
    gs = tuple([c._raw if isinstance(c, Tensor) and not recorded else c for c in cotangents])
    g = gs if len(self.prim.outputs) > 1 else gs[0]
    try:
        results = tuple(None if r is None else tensor_of(r) for r in self.pullback(self, g, saved, self.edges))
    except (ValueError, IndexError) as error:
        if self.prim.kind == "function":  # the user's own code
            raise
        raise errors.node_gradient_shape(self, cotangents) from error
    return results[0] if len(results) == 1 else results


def _leaf_itself(value: Tensor | None) -> Tensor | None:
    """Return the user's tensor for a saved leaf, if it is alive and its data is unchanged; else the value."""
    if isinstance(value, Tensor) and type(value._edge) is Leaf:
        tensor = value._edge.tensor()
        if tensor is not None and tensor._raw is value._raw:
            return tensor
    return value


def _node_attribute(self: Node, name: str) -> Any:
    """Return ``_saved_self``, ``_saved_other``, ``_saved_result`` or a parameter, by PyTorch's name."""
    if self.prim.kind == "function":
        return self.prim.attribute(self, name)  # type: ignore[attr-defined]
    if not name.startswith(("_saved_", "_raw_saved_")):
        raise errors.no_node_attribute(self.name(), name)
    prim = self.prim
    raw, wanted = name.split("saved_", 1)
    for i, saved in enumerate(prim.saves):
        if wanted in (saved, prim.aliases.get(saved)):
            if raw == "_raw_":
                return _later("saved_tensor").raw_saved(self, i)
            if type(self.saved) is Freed:
                raise errors.second_backward(self)
            value = saved_tensors(self)[i]
            return wrap(value) if isinstance(value, ndarray) else _leaf_itself(value)
    for key in (wanted, {"dim": "axis", "keepdim": "keepdims"}.get(wanted)):
        if key in self.params:
            return self.params[key]
    names = ", ".join("_saved_" + prim.aliases.get(s, s) for s in prim.saves) or "nothing"
    raise AttributeError(f"{self.name()} has not saved {wanted!r}; it has {names}")


def _node_names(self: Node) -> list[str]:
    prim = self.prim
    names = [] if prim.kind == "function" else [prim.aliases.get(name, name) for name in prim.saves]
    names += [key for key in self.params if prim.kind != "function" and not key.startswith("_")]
    return sorted([*object.__dir__(self), *[f"_saved_{name}" for name in names]])


setattr(Node, "__dir__", _node_names)  # noqa: B010
setattr(Node, "__call__", _call_node)  # noqa: B010
setattr(Node, "__getattr__", _node_attribute)  # noqa: B010
