"""Factories of in-place methods (``x.add_(1)``, ``x.t_()``), and the argument ``out=``. See ``tape.inplace`` for the effect on history.

``declare`` and ``functions`` call the factories for the operations that ``op`` declares.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np

from chainrule._src.arrays import promotion
from chainrule._src.arrays.any_array import copy_alike, overlaps_itself
from chainrule._src.arrays.types import AnyFunction, NumpyArray
from chainrule._src.messages import errors
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.inplace import check_mode, check_writable, on_tape, write_result
from chainrule._src.tape.modes import LOCAL, grad_mode, is_recording
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.tensor import InferenceTensor, Tensor, set_tensor_data, wrap
from chainrule._src.tape.versions import count_shape_change, note_write
from chainrule._src.tape.view import View, register_view, views_of

ndarray = np.ndarray

#: in-place methods that outside of autograd are one ufunc call with the tensor's array as ``out``
DIRECT = {"add_": np.add, "sub_": np.subtract, "mul_": np.multiply, "div_": np.divide}


def in_place(op: str, function: AnyFunction) -> AnyFunction:
    """Return the method ``x.op(...)`` that writes ``function(x, ...)`` into ``x``."""
    ufunc = DIRECT.get(op)

    def method(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        check_writable(self, op)
        data = self._raw
        if type(data) is not ndarray:
            return write_result(self, function(self, *args, **kwargs), op)
        recorded = is_recording()
        if ufunc is not None and not kwargs and len(args) == 1:
            other = args[0]
            off_tape = self._edge is None and self._view is None and getattr(other, "_edge", None) is None
            if (off_tape or not recorded) and _computed_in_place(ufunc, data, getattr(other, "_raw", other), op):
                note_write(data, op, errors.user_line())
                return self
        # The tape must save the value from before the write.
        operand = wrap(copy_alike(data), self._edge) if recorded else self
        return write_result(self, function(operand, *args, **kwargs), op)

    return _form_of(function, op, method)


def becomes_view(op: str, function: AnyFunction) -> AnyFunction:
    """Return the method ``x.op(...)`` after which ``x`` is the view ``function(x, ...)``."""

    def method(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        return set_to_view(self, lambda x: function(x, *args, **kwargs), op)

    return _form_of(function, op, method)


def _form_of(function: AnyFunction, op: str, method: AnyFunction) -> AnyFunction:
    method.__name__ = op
    method.__qualname__ = f"Tensor.{op}"
    method.__doc__ = f"In-place form of :func:`{function.__name__}`."
    return method


def _computed_in_place(ufunc: np.ufunc, x: NumpyArray, y: object, op: str) -> bool:
    """Call a ufunc with ``x`` as ``out`` if the result is the same as out of place; return whether it was called."""
    if x.dtype.kind not in "fc":
        return False
    if type(y) is ndarray:
        if y.dtype != x.dtype or (not y.ndim and x.ndim):
            return False
    elif type(y) is not float and type(y) is not int:
        return False
    try:
        ufunc(x, y, out=x)
    except ValueError:
        try:
            shape = np.broadcast_shapes(x.shape, np.shape(y))
        except ValueError:
            return False  # the out-of-place operation raises the error
        raise errors.in_place_shape(op, x.shape, shape) from None
    return True


def set_to_view(tensor: Tensor, move: Callable[[Tensor], Tensor], op: str) -> Tensor:
    """Give a tensor the shape and history of ``move(tensor)``, a view of it (for ``tensor.transpose_()`` and similar methods).

    Other views of the tensor stay views of its previous value, which becomes a base of its own.
    """
    check_mode(tensor, op)
    data, edge = tensor._raw, tensor._edge
    if type(edge) is Leaf:  # the tensor is not recorded, else an error was raised before
        set_tensor_data(tensor, move(wrap(data))._raw)
        edge.data = tensor._raw
        count_shape_change(data)
        return tensor
    family = [] if tensor._view is not None else views_of(tensor)
    with grad_mode(True):
        result = move(tensor)
    view = result._view
    if family:
        trace_hooks.check_reshaped(tensor)
        before = wrap(data, edge)
        for member in family:
            member._view.base = before
        before._views = [weakref.ref(member) for member in family]
        if tensor._memory is not None:
            memory, steps = tensor._memory
            tensor._memory = None
            memory.join(before, steps)
        register_view(tensor, before, view.steps, "")
    elif tensor._view is not None and view is not None:
        tensor._view = View(tensor._view.base, view.steps, tensor._view.origin)
    elif tensor._memory is not None:
        memory, steps = tensor._memory
        memory.join(tensor, (*steps, *view.steps))
    set_tensor_data(tensor, result._raw)
    tensor._edge = result._edge
    count_shape_change(data)
    return tensor


def store_out(out: Tensor | None, result: Tensor) -> Tensor:
    """Write an unrecorded result into the tensor given as ``out=``; return the result if there is none."""
    if out is None:
        return result
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if result._edge is not None or (on_tape(out) and is_recording()):
        raise errors.out_requires_grad(getattr(result.grad_fn, "prim", None))
    if type(out) is InferenceTensor and not LOCAL.mode.inference:
        raise errors.inference_in_place("out=")
    if out._raw.shape != result._raw.shape:
        if not promotion.can_cast(result.dtype, out.dtype):
            raise errors.in_place_dtype("out=", result.dtype, out.dtype)
        if out._view is not None:
            raise errors.in_place_shape("out=", out._raw.shape, result._raw.shape)
        if out.numel():
            errors.warn_out_resized(out._raw.shape, result._raw.shape)
        set_tensor_data(out, result._raw.astype(out._raw.dtype, copy=True))
        return out
    if type(out._raw) is ndarray and overlaps_itself(out._raw):
        raise errors.expanded_in_place("out=")
    return write_result(out, result, "out=")
