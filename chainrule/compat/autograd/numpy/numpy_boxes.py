"""``ArrayBox``, HIPS autograd's class of traced arrays: an alias of ``chainrule.Array``."""

import copyreg

from chainrule._src.api.array import Array, array_of
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.libraries import register_plain
from chainrule.compat.autograd.runs import depth_of, value_of
from chainrule.compat.autograd.tracer import VJPNode

__all__ = ["ArrayBox"]

ArrayBox = Array

# attributes of HIPS autograd's boxes that programs read
ArrayBox._value = property(value_of)  # type: ignore[attr-defined]
ArrayBox._trace = property(depth_of)  # type: ignore[attr-defined]
ArrayBox._node = property(VJPNode)  # type: ignore[attr-defined]


def named_as(module: str) -> None:
    """Set the class's ``__module__``, from which autoray and PennyLane infer the library to call."""
    register_plain(ArrayBox)  # regardless of its __module__
    ArrayBox.__module__ = module
    copyreg.pickle(Array, lambda x: (array_of, (x.tensor,)))  # unpickling must not import that module


show(globals())
