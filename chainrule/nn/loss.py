"""Losses, with PyTorch's names, arguments and reductions."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core import promotion
from chainrule.core.dispatch import bind, cast
from chainrule.core.faces import binary, nary, new
from chainrule.core.modes import SPECIAL, recording
from chainrule.core.node import Node, next_seq
from chainrule.core.tensor import Tensor, wrap
from chainrule.ops import elementwise as ew
from chainrule.ops import reductions, shaping
from chainrule.ops.arguments import tensor_of
from chainrule.table import indexing
from chainrule.table import nn as rows

ndarray = np.ndarray
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
_huber, _bce, _bce_logits = (
    nary(rows.huber_loss),
    binary(rows.binary_cross_entropy),
    binary(rows.binary_cross_entropy_with_logits),
)
_MEANS = tuple({"ndim": n, "mean": True} for n in range(9))
_REDUCE = {"reduce": True}
_MSE = rows.mse_loss


# -- reductions ------------------------------------------------------------------------------------------------------


def _mode(reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """What ``reduction``, or the older two arguments, ask for."""
    if size_average is not None or reduce is not None:
        average, total = size_average is None or size_average, reduce is None or reduce
        reduction = "mean" if average and total else "sum" if total else "none"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=3,
        )
    if reduction not in ("none", "mean", "sum"):
        raise errors.reduction_name(reduction)
    return reduction


def _reduced(loss: Any, mode: str) -> Tensor:
    return loss if mode == "none" else reductions.mean(loss) if mode == "mean" else reductions.sum(loss)


def _weighted(loss: Any, weight: Any, input: Any, mode: str) -> Tensor:
    """The weighted loss; its mean is over the weights."""
    if weight is None:
        return _reduced(loss, mode)
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")
    loss = ew.mul(loss, weight)
    if mode == "mean":
        return ew.true_divide(reductions.sum(loss), reductions.sum(weight))  # type: ignore[no-any-return]
    return _reduced(loss, mode)


def stretched(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Both operands in the shape that they broadcast to."""
    try:
        shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    except ValueError:
        raise errors.not_broadcastable(name, x, y) from None
    return shaping.broadcast_to(x, shape), shaping.broadcast_to(y, shape)


def _pair(name: str, input: Any, target: Any) -> tuple[Any, Any]:
    """Both operands in one dtype and shape, with PyTorch's warning where the shapes differed."""
    if not hasattr(target, "dtype"):
        raise errors.target_type(name, target)
    x, y = tensor_of(name, input), tensor_of(name, target)
    if tuple(x.shape) != tuple(y.shape):
        errors.warn_target_size(x, y)
        x, y = stretched(name, x, y)
    if x.dtype != y.dtype:
        dtype = promotion.result_dtype(x.dtype, not x.ndim, y.dtype, not y.ndim)
        x, y = cast(x, dtype), cast(y, dtype)
    tensor_of(name, x, "f")
    return x, y


