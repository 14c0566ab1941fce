"""Starting a backward pass: gradients that cannot be made, are of the wrong shape, or reach nothing."""

from __future__ import annotations

from typing import Any

from chainrule.errors.words import made_by, name_of, shape_of, tensor_type, torch_size

# -- starting a backward pass -------------------------------------------------------------------------------------------


def implicit_scalar(output: Any) -> RuntimeError:
    name = name_of(output) or "y"
    shape = shape_of(output)
    call = name if name.isidentifier() else "y"
    return RuntimeError(
        "grad can be implicitly created only for scalar outputs.\n"
        f"{name}{made_by(output)} has shape {shape}, and backward() starts from ∂L/∂{call}, one number per element of "
        f"it. Choose:\n"
        f"  {call}.sum().backward()      the gradient of the sum of its elements (the same as gradient=ones_like({call}))\n"
        f"  {call}.backward(g)           g of shape {shape}: Σ g·∂{call}/∂x, for every leaf x\n"
        f"  jacobian({call}, x)          all of ∂{call}/∂x, of shape (*{call}.shape, *x.shape)"
    )


def implicit_not_real(dtype: Any) -> RuntimeError:
    return RuntimeError(
        f"grad can be implicitly created only for real scalar outputs but got {dtype}. "
        "Pass the gradient, or differentiate a real number such as y.abs()**2 or y.real."
    )


def gradient_shape(index: int, gradient: Any, output: Any, label: str = "output") -> RuntimeError:
    given, want = shape_of(gradient), shape_of(output)
    name = name_of(output) or "y"
    node = output.grad_fn
    made = f" = {node.prim.name}(...)" if node is not None else ""
    hint = (
        f"Did you mean ones_like({name})?"
        if all(bool(v == 1) for v in flat_values(gradient))
        else (f"Give one number per element of {name}.")
    )
    inputs = [edge.data.shape for edge in getattr(node, "edges", ()) if hasattr(edge, "data")]
    from_input = f", the shape of an input of {name}" if given in inputs else ""
    return RuntimeError(
        f"Mismatch in shape: grad_output[{index}] has a shape of {torch_size(given)} and {label}[{index}] has a shape of "
        f"{torch_size(want)}.\n"
        f"The gradient you pass is ∂L/∂{name}, one number per element of {name}{made}, so its shape must be {want}. "
        f"You passed {given}{from_input}. {hint}"
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


def gradient_type(function: str, value: Any) -> TypeError:
    return TypeError(
        f"{function}(): gradients can be either Tensors or None, but got {type(value).__name__}. "
        "Pass a tensor (or an array) of the output's shape."
    )


def gradient_count(outputs: int, gradients: int) -> RuntimeError:
    return RuntimeError(f"got {outputs} tensors and {gradients} gradients: give one gradient per output")


def no_grad_fn(index: int, output: Any) -> RuntimeError:
    name = name_of(output)
    subject = name or "the output"
    if output._cut is not None:
        cause = f"{subject} is not connected to anything that requires grad: {output._cut}."
    elif output.dtype.kind in "iub":
        cause = f"{subject} has dtype {output.dtype}: integers and booleans have no gradient."
    else:
        cause = (
            f"{subject} was computed from nothing that requires grad. Mark the inputs you want gradients for: "
            "x = tensor(..., requires_grad=True), before computing with them."
        )
    return RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn.\n{cause}")


def input_requires_no_grad(index: int, tensor: Any) -> RuntimeError:
    name = name_of(tensor)
    cause = f"\n{tensor._cut}." if tensor._cut is not None else ""
    return RuntimeError(
        "One of the differentiated Tensors does not require grad.\n"
        f"It is input {index}{f' ({name})' if name else ''} of shape {shape_of(tensor)}: call requires_grad_() on it "
        f"before computing the outputs.{cause}"
    )


def unused_input(index: int, tensor: Any) -> RuntimeError:
    name = name_of(tensor)
    return RuntimeError(
        f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set allow_unused=True if "
        "this is the desired behavior.\n"
        f"It is input {index}{f' ({name})' if name else ''} of shape {shape_of(tensor)}: no path leads from the outputs "
        "to it. allow_unused=True gives None for it, materialize_grads=True zeros. (An input that was rebound, as in "
        "x = x * 2 or x[0], is a new tensor: pass the very one the outputs were computed from.)"
    )


def empty_inputs(function: str) -> RuntimeError:
    return RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")


def not_a_tensor(function: str, argument: str, value: Any) -> TypeError:
    return TypeError(
        f"{function}(): argument '{argument}' must be a Tensor or a sequence of Tensors, not {type(value).__name__}"
    )


def second_backward(node: Any) -> RuntimeError:
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.\n"
        f"The freed values are those of {node.name()}. Either compute the output again before the second backward, or "
        "pass retain_graph=True to the first."
    )


def saved_was_written(node: Any, name: str, array: Any, written: Any) -> RuntimeError:
    op, where = written.last
    since = written.since(node.seq)
    at = f" at {where}" if where else ""
    saved = f"its {'result' if name in node.prim.outputs else 'operand ' + repr(node.prim.aliases.get(name, name))}"
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{tensor_type(array.dtype)} {list(array.shape)}], which is {saved} of {node.name()}, is at version "
        f"{written.count}; expected version {written.count - since} instead.\n"
        f"{node.prim.name} saved the value for its backward rule; {op}{at} overwrote it. Write the change out of place "
        f"(as in y = y + 1 instead of y += 1), or change a clone()."
    )


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
