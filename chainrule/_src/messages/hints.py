"""Messages about missing attributes, module names and keywords, with a replacement or a close match.

``errors`` exports the functions.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import re
from collections.abc import Iterable

import numpy as np

from chainrule._src.messages.message_parts import UnknownName
from chainrule._src.messages.names import variables
from chainrule._src.messages.reading import receiver_of_attribute
from chainrule._src.messages.source_locations import raising_frame

#: PyTorch's methods, and the NumPy expressions that replace them
_NUMPY_EQUIVALENTS = {
    "unsqueeze": "np.expand_dims(x, axis), or x[:, None]",
    "permute": "x.transpose(axes)",
    "view_as": "x.reshape(other.shape)",
    "expand": "np.broadcast_to(x, shape)",
    "cat": "np.concatenate([...])",
    "clone": "x.copy()",
    "numpy": "np.asarray(x.detach())",
    "t": "x.T",
    "dim": "x.ndim",
    "numel": "x.size",
    "add_": "x += ...",
    "sub_": "x -= ...",
    "mul_": "x *= ...",
    "div_": "x /= ...",
    "zero_": "x.fill(0)",
    "fill_": "x.fill(value)",
    "mm": "x @ y",
    "bmm": "x @ y",
    "matmul": "x @ y",
    "norm": "np.linalg.norm(x)",
    "float": "x.astype(np.float32)",
    "double": "x.astype(np.float64)",
    "to": "x.astype(dtype)",
}


def no_array_attribute(name: str) -> AttributeError:
    return UnknownName(f"'Array' object has no attribute {name!r}", lambda error: _numpy_hint(name))


def _numpy_hint(name: str) -> str:
    if name in _NUMPY_EQUIVALENTS:
        return f": an Array has NumPy's methods; write {_NUMPY_EQUIVALENTS[name]}. (x.tensor has PyTorch's methods.)"
    if callable(getattr(np, name, None)):
        return f": NumPy has a function, np.{name}(x, ...)."
    return _did_you_mean(name, np.ndarray) or ": an Array has the methods of a NumPy array; x.tensor has PyTorch's."


def _did_you_mean(name: str, kind: type) -> str:
    close = difflib.get_close_matches(name, [n for n in dir(kind) if not n.startswith("_")], 1, 0.7)
    return f". Did you mean {close[0]!r}?" if close else ""


def no_attribute(tensor: object, name: str) -> AttributeError:
    return UnknownName(f"'Tensor' object has no attribute {name!r}", functools.partial(_attribute_hint, tensor, name))


def _attribute_hint(tensor: object, name: str, error: BaseException) -> str:
    """Return the hint to append to "object has no attribute": the replacement for an attribute of a tensor."""
    if name not in _TENSOR_HINTS and not callable(getattr(np.ndarray, name, None)):
        return _did_you_mean(name, type(tensor))
    frame, at = raising_frame(error)
    x = receiver_of_attribute(name, frame, at) or next((n for n, value, _ in variables(frame) if value is tensor), "x")
    if name in _TENSOR_HINTS:
        return f": {_TENSOR_HINTS[name].format(x=x)}."
    return f". NumPy arrays have it: {x}.detach().numpy().{name}(...)"


_SPARSE = (
    "tensors are dense. With i, j = {x}.nonzero(as_tuple=True), chainrule.sparse.csr_array(({x}[i, j], (i, j)), {x}.shape) "
    "is sparse, and differentiable with respect to its entries"
)

#: replacements for methods of NumPy arrays, and of PyTorch's tensors and modules
_TENSOR_HINTS = {
    "copy": "{x}.clone() keeps the gradient, {x}.detach().clone() does not",
    "fill": "{x}.fill_(value) writes in place; full_like({x}, value) makes a new tensor",
    "flat": "{x}.flatten() is a tensor",
    "conjugate": "use {x}.conj()",
    "compress": "use a mask, {x}[mask]",
    "choose": "np.choose({x}, choices)",
    "searchsorted": "np.searchsorted({x}, values)",
    "base": "use {x}._base",
    "strides": "{x}.stride() counts elements, as in PyTorch",
    "zero_grad": "{x}.grad = None",
    "apply_": "{x}.copy_(f({x})), with a function of tensors",
    "map_": "{x}.copy_(f({x}, y)), with a function of tensors",
    "share_memory_": "multiprocessing.shared_memory allocates a buffer for an array; from_numpy shares it",
    "pin_memory": "tensors are in CPU memory: omit the call",
    "bfloat16": "NumPy has no bfloat16: use {x}.float()",
    "to_sparse": _SPARSE,
    "to_sparse_csr": _SPARSE,
    "to_sparse_csc": _SPARSE,
    "to_sparse_coo": _SPARSE,
}


def name_hint(name: str, known: Iterable[str], module: str) -> str:
    """Return the hint to append to "module has no attribute": the replacement for ``name``, or a close match."""
    known = [n for n in known if not n.startswith("_")]
    close = next((n for n in known if n.lower() == name.lower()), "")
    instead = (
        _MODULE_HINTS.get(name) or _MODULE_HINTS.get(module) or _module_hint(name) or (not close and _layer_hint(name))
    )
    close = close or next(iter(difflib.get_close_matches(name, known, 1, 0.7)), "")
    if not instead and not close and module == "chainrule.nn":
        instead = _LAYER_HINT
    return f": {instead}." if instead else f". Did you mean {close!r}?" if close else ""


def _public_names(module: str) -> list[str]:
    return importlib.import_module(f"chainrule.{module}").__all__


def _module_hint(name: str) -> str:
    """Return a hint that names the module that has ``name``."""
    for module in ("nn.functional", "linalg", "special", "fft", "func", "autograd", "masked"):
        if name in _public_names(module):
            return f"use {module}.{name}"
    return ""


#: keywords of JAX, HIPS autograd and NumPy, and their names in chainrule
_KEYWORDS = {
    "in_axes": "in_dims", "out_axes": "out_dims", "in_axis": "in_dims", "out_axis": "out_dims", "argnum": "argnums",
    "wrt": "argnums", "aux": "has_aux", "n_chunks": "chunk_size",
}  # fmt: skip
_KEYWORD_HINTS = {
    "axis_size": "vmap reads the size from the mapped arguments, so omit it",
    "axis_name": "chainrule has no named axes: apply np.sum to the result for a sum over the mapped axis",
    "spmd_axis_name": "chainrule runs on one device, so omit it",
    "allow_int": "integers have no derivatives: pass x.astype(float)",
    "holomorphic": "chainrule reads complex arguments from the dtype, so omit it",
    "reduce_axes": "chainrule has no named axes, so omit it",
}


def unknown_keyword(function: str, name: str, accepted: Iterable[str]) -> TypeError:
    text = f"{function}() got an unexpected keyword argument {name!r}"
    accepted = list(accepted)
    if name in _KEYWORD_HINTS:
        return TypeError(f"{text}: {_KEYWORD_HINTS[name]}")
    matches = [n for n in [_KEYWORDS.get(name), *difflib.get_close_matches(name, accepted, 1, 0.6)] if n in accepted]
    return TypeError(f"{text}. Did you mean {matches[0]!r}?" if matches else f"{text}: it takes {', '.join(accepted)}")


_LAYER_HINT = "write an nn.Module with its own parameters. The functions are in nn.functional"


def _layer_hint(name: str) -> str:
    """Return a hint for the name of a layer class: the function in ``nn.functional`` with that name."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    known = _public_names("nn.functional")
    function = next((n for n in (words, words.replace("_", ""), re.sub(r"\dd$", "", words)) if n in known), "")
    return f"{_LAYER_HINT}: nn.functional.{function}" if function and name[0].isupper() else ""


