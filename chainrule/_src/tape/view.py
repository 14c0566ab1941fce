"""Views: which tensors share memory with which base.

A view has a strong reference to its base, and a base has weak references to its views. The base of a view of a view is
the first tensor of the chain, and the view has all steps that lead to it from there. So after an in-place write the
history of one base is updated, for a chain of any length. ``dispatch`` registers views, and ``inplace`` updates them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, Params
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule._src.tape.tensor import InferenceTensor, Tensor
from chainrule._src.tape.versions import owner

ndarray = np.ndarray

#: One step from a base to a view: the primitive (or a ``FunctionViewStep``), and its parameters.
ViewStep = tuple[Any, dict[str, Any]]


class FunctionViewStep:
    """A view step inside a transformation that is no primitive: functions to read the part and to write it to the base."""

    __slots__ = ("read", "write")

    def __init__(self, read: Callable[[Any], Any], write: Callable[[Any, Any], Any]) -> None:
        self.read, self.write = read, write


class View:
    """The steps by which a tensor that shares memory with its base was taken from it.

    ``origin`` is "" for a view that allows writes while gradients are recorded. Otherwise it is the reason why writes raise:
    "no_grad", "inference", "function" (made by a custom Function), or a pair (index, function) for one of several views
    that a function returned. A "read-only" view allows no writes at all.
    """

    __slots__ = ("base", "before", "last", "origin")

    def __init__(self, base: Tensor, last: tuple[ViewStep, ...], origin: Any, before: View | None = None) -> None:
        self.base = base
        self.last = last  # the steps from the view or base that this view was taken from
        self.origin = origin
        self.before = before

    @property
    def steps(self) -> tuple[ViewStep, ...]:
        """All steps from the base. They are concatenated on access, so that a long chain of views stays cheap."""
        parts: list[tuple[ViewStep, ...]] = []
        view: View | None = self
        while view is not None:
            parts.append(view.last)
            view = view.before
        return parts[0] if len(parts) == 1 else tuple(step for part in reversed(parts) for step in part)

    @property
    def recorded(self) -> bool:
        """Whether the view was recorded, so that gradients flow from it to its base."""
        return self.origin not in ("no_grad", "inference", "function")


def register_if_view(tensor: Tensor, base: Any, prim: Primitive, params: Params) -> None:
    """Register ``tensor`` as a view of ``base``, if the two share memory."""
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
    if ACTIVE_MODES:
        if LOCAL.mode.inference:
            origin = "inference"
            if type(tensor) is InferenceTensor and type(base) is not InferenceTensor:
                tensor.__class__ = Tensor  # type: ignore[assignment]
        elif not LOCAL.mode.records:
            origin = "no_grad"
    if type(base) is InferenceTensor:
        tensor.__class__ = InferenceTensor
        return  # inference tensors have no versions and no history to update
    register_view(tensor, base, ((prim, params),), origin)


def register_view(tensor: Tensor, base: Tensor, steps: tuple[ViewStep, ...], origin: Any) -> None:
    """Make ``tensor`` a view of ``base``, or of the base of ``base``."""
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
    if len(views) >= 32 and not len(views) & (len(views) - 1):  # at powers of two, drop dead references
        views[:] = [ref for ref in views if ref() is not None]
    views.append(weakref.ref(tensor))


def mark_multi_output_views(function: str, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Mark the several views that a function returns: PyTorch forbids recorded writes to them."""
    for index, tensor in enumerate(tensors):
        view = tensor._view
        if view is not None and not view.origin:
            view.origin = (index, function)
    return tensors


def make_read_only(x: AnyArray) -> Any:
    """Make a view read-only, as NumPy does for some functions. Return ``x``, also if it is no view."""
    if isinstance(x, Tensor) and x._view is not None:
        x._view.origin = x._view.origin or "read-only"
    return x


def has_origin(x: Tensor) -> bool:
    """Return whether the tensor is a view with an ``origin``, which its own views inherit."""
    return x._view is not None and bool(x._view.origin)


def is_read_only(x: Tensor) -> bool:
    """Return whether this is a view that NumPy makes read-only."""
    return x._view is not None and x._view.origin == "read-only"


def copy_scalar_view(x: Any) -> Any:
    """Return ``x``; a 0-d view becomes a copy with its own memory, because NumPy returns a scalar there."""
    if isinstance(x, Tensor) and x._view is not None and not x._raw.shape:
        x._view = None
        if type(x._raw) is ndarray:
            x._raw = x._raw.copy()
    return x


def views_of(base: Tensor) -> list[Tensor]:
    """Return the views of a base that are still alive."""
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
    """Return the tensor that this is a view of, or None (``tensor._base``)."""
    view = tensor._view
    return None if view is None else view.base
