"""Messages about backward passes: gradients, hooks, saved values and checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule._src.messages.kinds import CheckpointError
from chainrule._src.messages.message_parts import function_or_class_name, last_write, shape_of, tensor_type, torch_size


def implicit_not_real(dtype: object) -> RuntimeError:
    return RuntimeError(
        f"grad can be implicitly created only for real scalar outputs but got {dtype}. Pass the gradient, or "
        "differentiate a real number such as y.abs()**2 or y.real."
    )


def gradient_dtype(index: int, gradient: Any, output: Any) -> RuntimeError:
    return RuntimeError(
        "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
        f"grad_output[{index}] has a dtype of {gradient.dtype} and output[{index}] has a dtype of "
        f"{output.dtype}."
    )


def gradient_count(outputs: object, gradients: object) -> RuntimeError:
    return RuntimeError(f"got {outputs} tensors and {gradients} gradients: give one gradient per output")


def empty_inputs(function: str) -> RuntimeError:
    return RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")


def node_arguments(want: object, got: object) -> TypeError:
    return TypeError(
        f"expected {want} arguments, got {got} instead: pass one gradient for each output of the node's operation"
    )


def edge_has_no_shape() -> RuntimeError:
    return RuntimeError(
        "grad can be implicitly created only for scalar outputs, and a GradientEdge does not store the shape of "
        "its output: pass a gradient for it (ones(()) for a scalar)."
    )


def inputs_type(value: object) -> RuntimeError:
    return RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(value).__name__}")


def materialize_edge(index: int) -> RuntimeError:
    return RuntimeError(
        f"materialize_grads cannot be used when the given input is a GradientEdge (input {index}), which does not "
        "store the shape that the zeros would have: pass the tensor, or allow_unused=True."
    )


def batched_gradient_shape(index: int, gradient: object, output: object) -> RuntimeError:
    return RuntimeError(
        "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
        "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
        f"mismatch was detected: grad_output[{index}] has a shape of {torch_size(shape_of(gradient))} and "
        f"output[{index}] has a shape of {torch_size(shape_of(output))}. It must have one more leading dimension: "
        "one gradient per entry."
    )


def batched_gradient_missing(index: int) -> RuntimeError:
    return RuntimeError(
        f"is_grads_batched=True needs a gradient for every output, and grad_outputs[{index}] is None: pass a stack "
        "of gradients, with the batch along dimension 0."
    )


def batched_gradient_sizes(sizes: Iterable[object]) -> ValueError:
    return ValueError(
        f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {list(sizes)} for "
        "the mapped dimension (dimension 0 of grad_outputs)."
    )


def blocked_below() -> NotImplementedError:
    return NotImplementedError(
        "cannot compute the gradient of a tensor with two levels of tangents with respect to a non-leaf tensor: "
        "differentiate with respect to the inputs, or use func.grad inside func.jvp"
    )


def node_gradient_shape(node: Any, gradients: Iterable[object]) -> RuntimeError:
    return RuntimeError(
        f"Mismatch in shape: {node.name()} was called with a gradient of shape "
        f"{', '.join(str(shape_of(x)) for x in gradients)}. The grad_fn of y takes ∂L/∂y, which has the shape of "
        "y; ones_like(y) gives the gradient of y.sum()."
    )


def no_node_attribute(node: object, name: str) -> AttributeError:
    return AttributeError(f"'{node}' object has no attribute {name!r}")


def hook_not_callable(hook: object) -> TypeError:
    return TypeError(f"a hook must be callable, not {type(hook).__name__}")


def hook_shape(hook: object, want: Iterable[object], got: Iterable[object]) -> RuntimeError:
    return RuntimeError(
        f"hook {function_or_class_name(hook)} has changed the size of value: the gradient has shape "
        f"{tuple(want)}, the hook returned {tuple(got)}"
    )


def hook_dtype(hook: object, want: object, got: object) -> RuntimeError:
    return RuntimeError(
        f"hook {function_or_class_name(hook)} has changed the type of value (was {want} got {got}): return g.to({want})"
    )


def hook_count(hook: object, got: object, want: object) -> RuntimeError:
    return RuntimeError(
        f"hook {function_or_class_name(hook)} has returned an incorrect number of values (got {got}, but expected "
        f"{want})"
    )


def hook_type(expected: object, got: object) -> TypeError:
    return TypeError(
        f"expected {expected}, but hook returned '{type(got).__name__}': a tensor's hook returns a tensor or "
        "None, and a node's hook returns a tuple of them or None"
    )


def hook_returned(hook: object) -> RuntimeError:
    return RuntimeError(
        "Tensor post accumulate grad hooks should return None.\n"
        f"{function_or_class_name(hook)} returned a value, but the gradient is already in .grad: modify .grad in "
        "place (t.grad.mul_(2)), and return None."
    )


def hook_fills_none() -> RuntimeError:
    return RuntimeError(
        "can't replace a None gradient with a non-None value: this operand of the node needs no gradient"
    )


def saved_has_hooks() -> RuntimeError:
    return RuntimeError(
        "Calling register_hooks on a saved tensor whose hooks have already been set: it can have one pair of "
        "hooks. Inside saved_tensors_hooks() every value already has the hooks of that context."
    )


def saved_is_none() -> RuntimeError:
    return RuntimeError(
        "Calling register_hooks on a saved tensor with value None is forbidden: it contains no array to pack "
        "(nothing, or a plain number)."
    )


def saved_was_freed() -> RuntimeError:
    return RuntimeError(
        "Calling register_hooks on a saved tensor after it has been freed. backward() and grad() free saved values "
        "after using them: pass retain_graph=True there to keep them."
    )


def unpacked_no_tensor(value: object) -> TypeError:
    return TypeError(
        "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
        f"{type(value).__name__}: unpack_hook must return a tensor with the values that pack_hook was given"
    )


def reentrant_needs_all_leaves() -> RuntimeError:
    return RuntimeError(
        "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
        "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
        ".backward() without passing the `inputs` argument. (explain() and jacobian() are like .grad() here.)"
    )


def argument_was_written(tensor: Any, written: Any) -> RuntimeError:
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{tensor_type(tensor.dtype)} {list(shape_of(tensor))}], which a checkpointed function reads, was "
        f"overwritten by {last_write(written)} after the function ran, so the function cannot be recomputed. Write "
        "the change out of place, or run backward() first."
    )


def recomputed_was_written(tensor: Any, written: Any) -> RuntimeError:
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{tensor_type(tensor.dtype)} {list(shape_of(tensor))}], which an operation in a checkpointed "
        f"function saved, was overwritten by {last_write(written)}. Write the change out of place, or modify a "
        "clone()."
    )


def kept_was_written(prim: Any, array: object, written: Any) -> RuntimeError:
    return RuntimeError(
        f"Tensor cached during selective activation checkpoint has been mutated: the result of {prim.name}, of "
        f"shape {shape_of(array)}, was overwritten by {last_write(written)}. With allow_cache_entry_mutation=True "
        "it is recomputed instead."
    )


def pack_hook_wrote() -> RuntimeError:
    return RuntimeError(
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not "
        "be modified by in-place operations, because the forward pass still uses their memory: modify a clone()."
    )


def packed_was_written(tensor: Any) -> RuntimeError:
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{tensor_type(tensor.dtype)} {list(tensor.shape)}], which a pack hook returned without copying. "
        "Write the change out of place, or return a clone() from the pack hook."
    )


def unpacked_differs(value: Any, shape: Iterable[object], dtype: object) -> RuntimeError:
    return RuntimeError(
        f"unpack_hook returned a tensor of shape {shape_of(value)} and dtype {value.dtype}, but pack_hook was "
        f"given shape {tuple(shape)} and dtype {dtype}: return the same values"
    )


WARN_USE_REENTRANT = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
    "recommended; the default is use_reentrant=True, as in PyTorch."
)


def _operations(frame: Any, run: Any) -> str:
    if not frame.debug:
        return (
            "\nThe function must compute the same values in both runs. Look for state that changed between them: "
            "a counter, a training flag, external data. debug=True lists the operations of both runs."
        )
    first, second = "\n  ".join(frame.log), "\n  ".join(run.log)
    return (
        "\nYou are seeing this error because you passed `debug=True` to checkpoint (or are inside "
        f"set_checkpoint_debug_enabled).\nOperations of the first run:\n  {first}"
        f"\nOperations of the recomputation:\n  {second}"
    )


def checkpoint_saved_more(frame: Any, run: Any) -> CheckpointError:
    return CheckpointError(
        "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward "
        f"pass, which saved {len(frame.about)}.{_operations(frame, run)}"
    )


def checkpoint_saved_fewer(frame: Any, run: Any) -> CheckpointError:
    return CheckpointError(
        "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
        f"Number of tensors saved during forward: {len(frame.about)}\n"
        f"Number of tensors saved during recomputation: {run.count}.{_operations(frame, run)}"
    )


def checkpoint_saved_others(frame: Any, run: Any) -> CheckpointError:
    lines = "".join(
        f"\ntensor at position {i}: saved with shape {tuple(was[0])} and dtype {was[1]}, recomputed with shape "
        f"{tuple(now[0])} and dtype {now[1]}"
        for i, was, now in run.differing[:8]
    )
    return CheckpointError(
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
        f"forward pass.{lines}{_operations(frame, run)}"
    )
