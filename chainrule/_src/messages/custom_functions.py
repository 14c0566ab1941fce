"""Messages about operations that users define: ``autograd.Function``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule._src.messages.kinds import NoForwardMode
from chainrule._src.messages.source_locations import warn


def function_saves(method: str, index: int, value: object) -> TypeError:
    return TypeError(
        f"{method} can only save variables, but argument {index} is of type {type(value).__name__}. Save tensors "
        "(or None); store any other object as an attribute: ctx.axis = axis."
    )


def function_marks(message: object, index: int, value: object) -> RuntimeError:
    return RuntimeError(f"{message}, but argument {index} is of type {type(value).__name__}")


def function_saved_once(name: str) -> RuntimeError:
    return RuntimeError(
        f"saved_tensors can only be accessed once in {name}, which has clear_saved_tensors_on_access = True. "
        "Assign the result of the first access to a variable; for two backward passes through one graph, remove "
        "the attribute."
    )


def once_differentiable(name: str) -> RuntimeError:
    return RuntimeError(
        "trying to differentiate twice a function that was marked with @once_differentiable\n"
        f"The decorator stops the operations of {name}.backward from being recorded. Write backward with recorded "
        "operations and remove the decorator, or omit create_graph=True."
    )


def function_instance(name: str) -> RuntimeError:
    return RuntimeError(
        "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
        "function with static forward method.\n"
        f"{name} should not be instantiated: its methods are static; call {name}.apply(...)."
    )


def function_nested(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: NestedIOFunction is not supported. Derive from Function, and pass the tensors of nested "
        "arguments separately: apply(*tensors)."
    )


def function_two_rules(name: str) -> RuntimeError:
    return RuntimeError(
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement "
        f"one of them: they are two names of one method. {name} has both."
    )


def function_grad_complex(name: str, index: int) -> RuntimeError:
    return RuntimeError(
        f"Function {name}Backward returned a complex gradient at index {index}, but that argument is real. Return "
        "its real part: grad.real."
    )


def function_dirty_lost(name: str) -> RuntimeError:
    return RuntimeError(
        "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
        f"modified inplace must all be outputs of the Function: return the tensor that {name}.forward passed to "
        "mark_dirty."
    )


def function_dirty_leaf(name: str) -> RuntimeError:
    return RuntimeError(
        "a leaf Variable that requires grad has been used in an in-place operation.\n"
        f"{name}.forward wrote into it (mark_dirty). Pass a clone(), or work inside no_grad()."
    )


def function_dirty_view(name: str) -> RuntimeError:
    return RuntimeError(
        "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
        f"more than one Tensor. Pass {name}.apply a clone() of the view, or split {name} into two Functions."
    )


def function_view_in_place() -> RuntimeError:
    return RuntimeError(
        "the output of a custom Function is a view (or an input that was returned unchanged), and its base or "
        "another view of it was written to in place: the history of the output does not contain the gradient of "
        "that write. This behavior is forbidden. Return a clone() from forward, or write out of place."
    )


def function_no_jvp(name: str, why: object) -> NoForwardMode:
    return NoForwardMode(
        "You must implement the jvp function for custom autograd.Function to use it with forward mode AD.\n"
        f"{name} has no jvp, and its tangent could not be derived from backward: {why}. Define jvp(ctx, "
        "*tangents), which returns one tangent for each output."
    )


def function_jvp_count(name: str, want: object, got: object) -> RuntimeError:
    return RuntimeError(
        f"Function's jvp returned an invalid number of forward gradients (expected {want} but got {got}): "
        f"{name}.jvp returns one tangent for each output of forward."
    )


def function_jvp_type(name: str, index: int, got: object) -> RuntimeError:
    return RuntimeError(
        f"expected Variable or None (got {type(got).__name__}) for grad output {index}: {name}.jvp returned it."
    )


def function_jvp_shape(name: str, index: int, want: Iterable[object], got: Iterable[object]) -> RuntimeError:
    return RuntimeError(
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
        f"supported. Tensor is of size {list(want)} while the given forward gradient is of size {list(got)}: "
        f"{name}.jvp returned it for output {index}."
    )


def function_numpy_inside(name: str, where: object) -> RuntimeError:
    return RuntimeError(
        f"{name}.{where} converted a tensor to plain numbers inside vmap, where one call computes all examples. "
        "Call NumPy's functions on the tensor itself (np.sin(x)), or define a vmap staticmethod: vmap(info, "
        "in_dims, *args) gets ordinary tensors with a batch axis and returns (output, out_dims)."
    )


def function_two_vmaps(name: str) -> RuntimeError:
    return RuntimeError(
        f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap "
        "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
        "ambiguity."
    )


def function_vmap_result(name: str, got: object) -> RuntimeError:
    return RuntimeError(
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
        f"compatible with the output. Got a {type(got)} instead, from {name}.vmap."
    )


def function_vmap_size(name: str, index: int, got: Iterable[object], size: object) -> RuntimeError:
    return RuntimeError(
        f"{name}.vmap returned output {index} of shape {tuple(got)}, which has no axis of the batch size {size} "
        "at the position in out_dims."
    )


def function_needs_setup(name: str) -> RuntimeError:
    return RuntimeError(
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
        "override the setup_context staticmethod.\n"
        f"{name} has a vmap staticmethod, which computes the value without a ctx: to differentiate it inside vmap, "
        "define forward without ctx, and fill ctx in setup_context(ctx, inputs, output)."
    )


def function_keywords(name: str, kwargs: Iterable[object]) -> TypeError:
    return TypeError(
        f"forward() got an unexpected keyword argument {next(iter(kwargs))!r}: {name}.apply passes keywords only "
        "if forward takes no ctx and the class defines setup_context. Pass it by position."
    )


def function_keyword_only(forward: Any, names: Iterable[str]) -> NotImplementedError:
    return NotImplementedError(
        f"autograd.Function: {forward.__qualname__} takes {', '.join(names)} by keyword only, and kwarg-only "
        "Tensor args are not supported: backward returns one gradient for each positional argument. Remove the * "
        "from the signature of forward."
    )


def function_dirty_no_input(name: str) -> RuntimeError:
    return RuntimeError(
        "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
        f"should be passed to ctx.mark_dirty(): {name}.forward must not pass tensors that it created itself."
    )


def warn_dirty_no_input(name: str) -> None:
    warn(
        "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
        f"should be passed to ctx.mark_dirty(): {name}.forward must not pass tensors that it created itself."
    )
