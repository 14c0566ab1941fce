"""Messages of anomaly mode: the operation that computed the first NaN, and the rule that returned one.

``transforms/anomaly_mode`` finds the operation and its numbers, and calls these functions for the text.
"""

from __future__ import annotations

import ast
import linecache
import math
import os
import re
from typing import Any

import numpy as np

from chainrule._src.explaining.diagnosis.names import Names, place_of
from chainrule._src.interpreters.jac import JacStep
from chainrule._src.messages.kinds import NanFound
from chainrule._src.messages.names import variables
from chainrule._src.messages.reading import expression_of, syntax
from chainrule._src.messages.source_locations import Where, calling_frame, is_internal, warn
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.node import Leaf, Node


class CallStack(tuple[Any, ...]):
    """The running lines of the user's program, outermost first, as (file, line, function)."""

    __slots__ = ()

    def __str__(self) -> str:
        return "".join(
            f'  File "{file}", line {line}, in {function}\n    {linecache.getline(file, line).strip()}\n'
            for file, line, function in self
        )

    @property
    def innermost(self) -> str:
        if not self:
            return ""
        file, line, function = self[-1]
        code = linecache.getline(file, line).strip()
        return f"{os.path.basename(file)}:{line} in {function}" + (f": {code}" if code else "")


def call_stack() -> CallStack:
    found = []
    frame = calling_frame()
    while frame is not None:
        code = frame.f_code
        if not is_internal(code.co_filename):
            found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return CallStack(reversed(found))


def _values(values: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in values.items())


def _with(values: dict[str, float]) -> str:
    return f", with {_values(values)}" if values else ""


def _at(stack: CallStack | None) -> str:
    return f" ({stack.innermost})" if stack else ""


def advice_of(prim: Any, values: dict[str, float]) -> str:
    """Return the advice of an op definition for operands with these values; '' if it has none."""
    remedy = getattr(prim, "remedy", "")  # a custom Function has none
    text = remedy(*[values.get(operand) for operand in prim.operands]) if callable(remedy) else remedy
    return f" To avoid it: {text}." if text else ""


def first_nan(
    prim: Primitive, index: object, values: dict[str, float], stack: CallStack, infinity: str | None = None
) -> str:
    with_ = _with(values) or ", from operands without nan"
    infinite = not values or any(abs(value) == math.inf for value in values.values())
    cause = f" {infinity}" if infinity and infinite else ""
    if not cause or prim.kind != "elementwise":
        cause += advice_of(prim, values)
    return f"{prim.name} computed the first nan at index {index}{with_} ({stack.innermost}).{cause}"


def nan_operand(prim: Primitive, array: object, index: object, stack: CallStack) -> str:
    return f"The operand of {prim.name} ({stack.innermost}) already contained nan{_index_of(array, index)}."


def infinite_operand(prim: Primitive, array: object, index: object, stack: CallStack) -> str:
    return f"The operand of {prim.name} ({stack.innermost}) already contained inf{_index_of(array, index)}."


def _index_of(array: Any, index: object) -> str:
    """Return the user's name of an array (or of one with the same numbers) with an index."""
    name = Names().of(array)
    for held, value, _ in variables() if name is None else ():
        data = getattr(getattr(value, "_tensor", value), "_raw", value)
        same = type(data) is np.ndarray and data.shape == array.shape and data.dtype == array.dtype
        if same and np.array_equal(data, array, equal_nan=True):  # a transformation copied it
            name = held
            break
    return f", at index {index} of {name}" if name else ""


def infinite_value(prim: Primitive, index: object, values: dict[str, float], result: Any, stack: CallStack) -> str:
    """Return the message about the operation that computed an infinite value, with advice."""
    advice = advice_of(prim, values)
    if not advice:
        dtype = result.real.dtype
        wider = {2: "float32", 4: "float64"}.get(dtype.itemsize, "logarithms")
        advice = f" The result exceeds {np.finfo(dtype).max:.3g}, the largest {dtype}: scale the numbers, or compute in {wider}."
    return f"{prim.name} computed the inf at index {index}{_with(values)}{_at(stack)}.{advice}"


def warn_detected(node: Node) -> None:
    """Warn with the lines that recorded a node whose rule failed, and with those of its parent nodes."""
    stack = node.metadata.get("traceback_")
    text = f"Error detected in {node.name()}. "
    if stack is None:
        text += "No forward pass information available. Enable detect anomaly during forward pass for more information."
    else:
        text += f"Traceback of forward call that caused the error:\n{stack}"
    warn(text)
    parent = node.metadata.get("parent_")
    while parent is not None:
        stack = parent.metadata.get("traceback_", "  (recorded outside of anomaly mode)")
        warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            f"previous calculation:\n{stack}"
        )
        parent = parent.metadata.get("parent_")


