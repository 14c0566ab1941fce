"""Print a plan as a table: one line per step, with the names of ops, the memory of the result and the source line.

``str(plan)`` calls ``plan_table``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule._src.compiling.grouping import LoopGroup
from chainrule._src.compiling.layout import ARENA, CONSTANT, INPUT, LOOSE, OUTPUT, Buffer, BufferView
from chainrule._src.compiling.steps import PlanStep
from chainrule._src.interpreters.trace_types import Var
from chainrule._src.messages.message_parts import counted
from chainrule._src.messages.source_locations import Where

CONSTANTS = 4  # the maximum number of constants of one dtype and shape that are listed one by one
LONGEST = 40  # the maximum number of characters of quoted arguments


def plan_table(plan: Any) -> str:
    """Return the printed form of a plan."""
    groups = {buffer: k for k, group in enumerate(plan.groups, 1) for buffer in group.written}
    rows = [
        ("", "operation", "operands", "result", "memory", "line"),
        *[_row(step, groups, plan) for step in plan.steps],
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([_inputs(plan), *lines, _footer(plan)])


def _row(step: PlanStep, groups: dict[Buffer, int], plan: Any) -> tuple[str, ...]:
    numbers = ", ".join(map(str, step.writes))
    kinds = " ".join(_kind(value) for value in step.writes)
    group = next((groups[value.buffer] for value in step.writes if value.buffer in groups), None)
    memory = "view" if step.view else ", ".join(_memory(value, plan) for value in step.writes)
    if group is not None and not step.view:
        memory = f"block {group}" if step.writes[0].buffer in plan.private else f"{memory}, block {group}"
    if step.template is None and not step.view and plan.executor != "python":
        memory += ", in Python"
    return numbers, _operation(step), _arguments(step), kinds, memory, _line(step)


def _operation(step: PlanStep) -> str:
    """Return the name of the op, followed by the NumPy name if that differs."""
    row = "" if step.call is None else step.call.op_name
    return step.name if row in ("", step.name) else f"{row}: {step.name}"


def _kind(value: BufferView) -> str:
    """Return a dtype and shape: ``f4[8, 16]``."""
    return f"{value.dtype.str.lstrip('<>=|')}{list(value.shape)}"


def _memory(value: BufferView, plan: object) -> str:
    """Return the location of a value, with its bytes if it is in the arena."""
    buffer = value.buffer
    if buffer.kind == ARENA:
        return f"{buffer.nbytes:,} at {buffer.offset:,}"
    if buffer.kind == OUTPUT:
        return f"output {buffer.index}"
    if buffer.kind == INPUT:
        return f"input {buffer.index}"
    return "new array" if buffer.kind == LOOSE else "constant"


def _arguments(step: PlanStep) -> str:
    if step.call is None:
        return str(step.reads[0])
    values = iter(step.reads)
    parts = [_quoted(x, values) for x in step.call.args]
    parts += [f"{name}={_quoted(x, values)}" for name, x in step.call.kwargs.items()]
    text = ", ".join(parts)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _quoted(x: Any, values: Iterator[BufferView]) -> str:
    """Return an argument in short form, with arrays by number."""
    kind = type(x)
    if kind is Var:
        return str(next(values))
    if kind is tuple or kind is list:
        inner = ", ".join(_quoted(item, values) for item in x)
        return f"[{inner}]" if kind is list else f"({inner}{',' * (len(x) == 1)})"
    if kind is slice:
        first, last, step = (_quoted(part, values) if part is not None else "" for part in (x.start, x.stop, x.step))
        return f"{first}:{last}" + (f":{step}" if step else "")
    if x is Ellipsis:
        return "..."
    if isinstance(x, np.dtype):
        return str(x)
    return getattr(x, "__name__", None) or repr(x)


def _line(step: PlanStep) -> str:
    call = step.call
    return str(Where(call.code, call.lasti)) if call is not None and call.code is not None else ""


def _inputs(plan: Any) -> str:
    """Return the first line: the inputs, and the constants that are used."""
    constants = {value for step in plan.steps for value in step.reads if value.buffer.kind == CONSTANT}
    given = ", ".join(f"{value} {_kind(value)}" for value in plan.inputs) or "none"
    kinds: dict[str, list[BufferView]] = {}
    for value in sorted(constants, key=lambda value: value.number):
        kinds.setdefault(_kind(value), []).append(value)
    fixed = ", ".join(_constants(kind, values) for kind, values in kinds.items())
    return f"inputs: {given}" + (f"; constants: {fixed}" if fixed else "")


def _constants(kind: str, values: list[BufferView]) -> str:
    """Return the constants of one dtype and shape, or their number if there are many."""
    if len(values) <= CONSTANTS:
        return ", ".join(f"{value} {kind}" for value in values)
    return f"{values[0]} … {values[-1]} {kind} × {len(values):,}"


def _footer(plan: Any) -> str:
    loops = sum(len(step.template.loops) for step in plan.steps if step.template is not None)
    by_python = sum(step.template is None and not step.view for step in plan.steps)
    how = {
        "native": f"{counted(loops, 'native loop')}, one call",
        "mixed": f"{counted(loops, 'native loop')}, {counted(by_python, 'Python call')}",
        "python": counted(by_python, "Python call"),
    }[plan.executor]
    left_out = [
        f"{count} {word}"
        for count, word in ((plan.dropped, "not needed"), (plan.merged, "equal to another"), (plan.folded, "constant"))
        if count
    ]
    lines = [f"outputs: {', '.join(map(str, plan.outputs)) or 'none'}"]
    lines += [_loop(k, *loop) for k, loop in enumerate(plan.loops, 1)]
    lines += [f"block {k}: {_group(group)}" for k, group in enumerate(plan.groups, 1)]
    lines.append(f"{how}; {plan.memory:,} bytes" + (f"; calls left out: {', '.join(left_out)}" if left_out else ""))
    return "\n".join(lines)


def _loop(k: int, first: PlanStep, last: PlanStep, count: int) -> str:
    begin, end = (next(iter(map(str, step.writes)), "") for step in (first, last))
    return f"loop {k}: {begin} to {end}, {count:,} times"


def _group(group: LoopGroup) -> str:
    rows = f"{group.total // group.row:,} rows of {group.row:,}" if group.row else f"{group.total:,}"
    count = len(group.kernel_calls)
    return f"{count} loop{'s' * (count > 1)} over {rows} elements, block by block"
