"""Activations, with PyTorch's names and arguments. ``chainrule.nn.functional`` exports these functions."""

from __future__ import annotations

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.functions import nary, unary
from chainrule._src.api.in_place import in_place
from chainrule._src.arrays.types import AnyFunction, DTypeLike, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import random, reductions, splitting
from chainrule._src.ops.arguments import constant_on_device_of, takes_tensors, tensor_of
from chainrule._src.table import comparison, exponential
from chainrule._src.table import nn as primitives
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.ties import tie_cotangents

_elu, _hardtanh, _gelu, _softplus = (
    nary(primitives.elu),
    nary(primitives.hardtanh),
    nary(primitives.gelu),
    nary(exponential.softplus),
)
_leaky_relu, _threshold = nary(comparison.leaky_relu), nary(comparison.threshold)
_hardshrink, _softshrink = nary(primitives.hardshrink), nary(primitives.softshrink)
_silu, _mish, _log_sigmoid = unary(primitives.silu), unary(primitives.mish), unary(primitives.log_sigmoid)
_hardsigmoid, _hardswish = unary(primitives.hardsigmoid), unary(primitives.hardswish)
sigmoid, tanh = ew.sigmoid, ew.tanh


def _applied(name: str, function: AnyFunction, input: TensorLike, inplace: bool, **params: object) -> Tensor:
    if not inplace:
        return function(input, **params)
    return in_place(name + "_", function)(input, **params)


@op(cached=True)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return max(x, 0). The derivative at 0 is 0.

    >>> import chainrule as cr
    >>> cr.nn.functional.relu(cr.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return ew.relu(input) if not inplace else _applied("relu", ew.relu, input, True)


@op(cached=True)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x limited to [0, 6]."""
    return hardtanh(input, 0.0, 6.0, inplace)


@op(cached=True)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else negative_slope·x."""
    return _applied("leaky_relu", _leaky_relu, input, inplace, negative_slope=negative_slope)


@op("nn.functional.prelu prelu", sample="rand(2, 3), rand(3)")
@takes_tensors
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x where it is positive, else weight·x, with one weight for all or for each channel (axis 1)."""
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.numel() != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and "
                f"channel size = {channels}."
            )
        weight = weight.reshape(-1, *(1,) * (input.ndim - 2))
    elif not input.ndim:
        weight = weight.reshape(())
    return tie_cotangents(ew.where(input > 0, input, weight * input))


@op("nn.functional.threshold threshold", cached=True)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it is over the threshold, else ``value``."""
    return _applied("threshold", _threshold, input, inplace, threshold=threshold, value=value)


@op(cached=True)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else alpha·(exp(x) − 1)."""
    return _applied("elu", _elu, input, inplace, alpha=alpha, scale=1.0, input_scale=1.0)


@op("nn.functional.selu selu", cached=True)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the scaled elu that keeps mean 0 and variance 1 (Klambauer and others, 2017)."""
    return _applied(
        "selu",
        _elu,
        input,
        inplace,
        alpha=1.6732632423543772848170429916717,
        scale=1.0507009873554804934193349852946,
        input_scale=1.0,
    )


@op("nn.functional.celu celu", cached=True)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else alpha·(exp(x/alpha) − 1)."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _applied("celu", _elu, input, inplace, alpha=alpha, scale=1.0, input_scale=1 / alpha)


@op(cached=True)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x·sigmoid(x), also known as swish."""
    return _silu(input) if not inplace else _applied("silu", _silu, input, True)


@op(cached=True)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x·tanh(softplus(x))."""
    return _mish(input) if not inplace else _applied("mish", _mish, input, True)


@op(cached=True)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return x·Φ(x), with the normal distribution function Φ; ``approximate="tanh"`` selects the tanh approximation."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return _gelu(input, approximate=approximate)


@op(cached=True)
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Return log(1 + exp(beta·x)) / beta, and x itself where beta·x is over the threshold."""
    return _softplus(tensor_of("softplus", input, "f"), beta=beta, threshold=threshold)


@op()
def softsign(input: Tensor) -> Tensor:
    """Return x / (1 + |x|)."""
    return input / (ew.abs(input) + 1)


@op(cached=True)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x limited to [min_val, max_val]. At a bound the derivative is 0."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _applied("hardtanh", _hardtanh, input, inplace, min_val=min_val, max_val=max_val)


@op(cached=True)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x/6 + 1/2, limited to [0, 1]."""
    return _applied("hardsigmoid", _hardsigmoid, input, inplace)


@op(cached=True)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x·hardsigmoid(x)."""
    return _applied("hardswish", _hardswish, input, inplace)


@op(cached=True)
def logsigmoid(input: Tensor) -> Tensor:
    """Return log(sigmoid(x)), without overflow."""
    return _log_sigmoid(input)


@op()
def tanhshrink(input: Tensor) -> Tensor:
    """Return x − tanh(x)."""
    return input - ew.tanh(input)


@op("nn.functional.hardshrink hardshrink", cached=True)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x where |x| is over lambd, else 0."""
    return _hardshrink(input, lambd=lambd)


@op(cached=True)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x moved towards 0 by lambd."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return _softshrink(input, lambd=lambd)


@op(sample="rand(2, 4)")
@takes_tensors
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half along ``dim`` times the sigmoid of the second half."""
    if input.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if input.shape[dim] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim % input.ndim} is size {input.shape[dim]}"
        )
    first, second = splitting.chunk(input, 2, dim)
    return first * ew.sigmoid(second)


# -- over an axis ----------------------------------------------------------------------------------------------------


def _dim(name: str, dim: int | None, ndim: int) -> int:
    if dim is not None:
        return dim
    errors.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument."
    )
    return 0 if ndim in (0, 1, 3) else 1


@op()
@takes_tensors
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike = None) -> Tensor:
    """Return exp(x) / Σ exp(x) along ``dim``."""
    return reductions.softmax(input, _dim("softmax", dim, input.ndim), dtype)


@op()
@takes_tensors
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike = None) -> Tensor:
    """Return the softmax of −x."""
    return reductions.softmax(-input, _dim("softmin", dim, input.ndim), dtype)


@op()
@takes_tensors
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike = None) -> Tensor:
    """Return the logarithm of the softmax along ``dim``, without overflow."""
    return reductions.log_softmax(input, _dim("log_softmax", dim, input.ndim), dtype)


@op()
@takes_tensors
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Return a random near-one-hot sample with the probabilities softmax(logits) (Jang and others, 2017).

    With ``hard`` the value is one-hot and the gradient is that of the soft sample.
    """
    noise = random.rand_like(logits)
    gumbel = -ew.log(-ew.log(ew.clamp(noise, 1e-20, 1 - 1e-7)))
    soft = reductions.softmax((logits + gumbel) / tau, dim)
    if not hard:
        return soft
    best = reductions.argmax(soft.detach(), dim, keepdim=True)
    places = np.arange(logits.shape[dim]).reshape(
        tuple(-1 if i == dim % logits.ndim else 1 for i in range(logits.ndim))
    )
    chosen = cast(best == constant_on_device_of(best, places), soft.dtype)
    return chosen - soft.detach() + soft
