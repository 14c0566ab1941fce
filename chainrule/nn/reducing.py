"""Helpers of the losses: reductions, and promotion of the two operands to one dtype and shape.

The modules of losses call these functions.
"""

from __future__ import annotations

import numpy as np

from chainrule._src.arrays import promotion
from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.types import TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import reductions, shaping
from chainrule._src.ops.arguments import tensor_of
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray


def reduction_mode(reduction: str, size_average: object = None, reduce: object = None) -> str:
    """Return the reduction mode from ``reduction`` or the two deprecated arguments."""
    if size_average is not None or reduce is not None:
        average, total = size_average is None or size_average, reduce is None or reduce
        reduction = "mean" if average and total else "sum" if total else "none"
        errors.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    if reduction not in ("none", "mean", "sum"):
        raise errors.reduction_name(reduction)
    return reduction


def reduce_loss(loss: Tensor, mode: str) -> Tensor:
    return loss if mode == "none" else reductions.mean(loss) if mode == "mean" else reductions.sum(loss)


def apply_weights(loss: Tensor, weight: Tensor | None, input: Tensor) -> Tensor:
    """Multiply the loss of every element by its weight, if there are weights."""
    if weight is None:
        return loss
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")
    return loss * weight


def weighted_reduction(loss: Tensor, weight: Tensor | None, input: Tensor, mode: str) -> Tensor:
    """Return the weighted loss; the mean divides by the sum of the weights."""
    loss = apply_weights(loss, weight, input)
    if weight is not None and mode == "mean":
        return reductions.sum(loss) / reductions.sum(weight)
    return reduce_loss(loss, mode)


def broadcast_pair(name: str, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Broadcast both operands to their common shape."""
    try:
        shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    except ValueError:
        raise errors.not_broadcastable(name, x, y) from None
    return shaping.broadcast_to(x, shape), shaping.broadcast_to(y, shape)


def matched_pair(name: str, input: TensorLike, target: TensorLike, accepts: str = "f") -> tuple[Tensor, Tensor]:
    """Convert both operands to one dtype and shape; warn as PyTorch does if the shapes differ."""
    if not hasattr(target, "dtype"):
        raise errors.target_type(name, target)
    x, y = tensor_of(name, input), tensor_of(name, target)
    if tuple(x.shape) != tuple(y.shape):
        errors.warn_target_size(x, y)
        x, y = broadcast_pair(name, x, y)
    return promote_pair(name, x, y, accepts)


def promote_pair(name: str, x: Tensor, y: Tensor, accepts: str) -> tuple[Tensor, Tensor]:
    """Promote both operands to one dtype, and check that its kind is in ``accepts``."""
    if x.dtype != y.dtype:
        dtype = promotion.result_dtype(x.__numpy_dtype__, not x.ndim, y.__numpy_dtype__, not y.ndim)
        x, y = cast(x, dtype), cast(y, dtype)
    return tensor_of(name, x, accepts), y


def clamp_value(x: Tensor, low: float) -> Tensor:
    """Clamp the elements from below; the gradient is that of the identity."""
    plain = x.detach()
    if is_array(plain._raw) and (plain._raw >= low).all():
        return x
    return x + (ew.clamp(plain, min=low) - plain)
