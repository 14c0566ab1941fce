"""Starting a backward pass: gradients that cannot be made, are of the wrong shape, or reach nothing."""

from __future__ import annotations

import math
from typing import Any

from chainrule.errors.assignments import called
from chainrule.errors.debugging import warn_detected
from chainrule.errors.place import (
    described,
    earlier_pass,
    expression,
    leaf_names,
    leaves,
    left_graph,
    named,
    of_shape,
    op_at,
    out_of_place,
    path,
    receiver,
    unmarked,
    used_data,
)
from chainrule.errors.source import Names
from chainrule.errors.words import shape_of, tensor_type, torch_size, writer

# -- starting a backward pass -------------------------------------------------------------------------------------------


def implicit_scalar(output: Any) -> RuntimeError:
    text = receiver("backward")
    y = named(output) or (text if len(text) <= 16 else "") or "y"
    shape = shape_of(output)
    known = [leaf for leaf in leaves(output._edge) if named(leaf)] if output._edge is not None else []
    x, jacobian = (named(known[-1]), (*shape, *shape_of(known[-1]))) if known else ("x", f"(*{y}.shape, *x.shape)")
    total, weighted = f"{y}.sum().backward()", f"{y}.backward(g)"
    if _asks_for_grad():
        total, weighted = f"grad({y}.sum(), {x})", f"grad({y}, {x}, g)"
    width = min(max(len(total), len(f"jacobian({y}, {x})")) + 2, 40)
    return RuntimeError(
        "grad can be implicitly created only for scalar outputs.\n"
        f"{described(output, y)} has shape {shape}, so it has no one gradient. Choose:\n"
        f"  {total:{width}} the gradient of the sum of its elements\n"
        f"  {weighted:{width}} g = ∂L/∂{y}, of shape {shape}; gives Σ g·∂{y}/∂{x}\n"
        f"  {f'jacobian({y}, {x})':{width}} all of ∂{y}/∂{x}, of shape {jacobian}"
    )


def _asks_for_grad() -> bool:
    """Whether the user called ``grad`` rather than ``backward``."""
    func = getattr(expression(), "func", None)
    return "grad" in (getattr(func, "attr", ""), getattr(func, "id", ""))


def implicit_not_real(dtype: Any) -> RuntimeError:
    return RuntimeError(
        f"grad can be implicitly created only for real scalar outputs but got {dtype}. "
        "Pass the gradient, or differentiate a real number such as y.abs()**2 or y.real."
    )


def gradient_shape(index: int, gradient: Any, output: Any, label: str = "output") -> RuntimeError:
    given, want = shape_of(gradient), shape_of(output)
    y = named(output) or "y"
    x = of_shape(output._edge, given) if output._edge is not None else ""
    ones = all(bool(v == 1) for v in flat_values(gradient))
    hint = f" ones_like({y}) gives the gradient of {y}.sum()." if ones else ""
    if math.prod(want) == 1:
        hint = " An output of one element needs none: leave it out, or pass one number, tensor(1.)."
    return RuntimeError(
        f"Mismatch in shape: grad_output[{index}] has a shape of {torch_size(given)} and {label}[{index}] has a shape of "
        f"{torch_size(want)}.\n"
        f"It is ∂L/∂{y}, one number per element of {described(output, y)}, so of shape {want}. You passed {given}"
        f"{f', the shape of {x}' if x else ''}.{hint}"
    )


def flat_values(tensor: Any) -> list[Any]:
    try:
        return list(tensor.detach().flatten()[:64].tolist())
    except Exception:  # inside a transformation there are no numbers to look at
        return [None]


def gradient_dtype(index: int, gradient: Any, output: Any) -> RuntimeError:
    return RuntimeError(
        f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
        f"grad_output[{index}] has a dtype of {gradient.dtype} and output[{index}] has a dtype of {output.dtype}."
    )


def gradient_type(value: Any) -> TypeError:
    fix = " of the output's shape" if isinstance(value, (list, tuple)) else ""
    return TypeError(
        f"gradients can be either Tensors or None, but got {type(value).__name__}: wrap it, tensor(...), or pass an array{fix}"
    )


def gradient_numbers(value: Any) -> TypeError:
    text = repr(value)
    shown = f" {text}" if len(text) <= 60 else f", which is a {type(value).__name__}"
    return TypeError(f"explain(): argument 'grad' must be numbers, one per element of the output, not{shown}")


