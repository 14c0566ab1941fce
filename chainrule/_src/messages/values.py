"""Messages about conversions: tensors to plain arrays, numbers and indices, and other values to tensors."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from typing import Any

import numpy as np

from chainrule._src.messages.libraries import instead_of_arrays, taken_by_library
from chainrule._src.messages.message_parts import shape_of
from chainrule._src.messages.names import name_of
from chainrule._src.messages.reading import STORES, argument, expression, out_of_place, running, with_arrays
from chainrule._src.messages.source_locations import (
    PACKAGE,
    bracketed,
    calling_frame,
    program_line,
    user_frame,
    user_line,
    warn,
)
from chainrule._src.messages.transformations import dynamic_shape, escaped_tensor

_NOT_OF_OBJECTS = re.compile(
    r"dtype\('O'\)|not supported for the input types|[Oo]bject arrays are not|'object' not supported|no callable \w+ method"
)


def noted(error: BaseException) -> None:
    """Add a note with the likely cause to an error of NumPy: an array of objects, or a write that chainrule refused."""
    if not isinstance(error, (TypeError, AttributeError, ValueError, NotImplementedError)):
        return
    cause = error.__cause__
    if isinstance(error, ValueError) and cause is not None and _raised_by(cause, "chainrule."):
        note = str(cause)
    elif _NOT_OF_OBJECTS.search(str(error)) or (isinstance(error, AttributeError) and _raised_by(error, "numpy.")):
        note = (
            "np.array([...]) of values that carry a derivative is an array of objects, which NumPy's compiled functions do not "
            "accept. Write np.array([...], like=x), where x is an argument of your function, or chainrule.Array([...]), or "
            "np.stack([...])."
        )
    else:
        return
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _raised_by(error: BaseException, library: str) -> bool:
    """Return whether the innermost frame of an error's traceback is in a module of ``library``."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and str(last.tb_frame.f_globals.get("__name__", "")).startswith(library)


def written_to_buffer(array: object) -> str:
    """Return the message for ``buffer[i] = array`` into a plain NumPy array; '' if no item assignment is running."""
    frame = user_frame()
    now = running(frame)
    if frame is None or now.instruction not in STORES:
        return ""
    buffer = now.text.split("[")[0].strip() or "buf"
    value = frame.f_locals.get(buffer, frame.f_globals.get(buffer))
    shape = value.shape if isinstance(value, np.ndarray) else "shape"
    return (
        f"`{now.text or 'buf[i] = x'}` ({program_line()}) is in a plain NumPy array, which holds numbers only: the "
        "derivative of the written value would be lost.\n"
        f"Use {buffer} = np.zeros({shape}, like=x), where x is an argument of the function, as the buffer. Or collect "
        "the parts in a list, and np.stack() them."
    )


def array_to_numpy(array: Any, what: str = "np.asarray()", has_derivative: bool = True) -> RuntimeError:
    taken = taken_by_library(array)
    if has_derivative and not taken and (written := written_to_buffer(array)):
        return RuntimeError(written)
    line = f" ({where})" if (where := program_line()) is not None else ""
    text = (
        f"{what} would drop the derivative of an array of shape {array.shape}{line}: a plain NumPy array cannot carry it.\n"
        if has_derivative
        else f"{what} of an array of shape {array.shape}{line} inside vmap, where it represents all examples: it cannot be "
        "converted to a single plain array.\n"
    )
    if taken:
        x, instead = taken
        return RuntimeError(text + instead.replace(f"{x}.detach().numpy()", f"np.asarray({x}.detach())"))
    return RuntimeError(
        f"{text}Functions of numpy and scipy.special keep derivatives. To combine values: np.stack([...]), "
        "np.concatenate([...]) or np.array([...], like=x), or write them into out = np.zeros_like(x). "
        "For a function without a rule: chainrule.primitive. For plain values, without a derivative: np.asarray(x.detach())."
    )


