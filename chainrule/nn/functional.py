"""``torch.nn.functional``: activations, losses and the functions behind layers."""

from __future__ import annotations

from chainrule import errors
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
from chainrule.nn.classification import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    nll_loss,
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
    hinge_embedding_loss,
    margin_ranking_loss,
    soft_margin_loss,
    triplet_margin_loss,
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
from chainrule.ops.joining import pad

__all__ = [
    "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "cosine_similarity",
    "cross_entropy", "dropout", "elu", "embedding", "gaussian_nll_loss", "gelu", "glu", "group_norm",
    "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss",
    "instance_norm", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid",
    "margin_ranking_loss", "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "poisson_nll_loss", "prelu", "relu", "relu6", "rms_norm", "scaled_dot_product_attention", "selu", "sigmoid",
    "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh",
    "tanhshrink", "threshold", "triplet_margin_loss",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name.startswith("__"):  # what the import system asks for
        raise AttributeError(name)
    raise errors.no_such_name(name, __all__, __name__)
