"""Messages about backward passes that cannot start or continue: missing or wrong gradients, unused inputs, freed values.

``transforms/backward.py`` and ``tape/engine.py`` raise these errors.
"""

from __future__ import annotations

import math
from typing import Any

from chainrule._src.arrays.types import AnyArray
from chainrule._src.explaining.diagnosis.anomalies import warn_detected
from chainrule._src.explaining.diagnosis.names import Names
from chainrule._src.explaining.diagnosis.source import loop_around
from chainrule._src.explaining.diagnosis.tape import (
    leaf_names,
    leaf_tensors,
    left_graph,
    of_shape,
    op_at,
    operation_chain,
    rebinding_of,
    tensor_text,
    unmarked_variable,
    used_data,
    user_name_of,
)
from chainrule._src.messages.message_parts import shape_of, tensor_type, torch_size
from chainrule._src.messages.reading import called, expression, out_of_place, receiver, receiver_of_attribute
from chainrule._src.messages.source_locations import line_name, user_line, warn, writer
from chainrule._src.tape.node import Freed, Node
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import WriteRecord

# -- starting a backward pass -------------------------------------------------------------------------------------------


def implicit_scalar(output: Tensor) -> RuntimeError:
    text = receiver("backward")
    y = user_name_of(output) or (text if len(text) <= 16 else "") or "y"
    shape = shape_of(output)
    known = [leaf for leaf in leaf_tensors(output._edge) if user_name_of(leaf)] if output._edge is not None else []
    x, jacobian = (
        (user_name_of(known[-1]), (*shape, *shape_of(known[-1]))) if known else ("x", f"(*{y}.shape, *x.shape)")
    )
    total, weighted = f"{y}.sum().backward()", f"{y}.backward(g)"
    if _asks_for_grad():
        total, weighted = f"grad({y}.sum(), {x})", f"grad({y}, {x}, g)"
    width = min(max(len(total), len(f"jacobian({y}, {x})")) + 2, 40)
    return RuntimeError(
        "grad can be implicitly created only for scalar outputs.\n"
        f"{tensor_text(output, y)} has shape {shape}, so it has no single gradient. Choose:\n"
        f"  {total:{width}} the gradient of the sum of its elements\n"
        f"  {weighted:{width}} g = ∂L/∂{y}, of shape {shape}; computes Σ g·∂{y}/∂{x}\n"
        f"  {f'jacobian({y}, {x})':{width}} the Jacobian ∂{y}/∂{x}, of shape {jacobian}"
    )


def _asks_for_grad() -> bool:
    """Return whether the user called ``grad``, not ``backward``."""
    func = getattr(expression(), "func", None)
    return "grad" in (getattr(func, "attr", ""), getattr(func, "id", ""))


def gradient_shape(index: int, gradient: Tensor, output: Tensor, label: str = "output") -> RuntimeError:
    given, want = shape_of(gradient), shape_of(output)
    y = user_name_of(output) or "y"
    x = of_shape(output._edge, given) if output._edge is not None else ""
    ones = all(bool(v == 1) for v in flat_values(gradient))
    hint = f" ones_like({y}) gives the gradient of {y}.sum()." if ones else ""
    if math.prod(want) == 1:
        hint = " An output of one element needs no gradient: omit it, or pass one number, tensor(1.)."
    return RuntimeError(
        f"Mismatch in shape: grad_output[{index}] has a shape of {torch_size(given)} and {label}[{index}] has a shape of "
        f"{torch_size(want)}.\n"
        f"The gradient is ∂L/∂{y}, with one number per element of {tensor_text(output, y)}, so its shape is {want}. You passed {given}"
        f"{f', the shape of {x}' if x else ''}.{hint}"
    )


def flat_values(tensor: Tensor) -> list[Any]:
    try:
        return list(tensor.detach().flatten()[:64].tolist())
    except Exception:  # inside a transformation there are no plain numbers
        return [None]


