"""The eager path in C: what it is told of the tape, and whether it may be used.

Python says what an operation, a node and a sweep are; ``native/*.c`` do the same in the ordinary case, by the slots of these classes.
``LOOPS`` is the extension, None where there is none or where it does not fit this interpreter. It is off until ``check`` has compared
three operations and their gradients with Python's.
"""

from __future__ import annotations

from sys import _getframe
from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.types import Params
from chainrule._src.messages.places import UNREAD, USER_FILES, Where, note_frame, user_line
from chainrule._src.messages.words import Cut
from chainrule._src.rules.primitive import Primitive
from chainrule._src.rules.programs import trace_rule, trace_value
from chainrule._src.rules.rules import unbroadcast
from chainrule._src.tape import node as tape
from chainrule._src.tape import versions, warned
from chainrule._src.tape.modes import LOCAL, MODES, SPECIAL, WATCHES
from chainrule._src.tape.node import Freed, Leaf, Node, Output, next_seq
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.view import View, viewed

#: parameters of the operations that have none
NO_PARAMS: Params = {}
#: (ufunc, whether a number comes first) -> the operation that computes and records it; with a number first, on the others and the number
RECORDED: dict[tuple[np.ufunc, bool], Any] = {}
#: what ``ndarray.dot`` computes: ten times the axes of the first operand, and those of the second
_PRODUCTS = {"ik,kj->ij": 22, "ik,k->i": 21, "k,kj->j": 12, "i,i->": 11}
_VALUES: dict[Primitive, Any] = {}  # what is called in place of a row's value for large arrays


def make_op(prim: Primitive) -> Any:
    """What C knows of a row; None where Python records it."""
    operands = () if prim.variadic else prim.operands
    places = {**{name: i for i, name in enumerate(operands)}, "out": -1}
    records = prim.differentiable and prim.pullback is not None and prim.kind != "discrete"
    plain = (
        (records or (prim.kind == "discrete" and not prim.parameters))
        and len(prim.outputs) == 1
        and prim.kind != "function"
        and len(prim.saves) <= LOOPS.MAX_SAVED
        and len(operands) <= 8
        and all(name in places for name in prim.saves)
    )
    if not plain:
        return None
    everyone = (1 << 16) - 1
    users = [everyone if who is None else sum(1 << i for i in who) for who in prim.save_users]
    saves = tuple([(places[name], mask) for name, mask in zip(prim.saves, users, strict=True)])
    row = LOOPS.Op(
        prim,
        prim.value,
        len(operands),
        saves,
        records,
        prim.kind == "elementwise",
        prim.variadic,
        prim.needs_avals,
        prim.view,
        {"sum": LOOPS.SUM, "mean": LOOPS.MEAN}.get(prim.structure, 0)
        if prim.kind == "linear" and type(prim.structure) is str
        else 0,
        _PRODUCTS.get(prim.structure, 0) if prim.kind == "contraction" else 0,
        prim.kind == "opaque" and prim.structure == "axis" and len(operands) == 1 and set(prim.parameters) == {"axis"},
        _joins(prim),
    )
    if prim in _VALUES:
        row.value = _VALUES[prim]
    return row


def _joins(prim: Primitive) -> int:
    """1 for a row that joins arrays along an axis, 2 along a new one, 0 for any other: what it does to two of them says."""
    if not prim.variadic or set(prim.parameters) != {"axis"} or prim.structure != "selection":
        return 0
    x = np.arange(6.0).reshape(2, 3)
    joined = prim.value(x, -x, axis=-1)
    for join, expected in (
        (LOOPS.CONCATENATE, np.concatenate([x, -x], axis=-1)),
        (LOOPS.STACK, np.stack([x, -x], axis=-1)),
    ):
        if joined.shape == expected.shape and np.array_equal(joined, expected):
            return join
    return 0


def share(prim: Primitive, value: object) -> None:
    """Have a row's value computed by another function, which gives the same, for large arrays."""
    _VALUES[prim] = value
    row = getattr(prim, "c_op", None)
    if row is not None:
        row.value = value


def _connected() -> Any:
    """The extension, told where things are."""
    loops = native.LOOPS
    if loops is None:
        return None
    names = {
        "Tensor": Tensor, "Node": Node, "Output": Output, "Leaf": Leaf, "View": View, "Freed": Freed, "Primitive": Primitive,
        "Where": Where, "Cut": Cut, "Written": versions.Written, "WRITES": versions.WRITES, "new_written": versions.record_of,
        "WRITING": versions.WRITING, "Lender": versions.Lender, "BEFORE_WRITE": versions.BEFORE_WRITE,
        "LOCAL": LOCAL, "WATCHES": WATCHES, "modes": (MODES[True, False, False], MODES[False, False, False], MODES[False, False, True]),
        "UNREAD": UNREAD, "user_line": user_line, "wrote": versions.wrote,
        "CLOCK": versions.CLOCK, "SPECIAL": SPECIAL, "USER_FILES": USER_FILES, "note_frame": note_frame, "counter": next_seq.__self__,  # type: ignore[attr-defined]
        "NO_PARAMS": NO_PARAMS, "viewed": viewed, "unbroadcast": unbroadcast, "operations": RECORDED, "add": np.add,
        "make_op": make_op, "trace_value": trace_value, "trace_rule": trace_rule, "_getframe": _getframe, "protected": versions.protected,
    }  # fmt: skip
    try:
        loops.connect(names)
    except (TypeError, AttributeError, RuntimeError) as problem:
        native.refuse(f"operations run in Python: {problem}")
        return None
    return loops


LOOPS: Any = _connected()
if LOOPS is not None and warned.VARIABLE is not None:
    LOOPS.connect_error_state(warned.VARIABLE, warned.twin_of)
    warned.at_users_line = LOOPS.call_in_error_state
new_node = tape.new_node if LOOPS is None else LOOPS.new_node
if LOOPS is not None:
    tape.ON_USE.append(LOOPS.register_user_object)
