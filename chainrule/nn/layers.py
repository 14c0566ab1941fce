"""The functions that layers call: affine maps, embeddings, normalization, similarity and attention.

``chainrule.nn.functional`` exports these functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.functions import new
from chainrule._src.api.grad_mode import no_grad
from chainrule._src.arrays.any_array import is_array, lies_within
from chainrule._src.arrays.types import AnyArray
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import joining, products, reductions, shaping
from chainrule._src.ops.arguments import constant_on_device_of, numbers_of, takes_tensors, tensor_of
from chainrule._src.table import indexing
from chainrule._src.table import nn as primitives
from chainrule._src.table import shape as moves
from chainrule._src.tape import inplace
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.eager import NO_PARAMS, new_node
from chainrule._src.tape.modes import ACTIVE_MODES
from chainrule._src.tape.protocol import as_array
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.ties import tie_cotangents
from chainrule.nn.dropouts import dropout
from chainrule.nn.reducing import broadcast_pair, clamp_value, promote_pair

ndarray = np.ndarray
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
_LINEAR = primitives.linear


# -- affine maps -----------------------------------------------------------------------------------------------------


@op()
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return input @ weightᵀ + bias.

    Args:
        input: (..., in).
        weight: (out, in), or (in,) for a single output without an axis of its own.
        bias: (out,).

    >>> import chainrule as cr
    >>> cr.nn.functional.linear(cr.tensor([1., 2.]), cr.tensor([[1., 1.], [0., 2.]]), cr.tensor([0., 1.]))
    tensor([3., 5.])
    """
    if type(input) is Tensor and type(weight) is Tensor and type(bias) is Tensor and not ACTIVE_MODES:
        x, w, b = input._raw, weight._raw, bias._raw
        if (
            type(x) is ndarray and type(w) is ndarray and type(b) is ndarray and x.ndim == w.ndim == 2
            and ((dtype := x.dtype) is float32 or dtype is float64) and w.dtype is dtype and b.dtype is dtype
            and x.shape[1] == w.shape[1] and b.shape == w.shape[:1]
        ):  # fmt: skip
            ex, ew_, eb = input._edge, weight._edge, bias._edge
            if ex is not None or ew_ is not None or eb is not None:
                out = x.dot(w.T)
                out += b
                saved = (None if ex is None else w, None if ew_ is None else x)
                tensor = new(Tensor)
                tensor._raw = out
                tensor._edge = new_node(_LINEAR, NO_PARAMS, (ex, ew_, eb), saved)
                return tensor
    return _linear(input, weight, bias)


@takes_tensors
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if weight.ndim == 1:
        out = products.matmul(input, weight)
        return out if bias is None else out + bias
    if weight.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D: linear() takes a weight of shape "
            "(out, in); for a batch of weights write input @ weight.mT"
        )
    flipped = weight.mT
    if input.shape[-1] != weight.shape[-1]:
        raise errors.linear_shapes(input, weight)
    if bias is not None and bias.ndim and bias.shape[-1] not in (1, weight.shape[0]):
        raise errors.bias_shape(bias, weight)
    if (
        bias is None
        or tuple(bias.shape) != (weight.shape[0],)
        or not input.dtype == weight.dtype == bias.dtype
        or (input.dtype.kind != "f" or weight.ndim != 2)
    ):
        out = products.matmul(input, flipped)
        return out if bias is None else out + bias
    lead = tuple(input.shape[:-1])
    flat = input if input.ndim == 2 else input.reshape(-1, input.shape[-1])
    out = bind(_LINEAR, (flat, weight, bias), NO_PARAMS)
    return out if input.ndim == 2 else out.reshape(*lead, weight.shape[0])


