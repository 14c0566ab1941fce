"""chainrule differentiates NumPy programs, with PyTorch's autograd surface.

Everything public is re-exported here, under PyTorch's names. ``nn`` and ``testing`` load when first used.
"""

# ruff: noqa: F401, I001 -- the allocator is set up before anything is allocated
# fmt: off
from __future__ import annotations

import importlib
from math import e, inf, nan, pi
from typing import TYPE_CHECKING

from chainrule import config, errors
from chainrule.backends.memory import keep_freed_memory

if config.KEEP_MEMORY:
    keep_freed_memory()

from chainrule.types.device import (
    contiguous_format, device, layout, memory_format, preserve_format, strided,
)
from chainrule.types.dtype import (
    bool, cdouble, cfloat, complex64, complex128, double, dtype, float, float16, float32, float64,
    get_default_dtype, half, int, int8, int16, int32, int64, long, short, uint8, uint16, uint32, uint64,
)
from chainrule.core.array import Array, open_to_arrays as _open_to_arrays
from chainrule.types.dtypes import finfo, iinfo, set_default_dtype
from chainrule.core.modes import (
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled,
)
from chainrule.types.promotion import can_cast, promote_types, result_type
from chainrule.types.printing import get_printoptions, printoptions, set_printoptions
from chainrule.types.size import Size
from chainrule.core.tensor import Tensor, attach as _attach
from chainrule.ops import array as _array, methods, numpy_face, numpy_linalg, numpy_moves, numpy_reductions  # they register themselves
from chainrule.ops.creation import (
    BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor, ShortTensor,
    Variable, arange, as_tensor, asarray, empty, empty_like, eye, from_dlpack, from_numpy, frombuffer, full, full_like, linspace, logspace,
    ones, ones_like, scalar_tensor, tensor, tril_indices, triu_indices, zeros, zeros_like,
)
from chainrule.ops.elementwise import (
    abs, absolute, acos, acosh, add, addcdiv, addcmul, allclose, angle, arccos, arccosh, arcsin, arcsinh, arctan,
    arctan2, arctanh, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or,
    bitwise_right_shift, bitwise_xor, cbrt, ceil, clamp, clamp_max, clamp_min, clip, complex, conj, conj_physical,
    copysign, cos, cosh, deg2rad, div, divide, eq, equal, exp, exp2, expm1, fix, float_power, floor, floor_divide, fmax,
    fmin, fmod, frac, gcd, ge, greater, greater_equal, gt, heaviside, hypot, imag, isclose, isfinite, isinf, isnan, lcm,
    le, lerp, less, less_equal, log, log10, log1p, log2, logaddexp, logaddexp2, logical_and, logical_not, logical_or,
    logical_xor, logit, lt, maximum, minimum, mul, multiply, nan_to_num, ne, neg, negative, nextafter, not_equal, polar,
    positive, pow, rad2deg, real, reciprocal, relu, remainder, round, rsqrt, rsub, sgn, sigmoid, sign, signbit, sin,
    sinc, sinh, sqrt, square, sub, subtract, tan, tanh, true_divide, trunc, where, xlogy,
)
from chainrule.ops.factors import lu_unpack
from chainrule.ops.floats import frexp, isneginf, isposinf, isreal, ldexp
from chainrule.ops.reductions import (
    all, amax, amin, aminmax, any, argmax, argmin, count_nonzero, dist, log_softmax, logsumexp, max, mean, min,
    nanmean, nansum, norm, prod, softmax, std, std_mean, sum, var, var_mean,
)
from chainrule.ops.ordering import (
    argsort, cummax, cummin, cumprod, cumsum, kthvalue, logcumsumexp, median, mode, msort, quantile, sort, topk,
)
from chainrule.ops.shaping import (
    adjoint, broadcast_shapes, broadcast_tensors, broadcast_to, clone, diagonal, flatten, moveaxis, movedim,
    permute, ravel, reshape, squeeze, swapaxes, swapdims, t, transpose, unflatten, unfold, unsqueeze,
)
from chainrule.ops.joining import (
    atleast_1d, atleast_2d, atleast_3d, cat, column_stack, concat, concatenate, constant_pad_nd, dstack, flip, fliplr,
    flipud, hstack, index_select, repeat_interleave, roll, rot90, row_stack, stack, tile, vstack,
)
from chainrule.ops.splitting import (
    chunk, dsplit, hsplit, narrow, select, split, split_with_sizes, tensor_split, unbind, unsafe_chunk, unsafe_split,
    unsafe_split_with_sizes, vsplit,
)
from chainrule.ops.matrices import (
    block_diag, cartesian_prod, combinations, diag, diag_embed, diagflat, diff, meshgrid, tril, triu, vander,
)
from chainrule.ops.gathering import gather, masked_fill, masked_select, take, take_along_dim
from chainrule.ops.scattering import (
    diagonal_scatter, fill, index_add, index_copy, index_fill, index_put, index_reduce, masked_scatter, put, scatter,
    scatter_add, scatter_reduce, select_scatter, slice_scatter,
)
from chainrule.ops.calculus import (
    cdist, cross, cumulative_trapezoid, gradient, renorm, trapezoid, trapz, unravel_index,
)
from chainrule.ops.memory import (
    alias_copy, as_strided, as_strided_copy, as_strided_scatter, detach_copy, diagonal_copy, expand_copy, narrow_copy,
    permute_copy, select_copy, slice_copy, split_copy, split_with_sizes_copy, squeeze_copy, t_copy, transpose_copy,
    unbind_copy, unfold_copy, unsqueeze_copy, view_as_complex, view_as_complex_copy, view_as_real, view_as_real_copy,
    view_copy,
)
from chainrule.ops.statistics import corrcoef, cov, nanmedian, nanquantile
from chainrule.ops.searching import (
    argwhere, bincount, bucketize, histc, histogram, histogramdd, isin, nonzero, nonzero_static, searchsorted, unique,
    unique_consecutive,
)
from chainrule.ops.einsum import einsum
from chainrule.ops.products import (
    addbmm, addmm, addmv, addr, baddbmm, bmm, chain_matmul, dot, ger, inner, kron, matmul, mm, mv, outer, tensordot,
    trace, vdot,
)
from chainrule.ops.queries import (
    detach, get_device, is_complex, is_conj, is_floating_point, is_inference, is_neg, is_nonzero, is_same_size, is_signed,
    is_tensor, numel, resolve_conj, resolve_neg,
)
from chainrule.random import (
    Generator, bernoulli, binomial, default_generator, get_rng_state, initial_seed, manual_seed, multinomial, normal,
    poisson, rand, rand_like, randint, randint_like, randn, randn_like, randperm, seed, set_rng_state,
)
from chainrule import autograd, linalg, random, return_types, special, tree
from chainrule.linalg import (
    cholesky_inverse, cholesky_solve, det, inverse, logdet, matrix_exp, matrix_power, pinverse, slogdet,
    orgqr, top_cholesky as cholesky, top_lu as lu, top_lu_solve as lu_solve, top_qr as qr, top_svd as svd,
    triangular_solve,
)
from chainrule.special import (
    digamma, erf, erfc, erfinv, i0, igamma, igammac, lgamma, multigammaln as mvlgamma, polygamma,
)

