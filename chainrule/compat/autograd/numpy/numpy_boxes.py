"""The class of arrays that carry derivatives."""

from chainrule.api.array import Array
from chainrule.compat.autograd.runs import depth_of, value_of
from chainrule.compat.autograd.tracer import VJPNode

__all__ = ["ArrayBox"]

ArrayBox = Array

# what programs read of HIPS autograd's boxes
ArrayBox._value = property(value_of)  # type: ignore[attr-defined]
ArrayBox._trace = property(depth_of)  # type: ignore[attr-defined]
ArrayBox._node = property(VJPNode)  # type: ignore[attr-defined]
