"""Tensors and their flags: leaves, ``.grad``, ``.data``, detaching, inference mode, copies."""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import re
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from chainrule.errors.libraries import instead_of_arrays, taken_by_library
from chainrule.errors.names import name_of, variables
from chainrule.errors.places import PACKAGE, calling_frame, raising_frame, user_frame, warn
from chainrule.errors.reading import expression, receiver_of_attribute, running
from chainrule.errors.words import UnknownName, shape_of

# -- tensors and their flags --------------------------------------------------------------------------------------------


def integer_requires_grad(tensor: Any) -> RuntimeError:
    x = name_of(tensor)
    few = isinstance(tensor._raw, np.ndarray) and tensor._raw.size <= 4
    subject = x or (str(tensor._raw.tolist()) if few else "This one")
    fix = f"{x} = {x}.float()" if x.isidentifier() else "dtype=float32 (or .float())"
    return RuntimeError(
        "only Tensors of floating point and complex dtype can require gradients.\n"
        f"{subject} is {tensor.dtype}, and an integer cannot change by a little. Write 1. instead of 1, or "
        f"{fix} before asking for gradients."
    )


def non_leaf_flag() -> RuntimeError:
    return RuntimeError(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
        "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
    )


def no_index(tensor: Any) -> TypeError:
    """A tensor stands where Python wants an integer, or beside a list, which Python would repeat."""
    x, value = name_of(tensor), expression()
    text = "only integer tensors of a single element can be converted to an index"
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        sides = [ast.unparse(side) for side in (value.left, value.right)]
        array = next((side for side in sides if side.startswith(("[", "("))), "the list")
        return TypeError(
            f"{text}: `*` with a tensor on one side and a sequence on the other. Make the sequence a tensor: "
            f"tensor({array if len(array) <= 30 else '...'})."
        )
    fix = "" if tensor.numel() != 1 else f": int({x or 'x'}) rounds towards 0"
    return TypeError(f"{text}, not {x or 'a tensor'} of dtype {tensor.dtype} and shape {shape_of(tensor)}{fix}")


def no_grad_needed(tensor: Any, text: str) -> RuntimeError:
    why = f": {tensor._cut}" if tensor._cut is not None else ". Call requires_grad_() on the inputs first"
    return RuntimeError(f"{text}{why}")


def leaves_graph(tensor: Any, what: str) -> None:
    """A tensor that requires grad becomes a plain number: warn, or raise where it is lost in an array's element.

    Nothing is said where the number is printed, as in ``"%.2f" % x``.
    """
    caller = sys._getframe(4)  # who called float(x), which is x.__float__
    now = running(caller) if not caller.f_code.co_filename.startswith(PACKAGE) else running(None)
    if now.instruction == "STORE_SUBSCR":
        raise stored_in_array(tensor, now.text)
    if now.instruction in ("BINARY_OP", "BINARY_MODULO"):
        return
    own = re.match(rf"{what}\((.+)\)$", now.text)  # the user's own float(x[0])
    x = own[1] if own and len(own[1]) <= 30 else name_of(tensor) or "x"
    called = now.text if len(now.text) <= 40 and "(" in now.text else f"{what}({x})"
    takes = f"{called} is" if own else f"{called} takes {what}({x}),"
    taken = taken_by_library(tensor)
    function = re.match(r"math\.(\w+)\(", called)
    if function and hasattr(np, _NUMPY_NAMES.get(function[1], function[1])):
        fix = f"np.{called[5:].replace(function[1], _NUMPY_NAMES.get(function[1], function[1]), 1)} keeps the gradient"
    else:
        fix = f"{x} itself works in arithmetic and in np functions such as np.sin({x}), which keep the gradient"
    warn(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior. Consider using "
        "tensor.detach() first.\n"
        + (taken[1] if taken else f"{takes} a plain number that leaves the graph: {fix}.")
        + f" Where only the number is wanted, write {x}.item().",
    )


#: what NumPy calls functions of ``math``
_NUMPY_NAMES = {"pow": "power", "acos": "arccos", "asin": "arcsin", "atan": "arctan", "atan2": "arctan2",
                "acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh"}  # fmt: skip


