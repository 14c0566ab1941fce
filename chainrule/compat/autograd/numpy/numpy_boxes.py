"""The class of arrays that carry derivatives."""

from chainrule.api.array import Array as ArrayBox
from chainrule.compat.autograd.tracer import VJPNode
from chainrule.compat.autograd.tracing import value_of

__all__ = ["ArrayBox"]

# what programs read of HIPS autograd's boxes
ArrayBox._value = property(value_of)  # type: ignore[attr-defined]
ArrayBox._node = property(VJPNode)  # type: ignore[attr-defined]
