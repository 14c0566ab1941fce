"""Margin losses, with PyTorch's names, arguments and reductions.

``chainrule.nn.functional`` exports these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.any_array import is_array, lies_within
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import gathering, reductions
from chainrule._src.ops.arguments import constant_on_device_of, numbers_of, takes_tensors, tensor_of
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.ties import tie_cotangents
from chainrule.nn.classification import log_sigmoid
from chainrule.nn.reducing import reduce_loss, reduction_mode


@op()
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of the input where the target is 1, and of max(0, margin − input) where it is −1."""
    mode = reduction_mode(reduction, size_average, reduce)
    far = ew.where(target != 1, ew.clamp(margin - input, min=0), 0.0)
    return reduce_loss(far + ew.where(target != -1, input, 0.0), mode)


@op()
@takes_tensors
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of max(0, −target·(input1 − input2) + margin): the target 1 ranks input1 higher, −1 input2."""
    mode = reduction_mode(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    loss = -target * (input1 - input2) + margin
    return reduce_loss(ew.clamp(loss, min=0), mode)


@op()
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: object = None, reduce: object = None, reduction: str = "mean"
) -> Tensor:
    """Return the mean of log(1 + exp(−target·input)), for targets 1 and −1."""
    mode = reduction_mode(reduction, size_average, reduce)
    return reduce_loss(-log_sigmoid(target * input), mode)


@op()
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the binary cross entropy of sigmoid(input), as a mean over the classes in the last axis."""
    mode = reduction_mode(reduction, size_average, reduce)
    yes, no = log_sigmoid(input), log_sigmoid(-input)
    loss = -(target * yes + (1 - target) * no)
    loss = loss if weight is None else loss * weight
    return reduce_loss(reductions.mean(loss, -1), mode)


@op(sample="rand(2, 3), tensor([0, 2])")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over the other classes of max(0, margin − input[target] + input)ᵖ.

    Args:
        input: (n, classes) or (classes,).
        target: (n,) classes, or one class.
        p: 1 or 2.
        weight: (classes,).
    """
    name = "multi_margin_loss"
    mode = reduction_mode(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    x, target = tensor_of(name, input, "f"), tensor_of(name, target)
    classes = _class_count(x)
    count = x.shape[0] if x.ndim == 2 else 1
    if target.ndim > 1 or target.numel() != count:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size {list(x.shape)}: give one class for each row"
        )
    if weight is not None and tuple(weight.shape) != (classes,):
        raise (ValueError if weight.ndim != 1 else RuntimeError)(
            f"weight must be one-dimensional; inconsistent weight size: expected {classes} but got {list(weight.shape)}"
        )
    rows, index = x.reshape(-1, classes), target.reshape(-1, 1)
    _check_range(name, index, classes)
    away = ew.clamp(rows - gathering.gather(rows, 1, index) + margin, min=0)
    away = ew.square(away) if p == 2 else away
    if weight is not None:
        away = away * weight[index]
    other = constant_on_device_of(index, np.arange(classes)) != index
    loss = reductions.sum(ew.where(other, away, 0.0), -1) / classes
    return tie_cotangents(reduce_loss(loss if x.ndim == 2 and target.ndim else loss.squeeze(0), mode))


def _class_count(x: Tensor) -> int:
    """Return the number of classes of scores (n, classes) or (classes,); a 0-d tensor has one."""
    if x.ndim > 2 or (x.ndim and not x.shape[-1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(x.shape)}"
        )
    return x.shape[-1] if x.ndim else 1


def _check_range(function: str, index: Any, classes: int) -> None:
    data = index._raw
    if is_array(data) and not lies_within(data, 0, classes - 1):
        raise RuntimeError(f"target out of range: {function} has classes from 0 to {classes - 1}")


@op(sample="rand(1, 3), tensor([[2, 0, -1]])")
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: object = None, reduce: object = None, reduction: str = "mean"
) -> Tensor:
    """Return Σ max(0, 1 − (input[y] − input[z])) / classes, over all labels y and all other classes z.

    Args:
        input: (n, classes) or (classes,).
        target: labels of the same shape. The labels of a row end at its first −1.
    """
    name = "multilabel_margin_loss"
    mode = reduction_mode(reduction, size_average, reduce)
    x, target = tensor_of(name, input, "f"), tensor_of(name, target)
    classes = _class_count(x)
    if tuple(target.shape) != tuple(x.shape):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(x.shape)}")
    numbers = numbers_of(target)
    if numbers is None:
        raise errors.data_dependent(target, f"the labels of {name}")
    labels = numbers.reshape(-1, classes)
    if labels.size and not (labels.min() >= -1 and labels.max() < classes):
        raise RuntimeError(f"target out of range: {name} has classes from 0 to {classes - 1}, and −1 ends a row")
    used = np.logical_and.accumulate(labels >= 0, axis=1)
    safe = np.where(used, labels, 0)
    is_label = np.zeros((labels.shape[0], classes + 1), bool)
    np.put_along_axis(is_label, np.where(used, labels, classes), True, 1)
    rows = x.reshape(-1, classes)
    picked = gathering.gather(rows, 1, constant_on_device_of(x, safe))
    gaps = ew.clamp(rows.unsqueeze(1) - picked.unsqueeze(2) + 1, min=0)  # (n, labels, classes)
    counted = used[:, :, None] & ~is_label[:, None, :classes]
    loss = reductions.sum(ew.where(constant_on_device_of(x, counted), gaps, 0.0), (1, 2)) / classes
    return tie_cotangents(reduce_loss(loss if x.ndim == 2 else loss.squeeze(0), mode))


@op(sample="rand(2, 3), rand(2, 3), tensor([1, -1])")
@takes_tensors
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of 1 − cos where the target is 1, and of max(0, cos − margin) where it is −1.

    Args:
        input1, input2: (n, width) with a target (n,), or (width,) with one number.
    """
    mode = reduction_mode(reduction, size_average, reduce)
    if target.ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        kind = "1D target tensor expects 2D" if target.ndim else "0D target tensor expects 1D"
        raise RuntimeError(
            f"{kind} input tensors, but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    eps = 1e-12
    along = reductions.sum(input1 * input2, -1)
    sizes = [reductions.sum(ew.square(x), -1) + eps for x in (input1, input2)]
    cosine = along / ew.sqrt(ew.mul(*sizes))
    same, far = 1 - cosine, ew.clamp(cosine - margin, min=0)
    zero = wrap(np.zeros((), cosine.dtype))
    return reduce_loss(ew.where(target == 1, same, zero) + ew.where(target == -1, far, zero), mode)


@op()
@takes_tensors
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute :func:`triplet_margin_loss`, with any distance; by default the 2-norm of the difference."""
    mode = reduction_mode(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    return reduce_loss(_triplet_loss(anchor, positive, negative, distance_function or _distance, margin, swap), mode)


def _distance(a: Tensor, b: Tensor, p: float = 2.0, eps: float = 1e-6) -> Tensor:
    return reductions.norm(a - b + eps, p, -1)


def _triplet_loss(anchor: Any, positive: Any, negative: Any, distance: Any, margin: float, swap: bool) -> Tensor:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ew.minimum(far, distance(positive, negative))
    return ew.clamp(near - far + margin, min=0)


@op()
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of max(0, d(anchor, positive) − d(anchor, negative) + margin), with the p-norm distance d."""
    mode = reduction_mode(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = partial(_distance, p=p, eps=eps)
    return reduce_loss(_triplet_loss(anchor, positive, negative, distance, margin, swap), mode)
