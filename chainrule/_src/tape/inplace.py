"""In-place operations on tensors and on views that share memory with a base.

``write_result(tensor, result, op)`` completes an in-place operation: the caller has computed ``result`` out of place. It
writes the value into the tensor's memory, and the result's history becomes the tensor's. If the tensor is a view, the
history of its base continues with a CopySlices node, and the edges of all views of the base are rebuilt from the base.

Values of a transformation are immutable. Inside a transformation a written tensor therefore gets new data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from chainrule._src.arrays import promotion
from chainrule._src.arrays.any_array import is_recorded, overlaps_itself, same_strides, with_strides
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape import dispatch, trace_hooks
from chainrule._src.tape.eager import new_node
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.modes import LOCAL, grad_mode, is_recording
from chainrule._src.tape.node import Edge, Leaf
from chainrule._src.tape.protocol import memory_of, strip_derivatives
from chainrule._src.tape.tensor import InferenceTensor, Tensor, set_tensor_data, wrap
from chainrule._src.tape.versions import BEFORE_WRITE, about_to_write, note_write
from chainrule._src.tape.view import FunctionViewStep, View, ViewStep, is_read_only, views_of

if TYPE_CHECKING:
    from chainrule._src.tape.levels import Level

ndarray = np.ndarray


def check_writable(tensor: Tensor, op: str, same: bool = False) -> None:
    """Raise if a write into this tensor would break autograd or overwrite elements that share memory.

    Args:
        same: all elements get the same value, so elements that share memory do not matter.
    """
    if not isinstance(tensor, Tensor):
        raise errors.wrong_operand(op, 0, tensor)
    data, view = tensor._raw, tensor._view
    if is_read_only(tensor):
        raise errors.read_only(op)
    check_mode(tensor, op)
    trace_hooks.check_writable(data)
    if type(data) is ndarray:
        if not same and not data.flags.c_contiguous and overlaps_itself(data):
            raise errors.expanded_in_place(op)
        if not data.flags.writeable:
            raise errors.read_only(op)
        if BEFORE_WRITE:
            about_to_write(data)
    elif not same and view is not None and overlaps_itself(_layout_in_base(view)):
        raise errors.expanded_in_place(op)


def _layout_in_base(view: View) -> NumpyArray:
    """Return an array with the memory layout that a view of a transformation's value has if its base is an ndarray."""
    if has_function_step(view.steps):
        return np.empty(0)
    part = replay_view(np.empty(shape_of(view.base._raw), bool), view.steps)
    return part if type(part) is ndarray else np.empty(0)


def check_mode(tensor: Tensor, op: str) -> None:
    """Raise if the mode of this thread does not allow writes into the tensor."""
    trace_hooks.lift(tensor)
    view = tensor._view
    if view is None:
        tensor._view = None  # a slot that is set is read faster
    if (tensor._edge is not None or (view is not None and view.base._edge is not None)) and is_recording():
        check_history(tensor, op)
    if type(tensor) is InferenceTensor and not LOCAL.mode.inference:
        raise errors.inference_in_place(op)


def on_tape(tensor: Tensor) -> bool:
    """Return whether the tensor, or the base that it is a view of, has a history."""
    view = tensor._view
    return tensor._edge is not None or (view is not None and view.base._edge is not None)


def check_history(tensor: Tensor, op: str) -> None:
    """Raise if a recorded write into this tensor cannot become part of its history."""
    view = tensor._view
    if view is not None:
        if view.origin:
            raise errors.view_in_place(view.origin, op)
        if (tensor._edge is not None or view.base._edge is not None) and view.base.is_leaf:
            raise errors.leaf_view_in_place(op)
    elif type(tensor._edge) is Leaf:
        raise errors.leaf_in_place(tensor, op)


