"""Dispatch of operations: compute directly, record on the tape, or call an interpreter.

``bind(prim, operands, params)`` hands an operation to the handler of its highest-ranked operand. An interpreter's value
outranks plain arrays, and a tensor outranks its data. The handler treats operands of lower rank as constants, which
keeps nested derivatives separate. ``record`` computes the value and adds a node to the tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from chainrule._src.arrays.any_array import scalar_to_array
from chainrule._src.arrays.dtypes import dtype_of_data
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, Params, Saved, TensorLike
from chainrule._src.rules.primitive import TABLE, Primitive
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.devices import on_one_device
from chainrule._src.tape.eager import LOOPS, new_node
from chainrule._src.tape.fp_warnings import at_users_line, is_ours
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule._src.tape.node import Aval, Edge, Node, Output, next_seq
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.protocol import as_plain_array as plain_array
from chainrule._src.tape.saved import pack_saved
from chainrule._src.tape.tensor import InferenceTensor, Tensor, wrap
from chainrule._src.tape.unrecorded import check_has_derivative, check_inference, unrecorded_tensors
from chainrule._src.tape.versions import saveable_array
from chainrule._src.tape.view import register_if_view

ndarray = np.ndarray
new = object.__new__

#: interpreter type -> its ``handle(prim, operands, params, level)``
INTERPRETERS: dict[type, AnyFunction] = {}


def rank(x: Any) -> int:
    """Return 0 for arrays and numbers, 1 for a tensor of an array, 2·level for an interpreter's value, +1 for its tensor."""
    kind = type(x)
    if kind is ndarray:
        return 0
    if kind is Tensor or isinstance(x, Tensor):
        data = x._raw
        return 1 if type(data) is ndarray else 2 * data.level + 1
    if kind in INTERPRETERS or isinstance(x, ArrayLike):
        level: int = x.level
        return 2 * level
    return _ARRAY_RANK if hasattr(kind, "_tensor") else 0


_ARRAY_RANK = -1  # the rank of an ``Array``: ``bind`` replaces it with its tensor


