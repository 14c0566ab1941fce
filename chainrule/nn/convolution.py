"""Convolutions, transposed convolutions, ``unfold`` and ``fold``, with PyTorch's names and arguments.

``chainrule.nn.functional`` exports these functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.api.declare import op, op_each_axes
from chainrule._src.arrays.types import AnyArray, Ints, ShapeLike
from chainrule._src.messages import errors
from chainrule._src.ops import joining
from chainrule._src.ops.arguments import tensor_of
from chainrule._src.table import convolution as primitives
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.ties import tie_cotangents
from chainrule.nn.spatial import add_batch_axis, each_axis, int_argument, tensor_argument


def _same_dtype(function: str, x: AnyArray, weight: Tensor, bias: Tensor | None) -> None:
    for what, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype != x.dtype:
            raise RuntimeError(
                f"Input type ({x.dtype}) and {what} type ({other.dtype}) should be the same: {function} computes in "
                f"one dtype. Convert with .to({np.result_type(x.dtype, other.dtype)})"
            )


def _check_windows(function: str, stride: Ints, padding: Ints, dilation: Ints) -> None:
    if min(stride) <= 0:
        raise RuntimeError(f"non-positive stride is not supported: {function} got stride {stride}")
    if min(padding) < 0:
        raise RuntimeError(f"negative padding is not supported: {function} got padding {padding}")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero: {function} got dilation {dilation}")


def _plus_bias(function: str, out: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if bias is None:
        return out
    channels = out.shape[1]
    if tuple(bias.shape) != (channels,):
        raise errors.convolution_bias(function, weight, bias, channels)
    return tie_cotangents(out + bias.reshape(channels, *(1,) * (out.ndim - 2)))


def _operands(
    function: str, axes: int, input: Tensor, weight: Tensor, bias: Tensor | None, groups: int
) -> tuple[Any, Any, Any, int, bool]:
    """Return the checked operands as tensors (x with a batch axis), and whether x had a batch axis."""
    x = tensor_of(function, input, "iufc")
    weight = tensor_argument(function, "weight", weight)
    bias = None if bias is None else tensor_argument(function, "bias", bias)
    groups = int_argument(function, "groups", groups)
    if weight.ndim != axes + 2:
        raise RuntimeError(
            f"expected {axes + 2}-dimensional weight for {function}, but got weight of size {list(weight.shape)}"
        )
    x, batch = add_batch_axis(function, x, axes)
    if 0 in weight.shape[2:]:
        raise RuntimeError(
            f"kernel size should be greater than zero: {function} got weight of size {list(weight.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported: {function} got groups={groups}")
    if weight.shape[0] % groups or weight.shape[0] < groups:
        raise errors.convolution_groups(function, weight, groups)
    _same_dtype(function, x, weight, bias)
    return x, weight, bias, groups, batch


@op_each_axes(
    "nn.functional.conv{}d conv{}d",
    ("rand(1, 2, 5), rand(3, 2, 3)", "rand(1, 2, 4, 5), rand(3, 2, 2, 3)", "rand(1, 1, 3, 3, 3), rand(2, 1, 2, 2, 2)"),
)
def convolve(
    axes: int, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: object = 1, padding: object = 0,
    dilation: object = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Return a convolution along one axis (strictly, a correlation: the weight is not flipped).

    Args:
        input: (n, channels, length), or without n.
        weight: (out, channels/groups, kernel).
        bias: (out,).
        stride, padding, dilation: an int or a tuple of one. ``padding`` may be "valid" or "same".
        groups: the number of groups that the channels are split into; each group is convolved separately.

    Returns:
        (n, out, windows).

    Raises:
        RuntimeError: the shapes or dtypes do not match, or the kernel is larger than the input.

    >>> import chainrule as cr
    >>> cr.nn.functional.conv1d(cr.tensor([[[1., 2., 4., 8.]]]), cr.tensor([[[-1., 1.]]]))
    tensor([[[1., 2., 4.]]])
    """
    function = f"conv{axes}d"
    x, weight, bias, groups, batch = _operands(function, axes, input, weight, bias, groups)
    stride, dilation = (each_axis(function, *pair, axes) for pair in (("stride", stride), ("dilation", dilation)))
    kernel = tuple(weight.shape[2:])
    if isinstance(padding, str):
        x, padding = _named_padding(x, padding, kernel, stride, dilation)
    padding = each_axis(function, "padding", padding, axes)
    _check_windows(function, stride, padding, dilation)
    if x.shape[1] != weight.shape[1] * groups:
        raise errors.convolution_channels(function, x, weight, groups, False)
    padded = [n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True)]
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(n < s for n, s in zip(padded, spans, strict=True)):
        raise errors.kernel_too_large(padded, spans)
    params = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    out = _plus_bias(function, bind(primitives.convolution, (x, weight), params), weight, bias)
    return out if batch else out.squeeze(0)


