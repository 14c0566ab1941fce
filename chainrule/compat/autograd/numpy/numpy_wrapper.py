"""NumPy's names, whose functions take Arrays wherever they are among the arguments."""

import numpy

from chainrule.compat.autograd.numpy import wrapping

_names = wrapping.wrapped({name: getattr(numpy, name) for name in numpy.__all__})
globals().update(_names)
from chainrule.compat.autograd.numpy.wrapping import (  # noqa: E402
    c_,
    full,
    make_diagonal,
    metadata,
    r_,
    where,
    wrap_namespace,
)

__version__ = numpy.__version__
row_stack = numpy.vstack  # NumPy's old name

__all__ = [*_names, "make_diagonal", "metadata", "row_stack", "wrap_namespace"]
