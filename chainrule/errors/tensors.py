"""Tensors and their flags: leaves, ``.grad``, ``.data``, detaching, inference mode, copies."""

from __future__ import annotations

import difflib
import warnings
from typing import Any

from chainrule.errors.words import name_of, shape_of

# -- tensors and their flags --------------------------------------------------------------------------------------------


def integer_requires_grad(tensor: Any) -> RuntimeError:
    return RuntimeError(
        "only Tensors of floating point and complex dtype can require gradients.\n"
        f"This one is {tensor.dtype}: an integer cannot change by a little. Write 1. instead of 1, or give "
        "dtype=float32 (or .float()) before asking for gradients."
    )


def non_leaf_flag() -> RuntimeError:
    return RuntimeError(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
        "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
    )


def warn_non_leaf_grad(tensor: Any) -> None:
    name = name_of(tensor)
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
        "you access the leaf Tensor instead.\n"
        f"{name or 'This tensor'} is the output of {tensor.grad_fn.name()}, not a leaf: call retain_grad() on it before "
        "backward(), or use autograd.grad(L, it).",
        UserWarning,
        stacklevel=3,
    )


def no_grad_needed(tensor: Any, text: str) -> RuntimeError:
    why = f": {tensor._cut}" if tensor._cut is not None else ". Call requires_grad_() on the inputs first"
    return RuntimeError(f"{text}{why}")


def warn_leaves_graph(tensor: Any, what: str) -> None:
    name = name_of(tensor) or "the tensor"
    warnings.warn(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior. Consider using "
        f"tensor.detach() first.\n{what}({name}) is a plain number: no gradient flows back from it (math.sin(x) does this, "
        f"np.sin(x) keeps the path). Where a number is what you want, write {name}.item().",
        UserWarning,
        stacklevel=4,
    )


def assigned_grad_shape(tensor: Any, grad: Any) -> RuntimeError:
    return RuntimeError(
        f"assigned grad has data of a different size: the gradient has shape {shape_of(grad)}, the tensor {shape_of(tensor)}"
    )


def assigned_grad_dtype(tensor: Any, grad: Any) -> RuntimeError:
    return RuntimeError(
        f"assigned grad has data of a different type: the gradient is {grad.dtype}, the tensor {tensor.dtype}"
    )


def numpy_requires_grad(tensor: Any) -> RuntimeError:
    name = name_of(tensor) or "tensor"
    return RuntimeError(
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.\n"
        f"A plain array cannot carry the gradient of {name}, so the path would be cut silently. Where that is what you "
        f"want: {name}.detach().numpy(). NumPy's own functions work on tensors and keep it: np.sin({name}), "
        f"np.sum({name}, axis=0)."
    )


def deepcopy_non_leaf(tensor: Any) -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, inside "
        f"transformations. This one is the output of {tensor.grad_fn.name()}: use t.clone() to stay in the graph."
    )


def no_deepcopy(node: Any, why: str) -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, and those "
        f"whose graph can be copied. Behind this one is {node.name()}, {why}. Deepcopy t.detach(), or use t.clone() to stay "
        "in the graph."
    )


def copy_function(node: Any) -> RuntimeError:
    return no_deepcopy(node, "a Function of yours, whose context may hold anything")


def copy_packed(node: Any) -> RuntimeError:
    return no_deepcopy(node, "whose saved values were packed by saved_tensors_hooks")


def copy_inside(node: Any) -> RuntimeError:
    return no_deepcopy(node, "which was recorded inside a transformation")


def copy_overwritten(node: Any, written: Any) -> RuntimeError:
    op, where = written.last
    return no_deepcopy(node, f"one of the values it needs has been modified by an inplace operation ({op}, {where})")


def pickle_non_leaf(tensor: Any) -> RuntimeError:
    return RuntimeError(
        f"Can't pickle a tensor that is the output of {tensor.grad_fn.name()}: its graph would be lost. "
        "Pickle t.detach(), and compute it again after loading if you need gradients. (copy.deepcopy copies the graph, too.)"
    )


def pickle_node(node: Any) -> TypeError:
    return TypeError(
        f"cannot pickle {node.name()!r} object: graphs are not pickled, and are copied by copy.deepcopy of their tensors"
    )


def warn_hooks_not_pickled(hooks: dict[int, Any]) -> None:
    hook = next(iter(hooks.values()))
    warnings.warn(
        f"backward hook {hook!r} on tensor will not be serialized. Register it again on the tensor that is loaded.",
        UserWarning,
        stacklevel=3,
    )


def no_attribute(tensor: Any, name: str) -> AttributeError:
    close = difflib.get_close_matches(name, [n for n in dir(type(tensor)) if not n.startswith("_")], 1)
    hint = f". Did you mean {close[0]!r}?" if close else ""
    return AttributeError(f"'Tensor' object has no attribute {name!r}{hint}")


def no_such_name(name: str, known: list[str]) -> AttributeError:
    close = difflib.get_close_matches(name, known, 1)
    hint = f". Did you mean {close[0]!r}?" if close else ""
    return AttributeError(f"module 'chainrule' has no attribute {name!r}{hint}")


# -- inference mode, data and detach ------------------------------------------------------------------------------------


def inference_in_place(op: str) -> RuntimeError:
    return RuntimeError(
        f"Inplace update to inference tensor outside InferenceMode is not allowed.\n{op} would overwrite a tensor that was "
        "made in inference_mode: change a clone(), or write inside inference_mode."
    )


def inference_saved(function: str) -> RuntimeError:
    return RuntimeError(
        f"Inference tensors cannot be saved for backward.\n{function} would keep an operand that was made in "
        "inference_mode: use its clone(), or make it inside no_grad instead."
    )


def inference_requires_grad() -> RuntimeError:
    return RuntimeError(
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.\n"
        "It was made in inference_mode: ask for the gradient of its clone()."
    )


def inference_version() -> RuntimeError:
    return RuntimeError("Inference tensors do not track version counter.")


def detach_view() -> RuntimeError:
    return RuntimeError(
        "Can't detach views in-place. Use detach() instead.\nA view shares its history with its base; detach() gives a "
        "tensor of the same memory without one."
    )


def data_dtype(dtype: Any) -> RuntimeError:
    return RuntimeError(
        "data set to a tensor that requires gradients must be floating point or complex dtype\n"
        f"The new data is {dtype}: convert it with .float() first."
    )


def no_resize(name: str) -> RuntimeError:
    return RuntimeError(
        f"{name}(): a tensor's memory belongs to NumPy and cannot be exchanged or made longer under its views. Assign "
        "`x.data = new` for other contents, reshape() for another shape, or make a new tensor."
    )
