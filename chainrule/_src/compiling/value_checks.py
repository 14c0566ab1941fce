"""Check, in a plan, the values that Python reads in a loop.

A trace is valid only for the values that Python read during tracing. If one source line reads many values, such as the condition of a
loop, the plan compares each value with the recorded one by a call of ``check_value``. The iterations are then equal sequences of calls,
so ``loop_detection`` finds them. A run ends at the first value that differs.

``tree`` inserts the calls (``with_checks``) and handles ``ValueDiffers``. ``lowering`` calls ``lower_check``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.call_loops import CallLoops
from chainrule._src.compiling.iteration import LoopAxis, size_of_shape
from chainrule._src.compiling.loops import InnerLoop, Unlowered, own_loop
from chainrule._src.interpreters.trace_types import TracedCall, ValueGuard, Var, new_call
from chainrule._src.messages.source_locations import Where

#: the plan checks the values of source lines that read at least this many values in a trace
REPEATED = 4


class ValueDiffers(Exception):
    """A run of a plan ended at a value that differs from the recorded one.

    Attributes:
        ordinal: the index of the check among the checks of the plan.
        value: the bytes of the value; None if there are more than 16.
    """

    def __init__(self, ordinal: int, value: bytes | None) -> None:
        super().__init__(f"check {ordinal}: Python has read another value when the function was traced")
        self.ordinal, self.value = ordinal, value


class ValueCheck(NamedTuple):
    """A value that a plan compares with the recorded one.

    Attributes:
        position: the number of calls of the segment before the read.
        number: the number of the value's Var.
        content: the recorded bytes, in C order.
        code, lasti: the source location of the read.
    """

    position: int
    number: int
    content: bytes
    code: Any
    lasti: int


def reads_up_to(
    reads: list[bytes | None], checks: list[ValueCheck], ordinal: int, value: bytes | None
) -> list[bytes | None]:
    """Return the bytes of the values that Python has read up to a failed check.

    Args:
        reads: the bytes of the values that Python read before the plan.
        checks: the checks of the plan.
        ordinal, value: the index of the failed check, and the bytes of its value.
    """
    return [*reads, *[check.content for check in checks[:ordinal]], value]


def is_checked_in_plan(guards: list[ValueGuard]) -> list[bool]:
    """Return, for each value that Python reads, whether the plan checks it: whether its line reads at least ``REPEATED`` values."""
    # Reads are counted by line, because the condition of a `while` is compiled to two instructions.
    locations = [(id(guard.code), guard.lasti) for guard in guards]
    lines = {at: Where(guard.code, guard.lasti).line for at, guard in zip(locations, guards, strict=True)}
    found = [(code, lines[code, lasti]) for code, lasti in locations]
    count = Counter(found)
    return [
        count[line] >= REPEATED and not guard.var.dtype.hasobject for line, guard in zip(found, guards, strict=True)
    ]


def check_value(value: NumpyArray, expected: NumpyArray, ordinal: NumpyArray) -> Any:
    """Return True, as a 0-d array.

    Raises:
        ValueDiffers: the bytes of the two arrays differ.
    """
    if value.tobytes() != expected.tobytes():
        raise ValueDiffers(int(ordinal), value.tobytes())
    return np.array(True)


def with_checks(
    calls: Sequence[TracedCall], checks: list[ValueCheck], shift: int, variables: dict[int, Var]
) -> tuple[list[TracedCall], list[Var]]:
    """Insert the calls of checks between the calls of a segment. Return all calls, and the constants that the checks read.

    Args:
        checks: the checks, in order.
        shift: the number of calls before those of the segment.
        variables: the Vars by number.
    """
    constants: list[Var] = []
    found: list[TracedCall] = []
    begin = 0
    for ordinal, check in enumerate(checks):
        found += calls[begin : shift + check.position]
        begin = shift + check.position
        var = variables[check.number]
        recorded = np.frombuffer(check.content, var.dtype).reshape(var.shape)
        others = [Var(-1, recorded), Var(-1, np.array(ordinal))]
        constants += others
        call = new_call(check_value, "", (var, *others), (Var(-1, np.array(True)),))
        call.op_name, call.code, call.lasti, call.kept = "check", check.code, check.lasti, True
        found.append(call)
    return [*found, *calls[begin:]], constants


def lower_check(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``check_value`` to one kernel call, which stops the run if the bytes differ."""
    value, expected, _ = loops.reads
    nbytes = value.dtype.itemsize * size_of_shape(value.layout.shape)
    if not nbytes or value.layout.strides != expected.layout.strides:  # those of C order
        raise Unlowered
    operands = [*loops.reads, *loops.writes]
    loops.template.loops.append(
        InnerLoop(
            "check",
            (own_loop("check_value")[0], nbytes),
            [LoopAxis(1, (0,) * len(operands))],
            [(x.slot, x.offset) for x in operands],
            [x.dtype.itemsize for x in operands],
            checked=True,
        )
    )
