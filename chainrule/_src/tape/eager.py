"""The connection to the C extension, which runs the fast path of eager operations.

The Python code defines operations, nodes and the sweep. ``native/*.c`` does the same on the fast path and accesses the
slots of these classes. ``LOOPS`` is the extension, or None if it is missing or does not fit this interpreter. It stays
off until the first operation, when ``trial`` compares three operations and their gradients with those of Python.
"""

from __future__ import annotations

import importlib
from sys import _getframe
from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.types import Params
from chainrule._src.messages.message_parts import Cut
from chainrule._src.messages.source_locations import UNREAD, USER_FILES, Where, note_frame, user_line
from chainrule._src.rules.batching import batch_elementwise, leading_axes
from chainrule._src.rules.primitive import Primitive
from chainrule._src.rules.rules import unbroadcast
from chainrule._src.tape import fp_warnings, versions
from chainrule._src.tape import node as tape
from chainrule._src.tape.levels import call_untraced
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, MODES, WATCHES
from chainrule._src.tape.node import Freed, Leaf, Node, Output, next_seq
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.view import View, register_if_view

#: the shared parameters of operations without parameters
NO_PARAMS: Params = {}
#: (ufunc, whether a number comes first) -> the operation, which takes a leading number after the other operand
RECORDED: dict[tuple[np.ufunc, bool], Any] = {}
#: contractions that ``ndarray.dot`` computes: ten times the ndim of the first operand, plus the ndim of the second
_PRODUCTS = {"ik,kj->ij": 22, "ik,k->i": 21, "k,kj->j": 12, "i,i->": 11}
#: primitives whose values on small arrays C computes without NumPy's wrappers -> the kind of the value in the extension
_STATISTICS = {
    "var": "VARIANCE", "std": "DEVIATION", "vector_norm": "NORM", "logsumexp": "LOG_SUM_EXP", "cumsum": "SCAN_SUM",
    "cumprod": "SCAN_PRODUCT",
}  # fmt: skip


def trace_value(*args: Any) -> Any:
    """Call ``programs.trace_value``. Its module is imported by the first operation."""
    return importlib.import_module("chainrule._src.rules.programs").trace_value(*args)


def trace_tangent(*args: Any) -> Any:
    """Call ``programs.trace_tangent``. Its module is imported by the first operation."""
    return importlib.import_module("chainrule._src.rules.programs").trace_tangent(*args)


def trace_rule(*args: Any) -> Any:
    """Call ``programs.trace_rule``. Its module is imported by the first operation."""
    return importlib.import_module("chainrule._src.rules.programs").trace_rule(*args)


def make_op(prim: Primitive) -> Any:
    """Return the description of a primitive for C; None if Python must record it."""
    operands = () if prim.variadic else prim.operands
    indices = {**{name: i for i, name in enumerate(operands)}, "out": -1}
    records = prim.differentiable and prim.pullback is not None and prim.kind != "discrete"
    supported = (
        (records or (prim.kind == "discrete" and not prim.parameters))
        and len(prim.outputs) == 1
        and prim.kind != "function"
        and len(prim.saves) <= LOOPS.MAX_SAVED
        and len(operands) <= 8
        and all(name in indices for name in prim.saves)
    )
    if not supported:
        return None
    all_operands = (1 << 16) - 1
    masks = [all_operands if users is None else sum(1 << i for i in users) for users in prim.save_users]
    saves = tuple([(indices[name], mask) for name, mask in zip(prim.saves, masks, strict=True)])
    op = LOOPS.Op(
        prim,
        prim.value,
        len(operands),
        saves,
        records,
        prim.kind == "elementwise",
        prim.variadic,
        prim.needs_avals,
        prim.view,
        {"sum": LOOPS.SUM, "mean": LOOPS.MEAN}.get(prim.structure, LOOPS.NO_REDUCTION)
        if prim.kind == "linear" and type(prim.structure) is str
        else LOOPS.NO_REDUCTION,
        _PRODUCTS.get(prim.structure, 0) if prim.kind == "contraction" else 0,
        prim.kind == "opaque" and prim.structure == "axis" and len(operands) == 1 and set(prim.parameters) == {"axis"},
        _join_kind(prim),
        prim.kind == "contraction"
        or (prim.kind == "linear" and len(operands) == 1 and prim.declared[2]["jvp"] is None),
        {batch_elementwise: LOOPS.ALIGN, leading_axes: LOOPS.LEADING}.get(prim.batch, LOOPS.BATCH_IN_PYTHON),
        getattr(LOOPS, _STATISTICS[prim.name]) if prim.listed and prim.name in _STATISTICS else LOOPS.NO_STATISTIC,
    )
    return op


def _join_kind(prim: Primitive) -> int:
    """Return ``CONCATENATE`` or ``STACK`` of the extension for a primitive that joins arrays, ``NO_JOIN`` for any other.

    The kind is found by calling the primitive on two arrays.
    """
    if not prim.variadic or set(prim.parameters) != {"axis"} or prim.structure != "selection":
        return LOOPS.NO_JOIN
    x = np.arange(6.0).reshape(2, 3)
    joined = prim.value(x, -x, axis=-1)
    for join, expected in (
        (LOOPS.CONCATENATE, np.concatenate([x, -x], axis=-1)),
        (LOOPS.STACK, np.stack([x, -x], axis=-1)),
    ):
        if joined.shape == expected.shape and np.array_equal(joined, expected):
            return join
    return LOOPS.NO_JOIN


def _connect() -> Any:
    """Pass the classes and functions of the tape to the extension and return it; None if it cannot be used."""
    loops = native.LOOPS
    if loops is None:
        return None
    names = {
        "Tensor": Tensor, "Node": Node, "Output": Output, "Leaf": Leaf, "View": View, "Freed": Freed, "Primitive": Primitive,
        "Where": Where, "Cut": Cut, "WriteRecord": versions.WriteRecord, "WRITES": versions.WRITES, "new_write_record": versions.record_of,
        "WRITING": versions.WRITING, "Lender": versions.Lender, "BEFORE_WRITE": versions.BEFORE_WRITE,
        "LOCAL": LOCAL, "WATCHES": WATCHES, "call_untraced": call_untraced,
        "modes": (MODES[True, False, False], MODES[False, False, False], MODES[False, False, True]),
        "UNREAD": UNREAD, "user_line": user_line, "note_write": versions.note_write,
        "CLOCK": versions.CLOCK, "ACTIVE_MODES": ACTIVE_MODES, "USER_FILES": USER_FILES, "note_frame": note_frame,
        "counter": next_seq.__self__,  # type: ignore[attr-defined]
        "NO_PARAMS": NO_PARAMS, "register_if_view": register_if_view, "unbroadcast": unbroadcast, "operations": RECORDED, "add": np.add,
        "make_op": make_op, "trace_value": trace_value, "trace_rule": trace_rule, "_getframe": _getframe,
        "saveable_array": versions.saveable_array,
        "trace_tangent": trace_tangent,
    }  # fmt: skip
    try:
        loops.connect(names)
    except (TypeError, AttributeError, RuntimeError) as problem:
        native.refuse(f"operations run in Python: {problem}")
        return None
    return loops


LOOPS: Any = _connect()
if LOOPS is not None and fp_warnings.VARIABLE is not None:
    LOOPS.connect_error_state(fp_warnings.VARIABLE, fp_warnings.internal_error_state, fp_warnings.raising_error_state)
    fp_warnings.at_users_line = LOOPS.call_in_error_state
new_node = tape.new_node if LOOPS is None else LOOPS.new_node
if LOOPS is not None:
    tape.ON_ATTACH.append(LOOPS.register_user_object)