def stored_in_array(tensor: Any, target: str) -> RuntimeError:
    """``buffer[i] = t`` with a plain array for a buffer."""
    buffer = target.split("[")[0].strip() or "the buffer"
    return RuntimeError(
        "setting an array element with a tensor that requires grad.\n"
        f"`{target or buffer}` belongs to a plain NumPy array, which holds numbers only: the gradient of "
        f"{name_of(tensor) or 'the value'} would be lost.\n"
        f"Make {buffer} a tensor, {buffer} = chainrule.tensor({buffer}), which may be written into; or collect the parts in "
        "a list and stack() them."
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
    now = running(user_frame())
    taken = taken_by_library(tensor)
    x = taken[0] if taken else name_of(tensor) or "tensor"
    text = (
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.\n"
        f"A plain array cannot carry the gradient of {x if x != 'tensor' else 'a tensor'}, so the path would be cut silently.\n"
    )
    if now.instruction == "STORE_SUBSCR":
        buffer = now.text.split("[")[0].strip()
        text += (
            f"`{now.text}` writes into a plain NumPy array: make it a tensor first, {buffer} = chainrule.tensor({buffer}), or "
            "collect the parts in a list and stack() them."
        )
    elif "vectorize." in getattr(getattr(calling_frame(), "f_code", None), "co_qualname", ""):
        text += "np.vectorize calls the function with plain numbers: chainrule.func.vmap(f) calls it with tensors."
    else:
        text += instead_of_arrays(tensor, x) or (
            f"Where that is what you want: {x}.detach().numpy(). NumPy's own functions work on tensors and keep it: "
            f"np.sin({x}), np.sum({x}, axis=0)."
        )
    return RuntimeError(text)


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
    warn(
        f"backward hook {hook!r} on tensor will not be serialized. Register it again on the tensor that is loaded.",
    )


def no_attribute(tensor: Any, name: str) -> AttributeError:
    return UnknownName(f"'Tensor' object has no attribute {name!r}", functools.partial(_instead, tensor, name))


def _instead(tensor: Any, name: str, error: BaseException) -> str:
    """What to use where a tensor lacks an attribute, in words that follow what it lacks."""
    if name not in _METHODS and not callable(getattr(np.ndarray, name, None)):
        close = difflib.get_close_matches(name, [n for n in dir(type(tensor)) if not n.startswith("_")], 1, 0.7)
        return f". Did you mean {close[0]!r}?" if close else ""
    frame, at = raising_frame(error)
    x = receiver_of_attribute(name, frame, at) or next((n for n, value, _ in variables(frame) if value is tensor), "x")
    return (
        f": {_METHODS[name].format(x=x)}."
        if name in _METHODS
        else f". An array has it: {x}.detach().numpy().{name}(...)"
    )


#: what to write for names that arrays, or modules of PyTorch, have
_METHODS = {
    "copy": "{x}.clone() keeps the gradient, {x}.detach().clone() does not",
    "fill": "{x}.fill_(value) writes; full_like({x}, value) makes a new tensor",
    "flat": "{x}.flatten() is a tensor",
    "conjugate": "it is {x}.conj()",
    "compress": "use a mask, {x}[mask]",
    "choose": "np.choose({x}, choices)",
    "searchsorted": "np.searchsorted({x}, values)",
    "base": "it is _base",
    "strides": "{x}.stride() counts elements, as in PyTorch",
    "zero_grad": "{x}.grad = None",
    "apply_": "{x}.copy_(f({x})), with a function of tensors",
    "map_": "{x}.copy_(f({x}, y)), with a function of tensors",
    "storage": "its memory is that of {x}.detach().numpy()",
    "untyped_storage": "its memory is that of {x}.detach().numpy()",
    "share_memory_": "multiprocessing.shared_memory gives an array's buffer; from_numpy shares it",
    "pin_memory": "everything is on the CPU: leave it out",
    "bfloat16": "NumPy has no such numbers: {x}.float()",
}


def name_hint(name: str, known: Iterable[str], module: str) -> str:
    """What to use where a module lacks a name, in words that follow what it lacks."""
    instead = _ELSEWHERE.get(name) or _ELSEWHERE.get(module) or _home(name) or _layer(name, module)
    close = difflib.get_close_matches(name, [n for n in known if not n.startswith("_")], 1, 0.7)
    return f": {instead}." if instead else f". Did you mean {close[0]!r}?" if close else ""


def _home(name: str) -> str:
    """The module that has the name."""
    for module in ("nn.functional", "linalg", "special", "fft", "func", "autograd", "masked"):
        if name in importlib.import_module(f"chainrule.{module}").__all__:
            return f"it is {module}.{name}"
    return ""


def _layer(name: str, module: str) -> str:
    """For a class of a layer: the function of that name."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    known = importlib.import_module("chainrule.nn.functional").__all__
    of = next((n for n in (words, words.replace("_", ""), re.sub(r"\dd$", "", words)) if n in known), "")
    if not name[0].isupper() or (not of and module != "chainrule.nn"):
        return ""
    text = "layers with state are not built in. The functions are in nn.functional, and parameters are tensors of yours"
    return f"{text}: nn.functional.{of}" if of else text


#: what else to use, for names that PyTorch has and this package has not
_ELSEWHERE = {
    name: text
    for names, text in {
        "chainrule.cuda": "everything is computed on the CPU, so leave it out",
        "optim": "an update is one line, `with no_grad(): w -= lr * w.grad`; for scipy.optimize there is value_and_grad",
        "mps": "everything is computed on the CPU, so leave device= out",
        "checkpoint": "it is utils.checkpoint.checkpoint",
        "jacobian": "it is chainrule.jacobian(f, x), which picks jacrev or jacfwd by the sizes",
        "elementwise_grad": "vmap(func.grad(f)), or func.grad of the sum",
        "array": "it is tensor(data)",
        "ndarray": "the class is Tensor",
        "numpy": "NumPy's own functions take tensors: import numpy as np",
        "sparse sparse_coo_tensor sparse_csr_tensor": "there are dense arrays only",
        "distributions": "a density is a line of NumPy (docs/guide/from_autograd.md, Statistics); random has the samplers",
        "channels_last channels_last_3d": "arrays lie in row order, whatever their axes mean: leave memory_format out",
        "ldl_factor ldl_factor_ex ldl_solve": "for positive definite matrices there is linalg.cholesky, for others "
        "linalg.lu_factor",
        "geqrf": "it is linalg.qr",
        "symeig": "it is linalg.eigh",
        "svd_lowrank pca_lowrank lobpcg": "linalg.svd and linalg.eigh compute all of it",
        "range": "it is arange(start, end + 1), which ends before its end",
        "empty_strided": "as_strided shows memory in other steps",
        "set_num_threads get_num_threads": "NumPy's BLAS reads OPENBLAS_NUM_THREADS or OMP_NUM_THREADS when it loads",
        "benchmark": "take Python's timeit: nothing here runs on after a function has returned",
        "fractional_max_pool2d fractional_max_pool3d": "adaptive_max_pool2d(x, output_size) pools to any size, with regions "
        "that are not random",
        "ctc_loss": "a sum over paths is a loop of logaddexp; for labels that are aligned there is cross_entropy",
        "multi_head_attention_forward": "it is scaled_dot_product_attention of linear(x, w)",
        "lstm gru rnn_tanh rnn_relu LSTM GRU RNN": "a recurrent network is a loop over x.unbind(0)",
        "bfloat16 chalf complex32": "NumPy has no such numbers: take float32, or complex64",
        "autocast amp": "arithmetic is in the dtype of the tensors: x.half(), x.double()",
        "MaskedTensor": "the functions of masked take mask=",
        "data DataLoader": "an index is enough: `for i in range(0, len(x), n): batch = x[i:i + n]`",
        "init": "take randn(...) times a scale",
        "clip_grad_norm_ clip_grad_value_ utils": "take the norm of the gradients, and g.mul_(limit / norm)",
        "jit compile": "there is no compiler: call the function as it is",
        "functional_call": "there are no modules here: write the model as a function of its parameters (any nested "
        "container of them) and transform that",
        "stack_module_state": "there are no modules here: stack the parameters with "
        "chainrule.tree.tree_map(lambda *p: chainrule.stack(p), *trees) and vmap over them",
        "replace_all_batch_norm_modules_": "there are no modules here: call batch_norm with running_mean=None and "
        "running_var=None, which has no state",
        "functionalize": "it is not needed: functions that write in place can be transformed as they are",
    }.items()
    for name in names.split()
}


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


def no_resize(name: str, tensor: Any, shape: tuple[int, ...]) -> RuntimeError:
    return RuntimeError(
        f"{name}(): a tensor's memory belongs to NumPy and cannot be made longer or shorter under its views: shape "
        f"{shape_of(tensor)} has other elements than {shape}. Assign `x.data = new`, or make a new tensor."
    )