@op("nn.functional.bilinear bilinear", sample="rand(2, 3), rand(2, 4), rand(5, 3, 4)")
@takes_tensors
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return Σᵢⱼ input1ᵢ·weightₒᵢⱼ·input2ⱼ + bias, for inputs (..., in1), (..., in2) and a weight (out, in1, in2)."""
    for position, (x, n) in enumerate(((input1, weight.shape[1]), (input2, weight.shape[2])), 1):
        if x.shape[-1] != n:
            raise RuntimeError(
                f"bilinear(): input{position} size does not match weight size: got {x.shape[-1]} but expected {n}"
            )
    half = products.tensordot(input1, weight, ([input1.ndim - 1], [1]))
    out = reductions.sum(half * input2.unsqueeze(-2), -1)
    return out if bias is None else out + bias


# -- look-ups --------------------------------------------------------------------------------------------------------


@op(sample="tensor([0, 2]), rand(3, 4)")
@takes_tensors
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of ``weight`` (n, width) at the indices, of shape (*input.shape, width).

    Args:
        padding_idx: the index of a row that gets no gradient.
        max_norm: selected rows with a larger norm are first scaled down to it, in place.
        scale_grad_by_freq: divide a row's gradient by the number of times it was selected.
        sparse: accepted; gradients are dense.
    """
    index = input if isinstance(input, Tensor) else wrap(as_array(input))
    if index.dtype.kind not in "iu":
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{index.dtype} instead (while checking arguments for embedding)"
        )
    n = weight.shape[0]
    plain = type(index._raw) is ndarray
    if is_array(index._raw) and not lies_within(index._raw, 0, n - 1):
        raise IndexError(f"index out of range in self: embedding looks up rows from 0 to {n - 1}")
    if padding_idx is not None:
        if not -n <= padding_idx < n:
            raise errors.padding_index()
        padding_idx %= n
    if max_norm is not None:
        with no_grad():
            _shrink(weight, index, max_norm, norm_type)
    out = indexing.take(weight, index._raw if plain else index, axis=-2)
    if scale_grad_by_freq:
        count = reductions.sum(index.reshape(-1).unsqueeze(-1) == index.reshape(-1), -1).reshape(tuple(index.shape))
        share = (1.0 / count).unsqueeze(-1)
        out = out.detach() + (out - out.detach()) * cast(share, weight.dtype)
    if padding_idx is not None:
        out = ew.where((index != padding_idx).unsqueeze(-1), out, out.detach())
    return out


