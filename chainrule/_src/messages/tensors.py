"""Messages about tensors and Arrays: their flags and copies, conversions, and writes in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule._src.messages.message_parts import dtype_word, shape_of
from chainrule._src.messages.names import name_of
from chainrule._src.messages.reading import out_of_place
from chainrule._src.messages.source_locations import bracketed, program_line, user_line, writer


def array_output_shape(op: str, shape: object, result: object) -> ValueError:
    return ValueError(
        f"non-broadcastable output operand with shape {shape} doesn't match the broadcast shape {result}: {op} "
        "cannot change the shape of its array; write x = x + ... to get a larger array"
    )


def array_output_dtype(op: str, dtype: object, result: Any) -> TypeError:
    return TypeError(
        f"Cannot cast ufunc output from {result!r} to {dtype!r} with casting rule 'same_kind' ({op}): convert "
        f"first, x = x.astype({result.name!r}), or write x = x + ..."
    )


def array_to_number(what: object, instead: object) -> TypeError:
    return TypeError(
        f"{what} of an array that carries a derivative{bracketed(program_line())} would silently drop the "
        "derivative.\n"
        f"{instead}NumPy's functions keep it: write np.sin(x) instead of math.sin(x). A plain array cannot store "
        "it: instead of `buf = np.zeros(n); buf[i] = x`, make the buffer with np.zeros_like(x), or collect the "
        "parts and np.stack() them. Comparisons need no change (`if x > 0:`). For a plain number: "
        "float(x.detach())."
    )


def array_leaf_in_place(op: str) -> RuntimeError:
    return RuntimeError(
        f"a leaf that requires grad is written in place: {op}{bracketed(user_line())} would overwrite the values "
        "whose gradient you asked for.\n"
        "Write y = x + ... instead of x += ..., or start with y = x.copy()."
    )


def array_read_only(op: str) -> ValueError:
    return ValueError(
        f"assignment destination is read-only: {op}{bracketed(user_line())} would write into a read-only array, or "
        "into a view that NumPy makes read-only.\n"
        "Write into a copy: y = x.copy()."
    )


def non_leaf_flag() -> RuntimeError:
    return RuntimeError(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
        "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
    )


def assigned_grad_shape(tensor: object, grad: object) -> RuntimeError:
    return RuntimeError(
        f"attempting to assign a gradient of size '{list(shape_of(grad))}' to a tensor of size "
        f"'{list(shape_of(tensor))}'. Please ensure that the gradient and the tensor are the same size"
    )


def assigned_grad_dtype(tensor: Any, grad: Any) -> RuntimeError:
    return RuntimeError(
        f"attempting to assign a gradient with dtype '{grad.dtype}' to a tensor with grad_dtype '{tensor.dtype}': "
        "the gradient must have its tensor's dtype, gradient.to(tensor.dtype)"
    )


def deepcopy_non_leaf(tensor: Any) -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, "
        f"inside transformations. This tensor is the output of {tensor.grad_fn.name()}: use t.clone() to stay in "
        "the graph."
    )


def copy_function(node: Any) -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, "
        f"and those whose graph can be copied. The graph of this tensor contains {node.name()}, a custom Function, "
        "whose context may hold any object. Deepcopy t.detach(), or use t.clone() to stay in the graph."
    )


def copy_packed(node: Any) -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, "
        f"and those whose graph can be copied. The graph of this tensor contains {node.name()}, whose saved values "
        "were packed by saved_tensors_hooks. Deepcopy t.detach(), or use t.clone() to stay in the graph."
    )


def copy_inside(node: Any) -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, "
        f"and those whose graph can be copied. The graph of this tensor contains {node.name()}, which was recorded "
        "inside a transformation. Deepcopy t.detach(), or use t.clone() to stay in the graph."
    )


def copy_overwritten(node: Any, written: Any) -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, "
        f"and those whose graph can be copied. The graph of this tensor contains {node.name()}, and one of the "
        f"values it needs has been modified by an inplace operation ({written.last[0]}, {written.last[1]}). "
        "Deepcopy t.detach(), or use t.clone() to stay in the graph."
    )


def pickle_non_leaf(tensor: Any) -> RuntimeError:
    return RuntimeError(
        f"Can't pickle a tensor that is the output of {tensor.grad_fn.name()}: its graph would be lost. Pickle "
        "t.detach(), and compute it again after loading if you need gradients. (copy.deepcopy copies the graph, "
        "too.)"
    )


def inference_in_place(op: str) -> RuntimeError:
    return RuntimeError(
        "Inplace update to inference tensor outside InferenceMode is not allowed.\n"
        f"{op} would overwrite a tensor that was made in inference_mode: modify a clone(), or write inside "
        "inference_mode."
    )


def inference_saved(function: str) -> RuntimeError:
    return RuntimeError(
        "Inference tensors cannot be saved for backward.\n"
        f"{function} would save an operand that was made in inference_mode: use its clone(), or make it inside "
        "no_grad instead."
    )


def inference_requires_grad() -> RuntimeError:
    return RuntimeError(
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.\n"
        "The tensor was made in inference_mode: call requires_grad_() on its clone()."
    )


def inference_version() -> RuntimeError:
    return RuntimeError("Inference tensors do not track version counter.")


def detach_view() -> RuntimeError:
    return RuntimeError(
        "Can't detach views in-place. Use detach() instead.\n"
        "A view shares its history with its base; detach() returns a tensor that shares the memory and has no "
        "history."
    )


def data_dtype(dtype: object) -> RuntimeError:
    return RuntimeError(
        "data set to a tensor that requires gradients must be floating point or complex dtype\n"
        f"The new data is {dtype}: convert it with .float() first."
    )


def data_of_value(old: Any, new: Any) -> RuntimeError:
    return RuntimeError(
        f"x.data = y: a transformation differentiates x, whose derivative has shape {shape_of(old)} and dtype "
        f"{old.dtype}; the new data has shape {shape_of(new)} and dtype {new.dtype}. Make a new tensor: x = "
        "y.detach()."
    )


def no_resize(name: str, tensor: object, shape: object) -> RuntimeError:
    return RuntimeError(
        f"{name}(): NumPy owns the memory of a tensor, which cannot be resized while views share it: shape "
        f"{shape_of(tensor)} has another number of elements than {shape}. Assign `x.data = new`, or make a new "
        "tensor."
    )


def pickle_node(node: Any) -> TypeError:
    return TypeError(
        f"cannot pickle {node.name()!r} object: graphs cannot be pickled; copy.deepcopy of a tensor copies its graph"
    )


def variable_data(data: object) -> TypeError:
    return TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")


def shuffled_in_place(shape: Iterable[object]) -> TypeError:
    return TypeError(
        f"shuffle(){bracketed(user_line())} swaps x[i] and x[j] one after the other. Rows of a tensor or Array of "
        f"shape {tuple(shape)} are views of its memory, so some rows would be lost and others duplicated.\n"
        "Write x = x[rng.permutation(len(x))], or x = x[torch.randperm(len(x))]: gradients flow through it."
    )


def expanded_in_place(op: str) -> RuntimeError:
    return RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        f"{op} got an expanded tensor, or overlapping windows: clone() it first."
    )


def read_only(op: str) -> RuntimeError:
    return RuntimeError(f"{op}: the array behind this tensor is read-only; clone() the tensor first")


def in_place_shape(op: str, want: Iterable[object], got: Iterable[object]) -> RuntimeError:
    return RuntimeError(
        f"output with shape {list(want)} doesn't match the broadcast shape {list(got)}: {op} cannot change a "
        "tensor's shape"
    )


def in_place_dtype(op: str, got: object, want: object) -> RuntimeError:
    return RuntimeError(
        f"result type {got} can't be cast to the desired output type {want}: {op} cannot change a tensor's dtype"
    )


def no_gradient_in_dtype(op: str, dtype: Any) -> RuntimeError:
    return RuntimeError(
        f"Autograd not support dtype: {dtype_word(dtype)}\n"
        f"{op}() writes values that require grad into a tensor of {dtype_word(dtype)}, which has no gradient. "
        "Convert the tensor with .float() or .double(), or write values.detach()."
    )


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
