"""``autograd.core``: what programs import from there."""

from chainrule.compat.autograd.extend import (
    SparseObject,
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    primitive_jvps,
    primitive_vjps,
    vspace,
)
from chainrule.compat.autograd.tracer import VJPNode, backward_pass, getval, isbox
from chainrule.compat.autograd.tracing import make_jvp, make_vjp

__all__ = [
    "SparseObject",
    "VJPNode",
    "VSpace",
    "backward_pass",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "getval",
    "isbox",
    "make_jvp",
    "make_vjp",
    "primitive",
    "primitive_jvps",
    "primitive_vjps",
    "vspace",
]