def gradient_count(outputs: int, gradients: int) -> RuntimeError:
    return RuntimeError(f"got {outputs} tensors and {gradients} gradients: give one gradient per output")


def no_grad_fn(index: int, output: Any) -> RuntimeError:
    y = named(output) or receiver("backward") or "it"
    numbers = left_graph(output)
    if output._cut is not None:
        cause = f"No path leads from {y} to a tensor that requires grad: {output._cut}."
        if output._cut.of_gradient:
            cause = f"{y[0].upper() + y[1:] if y == 'it' else y} has no graph: {output._cut}."
        elif output._cut.kind == "data":
            cause = (
                f"No path leads from {y} to a tensor that requires grad: .data{used_data(output)} cut it. Leave it out."
            )
    elif numbers:
        cause = f"{numbers} is a plain number or array, from which no gradient flows back: keep to tensors and np functions."
    elif output.dtype.kind in "iub":
        cause = f"{y} has dtype {output.dtype}: integers and booleans have no gradient."
    else:
        cause = f"{y} was computed from nothing that requires grad. {_mark(output)}"
    return RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn.\n{cause}")


def _mark(output: Any) -> str:
    start = unmarked(output)
    if start is None:
        return "Mark the inputs you want gradients for before computing with them: x = tensor(..., requires_grad=True)."
    name, line = start
    return (
        f"It comes from {name} ({line}): make that with requires_grad=True, or call {name}.requires_grad_() before "
        "computing with it."
    )


def input_requires_no_grad(index: int, tensor: Any) -> RuntimeError:
    x = named(tensor)
    cause = f" {str(tensor._cut)[0].upper()}{str(tensor._cut)[1:]}." if tensor._cut is not None else ""
    if tensor.dtype.kind in "iub":
        cause = f" Its dtype is {tensor.dtype}, and integers have no gradient: convert it with .float()."
    return RuntimeError(
        "One of the differentiated Tensors does not require grad.\n"
        f"It is input {index}{f' ({x})' if x else ''}, of shape {shape_of(tensor)}.{cause} Call "
        f"{x or 'its '}{'.' if x else ''}requires_grad_() before computing the outputs from it."
    )


def unused_input(index: int, tensor: Any, outputs: Any = ()) -> RuntimeError:
    x = named(tensor)
    subject = f"input {index} ({x})" if x else f"input {index}"
    several = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    y = next((output for output in several if getattr(output, "_edge", None) is not None), None)
    lines = [
        f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set allow_unused=True if "
        "this is the desired behavior."
    ]
    if y is not None:
        name = named(y) or "the output"
        lines.append(f"{subject}, of shape {shape_of(tensor)}, does not reach {name}: {name} ← {path(y._edge)}.")
    node = getattr(tensor, "grad_fn", None)
    if node is not None and y is not None:
        old = " or ".join(leaf_names(y._edge)[:2]) or "the tensor that it was computed from, under a name of its own"
        after = ", computed after it" if node.seq > y._edge.seq else ""
        lines.append(
            f"{x or 'It'} is the result of {op_at(node)}, a new tensor{after}: compute {name} from that, or pass {old}."
        )
    lines.append("allow_unused=True returns None for it, materialize_grads=True zeros.")
    return RuntimeError("\n".join(lines))


def empty_inputs(function: str) -> RuntimeError:
    return RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")


def not_a_tensor(function: str, argument: str, value: Any) -> TypeError:
    return TypeError(
        f"{function}(): argument '{argument}' must be a Tensor or a sequence of Tensors, not {type(value).__name__}"
    )


def second_backward(node: Any) -> RuntimeError:
    words = (
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.\n"
    )
    if not hasattr(node, "prim"):  # the ctx of a custom Function, which somebody kept
        return RuntimeError(f"{words}What {node.name()} had saved was freed.")
    earlier = earlier_pass(node)
    by = f" by {earlier}" if earlier else ""
    fix = "Compute the output again before the second backward, or pass retain_graph=True to the first."
    if "this line, in" in earlier:
        fix = (
            "Compute what it needs inside the loop, detach() what is carried from round to round, or retain_graph=True."
        )
    if called(expression()) == "explain":
        fix = "Call explain() before backward(), or backward(retain_graph=True), or compute the output again."
    return RuntimeError(f"{words}What {op_at(node)} had saved ({node.name()}) was freed{by}.\n{fix}")


