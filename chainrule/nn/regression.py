"""Regression losses and divergences between distributions, with PyTorch's names, arguments and reductions.

``chainrule.nn.functional`` exports these functions.
"""

from __future__ import annotations

import math

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.functions import nary, new
from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.types import TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import takes_tensors, tensor_of
from chainrule._src.table import nn as primitives
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.eager import new_node
from chainrule._src.tape.modes import ACTIVE_MODES
from chainrule._src.tape.tensor import Tensor
from chainrule.nn.reducing import (
    apply_weights,
    clamp_value,
    matched_pair,
    reduce_loss,
    reduction_mode,
    weighted_reduction,
)

ndarray = np.ndarray
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
_huber = nary(primitives.huber_loss)
_MEANS = tuple({"ndim": n, "mean": True} for n in range(9))
_MSE = primitives.mse_loss


@op()
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: object = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean square of input − target.

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
        and not ACTIVE_MODES
    ):
        x, y = input._raw, target._raw
        if (
            type(x) is ndarray and type(y) is ndarray and ((dtype := x.dtype) is float32 or dtype is float64)
            and y.dtype is dtype and x.shape == y.shape and (ndim := x.ndim) < 9
        ):  # fmt: skip
            ex, ey = input._edge, target._edge
            if ex is not None or ey is not None:
                flat = (x - y).reshape(-1)
                tensor = new(Tensor)
                tensor._raw = np.asarray(flat.dot(flat) / (x.size or math.nan), dtype)
                tensor._edge = new_node(_MSE, _MEANS[ndim], (ex, ey), (x, y))
                return tensor
    x, y = matched_pair("mse_loss", input, target)
    mode = reduction_mode(reduction, size_average, reduce)
    if weight is not None or mode == "none":
        return weighted_reduction(ew.square(x - y), weight, input, mode)
    return bind(_MSE, (x, y), {"ndim": x.ndim, "mean": mode == "mean"})


@op()
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: object = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean of |input − target|."""
    x, y = matched_pair("l1_loss", input, target, "fc")
    return weighted_reduction(ew.abs(x - y), weight, input, reduction_mode(reduction, size_average, reduce))


@op()
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return the mean of d²/(2·beta) where d = |input − target| is less than beta, and of d − beta/2 elsewhere."""
    x, y = matched_pair("smooth_l1_loss", input, target)
    mode = reduction_mode(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    loss = ew.abs(x - y) if beta == 0 else _huber(x, y, delta=beta)
    return reduce_loss(loss if beta in (0, 1) else loss / beta, mode)


@op()
@takes_tensors
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Return the mean of d²/2 where d = |input − target| is less than delta, and of delta·(d − delta/2) elsewhere."""
    x, y = matched_pair("huber_loss", input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    loss = _huber(x, y, delta=delta)
    return reduce_loss(
        apply_weights(loss, weight, input), reduction_mode(reduction)
    )  # unlike the other losses, the mean does not divide by the weights


@op()
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: object = None,
    reduce: object = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return the Kullback–Leibler divergence target·(log(target) − input), for log-probabilities ``input``.

    Args:
        reduction: "batchmean" (the sum divided by the length of axis 0, the mathematical definition), "mean", "sum" or "none".
        log_target: the target holds log-probabilities, too.
    """
    if size_average is None and reduce is None and reduction == "mean":
        errors.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release."
        )
    batch = reduction == "batchmean"
    mode = reduction_mode("sum" if batch else reduction, size_average, reduce)
    x, y = tensor_of("kl_div", input), tensor_of("kl_div", target)
    loss = ew.exp(y) * (y - x) if log_target else ew.xlogy(y, y) - y * x
    total = reduce_loss(loss, mode)
    return total / x.shape[0] if batch and x.ndim else total


@op()
@takes_tensors
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: TensorLike, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Return the mean of (log(var) + (input − target)²/var) / 2, with var clamped at ``eps``; ``full`` adds log(2π)/2."""
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = (input.detach() * 0.0) + var
    else:
        var = tensor_of("gaussian_nll_loss", var)
        if is_array(var._raw) and (var._raw < 0).any():
            raise ValueError("var has negative entry/entries")
    shape, other = tuple(input.shape), tuple(var.shape)
    if shape != other:
        if shape[:-1] == other:
            var = var.unsqueeze(-1)
        elif len(shape) != len(other) or sum(b for a, b in zip(shape, other, strict=True) if a != b) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = clamp_value(var, eps)
    away = input - target
    loss = (ew.log(var) + ew.square(away) / var) * 0.5
    return reduce_loss(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@op()
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: object = None,
    eps: float = 1e-8,
    reduce: object = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of exp(input) − target·input; without ``log_input``, of input − target·log(input + eps).

    ``full`` adds Stirling's approximation of log(target!) for targets over 1.
    """
    mode = reduction_mode(reduction, size_average, reduce)
    if log_input:
        loss = ew.exp(input) - target * input
    else:
        loss = input - target * ew.log(input + eps)
    if full:
        big = target > 1
        safe = ew.where(big, target, 1.0)
        stirling = safe * ew.log(safe) - safe + ew.log(safe * (2 * math.pi)) * 0.5
        loss = loss + ew.where(big, stirling, 0.0)
    return reduce_loss(loss, mode)
