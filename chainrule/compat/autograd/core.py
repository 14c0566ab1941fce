"""The names that programs import from ``autograd.core``."""

from chainrule._src.api.public_modules import show
from chainrule.compat.autograd import extend
from chainrule.compat.autograd.extend import primitive_jvps, primitive_vjps
from chainrule.compat.autograd.tracer import JVPNode, VJPNode, backward_pass, getval, isbox, trace
from chainrule.compat.autograd.tracing import make_jvp, make_vjp

globals().update({name: getattr(extend, name) for name in extend.__all__})
__all__ = [
    "JVPNode",
    "VJPNode",
    "backward_pass",
    "getval",
    "isbox",
    "make_jvp",
    "make_vjp",
    "primitive_jvps",
    "primitive_vjps",
    "trace",
    *extend.__all__,
]

show(globals())