def node_arguments(want: int, got: int) -> TypeError:
    return TypeError(
        f"expected {want} arguments, got {got} instead: a node takes one gradient for each output of its operation"
    )


def node_gradient_shape(node: Any, gradients: Any) -> RuntimeError:
    shapes = ", ".join(str(shape_of(g)) for g in gradients)
    return RuntimeError(
        f"Mismatch in shape: {node.name()} was called with a gradient of shape {shapes}. A node takes ∂L/∂y for the y that has "
        "it as grad_fn, so of the shape of y; ones_like(y) gives the gradient of y.sum()."
    )


def saved_was_written(node: Any, name: str, array: Any, written: Any) -> RuntimeError:
    prim = node.prim
    if "traceback_" in node.metadata:  # in anomaly mode
        warn_detected(node)
    what = (
        f"{'the result' if name in prim.outputs else 'operand ' + repr(prim.aliases.get(name, name))} of {node.name()}"
    )
    return RuntimeError(f"{was_overwritten(what, array, written, node.seq)}\n{_overwriter(node, array, written)}")


def was_overwritten(what: str, array: Any, written: Any, seq: int) -> str:
    """PyTorch's words for a saved value that was written to."""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{tensor_type(array.dtype)} {list(array.shape)}], which is {what}, is at version "
        f"{written.count}; expected version {written.count - written.since(seq)} instead."
    )


def _overwriter(node: Any, array: Any, written: Any) -> str:
    op, where = written.last
    holder = Names().find(array)
    name = "" if holder is None else holder.name
    what = writer(op, where)
    story = (
        f"{_op_before(node, where, holder)} saved {name or 'it'} for its backward rule, and then {what} overwrote it."
    )
    if holder is not None and getattr(holder.thing, "is_leaf", False):
        return f"{story}\nCall backward() before you update {name}, or compute the output again after it."
    fix = out_of_place(where.text if where is not None else "", name)
    return f"{story}\n{fix or 'Write the change out of place (y = y + 1 instead of y += 1), or change a clone().'}"


def _op_before(node: Any, where: Any, holder: Any) -> str:
    """An operation and its line, where a write on line ``where`` has given its result another history since."""
    names = Names()
    line = names.line(node)
    if line is not None and where is not None and (line.file, line.line) == (where.file, where.line):
        before = None if holder is None else names.earlier(holder)
        line = None if before is None else before[1]
    return str(node.prim.name) if line is None else f"{node.prim.name} ({line})"


# -- grad and backward --------------------------------------------------------------------------------------------------


def edge_has_no_shape() -> RuntimeError:
    return RuntimeError(
        "grad can be implicitly created only for scalar outputs, and a GradientEdge does not say what shape its output "
        "has: give a gradient for it (ones(()) for a scalar)."
    )


def inputs_type(value: Any) -> RuntimeError:
    return RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(value).__name__}")


def materialize_edge(index: int) -> RuntimeError:
    return RuntimeError(
        f"materialize_grads cannot be used when the given input is a GradientEdge (input {index}), which does not say what "
        "shape the zeros would have: pass the tensor, or allow_unused=True."
    )


def batched_gradient_shape(index: int, gradient: Any, output: Any) -> RuntimeError:
    return RuntimeError(
        "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
        "sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was "
        f"detected: grad_output[{index}] has a shape of {torch_size(shape_of(gradient))} and output[{index}] has a shape of "
        f"{torch_size(shape_of(output))}. It must have one more dimension, in front: one gradient per entry."
    )


def batched_gradient_missing(index: int) -> RuntimeError:
    return RuntimeError(
        f"is_grads_batched=True needs a gradient for every output, and grad_outputs[{index}] is None: give a stack of "
        "gradients, with the batch along dimension 0."
    )


def batched_gradient_sizes(sizes: Any) -> ValueError:
    return ValueError(
        "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
        f"{list(sizes)} for the mapped dimension (dimension 0 of grad_outputs)."
    )


def blocked_below() -> NotImplementedError:
    return NotImplementedError(
        "the gradient of a tensor with two levels of tangents, with respect to one that was itself computed: take it with "
        "respect to the inputs, or use func.grad inside func.jvp"
    )