newaxis = None

if TYPE_CHECKING:
    from chainrule import cuda, fft, func, masked, nn, primitive, signal, testing, utils
    from chainrule.autograd.jacobian import jacobian
    from chainrule.func import grad, grad_and_value, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap
    from chainrule.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
    from chainrule.serialization import load, save
    from chainrule.explaining import explain, record_lines
    from chainrule.nn.functional import (
        adaptive_avg_pool1d, alpha_dropout, avg_pool1d, bilinear, celu, channel_shuffle, conv1d, conv2d, conv3d,
        conv_transpose1d, conv_transpose2d, conv_transpose3d, cosine_similarity, dropout, feature_alpha_dropout,
        group_norm, hardshrink, layer_norm, max_pool1d, max_pool2d, max_pool3d, pairwise_distance, pdist,
        pixel_shuffle, pixel_unshuffle, prelu, rms_norm, rrelu, selu, threshold,
    )
    from chainrule.settings import (
        are_deterministic_algorithms_enabled, get_default_device, get_float32_matmul_precision,
        set_default_device, set_default_tensor_type, set_float32_matmul_precision, use_deterministic_algorithms,
    )
    from chainrule.signal.transforms import istft, stft
    from chainrule.signal.windows import bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window

__version__ = "0.1.0"

