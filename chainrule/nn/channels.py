"""Channels: shuffled, traded for resolution, normalized by their neighbours, dropped as a whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule import errors, random
from chainrule.api.declare import op
from chainrule.core.dispatch import cast
from chainrule.core.tensor import Tensor
from chainrule.core.ties import tie
from chainrule.nn.pooling import avg_pool1d
from chainrule.ops import elementwise as ew
from chainrule.ops import joining, shaping
from chainrule.ops.arguments import takes_tensors, tensor_of
from chainrule.types.arrays import AnyArray

# -- moves -----------------------------------------------------------------------------------------------------------


def _image(function: str, input: Any) -> Any:
    x = tensor_of(function, input)
    if x.ndim < 3:
        raise RuntimeError(
            f"{function} expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)"
        )
    return x


def _factor(function: str, name: str, value: Any) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError(f"{function}(): argument '{name}' must be int, not {type(value).__name__}")
    if value <= 0:
        raise RuntimeError(f"{function} expects a positive {name}, but got {value}")
    return value.__index__()  # type: ignore[no-any-return]


@op("nn.functional.pixel_shuffle pixel_shuffle", sample="rand(1, 4, 2, 3), 2")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels as pixels: (..., c·r², h, w) becomes (..., c, h·r, w·r).

    >>> import chainrule as cr
    >>> cr.nn.functional.pixel_shuffle(cr.arange(4.).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    x, r = _image("pixel_shuffle", input), _factor("pixel_shuffle", "upscale_factor", upscale_factor)
    *lead, c, h, w = x.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    parts = x.reshape(*lead, c // (r * r), r, r, h, w)
    n = len(lead)
    moved = shaping.permute(parts, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return shaping.apart(moved.reshape(*lead, c // (r * r), h * r, w * r), x)


@op("nn.functional.pixel_unshuffle pixel_unshuffle", sample="rand(1, 2, 4, 6), 2")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of :func:`pixel_shuffle`: (..., c, h·r, w·r) becomes (..., c·r², h, w)."""
    x, r = _image("pixel_unshuffle", input), _factor("pixel_unshuffle", "downscale_factor", downscale_factor)
    *lead, c, h, w = x.shape
    for what, n in (("height", h), ("width", w)):
        if n % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but {n} is not divisible by {r}"
            )
    parts = x.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    moved = shaping.permute(parts, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return shaping.apart(moved.reshape(*lead, c * r * r, h // r, w // r), x)


@op("nn.functional.channel_shuffle channel_shuffle", sample="rand(1, 4, 2), 2")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels (axis 1) of the groups in turns: the first of each group, then the second of each."""
    x = tensor_of("channel_shuffle", input)
    if x.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}")
    groups = _factor("channel_shuffle", "groups", groups)
    n, c, *rest = x.shape
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return shaping.apart(shaping.transpose(x.reshape(n, groups, c // groups, *rest), 1, 2).reshape(n, c, *rest), x)


# -- normalization ---------------------------------------------------------------------------------------------------


@op(sample="rand(1, 4, 2), 3")
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha·mean(x² of ``size`` neighbouring channels))^beta; outside the channels there are zeros."""
    x = tensor_of("local_response_norm", input, "iuf")
    if x.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {x.ndim} dimensions)")
    if not x.numel():
        return x  # type: ignore[no-any-return]
    squares = joining.pad(shaping.movedim(ew.square(x), 1, -1), (size // 2, (size - 1) // 2))
    flat = squares.reshape(-1, 1, squares.shape[-1])
    means = avg_pool1d(flat, size, 1).reshape(*squares.shape[:-1], x.shape[1])
    return ew.true_divide(x, ew.pow(ew.add(ew.mul(shaping.movedim(means, -1, 1), alpha), k), beta))  # type: ignore[no-any-return]


# -- dropout ---------------------------------------------------------------------------------------------------------


def _probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _kept(x: AnyArray, shape: tuple[int, ...], p: float) -> Any:
    """Ones with probability 1 − p, else zeros."""
    return cast(ew.ge(random.rand(*shape), p), x.dtype)


def _times(x: Any, factor: Any, inplace: bool) -> Any:
    return x.mul_(factor) if inplace else ew.mul(x, factor)


def _whole_channels(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    _probability(p)
    if not training or p == 0:
        return input
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    return _times(input, ew.mul(_kept(input, shape, p), 1 / (1 - p) if p < 1 else 0.0), inplace)  # type: ignore[no-any-return]


@op()
@takes_tensors
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each channel of (n, channels, length), or without n, set to 0 with probability p, the others divided by 1 − p."""
    _probability(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input")
    if input.ndim == 3:
        return _whole_channels(input, p, training, inplace)
    return _whole_channels(input.unsqueeze(0), p, training, inplace).squeeze(0)


@op()
@takes_tensors
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each channel of (n, channels, height, width) set to 0 with probability p, the others divided by 1 − p."""
    if input.ndim != 4:
        errors.warn(
            f"dropout2d: Received a {input.ndim}-D input: its first two axes count as batch and channels. Use dropout "
            "for elements, dropout1d for signals."
        )
    return _whole_channels(input, p, training, inplace)


@op()
@takes_tensors
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each channel of (n, channels, depth, height, width) set to 0 with probability p, the others divided by 1 − p."""
    if input.ndim not in (4, 5):
        errors.warn(
            f"dropout3d: Received a {input.ndim}-D input: its first two axes count as batch and channels. Use dropout "
            "for elements."
        )
    if input.ndim == 4:
        return _whole_channels(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return _whole_channels(input, p, training, inplace)


#: What selu tends to for very negative numbers; dropped elements become that (Klambauer and others, 2017).
_LOW = -1.7580993408473766


def _alpha(input: Tensor, p: float, shape: tuple[int, ...], inplace: bool) -> Tensor:
    if p == 1:
        return _times(input, 0.0, inplace)  # type: ignore[no-any-return]
    a = 1 / math.sqrt((1 + p * _LOW * _LOW) * (1 - p))
    keep = _kept(input, shape, p)
    shift = ew.add(ew.mul(ew.sub(keep, 1), -_LOW * a), -_LOW * a * p)
    out = _times(input, ew.mul(keep, a), inplace)
    return out.add_(shift) if inplace else ew.add(out, shift)  # type: ignore[no-any-return]


@op("nn.functional.alpha_dropout alpha_dropout")
@takes_tensors
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Elements set to selu's lower limit with probability p; then scaled so that mean 0 and variance 1 stay."""
    _probability(p)
    if not training or p == 0:
        return input
    return _alpha(input, p, tuple(input.shape), inplace)


@op("nn.functional.feature_alpha_dropout feature_alpha_dropout")
@takes_tensors
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """As :func:`alpha_dropout`, for whole channels (axis 1)."""
    _probability(p)
    if not training or p == 0:
        return input
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _alpha(input, p, (*input.shape[:2], *(1,) * (input.ndim - 2)), inplace)


@op("nn.functional.rrelu rrelu")
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """x where it is positive, else x times a random slope between the two bounds; their mean if not ``training``."""
    x = tensor_of("rrelu", input, "f")
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound: got {lower} and {upper}")
    if not training:
        slope: Any = np.asarray((lower + upper) / 2, x.dtype)
    else:
        slope = cast(ew.add(ew.mul(random.rand(*x.shape), upper - lower), lower), x.dtype)
    factor = ew.where(ew.gt(x.detach(), 0), 1.0, slope)
    return tie(_times(x, cast(factor, x.dtype), inplace))
