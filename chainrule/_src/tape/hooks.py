"""Run users' hooks during a backward pass, and check the values that they return.

``engine.Sweep.visit`` and ``accumulate`` call this module. A hook gets tensors. A replacement that it returns must have
the gradient's type, shape and dtype; otherwise an error is raised before any ``.grad`` is written. A hook may keep
references to its arguments and its result, so the sweep records these arrays as escaped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, Cotangents
from chainrule._src.messages import errors
from chainrule._src.tape.modes import LOCAL, grad_mode
from chainrule._src.tape.node import Edge, Hooks
from chainrule._src.tape.tensor import Tensor, tensor_of

ndarray = np.ndarray


def tensor_hooks(
    edge: Edge, g: AnyArray, hooks: Hooks, retained: list[tuple[Tensor, AnyArray]], create_graph: bool
) -> AnyArray:
    """Run the hooks of the tensors at an edge. Then, if a tensor retains its gradient, append it to ``retained``."""
    if hooks.tensor:
        with grad_mode(create_graph):
            for hook in list(hooks.tensor.values()):
                mark_escaped(g)
                result = hook(tensor_of(g))
                if result is not None:
                    g = _bare(_replacement(hook, result, g), create_graph)
        mark_escaped(g)
    if hooks.retain is not None:
        tensor = hooks.retain()
        if tensor is not None:
            retained.append((tensor, g))
    return g


def pre_hooks(g: object, hooks: Hooks, create_graph: bool) -> Any:
    """Run the hooks before a node's rule. They get the cotangents of its outputs and may replace them."""
    parts = g if type(g) is list else [g]
    grads = tuple(None if p is None else tensor_of(p) for p in parts)
    with grad_mode(create_graph):
        for hook in list(hooks.pre.values()):
            grads = _replacements(hook, hook(grads), grads)
    bare = [None if p is None else _bare(p, create_graph) for p in grads]
    mark_escaped(*parts, *bare)
    return bare if type(g) is list else bare[0]


def post_hooks(grads: Cotangents, g: object, hooks: Hooks, create_graph: bool) -> Cotangents:
    """Run the hooks after a node's rule. They get the cotangents of its inputs and outputs, and may replace those of inputs."""
    replaced = tuple(None if r is None else tensor_of(r) for r in grads)
    outs = tuple(None if p is None else tensor_of(p) for p in (g if type(g) is tuple else (g,)))
    with grad_mode(create_graph):
        for hook in list(hooks.post.values()):
            replaced = _replacements(hook, hook(replaced, outs), replaced)
    bare = tuple(None if r is None else _bare(r, create_graph) for r in replaced)
    mark_escaped(*grads, *(p._raw for p in outs if p is not None), *bare)
    return bare


def _replacements(hook: AnyFunction, results: object, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    if results is None:
        return grads
    if not isinstance(results, tuple):
        raise errors.hook_type("tuple", results)
    if len(results) != len(grads):
        raise errors.hook_count(hook, len(results), len(grads))
    for result, before in zip(results, grads, strict=True):
        if before is None and result is not None:
            raise errors.hook_fills_none()
    return tuple(None if r is None else _replacement(hook, r, g) for r, g in zip(results, grads, strict=True))


def _replacement(hook: AnyFunction, result: object, g: Any) -> Tensor:
    if not isinstance(result, Tensor):
        raise errors.hook_type("Variable", result)
    if result._raw.shape != tuple(g.shape):
        raise errors.hook_shape(hook, tuple(g.shape), result._raw.shape)
    if result._raw.dtype != g.dtype:
        raise errors.hook_dtype(hook, g.dtype, result._raw.dtype)
    return result


def _bare(g: Tensor, create_graph: bool) -> AnyArray:
    return g if create_graph else g._raw


def mark_escaped(*gradients: object) -> None:
    """Record that users may have references to these gradients, so that no ``.grad`` shares their memory."""
    sweep = LOCAL.sweep
    if sweep is not None:
        for g in gradients:
            if type(g) is ndarray:
                sweep.escaped.add(id(g if g.base is None else g.base))


def run_post_accumulate_hooks(hooks: Hooks, tensor: Tensor, g: AnyArray, create_graph: bool) -> None:
    """Run the hooks of a leaf after its ``.grad`` is written."""
    with grad_mode(create_graph):
        for hook in list(hooks.post_accumulate.values()):
            result = hook(tensor)
            if result is not None:
                raise errors.hook_returned(hook) if isinstance(result, Tensor) else errors.hook_type("Variable", result)
        for hook in list(hooks.post.values()):
            _replacements(hook, hook((), (tensor_of(g),)), ())
