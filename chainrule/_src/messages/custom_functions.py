"""Messages about operations that users define: ``autograd.Function``."""

from __future__ import annotations

import ast
import inspect
import linecache
import math
from collections.abc import Iterable, Sequence
from typing import Any

from chainrule._src.messages.kinds import NoForwardMode
from chainrule._src.messages.reading import syntax
from chainrule._src.messages.source_locations import Where, line_name, warn


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


def function_grad_count(cls: type, want: int, results: tuple[Any, ...], node: Any) -> RuntimeError:
    name, parameters, got = cls.__name__, _parameters(cls), len(results)
    if len(parameters) != want:
        parameters = []
    arguments = f"{name}.forward takes {' and '.join(parameters)}: " if parameters else ""
    example = f", as in `return {', '.join(f'grad_{p}' for p in parameters)}`" if parameters else ""
    what = ""
    if results == (None,):
        what = f" {name}.backward returned None: is a `return` missing?"
    elif isinstance(results[0] if results else None, list):
        what = f" {name}.backward returned a list: return a tuple."
    return RuntimeError(
        f"function {name}Backward returned an incorrect number of gradients (expected {want}, got {got}).\n"
        f"{arguments}{name}.backward must return one gradient for each argument, in that order{example}, and None for arguments "
        f"that are not tensors.{what}{_seen_at(cls, node)}"
    )


def _parameters(cls: Any) -> list[str]:
    """Return the names of forward's arguments, without ctx; an empty list if it takes ``*args`` or ``**kwargs``."""
    try:
        parameters = list(inspect.signature(cls.forward).parameters.values())
    except (TypeError, ValueError):
        return []
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return []
    names = [p.name for p in parameters]
    return names[1:] if names[:1] in (["ctx"], ["self"], ["context"]) else names


def _returned(cls: Any) -> tuple[ast.expr | None, str]:
    """Return the expression and the line of the ``return`` in a class's backward; None and '' unless there is exactly one."""
    rule = inspect.unwrap(cls.backward)
    code = getattr(rule, "__code__", None)
    if code is None:
        return None, ""
    lines = linecache.getlines(code.co_filename)
    source = syntax("".join(lines))
    for function in ast.walk(source) if source is not None else ():
        if isinstance(function, ast.FunctionDef) and function.name == code.co_name:
            first = min([function.lineno, *[decorator.lineno for decorator in function.decorator_list]])
            found = [item for item in ast.walk(function) if isinstance(item, ast.Return)]
            if first == code.co_firstlineno and len(found) == 1:
                line, text = line_name(code.co_filename, found[0].lineno), lines[found[0].lineno - 1].strip()
                return found[0].value, f"`{text}` ({line})" if len(text) <= 70 else line
    return None, ""


def _seen_at(cls: Any, node: Any) -> str:
    """Quote the lines behind a wrong gradient: the ``return`` in backward, and the call of ``apply``."""
    name, returned = cls.__name__, _returned(cls)[1]
    applied = Where(node.code, node.lasti) if node is not None else None
    lines = [f"{name}.backward returned it here: {returned}."] if returned else []
    lines += [f"{name}.apply was called on line {applied}."] if applied else []
    return "\n" + " ".join(lines) if lines else ""


def function_grad_shape(
    cls: type, index: int, got: tuple[int, ...], want: tuple[int, ...], shapes: Sequence[tuple[int, ...]], node: Any
) -> RuntimeError:
    """Return the error for a gradient of the wrong shape. ``shapes`` are the shapes of all tensor arguments."""
    name, parameters = cls.__name__, _parameters(cls)
    which = f"{parameters[index]}, argument {index}" if index < len(parameters) else f"argument {index}"
    hint = ""
    if got != want and got[::-1] == want:
        value = _returned(cls)[0]
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        part = parts[index] if index < len(parts) else None
        text = "" if part is None else _transposed(part)
        hint = f" Its transpose fits{f': {text}' if text else ''}."
    elif math.prod(got) == math.prod(want):
        hint = f" It has the same number of elements: reshape it, g.reshape({want})." if got not in shapes else ""
    if not hint and got in shapes:
        hint = " It has the shape of another argument: return the gradients in the order of forward's arguments."
    return RuntimeError(
        f"Function {name}Backward returned an invalid gradient at index {index} - got {list(got)} but expected shape "
        f"compatible with {list(want)}.\n"
        f"The gradient must have the shape of {which} of {name}.apply (sum over the axes that were broadcast).{hint}"
        f"{_seen_at(cls, node)}"
    )


def rule_shape(name: str, rule: str, got: tuple[int, ...], want: tuple[int, ...], of: str) -> RuntimeError:
    """Return the error for a rule of a user-defined operation that returned a wrong shape."""
    hint = ", so its transpose fits" if tuple(got) == tuple(want)[::-1] else ""
    return RuntimeError(f"{name}: the {rule} returned shape {tuple(got)}, but {of} has shape {tuple(want)}{hint}")


def _transposed(value: ast.expr) -> str:
    """Return the source of the transpose of an expression; '' if it is too long to quote."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.MatMult):
        left, right = _transposed(value.left), _transposed(value.right)
        text = f"{right} @ {left}" if left and right else ""
    elif isinstance(value, ast.Attribute) and value.attr in ("T", "mT"):
        text = ast.unparse(value.value)
    else:
        text = ast.unparse(value)
        text = f"{text}.T" if isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text}).T"
    return text if len(text) <= 60 else ""


def note_nothing_saved(cls: type, ctx: Any, error: ValueError) -> None:
    """Add a note to an error of backward if forward saved no tensors."""
    if ctx._kept == () and "unpack" in str(error):
        error.add_note(
            f"ctx.saved_tensors is empty: {cls.__name__}.forward (or setup_context) must call ctx.save_for_backward(...) with the "
            "tensors that backward reads."
        )


def note_without_ctx(cls: Any, error: TypeError) -> None:
    """Add a note to an error of a call of forward if its signature lacks ctx."""
    name = getattr(cls.forward, "__qualname__", "")
    if name and str(error).startswith(f"{name}() takes") and "ctx" not in inspect.signature(cls.forward).parameters:
        error.add_note(
            f"The first argument of {cls.__name__}.forward must be ctx: def forward(ctx, ...). To define forward without ctx, "
            "define setup_context(ctx, inputs, output), too."
        )


def function_grad_of_constant(cls: type, index: int) -> RuntimeError:
    name, parameters = cls.__name__, _parameters(cls)
    which = f", {parameters[index]}," if index < len(parameters) else ""
    return RuntimeError(
        f"function {name}Backward returned a gradient different than None at position {index + 1}, but the corresponding "
        f"forward input{which} was not a Variable: {name}.backward must return None there."
    )


def function_grad_type(cls: type, index: int, got: object, node: Any) -> RuntimeError:
    fix = ""
    if hasattr(got, "dtype"):
        fix = " Wrap the array: from_numpy(array)."
    elif isinstance(got, list):
        fix = " Return several gradients as a tuple."
    elif isinstance(got, (int, float)):
        fix = f" Multiply the incoming gradient by it, as in g * {got}."
    name = cls.__name__
    return RuntimeError(
        f"expected Variable or None (got {type(got).__name__}): {name}.backward returned it as gradient {index}.{fix}"
        f"{_seen_at(cls, node)}"
    )


def function_vmap_dims(name: str, output: Any, dims: object) -> RuntimeError:
    return RuntimeError(
        "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
        f"out_dims={dims} to be compatible with the structure of `output`: {name}.vmap returned "
        f"{len(output) if isinstance(output, tuple) else 'one'} output(s)."
    )
