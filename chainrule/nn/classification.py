"""Losses of scores and probabilities of classes, with PyTorch's names, arguments and reductions.

``chainrule.nn.functional`` exports these functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.functions import binary
from chainrule._src.arrays.any_array import call_as_one_operation, is_array, lies_within
from chainrule._src.arrays.types import AnyArray, DTypeLike, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import reductions
from chainrule._src.ops.arguments import takes_tensors, tensor_of
from chainrule._src.table import indexing
from chainrule._src.table import nn as primitives
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.protocol import as_array
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule.nn.reducing import reduce_loss, reduction_mode

ndarray = np.ndarray
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
_bce = binary(primitives.binary_cross_entropy)
_bce_logits = binary(primitives.binary_cross_entropy_with_logits)
_REDUCE = {"reduce": True}


def _classes(x: AnyArray, target: Tensor) -> Tensor:
    """Check the target's dtype and shape against scores (classes), (n, classes) or (n, classes, d...); return it."""
    if not isinstance(target, Tensor):
        target = wrap(as_array(target))
    if target.dtype.kind not in "iu" or target.dtype not in (np.int64, np.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {_dtype_name(target.dtype)}: classes are int64 indices; "
            "class probabilities have the shape of the input"
        )
    if x.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {x.ndim})")
    if x.ndim == 1:
        if target.ndim > 0:
            raise RuntimeError(f"size mismatch (got input: {list(x.shape)}, target: {list(target.shape)})")
        return target
    if x.shape[0] != (target.shape[0] if target.ndim else 1):
        raise ValueError(
            f"Expected input batch_size ({x.shape[0]}) to match target batch_size "
            f"({target.shape[0] if target.ndim else 1})."
        )
    want = [x.shape[0], *x.shape[2:]]
    if list(target.shape) != want:
        text = f"Expected target size {want}, got {list(target.shape)}"
        raise RuntimeError(errors.target_size(text, target, want))
    return target


def _dtype_name(dtype: Any) -> str:
    return {"float32": "Float", "float64": "Double", "int32": "Int", "bool": "Bool", "float16": "Half"}.get(
        dtype.name, dtype.name
    )


def _as_rows(x: Any) -> Tensor:
    """Return scores with the classes in the last axis, one row per target."""
    if x.ndim == 2:
        return x
    if x.ndim == 1:
        return x.reshape(1, -1)
    return x.movedim(1, -1).reshape(-1, x.shape[1])


def _class_weights(weight: Any, classes: int) -> Tensor | None:
    if weight is None:
        return None
    if tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )
    if isinstance(weight, Tensor) and weight._edge is not None and is_recording():
        raise RuntimeError(
            "The function 'nll_loss_forward' is not differentiable with respect to argument 'weight'. This input "
            "cannot have requires_grad True."
        )
    return weight if isinstance(weight, Tensor) else wrap(as_array(weight))


def _picks(
    target: Tensor, classes: int, weight: Tensor | None, ignore_index: int, mode: str, dtype: DTypeLike
) -> tuple[Any, Any]:
    """Return the target class of each row, and the factor of its logarithm.

    The factor is minus the class weight; a mean divides it by the sum of all weights.
    """
    index = target.reshape(-1)
    if not (
        is_array(index._raw) and (weight is None or is_array(weight._raw))
    ):  # inside a transformation the values cannot be read
        keep = index != ignore_index
        index = ew.where(keep, index, 0)
        weights = cast(keep, dtype)
        if weight is not None:
            weights = weights * indexing.take(weight, index, axis=-1)
        return index, -weights if mode != "mean" else -weights / reductions.sum(weights)
    index = index._raw
    if weight is None and call_as_one_operation(_all_count, index, classes, ignore_index):
        return index, (-1 / index.size if mode == "mean" and index.size else -1.0)
    given = None if weight is None else weight._raw
    return call_as_one_operation(_index_and_coef, index, classes, given, ignore_index, mode, dtype)


def _all_count(index: Any, classes: int, ignore_index: int) -> AnyArray:
    """Return whether all indices are valid classes and none equals ``ignore_index``."""
    low, high = (index.min(), index.max()) if index.size else (0, 0)
    return np.asarray(low >= 0 and high < classes and not (low <= ignore_index <= high))


def _index_and_coef(
    index: Any, classes: int, weight: AnyArray | None, ignore_index: int, mode: str, dtype: DTypeLike
) -> tuple[Any, Any]:
    inside = index.size == 0 or (index.min() >= 0 and index.max() < classes)
    keep = index != ignore_index
    if not inside:
        wrong = index[keep & ((index < 0) | (index >= classes))]
        if wrong.size:
            raise IndexError(
                f"Target {int(wrong[0])} is out of bounds: there are {classes} classes, from 0 to {classes - 1}."
            )
        index = np.where(keep, index, 0)
    weights = keep.astype(dtype)
    if weight is not None:
        weights *= weight[index]
    total = weights.sum() if mode == "mean" else 1
    return index, -weights / (total or 1)


def _from_picks(
    row: object, x: AnyArray, target: Tensor, weight: Tensor | None, ignore_index: int, mode: str
) -> Tensor:
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    index, coef = _picks(target, classes, weight, ignore_index, mode, x.dtype)
    loss: Tensor = bind(row, (_as_rows(x), index, coef), {"reduce": mode != "none"})
    if mode == "mean" and type(coef) is not Tensor and not (np.size(index) and np.any(coef)):
        return loss + math.nan  # the mean over no targets is nan and its gradient 0, as in PyTorch
    return loss if mode != "none" else loss.reshape(tuple(target.shape))


