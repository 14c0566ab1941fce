"""Gradients that depend on the operands in PyTorch's books, though their derivative is zero.

The gradient of ``relu`` is ``g * (out > 0)``: a comparison has no derivative, so a recorded backward pass would leave a
gradient that depends on nothing, and differentiating it again would be an error. PyTorch gives zeros. Rows with ``tied=True``
(and what ``tie`` was called on) therefore tie their recorded cotangents to the operands. Nothing flows along a tie; once
a sweep is over, what it has reached by ties alone gets zeros.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Cotangents, Saved
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.eager import new_node
from chainrule._src.tape.foreign import zeros_beside
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.node import Edge, Edges, Leaf, Node
from chainrule._src.tape.saved import unpack
from chainrule._src.tape.tensor import Tensor, wrap, wrapped


def tie(result: Tensor) -> Tensor:
    """Tie the cotangents of a result's node: for operations that are made of others, and are one for PyTorch."""
    node = result._edge
    if isinstance(node, Node):
        node.pullback = _tied_pullback
    return result


def _tied_pullback(node: Node, g: object, saved: Saved, edges: Edges) -> Cotangents:
    grads: Cotangents = node.prim.pullback(node, g, unpack(saved), edges)
    return tied(node, grads) if LOCAL.sweep is not None and LOCAL.sweep.ties else grads


def tied(node: Node, grads: Cotangents) -> Cotangents:
    """A node's recorded cotangents, tied to its operands."""
    return tuple([None if grad is None else _tied(wrapped(grad), node.edges) for grad in grads])


def _tied(grad: Tensor, anchors: Edges) -> Tensor:
    return wrap(grad._raw, new_node(_TIE, {}, (grad._edge, *anchors)))


def _pull(node: Node, g: object, saved: Saved, edges: Edges) -> Cotangents:
    if LOCAL.sweep is not None:
        LOCAL.sweep.notes.setdefault(_TIE, []).append(node)
    return (g, *(None,) * (len(edges) - 1))


def met(notes: dict[object, list[Node]]) -> list[Node]:
    """The ties that a sweep has come to, from its notes."""
    return notes.get(_TIE, [])


ZERO: Any = object()  # a gradient of whatever shape, where only ties lead to


def at_ties(this: Any, reached: list[Edge], leaves: list[tuple[Leaf, AnyArray]], accumulate: bool, known: bool) -> None:
    """Zeros for what only ties led to: ``reached`` is what those that were met lead to."""
    captured = this.captured
    arrived = {leaf for leaf, _ in leaves}
    for edge in reached:
        if this.wanted is not None and (edge not in this.wanted or edge in captured):
            continue
        if type(edge) is Leaf:
            zeros = zeros_beside(edge.data, shape_of(edge.data), edge.data.dtype)
            if this.wanted is not None:
                captured[edge] = zeros
            if accumulate and edge not in arrived:
                leaves.append((edge, zeros))
        elif this.wanted is not None and known:
            captured[edge] = ZERO


def _value(x: AnyArray, *operands: AnyArray) -> AnyArray:
    return x


_TIE = Primitive(_value, "linear", formula={"x": "g"}, listed=False)
_TIE.name = "tie"
_TIE.pullback = _pull
_TIE.doc = "The first operand. The others are what it depends on with derivative 0."
