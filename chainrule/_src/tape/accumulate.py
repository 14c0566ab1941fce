"""Writing gradients into ``.grad``, all or nothing: neither an exception nor another thread can divide it."""

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
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.hooks import accumulated, pre_hooks, tensor_hooks
from chainrule._src.tape.inplace import update
from chainrule._src.tape.locks import new_lock
from chainrule._src.tape.modes import LOCAL, SPECIAL
from chainrule._src.tape.node import Edge, Hooks, Leaf, Pending
from chainrule._src.tape.tensor import Tensor, kept_of, wrap, wrapped
from chainrule._src.tape.versions import about_to_write, wrote

ndarray = np.ndarray
new = object.__new__
_ACCUMULATE = new_lock()
_PASSES = 7  # backward passes whose places a leaf remembers, besides the latest


def write_plain(arrived: Pending, escaped: set[int]) -> bool:
    """Set ``.grad`` of all leaves to what arrived there, or add to it, if all are ordinary; whether it did."""
    if LOOPS is None or SPECIAL:
        return False
    with _ACCUMULATE:
        return LOOPS.write_grads(arrived, LOCAL.sweep.freed, GRADIENT, escaped)


def arrivals(this: Any, arrived: dict[Any, Any], accumulate: bool) -> list[tuple[Leaf, AnyArray]]:
    """What is to be added to the leaves' ``.grad``, after their hooks."""
    wanted, create_graph = this.wanted, this.create_graph
    leaves: list[tuple[Leaf, AnyArray]] = []
    for leaf, g in arrived.items():
        if g is None:
            continue
        hooks = leaf.hooks
        if hooks is not None:
            g = tensor_hooks(leaf, g, hooks, this.retained, create_graph)
        if wanted is not None:
            if leaf not in wanted:
                continue
            this.captured[leaf] = g
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
    """Add to ``.grad`` of every leaf and set it for tensors that retain theirs, all or nothing."""
    if captured:
        escaped.update([id(g) for g in captured.values()])
    owners: list[Leaf] = []
    fresh: list[Tensor] = []
    fresh_grads: list[Tensor] = []
    sums: list[NumpyArray] = []
    addends: list[NumpyArray] = []
    hooked: list[tuple[Hooks, Tensor, AnyArray]] = []
    this = LOCAL.sweep.freed
    with _ACCUMULATE:
        for leaf, g in leaves:
            tensor = leaf.tensor() if leaf.hooks is None and leaf.seq >= 0 else leaf.variable
            if tensor is None or tensor._edge is None:  # a transformation's start; or it asks for none any more
                continue
            if leaf.hooks is not None:
                hooked.append((leaf.hooks, tensor, g))
            old = tensor._grad
            if old is None:
                leaf.added = 1
                leaf.passes = (this,)
                owners.append(leaf)
                fresh.append(tensor)
                fresh_grads.append(_own(g, escaped))
                continue
            leaf.added += 1
            leaf.passes = (*leaf.passes[-_PASSES:], this)
            if not create_graph and LOCAL.recorder is not None and 0 not in old._raw.strides:
                LOCAL.recorder.bring(old)
                update(old, wrap(old._raw + _raw(g)), "backward")
            elif not create_graph and type(g) is ndarray and type(old._raw) is ndarray and _may_add_to(old, leaf):
                leaf.grad = old._raw
                sums.append(old._raw)
                addends.append(g)
            else:
                owners.append(leaf)
                fresh.append(tensor)
                fresh_grads.append(wrapped(old + g) if create_graph else wrap(old._raw + _raw(g)))
        for tensor, g in retained:
            fresh.append(tensor)
            fresh_grads.append(_own(g, escaped) if tensor._grad is None else tensor._grad + wrapped(g))
        writes = [
            *zip(repeat(np.add), sums, addends, sums),
            *zip(repeat(setattr), owners, repeat("grad"), map(kept_of, fresh_grads)),
            *zip(repeat(setattr), fresh, repeat("_grad"), fresh_grads),
        ]
        # In C from one end to the other: no signal handler and no other thread gets in between.
        deque(starmap(call, writes), 0)
    for hooks, tensor, g in hooked:
        accumulated(hooks, tensor, g, create_graph)


def _may_add_to(old: Tensor, leaf: Leaf) -> bool:
    """Whether a gradient can be added in place; those who saved its values, or look at them, are told that it will be."""
    data = old._raw
    if not data.flags.writeable:
        return False
    if data.base is not None or getrefcount(data) > _ALONE + (leaf.grad is data):
        if 0 in data.strides:  # expanded: its elements are one
            return False
        about_to_write(data)
        wrote(data, "backward", LOCAL.sweep.freed.where)
    return True


def _alone() -> int:
    """What ``getrefcount`` says, in ``_may_add_to``, of an array that only its tensor holds."""
    tensor = wrap(np.empty(1))
    data = tensor._raw
    return getrefcount(data)


_ALONE = _alone()


def _raw(g: AnyArray) -> AnyArray:
    return g._raw if isinstance(g, Tensor) else g


def _own(g: Any, escaped: set[int]) -> Tensor:
    """A tensor for ``.grad`` that shares its memory with nothing else."""
    if type(g) is ndarray:
        if g.base is not None or id(g) in escaped:
            g = g.copy("K" if g.base is None else "C")
        escaped.add(id(g))
        tensor = new(Tensor)  # an ordinary one, also in inference mode
        tensor._raw = g if not SPECIAL or LOCAL.recorder is None else LOCAL.recorder.made(tensor, g)
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
