"""Operations that users define: ``autograd.Function`` and ``chainrule.primitive``."""

from __future__ import annotations

import inspect
from typing import Any

from chainrule.errors.operations import NoForwardMode
from chainrule.errors.places import warn


def function_saves(method: str, index: int, value: Any) -> TypeError:
    return TypeError(
        f"{method} can only save variables, but argument {index} is of type {type(value).__name__}. Tensors (or None) are "
        "saved; keep anything else as an attribute: ctx.axis = axis."
    )


def function_marks(message: str, index: int, value: Any) -> RuntimeError:
    return RuntimeError(f"{message}, but argument {index} is of type {type(value).__name__}")


def function_saved_once(name: str) -> RuntimeError:
    return RuntimeError(
        f"saved_tensors can only be accessed once in {name}, which has clear_saved_tensors_on_access = True. Keep what the first "
        "access gave in a variable; for two backward passes through one graph, leave the attribute out."
    )


def once_differentiable(name: str) -> RuntimeError:
    return RuntimeError(
        "trying to differentiate twice a function that was marked with @once_differentiable\n"
        f"{name}.backward says that its operations are not recorded. Write it with recorded operations and take the mark "
        "off, or do without create_graph=True."
    )


def function_instance(name: str) -> RuntimeError:
    return RuntimeError(
        "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
        f"with static forward method.\n{name} should not be instantiated: its methods are static; call {name}.apply(...)."
    )


def function_keywords(name: str, kwargs: Any) -> TypeError:
    return TypeError(
        f"forward() got an unexpected keyword argument {next(iter(kwargs))!r}: {name}.apply passes keywords only to a "
        "forward without ctx, next to which setup_context is defined. Pass it by position."
    )


def function_nested(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: NestedIOFunction is not supported. Derive from Function, and pass the tensors of nested arguments one by "
        "one: apply(*tensors)."
    )


def function_two_rules(name: str) -> RuntimeError:
    return RuntimeError(
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of "
        f"them: they are two names of one method. {name} has both."
    )


def function_grad_count(cls: Any, want: int, got: int) -> RuntimeError:
    name, parameters = cls.__name__, _parameters(cls)
    if len(parameters) != want:
        parameters = []
    arguments = f"{name}.forward takes {' and '.join(parameters)}: " if parameters else ""
    example = f", as in `return {', '.join(f'grad_{p}' for p in parameters)}`" if parameters else ""
    return RuntimeError(
        f"function {name}Backward returned an incorrect number of gradients (expected {want}, got {got}).\n"
        f"{arguments}{name}.backward returns one gradient for each argument, in that order{example}, with None for what is no "
        "tensor."
    )


def _parameters(cls: Any) -> list[str]:
    """The names of forward's arguments, without ctx; none where it takes any number of them."""
    try:
        parameters = list(inspect.signature(cls.forward).parameters.values())
    except (TypeError, ValueError):
        return []
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return []
    names = [p.name for p in parameters]
    return names[1:] if names[:1] in (["ctx"], ["self"], ["context"]) else names


def function_grad_of_constant(cls: Any, index: int) -> RuntimeError:
    name, parameters = cls.__name__, _parameters(cls)
    which = f", {parameters[index]}," if index < len(parameters) else ""
    return RuntimeError(
        f"function {name}Backward returned a gradient different than None at position {index + 1}, but the corresponding "
        f"forward input{which} was not a Variable: {name}.backward returns None there."
    )


def function_grad_type(name: str, index: int, got: Any) -> RuntimeError:
    fix = (
        " Wrap the array: from_numpy(array)."
        if hasattr(got, "dtype")
        else " Several gradients are returned as a tuple."
        if isinstance(got, list)
        else ""
    )
    return RuntimeError(
        f"expected Variable or None (got {type(got).__name__}): {name}.backward returned it as gradient {index}.{fix}"
    )


def function_grad_shape(name: str, index: int, got: Any, want: Any) -> RuntimeError:
    return RuntimeError(
        f"Function {name}Backward returned an invalid gradient at index {index} - got {list(got)} but expected shape "
        f"compatible with {list(want)}.\nThe gradient has the shape of argument {index} of {name}.apply (a shape that it was "
        "broadcast to is summed over)."
    )


def function_grad_complex(name: str, index: int) -> RuntimeError:
    return RuntimeError(
        f"Function {name}Backward returned a complex gradient at index {index}, but that argument is real. "
        "Return its real part: grad.real."
    )


