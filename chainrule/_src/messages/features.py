"""Messages about in-place writes, custom Functions, transformations, checkpoints and files."""

from __future__ import annotations

import ast
import inspect
import linecache
import math
from collections.abc import Sequence
from typing import Any

from chainrule._src.messages.files import torch_file, torch_file_to_write
from chainrule._src.messages.kinds import CheckpointError
from chainrule._src.messages.message_parts import shape_of, torch_size
from chainrule._src.messages.names import name_of
from chainrule._src.messages.reading import out_of_place, syntax
from chainrule._src.messages.source_locations import Where, line_name, user_line, writer

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


def profiler_option(name: str) -> NotImplementedError:
    if name.startswith("with_") or name == "use_kineto":
        return NotImplementedError(
            f"profile({name}=True) is not supported: profile() records operations, backward rules and "
            f"record_function() labels with their times, shapes and memory; omit {name}."
        )
    return NotImplementedError(
        f"{name} is for GPUs and their vendors' tools, but chainrule runs on the CPU: use profile() without it, and "
        "export_chrome_trace(path) to view the events in a browser."
    )


def explained_result(function: object, result: object, floats: bool) -> TypeError:
    name = getattr(function, "__name__", "f")
    fix = "Return a tensor that is computed from the arguments."
    if not floats:
        fix = "Only floats, and arrays and tensors of floats, become tensors, and no argument is one. Write 3. instead of 3."
    return TypeError(f"explain({name}): the function returned {type(result).__name__}, not a tensor. {fix}")


