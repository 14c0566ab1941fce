"""Deep copies: of memory, so that what shared it shares the copy, and of the graph behind a tensor.

``copy.deepcopy`` hands around a memo from the ids of originals to their copies. Memory enters it under the array that owns
it, and a graph under its nodes, leaves and outputs, so ``deepcopy([x, y])`` is a new x, and a new y that depends on it.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.node import Edge, Freed, Leaf, Node, Output, new_node, next_seq
from chainrule._src.tape.versions import owner, writes_of

ndarray = np.ndarray
Memo = dict[int, Any]


def copy_memory(array: NumpyArray, memo: Memo) -> NumpyArray:
    """The array over a copy of the whole memory it is part of, with the same strides."""
    if type(array) is not ndarray:  # another library's, which is not written into
        return array
    whole = owner(array)
    if not (whole.flags.c_contiguous or whole.flags.f_contiguous) or whole.dtype.hasobject:
        return array.copy(order="K")
    if id(whole) not in memo:
        memo[id(whole)] = whole.copy(order="K")
        memo.setdefault(id(memo), []).append(whole)  # keeps the id its own, as deepcopy does
    copied = memo[id(whole)]
    if array is whole:
        return copied
    first = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    flat = copied if copied.flags.c_contiguous else copied.T
    return ndarray(array.shape, array.dtype, flat, first, array.strides)


def copy_graph(root: Edge, memo: Memo) -> Edge:
    """The edge of a copy of everything behind an edge, its leaves included. Hooks are left behind.

    Raises:
        RuntimeError: a node saved what was overwritten since, or is of a kind that cannot be copied.
    """
    for edge in _behind(root, memo):
        memo[id(edge)] = _copied(edge, memo)
        memo.setdefault(id(memo), []).append(edge)
    return memo[id(root)]


def _behind(root: Edge, memo: Memo) -> list[Edge]:
    """What is behind an edge and not copied yet, oldest first."""
    seen = {root}
    stack = [root]
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted((edge for edge in seen if id(edge) not in memo), key=lambda edge: edge.seq)


def _copied(edge: Edge, memo: Memo) -> Any:
    if type(edge) is Leaf:
        return copy.deepcopy(edge.variable, memo)._edge
    if type(edge) is Output:
        return Output(memo[id(edge.node)], edge.index, next_seq())
    if not isinstance(edge, Node) or TABLE.get(edge.prim.name) is not edge.prim:
        raise errors.copy_function(edge)
    if type(edge.saved) not in (tuple, Freed):
        raise errors.copy_packed(edge)
    edges = tuple(None if e is None else memo[id(e)] for e in edge.edges)
    saved = edge.saved if type(edge.saved) is Freed else tuple(_saved(edge, value, memo) for value in edge.saved)
    node = new_node(edge.prim, edge.params, edges, saved, edge.in_avals, edge.pullback)
    node.code, node.lasti = edge.code, edge.lasti
    return node


def _saved(node: Node, value: Any, memo: Memo) -> object:
    if type(value) in (tuple, list):
        return tuple(_saved(node, item, memo) for item in value)
    if type(value) is not ndarray:
        if value is None or type(value) is Foreign or isinstance(value, (bool, int, float, complex, str, np.generic)):
            return value
        raise errors.copy_inside(node)
    written = writes_of(value)
    if written is not None and written.times[-1] > node.seq:
        raise errors.copy_overwritten(node, written)
    return copy_memory(value, memo)
