"""Saved-tensor hooks, and the saved values that VJP rules read.

While a thread has hooks, each value that a node saves is passed to the innermost pack hook, and the node keeps the result
of the hook. ``unpack_saved`` restores the values when a rule needs them. Hooks can compress values, store them on disk, or
recompute them. ``saved_tensors`` and ``check_saved`` serve the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, Cotangents, NumpyArray, Saved
from chainrule._src.messages import errors
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, enter_active_mode, switch_mode
from chainrule._src.tape.node import Edge, Edges, Node, output_of
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import CLOCK, writes_of

ndarray = np.ndarray
Hook = Callable[[Any], object]


class PackedValue:
    """One saved value: the result of its pack hook, and the matching unpack hook."""

    __slots__ = ("bare", "dtype", "handle", "shape", "time", "unpack")

    def __init__(self, data: NumpyArray | ArrayLike | Tensor, pack: Hook, unpack: Hook) -> None:
        self.bare = not isinstance(data, Tensor)
        self.dtype = data.dtype
        self.shape = tuple(data.shape)
        self.unpack = unpack
        tensor = data if isinstance(data, Tensor) else wrap(data)
        self.time = CLOCK.latest
        self.handle = _run_hook(pack, tensor)
        if CLOCK.latest > self.time and _written_since(tensor._raw, self.time):
            raise errors.pack_hook_wrote()

    def get(self) -> Any:
        """Run the unpack hook and return the checked value."""
        packed = self.handle
        if CLOCK.latest > self.time and isinstance(packed, Tensor) and _written_since(packed._raw, self.time):
            raise errors.packed_was_written(packed)
        value = _run_hook(self.unpack, packed)
        if not isinstance(value, Tensor):
            raise errors.unpacked_no_tensor(value)
        if value._raw.shape != self.shape or value._raw.dtype != self.dtype:
            raise errors.unpacked_differs(value, self.shape, self.dtype)
        return value._raw if self.bare else value


def _written_since(data: AnyArray, time: int) -> bool:
    written = writes_of(data)
    return written is not None and written.times[-1] > time


class Packed(tuple[object, ...]):
    """The type of ``Node.saved`` after hooks have packed the values."""

    __slots__ = ()


def push_hooks(pack: Hook, unpack: Hook) -> None:
    """Make these hooks the innermost ones of this thread."""
    if LOCAL.saved_disabled is not None:
        raise RuntimeError(LOCAL.saved_disabled)
    if not callable(pack) or not callable(unpack):
        raise TypeError("saved_tensors_hooks() takes two callables: pack_hook(tensor) and unpack_hook(packed)")
    enter_active_mode()
    LOCAL.saved_hooks = (*LOCAL.saved_hooks, (pack, unpack))


def pop_hooks() -> None:
    """Undo the last ``push_hooks``. Do nothing if there is none, as when a context is exited twice."""
    if LOCAL.saved_hooks:
        LOCAL.saved_hooks = LOCAL.saved_hooks[:-1]
        ACTIVE_MODES.pop()


def has_hooks() -> bool:
    """Return whether this thread has hooks."""
    return bool(LOCAL.saved_hooks)


def disable_hooks(message: str) -> str | None:
    """Make ``push_hooks`` raise with this message. Return the argument for the matching ``enable_hooks``."""
    previous: str | None = LOCAL.saved_disabled
    if LOCAL.saved_hooks:
        raise RuntimeError(message)
    LOCAL.saved_disabled = message
    return previous


def enable_hooks(previous: str | None = None) -> None:
    """Undo ``disable_hooks``."""
    LOCAL.saved_disabled = previous


def _run_hook(hook: Hook, value: object) -> object:
    """Run a hook without recording its operations and without hooks on the values that it saves."""
    outer_mode, outer_hooks = LOCAL.mode, LOCAL.saved_hooks
    try:
        LOCAL.saved_hooks = ()
        switch_mode(outer_mode.with_grad(False))
        return hook(value)
    finally:
        pushed, mode = LOCAL.saved_hooks, LOCAL.mode
        LOCAL.mode, LOCAL.saved_hooks = outer_mode, outer_hooks
        if mode.records is not outer_mode.records:
            ACTIVE_MODES.pop() if outer_mode.records else ACTIVE_MODES.append(None)
        if pushed:  # Ctrl-C interrupted the exit of a context in the hook
            del ACTIVE_MODES[: len(pushed)]


def pack_one(data: object) -> object:
    """Return a value packed by the innermost hooks; the value itself if there are none."""
    hooks = LOCAL.saved_hooks
    if hooks and isinstance(data, (np.ndarray, ArrayLike, Tensor)):
        return PackedValue(data, *hooks[-1])
    return data


def unpack_one(packed: object) -> Any:
    """Return the value that ``pack_one`` packed."""
    return packed.get() if type(packed) is PackedValue else packed


def pack_saved(node: Node) -> None:
    """Pack the saved values of a node with the innermost hooks."""
    node.saved = Packed(tuple(map(pack_one, v)) if type(v) in (tuple, list) else pack_one(v) for v in node.saved)
    node.pullback = unpacked_pullback


def unpack_saved(saved: Saved) -> Saved:
    """Return the saved values that a rule reads, unpacked if hooks packed them."""
    if type(saved) is not Packed:
        return saved
    return tuple(tuple(map(unpack_one, v)) if type(v) is tuple else unpack_one(v) for v in saved)


def unpacked_pullback(node: Node, g: object, saved: Saved, edges: Edges) -> Cotangents:
    grads: Cotangents = node.prim.pullback(node, g, unpack_saved(saved), edges)
    return grads


# -- arguments of rules ------------------------------------------------------------------------------------------------


def saved_tensors(node: Node) -> Saved:
    """Return the saved values as tensors with their original edges, for rules whose operations are recorded."""
    prim = node.prim
    saved = unpack_saved(node.saved)
    if len(prim.outputs) == 1 and not prim.variadic:
        edges = node.edges
        return tuple(
            [_rewrap(value, node if source < 0 else edges[source]) for source, value in zip(prim.save_from, saved)]
        )
    tensors: list[object] = []
    for name, source, value in zip(prim.saves, prim.save_from, saved):
        if source >= 0:
            if prim.variadic:
                tensors.append(tuple(_rewrap(v, edge) for v, edge in zip(value, node.edges, strict=True)))
            else:
                tensors.append(_rewrap(value, node.edges[source]))
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
    """Raise if memory that this node saved has been written in place since."""
    for name, value in zip(node.prim.saves, node.saved, strict=True):
        for array in value if type(value) in (tuple, list) else (value,):
            written = writes_of(array)  # None for packed values, which ``PackedValue.get`` checks
            if written is not None and written.times[-1] > node.seq:
                raise errors.saved_was_written(node, name, array, written)