# What `from chainrule import *` and type checkers see: every name imported above.
__all__ = [
    "Array", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "Generator", "HalfTensor", "IntTensor",
    "LongTensor", "ShortTensor", "Size", "Tensor", "Variable", "abs", "absolute", "acos", "acosh",
    "adaptive_avg_pool1d", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "adjoint", "alias_copy",
    "all", "allclose", "alpha_dropout", "amax", "amin", "aminmax", "angle", "any", "arange", "arccos", "arccosh",
    "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "are_deterministic_algorithms_enabled", "argmax", "argmin",
    "argsort", "argwhere", "as_strided", "as_strided_copy", "as_strided_scatter", "as_tensor", "asarray", "asin",
    "asinh", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "autograd", "avg_pool1d", "baddbmm",
    "bartlett_window", "bernoulli", "bilinear", "bincount", "binomial", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman_window", "block_diag", "bmm", "bool",
    "broadcast_shapes", "broadcast_tensors", "broadcast_to", "bucketize", "can_cast", "cartesian_prod", "cat", "cbrt",
    "cdist", "cdouble", "ceil", "celu", "cfloat", "chain_matmul", "channel_shuffle", "cholesky", "cholesky_inverse",
    "cholesky_solve", "chunk", "clamp", "clamp_max", "clamp_min", "clip", "clone", "column_stack", "combinations",
    "complex", "complex128", "complex64", "concat", "concatenate", "conj", "conj_physical", "constant_pad_nd",
    "contiguous_format", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "copysign", "corrcoef", "cos", "cosh", "cosine_similarity", "count_nonzero", "cov", "cross", "cuda", "cummax",
    "cummin", "cumprod", "cumsum", "cumulative_trapezoid", "default_generator", "deg2rad", "det", "detach",
    "detach_copy", "device", "diag", "diag_embed", "diagflat", "diagonal", "diagonal_copy", "diagonal_scatter",
    "diff", "digamma", "dist", "div", "divide", "dot", "double", "dropout", "dsplit", "dstack", "dtype", "e",
    "einsum", "empty", "empty_like", "enable_grad", "eq", "equal", "erf", "erfc", "erfinv", "exp", "exp2",
    "expand_copy", "explain", "expm1", "eye", "feature_alpha_dropout", "fft", "fill", "finfo", "fix", "flatten",
    "flip", "fliplr", "flipud", "float", "float16", "float32", "float64", "float_power", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "frac", "frexp", "from_dlpack", "from_numpy", "frombuffer", "full", "full_like", "func",
    "gather", "gcd", "ge", "ger", "get_default_device", "get_default_dtype", "get_device",
    "get_float32_matmul_precision", "get_printoptions", "get_rng_state", "grad", "grad_and_value", "gradient",
    "greater", "greater_equal", "group_norm", "gt", "half", "hamming_window", "hann_window", "hardshrink",
    "heaviside", "hessian", "histc", "histogram", "histogramdd", "hsplit", "hstack", "hvp", "hypot", "i0", "igamma",
    "igammac", "iinfo", "imag", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select",
    "inf", "inference_mode", "initial_seed", "inner", "int", "int16", "int32", "int64", "int8", "inverse",
    "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "is_complex", "is_conj", "is_floating_point",
    "is_grad_enabled", "is_inference", "is_inference_mode_enabled", "is_neg", "is_nonzero", "is_same_size",
    "is_signed", "is_tensor", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal",
    "istft", "jacfwd", "jacobian", "jacrev", "jvp", "kaiser_window", "kron", "kthvalue", "layer_norm", "layout",
    "lcm", "ldexp", "le", "lerp", "less", "less_equal", "lgamma", "linalg", "linspace", "load", "log", "log10",
    "log1p", "log2", "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logdet", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logit", "logspace", "logsumexp", "long", "lt", "lu", "lu_solve", "lu_unpack",
    "manual_seed", "masked", "masked_fill", "masked_scatter", "masked_select", "matmul", "matrix_exp", "matrix_power",
    "max", "max_pool1d", "max_pool2d", "max_pool3d", "maximum", "mean", "median", "memory_format", "meshgrid", "min",
    "minimum", "mm", "mode", "moveaxis", "movedim", "msort", "mul", "multinomial", "multiply", "mv", "mvlgamma",
    "nan", "nan_to_num", "nanmean", "nanmedian", "nanquantile", "nansum", "narrow", "narrow_copy", "ne", "neg",
    "negative", "newaxis", "nextafter", "nn", "no_grad", "nonzero", "nonzero_static", "norm", "normal", "not_equal",
    "numel", "ones", "ones_like", "orgqr", "outer", "pairwise_distance", "pdist", "permute", "permute_copy", "pi",
    "pinverse", "pixel_shuffle", "pixel_unshuffle", "poisson", "polar", "polygamma", "positive", "pow", "prelu",
    "preserve_format", "primitive", "printoptions", "prod", "promote_types", "put", "qr", "quantile", "rad2deg",
    "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random", "randperm", "ravel", "real",
    "reciprocal", "record_lines", "relu", "remainder", "renorm", "repeat_interleave", "reshape", "resolve_conj",
    "resolve_neg", "result_type", "rms_norm", "roll", "rot90", "round", "row_stack", "rrelu", "rsqrt", "rsub", "save",
    "scalar_tensor", "scatter", "scatter_add", "scatter_reduce", "searchsorted", "seed", "select", "select_copy",
    "select_scatter", "selu", "set_anomaly_enabled", "set_default_device", "set_default_dtype",
    "set_default_tensor_type", "set_float32_matmul_precision", "set_grad_enabled", "set_printoptions",
    "set_rng_state", "sgn", "short", "sigmoid", "sign", "signal", "signbit", "sin", "sinc", "sinh", "slice_copy",
    "slice_scatter", "slogdet", "softmax", "sort", "special", "split", "split_copy", "split_with_sizes",
    "split_with_sizes_copy", "sqrt", "square", "squeeze", "squeeze_copy", "stack", "std", "std_mean", "stft",
    "strided", "sub", "subtract", "sum", "svd", "swapaxes", "swapdims", "t", "t_copy", "take", "take_along_dim",
    "tan", "tanh", "tensor", "tensor_split", "tensordot", "testing", "threshold", "tile", "topk", "trace",
    "transpose", "transpose_copy", "trapezoid", "trapz", "tree", "triangular_solve", "tril", "tril_indices", "triu",
    "triu_indices", "true_divide", "trunc", "uint16", "uint32", "uint64", "uint8", "unbind", "unbind_copy",
    "unflatten", "unfold", "unfold_copy", "unique", "unique_consecutive", "unravel_index", "unsafe_chunk",
    "unsafe_split", "unsafe_split_with_sizes", "unsqueeze", "unsqueeze_copy", "use_deterministic_algorithms", "utils",
    "value_and_grad", "vander", "var", "var_mean", "vdot", "view_as_complex", "view_as_complex_copy", "view_as_real",
    "view_as_real_copy", "view_copy", "vjp", "vmap", "vsplit", "vstack", "where", "xlogy", "zeros", "zeros_like",
]