# -- regression ------------------------------------------------------------------------------------------------------


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    """The mean square of input − target.

    Args:
        reduction: "mean", "sum" or "none".
        weight: of the shape of the input; the mean is then weighted.

    >>> import chainrule as cr
    >>> cr.nn.functional.mse_loss(cr.tensor([1., 2.]), cr.tensor([1., 4.]))
    tensor(2.)
    """
    if (
        type(input) is Tensor
        and type(target) is Tensor
        and reduction == "mean"
        and weight is None
        and size_average is None
        and reduce is None
        and not SPECIAL
    ):
        x, y = input._data, target._data
        if (
            type(x) is ndarray and type(y) is ndarray and ((dtype := x.dtype) is float32 or dtype is float64)
            and y.dtype is dtype and x.shape == y.shape and (ndim := x.ndim) < 9
        ):  # fmt: skip
            ex, ey = input._edge, target._edge
            if ex is not None or ey is not None:
                flat = (x - y).reshape(-1)
                node = Node()
                node.prim = _MSE
                node.pullback = _MSE.pullback  # type: ignore[assignment]
                node.params = _MEANS[ndim]
                node.edges = (ex, ey)
                node.fits = None
                node.hooks = None
                node.saved = (x, y)
                node.seq = next_seq()
                tensor = new(Tensor)
                tensor._data = np.asarray(flat.dot(flat) / (x.size or math.nan), dtype)
                tensor._edge = node
                return tensor
    x, y = _pair("mse_loss", input, target)
    mode = _mode(reduction, size_average, reduce)
    if weight is not None or mode == "none":
        return _weighted(ew.square(ew.sub(x, y)), weight, input, mode)
    return bind(_MSE, (x, y), {"ndim": x.ndim, "mean": mode == "mean"})  # type: ignore[no-any-return]


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    """The mean of |input − target|."""
    x, y = _pair("l1_loss", input, target)
    return _weighted(ew.abs(ew.sub(x, y)), weight, input, _mode(reduction, size_average, reduce))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The mean of d²/(2·beta) where d = |input − target| is under beta, and of d − beta/2 beyond."""
    x, y = _pair("smooth_l1_loss", input, target)
    mode = _mode(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    loss = ew.abs(ew.sub(x, y)) if beta == 0 else _huber(x, y, delta=beta)
    return _reduced(loss if beta in (0, 1) else ew.true_divide(loss, beta), mode)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Tensor:
    """The mean of d²/2 where d = |input − target| is under delta, and of delta·(d − delta/2) beyond."""
    x, y = _pair("huber_loss", input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    loss = _huber(x, y, delta=delta)
    if weight is None:
        return _reduced(loss, _mode(reduction))
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")
    return _reduced(ew.mul(loss, weight), _mode(reduction))  # unlike the others, not over the weights


# -- classification --------------------------------------------------------------------------------------------------


def _classes(x: Any, target: Any) -> Any:
    """Check the shapes of scores (classes), (n, classes) or (n, classes, d...) and targets; returns the target."""
    if not isinstance(target, Tensor):
        target = wrap(np.asarray(target))
    if target.dtype.kind not in "iu" or target.dtype not in (np.int64, np.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {_word(target.dtype)}: classes are int64 indices; "
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
        raise RuntimeError(f"Expected target size {want}, got {list(target.shape)}")
    return target


def _word(dtype: Any) -> str:
    return {"float32": "Float", "float64": "Double", "int32": "Int", "bool": "Bool", "float16": "Half"}.get(
        str(dtype), str(dtype)
    )


def _as_rows(x: Any) -> Any:
    """Scores with their classes last, one row per target."""
    if x.ndim == 2:
        return x
    if x.ndim == 1:
        return x.reshape(1, -1)
    return x.movedim(1, -1).reshape(-1, x.shape[1])


def _class_weights(weight: Any, classes: int) -> Any:
    if weight is None:
        return None
    if tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor "
            "of shape: "
            f"{list(weight.shape)}"
        )
    if isinstance(weight, Tensor) and weight._edge is not None and recording():
        raise RuntimeError(
            "The function 'nll_loss_forward' is not differentiable with respect to argument 'weight'. This input "
            "cannot have "
            "requires_grad True."
        )
    return weight if isinstance(weight, Tensor) else wrap(np.asarray(weight))


def _picks(target: Any, classes: int, weight: Any, ignore_index: int, mode: str, dtype: Any) -> tuple[Any, Any]:
    """For each row the class to pick, and the factor of its logarithm: minus its weight, over all weights if a mean."""
    index = target.reshape(-1)
    plain = type(index._data) is ndarray and (weight is None or type(weight._data) is ndarray)
    if not plain:  # inside a transformation there are no numbers to look at
        keep = ew.ne(index, ignore_index)
        index = ew.where(keep, index, 0)
        weights = cast(keep, dtype)
        if weight is not None:
            weights = ew.mul(weights, indexing.take(weight, index, axis=-1))
        return index, ew.neg(weights) if mode != "mean" else ew.true_divide(ew.neg(weights), reductions.sum(weights))
    index = index._data
    low, high = (index.min(), index.max()) if index.size else (0, 0)
    inside = low >= 0 and high < classes
    if inside and weight is None and not (low <= ignore_index <= high):
        return index, (-1 / index.size if mode == "mean" and index.size else -1.0)
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
        weights *= weight._data[index]
    total = weights.sum() if mode == "mean" else 1
    return index, -weights / (total or 1)


def _from_picks(row: Any, x: Any, target: Any, weight: Any, ignore_index: int, mode: str) -> Tensor:
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    index, coef = _picks(target, classes, weight, ignore_index, mode, x.dtype)
    loss: Tensor = bind(row, (_as_rows(x), index, coef), {"reduce": mode != "none"})
    if mode == "mean" and type(coef) is not Tensor and not (np.size(index) and np.any(coef)):
        return ew.add(loss, math.nan)  # a mean of nothing; its gradient is 0, as in PyTorch
    return loss if mode != "none" else loss.reshape(tuple(target.shape))


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood −input[target], for log-probabilities (n, classes, d...) and classes (n, d...).

    Args:
        weight: one for each class; the mean is then weighted.
        ignore_index: targets that do not count.
    """
    mode = _mode(reduction, size_average, reduce)
    x = tensor_of("nll_loss", input, "f")
    target = _classes(x, target)
    weight = _class_weights(weight, x.shape[1] if x.ndim > 1 else x.shape[0])
    return _from_picks(rows.nll_loss, x, target, weight, ignore_index, mode)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of the softmax of scores (classes,), (n, classes) or (n, classes, d...).

    Args:
        target: class indices of shape (n, d...), or class probabilities of the shape of the input.
        weight: one for each class; the mean over class indices is then weighted.
        ignore_index: indices that do not count.
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
        scores, index = input._data, target._data
        if (
            type(scores) is ndarray and type(index) is ndarray and scores.ndim == 2 and index.ndim == 1
            and index.dtype == np.int64 and (n := index.shape[0]) == scores.shape[0] and n
            and scores.dtype.kind == "f"
        ):  # fmt: skip
            low, high = np.minimum.reduce(index), np.maximum.reduce(index)
            if low >= 0 and high < scores.shape[1] and not low <= ignore_index <= high:
                return bind(rows.cross_entropy, (input, index, -1 / n), _REDUCE)  # type: ignore[no-any-return]
    mode = _mode(reduction, size_average, reduce)
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
        return _from_picks(rows.cross_entropy, x, target, weight, ignore_index, mode)
    logs = reductions.log_softmax(_as_rows(x), -1)
    hard = _from_picks(rows.nll_loss, logs, target.reshape(-1), weight, ignore_index, mode)
    keep = ew.ne(target.reshape(-1), ignore_index)
    smooth = ew.neg(reductions.sum(logs if weight is None else ew.mul(logs, weight), -1))
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
        smooth = ew.true_divide(smooth, count)
    loss = ew.add(ew.mul(hard, 1 - label_smoothing), ew.mul(smooth, label_smoothing / classes))
    return loss if mode != "none" else loss.reshape(tuple(target.shape))


