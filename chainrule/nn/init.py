"""Initialize parameters in place, without recording, with the names of ``torch.nn.init``.

The distributions are those of Glorot and Bengio (2010), He et al. (2015) and Saxe et al. (2013), as PyTorch defines them.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.api.public_modules import show
from chainrule._src.messages import errors
from chainrule._src.messages.source_locations import warn
from chainrule._src.ops import creation
from chainrule._src.ops.linalg.decompositions import qr
from chainrule._src.ops.random import Generator, rand
from chainrule._src.tape.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which the inputs of an activation are scaled so that its outputs keep the variance.

    >>> calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    plain = ("linear", "sigmoid", *(f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)))
    if nonlinearity not in _GAINS and nonlinearity not in plain:
        raise ValueError(
            f"Unsupported nonlinearity {nonlinearity}: it is one of {', '.join((*_GAINS, 'leaky_relu', *plain))}"
        )
    return _GAINS.get(nonlinearity, 1.0)


def _fans(tensor: Tensor) -> tuple[int, int]:
    """Return the fan-in (inputs per output) and the fan-out (outputs per input)."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers between a and b."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers of the given mean and standard deviation."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Fill with normal numbers truncated to [a, b], by the inverse distribution function of uniform numbers."""
    low, high = (math.erf((bound - mean) / (std * math.sqrt(2))) for bound in (a, b))
    drawn = rand(*tensor.shape, generator=generator, dtype="float64") * (high - low) + low
    return tensor.copy_((drawn.erfinv() * (std * math.sqrt(2)) + mean).clamp(a, b))


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number."""
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Write the identity matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(creation.eye(*tensor.shape))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers of standard deviation gain·√(2 / (inputs + outputs))."""
    bound = math.sqrt(3) * gain * math.sqrt(2 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers of standard deviation gain·√(2 / (inputs + outputs))."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))), generator)


def _he_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[modes.index(mode.lower())])


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Fill with uniform numbers of standard deviation gain / √fan; ``a`` is the slope of ``leaky_relu``."""
    bound = math.sqrt(3) * _he_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Fill with normal numbers of standard deviation gain / √fan; ``a`` is the slope of ``leaky_relu``."""
    return normal_(tensor, 0.0, _he_std(tensor, a, mode, nonlinearity), generator)


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Write a uniformly random matrix with orthogonal rows or columns, whichever are fewer, of length ``gain``."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    rows = tensor.shape[0]
    columns = tensor.numel() // max(rows, 1)
    drawn = creation.empty(max(rows, columns), min(rows, columns), dtype=tensor.dtype).normal_(generator=generator)
    q, r = qr(drawn)
    q = q * r.diagonal().sign()
    return tensor.copy_((q.mT if rows < columns else q).reshape(tensor.shape) * gain)


def _deprecated_alias(name: str) -> Any:
    """Return a function under its deprecated name without the underscore, which warns as in PyTorch."""
    function = globals()[f"{name}_"]

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        warn(f"nn.init.{name} is now deprecated in favor of nn.init.{name}_", FutureWarning)
        return function(*args, **kwargs)

    return call


def __getattr__(name: str) -> Any:
    if f"{name}_" in __all__:
        return _deprecated_alias(name)
    raise errors.unknown_name(name, __all__, __name__)


show(globals())