def gradient_type(value: object) -> TypeError:
    fix = " of the output's shape" if isinstance(value, (list, tuple)) else ""
    return TypeError(
        f"gradients can be either Tensors or None, but got {type(value).__name__}: wrap it, tensor(...), or pass an array{fix}"
    )


def gradient_numbers(value: object) -> TypeError:
    text = repr(value)
    shown = f" {text}" if len(text) <= 60 else f", which is a {type(value).__name__}"
    return TypeError(f"explain(): argument 'grad' must be numbers, one per element of the output, not{shown}")


def no_grad_fn(index: int, output: Tensor) -> RuntimeError:
    y = user_name_of(output) or receiver("backward") or "it"
    numbers = left_graph(output)
    if output._cut is not None:
        cause = f"No path leads from {y} to a tensor that requires grad: {output._cut}."
        if output._cut.of_gradient:
            cause = f"{y[0].upper() + y[1:] if y == 'it' else y} has no graph: {output._cut}."
        elif output._cut.kind == "data":
            cause = (
                f"No path leads from {y} to a tensor that requires grad: .data{used_data(output)} cut it. Remove .data."
            )
    elif numbers:
        cause = f"{numbers} is a plain number or array, which carries no gradient: use only tensors and np functions."
    elif output.dtype.kind in "iub":
        cause = f"{y} has dtype {output.dtype}: integers and booleans have no gradient."
    else:
        cause = f"{y} was not computed from a tensor that requires grad. {_mark(output)}"
    return RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn.\n{cause}")


def _mark(output: Tensor) -> str:
    start = unmarked_variable(output)
    if start is None:
        return "Mark the inputs you want gradients for before computing with them: x = tensor(..., requires_grad=True)."
    name, line = start
    return (
        f"It was computed from {name} ({line}): make {name} with requires_grad=True, or call {name}.requires_grad_() before "
        "computing with it."
    )


def input_requires_no_grad(index: int, tensor: Tensor) -> RuntimeError:
    x = user_name_of(tensor)
    cause = f" {str(tensor._cut)[0].upper()}{str(tensor._cut)[1:]}." if tensor._cut is not None else ""
    if tensor.dtype.kind in "iub":
        cause = f" Its dtype is {tensor.dtype}, and integers have no gradient: convert it with .float()."
    return RuntimeError(
        "One of the differentiated Tensors does not require grad.\n"
        f"It is input {index}{f' ({x})' if x else ''}, of shape {shape_of(tensor)}.{cause} Call "
        f"{x or 'its '}{'.' if x else ''}requires_grad_() before computing the outputs from it."
    )


def unused_input(index: int, tensor: object, outputs: Tensor | tuple[Tensor, ...] = ()) -> RuntimeError:
    x = user_name_of(tensor)
    subject = f"input {index} ({x})" if x else f"input {index}"
    several = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    y = next((output for output in several if getattr(output, "_edge", None) is not None), None)
    lines = [
        f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set allow_unused=True if "
        "this is the desired behavior."
    ]
    if y is not None:
        name = user_name_of(y) or "the output"
        lines.append(
            f"{subject}, of shape {shape_of(tensor)}, does not reach {name}: {name} ← {operation_chain(y._edge)}."
        )
    node = getattr(tensor, "grad_fn", None)
    if node is not None and y is not None:
        old = " or ".join(leaf_names(y._edge)[:2]) or "the tensor it was computed from (give that a separate name)"
        after = f", computed after {name}" if node.seq > y._edge.seq else ""
        lines.append(
            f"{x or 'It'} is the result of {op_at(node)}, a new tensor{after}: compute {name} from it, or pass {old}."
        )
    lines.append("allow_unused=True returns None for it, materialize_grads=True returns zeros.")
    return RuntimeError("\n".join(lines))


