"""``torch.fft``: discrete Fourier transforms.

In every function ``norm`` says where the scale is: "backward" (the default) scales the inverse transforms by 1/n,
"forward" the others, "ortho" both by 1/√n, where n is the number of points. The result has the precision of the input;
integers become the default dtype.

The gradient of a complex tensor is PyTorch's, ∂L/∂Re + i·∂L/∂Im, that of a real tensor is real.
"""

from __future__ import annotations

from chainrule._src.api.declare import namespace
from chainrule._src.messages import errors
from chainrule._src.ops.fft import transforms  # noqa: F401 -- it declares what is here

globals().update(_public := namespace("fft.", __name__))
__all__ = sorted(_public)


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
