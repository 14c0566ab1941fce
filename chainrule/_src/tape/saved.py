"""Hooks on what the tape saves: a value can be kept elsewhere (on disk, compressed) or not at all (recomputed).

While a thread has hooks, every value a node would save is handed to the innermost pack hook, and the node keeps what that
returned. ``unpack`` gives the values back when a rule needs them. Without hooks nothing here is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, Cotangents, NumpyArray, Saved
from chainrule._src.messages import errors
from chainrule._src.tape.modes import LOCAL, SPECIAL, set_special, switch
from chainrule._src.tape.node import Edge, Edges, Node, output_of
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import CLOCK, writes_of

ndarray = np.ndarray
Hook = Callable[[Any], object]


class PackedValue:
    """One saved value, as its pack hook returned it, and the hook that undoes that."""

    __slots__ = ("bare", "dtype", "handle", "shape", "time", "unpack")

    def __init__(self, data: NumpyArray | ArrayLike | Tensor, pack: Hook, unpack: Hook) -> None:
        self.bare = not isinstance(data, Tensor)
        self.dtype = data.dtype
        self.shape = tuple(data.shape)
        self.unpack = unpack
        given = data if isinstance(data, Tensor) else wrap(data)
        self.time = CLOCK.latest
        self.handle = _aside(pack, given)
        if CLOCK.latest > self.time and _written_since(given._raw, self.time):
            raise errors.pack_hook_wrote()

    def get(self) -> Any:
        kept = self.handle
        if CLOCK.latest > self.time and isinstance(kept, Tensor) and _written_since(kept._raw, self.time):
            raise errors.packed_was_written(kept)
        value = _aside(self.unpack, kept)
        if not isinstance(value, Tensor):
            raise errors.unpacked_no_tensor(value)
        if value._raw.shape != self.shape or value._raw.dtype != self.dtype:
            raise errors.unpacked_differs(value, self.shape, self.dtype)
        return value._raw if self.bare else value


def _written_since(data: AnyArray, time: int) -> bool:
    written = writes_of(data)
    return written is not None and written.times[-1] > time


class Packed(tuple[object, ...]):
    """What ``Node.saved`` is when hooks packed it."""

    __slots__ = ()


def push(pack: Hook, unpack: Hook) -> None:
    """Let these hooks, rather than those before, pack what this thread saves."""
    if LOCAL.saved_disabled is not None:
        raise RuntimeError(LOCAL.saved_disabled)
    if not callable(pack) or not callable(unpack):
        raise TypeError("saved_tensors_hooks() takes two callables: pack_hook(tensor) and unpack_hook(packed)")
    set_special()
    LOCAL.saved_hooks = (*LOCAL.saved_hooks, (pack, unpack))


def pop() -> None:
    """Undo the last ``push``, if there is one (a context that was left twice has none)."""
    if LOCAL.saved_hooks:
        LOCAL.saved_hooks = LOCAL.saved_hooks[:-1]
        SPECIAL.pop()


def active() -> bool:
    """Whether this thread has hooks."""
    return bool(LOCAL.saved_hooks)


def disable(message: str) -> str | None:
    """Make ``push`` raise with this message; returns what to hand to ``enable`` afterwards."""
    previous: str | None = LOCAL.saved_disabled
    if LOCAL.saved_hooks:
        raise RuntimeError(message)
    LOCAL.saved_disabled = message
    return previous


def enable(previous: str | None = None) -> None:
    """Undo ``disable``."""
    LOCAL.saved_disabled = previous


def _aside(hook: Hook, value: object) -> object:
    """Run a hook: unrecorded, and what it does itself is not packed."""
    outer, hooks = LOCAL.mode, LOCAL.saved_hooks
    try:
        LOCAL.saved_hooks = ()
        switch(outer.with_grad(False))
        return hook(value)
    finally:
        pushed, left = LOCAL.saved_hooks, LOCAL.mode
        LOCAL.mode, LOCAL.saved_hooks = outer, hooks
        if left.records is not outer.records:
            SPECIAL.pop() if outer.records else SPECIAL.append(None)
        if pushed:  # Ctrl-C came as the hook was to leave a context
            del SPECIAL[: len(pushed)]


def pack_one(data: object) -> object:
    """One value as the hooks want it kept; the value itself where there are none."""
    hooks = LOCAL.saved_hooks
    if hooks and isinstance(data, (np.ndarray, ArrayLike, Tensor)):
        return PackedValue(data, *hooks[-1])
    return data


def unpack_one(kept: object) -> Any:
    """The value that ``pack_one`` was given."""
    return kept.get() if type(kept) is PackedValue else kept


def pack(node: Node) -> None:
    """Hand what the node saved to the hooks."""
    node.saved = Packed(tuple(map(pack_one, v)) if type(v) in (tuple, list) else pack_one(v) for v in node.saved)
    node.pullback = unpacked_pullback


def unpack(saved: Saved) -> Saved:
    """The values a rule reads, from what a node keeps."""
    if type(saved) is not Packed:
        return saved
    return tuple(tuple(map(unpack_one, v)) if type(v) is tuple else unpack_one(v) for v in saved)


def unpacked_pullback(node: Node, g: object, saved: Saved, edges: Edges) -> Cotangents:
    grads: Cotangents = node.prim.pullback(node, g, unpack(saved), edges)
    return grads


# -- what a rule is given ----------------------------------------------------------------------------------------------


def saved_tensors(node: Node) -> Saved:
    """The saved values as tensors that know where they came from, for rules that are to be recorded."""
    prim = node.prim
    saved = unpack(node.saved)
    if len(prim.outputs) == 1 and not prim.variadic:
        edges = node.edges
        return tuple([_rewrap(value, node if at < 0 else edges[at]) for at, value in zip(prim.save_from, saved)])
    tensors: list[object] = []
    for name, at, value in zip(prim.saves, prim.save_from, saved):
        if at >= 0:
            if prim.variadic:
                tensors.append(tuple(_rewrap(v, edge) for v, edge in zip(value, node.edges, strict=True)))
            else:
                tensors.append(_rewrap(value, node.edges[at]))
        elif value is None:
            tensors.append(None)
        else:
            tensors.append(_rewrap(value, output_of(node, prim.outputs.index(name)) if len(prim.outputs) > 1 else node))
    return tuple(tensors)


def _rewrap(value: Any, edge: Edge | None) -> object:
    if type(value) is ndarray and value.dtype.kind == "f":
        return wrap(value, edge)
    if value is None or isinstance(value, (Tensor, int, float, complex)):
        return value
    if getattr(value, "dtype", None) is None or value.dtype.kind not in "fc":
        return value
    return wrap(value, edge)


def check_saved(node: Node) -> None:
    """Raise if memory that this node saved was written in place since."""
    for name, value in zip(node.prim.saves, node.saved, strict=True):
        for array in value if type(value) in (tuple, list) else (value,):
            written = writes_of(array)  # of what hooks packed there is none: that is their business
            if written is not None and written.times[-1] > node.seq:
                raise errors.saved_was_written(node, name, array, written)
