"""``nn`` functions in PyTorch's top-level namespace, whose argument order differs from ``nn.functional``.

The top level of ``chainrule`` exports these functions.

Reductions are numbers (0: none, 1: mean, 2: sum) or names. PyTorch does not document these functions. Its declarations
state the mean as default, but it applies no reduction by default; neither does this module.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.arrays.types import ShapeLike
from chainrule._src.tape.tensor import Tensor
from chainrule.nn import classification, layers, margins, regression
from chainrule.nn import functional as F

_REDUCTIONS = ("none", "mean", "sum")


def _name_of(reduction: object) -> Any:
    """Return the name of a numeric reduction; other values are returned unchanged and checked by the loss."""
    return _REDUCTIONS[reduction] if isinstance(reduction, int) and 0 <= reduction < 3 else reduction


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """Compute :func:`nn.functional.embedding` of ``indices`` and ``weight``; a negative ``padding_idx`` means no padding."""
    padding = None if padding_idx < 0 else padding_idx
    return layers.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, cudnn_enabled: bool = False,
) -> Tensor:  # fmt: skip
    """Compute :func:`nn.functional.batch_norm`, with the weight and bias before the running statistics."""
    return layers.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool = False,
) -> Tensor:  # fmt: skip
    """Compute :func:`nn.functional.instance_norm`, with the weight and bias before the running statistics."""
    return layers.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: object = 0
) -> Tensor:
    """Compute :func:`nn.functional.binary_cross_entropy_with_logits`."""
    return classification.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_name_of(reduction), pos_weight=pos_weight
    )


def kl_div(input: Tensor, target: Tensor, reduction: object = 0, *, log_target: bool = False) -> Tensor:
    """Compute :func:`nn.functional.kl_div`, without ``"batchmean"``."""
    return regression.kl_div(input, target, reduction=_name_of(reduction), log_target=log_target)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: object
) -> Tensor:
    """Compute :func:`nn.functional.poisson_nll_loss`."""
    return regression.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_name_of(reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: object = 0) -> Tensor:
    """Compute :func:`nn.functional.hinge_embedding_loss`."""
    return margins.hinge_embedding_loss(input, target, margin, reduction=_name_of(reduction))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: object = 0
) -> Tensor:
    """Compute :func:`nn.functional.margin_ranking_loss`."""
    return margins.margin_ranking_loss(input1, input2, target, margin, reduction=_name_of(reduction))


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: object = 0
) -> Tensor:
    """Compute :func:`nn.functional.cosine_embedding_loss`."""
    return margins.cosine_embedding_loss(input1, input2, target, margin, reduction=_name_of(reduction))


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: object = 0,
) -> Tensor:  # fmt: skip
    """Compute :func:`nn.functional.triplet_margin_loss`."""
    return margins.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_name_of(reduction))


def adaptive_max_pool1d(input: Tensor, output_size: ShapeLike) -> tuple[Tensor, Tensor]:
    """Compute :func:`nn.functional.adaptive_max_pool1d` with ``return_indices=True``."""
    return F.adaptive_max_pool1d(input, output_size, return_indices=True)


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: object, padding: object, dilation: object, transposed: bool,
    output_padding: object, groups: int,
) -> Tensor:  # fmt: skip
    """Call ``conv1d`` … ``conv3d`` of :mod:`nn.functional`, or ``conv_transpose1d`` … ``3d``, by the axes of ``weight``."""
    axes = weight.dim() - 2
    if transposed:
        convolve = getattr(F, f"conv_transpose{axes}d")
        return convolve(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(F, f"conv{axes}d")(input, weight, bias, stride, padding, dilation, groups)