#: replacements for names that PyTorch (or JAX) has and chainrule does not
_MODULE_HINTS = {
    name: text.replace("{name}", name)
    for names, text in {
        "chainrule.cuda": "chainrule computes on the CPU, so omit it",
        "mps": "chainrule computes on the CPU, so omit device=",
        "checkpoint": "use utils.checkpoint.checkpoint",
        "jacobian": "use chainrule.jacobian(f, x), which chooses jacrev or jacfwd by the sizes",
        "elementwise_grad": "use vmap(func.grad(f)), or func.grad of the sum",
        "make_vjp": "use func.vjp(f, x)",
        "make_jvp": "use func.jvp(f, (x,), (t,))",
        "multigrad multigrad_dict": "use func.grad(f, argnums=(0, 1))",
        "stop_gradient": "use x.detach()",
        "pmap": "chainrule runs on one device: use vmap(f)",
        "GradientTape": "tensors with requires_grad=True are recorded, and y.backward() fills their grad",
        "PRNGKey key": "use random.manual_seed(seed), or a Generator",
        "array": "use tensor(data)",
        "ndarray": "the class is Tensor",
        "numpy": "NumPy's own functions take tensors: import numpy as np",
        "sparse sparse_coo_tensor sparse_csr_tensor": "tensors are dense; chainrule.sparse has sparse arrays",
        "distributions": "stats has SciPy's distributions, differentiable with respect to all parameters; random has PyTorch's "
        "samplers",
        "channels_last channels_last_3d": "arrays are in row-major order: omit memory_format",
        "ldl_factor ldl_factor_ex ldl_solve": "use linalg.cholesky for positive definite matrices, linalg.lu_factor for others",
        "geqrf": "use linalg.qr",
        "symeig": "use linalg.eigh",
        "svd_lowrank pca_lowrank lobpcg": "use linalg.svd or linalg.eigh, which compute the full decomposition",
        "range": "use arange(start, end + 1), which excludes its end",
        "empty_strided": "use as_strided, which views memory with other strides",
        "fractional_max_pool2d fractional_max_pool3d": "adaptive_max_pool2d(x, output_size) pools to any size, with regions "
        "that are not random",
        "ctc_loss": "write the sum over paths as a loop of logaddexp; for aligned labels use cross_entropy",
        "multi_head_attention_forward": "use scaled_dot_product_attention of linear(x, w)",
        "lstm gru rnn_tanh rnn_relu": "nn has the layers RNN, LSTM and GRU",
        "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell": "nn has RNNCell, LSTMCell and GRUCell",
        "MultiheadAttention Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder "
        "TransformerDecoderLayer": "use nn.functional.scaled_dot_product_attention of nn.Linear layers",
        "make_functional make_functional_with_buffers": "functional_call(module, dict(module.named_parameters()), x) calls "
        "a module with the given parameters",
        "parallel": "chainrule runs in one process on the CPU: call the module itself",
        "LazyLinear LazyConv1d LazyConv2d LazyConv3d": "pass the number of inputs to nn.Linear, nn.Conv2d",
        "SparseAdam Adafactor Muon": "optim has SGD, Adam, AdamW, RMSprop, LBFGS and older optimizers; to write your own, "
        "subclass optim.Optimizer and define update(p, grad, group, state)",
        "chalf complex32": "NumPy has no complex32: use complex64",
        "GradScaler": "gradients of float32 and float64 need no scaling: omit it",
        "MaskedTensor": "the functions of masked take mask=",
        "data DataLoader Dataset TensorDataset": "use utils.data",
        "DistributedSampler distributed": "chainrule runs in one process: omit it",
        "clip_grad_norm_": "use nn.utils.clip_grad_norm_",
        "clip_grad_value_": "use nn.utils.clip_grad_value_",
        "chainrule.jit": "use chainrule.compile(f)",
        "replace_all_batch_norm_modules_": "make the layers without running statistics: "
        "nn.BatchNorm2d(n, track_running_stats=False)",
        "functionalize": "omit it: transformations support functions that write in place",
        "lax": "scan, fori_loop and while_loop are functions of chainrule; Python's if, for and while work, too",
        "tree_map tree_flatten tree_unflatten tree_leaves tree_structure": "use tree.{name}",
        "tree_util": "use tree",
        "minimize least_squares root solve_ivp solve_bvp": "use scipy.{name}",
        "curve_fit": "use scipy.optimize.curve_fit",
    }.items()
    for name in names.split()
}
