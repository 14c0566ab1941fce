"""Vector spaces of arrays."""

from chainrule._src.api.public_modules import show
from chainrule.compat.autograd.vspaces import ArrayVSpace, ComplexArrayVSpace

__all__ = ["ArrayVSpace", "ComplexArrayVSpace"]

show(globals())
