"""Dropout of elements or whole channels, and ``rrelu`` with its random slopes.

``chainrule.nn.functional`` exports these functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.types import TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import random
from chainrule._src.ops.arguments import takes_tensors, tensor_of
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.ties import tie_cotangents

#: The limit of selu at −∞, which replaces dropped elements in alpha dropout (Klambauer and others, 2017).
_SELU_LIMIT = -1.7580993408473766


def _mask_shape(x: Tensor, channels: bool) -> tuple[int, ...]:
    """Return the mask's shape: a number for each element, or for each channel (axis 1) of each example."""
    if channels and x.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*x.shape[:2], *(1,) * (x.ndim - 2)) if channels else tuple(x.shape)


def _mask(x: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    """Draw a mask of ones with probability 1 − p, else zeros."""
    return cast(random.rand(*shape, device=x.device) >= p, x.dtype)


def _times(x: Tensor, factor: TensorLike, inplace: bool) -> Tensor:
    return x.mul_(factor) if inplace else x * factor


def _drop(x: Tensor, p: float, training: bool, inplace: bool, channels: bool) -> Tensor:
    _check_probability(p)
    if not training or p == 0:
        return x
    return _times(x, _mask(x, p, _mask_shape(x, channels)) * (1 / (1 - p) if p < 1 else 0.0), inplace)


def _alpha_drop(x: Tensor, p: float, training: bool, inplace: bool, channels: bool) -> Tensor:
    _check_probability(p)
    if not training or p == 0:
        return x
    shape = _mask_shape(x, channels)
    if p == 1:
        return _times(x, 0.0, inplace)
    keep = _mask(x, p, shape)
    a = 1 / math.sqrt((1 + p * _SELU_LIMIT * _SELU_LIMIT) * (1 - p))
    shift = (keep - 1) * (-_SELU_LIMIT * a) + -_SELU_LIMIT * a * p
    out = _times(x, keep * a, inplace)
    return out.add_(shift) if inplace else out + shift


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


@op("nn.functional.dropout dropout")
@takes_tensors
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set each element to 0 with probability p and divide the others by 1 − p; return the input if not ``training``."""
    return _drop(input, p, training, inplace, False)


@op()
@takes_tensors
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set each channel of (n, channels, length), or without n, to 0 with probability p; divide the others by 1 − p."""
    _check_probability(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input")
    if input.ndim == 3:
        return _drop(input, p, training, inplace, True)
    return _drop(input.unsqueeze(0), p, training, inplace, True).squeeze(0)


@op()
@takes_tensors
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set each channel of (n, channels, height, width) to 0 with probability p; divide the others by 1 − p."""
    if input.ndim != 4:
        errors.warn(
            f"dropout2d: Received a {input.ndim}-D input: its first two axes count as batch and channels. Use dropout "
            "to drop elements, dropout1d for signals."
        )
    return _drop(input, p, training, inplace, True)


@op()
@takes_tensors
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set each channel of (n, channels, depth, height, width) to 0 with probability p; divide the others by 1 − p."""
    if input.ndim not in (4, 5):
        errors.warn(
            f"dropout3d: Received a {input.ndim}-D input: its first two axes count as batch and channels. Use dropout "
            "to drop elements."
        )
    if input.ndim == 4:
        return _drop(input.unsqueeze(0), p, training, inplace, True).squeeze(0)
    return _drop(input, p, training, inplace, True)


@op("nn.functional.alpha_dropout alpha_dropout", sample="rand(2, 3), training=True")
@takes_tensors
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Set elements to selu's lower limit with probability p, then scale to preserve mean 0 and variance 1."""
    return _alpha_drop(input, p, training, inplace, False)


@op("nn.functional.feature_alpha_dropout feature_alpha_dropout", sample="rand(2, 3), training=True")
@takes_tensors
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Compute :func:`alpha_dropout`, for whole channels (axis 1)."""
    return _alpha_drop(input, p, training, inplace, True)


@op("nn.functional.rrelu rrelu")
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return x where it is positive, else x times a random slope between the bounds (their mean if not ``training``)."""
    x = tensor_of("rrelu", input, "f")
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound: got {lower} and {upper}")
    if not training:
        slope: Any = np.asarray((lower + upper) / 2, x.dtype)
    else:
        slope = cast(random.rand(*x.shape) * (upper - lower) + lower, x.dtype)
    factor = ew.where(x.detach() > 0, 1.0, slope)
    return tie_cotangents(_times(x, cast(factor, x.dtype), inplace))