def dlpack_of_derivative(tensor: object) -> BufferError:
    x = name_of(tensor) or "tensor"
    return BufferError(
        "Can't export tensors that require gradient, use tensor.detach()\n"
        f"The memory of a tensor carries no derivative, so the path would be cut silently. To cut it: "
        f"{x}.detach(), as in np.from_dlpack({x}.detach())."
    )


def array_index(item: object) -> IndexError:
    kind = getattr(item, "dtype", None)
    if kind is not None:
        return IndexError(f"arrays used as indices must be of integer (or boolean) type, not {kind}")
    return IndexError(
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
        f"indices, not {type(item).__name__}"
    )


def array_of_objects(array: Any, expected: str = "expected arrays of numbers, got") -> TypeError:
    kinds = ", ".join(sorted({type(item).__name__ for item in array.flat}))
    return TypeError(
        f"{expected} an array of objects ({kinds}) of shape {array.shape}: convert it to numbers first, for example with "
        ".astype(float)"
    )


def array_setter(name: str) -> AttributeError:
    fix = {"shape": "x = x.reshape(shape)", "dtype": "x = x.astype(dtype)"}.get(name, f"make x again with that {name}")
    return AttributeError(f"x.{name} cannot be assigned to: {fix}")


def tensor_of_tensors(tensor: object) -> RuntimeError:
    name, parts = name_of(tensor), argument()
    return RuntimeError(
        "tensor(...) of tensors that require grad would copy their numbers and cut the graph"
        f"{f' (it contains {name})' if name else ''}: gradients would not flow back to them.\n"
        f"Use stack({parts if parts.startswith('[') and '[' not in parts[1:] else '[a, b]'}) (or cat) to keep them connected; "
        "to make a copy, detach() them first."
    )


def warn_numbers_copied(function: str, tensor: object) -> None:
    name = name_of(tensor)
    warn(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        "Consider using tensor.detach() first.\n"
        f"torch.{function}([...]) copies the number of {name or 'a tensor that requires grad'}: no gradient flows back. Use "
        "torch.stack([...]) to keep the graph."
    )


def ragged(data: object) -> ValueError:
    return ValueError(
        "expected sequences of equal length: the nested lists do not form a rectangle "
        f"(they have the lengths {sorted({len(d) for d in data if hasattr(d, '__len__')})[:6]})"
        if isinstance(data, (list, tuple)) and any(hasattr(d, "__len__") for d in data)
        else f"could not make an array of {type(data).__name__}"
    )


def special_array(kind: type) -> TypeError:
    if kind.__name__ == "matrix":
        return TypeError(
            "an operation of np.matrix and tensor: for np.matrix, * is a matrix product and rows are matrices, unlike for "
            "tensors. Convert it first with np.asarray(m), and write @ for products."
        )
    return TypeError(
        "an operation of masked array and tensor: tensors have no masks, so the masked numbers would be used. Fill them "
        "first, as in m.filled(0), or select with np.where(m.mask, other, x)."
    )


def not_numbers(data: object, dtype: object) -> Exception:
    kinds = (
        "The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, "
        "uint32, uint16, uint8, and bool."
    )
    if hasattr(data, "dtype"):
        return TypeError(
            f"can't convert {type(data).__module__}.{type(data).__name__} of type {dtype} to a tensor. {kinds}"
        )
    if isinstance(data, (str, bytes)):
        return TypeError(f"new(): invalid data type '{type(data).__name__}'. {kinds}")
    item = data
    while isinstance(item, (list, tuple)) and item:
        item = next((i for i in item if not isinstance(i, (int, float, complex)) or abs(i) >= 2**63), item[0])
    if isinstance(item, str):
        return ValueError(f"too many dimensions 'str': the list contains {item!r}. {kinds}")
    if isinstance(item, int):
        return ValueError(f"Overflow when unpacking long long: {item} does not fit into 64 bits; write it as a float")
    return RuntimeError(f"Could not infer dtype of {type(item).__name__}. {kinds}")


