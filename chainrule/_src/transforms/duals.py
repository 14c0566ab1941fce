"""Backward passes from dual tensors (forward over reverse). ``backward.grad`` calls ``grad_of_duals``.

A dual tensor y has a primal P and a tangent T, which are both on the tape if y requires grad. Sweeping P with a cotangent g gives
the gradient. The gradient's tangent is its derivative along the direction of the inputs. Because second derivatives are symmetric,
the sweep of T with g computes it; if g has a tangent ġ, the sweep of P with ġ is added. An input x that is not a leaf has a tangent
on the tape, too, and paths to x through that tangent must not be counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.interpreters.dual import Dual
from chainrule._src.tape.dispatch import rank
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule._src.transforms.arguments import interpreter_content

ndarray = np.ndarray


def is_dual(x: object) -> bool:
    """Return whether a tensor is dual, so that its history is that of its primal."""
    return isinstance(x, Tensor) and x._edge is None and type(x._raw) is Dual


def primal_and_tangent(x: Any, level: int | None = None) -> tuple[Any, Any]:
    """Return a tensor's primal and tangent at a level (default: any) as tensors; for a tensor without tangent, it and None."""
    if not is_dual(x) or (level is not None and x._raw.level != level):
        return x, None
    dual = x._raw
    return tensor_of(dual.primal), None if dual.tangent is None else tensor_of(dual.tangent)


def grad_of_duals(
    plain: Callable[..., tuple[Any, ...]],
    outputs: Sequence[object],
    inputs: Sequence[AnyArray],
    cotangents: Sequence[object],
    *,
    retain_graph: bool,
    **options: object,
) -> tuple[Any, ...]:
    """Compute the gradients of dual outputs, which are dual if they have tangents.

    Args:
        plain: ``plain(outputs, inputs, cotangents, block, retain_graph=, ...)`` computes gradients of the primals and tangents;
            it ignores paths through the edge ``block``.
        outputs, inputs, cotangents: as in ``autograd.grad``; a cotangent may be None, or dual itself.
        retain_graph, options: as in ``autograd.grad``.
    """
    level = max(rank(y) for y in outputs if is_dual(y)) // 2
    primals, tangents = zip(*[primal_and_tangent(y, level) for y in outputs])
    gs, moves = zip(*[primal_and_tangent(g, level) for g in cotangents])
    wanted, speeds = zip(*[primal_and_tangent(x, level) for x in inputs])
    moving = [(t, g) for t, g in zip(tangents, gs) if t is not None and t.requires_grad]
    moving += [(p, m) for p, m in zip(primals, moves) if m is not None and p.requires_grad]
    found = plain(primals, wanted, gs, retain_graph=retain_graph or bool(moving), **options)
    if not moving:
        return found
    ends = [t for t, _ in moving]
    seeds = [wrap(np.ones(t.shape, t.dtype)) if g is None else g for t, g in moving]
    options = {**options, "allow_unused": True, "materialize_grads": False}
    results = []
    for i, (g, x, speed) in enumerate(zip(found, wanted, speeds)):
        block = None
        if speed is not None and isinstance(x, Tensor) and type(x._edge) is not Leaf:
            block = speed._edge
        keep = retain_graph or i + 1 < len(wanted)
        (rate,) = plain(ends, (x,), seeds, block, retain_graph=keep, **options)
        results.append(
            g if g is None or rate is None else wrap(Dual(interpreter_content(g), interpreter_content(rate), level))
        )
    return tuple(results)