def function_dirty_lost(name: str) -> RuntimeError:
    return RuntimeError(
        "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
        f"inplace must all be outputs of the Function: return the tensor that {name}.forward passed to mark_dirty."
    )


def _dirty_no_input(name: str) -> str:
    return (
        "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be passed "
        f"to ctx.mark_dirty(): in {name}.forward leave it out for what forward made itself."
    )


def function_dirty_no_input(name: str) -> RuntimeError:
    return RuntimeError(_dirty_no_input(name))


def warn_dirty_no_input(name: str) -> None:
    warn(_dirty_no_input(name))


def function_dirty_leaf(name: str) -> RuntimeError:
    return RuntimeError(
        f"a leaf Variable that requires grad has been used in an in-place operation.\n{name}.forward wrote into it "
        "(mark_dirty). Pass a clone(), or work inside no_grad()."
    )


def function_dirty_view(name: str) -> RuntimeError:
    return RuntimeError(
        "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than "
        f"one Tensor. Pass {name}.apply a clone() of the view, or make two Functions of it."
    )


def function_view_in_place() -> RuntimeError:
    return RuntimeError(
        "the output of a custom Function is a view (or an input that was returned as it is), and its base or another view of "
        "it was written to in place: the gradient of that write is not in the output's history. This behavior is forbidden. "
        "Return a clone() from forward, or write out of place."
    )


def function_no_jvp(name: str, why: str) -> NoForwardMode:
    return NoForwardMode(
        "You must implement the jvp function for custom autograd.Function to use it with forward mode AD.\n"
        f"{name} has no jvp, and its tangent could not be derived from backward: {why}. Define jvp(ctx, *tangents), which "
        "returns one tangent for each output."
    )


def function_jvp_count(name: str, want: int, got: int) -> RuntimeError:
    return RuntimeError(
        f"Function's jvp returned an invalid number of forward gradients (expected {want} but got {got}): {name}.jvp returns "
        "one tangent for each output of forward."
    )


def function_jvp_type(name: str, index: int, got: Any) -> RuntimeError:
    return RuntimeError(
        f"expected Variable or None (got {type(got).__name__}) for grad output {index}: {name}.jvp returned it."
    )


def function_jvp_shape(name: str, index: int, want: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
        f"Tensor is of size {list(want)} while the given forward gradient is of size {list(got)}: {name}.jvp returned it for "
        f"output {index}."
    )


def function_numpy_inside(name: str, where: str) -> RuntimeError:
    return RuntimeError(
        f"{name}.{where} asked for the numbers of a tensor inside vmap, where there is one program for all examples. "
        "Write it with NumPy's functions on the tensor itself (np.sin(x)), or give the Function a vmap staticmethod: "
        "vmap(info, in_dims, *args) gets ordinary tensors with a batch axis and returns (output, out_dims)."
    )


def function_keyword_only(forward: Any, names: list[str]) -> NotImplementedError:
    return NotImplementedError(
        f"autograd.Function: {forward.__qualname__} takes {', '.join(names)} by keyword only, and kwarg-only Tensor args are "
        "not supported: backward returns one gradient for each argument by its position. Take the * out of forward's "
        "signature."
    )


def function_two_vmaps(name: str) -> RuntimeError:
    return RuntimeError(
        f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. "
        "Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
    )


def function_vmap_result(name: str, got: Any) -> RuntimeError:
    return RuntimeError(
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with "
        f"the output. Got a {type(got)} instead, from {name}.vmap."
    )


def function_vmap_dims(name: str, output: Any, dims: Any) -> RuntimeError:
    return RuntimeError(
        "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
        f"out_dims={dims} to be compatible with the structure of `output`: {name}.vmap returned "
        f"{len(output) if isinstance(output, tuple) else 'one'} output(s)."
    )


def function_vmap_size(name: str, index: int, got: Any, size: int) -> RuntimeError:
    return RuntimeError(
        f"{name}.vmap returned output {index} of shape {tuple(got)}, which has no axis of the batch size {size} where "
        "out_dims says."
    )


def function_needs_setup(name: str) -> RuntimeError:
    return RuntimeError(
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
        f"setup_context staticmethod.\n{name} has a vmap staticmethod, which computes the value without a ctx: to "
        "differentiate it inside vmap, give forward no ctx and fill it in setup_context(ctx, inputs, output)."
    )
