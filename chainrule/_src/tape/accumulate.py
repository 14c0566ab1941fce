"""Accumulate the gradients of leaves into ``.grad`` at the end of a backward pass.

``engine.sweep`` calls this module. All ``.grad`` are written or none: no exception and no other thread can interrupt.
"""

from __future__ import annotations

from collections import deque
from itertools import repeat, starmap
from operator import call
from sys import getrefcount
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import is_recorded
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.messages.errors import GRADIENT, LINEAR
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.hooks import pre_hooks, run_post_accumulate_hooks, tensor_hooks
from chainrule._src.tape.inplace import write_result
from chainrule._src.tape.locks import new_lock
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule._src.tape.node import Edge, Hooks, Leaf, Pending
from chainrule._src.tape.tensor import Tensor, grad_array, tensor_of, wrap
from chainrule._src.tape.versions import about_to_write, note_write

ndarray = np.ndarray
new = object.__new__
_ACCUMULATE = new_lock()
KEPT_PASSES = 7  # number of earlier backward passes whose source lines a leaf keeps


def write_plain(leaf_cotangents: Pending, escaped: set[int]) -> bool:
    """Set or add to ``.grad`` of all leaves in C. Return False, with nothing written, if a leaf needs the slow path."""
    if LOOPS is None or ACTIVE_MODES:
        return False
    with _ACCUMULATE:
        return LOOPS.write_grads(leaf_cotangents, LOCAL.sweep.freed, GRADIENT, escaped, KEPT_PASSES)


def leaf_gradients(state: Any, leaf_cotangents: dict[Any, Any], accumulate: bool) -> list[tuple[Leaf, AnyArray]]:
    """Run the hooks of the leaves. Return the gradients to add to their ``.grad``."""
    wanted, create_graph = state.wanted, state.create_graph
    leaves: list[tuple[Leaf, AnyArray]] = []
    for leaf, g in leaf_cotangents.items():
        if g is None:
            continue
        hooks = leaf.hooks
        if hooks is not None:
            g = tensor_hooks(leaf, g, hooks, state.retained, create_graph)
        if wanted is not None:
            if leaf not in wanted:
                continue
            state.captured[leaf] = g
        if accumulate:
            if hooks is not None and hooks.pre:
                g = pre_hooks(g, hooks, create_graph)
            if g is not None:
                leaves.append((leaf, g))
    return leaves


def write_grads(
    leaves: list[tuple[Leaf, AnyArray]],
    retained: list[tuple[Tensor, AnyArray]],
    captured: dict[Edge, AnyArray],
    escaped: set[int],
    create_graph: bool,
) -> None:
    """Add gradients to ``.grad`` of the leaves and of tensors that retain theirs: all of them or none."""
    if captured:
        escaped.update([id(g) for g in captured.values()])
    owners: list[Leaf] = []
    fresh: list[Tensor] = []
    fresh_grads: list[Tensor] = []
    sums: list[NumpyArray] = []
    addends: list[NumpyArray] = []
    hooked: list[tuple[Hooks, Tensor, AnyArray]] = []
    freed = LOCAL.sweep.freed
    with _ACCUMULATE:
        for leaf, g in leaves:
            tensor = leaf.tensor() if leaf.hooks is None and leaf.seq >= 0 else leaf.variable
            if tensor is None or tensor._edge is None:
                continue  # an argument of a transformation, or requires_grad was set to False
            if leaf.hooks is not None:
                hooked.append((leaf.hooks, tensor, g))
            old = tensor._grad
            if old is None:
                leaf.added = 1
                leaf.passes = (freed,)
                owners.append(leaf)
                fresh.append(tensor)
                fresh_grads.append(_unshared_tensor(g, escaped))
                continue
            leaf.added += 1
            leaf.passes = (*leaf.passes[-KEPT_PASSES:], freed)
            if not create_graph and trace_hooks.is_tracing() and 0 not in old._raw.strides:
                trace_hooks.lift(old)
                write_result(old, wrap(old._raw + _raw(g)), "backward")
            elif not create_graph and type(g) is ndarray and type(old._raw) is ndarray and _may_add_to(old, leaf):
                leaf.grad = old._raw
                sums.append(old._raw)
                addends.append(g)
            else:
                owners.append(leaf)
                fresh.append(tensor)
                fresh_grads.append(tensor_of(old + g) if create_graph else wrap(old._raw + _raw(g)))
        for tensor, g in retained:
            fresh.append(tensor)
            fresh_grads.append(_unshared_tensor(g, escaped) if tensor._grad is None else tensor._grad + tensor_of(g))
        writes = [
            *zip(repeat(np.add), sums, addends, sums),
            *zip(repeat(setattr), owners, repeat("grad"), map(grad_array, fresh_grads)),
            *zip(repeat(setattr), fresh, repeat("_grad"), fresh_grads),
        ]
        # This loop runs in C from start to end, so no signal handler and no other thread interrupts it.
        deque(starmap(call, writes), 0)
    for hooks, tensor, g in hooked:
        run_post_accumulate_hooks(hooks, tensor, g, create_graph)


def _may_add_to(old: Tensor, leaf: Leaf) -> bool:
    """Return whether a gradient can be added in place. If its array has other references, record the coming write."""
    data = old._raw
    if not data.flags.writeable:
        return False
    if data.base is not None or getrefcount(data) > _UNSHARED_COUNT + (leaf.grad is data):
        if 0 in data.strides:  # expanded: several elements share memory
            return False
        about_to_write(data)
        note_write(data, "backward", LOCAL.sweep.freed.where)
    return True


def _unshared_count() -> int:
    """Return the value of ``getrefcount`` in ``_may_add_to`` for an array that only its tensor refers to."""
    tensor = wrap(np.empty(1))
    data = tensor._raw
    return getrefcount(data)


_UNSHARED_COUNT = _unshared_count()


def _raw(g: AnyArray) -> AnyArray:
    return g._raw if isinstance(g, Tensor) else g


def _unshared_tensor(g: Any, escaped: set[int]) -> Tensor:
    """Return a tensor for ``.grad`` that shares its memory with no other object."""
    if type(g) is ndarray:
        if g.base is not None or id(g) in escaped:
            g = g.copy("K" if g.base is None else "C")
        escaped.add(id(g))
        tensor = new(Tensor)  # no InferenceTensor, also in inference mode
        tensor._raw = trace_hooks.wrap_new_data(tensor, g) if ACTIVE_MODES else g
        tensor._edge = None
        tensor._cut = GRADIENT
        return tensor
    if not isinstance(g, Tensor):
        if is_recorded(g):
            if g.is_view or id(g.array) in escaped:
                g = np.copy(g, "C" if g.is_view else "K")
            escaped.add(id(g.array))
        tensor = wrap(g)
        tensor._cut = GRADIENT
        return tensor
    tensor = wrap(g._raw.copy() if type(g._raw) is ndarray else g._raw, g._edge)
    if tensor._edge is None:
        tensor._cut = g._cut if g._cut is not None and g._cut.of_gradient else LINEAR
    return tensor
