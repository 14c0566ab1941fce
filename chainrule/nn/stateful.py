"""Modules with parameters. Initial values have PyTorch's distributions, but not its exact numbers for a seed.

``chainrule.nn`` exports these classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.types import DTypeLike, Params, ShapeLike
from chainrule._src.messages import errors
from chainrule._src.ops import creation
from chainrule._src.tape.tensor import Tensor
from chainrule.nn import functional as F
from chainrule.nn import init
from chainrule.nn.module import Module
from chainrule.nn.parameter import Parameter


def _empty(*shape: int, **factory: object) -> Tensor:
    return Parameter(creation.empty(*shape, **factory))


def _reset(weight: Tensor, bias: Tensor | None) -> None:
    """Fill with uniform numbers between ±1/√fan-in."""
    inputs = math.prod(weight.shape[1:])
    bound = 1 / math.sqrt(inputs) if inputs else 0.0
    for tensor in (weight, bias):
        if tensor is not None:
            init.uniform_(tensor, -bound, bound)


class Linear(Module):
    """The affine map x @ weightᵀ + bias, along the last axis.

    Args:
        in_features, out_features: lengths of the last axis of input and output.
        bias: whether there is a bias.
        device, dtype: device and dtype of the parameters.

    >>> import chainrule as cr
    >>> cr.nn.Linear(3, 2)(cr.zeros(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: DeviceLike = None, dtype: DTypeLike = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _empty(out_features, in_features, device=device, dtype=dtype)
        self.register_parameter("bias", _empty(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new random parameters."""
        _reset(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the affine map of (..., in_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the lengths."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class _Convolution(Module):
    """A convolution over ``axes`` axes, or the transposed one."""

    axes: int
    transposed = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: ShapeLike, stride: ShapeLike, padding: ShapeLike | str, dilation: ShapeLike,
        groups: int, bias: bool, padding_mode: str, output_padding: ShapeLike, factory: Params,
    ) -> None:  # fmt: skip
        super().__init__()
        if padding_mode != "zeros":
            name = type(self).__name__
            raise NotImplementedError(
                f"{name}: padding_mode {padding_mode!r} is not supported: call nn.functional.pad first"
            )
        if in_channels % groups or out_channels % groups:
            which = "in_channels" if in_channels % groups else "out_channels"
            raise ValueError(f"{which} must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.padding = padding if isinstance(padding, str) else self._each(padding)
        self.kernel_size, self.stride, self.dilation, self.output_padding = (
            self._each(value) for value in (kernel_size, stride, dilation, output_padding)
        )
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = _empty(*channels, *self.kernel_size, **factory)
        self.register_parameter("bias", _empty(out_channels, **factory) if bias else None)
        self.reset_parameters()

    def _each(self, value: Any) -> tuple[int, ...]:
        """Return a tuple with one number for each axis."""
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * self.axes

    def reset_parameters(self) -> None:
        """Draw new random parameters."""
        _reset(self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the channels and the options that differ from the defaults."""
        options = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        defaults = {"padding": self._each(0), "dilation": self._each(1), "output_padding": self._each(0), "groups": 1}
        options += [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join(options + ["bias=False"] * (self.bias is None))


class _Conv(_Convolution):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: ShapeLike, stride: ShapeLike = 1, padding: ShapeLike | str = 0,
        dilation: ShapeLike = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:  # fmt: skip
        factory = {"device": device, "dtype": dtype}
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, 0, factory
        )

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution of (batch, in_channels, ...), or of one example."""
        convolve = getattr(F, f"conv{self.axes}d")
        return convolve(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class _ConvTranspose(_Convolution):
    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: ShapeLike, stride: ShapeLike = 1, padding: ShapeLike | str = 0,
        output_padding: ShapeLike = 0, groups: int = 1, bias: bool = True, dilation: ShapeLike = 1, padding_mode: str = "zeros",
        device: DeviceLike = None, dtype: DTypeLike = None,
    ) -> None:  # fmt: skip
        factory = {"device": device, "dtype": dtype}
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
            output_padding, factory,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """Return the transposed convolution of (batch, in_channels, ...), or of one example."""
        convolve = getattr(F, f"conv_transpose{self.axes}d")
        padding, more, groups = self.padding, self.output_padding, self.groups
        return convolve(input, self.weight, self.bias, self.stride, padding, more, groups, self.dilation)


class _Norm(Module):
    """A layer that normalizes, then multiplies by ``weight`` and adds ``bias``."""

    def _scale_and_shift(
        self, shape: int | tuple[int, ...], affine: bool, bias: bool, device: DeviceLike, dtype: DTypeLike
    ) -> None:
        ones = Parameter(creation.ones(shape, device=device, dtype=dtype)) if affine else None
        self.register_parameter("weight", ones)
        zeros = Parameter(creation.zeros(shape, device=device, dtype=dtype)) if affine and bias else None
        self.register_parameter("bias", zeros)

    def _format_options(self, *first: object, **options: object) -> str:
        return ", ".join([*map(str, first), *(f"{name}={value}" for name, value in options.items())])


class _BatchNorm(_Norm):
    ranks: tuple[int, ...]

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: DeviceLike = None, dtype: DTypeLike = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._scale_and_shift(num_features, affine, bias, device, dtype)
        factory = {"device": device, "dtype": dtype}
        self.register_buffer("running_mean", creation.zeros(num_features, **factory) if track_running_stats else None)
        self.register_buffer("running_var", creation.ones(num_features, **factory) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", creation.tensor(0) if track_running_stats else None)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize each channel by the statistics of the batch, or the running ones; then scale and shift."""
        if input.dim() not in self.ranks:
            ranks = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ValueError(f"expected {ranks} input (got {input.dim()}D input)")
        momentum = self.momentum or 0.0
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            momentum = 1 / int(self.num_batches_tracked) if self.momentum is None else momentum
        training = self.training or self.running_mean is None
        mean, var = (self.running_mean, self.running_var) if self.track_running_stats else (None, None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, training, momentum, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        options = {"eps": self.eps, "momentum": self.momentum, "affine": self.affine, "bias": self.bias is not None}
        return self._format_options(self.num_features, **options, track_running_stats=self.track_running_stats)


class LayerNorm(_Norm):
    """Normalization to mean 0 and variance 1 over the last axes, of lengths ``normalized_shape``; then scale and shift."""

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: DeviceLike = None, dtype: DTypeLike = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._scale_and_shift(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        options = {"eps": self.eps, "elementwise_affine": self.elementwise_affine, "bias": self.bias is not None}
        return self._format_options(self.normalized_shape, **options)


class RMSNorm(_Norm):
    """Division by the root mean square over the last axes, of lengths ``normalized_shape``; then scale.

    Args:
        normalized_shape: the lengths, or the one length.
        eps: added to the mean of squares (by default the dtype's eps).
        elementwise_affine: whether there is a ``weight``.
        device, dtype: device and dtype of the parameter.
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True, device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        ones = Parameter(creation.ones(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", ones if elementwise_affine else None)

    def reset_parameters(self) -> None:
        """Reset the scale to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized input."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return self._format_options(self.normalized_shape, eps=self.eps, elementwise_affine=self.elementwise_affine)


class GroupNorm(_Norm):
    """Normalization to mean 0 and variance 1 over groups of channels; then scale and shift of each channel."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: DeviceLike = None,
        dtype: DTypeLike = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._scale_and_shift(num_channels, affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        options = {"eps": self.eps, "affine": self.affine, "bias": self.bias is not None}
        return self._format_options(self.num_groups, self.num_channels, **options)


class Embedding(Module):
    """A look-up table: a row of ``weight`` for each index.

    Args:
        num_embeddings, embedding_dim: the number of rows and their length.
        padding_idx: the index of a row of zeros that gets no gradient.
        max_norm, norm_type, scale_grad_by_freq, sparse: see :func:`nn.functional.embedding`.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.max_norm, self.norm_type = (
            num_embeddings, embedding_dim, max_norm, norm_type,
        )  # fmt: skip
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise errors.padding_index()
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.weight = _empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill with normal numbers, and with zeros in the row ``padding_idx``."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0.0

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Embedding | EmbeddingBag:
        """Return a module with these rows, frozen unless ``freeze=False``; options are those of the constructor."""
        if embeddings.dim() != 2:
            raise AssertionError(f"Embeddings parameter is expected to be 2-dimensional, got {embeddings.dim()} axes")
        made = cls(*embeddings.shape, **options)
        made.weight = Parameter(embeddings, requires_grad=not freeze)
        return made

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows, of shape (*input.shape, embedding_dim)."""
        options = self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        return F.embedding(input, self.weight, *options)

    def extra_repr(self) -> str:
        """Return the sizes and the options that differ from the defaults."""
        defaults = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "sparse": False}
        options = [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *options])


class EmbeddingBag(Embedding):
    """The sum, mean or maximum of rows of ``weight`` for each bag of indices.

    Args:
        num_embeddings, embedding_dim: the number of rows and their length.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        include_last_offset: the last of the offsets is the end of the last bag.
        padding_idx: an index to ignore.
        max_norm, norm_type, scale_grad_by_freq, sparse: see :func:`nn.functional.embedding_bag`.

    >>> import chainrule as cr
    >>> bags = cr.nn.EmbeddingBag.from_pretrained(cr.tensor([[1., 2.], [3., 4.]]), mode="sum")
    >>> bags(cr.tensor([0, 1, 1]), cr.tensor([0, 1]))
    tensor([[1., 2.],
            [6., 8.]])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: DeviceLike = None, dtype: DTypeLike = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, device, dtype
        )
        self.mode, self.include_last_offset = mode, include_last_offset
        if _weight is not None:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Return one row per bag (bags, embedding_dim); bags are the rows of a 2-d input, or start at ``offsets``."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Return the sizes, the mode, and the options that differ from the defaults."""
        defaults = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "mode": "", "padding_idx": None}
        options = [
            f"{name}={getattr(self, name)!r}" for name, value in defaults.items() if getattr(self, name) != value
        ]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *options])


class PReLU(Module):
    """The activation x where it is positive, and a learned slope times x elsewhere."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: DeviceLike = None, dtype: DTypeLike = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(creation.full((num_parameters,), float(init), device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the number of slopes."""
        return f"num_parameters={self.num_parameters}"


class Conv1d(_Conv):
    """A convolution over one axis, with a bias for each output channel."""

    axes = 1


class Conv2d(_Conv):
    """A convolution over two axes, with a bias for each output channel."""

    axes = 2


class Conv3d(_Conv):
    """A convolution over three axes, with a bias for each output channel."""

    axes = 3


class ConvTranspose1d(_ConvTranspose):
    """The transposed convolution over one axis."""

    axes = 1


class ConvTranspose2d(_ConvTranspose):
    """The transposed convolution over two axes."""

    axes = 2


class ConvTranspose3d(_ConvTranspose):
    """The transposed convolution over three axes."""

    axes = 3


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (batch, channels) and one axis more."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of (batch, channels) and two axes more."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of (batch, channels) and three axes more."""

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization of (batch, channels) and any further axes. There is one process, so nothing is synchronized."""

    ranks = tuple(range(2, 33))

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: object = None) -> Module:
        """Return the module unchanged: with one process, statistics need no synchronization."""
        return module