_open_to_arrays(globals(), __all__, ("chainrule.ops", "chainrule.linalg", "chainrule.special"))

#: What loads when it is first used, and where it is: submodules, and functions in them.
_LAZY = {
    name: module
    for module, names in {
        "": "cuda fft func masked nn primitive signal testing utils",
        "autograd.anomaly_mode": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
        "autograd.jacobian": "jacobian",
        "explaining": "explain record_lines",
        "func": "grad grad_and_value hessian hvp jacfwd jacrev jvp value_and_grad vjp vmap",
        "nn.functional": "adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear celu channel_shuffle conv1d conv2d conv3d "
        "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity dropout feature_alpha_dropout group_norm "
        "hardshrink layer_norm max_pool1d max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle "
        "prelu rms_norm rrelu selu threshold",
        "serialization": "load save",
        "settings": "are_deterministic_algorithms_enabled get_default_device get_float32_matmul_precision "
        "set_default_device set_default_tensor_type set_float32_matmul_precision use_deterministic_algorithms",
        "signal.transforms": "istft stft",
        "signal.windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    }.items()
    for name in names.split()
}


def _graph(self: Tensor, **options: object) -> object:
    """The graph that computed this tensor, to draw: ``.to_svg()``, ``.to_dot()``, ``.to_mermaid()``.

    Large graphs are folded to at most ``limit`` nodes (60; None: draw all). ``names`` gives tensors other names.
    """
    return importlib.import_module("chainrule.explaining.graph").graph_of(self, **options)


def _why(self: Tensor) -> object:
    """Why this tensor's ``.grad`` is what it is, or why there is none."""
    return importlib.import_module("chainrule.explaining.why").why(self)


def _later(name: str) -> object:
    """A method whose module loads when it is first called."""
    return lambda self, *args, **kwargs: __getattr__(name)(self, *args, **kwargs)  # type: ignore[operator]


_attach(graph=_graph, why=_why, **{name: _later(name) for name in ("hardshrink", "istft", "prelu", "stft")})


def __getattr__(name: str) -> object:
    if name.endswith("_") and not name.startswith("_") and hasattr(Tensor, name):
        return getattr(Tensor, name)  # the function of a method that writes in place
    if name not in _LAZY:
        raise errors.unknown_name(name, [*globals(), *_LAZY], __name__)
    module = importlib.import_module(f"chainrule.{_LAZY[name] or name}")
    return getattr(module, name) if _LAZY[name] else module


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


if config.RECORD_LINES:
    importlib.import_module("chainrule.explaining.lines").record_everywhere()
