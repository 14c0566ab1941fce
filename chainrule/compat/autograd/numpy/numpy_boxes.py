"""The class of arrays that carry derivatives."""

import copyreg

from chainrule._src.api.array import Array, array_of
from chainrule._src.arrays.libraries import register_plain
from chainrule.compat.autograd.runs import depth_of, value_of
from chainrule.compat.autograd.tracer import VJPNode

__all__ = ["ArrayBox"]

ArrayBox = Array

# what programs read of HIPS autograd's boxes
ArrayBox._value = property(value_of)  # type: ignore[attr-defined]
ArrayBox._trace = property(depth_of)  # type: ignore[attr-defined]
ArrayBox._node = property(VJPNode)  # type: ignore[attr-defined]


def named_as(module: str) -> None:
    """Have the class say that it is of a module, whose first word tells autoray and PennyLane which library's functions to call."""
    register_plain(ArrayBox)  # whatever module it says it is of
    ArrayBox.__module__ = module
    copyreg.pickle(Array, lambda x: (array_of, (x.tensor,)))  # read again by programs that know no such module