@overload
def bind(prim: Primitive, operands: tuple[Tensor, *tuple[Any, ...]], params: Params) -> Tensor: ...
@overload
def bind(prim: Primitive, operands: Sequence[Any], params: Params) -> Any: ...
def bind(prim: Primitive, operands: Sequence[TensorLike], params: Params) -> Any:
    """Apply a primitive to operands of any kind."""
    if ACTIVE_MODES:
        operands = trace_hooks.lift_all(operands)
    if len(operands) == 1:
        (x,) = operands
        if type(x) is Tensor and type(x._raw) is ndarray and len(prim.outputs) == 1:
            return record_unary(prim, x, params)
    highest_rank = 0
    foreign = False
    for x in operands:
        if type(x) is Tensor:
            data = x._raw
            if type(data) is ndarray:
                r = 1
            else:
                r = 2 * data.level + 1
                foreign = foreign or r == 1
        else:
            r = rank(x)
        if r > highest_rank:
            highest_rank, highest_operand = r, x
        elif r == _ARRAY_RANK:
            return bind(prim, [getattr(y, "_tensor", y) for y in operands], params)
    if foreign:
        operands = on_one_device(operands)
    if highest_rank == 0:
        if ACTIVE_MODES and LOCAL.watch is not None:
            return LOCAL.watch.forward(prim, operands, params)
        return prim.value(*operands, **params)
    if highest_rank & 1:
        return record(prim, operands, params, highest_rank)
    handler = INTERPRETERS[type(highest_operand)]
    if not is_ours(prim):
        return handler(prim, operands, params, highest_rank // 2)
    return at_users_line(handler, prim, operands, params, highest_rank // 2)


def _value(prim: Primitive, datas: Sequence[TensorLike], params: Params) -> Any:
    return prim.value(*datas, **params)


def _value_of(prim: Primitive, datas: Sequence[Any], params: Params) -> Any:
    """Compute on arrays, or let the watch of this thread do it."""
    if ACTIVE_MODES and LOCAL.watch is not None:
        return LOCAL.watch.forward(prim, datas, params)
    return at_users_line(_value, prim, datas, params) if is_ours(prim) else prim.value(*datas, **params)


def record(prim: Primitive, operands: Sequence[TensorLike], params: Params, tensor_rank: int) -> Any:
    """Compute on the data of the tensors of rank ``tensor_rank``. If one of them requires grad, add a node to the tape."""
    datas, edges, protect = _unwrap(operands, tensor_rank)
    needs = edges.count(None) < len(edges)
    if tensor_rank == 1:
        out = _value_of(prim, datas, params)
    else:
        level = tensor_rank // 2
        handler = INTERPRETERS[type(next(x for x in datas if getattr(x, "level", 0) == level))]
        out = (
            at_users_line(handler, prim, datas, params, level) if is_ours(prim) else handler(prim, datas, params, level)
        )
    several = isinstance(out, tuple)
    if not needs or not prim.differentiable or (ACTIVE_MODES and not LOCAL.mode.records) or (several and not out):
        return unrecorded_tensors(prim, operands, out, needs, params)
    if not several:
        if type(out) is not ndarray:
            out = scalar_to_array(out)
        if out.dtype.kind not in "fc":
            check_has_derivative(prim, out)
            return unrecorded_tensors(prim, operands, out, needs, params)
    in_avals = _in_avals(prim, datas, out[0] if several else out)
    saved = _saved(prim, datas, edges, out) if prim.saves else ()
    if protect and saved:
        saved = _protected(prim, operands, saved)
    node = new_node(prim, params, tuple(edges), saved, in_avals)
    if ACTIVE_MODES:
        _apply_thread_hooks(node)
    results = _results_of(node, out) if several else _result_of(node, operands[0], out)
    return results if prim.kind != "function" else params["call"].recorded(node, datas, out, results)


def _unwrap(operands: Sequence[Any], tensor_rank: int) -> tuple[list[Any], list[Edge | None], bool]:
    """Return the data and edges of the operands, and whether the saved values must be protected.

    Operands of other ranks than ``tensor_rank`` are constants.
    """
    datas: list[Any] = []
    edges: list[Edge | None] = []
    level = tensor_rank // 2
    protect = False
    for x in operands:
        if type(x) is Tensor and tensor_rank == 1:
            datas.append(x._raw)
            edges.append(x._edge)
        elif isinstance(x, Tensor) and (tensor_rank == 1 or getattr(x._raw, "level", 0) == level):
            datas.append(x._raw)
            edges.append(x._edge)
            protect = protect or type(x) is InferenceTensor
        else:
            datas.append(_snapshot(x) if isinstance(x, Tensor) else plain_array(x))
            edges.append(None)
            protect = protect or isinstance(x, ndarray)
    return datas, edges, protect


def _protected(prim: Primitive, operands: Sequence[Any], saved: Saved) -> Saved:
    """Return the values to save, with plain operands in a form whose changes are noticed. Raise for inference tensors."""
    if not LOCAL.traced:
        check_inference(prim, operands, saved)
    return tuple([saveable_array(v) if type(v) is ndarray and any([v is x for x in operands]) else v for v in saved])


def _result_of(node: Node, base: Any, out: AnyArray) -> Tensor:
    """Return the tensor of the result of a node."""
    tensor = new(Tensor)
    tensor._raw = out
    tensor._edge = node
    if node.prim.view:
        register_if_view(tensor, base, node.prim, node.params)
    if ACTIVE_MODES:
        trace_hooks.note_holder(tensor)
    return tensor


def _results_of(node: Node, outs: tuple[AnyArray, ...]) -> tuple[Tensor, ...]:
    """Return the tensors of the results of a node."""
    seq = next_seq()
    node.params = {**node.params, "_outputs": tuple((shape_of(o), o.dtype) for o in outs)}
    return tuple(wrap(o, Output(node, i, seq)) if o.dtype.kind in "fc" else wrap(o) for i, o in enumerate(outs))


def _snapshot(x: Tensor) -> AnyArray:
    """Return the data and history of a constant tensor, so that a VJP rule sees the value before later in-place writes."""
    return x._raw if x._edge is None else wrap(x._raw, x._edge)


def record_unary(prim: Primitive, x: Tensor, params: Params, out: AnyArray | None = None) -> Tensor:
    """Record an operation on one tensor of an ndarray. ``out`` is the value, if the caller has computed it."""
    if ACTIVE_MODES and trace_hooks.is_tracing():
        return bind(prim, (x,), params)
    data, edge = x._raw, x._edge
    if out is None:
        out = _value_of(prim, (data,), params)
        if type(out) is not ndarray:
            out = scalar_to_array(out)
    recorded = edge is not None and prim.differentiable and out.dtype.kind in "fc"
    if not recorded or (ACTIVE_MODES and not LOCAL.mode.records):
        return unrecorded_tensors(prim, (x,), out, edge is not None, params)
    dtype = data.dtype
    in_avals = ((data.shape, dtype),) if prim.needs_avals or out.dtype is not dtype or dtype.kind == "c" else None
    saved = tuple([out if name == "out" else data for name in prim.saves]) if prim.saves else ()
    node = new_node(prim, params, (edge,), saved, in_avals)
    if ACTIVE_MODES:
        _apply_thread_hooks(node)
    return _result_of(node, x, out)


if LOOPS is not None:  # the same in C, for tensors of float arrays outside of all modes
    LOOPS.connect_dispatch(bind, record_unary)
    bind, record_unary = LOOPS.bind, LOOPS.record_unary
Primitive.bind = staticmethod(bind)


def _apply_thread_hooks(node: Node) -> None:
    """Apply this thread's saved-tensor hooks and watches to a new node."""
    if LOCAL.saved_hooks and node.saved:
        pack_saved(node)
    if LOCAL.watch is not None:
        LOCAL.watch.recorded(node)


def _in_avals(prim: Primitive, datas: Sequence[object], out: AnyArray) -> tuple[Aval, ...] | None:
    """Return the shape and dtype of each operand, if broadcasting, promotion or a rule needs them; otherwise None."""
    dtype = out.dtype
    shape = out.shape if prim.kind == "elementwise" else None
    needed = prim.needs_avals or dtype.kind == "c"
    avals: list[Aval] = []
    for i, x in enumerate(datas):
        x = getattr(x, "_raw", x)
        aval = getattr(x, "shape", ()), getattr(x, "dtype", dtype)
        avals.append(aval)
        if len(datas) == 2 and not hasattr(x, "dtype") and (i or isinstance(prim.value, np.ufunc)):
            continue  # a number next to an array, as in ``api.functions``
        needed = needed or aval[1] != dtype or (shape is not None and aval[0] != shape)
    return tuple(avals) if needed else None


def _saved(prim: Primitive, datas: Sequence[object], edges: Sequence[Edge | None], out: Any) -> Saved:
    """Return the values to save, in the order of ``prim.saves``. Values that no rule of an operand with an edge reads are None."""
    saved: list[object] = []
    for name, users in zip(prim.saves, prim.save_users, strict=True):
        if users is not None and not prim.variadic:
            for i in users:
                if edges[i] is not None:
                    break
            else:
                saved.append(None)
                continue
        if name in prim.operands:
            saved.append(datas if prim.variadic else datas[prim.operands.index(name)])
        elif name == "out":
            saved.append(out)
        else:
            saved.append(out[prim.outputs.index(name)])
    return tuple(saved)


@overload
def cast(x: Tensor, dtype: DTypeLike) -> Tensor: ...
@overload
def cast(x: Any, dtype: DTypeLike) -> Any: ...
def cast(x: AnyArray, dtype: DTypeLike) -> Any:
    """Return the array-like in this dtype: itself, if it has this dtype already."""
    return x if dtype_of(x) == dtype else bind(TABLE["cast"], (x,), {"dtype": dtype_of_data(dtype)})
