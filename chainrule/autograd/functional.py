"""Derivatives of functions of tensors, with the names of ``torch.autograd.functional``.

``func`` takes the tensors in ``inputs`` as its arguments and returns a tensor or a tuple of tensors. ``create_graph``
makes the results differentiable. ``strict`` raises an error for an output that does not depend on an input, instead of
returning a zero derivative.
"""

from chainrule._src.api.public_modules import show
from chainrule._src.transforms.functional import (
    hessian,
    hvp,
    jacobian,
    jvp,
    vhp,
    vjp,
)

__all__ = [
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "vhp",
    "vjp",
]

show(globals())
