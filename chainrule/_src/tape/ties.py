"""Ties: recorded dependencies of gradients on operands by which their derivative is zero.

The gradient of ``relu`` is ``g * (out > 0)``. A comparison has no derivative, so this gradient depends on no operand,
and differentiating it again would raise. PyTorch returns zeros instead. Primitives with ``tied=True`` (and results that
``tie_cotangents`` was called on) therefore tie their recorded cotangents to the operands. No cotangent flows along a tie. At the
end of a sweep, edges that only ties reach get zeros. ``engine`` calls this module.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Cotangents, Saved
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.eager import new_node
from chainrule._src.tape.foreign import zeros_on_device_of
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.node import Edge, Edges, Leaf, Node
from chainrule._src.tape.saved import unpack_saved
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap


def tie_cotangents(result: Tensor) -> Tensor:
    """Tie the cotangents of a result's node: for composite operations that are one operation in PyTorch."""
    node = result._edge
    if isinstance(node, Node):
        node.pullback = _tied_pullback
    return result


def _tied_pullback(node: Node, g: object, saved: Saved, edges: Edges) -> Cotangents:
    grads: Cotangents = node.prim.pullback(node, g, unpack_saved(saved), edges)
    return tied_cotangents(node, grads) if LOCAL.sweep is not None and LOCAL.sweep.ties else grads


def tied_cotangents(node: Node, grads: Cotangents) -> Cotangents:
    """Return a node's recorded cotangents, tied to its operands."""
    return tuple([None if grad is None else _tied(tensor_of(grad), node.edges) for grad in grads])


def _tied(grad: Tensor, anchors: Edges) -> Tensor:
    return wrap(grad._raw, new_node(_TIE, {}, (grad._edge, *anchors)))


def _pull(node: Node, g: object, saved: Saved, edges: Edges) -> Cotangents:
    if LOCAL.sweep is not None:
        LOCAL.sweep.notes.setdefault(_TIE, []).append(node)
    return (g, *(None,) * (len(edges) - 1))


def visited_ties(notes: dict[object, list[Node]]) -> list[Node]:
    """Return the tie nodes that a sweep has visited, from its notes."""
    return notes.get(_TIE, [])


ZERO: Any = object()  # a zero gradient of any shape, for an edge that only ties reach


def add_zeros_at_ties(
    state: Any, reached: list[Edge], leaves: list[tuple[Leaf, AnyArray]], accumulate: bool, torch_api: bool
) -> None:
    """Add zeros to the results of a sweep for edges that only ties reach.

    Args:
        state: the ``Sweep``.
        reached: the edges that can be reached from the visited ties.
        leaves: the gradients of leaves, extended by zeros.
        torch_api: capture ``ZERO`` for edges that are no leaves.
    """
    captured = state.captured
    leaves_with_grad = {leaf for leaf, _ in leaves}
    for edge in reached:
        if state.wanted is not None and (edge not in state.wanted or edge in captured):
            continue
        if type(edge) is Leaf:
            zeros = zeros_on_device_of(edge.data, shape_of(edge.data), edge.data.dtype)
            if state.wanted is not None:
                captured[edge] = zeros
            if accumulate and edge not in leaves_with_grad:
                leaves.append((edge, zeros))
        elif state.wanted is not None and torch_api:
            captured[edge] = ZERO


def _value(x: AnyArray, *operands: AnyArray) -> AnyArray:
    return x


_TIE = Primitive(_value, "linear", formula={"x": "g"}, listed=False)
_TIE.name = "tie"
_TIE.pullback = _pull
_TIE.doc = "The first operand, which depends on the others with derivative 0."
