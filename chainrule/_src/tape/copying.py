"""Make deep copies of memory and of graphs, for ``Tensor.__deepcopy__``.

``copy.deepcopy`` passes a memo from ids of originals to their copies. Memory is registered in it under the array that owns
it, so the copies of tensors that share memory share memory. A graph is registered under its nodes, leaves and outputs,
so in ``deepcopy([x, y])`` the copy of y depends on the copy of x if y depends on x.
"""

from __future__ import annotations

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
    """Return an array with the same strides in a copy of the whole memory that the array is part of."""
    if type(array) is not ndarray:  # another library's array, which this package never writes into
        return array
    whole = owner(array)
    if not (whole.flags.c_contiguous or whole.flags.f_contiguous) or whole.dtype.hasobject:
        return array.copy(order="K")
    if id(whole) not in memo:
        memo[id(whole)] = whole.copy(order="K")
        memo.setdefault(id(memo), []).append(whole)  # keeps the original alive so that its id is not reused
    copied = memo[id(whole)]
    if array is whole:
        return copied
    first = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    flat = copied if copied.flags.c_contiguous else copied.T
    return ndarray(array.shape, array.dtype, flat, first, array.strides)


def copy_graph(root: Edge, memo: Memo) -> Edge:
    """Copy the graph that an edge depends on, leaves included, without hooks. Return the copy of the edge.

    Raises:
        RuntimeError: a saved value has been overwritten, or a node is of a kind that cannot be copied.
    """
    for edge in _uncopied_edges(root, memo):
        memo[id(edge)] = _copy_edge(edge, memo)
        memo.setdefault(id(memo), []).append(edge)
    return memo[id(root)]


def _uncopied_edges(root: Edge, memo: Memo) -> list[Edge]:
    """Return the edges that ``root`` depends on and that have no copy yet, oldest first."""
    seen = {root}
    stack = [root]
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted((edge for edge in seen if id(edge) not in memo), key=lambda edge: edge.seq)


def _copy_edge(edge: Edge, memo: Memo) -> Any:
    if type(edge) is Leaf:
        from copy import deepcopy

        return deepcopy(edge.variable, memo)._edge
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