def _shrink(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    used = np.unique(index._array())
    found = weight.detach()._array()[used]
    norms = np.linalg.norm(found, norm_type, axis=-1, keepdims=True)
    scaled = np.where(norms > max_norm, found * (max_norm / (norms + 1e-7)), found).astype(weight.dtype)
    if type(weight._raw) is ndarray:
        weight[used] = constant_on_device_of(weight, scaled)
        return
    numbers = weight.detach()._array().copy()
    numbers[used] = scaled
    inplace.set_numbers(weight, numbers)  # tangents stay unchanged


@op(also={"input": "tensor"}, sample="tensor([0, 2])")
@takes_tensors
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return one-hot rows (*tensor.shape, num_classes) for integers; the default ``num_classes`` is the largest + 1."""
    if tensor.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    numbers = numbers_of(tensor)
    if numbers is not None:
        if tensor.numel() and numbers.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            if not tensor.numel():
                raise RuntimeError("Can not infer total number of classes from empty tensor.")
            num_classes = int(numbers.max()) + 1
        elif tensor.numel() and numbers.max() >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    elif num_classes == -1:
        raise errors.data_dependent(tensor, "one_hot() without num_classes")
    return cast(tensor.unsqueeze(-1) == constant_on_device_of(tensor, np.arange(num_classes)), np.dtype(np.int64))


# -- normalization ---------------------------------------------------------------------------------------------------


def _standardized(x: Tensor, axes: tuple[int, ...], eps: float, name: str) -> Tensor:
    return bind(primitives.standardize, (x,), {"axis": axes, "eps": eps, "name": name})


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _trailing(
    name: str, x: AnyArray, normalized_shape: object, weight: Tensor | None, bias: Tensor | None = None
) -> tuple[int, ...]:
    shape = tuple(normalized_shape) if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    if not shape:
        raise RuntimeError(
            f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            f"{shape}"
        )
    for what, given in (("weight", weight), ("bias", bias)):
        if given is not None and tuple(given.shape) != shape:
            raise RuntimeError(
                f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape {list(given.shape)} "
                f"and normalized_shape = {list(shape)}"
            )
    if tuple(x.shape[x.ndim - len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but "
            f"got input of size{list(x.shape)}"
        )
    return tuple(range(-len(shape), 0))


@op("nn.functional.layer_norm layer_norm")
@takes_tensors
def layer_norm(
    input: Tensor,
    normalized_shape: object,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return (x − mean) / √(variance + eps) over the last axes, of ``normalized_shape``, times weight plus bias."""
    x = tensor_of("layer_norm", input, "f")
    axes = _trailing("layer_norm", x, normalized_shape, weight, bias)
    return tie_cotangents(_affine(_standardized(x, axes, eps, "NativeLayerNormBackward0"), weight, bias))


@op("nn.functional.rms_norm rms_norm")
@takes_tensors
def rms_norm(input: Tensor, normalized_shape: object, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Return x / √(mean(x²) + eps) over the last axes, times weight. ``eps`` is by default the dtype's."""
    x = tensor_of("rms_norm", input, "fc")
    axes = _trailing("rms_norm", x, normalized_shape, weight)
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    scale = ew.rsqrt(reductions.mean(ew.square(x), axes, True) + eps)
    return _affine(x * scale, weight, None)


def _by_channel(t: Tensor | None, x: Tensor) -> Any:
    """Reshape one number per channel (axis 1) to broadcast against the input."""
    return None if t is None else t.reshape(1, -1, *(1,) * (x.ndim - 2))


def _check_channels(x: AnyArray, **given: Any) -> None:
    for what, t in given.items():
        if t is not None and t.numel() != x.shape[1]:
            raise RuntimeError(f"{what} should contain {x.shape[1]} elements not {t.numel()}")


def _update(running: Any, fresh: Any, momentum: float) -> None:
    if running is not None:
        with no_grad():
            running.copy_(running * (1 - momentum) + cast(fresh, running.dtype) * momentum)


@op(sample="rand(2, 3), zeros(3), ones(3), training=True")
@takes_tensors
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize every channel (axis 1) to mean 0 and standard deviation 1, then multiply by weight and add bias.

    Args:
        running_mean, running_var: the statistics to use. With ``training`` the batch's own statistics are used, and
            the running ones are updated with them.
    """
    x = tensor_of("batch_norm", input, "f")
    if not x.numel():
        return shaping.clone(x)
    if x.ndim < 2:
        raise RuntimeError(f"batch_norm: expected at least 2D input (got {x.ndim}D input)")
    _check_channels(x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    weight, bias = _by_channel(weight, x), _by_channel(bias, x)
    if not training:
        for what, t in (("running_mean", running_mean), ("running_var", running_var)):
            if t is None:
                raise RuntimeError(f"{what} must be defined in evaluation mode")
        scale = ew.rsqrt(_by_channel(running_var, x) + eps)
        return tie_cotangents(_affine((x - _by_channel(running_mean, x)) * scale, weight, bias))
    axes = (-x.ndim, *range(2 - x.ndim, 0))
    n = math.prod(x.shape[a] for a in axes)
    if n == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {x.shape}")
    if running_mean is not None or running_var is not None:
        plain = x.detach()
        _update(running_mean, reductions.mean(plain, axes), momentum)
        _update(running_var, reductions.var(plain, axes), momentum)
    return tie_cotangents(_affine(_standardized(x, axes, eps, "NativeBatchNormBackward0"), weight, bias))


@op(sample="rand(2, 3, 4)")
@takes_tensors
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Compute :func:`batch_norm`, with each example's own mean and variance over the axes after the channels."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    x = tensor_of("instance_norm", input, "f")
    axes = tuple(range(2 - x.ndim, 0))
    if math.prod(x.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {x.shape}")
    _check_channels(x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if running_mean is not None or running_var is not None:
        plain = x.detach()
        _update(running_mean, reductions.mean(reductions.mean(plain, axes), 0), momentum)
        _update(running_var, reductions.mean(reductions.var(plain, axes), 0), momentum)
    out = _standardized(x, axes, eps, "NativeBatchNormBackward0")
    return tie_cotangents(_affine(out, _by_channel(weight, x), _by_channel(bias, x)))


@op("nn.functional.group_norm group_norm", sample="rand(2, 4, 3), 2")
@takes_tensors
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize groups of channels to mean 0 and standard deviation 1; multiply by weight, add bias per channel."""
    x = tensor_of("group_norm", input, "f")
    if x.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    if not isinstance(num_groups, int) or num_groups < 1:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if x.shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(x.shape)} and num_groups={num_groups}"
        )
    _check_channels(x, weight=weight, bias=bias)
    grouped = x.reshape(x.shape[0], num_groups, x.numel() // (x.shape[0] * num_groups) if x.numel() else 0)
    out = moves.unsafe_view(_standardized(grouped, (-1,), eps, "NativeGroupNormBackward0"), shape=tuple(x.shape))
    return _affine(out, _by_channel(weight, x), _by_channel(bias, x))


@op()
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: object = None) -> Tensor:
    """Divide vectors along ``dim`` by their p-norm (at least ``eps``)."""
    size = ew.clamp(reductions.norm(input, p, dim, True), min=eps)
    return ew.true_divide(input, size, out=out)


