"""Vector spaces of arrays."""

from chainrule.compat.autograd.vspaces import ArrayVSpace, ComplexArrayVSpace

__all__ = ["ArrayVSpace", "ComplexArrayVSpace"]
