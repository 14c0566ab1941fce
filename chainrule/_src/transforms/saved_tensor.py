"""The saved values of a node for users, ``grad_fn._raw_saved_self`` and similar, with hooks.

``context`` and ``backward`` return ``SavedTensor`` objects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from chainrule._src.messages import errors
from chainrule._src.tape.node import Freed, Node
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.saved import Hook, Packed, PackedValue, unpacked_pullback
from chainrule._src.tape.tensor import Tensor, wrap


class SavedTensor:
    """One saved value of a node, in its stored form: ``grad_fn._raw_saved_self`` and similar.

    Attributes:
        data: the stored object: a tensor, or the return value of a pack hook.
        unpack_hook: the hook that converts this back to the tensor; None without hooks.
    """

    __slots__ = ("_read", "_write")

    def __init__(self, read: Callable[[], Any], write: Hook) -> None:
        self._read = read
        self._write = write

    @property
    def data(self) -> Any:
        kept = self._read()
        if type(kept) is PackedValue:
            return kept.handle
        return kept if kept is None or isinstance(kept, Tensor) else wrap(kept)

    @property
    def unpack_hook(self) -> Hook | None:
        kept = self._read()
        return kept.unpack if type(kept) is PackedValue else None

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        """Pack this value with ``pack_hook`` immediately; the backward rule will unpack it with ``unpack_hook``.

        Raises:
            RuntimeError: the value already has hooks, was freed by a backward pass, or is no tensor.
        """
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError(
                "register_hooks(): incompatible function arguments: it takes two callables, pack_hook and unpack_hook"
            )
        kept = self._read()
        if type(kept) is PackedValue:
            raise errors.saved_has_hooks()
        if not isinstance(kept, (np.ndarray, ArrayLike, Tensor)):
            raise errors.saved_is_none()
        self._write(PackedValue(kept, pack_hook, unpack_hook))


def raw_saved(node: Node, index: int) -> Any:
    """Return the ``SavedTensor`` of the node's saved value at ``index``; a tuple if the value is a tuple or list."""

    def read(part: int | None = None) -> Any:
        if type(node.saved) is Freed:
            raise errors.saved_was_freed()
        value = node.saved[index]
        return value if part is None else value[part]

    def write(packed: PackedValue, part: int | None = None) -> None:
        saved = list(node.saved)
        if part is None:
            saved[index] = packed
        else:
            saved[index] = (*saved[index][:part], packed, *saved[index][part + 1 :])
        node.saved = Packed(saved)
        node.pullback = unpacked_pullback

    value = read()
    if type(value) in (tuple, list):
        return tuple(SavedTensor(partial(read, i), partial(write, part=i)) for i in range(len(value)))
    return SavedTensor(read, write)
