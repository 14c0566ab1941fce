"""chainrule differentiates NumPy programs, with PyTorch's autograd surface.

This module re-exports the public names, under PyTorch's names. Names in ``_LAZY`` load on first use.
"""

# ruff: noqa: F401, I001 -- the allocator must be set up before the other imports allocate
# fmt: off
import importlib as _importlib
import typing as _typing
import warnings as _warnings
from math import e, inf, nan, pi
from types import ModuleType as _Module

from chainrule._src import config, native as _native
from chainrule._src.messages import errors as _errors
from chainrule._src.arrays.memory import paused_collector as _paused_collector, keep_freed_memory as _keep_freed_memory

if config.KEEP_MEMORY:
    _keep_freed_memory()

with _paused_collector(staying=True):
    from chainrule._src.arrays.device import (
        contiguous_format, device, layout, memory_format, preserve_format, strided,
    )
    from chainrule._src.arrays.dtype import (
        bfloat16, bool, cdouble, cfloat, complex64, complex128, double, dtype, float, float16, float32, float64,
        get_default_dtype, half, int, int8, int16, int32, int64, long, short, uint8, uint16, uint32, uint64,
    )
    from chainrule._src.api.array import Array
    from chainrule._src.api.declare import declared as _declared
    from chainrule._src.api.public_modules import show as _show, shown as _shown
    from chainrule._src.tape import trial as _trial
    from chainrule._src.arrays.dtypes import finfo, iinfo, set_default_dtype
    from chainrule._src.api.grad_mode import (
        enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled,
    )
    from chainrule._src.arrays.promotion import can_cast, promote_types, result_type
    from chainrule._src.arrays.size import Size
    from chainrule._src.tape.tensor import Tensor, attach_methods as _attach
    from chainrule._src.ops import deferred as _deferred, public as _public
    from chainrule._src.ops.creation import (
        BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor, ShortTensor,
    )
    from chainrule._src.transforms import backward as _backward

newaxis = None

if _typing.TYPE_CHECKING:
    from chainrule import (
        accelerator, amp, array_api, autograd, backends, compat, compiler, cuda, distributions, explaining, fft, func,
        implicit, jacobians, jit, linalg, masked, nn, optim, primitive, random, return_types, scipy, serialization,
        signal, sparse, special, stats, testing, tree, utils,
    )
    from chainrule.amp import autocast, is_autocast_enabled
    from chainrule._src.jacobians.api import hessian, jacobian, jacobian_plan
    from chainrule._src.jacobians.prepared import prepare_hessian, prepare_jacobian
    from chainrule.func import grad, grad_and_value, hvp, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap
    from chainrule.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
    from chainrule.random import (
        Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state,
    )
    from chainrule.serialization import load, save
    from chainrule._src.compiling import compile
    from chainrule._src.compiling.control_flow import fori_loop, scan, while_loop
    from chainrule.explaining import explain
    from chainrule.nn.functional import (
        adaptive_avg_pool1d, alpha_dropout, avg_pool1d, bilinear, celu, celu_, channel_shuffle, conv1d, conv2d, conv3d,
        conv_transpose1d, conv_transpose2d, conv_transpose3d, cosine_similarity, dropout, feature_alpha_dropout,
        group_norm, hardshrink, layer_norm, max_pool1d, max_pool2d, max_pool3d, pairwise_distance, pdist,
        pixel_shuffle, pixel_unshuffle, prelu, rms_norm, rrelu, rrelu_, selu, selu_, threshold, threshold_,
    )
    from chainrule.nn.top_level import (
        adaptive_max_pool1d, batch_norm, binary_cross_entropy_with_logits, convolution, cosine_embedding_loss, embedding,
        hinge_embedding_loss, instance_norm, kl_div, margin_ranking_loss, poisson_nll_loss, triplet_margin_loss,
    )
    from chainrule._src.arrays.printing import get_printoptions, printoptions, set_printoptions
    from chainrule._src.arrays.settings import (
        are_deterministic_algorithms_enabled, get_default_device, get_float32_matmul_precision, get_num_threads,
        set_default_device, set_default_tensor_type, set_float32_matmul_precision, set_num_threads,
        use_deterministic_algorithms,
    )
    from chainrule.signal.transforms import istft, stft
    from chainrule.signal.windows import bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window

__version__ = "0.1.0"