def _soft_cross_entropy(x: Any, target: Any, weight: Any, mode: str, label_smoothing: float) -> Tensor:
    if target.dtype.kind != "f":
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype}: class indices "
            "have the shape of "
            "the input without its class axis"
        )
    axis = 1 if x.ndim > 1 else 0
    classes = x.shape[axis]
    if label_smoothing:
        target = ew.add(ew.mul(target, 1 - label_smoothing), label_smoothing / classes)
    terms = ew.mul(reductions.log_softmax(x, axis), target)
    if weight is not None:
        terms = ew.mul(terms, weight.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim))))
    if mode == "none":
        return ew.neg(reductions.sum(terms, axis))  # type: ignore[no-any-return]
    total = ew.neg(reductions.sum(terms))
    return total if mode == "sum" else ew.true_divide(total, x.numel() / classes)  # type: ignore[no-any-return]


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of −y·log(x) − (1 − y)·log(1 − x), for probabilities x; logarithms are limited to −100 from below."""
    mode = _mode(reduction, size_average, reduce)
    x, y = tensor_of("binary_cross_entropy", input, "f"), tensor_of("binary_cross_entropy", target, "f")
    if tuple(x.shape) != tuple(y.shape):
        raise ValueError(
            f"Using a target size ({y.shape}) that is different to the input size ({x.shape}) is deprecated. Please "
            "ensure they "
            "have the same size."
        )
    for name, z in (("input", x._data), ("target", y._data)):
        if type(z) is ndarray and z.size and not (z.min() >= 0 and z.max() <= 1):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    loss = _bce(x, y)
    return _reduced(loss if weight is None else ew.mul(loss, weight), mode)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Tensor:
    """The binary cross entropy of sigmoid(input), without overflow. ``pos_weight`` multiplies the positive part."""
    mode = _mode(reduction, size_average, reduce)
    x, y = (
        tensor_of("binary_cross_entropy_with_logits", input, "f"),
        tensor_of("binary_cross_entropy_with_logits", target),
    )
    if tuple(x.shape) != tuple(y.shape):
        raise ValueError(f"Target size ({y.shape}) must be the same as input size ({x.shape})")
    if pos_weight is None:
        loss = _bce_logits(x, cast(y, x.dtype) if y.dtype.kind in "iub" else y)
    else:
        scale = ew.add(ew.mul(ew.sub(pos_weight, 1), y), 1)
        loss = ew.sub(ew.mul(ew.sub(1, y), x), ew.mul(scale, _log_sigmoid(x)))
    return _reduced(loss if weight is None else ew.mul(loss, weight), mode)


def _log_sigmoid(x: Any) -> Any:
    return bind(rows.log_sigmoid, (x,), {})


# -- distributions ---------------------------------------------------------------------------------------------------


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback–Leibler divergence target·(log(target) − input), for log-probabilities ``input``.

    Args:
        reduction: "batchmean" divides the sum by the length of axis 0, as the definition does; "mean", "sum", "none".
        log_target: the target holds log-probabilities, too.
    """
    if size_average is None and reduce is None and reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' "
            "divides only by the "
            "batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
            "'batchmean' in "
            "the next major release.",
            stacklevel=2,
        )
    batch = reduction == "batchmean"
    mode = _mode("sum" if batch else reduction, size_average, reduce)
    x, y = tensor_of("kl_div", input), tensor_of("kl_div", target)
    loss = ew.mul(ew.exp(y), ew.sub(y, x)) if log_target else ew.sub(ew.xlogy(y, y), ew.mul(y, x))
    total = _reduced(loss, mode)
    return ew.true_divide(total, x.shape[0]) if batch and x.ndim else total  # type: ignore[no-any-return]


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The mean of (log(var) + (input − target)²/var) / 2, where var is at least ``eps``; ``full`` adds log(2π)/2."""
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = ew.mul(input.detach(), 0.0) + var
    elif type(var._data) is ndarray and (var._data < 0).any():
        raise ValueError("var has negative entry/entries")
    shape, other = tuple(input.shape), tuple(var.shape)
    if shape != other:
        if shape[:-1] == other:
            var = var.unsqueeze(-1)
        elif len(shape) != len(other) or sum(b for a, b in zip(shape, other, strict=True) if a != b) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = at_least(var, eps)
    away = ew.sub(input, target)
    loss = ew.mul(ew.add(ew.log(var), ew.true_divide(ew.square(away), var)), 0.5)
    return _reduced(ew.add(loss, 0.5 * math.log(2 * math.pi)) if full else loss, reduction)


def at_least(x: Any, low: float) -> Any:
    """The elements, limited from below; the gradient passes as if they were not."""
    plain = x.detach()
    if type(plain._data) is ndarray and (plain._data >= low).all():
        return x
    return ew.add(x, ew.sub(ew.clamp(plain, min=low), plain))


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of exp(input) − target·input; without ``log_input`` of input − target·log(input + eps).

    ``full`` adds Stirling's approximation of log(target!) for targets over 1.
    """
    mode = _mode(reduction, size_average, reduce)
    if log_input:
        loss = ew.sub(ew.exp(input), ew.mul(target, input))
    else:
        loss = ew.sub(input, ew.mul(target, ew.log(ew.add(input, eps))))
    if full:
        big = ew.gt(target, 1)
        safe = ew.where(big, target, 1.0)
        stirling = ew.add(ew.sub(ew.mul(safe, ew.log(safe)), safe), ew.mul(ew.log(ew.mul(safe, 2 * math.pi)), 0.5))
        loss = ew.add(loss, ew.where(big, stirling, 0.0))
    return _reduced(loss, mode)


