"""Derivatives of functions of tensors, with the names of ``torch.autograd.functional``.

``func`` takes the tensors in ``inputs`` as its arguments and returns a tensor or a tuple of tensors. Everywhere
``create_graph`` makes the results differentiable themselves, and ``strict`` turns a derivative that is zero because there
is no path at all into an error.
"""

from chainrule._src.api.faces import show
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