def wrong_operand(function: str, position: int, value: object, argument: str = "") -> TypeError:
    argument = argument or (("input", "other")[position] if position < 2 else f"argument {position + 1}")
    what = type(value).__name__
    if what == "Tensor" or hasattr(value, "__dlpack__"):
        what = f"{type(value).__module__.partition('.')[0]}.{what} (chainrule.from_dlpack(x) converts it)"
    if isinstance(value, (np.ndarray, np.generic)):
        what = f"an array of dtype {value.dtype}"
    how = ": wrap it in tensor(...)" if isinstance(value, (list, tuple, int, float, np.ndarray)) else ""
    return TypeError(f"{function}(): argument '{argument}' (position {position + 1}) must be Tensor, not {what}{how}")


def not_a_tensor(function: str, argument: str, value: Any) -> TypeError:
    """Return the error for an output or input of a derivative that is not a tensor."""
    how = ""
    if isinstance(value, (int, float, complex, np.generic, np.ndarray)):
        how = (
            ". A plain number or array has no recorded history: make x = tensor(..., requires_grad=True) and compute with x, "
            "or write a function and call chainrule.grad(f)(x)"
        )
    elif callable(value):
        how = ". Pass its result, f(x), or call chainrule.grad(f)(x) for the gradient of a function"
    what = type(value).__name__
    return TypeError(f"{function}(): argument '{argument}' must be a Tensor or a sequence of Tensors, not {what}{how}")


