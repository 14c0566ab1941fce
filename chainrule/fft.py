"""Discrete Fourier transforms, like ``torch.fft``.

``norm`` selects the scaling: "backward" (the default) scales inverse transforms by 1/n, "forward" scales forward
transforms by 1/n, and "ortho" scales both by 1/√n, where n is the number of points. The result has the precision of the
input; integers are converted to the default dtype.

Gradients of complex tensors follow PyTorch's convention, ∂L/∂Re + i·∂L/∂Im; gradients of real tensors are real.
"""

from __future__ import annotations

from chainrule._src.api.declare import namespace
from chainrule._src.api.public_modules import show
from chainrule._src.ops.fft import transforms  # noqa: F401 -- declares the functions

globals().update(_public := namespace("fft."))
__all__ = sorted(_public)

show(globals())
