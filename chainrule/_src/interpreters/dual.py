"""Forward mode: a value together with its tangent.

``Dual(primal, tangent, level)`` passes through NumPy code, and ``_handle`` computes the tangent of each result by the
primitive's JVP rule. Primal and tangent can be arrays, tensors or other array-likes of lower levels. A tangent of None
is zero.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import scalar_to_array
from chainrule._src.arrays.types import AnyArray, Params
from chainrule._src.interpreters.primal import WithPrimal
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.dispatch import INTERPRETERS, bind
from chainrule._src.tape.levels import Level
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.protocol import strip_derivatives
from chainrule._src.tape.tensor import Tensor, set_tensor_data, tensor_of, wrap
from chainrule._src.tape.unrecorded import check_has_derivative

ndarray = np.ndarray


class Dual(WithPrimal):
    """An array-like of the primal's shape and dtype that carries a tangent of the same shape."""

    __slots__ = ("tangent",)

    def __init__(self, primal: object, tangent: Any, level: int) -> None:
        super().__init__(primal, tangent, level)
        self.tangent = tangent

    @property
    def change(self) -> Any:
        return self.tangent

    @property
    def recorded(self) -> Any:
        primal = self.primal
        if isinstance(primal, Tensor):
            return primal if primal.requires_grad else None
        return getattr(primal, "recorded", None)

    def set_requires_grad(self, tensor: Any, value: bool) -> bool:
        if self.level != FORWARD.level:
            return False
        primal = strip_derivatives(self.primal) if isinstance(self.primal, Tensor) else wrap(self.primal)
        if value is (self.recorded is not None):
            return True
        if value:
            primal.requires_grad_()
        elif not self.primal.is_leaf:
            raise errors.non_leaf_flag()
        set_tensor_data(tensor, Dual(primal if value else primal._raw, self.tangent, self.level))
        return True

    tracks_tensors = True

    def track_tensor(self, tensor: Any) -> None:
        if self.level == FORWARD.level:
            FORWARD.hold(tensor)

    def described(self, suffixes: list[str]) -> str:
        if self.level != FORWARD.level:
            return super().described(suffixes)
        primal = tensor_of(self.primal)
        tangent = [] if self.tangent is None else [f"tangent={format(tensor_of(self.tangent))}"]
        return primal._described([*tangent, *suffixes])

    def __repr__(self) -> str:
        return f"Dual(level {int(self.level)}, primal={self.primal!r}, tangent={self.tangent!r})"


class _Forward(threading.local):
    """The state of ``autograd.forward_ad`` in this thread.

    Attributes:
        level: the current level; 0 outside of ``dual_level``.
        enabled: whether tangents are computed at this level.
        tensors: weak references to the tensors whose data is a Dual of the level; at its end they get their primals.
    """

    def __init__(self) -> None:
        self.level: Any = 0
        self.enabled = True
        self.tensors: list[weakref.ref[Tensor]] = []
        self._purge_size = 64

    def hold(self, tensor: Tensor) -> None:
        self.tensors.append(weakref.ref(tensor))
        if len(self.tensors) > self._purge_size:
            self.tensors = [ref for ref in self.tensors if ref() is not None]
            self._purge_size = max(64, 2 * len(self.tensors))

    def end(self) -> None:
        """End the level and replace the data of its tensors by their primals."""
        number, self.level = self.level, 0
        tensors, self.tensors = self.tensors, []
        for ref in tensors:
            tensor = ref()
            if tensor is not None and type(tensor._raw) is Dual and tensor._raw.level == number:
                _replace_by_primal(tensor, tensor._raw.primal)


FORWARD = _Forward()


def _replace_by_primal(tensor: Tensor, primal: AnyArray) -> None:
    """Give a tensor the data and the history of its primal."""
    if not isinstance(primal, Tensor):
        tensor._raw = primal
        return
    tensor._raw = primal._raw
    tensor._edge = edge = primal._edge
    tensor._cut = primal._cut
    tensor._grad = primal._grad
    if type(edge) is Leaf and edge.tensor() is primal:
        edge.tensor = weakref.ref(tensor)
    elif edge is not None and edge.hooks is not None:
        retaining = edge.hooks.retain
        if retaining is not None and retaining() is primal:
            edge.hooks.retain = weakref.ref(tensor)


def _handle(prim: Primitive, operands: Any, params: Params, level: int) -> Any:
    """Apply a primitive to operands of which at least one is a Dual of ``level``."""
    primals = []
    tangents = []
    has_tangent = False
    for x in operands:
        if type(x) is Dual and x.level == level:
            primals.append(x.primal)
            tangents.append(x.tangent)
            has_tangent = has_tangent or x.tangent is not None
            own_level = x.level
        else:
            primals.append(x)
            tangents.append(None)
    out = bind(prim, primals, params)
    if type(own_level) is Level and not own_level.alive:
        if any(isinstance(part, Tensor) for part in (out if isinstance(out, tuple) else (out,))):
            raise errors.escaped_tangent(own_level, prim.name)
        return out  # the transformation has ended: return the value without a tangent
    if (
        not prim.differentiable
        or not has_tangent
        or (level == FORWARD.level and not (FORWARD.enabled and not LOCAL.mode.inference))
    ):
        return _dual(prim, out, None, own_level)
    if ACTIVE_MODES and LOCAL.watch is not None:
        tangent = LOCAL.watch.tangent(prim, primals, tangents, out, params)
    else:
        tangent = prim.jvp(primals, tangents, out, params)
    return _dual(prim, out, tangent, own_level)


def _dual(prim: Primitive, out: Any, tangent: Any, level: int) -> Any:
    if isinstance(out, tuple):
        tangents = (None,) * len(out) if tangent is None else tangent
        return tuple(_dual(prim, o, t, level) for o, t in zip(out, tangents, strict=True))
    if type(out) is not ndarray:
        out = scalar_to_array(out)
    if tangent is not None:
        if out.dtype.kind not in "fc":
            check_has_derivative(prim, out)
        if type(tangent) is not ndarray or tangent.dtype != out.dtype:
            tangent = like_value(tangent, out)
    return Dual(out, tangent if out.dtype.kind in "fc" else None, level)


def like_value(tangent: Any, out: Any) -> Any:
    """Return a tangent in the dtype of the value."""
    if type(tangent) is not ndarray:
        tangent = scalar_to_array(tangent)
    if tangent.dtype != out.dtype and out.dtype.kind != "c":
        tangent = np.real(tangent) if tangent.dtype.kind == "c" else tangent
        tangent = tangent.astype(out.dtype)
    return tangent


INTERPRETERS[Dual] = _handle
