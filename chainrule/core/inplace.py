"""In-place operations, and views that share memory with a base.

An in-place operation is computed as the ordinary one; then its value is written into the tensor's memory and its
history becomes the tensor's. If the tensor is a view, its base (and the base's other views) change too: the base's
history continues with a CopySlices node, and every view's edge is made anew from its base's.

Array-likes that cannot be written (inside a transformation) get new data by the same route; so does an ordinary tensor,
made inside the transformed function, that such a value is written into.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core import dispatch, dtypes
from chainrule.core.modes import recording
from chainrule.core.node import Leaf, Node, next_seq
from chainrule.core.primitive import TABLE
from chainrule.core.tensor import Tensor, wrap
from chainrule.core.versions import wrote
from chainrule.core.view import View

ndarray = np.ndarray


def check_writable(tensor: Tensor, op: str) -> None:
    """Raise if writing into this tensor would break autograd or the memory of its neighbours."""
    if recording():
        if type(tensor._edge) is Leaf:
            raise errors.leaf_view_in_place(op) if op == "__setitem__" else errors.leaf_in_place(tensor, op)
        view = tensor._view
        while view is not None:
            if type(view.base._edge) is Leaf:
                raise errors.leaf_view_in_place(op)
            if not view.recorded and view.base._edge is not None:
                raise errors.no_grad_view_in_place(op)
            view = view.base._view
    if tensor._marks == "inference" and recording():
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.")
    data = tensor._data
    if type(data) is ndarray:
        if any(step == 0 and length > 1 for step, length in zip(data.strides, data.shape, strict=True)):
            raise RuntimeError(
                f"unsupported operation: more than one element of the written-to tensor refers to a single memory "
                f"location. {op} got an expanded tensor: clone() it first."
            )
        if not data.flags.writeable:
            raise RuntimeError(f"{op}: the array behind this tensor is read-only; clone() the tensor first")


def in_place(op: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The method ``x.op(...)`` that writes ``function(x, ...)`` into ``x``."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_writable(self, op)
        if type(self._data) is ndarray and recording():
            # What the tape saves must be the value before the write.
            result = function(wrap(self._data.copy(), self._edge), *args, **kwargs)
        else:
            result = function(self, *args, **kwargs)
        return update(self, result, op)

    method.__name__ = op
    method.__qualname__ = f"Tensor.{op}"
    method.__doc__ = f"In-place form of :func:`{function.__name__}`."
    return method


def update(tensor: Tensor, result: Tensor, op: str) -> Tensor:
    """Write ``result`` into the tensor's memory and continue its history with the result's."""
    data, new = tensor._data, result._data
    if new.shape != data.shape:
        raise errors.in_place_shape(op, data.shape, new.shape)
    if new.dtype != data.dtype:
        if not dtypes.can_cast(new.dtype, data.dtype):
            raise errors.in_place_dtype(op, new.dtype, data.dtype)
        result = dispatch.cast(result, data.dtype)
        new = result._data
    if type(data) is ndarray and type(new) is ndarray:
        np.copyto(data, new)
        wrote(data, op, errors.user_line())
    else:
        tensor._data = new
    if recording() or type(tensor._data) is not ndarray:
        continue_history(tensor, result._edge, result._cut)
    return tensor


def continue_history(tensor: Tensor, edge: Any, cut: Any = None) -> None:
    """Make ``edge`` the tensor's, and mend its bases and all views of them."""
    kept = tensor.retains_grad
    root = tensor
    history = edge
    while root._view is not None:
        view = root._view
        base = view.base
        if type(base._data) is not ndarray or type(root._data) is not ndarray:
            base._data = dispatch.bind(
                TABLE["copy_slices"], (base._data, root._data), {"view": view.prim, "view_params": view.params}
            )
        if history is not None or base._edge is not None:
            history = _copied(base, root, history, view)
        root = base
        _set_edge(root, history, cut)
    if tensor._view is None:
        _set_edge(tensor, edge, cut)
    refresh(root)
    if kept and tensor._edge is not None:
        tensor.retain_grad()


def _set_edge(tensor: Tensor, edge: Any, cut: Any) -> None:
    tensor._edge = edge
    if edge is None:
        tensor._cut = cut


def _copied(base: Tensor, part: Tensor, part_edge: Any, view: View) -> Node:
    node = Node()
    node.prim = TABLE["copy_slices"]
    node.pullback = node.prim.pullback  # type: ignore[assignment]
    node.params = {"view": view.prim, "view_params": view.params}
    node.edges = (base._edge, part_edge)
    node.fits = ((base._data.shape, base._data.dtype), (part._data.shape, part._data.dtype))
    node.hooks = None
    node.saved = ()
    node.seq = next_seq()
    return node


def refresh(base: Tensor) -> None:
    """Make the edges (and where memory is not shared, the data) of all views of a base anew."""
    views = base._views
    if not views:
        return
    for ref in views:
        tensor = ref()
        if tensor is None or tensor._view is None or tensor._view.base is not base:
            continue
        view = tensor._view
        if type(base._data) is not ndarray:
            tensor._data = dispatch.bind(view.prim, (base._data,), view.params)
        if view.recorded:
            edge = None
            if base._edge is not None:
                edge = Node()
                edge.prim = view.prim
                edge.pullback = view.prim.pullback
                edge.params = view.params
                edge.edges = (base._edge,)
                edge.fits = ((base._data.shape, base._data.dtype),)
                edge.hooks = None
                edge.saved = ()
                edge.seq = next_seq()
            _set_edge(tensor, edge, base._cut)
        refresh(tensor)


def write_out(out: Tensor, result: Tensor) -> Tensor:
    """The ``out=`` argument: write a result that is not recorded into a tensor the caller brought."""
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if result._edge is not None or (out._edge is not None and recording()):
        raise errors.out_requires_grad(getattr(result.grad_fn, "prim", None))
    if out._data.shape != result._data.shape:
        if out.numel():
            raise errors.in_place_shape("out=", out._data.shape, result._data.shape)
        out._data = result._data.astype(out._data.dtype)
        return out
    return update(out, result, "out=")
