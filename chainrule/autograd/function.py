"""Custom derivative rules: ``autograd.Function``.

``MyFunction.apply(*args)`` runs ``forward`` unrecorded and puts one node on the tape, whose rule calls ``backward``. With
``create_graph`` what backward computes is recorded, as any other rule is.
"""

from chainrule._src.api.faces import show
from chainrule._src.transforms.context import FunctionCtx, once_differentiable
from chainrule._src.transforms.function import Function, InplaceFunction, NestedIOFunction

__all__ = [
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

show(globals())