# -- similarity ------------------------------------------------------------------------------------------------------


@op("nn.functional.cosine_similarity cosine_similarity")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along ``dim``; norms count as at least ``eps``."""
    name = "cosine_similarity"
    x1, x2 = promote_pair(name, *broadcast_pair(name, tensor_of(name, x1), tensor_of(name, x2)), "fc")
    units = [x / clamp_value(reductions.norm(x, 2, dim, True), eps) for x in (x1, x2)]
    return reductions.sum(ew.mul(*units), dim)


@op("nn.functional.pairwise_distance pairwise_distance")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the p-norm of x1 − x2 + eps along the last axis."""
    return reductions.norm(x1 - x2 + eps, p, -1, keepdim)


# -- attention -------------------------------------------------------------------------------------------------------


@op(sample="rand(2, 4, 3), rand(2, 5, 3), rand(2, 5, 3)")
@takes_tensors
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return softmax(query @ keyᵀ·scale + mask) @ value.

    Args:
        query: (..., L, E). key: (..., S, E). value: (..., S, V).
        attn_mask: (..., L, S): booleans (True attends) or numbers to add. A fully masked row gives 0.
        is_causal: position i attends to positions up to i.
        scale: 1/√E by default.
        enable_gqa: key and value have fewer heads (axis −3); each is shared by several heads of the query.
    """
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        heads = query.shape[-3]
        key = joining.repeat_interleave(key, heads // key.shape[-3], -3)
        value = joining.repeat_interleave(value, heads // value.shape[-3], -3)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = products.matmul(query * factor, shaping.transpose(key, -2, -1))
    if is_causal:
        attn_mask = constant_on_device_of(query, np.tri(query.shape[-2], key.shape[-2], dtype=bool))
    if attn_mask is None:
        weights = reductions.softmax(scores, -1)
    else:
        if attn_mask.dtype == np.bool_:
            scores = ew.where(attn_mask, scores, -math.inf)
        else:
            scores = scores + attn_mask
        weights = _safe_softmax(scores)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return products.matmul(weights, value)


def _safe_softmax(scores: Tensor) -> Any:
    """Return the softmax over the last axis, with zeros for rows of only −∞."""
    plain = scores.detach()
    masked = reductions.all(plain == -math.inf, -1, True)
    if type(masked._raw) is ndarray and not masked._raw.any():
        return reductions.softmax(scores, -1)
    return ew.where(masked, 0.0, reductions.softmax(ew.where(masked, 0.0, scores), -1))
