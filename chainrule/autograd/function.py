"""Define custom derivative rules with ``autograd.Function``.

``MyFunction.apply(*args)`` runs ``forward`` without recording and puts one node on the tape. The node's rule calls
``backward``. With ``create_graph`` the operations of ``backward`` are recorded, like those of any other rule.
"""

from chainrule._src.api.public_modules import show
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
