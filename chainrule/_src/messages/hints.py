"""Names that are not there, and what to use instead."""

from __future__ import annotations

import difflib
import functools
import importlib
import re
from collections.abc import Iterable

import numpy as np

from chainrule._src.messages.names import variables
from chainrule._src.messages.places import raising_frame
from chainrule._src.messages.reading import receiver_of_attribute
from chainrule._src.messages.words import UnknownName

#: PyTorch's methods and what an ndarray has in their place
_NUMPYS = {
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
    return UnknownName(f"'Array' object has no attribute {name!r}", lambda error: _numpys(name))


def _numpys(name: str) -> str:
    if name in _NUMPYS:
        return f": it has NumPy's methods; here it is {_NUMPYS[name]}. (x.tensor has PyTorch's.)"
    if callable(getattr(np, name, None)):
        return f": in NumPy it is a function, np.{name}(x, ...)."
    return _did_you_mean(name, np.ndarray) or ": it has the methods of a NumPy array; x.tensor has PyTorch's."


def _did_you_mean(name: str, kind: type) -> str:
    close = difflib.get_close_matches(name, [n for n in dir(kind) if not n.startswith("_")], 1, 0.7)
    return f". Did you mean {close[0]!r}?" if close else ""


def no_attribute(tensor: object, name: str) -> AttributeError:
    return UnknownName(f"'Tensor' object has no attribute {name!r}", functools.partial(_instead, tensor, name))


def _instead(tensor: object, name: str, error: BaseException) -> str:
    """What to use where a tensor lacks an attribute, in words that follow what it lacks."""
    if name not in _METHODS and not callable(getattr(np.ndarray, name, None)):
        return _did_you_mean(name, type(tensor))
    frame, at = raising_frame(error)
    x = receiver_of_attribute(name, frame, at) or next((n for n, value, _ in variables(frame) if value is tensor), "x")
    if name in _METHODS:
        return f": {_METHODS[name].format(x=x)}."
    return f". An array has it: {x}.detach().numpy().{name}(...)"


_SPARSE = (
    "tensors are dense. With i, j = {x}.nonzero(as_tuple=True), chainrule.sparse.csr_array(({x}[i, j], (i, j)), {x}.shape) "
    "is sparse, with derivatives by its entries"
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
    "share_memory_": "multiprocessing.shared_memory gives an array's buffer; from_numpy shares it",
    "pin_memory": "everything is on the CPU: leave it out",
    "bfloat16": "NumPy has no such numbers: {x}.float()",
    "to_sparse": _SPARSE,
    "to_sparse_csr": _SPARSE,
    "to_sparse_csc": _SPARSE,
    "to_sparse_coo": _SPARSE,
}


def name_hint(name: str, known: Iterable[str], module: str) -> str:
    """What to use where a module lacks a name, in words that follow what it lacks."""
    known = [n for n in known if not n.startswith("_")]
    close = next((n for n in known if n.lower() == name.lower()), "")
    instead = _ELSEWHERE.get(name) or _ELSEWHERE.get(module) or _home(name) or (not close and _layer(name))
    close = close or next(iter(difflib.get_close_matches(name, known, 1, 0.7)), "")
    if not instead and not close and module == "chainrule.nn":
        instead = _MODULE
    return f": {instead}." if instead else f". Did you mean {close!r}?" if close else ""


def _home(name: str) -> str:
    """The module that has the name."""
    for module in ("nn.functional", "linalg", "special", "fft", "func", "autograd", "masked"):
        if name in importlib.import_module(f"chainrule.{module}").__all__:
            return f"it is {module}.{name}"
    return ""


#: keywords of JAX's, HIPS autograd's and NumPy's, and what they are called here
_KEYWORDS = {
    "in_axes": "in_dims", "out_axes": "out_dims", "in_axis": "in_dims", "out_axis": "out_dims", "argnum": "argnums",
    "wrt": "argnums", "aux": "has_aux", "n_chunks": "chunk_size",
}  # fmt: skip
_UNNEEDED = {
    "axis_size": "the size is that of the mapped arguments, so leave it out",
    "axis_name": "axes have no names here: np.sum of the result is what a sum over a named axis is",
    "spmd_axis_name": "there is one device, so leave it out",
    "allow_int": "an integer cannot change by a little: pass x.astype(float)",
    "holomorphic": "complex arguments are known by their dtype, so leave it out",
    "reduce_axes": "axes have no names here, so leave it out",
}


def unknown_keyword(function: str, name: str, own: Iterable[str]) -> TypeError:
    text = f"{function}() got an unexpected keyword argument {name!r}"
    own = list(own)
    if name in _UNNEEDED:
        return TypeError(f"{text}: {_UNNEEDED[name]}")
    meant = [n for n in [_KEYWORDS.get(name), *difflib.get_close_matches(name, own, 1, 0.6)] if n in own]
    return TypeError(f"{text}. Did you mean {meant[0]!r}?" if meant else f"{text}: it takes {', '.join(own)}")


_MODULE = "write it as an nn.Module with parameters of its own. The functions are in nn.functional"


def _layer(name: str) -> str:
    """For a class of a layer: the function of that name."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    known = importlib.import_module("chainrule.nn.functional").__all__
    of = next((n for n in (words, words.replace("_", ""), re.sub(r"\dd$", "", words)) if n in known), "")
    return f"{_MODULE}: nn.functional.{of}" if of and name[0].isupper() else ""


#: what else to use, for names that PyTorch has and this package has not
_ELSEWHERE = {
    name: text
    for names, text in {
        "chainrule.cuda": "everything is computed on the CPU, so leave it out",
        "mps": "everything is computed on the CPU, so leave device= out",
        "checkpoint": "it is utils.checkpoint.checkpoint",
        "jacobian": "it is chainrule.jacobian(f, x), which picks jacrev or jacfwd by the sizes",
        "elementwise_grad": "vmap(func.grad(f)), or func.grad of the sum",
        "make_vjp": "it is func.vjp(f, x)",
        "make_jvp": "it is func.jvp(f, (x,), (t,))",
        "multigrad multigrad_dict": "it is func.grad(f, argnums=(0, 1))",
        "stop_gradient": "it is x.detach()",
        "pmap": "there is one device: vmap(f)",
        "GradientTape": "tensors with requires_grad=True are recorded, and y.backward() fills their grad",
        "PRNGKey key": "random.manual_seed(seed), or a Generator",
        "array": "it is tensor(data)",
        "ndarray": "the class is Tensor",
        "numpy": "NumPy's own functions take tensors: import numpy as np",
        "sparse sparse_coo_tensor sparse_csr_tensor": "there are dense arrays only",
        "distributions": "stats has SciPy's distributions, with derivatives by all parameters; random has PyTorch's samplers",
        "channels_last channels_last_3d": "arrays lie in row order, whatever their axes mean: leave memory_format out",
        "ldl_factor ldl_factor_ex ldl_solve": "for positive definite matrices there is linalg.cholesky, for others "
        "linalg.lu_factor",
        "geqrf": "it is linalg.qr",
        "symeig": "it is linalg.eigh",
        "svd_lowrank pca_lowrank lobpcg": "linalg.svd and linalg.eigh compute all of it",
        "range": "it is arange(start, end + 1), which ends before its end",
        "empty_strided": "as_strided shows memory in other steps",
        "fractional_max_pool2d fractional_max_pool3d": "adaptive_max_pool2d(x, output_size) pools to any size, with regions "
        "that are not random",
        "ctc_loss": "a sum over paths is a loop of logaddexp; for labels that are aligned there is cross_entropy",
        "multi_head_attention_forward": "it is scaled_dot_product_attention of linear(x, w)",
        "lstm gru rnn_tanh rnn_relu": "nn has the layers RNN, LSTM and GRU",
        "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell": "nn has RNNCell, LSTMCell and GRUCell",
        "MultiheadAttention Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder "
        "TransformerDecoderLayer": "it is nn.functional.scaled_dot_product_attention of nn.Linear layers",
        "make_functional make_functional_with_buffers": "functional_call(module, dict(module.named_parameters()), x) calls "
        "it with parameters of yours",
        "parallel": "one process computes on the CPU: call the module itself",
        "LazyLinear LazyConv1d LazyConv2d LazyConv3d": "give the number of inputs: nn.Linear, nn.Conv2d",
        "SparseAdam Adafactor Muon": "optim has SGD, Adam, AdamW, RMSprop, LBFGS and older ones; of a subclass of "
        "optim.Optimizer one says update(p, grad, group, state)",
        "CyclicLR": "LambdaLR(optimizer, f) takes any function of the epoch",
        "chalf complex32": "NumPy has no such numbers: take complex64",
        "GradScaler": "gradients of float32 and float64 need no scaling: leave it out",
        "MaskedTensor": "the functions of masked take mask=",
        "data DataLoader Dataset TensorDataset": "it is in utils.data",
        "DistributedSampler distributed": "everything is in one process: leave it out",
        "clip_grad_norm_": "it is nn.utils.clip_grad_norm_",
        "clip_grad_value_": "it is nn.utils.clip_grad_value_",
        "chainrule.jit": "chainrule.compile(f) makes a function fast",
        "replace_all_batch_norm_modules_": "make the layers without running statistics: "
        "nn.BatchNorm2d(n, track_running_stats=False)",
        "functionalize": "it is not needed: functions that write in place can be transformed as they are",
    }.items()
    for name in names.split()
}