# -- margins ---------------------------------------------------------------------------------------------------------


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of the input where the target is 1, and of max(0, margin − input) where it is −1."""
    mode = _mode(reduction, size_average, reduce)
    far = ew.where(ew.ne(target, 1), ew.clamp(ew.sub(margin, input), min=0), 0.0)
    return _reduced(ew.add(far, ew.where(ew.ne(target, -1), input, 0.0)), mode)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of max(0, −target·(input1 − input2) + margin): the target 1 ranks input1 higher, −1 input2."""
    mode = _mode(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    loss = ew.add(ew.mul(ew.neg(target), ew.sub(input1, input2)), margin)
    return _reduced(ew.clamp(loss, min=0), mode)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """The mean of log(1 + exp(−target·input)), for targets 1 and −1."""
    mode = _mode(reduction, size_average, reduce)
    return _reduced(ew.neg(_log_sigmoid(ew.mul(target, input))), mode)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of max(0, d(anchor, positive) − d(anchor, negative) + margin), with d the p-norm of the difference."""
    mode = _mode(reduction, size_average, reduce)

    def distance(a: Any, b: Any) -> Any:
        return reductions.norm(ew.add(ew.sub(a, b), eps), p, -1)

    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ew.minimum(far, distance(positive, negative))
    return _reduced(ew.clamp(ew.add(ew.sub(near, far), margin), min=0), mode)
