"""Which tensors share memory with which: a view knows its base, a base its views.

The base is always the tensor at the end: a view of a view belongs to the first tensor and keeps all the steps that lead
from there to it. So an in-place write needs one correction of the base's history, whatever chain of views it came through.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyArray, Params
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL, SPECIAL
from chainrule._src.tape.tensor import InferenceTensor, Tensor
from chainrule._src.tape.versions import owner

ndarray = np.ndarray

#: One step from a base to a view: the row (or a ``Through``), and its parameters.
ViewStep = tuple[Any, dict[str, Any]]


class Through(NamedTuple):
    """A step that no row takes, inside a transformation: how the part is read, and the base with the part written to it."""

    read: Callable[[Any], Any]
    write: Callable[[Any, Any], Any]


class View:
    """How a tensor was taken from its base: by ``steps``, one after another, sharing memory.

    ``origin`` is "" for a view that may be written to while gradients are recorded. Otherwise it says why not:
    "no_grad", "inference", "function" (made by a custom Function), or a pair (index, function) for one of several views
    that a function returned. A view that is "read-only" may not be written to at all.
    """

    __slots__ = ("base", "before", "last", "origin")

    def __init__(self, base: Tensor, last: tuple[ViewStep, ...], origin: Any, before: View | None = None) -> None:
        self.base = base
        self.last = last  # the steps from the view that it was taken from, or from the base
        self.origin = origin
        self.before = before

    @property
    def steps(self) -> tuple[ViewStep, ...]:
        """All the steps from the base. (They are put together when asked for, so that long chains of views cost nothing.)"""
        parts: list[tuple[ViewStep, ...]] = []
        view: View | None = self
        while view is not None:
            parts.append(view.last)
            view = view.before
        return parts[0] if len(parts) == 1 else tuple(step for part in reversed(parts) for step in part)

    @property
    def recorded(self) -> bool:
        """Whether the view belongs to the tape: gradients flow from it to its base."""
        return self.origin not in ("no_grad", "inference", "function")


def viewed(tensor: Tensor, base: Any, prim: Primitive, params: Params) -> None:
    """Remember that ``tensor`` is a view of ``base``, if it is one."""
    if type(base) is not Tensor and not isinstance(base, Tensor):
        return
    data, source = tensor._raw, base._raw
    if type(data) is ndarray and data is not source:
        root = data.base
        if root is not source and (
            root is None
            or type(source) is not ndarray
            or (root is not source.base and owner(data) is not owner(source))
        ):
            return
    origin: Any = ""
    if SPECIAL:
        if LOCAL.mode.inference:
            origin = "inference"
            if type(tensor) is InferenceTensor and type(base) is not InferenceTensor:
                tensor.__class__ = Tensor  # type: ignore[assignment]
        elif not LOCAL.mode.records:
            origin = "no_grad"
    if type(base) is InferenceTensor:
        tensor.__class__ = InferenceTensor
        return  # without versions or history there is nothing to keep up to date
    register_view(tensor, base, ((prim, params),), origin)


def register_view(tensor: Tensor, base: Tensor, steps: tuple[ViewStep, ...], origin: Any) -> None:
    """Make ``tensor`` a view of ``base`` (or of what that is a view of)."""
    view = base._view
    if view is not None:
        base = view.base
        origin = origin or view.origin
    tensor._view = View(base, steps, origin, view)
    views = base._views
    if views is None:
        base._views = [weakref.ref(tensor)]
        if view is None:
            base._view = None  # a slot that is set is read faster
        return
    if len(views) >= 32 and not len(views) & (len(views) - 1):  # now and then, forget the dead
        views[:] = [ref for ref in views if ref() is not None]
    views.append(weakref.ref(tensor))


def mark_multi_output_views(function: str, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Mark what a function returns as its several views: PyTorch does not let these be written to while recording."""
    for index, tensor in enumerate(tensors):
        view = tensor._view
        if view is not None and not view.origin:
            view.origin = (index, function)
    return tensors


def read_only(x: AnyArray) -> Any:
    """A view that may not be written to, as NumPy makes some; an array-like as it is."""
    if isinstance(x, Tensor) and x._view is not None:
        x._view.origin = x._view.origin or "read-only"
    return x


def has_origin(x: Tensor) -> bool:
    """Whether it is a view with an origin, which views of it have, too; others of the same shape may have none."""
    return x._view is not None and bool(x._view.origin)


def is_read_only(x: Tensor) -> bool:
    """Whether NumPy lets nobody write to this view."""
    return x._view is not None and x._view.origin == "read-only"


def valued(x: Any) -> Any:
    """A result without axes that a function computed, as the value that NumPy's scalars are; any other as it is."""
    if isinstance(x, Tensor) and x._view is not None and not x._raw.shape:
        x._view = None
        if type(x._raw) is ndarray:
            x._raw = x._raw.copy()
    return x


def views_of(base: Tensor) -> list[Tensor]:
    """The views of a base that are still alive."""
    refs = base._views
    if not refs:
        return []
    alive = []
    for ref in refs:
        tensor = ref()
        if tensor is not None and tensor._view is not None and tensor._view.base is base:
            alive.append(tensor)
    base._views = [weakref.ref(tensor) for tensor in alive]
    return alive


def base_of(tensor: Tensor) -> Tensor | None:
    """The tensor whose memory this is a view of (``tensor._base``)."""
    view = tensor._view
    return None if view is None else view.base
