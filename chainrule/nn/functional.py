"""Activations, losses and the functions that layers call, with the names of ``torch.nn.functional``."""

from __future__ import annotations

from collections.abc import Callable

from chainrule._src.api.declare import namespace
from chainrule._src.api.public_modules import show
from chainrule._src.tape.tensor import Tensor
from chainrule.nn import (  # noqa: F401 -- importing them declares the functions
    activation,
    channels,
    classification,
    convolution,
    dropouts,
    layers,
    margins,
    pooling,
    regression,
    resampling,
    sampling,
)


def _in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(input: Tensor, *args: object, **kwargs: object) -> Tensor:
        return function(input, *args, **kwargs, inplace=True)

    call.__name__ = call.__qualname__ = function.__name__ + "_"
    call.__doc__ = f"In-place form of :func:`{function.__name__}`."
    return call


_public = namespace("nn.functional.")
_public |= {
    f"{name}_": _in_place(_public[name])
    for name in ["celu", "elu", "hardtanh", "leaky_relu", "relu", "rrelu", "selu", "threshold"]
}
globals().update(_public)
__all__ = sorted(_public)

show(globals())