def write_result(tensor: Tensor, result: Tensor, op: str) -> Tensor:
    """Write ``result`` into the tensor's memory and make the result's history the tensor's."""
    data, new = tensor._raw, result._raw
    if new.shape != data.shape:
        raise errors.in_place_shape(op, data.shape, new.shape)
    if new.dtype != data.dtype:
        if not promotion.can_cast(new.dtype, data.dtype):
            raise errors.in_place_dtype(op, new.dtype, data.dtype)
        result = dispatch.cast(result, data.dtype)
        new = result._raw
    arrays = type(data) is ndarray and type(new) is ndarray
    if not arrays and level_of(new) > level_of(data):
        check_mapped(tensor, new.level, op)
    if type(data) is ndarray and type(new) is Foreign:
        raise errors.foreign_into_memory(op, new)
    if not arrays and result._edge is not None and level_of(new) < level_of(data):
        result = wrap(data.level.constant(result))  # a lower level's history belongs inside the data
        new = result._raw
    recorded = is_recording()
    if recorded and result._edge is not None and (tensor._view is not None or type(tensor._edge) is Leaf):
        check_history(tensor, op)
    if arrays:
        if BEFORE_WRITE:
            about_to_write(data)
        data[...] = new
        note_write(data, op, errors.user_line())
    else:
        if (recorder := trace_hooks.current_recorder()) is not None:
            recorder.check_shared(tensor)
            if recorder.is_buffer(tensor) and (result._edge is not None or level_of(new) > level_of(data)):
                raise errors.written_into_plain_array(op, tensor)  # as eager code does
        set_tensor_data(tensor, with_strides_of(new, data))
    edge = result._edge
    if recorded:
        rebase_history(tensor, edge, result._cut if edge is None else None)
    elif not arrays:
        base = tensor if tensor._view is None else tensor._view.base
        before = [(each, each._edge, each._cut) for each in (base, *views_of(base))]
        rebase_history(tensor, edge, result._cut)
        for each, history, cut in before:  # unrecorded: the values change, the histories do not
            each._edge, each._cut = history, cut
    if not arrays:
        reach_holders(tensor)
    return tensor


def check_mapped(tensor: Tensor, level: Level, op: str) -> None:
    """Raise if the tensor is an argument that all examples share, so that a value per example does not fit into it."""
    for x in getattr(level, "unmapped", ()):
        if _base_or_self(x) is _base_or_self(tensor):
            raise errors.unmapped_in_place(op)


def _base_or_self(tensor: Tensor) -> Tensor:
    return tensor if tensor._view is None else tensor._view.base


def with_strides_of(new: Any, data: AnyArray) -> Any:
    """Return the value ``new``, which replaces a tensor's data, with the strides of that data.

    Later views of the tensor then share memory where they do in eager code.
    """
    if type(new) is Foreign or type(data) is Foreign:
        return new
    new_memory, memory = memory_of(new), memory_of(data)
    if new_memory.shape != memory.shape or same_strides(new_memory, memory) or overlaps_itself(memory):
        return new
    return _with_strides(new, memory.strides)


def _with_strides(x: Any, strides: tuple[int, ...]) -> Any:
    if type(x) is ndarray:
        return with_strides(x, strides)
    if is_recorded(x):
        return x.recorder.call(with_strides, "", (x, strides), {})
    if isinstance(x, Tensor):
        return wrap(_with_strides(x._raw, strides), x._edge)
    return x.with_inside(_with_strides(x.inside, strides))


def reach_holders(tensor: Tensor) -> None:
    """Copy the written values to all tensors that share the tensor's memory but not its history (see ``memory``)."""
    written = _base_or_self(tensor)
    if written._memory is None:
        return
    memory, steps_to_written = written._memory
    with grad_mode(False):
        memory.numbers = _put_back(wrap(memory.numbers), wrap(strip_derivatives(written._raw)), steps_to_written)._raw
    for base, steps in memory.families():
        if base is written:
            continue
        for each in (base, *views_of(base)):
            with grad_mode(False):
                numbers = _replay(wrap(memory.numbers), steps if each is base else (*steps, *each._view.steps))._raw
            with grad_mode(True):
                set_numbers(each, numbers)


def set_numbers(tensor: Tensor, numbers: AnyArray) -> None:
    """Replace a tensor's values by others of its shape and dtype; its derivatives stay the same."""
    set_tensor_data(tensor, with_numbers(tensor._raw, numbers))
    if type(tensor._edge) is Leaf:
        tensor._edge.data = tensor._raw


def with_numbers(x: Any, numbers: Any) -> Any:
    """Return a value with the derivatives of ``x``, at all levels, and with the values of ``numbers``."""
    highest_rank = max(dispatch.rank(x), dispatch.rank(numbers))
    if type(x) is ndarray or not highest_rank:
        return numbers
    open_x, open_numbers = dispatch.rank(x) == highest_rank, dispatch.rank(numbers) == highest_rank
    if highest_rank & 1:
        inner = with_numbers(x._raw if open_x else x, numbers._raw if open_numbers else numbers)
        return wrap(inner, x._edge if open_x else None)
    highest = x if open_x else numbers
    return type(highest).with_numbers(x, numbers, highest.level)


def level_of(data: AnyArray) -> int:
    """Return the level of the transformation that a tensor's data belongs to; 0 for an array."""
    return getattr(data, "level", 0)