@op()
@takes_tensors
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: object = None,
    ignore_index: int = -100,
    reduce: object = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood −input[target]: log-probabilities (n, classes, d...), targets (n, d...).

    Args:
        weight: a weight for each class; the mean is then weighted.
        ignore_index: targets with this value do not count.
    """
    mode = reduction_mode(reduction, size_average, reduce)
    x = tensor_of("nll_loss", input, "f")
    target = _classes(x, target)
    weight = _class_weights(weight, x.shape[1] if x.ndim > 1 else x.shape[0])
    return _from_picks(primitives.nll_loss, x, target, weight, ignore_index, mode)


@op()
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: TensorLike | None = None,
    size_average: object = None,
    ignore_index: int = -100,
    reduce: object = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of the softmax of scores (classes,), (n, classes) or (n, classes, d...).

    Args:
        target: class indices of shape (n, d...), or class probabilities of the shape of the input.
        weight: a weight for each class; the mean over class indices is then weighted.
        ignore_index: targets with this value do not count.
        label_smoothing: the part of the target that is spread evenly over all classes, in [0, 1].

    >>> import chainrule as cr
    >>> cr.nn.functional.cross_entropy(cr.tensor([[0., 0.]]), cr.tensor([1]))
    tensor(0.6931)
    """
    if (
        type(input) is Tensor
        and type(target) is Tensor
        and reduction == "mean"
        and weight is None
        and not label_smoothing
        and size_average is None
        and reduce is None
    ):
        scores, index = input._raw, target._raw
        if (
            type(scores) is ndarray and type(index) is ndarray and scores.ndim == 2 and index.ndim == 1
            and index.dtype == np.int64 and (n := index.shape[0]) == scores.shape[0] and n
            and scores.dtype.kind == "f"
        ):  # fmt: skip
            low, high = np.minimum.reduce(index), np.maximum.reduce(index)
            if low >= 0 and high < scores.shape[1] and not low <= ignore_index <= high:
                return bind(primitives.cross_entropy, (input, index, -1 / n), _REDUCE)
    mode = reduction_mode(reduction, size_average, reduce)
    x = tensor_of("cross_entropy", input, "f")
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if not hasattr(target, "shape"):
        raise errors.target_type("cross_entropy", target)
    if tuple(x.shape) == tuple(target.shape):
        return _soft_cross_entropy(x, target, weight, mode, label_smoothing)
    target = _classes(x, target)
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    weight = _class_weights(weight, classes)
    if label_smoothing == 0:
        return _from_picks(primitives.cross_entropy, x, target, weight, ignore_index, mode)
    logs = reductions.log_softmax(_as_rows(x), -1)
    hard = _from_picks(primitives.nll_loss, logs, target.reshape(-1), weight, ignore_index, mode)
    keep = target.reshape(-1) != ignore_index
    smooth = -reductions.sum(logs if weight is None else logs * weight, -1)
    smooth = ew.where(keep, smooth, 0.0)
    if mode != "none":
        smooth = reductions.sum(smooth)
    if mode == "mean":
        if weight is None:
            count = reductions.sum(keep)
        else:
            count = reductions.sum(
                ew.where(keep, indexing.take(weight, ew.where(keep, target.reshape(-1), 0), axis=-1), 0.0)
            )
        smooth = smooth / count
    loss = hard * (1 - label_smoothing) + smooth * (label_smoothing / classes)
    return loss if mode != "none" else loss.reshape(tuple(target.shape))


def _soft_cross_entropy(x: Any, target: Any, weight: Any, mode: str, label_smoothing: float) -> Tensor:
    if target.dtype.kind != "f":
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype}: class indices have "
            "the shape of the input without its class axis"
        )
    axis = 1 if x.ndim > 1 else 0
    classes = x.shape[axis]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    terms = reductions.log_softmax(x, axis) * target
    if weight is not None:
        terms = terms * weight.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))
    if mode == "none":
        return -reductions.sum(terms, axis)
    total = -reductions.sum(terms)
    return total if mode == "sum" else total / (x.numel() / classes)


@op()
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of −y·log(x) − (1 − y)·log(1 − x), for probabilities x. Logarithms are at least −100."""
    mode = reduction_mode(reduction, size_average, reduce)
    x, y = tensor_of("binary_cross_entropy", input, "f"), tensor_of("binary_cross_entropy", target, "f")
    if tuple(x.shape) != tuple(y.shape):
        text = (
            f"Using a target size ({y.shape}) that is different to the input size ({x.shape}) is deprecated. Please "
            "ensure they have the same size"
        )
        raise ValueError(errors.target_size(text, target, x.shape))
    for name, z in (("input", x._raw), ("target", y._raw)):
        if is_array(z) and not lies_within(z, 0, 1):
            raise RuntimeError(
                f"all elements of {name} should be between 0 and 1. binary_cross_entropy_with_logits takes any scores for input."
            )
    loss = _bce(x, y)
    return reduce_loss(loss if weight is None else loss * weight, mode)


@op()
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross entropy of sigmoid(input), without overflow; ``pos_weight`` weights the positive term."""
    mode = reduction_mode(reduction, size_average, reduce)
    x, y = (
        tensor_of("binary_cross_entropy_with_logits", input, "f"),
        tensor_of("binary_cross_entropy_with_logits", target),
    )
    if tuple(x.shape) != tuple(y.shape):
        text = f"Target size ({y.shape}) must be the same as input size ({x.shape})"
        raise ValueError(errors.target_size(text, target, x.shape))
    if pos_weight is None:
        loss = _bce_logits(x, cast(y, x.dtype) if y.dtype.kind in "iub" else y)
    else:
        scale = (pos_weight - 1) * y + 1
        loss = (1 - y) * x - scale * log_sigmoid(x)
    return reduce_loss(loss if weight is None else loss * weight, mode)


def log_sigmoid(x: TensorLike) -> Tensor:
    return bind(primitives.log_sigmoid, (x,), {})
