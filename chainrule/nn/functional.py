"""``torch.nn.functional``: activations, losses and the functions behind layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule import errors
from chainrule.core.array import open_to_arrays
from chainrule.core.tensor import Tensor
from chainrule.nn.activation import (
    celu,
    elu,
    gelu,
    glu,
    gumbel_softmax,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)  # fmt: skip
from chainrule.nn.channels import (
    alpha_dropout,
    channel_shuffle,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    local_response_norm,
    pixel_shuffle,
    pixel_unshuffle,
    rrelu,
)  # fmt: skip
from chainrule.nn.classification import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    nll_loss,
)  # fmt: skip
from chainrule.nn.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    fold,
    unfold,
)  # fmt: skip
from chainrule.nn.layers import (
    batch_norm,
    bilinear,
    cosine_similarity,
    dropout,
    embedding,
    group_norm,
    instance_norm,
    layer_norm,
    linear,
    normalize,
    one_hot,
    pairwise_distance,
    rms_norm,
    scaled_dot_product_attention,
)  # fmt: skip
from chainrule.nn.margins import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)  # fmt: skip
from chainrule.nn.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)  # fmt: skip
from chainrule.nn.regression import (
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)  # fmt: skip
from chainrule.nn.resampling import (
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)  # fmt: skip
from chainrule.nn.sampling import (
    affine_grid,
    embedding_bag,
    grid_sample,
    pdist,
)  # fmt: skip
from chainrule.ops.joining import pad

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "channel_shuffle", "conv1d",
    "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "embedding",
    "embedding_bag", "feature_alpha_dropout", "fold", "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm",
    "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss",
    "instance_norm", "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "local_response_norm",
    "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d", "max_pool2d",
    "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad",
    "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6",
    "rms_norm", "rrelu", "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss",
    "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
    "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear",
    "upsample_nearest",
]  # fmt: skip


def _in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(input, *args, **kwargs, inplace=True)

    call.__name__ = call.__qualname__ = function.__name__ + "_"
    call.__doc__ = f"In-place form of :func:`{function.__name__}`."
    return call


celu_, elu_, hardtanh_, leaky_relu_ = _in_place(celu), _in_place(elu), _in_place(hardtanh), _in_place(leaky_relu)
relu_, rrelu_, selu_, threshold_ = _in_place(relu), _in_place(rrelu), _in_place(selu), _in_place(threshold)

open_to_arrays(globals(), __all__, ("chainrule.nn", "chainrule.ops"))


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