def unknown_suffix(path: str, suffix: str, writing: bool) -> ValueError:
    if suffix in (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"):
        return torch_file_to_write(path, suffix, path[: -len(suffix)]) if writing else torch_file(path)
    hint = " (for one array, use numpy.load and from_numpy)" if suffix == ".npy" else ""
    return ValueError(
        f"{path!r} ends in {suffix!r}, which is not a format of save() and load(): use the suffix .npz or "
        f".safetensors, or pass format='npz' or format='safetensors'{hint}."
    )


def graph_format(path: object, endings: list[str]) -> ValueError:
    return ValueError(
        f"save(): unknown format {str(path)!r}: use the suffix {', '.join(endings[:-1])} or {endings[-1]}"
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
    """Return the error for a gradient whose shape is not that of its argument. ``shapes``: of all tensor arguments."""
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


def func_integer_argument(data: Any) -> RuntimeError:
    name = name_of(data)
    subject = f"{name}, the argument to differentiate," if name else "the argument to differentiate"
    fix = f"{name}.astype(float)" if name else "x.astype(float) for an array x, x.float() for a tensor"
    if getattr(data.dtype, "kind", "") in "OSU":
        return RuntimeError(
            f"only Tensors of floating point dtype can require gradients: {subject} holds {data.dtype.type.__name__}, not "
            "numbers. Make an array of numbers first: np.asarray(x, dtype=float)."
        )
    number = "" if shape_of(data) else str(data)
    if number.lstrip("-").isdigit():
        fix = f"{number}. instead of {number}"
    return RuntimeError(
        f"only Tensors of floating point dtype can require gradients: {subject} has dtype {data.dtype}, and integers have no "
        f"derivatives. Pass {fix}."
    )


def func_result_type(api: str, result: object) -> RuntimeError:
    if result is None:
        why = "Is a `return` missing in the function?"
    elif isinstance(result, (list, tuple, dict)):
        why = "The result must be one number: for further results, return (number, others) and pass has_aux=True."
    elif hasattr(getattr(result, "magnitude", None), "requires_grad"):
        why = "It wraps a tensor: return its .magnitude."
    elif hasattr(getattr(result, "data", None), "requires_grad"):
        why = "It wraps a tensor: return its .data."
    else:
        why = (
            "Either the result does not depend on the argument, or the path to it was cut: float(), .item() and the math "
            "module return plain numbers. Use only NumPy or chainrule functions on the argument."
        )
    return RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(result)}. {why}")


def check_function(api: str, func: object) -> None:
    """Raise if a function transformation is given an object that is not callable."""
    if callable(func):
        return
    kind = type(func).__name__
    text = f"'{kind}' object is not callable: {api} takes a function, so pass f, not its result f(x)."
    if hasattr(func, "_edge"):
        y = name_of(func) or "y"
        text += (
            f"\n{y} is already computed: chainrule.jacobian({y}, x) is the whole Jacobian ∂{y}/∂x, and "
            f"chainrule.autograd.grad({y}, x) is the gradient, if {y} is a scalar."
        )
    raise TypeError(text)


def functional_type(function: str, what: str, value: object, index: int | None = None) -> TypeError:
    where = f"the value at index {index}" if index is not None else f"the given {what}"
    return TypeError(
        f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but {where} has type "
        f"{type(value)}."
    )


def functional_v_count(want: int, got: int) -> RuntimeError:
    return RuntimeError(
        f"v is a tuple of invalid length: should be {want} but got {got}: pass one tensor for each factor."
        if want != 1
        else "The given v should contain a single Tensor."
    )


def functional_v_size(index: int | None, want: object, got: object) -> RuntimeError:
    which = "v" if index is None else f"Entry {index} in v"
    return RuntimeError(f"{which} has invalid size: should be {torch_size(want)} but got {torch_size(got)}.")


def functional_output_cut(index: int, output: Any) -> RuntimeError:
    cut = f"\n{output._cut}." if output._cut is not None else ""
    return RuntimeError(
        f"Output {index} of the user-provided function does not require gradients. The outputs must be computed in a "
        f"differentiable manner from the input when running in strict mode.{cut}"
    )


def functional_scalar(function: str, several: bool) -> RuntimeError:
    if several:
        return RuntimeError(f"The function given to {function} should return a single Tensor, not a tuple")
    return RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")


def leaf_in_place(tensor: object, op: str) -> RuntimeError:
    x, where = name_of(tensor) or "x", user_line()
    fix = out_of_place(where.text if where is not None else "").rstrip(".")
    other = f"{fix[0].lower()}{fix[1:]}, or work" if fix else "work"
    return RuntimeError(
        "a leaf Variable that requires grad is being used in an in-place operation.\n"
        f"{writer(op, where)} would overwrite {x}, a leaf that requires grad.\n"
        f"To update a parameter: `with no_grad(): {x} -= lr * {x}.grad`. Otherwise: {other} on "
        f"{x}.clone()."
    )


def leaf_view_in_place(op: str) -> RuntimeError:
    where = user_line()
    fix = out_of_place(where.text if where is not None else "") or "Modify a clone()."
    return RuntimeError(
        "a view of a leaf Variable that requires grad is being used in an in-place operation.\n"
        f"{writer(op, where)} would overwrite part of a leaf. To update a parameter, write inside `with no_grad():`. To "
        f"compute with the changed value: {fix[0].lower()}{fix[1:]}"
    )


_FORBIDDEN_VIEWS = {
    "no_grad": (
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use "
        "case is ambiguous and error-prone, it is forbidden.",
        "Make the view outside no_grad if {op} must be recorded, or write inside no_grad if not; or modify a clone().",
    ),
    "inference": (
        "A view was created in inference mode and is being modified inplace in normal mode. Given that this use case is "
        "ambiguous and error-prone, it is forbidden.",
        "Make the view outside inference_mode if {op} must be recorded, or write inside it if not; or modify a clone().",
    ),
    "function": (
        "Output of a custom Function is a view and is being modified inplace. This view was created inside a custom "
        "Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would override the "
        "custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden.",
        "Return a clone() from forward, or write {op} out of place.",
    ),
}


def view_in_place(origin: Any, op: str) -> RuntimeError:
    if isinstance(origin, str):
        what, advice = _FORBIDDEN_VIEWS[origin]
    else:
        what = (
            f"Output {origin[0]} of {origin[1]} is a view and is being modified inplace. This view is the output of a "
            "function that returns multiple views. Such functions do not allow the output views to be modified inplace."
        )
        advice = "Write {op} out of place, or index the tensor (x[i], x[a:b]): such views can be written to."
    return RuntimeError(f"{what}\n{advice.format(op=op)}")


def out_requires_grad(prim: Any) -> RuntimeError:
    name = f"{prim.name}(): " if prim is not None else ""
    return RuntimeError(
        f"{name}functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad. Use the returned value instead of out=, or work inside no_grad()."
    )