def no_tensor(function: Any, args: tuple[object, ...], kwargs: Any) -> TypeError | None:
    """Return the error for the first argument that is annotated as a tensor and is not one; None if all are."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return None
    position = 0
    for position, (name, declared) in enumerate(inspect.signature(function).parameters.items()):
        kind = str(declared.annotation)
        if name not in given or "Tensor" not in kind:
            continue
        for i, value in enumerate(given[name] if declared.kind is declared.VAR_POSITIONAL else (given[name],)):
            if not hasattr(value, "_edge") and not (value is None and "None" in kind):
                return wrong_operand(function.__name__.lstrip("_"), position + i, value, name)
    return None


def no_rule_for_numpy(name: str, inputs: tuple[object, ...]) -> TypeError:
    tensors = [x for x in inputs if hasattr(x, "_edge")]
    names = list(dict.fromkeys(filter(None, map(name_of, tensors))))
    of = f" ({', '.join(names)})" if names else ""
    module = "np." if hasattr(np, name.split(".")[0]) else "np.linalg." if hasattr(np.linalg, name) else ""
    call = with_arrays() or f"{module}{name}(np.asarray({names[0] if names else 'x'}.detach()), ...)"
    if not all(isinstance(getattr(x, "_raw", None), np.ndarray) for x in tensors):
        call = "call it outside of the transformation, on plain arrays"
    return TypeError(
        f"{module}{name} has no rule for tensors{of}. If you need no gradient through it: {call}.\n"
        "If you need a gradient: write it with functions that have a rule, or define its rule with chainrule.primitive."
    )


def written_into_plain_array(op: str, target: object) -> RuntimeError:
    """Return the error for an in-place operation that would write values with derivatives into a plain array."""
    written = written_to_buffer(target) if op == "__setitem__" else ""
    return RuntimeError(written) if written else out_is_plain_array(op.strip("_"), target)


def out_is_plain_array(name: str, target: object) -> RuntimeError:
    taken = taken_by_library(target)  # np.full_like writes into its own array
    if taken:
        return RuntimeError(f"a plain array cannot carry the gradient of a tensor. {taken[1]}")
    buffer = name_of(target)
    tensor = f"{buffer} = chainrule.tensor({buffer})" if buffer else "chainrule.tensor(...)"
    anew = out_of_place(running(user_frame()).text)
    return RuntimeError(
        f"np.{name} would write a tensor into {buffer or 'the buffer'}, a plain NumPy array of shape {shape_of(target)}, "
        f"which cannot carry gradients. {anew + ' Or convert' if anew else 'Convert'} it to a tensor first: {tensor}."
    )


def inside_transformation(tensor: Any) -> RuntimeError:
    kind = type(tensor._raw).__name__
    inside = {"Batched": "vmap", "Dual": "jvp"}.get(kind, kind)
    level = getattr(tensor._raw, "level", 0)
    if not getattr(level, "alive", True):
        return escaped_tensor(level, ".numpy()")
    return RuntimeError(
        f"Cannot access data pointer of Tensor that doesn't have storage{bracketed(user_line())}: this tensor lives "
        f"inside {inside} and has no single NumPy array there, so .numpy(), np.asarray() and other code that needs "
        "concrete numbers cannot work on it. "
        + (
            instead_of_arrays(tensor, "tensor", detach=False)
            or "Compute only with tensors and return the value from the function: outside it is an ordinary tensor."
        )
    )


def data_dependent(tensor: Any, what: str) -> RuntimeError:
    level = getattr(tensor._raw, "level", 0)
    if not getattr(level, "alive", True):
        return escaped_tensor(level, what)
    at = bracketed(user_line())
    many = "inside vmap the value differs between examples, so it is not a single number."
    if what == "bool()":
        return RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow"
            f"{at}: {many} Use torch.where(condition, a, b), which computes both branches and selects."
        )
    if what == "the truth of an array":
        return RuntimeError(
            f"vmap: {what} in if, while, and, or, min() or max(){at}: {many} Use np.where(condition, a, b), np.minimum or "
            "np.maximum, which compute both branches and select; give a loop a fixed number of iterations."
        )
    if what.endswith("of an array"):
        return RuntimeError(
            f"vmap: {what}{at}: {many} Keep it an array (a 0-d array works like a number in arithmetic, as an index and in "
            "np.take_along_axis), or return it and convert it outside."
        )
    if what.startswith(("a boolean mask", "nonzero", "unique")):
        return dynamic_shape(what, "Use torch.where(mask, x, 0.) or multiply by the mask, which keep the size.")
    return RuntimeError(
        f"vmap: It looks like you're calling .item() on a Tensor ({what}{at}): {many} Keep it a tensor (a 0-d tensor works "
        "like a number in arithmetic), or return it and convert it outside."
    )


def integer_requires_grad(tensor: Any) -> RuntimeError:
    x = name_of(tensor)
    few = isinstance(tensor._raw, np.ndarray) and tensor._raw.size <= 4
    subject = x or (str(tensor._raw.tolist()) if few else "This tensor")
    fix = f"{x} = {x}.float()" if x.isidentifier() else "dtype=float32 (or .float())"
    return RuntimeError(
        "only Tensors of floating point and complex dtype can require gradients.\n"
        f"{subject} is {tensor.dtype}, and integers have no derivatives. Write 1. instead of 1, or "
        f"{fix} before setting requires_grad."
    )


def no_index(tensor: Any) -> TypeError:
    """Return the error for a tensor that Python converts to an integer: an index, or the factor in ``[1, 2] * t``."""
    x, value = name_of(tensor), expression()
    text = "only integer tensors of a single element can be converted to an index"
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        sides = [ast.unparse(side) for side in (value.left, value.right)]
        array = next((side for side in sides if side.startswith(("[", "("))), "the list")
        return TypeError(
            f"{text}: `*` with a tensor on one side and a sequence on the other. Convert the sequence: "
            f"tensor({array if len(array) <= 30 else '...'})."
        )
    fix = "" if tensor.numel() != 1 else f": int({x or 'x'}) rounds towards 0"
    return TypeError(f"{text}, not {x or 'a tensor'} of dtype {tensor.dtype} and shape {shape_of(tensor)}{fix}")


def no_grad_needed(tensor: Any, text: str) -> RuntimeError:
    why = f": {tensor._cut}" if tensor._cut is not None else ". Call requires_grad_() on the inputs first"
    return RuntimeError(f"{text}{why}")


def leaves_graph(tensor: object, what: str) -> None:
    """Warn that a tensor that requires grad is converted to a plain number; raise if it is assigned to an array's element.

    Printing the number, as in ``"%.2f" % x``, gives no warning.
    """
    caller = sys._getframe(4)  # the frame that calls float(x), which calls x.__float__
    now = running(caller) if not caller.f_code.co_filename.startswith(PACKAGE) else running(None)
    if now.instruction in STORES:
        raise stored_in_array(tensor, now.text)
    if now.instruction in ("BINARY_OP", "BINARY_MODULO"):
        return
    own = re.match(rf"{what}\((.+)\)$", now.text)  # the user wrote float(x[0])
    x = own[1] if own and len(own[1]) <= 30 else name_of(tensor) or "x"
    called = now.text if len(now.text) <= 40 and "(" in now.text else f"{what}({x})"
    takes = f"{called} is" if own else f"{called} uses {what}({x}),"
    taken = taken_by_library(tensor)
    function = re.match(r"math\.(\w+)\(", called)
    name = _NUMPY_NAMES.get(function[1], function[1]) if function else ""
    if function and hasattr(np, name):
        fix = f"np.{called[5:].replace(function[1], name, 1)} keeps the gradient"
    else:
        fix = f"use {x} itself in arithmetic and in np functions such as np.sin({x}), which keep the gradient"
    warn(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior. Consider using "
        "tensor.detach() first.\n"
        + (taken[1] if taken else f"{takes} a plain number that leaves the graph: {fix}.")
        + f" If you need only the number, write {x}.item()."
    )


#: functions of ``math`` that have another name in NumPy
_NUMPY_NAMES = {"pow": "power", "acos": "arccos", "asin": "arcsin", "atan": "arctan", "atan2": "arctan2",
                "acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh"}  # fmt: skip


def stored_in_array(tensor: object, target: str) -> RuntimeError:
    """Return the error for ``buffer[i] = t`` with a plain array as the buffer."""
    buffer = target.split("[")[0].strip() or "the buffer"
    return RuntimeError(
        "setting an array element with a tensor that requires grad.\n"
        f"`{target or buffer}` is in a plain NumPy array, which holds numbers only: the gradient of "
        f"{name_of(tensor) or 'the value'} would be lost.\n"
        f"Convert the buffer to a tensor, {buffer} = chainrule.tensor({buffer}); or collect the parts in a list and stack() "
        "them."
    )


def numpy_requires_grad(tensor: object) -> RuntimeError:
    now = running(user_frame())
    taken = taken_by_library(tensor)
    x = taken[0] if taken else name_of(tensor) or "tensor"
    text = (
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.\n"
        f"A plain array cannot carry the gradient of {x if x != 'tensor' else 'a tensor'}, so the path would be cut silently.\n"
    )
    if now.instruction in STORES and not taken:
        buffer = now.text.split("[")[0].strip()
        text += (
            f"`{now.text}` writes into a plain NumPy array: convert it first, {buffer} = chainrule.tensor({buffer}), or "
            "collect the parts in a list and stack() them."
        )
    elif "vectorize." in getattr(getattr(calling_frame(), "f_code", None), "co_qualname", ""):
        text += "np.vectorize calls the function with plain numbers: chainrule.func.vmap(f) calls it with tensors."
    else:
        text += _instead_of_numpy(tensor, x)
    return RuntimeError(text)


def _instead_of_numpy(tensor: object, x: str) -> str:
    return instead_of_arrays(tensor, x) or (
        f"To cut it: {x}.detach().numpy(). NumPy's own functions work on tensors and keep the gradient: "
        f"np.sin({x}), np.sum({x}, axis=0)."
    )


def warn_hooks_not_pickled(hooks: dict[int, object]) -> None:
    hook = next(iter(hooks.values()))
    warn(f"backward hook {hook!r} on tensor will not be serialized. Register it again on the loaded tensor.")


def numpy_has_tangent(tensor: object) -> RuntimeError:
    return RuntimeError(
        "Can't call numpy() on a dual Tensor: a plain array cannot carry its tangent, so the derivative would be lost "
        f"silently. {_instead_of_numpy(tensor, name_of(tensor) or 'tensor')}"
    )
