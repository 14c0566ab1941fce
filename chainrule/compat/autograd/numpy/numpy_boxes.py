"""The class of arrays that carry derivatives."""

from chainrule.api.array import Array as ArrayBox

__all__ = ["ArrayBox"]