#: Names that load on first use, and the modules that hold them: submodules and functions.
_LAZY = {
    name: module
    for module, names in {
        "": "accelerator amp array_api autograd backends compat compiler cuda distributions explaining fft func "
        "implicit jacobians jit linalg masked nn optim primitive random return_types scipy serialization signal "
        "sparse special stats testing tree utils",
        "amp": "autocast is_autocast_enabled",
        "autograd.anomaly_mode": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
        "_src.compiling": "compile",
        "_src.compiling.control_flow": "fori_loop scan while_loop",
        "explaining": "explain",
        "func": "grad grad_and_value hvp jacfwd jacrev jvp value_and_grad vjp vmap",
        "_src.jacobians.api": "hessian jacobian jacobian_plan",
        "_src.jacobians.prepared": "prepare_hessian prepare_jacobian",
        "nn.functional": "adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear celu channel_shuffle conv1d conv2d conv3d "
        "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity dropout feature_alpha_dropout group_norm "
        "hardshrink layer_norm max_pool1d max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle "
        "prelu rms_norm rrelu rrelu_ selu selu_ threshold threshold_ celu_",
        "nn.top_level": "adaptive_max_pool1d batch_norm binary_cross_entropy_with_logits convolution cosine_embedding_loss "
        "embedding hinge_embedding_loss instance_norm kl_div margin_ranking_loss poisson_nll_loss triplet_margin_loss",
        "random": "Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state",
        "serialization": "load save",
        "_src.arrays.printing": "get_printoptions printoptions set_printoptions",
        "_src.arrays.settings": "are_deterministic_algorithms_enabled get_default_device get_float32_matmul_precision "
        "get_num_threads set_default_device set_default_tensor_type set_float32_matmul_precision set_num_threads "
        "use_deterministic_algorithms",
        "signal.transforms": "istft stft",
        "signal.windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    }.items()
    for name in names.split()
}


with _paused_collector(staying=True):
    _operations = _declared("")
    _trial.register_self_test()
# Imports make submodules attributes of this module; only the modules named here are public.
__all__ = sorted(
    {"config", *_LAZY, *_operations, *_deferred.FUNCTIONS}
    | {name for name, x in globals().items() if not name.startswith("_") and not isinstance(x, _Module)}
)


def _graph(self: Tensor, **options: object) -> object:
    """Return the graph that computed this tensor; ``.to_svg()`` and ``.to_dot()`` draw it.

    Large graphs are folded to at most ``limit`` nodes (default 60; None draws all). ``names`` labels tensors.
    """
    return _importlib.import_module("chainrule._src.explaining.graph").graph_of(self, **options)


def _why(self: Tensor) -> object:
    """Explain how this tensor's ``.grad`` was computed, or why it is None."""
    return _importlib.import_module("chainrule._src.explaining.why").why(self)


def _html(self: Tensor | Array) -> object:
    """Return the HTML that a notebook displays."""
    return _importlib.import_module("chainrule._src.explaining.notebooks").array_html(self)


def load_ipython_extension(shell: object) -> None:
    """Register the ``%%explain`` magic; ``%load_ext chainrule`` calls this function in IPython."""
    _importlib.import_module("chainrule._src.explaining.notebooks").load_ipython_extension(shell)


def _array_namespace(self: Tensor, *, api_version: str | None = None) -> object:
    """Return the Array API namespace, ``chainrule.array_api``: its functions take tensors and return Arrays."""
    return _importlib.import_module("chainrule.array_api").namespace(api_version)


def _lazy_method(name: str) -> object:
    """Return a method whose module loads on the first call."""
    return lambda self, *args, **kwargs: __getattr__(name)(self, *args, **kwargs)  # type: ignore[operator]


_attach(graph=_graph, why=_why, _repr_html_=_html, __array_namespace__=_array_namespace)
Array._repr_html_ = _html  # type: ignore[attr-defined]
_attach(**{name: _lazy_method(name) for name in ("hardshrink", "istft", "prelu", "stft")})


def __getattr__(name: str) -> object:
    if name == "__array_namespace_info__":
        return _importlib.import_module("chainrule.array_api").__array_namespace_info__
    if name.endswith("_") and not name.startswith("_") and hasattr(Tensor, name):
        return getattr(Tensor, name)  # in-place methods are functions, too
    if name in _operations or name in _deferred.FUNCTIONS:
        public = _operations[name].public if name in _operations else _deferred.function(name)
        return globals().setdefault(name, _shown(public, __name__))
    if name not in _LAZY:
        raise _errors.unknown_name(name, __all__, __name__)
    module = _importlib.import_module(f"chainrule.{_LAZY[name] or name}")
    return _shown(getattr(module, name), __name__) if _LAZY[name] else module


_show(globals())

if _slow := _native.slow_reason():
    _warnings.warn(_slow, RuntimeWarning, stacklevel=2)
