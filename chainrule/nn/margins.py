"""Losses that leave a margin, with PyTorch's names, arguments and reductions."""

from __future__ import annotations

from typing import Any

from chainrule.core.tensor import Tensor
from chainrule.nn.classification import log_sigmoid
from chainrule.nn.reducing import mode_of, reduced
from chainrule.ops import elementwise as ew
from chainrule.ops import reductions


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of the input where the target is 1, and of max(0, margin − input) where it is −1."""
    mode = mode_of(reduction, size_average, reduce)
    far = ew.where(ew.ne(target, 1), ew.clamp(ew.sub(margin, input), min=0), 0.0)
    return reduced(ew.add(far, ew.where(ew.ne(target, -1), input, 0.0)), mode)


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
    mode = mode_of(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    loss = ew.add(ew.mul(ew.neg(target), ew.sub(input1, input2)), margin)
    return reduced(ew.clamp(loss, min=0), mode)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """The mean of log(1 + exp(−target·input)), for targets 1 and −1."""
    mode = mode_of(reduction, size_average, reduce)
    return reduced(ew.neg(log_sigmoid(ew.mul(target, input))), mode)


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
    mode = mode_of(reduction, size_average, reduce)

    def distance(a: Any, b: Any) -> Any:
        return reductions.norm(ew.add(ew.sub(a, b), eps), p, -1)

    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ew.minimum(far, distance(positive, negative))
    return reduced(ew.clamp(ew.add(ew.sub(near, far), margin), min=0), mode)