def rebase_history(tensor: Tensor, edge: Edge | None, cut: object = None) -> None:
    """Set the tensor's edge, then update the histories of its base and of all views of the base."""
    view = tensor._view
    if view is None and tensor._views is None and (tensor._edge is None or tensor._edge.hooks is None):
        tensor._edge = edge  # fast path
        if edge is None:
            tensor._cut = cut
        return
    base = tensor if view is None else view.base
    retaining = [(t, t._edge.hooks) for t in (base, *views_of(base)) if t._edge is not None and t.retains_grad]
    if view is None:
        _set_edge(tensor, edge, cut)
    elif has_function_step(view.steps):
        with grad_mode(True):
            whole = _put_back(wrap(base._raw, base._edge), wrap(tensor._raw, edge), view.steps)
        set_tensor_data(base, whole._raw)
        _set_edge(base, whole._edge, whole._cut or cut)
        refresh_views(base)
        return
    else:
        params = {"steps": view.steps}
        if type(base._raw) is not ndarray or type(tensor._raw) is not ndarray:
            before: Any = base._raw
            if base._edge is not None and level_of(before) < level_of(tensor._raw):  # its history belongs inside
                before, base._edge = wrap(before, base._edge), None
            set_tensor_data(
                base, with_strides_of(dispatch.bind(TABLE["copy_slices"], (before, tensor._raw), params), before)
            )
        if edge is not None or base._edge is not None:
            in_avals = ((base._raw.shape, base._raw.dtype), (tensor._raw.shape, tensor._raw.dtype))
            _set_edge(base, new_node(TABLE["copy_slices"], params, (base._edge, edge), in_avals=in_avals), cut)
        elif base._cut is None:
            base._cut = cut
    refresh_views(base)
    for each, hooks in retaining:  # hooks stay with the old node; ``retain_grad`` applies to the tensor's new node
        if each._edge is None or each._edge.hooks is not hooks:
            hooks.retain = None
            if each._edge is not None:
                each.retain_grad()


def _set_edge(tensor: Tensor, edge: Edge | None, cut: object) -> None:
    tensor._edge = edge
    if edge is None:
        tensor._cut = cut


def refresh_views(base: Tensor) -> None:
    """Rebuild the edges of all views of a base, and the data of views that share no memory with it."""
    for tensor in views_of(base):
        view = tensor._view
        if view.origin == "function":
            _poison(tensor)
            continue
        if has_function_step(view.steps):
            with grad_mode(True):
                part = _replay(wrap(base._raw, base._edge), view.steps)
            set_tensor_data(tensor, part._raw)
            _set_edge(tensor, part._edge, part._cut)
            continue
        if type(base._raw) is not ndarray:
            set_tensor_data(tensor, replay_view(base._raw, view.steps))
        if view.recorded and (base._edge is not None or type(tensor._edge) is not Leaf):
            _set_edge(tensor, edge_through(base, view.steps), base._cut)


def _poison(tensor: Tensor) -> None:
    """Make backward passes raise at a custom Function's output: its memory was overwritten, unknown to its backward."""
    if tensor._edge is not None:
        in_avals = ((tensor._raw.shape, tensor._raw.dtype),)
        tensor._edge = new_node(TABLE["alias"], {}, (tensor._edge,), in_avals=in_avals, pullback=_raise)


def _raise(*_: object) -> NoReturn:
    raise errors.function_view_in_place()


def replay_view(data: AnyArray, steps: tuple[ViewStep, ...]) -> Any:
    for prim, params in steps:
        data = dispatch.bind(prim, (data,), params)
    return data


def has_function_step(steps: tuple[ViewStep, ...]) -> bool:
    """Return whether one of the steps to a view is a ``FunctionViewStep`` rather than a primitive."""
    return any(type(prim) is FunctionViewStep for prim, _ in steps)


def _replay(tensor: Tensor, steps: tuple[ViewStep, ...]) -> Tensor:
    """Replay view steps on a tensor, recorded, including ``FunctionViewStep`` entries."""
    for prim, params in steps:
        tensor = prim.read(tensor) if type(prim) is FunctionViewStep else dispatch.bind(prim, (tensor,), params)
    return tensor


def _put_back(base: Tensor, part: Tensor, steps: tuple[ViewStep, ...]) -> Tensor:
    """Return the base with ``part`` written to the view that the steps lead to, including ``FunctionViewStep`` entries."""
    index = next((k for k, (prim, _) in enumerate(steps) if type(prim) is FunctionViewStep), None)
    if index is not None:
        region, through = _replay(base, steps[:index]), steps[index][0]
        part = through.write(region, _put_back(through.read(region), part, steps[index + 1 :]))
    steps = steps[:index]
    return dispatch.bind(TABLE["copy_slices"], (base, part), {"steps": steps}) if steps else part


def edge_through(base: Tensor, steps: tuple[ViewStep, ...]) -> Any:
    """Return the edge of the view that these steps lead to from a base."""
    edge, data = base._edge, base._raw
    if edge is None:
        return None
    last = len(steps) - 1
    for i, (prim, params) in enumerate(steps):
        edge = new_node(prim, params, (edge,), in_avals=((data.shape, data.dtype),))
        if i < last:
            data = dispatch.bind(prim, (data,), params)
    return edge
