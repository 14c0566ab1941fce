"""What the losses share: their reductions, and their two operands in one dtype and shape."""

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


def mode_of(reduction: str, size_average: object = None, reduce: object = None) -> str:
    """What ``reduction``, or the older two arguments, ask for."""
    if size_average is not None or reduce is not None:
        average, total = size_average is None or size_average, reduce is None or reduce
        reduction = "mean" if average and total else "sum" if total else "none"
        errors.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    if reduction not in ("none", "mean", "sum"):
        raise errors.reduction_name(reduction)
    return reduction


def reduced(loss: Tensor, mode: str) -> Tensor:
    return loss if mode == "none" else reductions.mean(loss) if mode == "mean" else reductions.sum(loss)


def times_weights(loss: Tensor, weight: Tensor | None, input: Tensor) -> Tensor:
    """The loss of every element, times its weight if there are weights."""
    if weight is None:
        return loss
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")
    return loss * weight


def weighted(loss: Tensor, weight: Tensor | None, input: Tensor, mode: str) -> Tensor:
    """The weighted loss; its mean is over the weights."""
    loss = times_weights(loss, weight, input)
    if weight is not None and mode == "mean":
        return reductions.sum(loss) / reductions.sum(weight)
    return reduced(loss, mode)


def stretched(name: str, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands in the shape that they broadcast to."""
    try:
        shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    except ValueError:
        raise errors.not_broadcastable(name, x, y) from None
    return shaping.broadcast_to(x, shape), shaping.broadcast_to(y, shape)


def pair(name: str, input: TensorLike, target: TensorLike, accepts: str = "f") -> tuple[Tensor, Tensor]:
    """Both operands in one dtype and shape, with PyTorch's warning where the shapes differed."""
    if not hasattr(target, "dtype"):
        raise errors.target_type(name, target)
    x, y = tensor_of(name, input), tensor_of(name, target)
    if tuple(x.shape) != tuple(y.shape):
        errors.warn_target_size(x, y)
        x, y = stretched(name, x, y)
    return alike(name, x, y, accepts)


def alike(name: str, x: Tensor, y: Tensor, accepts: str) -> tuple[Tensor, Tensor]:
    """Both operands in one dtype, whose kind the function takes."""
    if x.dtype != y.dtype:
        dtype = promotion.result_dtype(x.__numpy_dtype__, not x.ndim, y.__numpy_dtype__, not y.ndim)
        x, y = cast(x, dtype), cast(y, dtype)
    return tensor_of(name, x, accepts), y


def at_least(x: Tensor, low: float) -> Tensor:
    """The elements, limited from below; the gradient passes as if they were not."""
    plain = x.detach()
    if is_array(plain._raw) and (plain._raw >= low).all():
        return x
    return x + (ew.clamp(plain, min=low) - plain)