def nan_gradient(
    node: Node,
    i: int,
    index: tuple[int, ...],
    *,
    values: dict[str, float],
    upstream: float | None,
    incoming_nan: bool,
    forward_message: str | None,
    infinity: str | None,
    overflow: str | None,
) -> RuntimeError:
    """Return the error for a rule that returned NaN.

    Args:
        node, i, index: the operation, the operand, and the index in the operand's gradient.
        values: the values that the rule read at the index, by name.
        upstream: the incoming gradient at the index; None if the operation is not elementwise.
        incoming_nan: whether the incoming gradient contained NaN.
        forward_message: the message about the first NaN in the operation's value.
        infinity: the message about the origin of an infinite gradient or operand.
        overflow: the message about the origin of an infinite value of the operation.
    """
    prim = node.prim
    operands = getattr(prim, "operands", ())
    operand = operands[min(i, len(operands) - 1)].lstrip("*") if operands else str(i)
    lines = [f"Function '{node.name()}' returned nan values in its {i}th output."]
    stack = node.metadata.get("traceback_")
    where = f", called at {stack.innermost}" if stack else ""
    lines.append(f"This is the gradient of {prim.name} for its operand {operand}, at index {index}{where}.")
    formula = getattr(prim, "formula", {}).get(operand) or getattr(prim, "formula", {}).get(f"*{operand}")
    names = _names(node)
    formula = _renamed(formula or "", names)
    known = {names.get(name, name): value for name, value in values.items()}
    known = known if upstream is None else {"g": upstream, **known}
    rule = f"The rule is {formula}, where g is the incoming gradient." if formula else ""
    if known:
        rule += f" At this index, {_values(known)}."
    if prim.kind == "function":
        rule += f" {prim.name}.backward computed the nan: check its formula for these numbers."
    lines += [rule.strip()] if rule else []
    if incoming_nan:
        lines.append(
            "The incoming gradient already contained nan: it was passed to backward(), a hook returned it, or infinite "
            "gradients of several paths were added."
        )
    elif upstream == 0 and forward_message is None and prim.kind == "elementwise":
        lines.append(_zero_times_infinity(node, operand, values, names, stack))
    if infinity is not None:
        lines.append(infinity)
    elif not incoming_nan and forward_message is None:
        lines.append(advice_of(prim, values).strip() or overflow or "")
    if forward_message is not None:
        lines.append(f"In the forward pass: {forward_message}")
    return NanFound("\n".join(filter(None, lines)))


def _zero_times_infinity(
    node: Node, operand: str, values: dict[str, float], names: dict[str, str], stack: CallStack | None
) -> str:
    """Return the message about a zero gradient times an infinite slope, usually the result of a mask."""
    prim = node.prim
    text = f"The incoming gradient is 0, and 0 times the infinite slope of {prim.name} is nan."
    users = [
        user for user in LOCAL.sweep.nodes() if any(node in (edge, getattr(edge, "node", None)) for edge in user.edges)
    ]
    ok = _condition([stack, *[user.metadata.get("traceback_") for user in users]])
    if not ok and not any(user.prim.name in ("where", "mul") or user.prim.moves for user in users):
        return text
    ok = ok or "ok"
    beyond = [name for name in prim.operands if name in values and not _within(values[name], _domain(prim, name))]
    masked = beyond[0] if beyond and operand not in beyond else operand
    x, safe = names.get(masked, masked), _safe_value(_domain(prim, masked))
    call, harmless = _call(prim, names, masked, x), _call(prim, names, masked, f"where({ok}, {x}, {safe})")
    where = place_of(node)
    tree = expression_of(where.expression) if where is not None else None
    if isinstance(tree, ast.BinOp) and len(prim.operands) == 2:  # as the program writes it
        call, side = ast.unparse(tree), "right" if prim.operands.index(masked) else "left"
        inner = f"where({ok}, {ast.unparse(getattr(tree, side))}, {safe})"
        setattr(tree, side, ast.Name(inner))
        harmless = ast.unparse(tree)
    return (
        f"{text} A mask such as where({ok}, {call}, 0) masks the value, not the gradient. Mask the input, too: "
        f"where({ok}, {harmless}, 0)."
    )


def _domain(prim: Primitive, operand: str) -> tuple[float, float]:
    """Return the interval of sample values of an operand."""
    domain = prim.domain
    if isinstance(domain, tuple) and domain and not isinstance(domain[0], (int, float)):
        domain = domain[prim.operands.index(operand)]
    return domain if isinstance(domain, tuple) else (-math.inf, math.inf)


def _within(value: Any, domain: tuple[float, float]) -> bool:
    return isinstance(value, (int, float)) and domain[0] <= value <= domain[1]


def _safe_value(domain: tuple[float, float]) -> str:
    """Return a number in a domain, preferably an integer."""
    low, high = domain
    value = next((v for v in (1.0, 0.0, 2.0) if low < v < high), (low + high) / 2)
    return f"{value:.0f}." if value.is_integer() else f"{value:g}"