def second_backward(node: Node) -> RuntimeError:
    words = (
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.\n"
    )
    if not hasattr(node, "prim"):  # the ctx of a custom Function, which user code stored
        return RuntimeError(f"{words}The saved values of {node.name()} were freed.")
    by, again = _earlier_pass(node)
    fix = "Compute the output again before the second backward, or pass retain_graph=True to the first."
    if again:
        fix = "Compute all its operands inside the loop, detach() values carried between iterations, or pass retain_graph=True."
    if called(expression()) == "explain":
        fix = "Call explain() before backward(), or backward(retain_graph=True), or compute the output again."
    return RuntimeError(f"{words}The saved values of {op_at(node)} ({node.name()}) were freed{by}.\n{fix}")


def _earlier_pass(node: Node) -> tuple[str, bool]:
    """Return which backward pass freed a node: `` by `loss.backward()` (t.py:8)``; and whether it is the same line in a loop."""
    where, here = node.saved.where if type(node.saved) is Freed else None, user_line()
    if not where:
        return "", False
    loop = loop_around(where) if here is not None and where.same_line(here) else 0
    if loop:
        return f" by this line, in an earlier iteration of the loop ({line_name(where.file, loop)})", True
    return f" by {where.quoted}", False


def saved_was_written(node: Node, name: str, array: AnyArray, written: WriteRecord) -> RuntimeError:
    prim = node.prim
    if "traceback_" in node.metadata:  # in anomaly mode
        warn_detected(node)
    saved = "the result" if name in prim.outputs else f"operand {prim.aliases.get(name, name)!r}"
    what = was_overwritten(f"{saved} of {node.name()}", array, written, node.seq)
    return RuntimeError(f"{what}\n{_overwriter(node, array, written)}")


def was_overwritten(what: str, array: AnyArray, written: WriteRecord, seq: int) -> str:
    """Return PyTorch's message about a saved value that was written to."""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{tensor_type(array.dtype)} {list(array.shape)}], which is {what}, is at version "
        f"{written.count}; expected version {written.count - written.since(seq)} instead."
    )


def _overwriter(node: Node, array: AnyArray, written: WriteRecord) -> str:
    op, where = written.last
    holder = Names().find(array)
    name = "" if holder is None else holder.name
    story = f"{op_at(node)} saved {name or 'it'} for its backward rule, and then {writer(op, where)} overwrote it."
    if holder is not None and getattr(holder.thing, "is_leaf", False):
        return f"{story}\nCall backward() before you update {name}, or compute the output again after it."
    fix = out_of_place(where.text if where is not None else "", name)
    return f"{story}\n{fix or 'Write the change out of place (y = y + 1 instead of y += 1), or modify a clone().'}"


# -- .grad of results, and custom Functions ------------------------------------------------------------------------------


def warn_non_leaf_grad(tensor: Any) -> None:
    y = user_name_of(tensor) or receiver_of_attribute("grad") or "y"
    node = tensor.grad_fn
    text = (
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
        "you access the leaf Tensor instead.\n"
    )
    text += _rebound(tensor, y) or (
        f"{y} is the output of {node.name()}, {op_at(node)}, not a leaf. Call {y}.retain_grad() before backward(), or "
        f"use grad(L, {y})."
    )
    warn(text)


def _rebound(tensor: Tensor, x: str) -> str:
    """Return the message about ``x = x.to(...)``, which gave a leaf's name to a value computed from it; '' if not so."""
    found = rebinding_of(tensor, x, Names())
    if found is None:
        return ""
    leaf = f", and the leaf that was made on line {found.leaf} has no name now" if found.leaf is not None else ""
    advice = "Give the result another name, or make the leaf with the right dtype (and values) in the first place."
    if f"{x}.grad" in found.line.text:
        advice = f"To update a parameter, write in place: `with no_grad(): {x} -= lr * {x}.grad`."
    return f"{x} was rebound by `{found.line.text}` ({found.line}){leaf}. {advice}"


def function_saved_was_written(node: Node, index: int, array: AnyArray, written: WriteRecord) -> RuntimeError:
    return RuntimeError(
        f"{was_overwritten(f'saved_tensors[{index}] of {node.name()}', array, written, node.seq)}\n"
        f"{op_at(node)} saved it for backward, and then {writer(*written.last)} overwrote it. Write the change out "
        "of place, or save a clone()."
    )
