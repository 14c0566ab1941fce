"""Which tensors share memory with which: a view knows its base, a base its views."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from chainrule.core.modes import recording
from chainrule.core.primitive import Primitive
from chainrule.core.tensor import Tensor

ndarray = np.ndarray


class View:
    """How a tensor was taken from its base: ``tensor = prim(base, **params)``, sharing memory."""

    __slots__ = ("base", "params", "prim", "recorded")

    def __init__(self, base: Tensor, prim: Primitive, params: dict[str, Any], recorded: bool) -> None:
        self.base = base
        self.prim = prim
        self.params = params
        self.recorded = recorded


def viewed(tensor: Tensor, base: Any, prim: Primitive, params: dict[str, Any]) -> None:
    """Remember that ``tensor`` is a view of ``base``, if it is one."""
    if not isinstance(base, Tensor):
        return
    data, source = tensor._data, base._data
    if type(data) is ndarray and data is not source:
        root = data.base
        if root is None or (root is not source and root is not source.base):
            return
    tensor._view = View(base, prim, params, recording())
    views = base._views
    if views is None:
        base._views = [weakref.ref(tensor)]
        return
    if len(views) >= 32 and not len(views) & (len(views) - 1):  # now and then, forget the dead
        views[:] = [ref for ref in views if ref() is not None]
    views.append(weakref.ref(tensor))


def base_of(tensor: Tensor) -> Tensor | None:
    """The tensor at the end of the chain of views (``tensor._base``)."""
    if tensor._view is None:
        return None
    while tensor._view is not None:
        tensor = tensor._view.base
    return tensor