def _named_padding(x: AnyArray, padding: str, kernel: Ints, stride: Ints, dilation: Ints) -> tuple[Any, Any]:
    """Return the padded input and the numeric padding for "valid" (none) or "same" (output size = input size).

    If "same" needs an odd number of zeros, the extra one is at the end.
    """
    if padding == "valid":
        return x, 0
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: {padding!r}. It is 'valid' or 'same', or numbers")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    if any(t % 2 for t in totals):
        x = joining.pad(x, [w for t in reversed(totals) for w in (0, t % 2)])
    return x, tuple(t // 2 for t in totals)


@op_each_axes(
    "nn.functional.conv_transpose{}d conv_transpose{}d",
    ("rand(1, 2, 5), rand(2, 3, 3)", "rand(1, 2, 2, 3), rand(2, 3, 2, 2)", "rand(1, 1, 2, 2, 2), rand(1, 2, 2, 2, 2)"),
)
def convolve_transposed(
    axes: int, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: object = 1, padding: object = 0,
    output_padding: object = 0, groups: int = 1, dilation: object = 1,
) -> Tensor:  # fmt: skip
    """Apply the transpose of :func:`conv1d` with respect to its input: every element spreads the weight over a window.

    Args:
        input: (n, channels, length), or without n.
        weight: (channels, out/groups, kernel).
        padding: the number of elements cut off on both sides.
        output_padding: the number of elements added at the end; less than stride or dilation.

    >>> import chainrule as cr
    >>> cr.nn.functional.conv_transpose1d(cr.tensor([[[1., 2.]]]), cr.tensor([[[1., 1.]]]), stride=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    function = f"conv_transpose{axes}d"
    x, weight, bias, groups, batch = _operands(function, axes, input, weight, bias, groups)
    if x.shape[1] != weight.shape[0]:
        raise errors.convolution_channels(function, x, weight, groups, True)
    stride = each_axis(function, "stride", stride, axes)
    padding = each_axis(function, "padding", padding, axes)
    extra = each_axis(function, "output_padding", output_padding, axes)
    dilation = each_axis(function, "dilation", dilation, axes)
    _check_windows(function, stride, padding, dilation)
    for e, s, d in zip(extra, stride, dilation, strict=True):
        if not 0 <= e < max(s, d):
            raise RuntimeError(
                f"output padding must be smaller than either stride or dilation, but got output_padding {extra}, "
                f"stride {stride} and dilation {dilation}"
            )
    kernel = weight.shape[2:]
    size = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, d, e in zip(x.shape[2:], kernel, stride, padding, dilation, extra, strict=True)
    )
    if min(size) <= 0:
        raise errors.too_small_output(function, x, size)
    params = {"size": size, "stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    out = _plus_bias(function, bind(primitives.convolution_input, (x, weight), params), weight, bias)
    return out if batch else out.squeeze(0)


# -- blocks ----------------------------------------------------------------------------------------------------------


def _block_params(
    function: str, kernel_size: ShapeLike, stride: ShapeLike, padding: ShapeLike, dilation: ShapeLike
) -> dict[str, Ints]:
    given = {"kernel": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
    params = {name: each_axis(function, name, value, 2) for name, value in given.items()}
    for name, values in params.items():
        if min(values) < (0 if name == "padding" else 1):
            raise RuntimeError(f"{function}: {name} should be greater than zero, but got {values}")
    return params


@op()
def unfold(
    input: Tensor, kernel_size: ShapeLike, dilation: ShapeLike = 1, padding: ShapeLike = 0, stride: ShapeLike = 1
) -> Tensor:
    """Return the blocks of images (n, channels, height, width) as columns: (n, channels·kernel, blocks).

    >>> import chainrule as cr
    >>> cr.nn.functional.unfold(cr.arange(6.).reshape(1, 1, 2, 3), 2)
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
    x, batch = add_batch_axis("unfold", tensor_of("unfold", input), 2)
    params = _block_params("unfold", kernel_size, stride, padding, dilation)
    counts = [primitives.windows_along(n, *of) for n, *of in zip(x.shape[2:], *params.values(), strict=True)]
    if min(counts) < 1:
        raise errors.too_small_output("unfold", x, counts)
    out = bind(primitives.im2col, (x,), params)
    return out if batch else out.squeeze(0)


@op(sample="rand(1, 8, 4), 3, 2")
def fold(
    input: Tensor,
    output_size: ShapeLike,
    kernel_size: ShapeLike,
    dilation: ShapeLike = 1,
    padding: ShapeLike = 0,
    stride: ShapeLike = 1,
) -> Tensor:
    """Return the transpose of :func:`unfold`: columns (n, channels·kernel, blocks), each added where its block was."""
    x, batch = add_batch_axis("fold", tensor_of("fold", input), 1)
    size = each_axis("fold", "output_size", output_size, 2)
    params = _block_params("fold", kernel_size, stride, padding, dilation)
    counts = [primitives.windows_along(n, *of) for n, *of in zip(size, *params.values(), strict=True)]
    elements = math.prod(params["kernel"])
    if x.shape[1] % elements:
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={x.shape[1]} and kernel_size={params['kernel']}."
        )
    if min(counts) < 1 or math.prod(counts) != x.shape[2]:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={params['kernel']}, dilation={params['dilation']}, "
            f"padding={params['padding']}, stride={params['stride']}, expected size of input's dimension 2 to match "
            f"the calculated number of sliding blocks {' * '.join(map(str, counts))} = {math.prod(counts)}, but got "
            f"input.size(2)={x.shape[2]}."
        )
    out = bind(primitives.col2im, (x,), {"size": size, **params})
    return out if batch else out.squeeze(0)