def nan_sum(leaf: Leaf, index: object, infinity: str | None) -> RuntimeError:
    """Return the error for a leaf's gradient that is nan although none of its summands is."""
    x = Names().of(leaf) or "a leaf"
    return NanFound(
        "Function 'AccumulateGrad' returned nan values in its 0th output.\n"
        f"This is the gradient of {x}, at index {index}: infinite gradients of several paths were added, and inf - inf is nan."
        + (f"\n{infinity}" if infinity else "")
    )


def first_infinity(node: Node, index: object, values: dict[str, float], operand: str | None) -> str:
    """Return the message about the origin of an infinite gradient; ``operand`` is the message about an infinite operand."""
    stack = node.metadata.get("traceback_")
    cause = f" {operand}" if operand else advice_of(node.prim, values)
    return f"That inf is the gradient of {node.prim.name} at index {index}{_with(values)}{_at(stack)}.{cause}"


def _names(node: Node) -> dict[str, str]:
    """Map the primitive's names of a node's operands and result to the user's names."""
    known = Names()
    operands = getattr(node.prim, "operands", ())
    found = {operand: known.of(edge) for operand, edge in zip(operands, node.edges) if edge is not None}
    found["out"] = known.of(node)
    return {operand: name for operand, name in found.items() if name}


def _call(prim: Primitive, names: dict[str, str], operand: str, x: str) -> str:
    return f"{prim.name}({', '.join(x if name == operand else names.get(name, name) for name in prim.operands)})"


def _condition(stacks: list[CallStack | None]) -> str:
    """Return the condition of a ``where`` call on the lines of operations; '' if there is none."""
    for stack in filter(None, stacks):
        tree = syntax(linecache.getline(*stack[-1][:2]).strip())
        for call in ast.walk(tree) if tree is not None else ():
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("where") and call.args:
                return ast.unparse(call.args[0])
    return ""


def _renamed(formula: str, names: dict[str, str]) -> str:
    """Replace the names in a formula by the user's names."""
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda word: names.get(word[0], word[0]), formula)


def nan_tangent(
    prim: Primitive,
    index: object,
    values: dict[str, float],
    operand_tangents: dict[str, float],
    stack: CallStack,
    forward_message: str | None,
    infinity: str | None,
    incoming_nan: bool,
    parent: Node | None,
) -> str:
    lines = [
        f"Function '{prim.name}' returned nan values in its tangent, in forward mode, at index {index}{_at(stack)}."
    ]
    if parent is not None:
        lines[0] = f"{lines[0][:-1]}, in the rule of {parent.name()}."
    tangents = {f"tangent of {name}": value for name, value in operand_tangents.items()}
    if values:
        lines.append(f"At this index, {_values({**values, **tangents})}.")
    if incoming_nan:
        lines.append("The incoming tangent already contained nan: it was passed to the transformation.")
    elif forward_message is None and any(value == 0 for value in operand_tangents.values()):
        lines.append(
            "A tangent is 0 where the slope is infinite, and 0 times inf is nan. If that element of the result is masked, "
            "mask the input of the operation, too."
        )
    if not incoming_nan and forward_message is None:
        lines.append(infinity or advice_of(prim, values).strip())
    if forward_message is not None:
        lines.append(f"In the forward pass: {forward_message}")
    return "\n".join(filter(None, lines))


def nan_result(index: object) -> str:
    return (
        f"The result's tangent is nan, in forward mode, at index {index}, and no operation computed the nan: it was passed to "
        "the transformation."
    )


def infinite_tangent(prim: Primitive, index: object, values: dict[str, float], stack: CallStack) -> str:
    return (
        f"That inf is the tangent of {prim.name} at index {index}{_with(values)}{_at(stack)}.{advice_of(prim, values)}"
    )


def nan_terms(step: JacStep, output: int, forward_message: str | None, infinity: str | None) -> RuntimeError:
    """Return the error for nan entries of a structured Jacobian."""
    which = f"output {output} of {_step_at(step)}" if len(step.outs) > 1 else _step_at(step)
    lines = [
        f"Function '{step.prim.name}' returned nan values in its Jacobian.",
        f"The first nan entries are those of {which}.",
    ]
    if forward_message is not None:
        lines.append(f"In the forward pass: {forward_message}")
    else:
        lines.append(infinity or advice_of(step.prim, {}).strip())
    return NanFound("\n".join(filter(None, lines)))


def infinite_terms(step: JacStep) -> str:
    return f"An entry of the Jacobian is inf in {_step_at(step)}.{advice_of(step.prim, {})}"


def _step_at(step: JacStep) -> str:
    where = Where(step.code, step.lasti)
    return f"{step.prim.name} {where.quoted if where else ''}".strip()
