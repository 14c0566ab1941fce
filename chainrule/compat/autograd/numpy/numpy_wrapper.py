"""NumPy's names, whose functions take Arrays wherever they are among the arguments."""

import numpy

from chainrule.compat.autograd.numpy import wrapping

_names = wrapping.wrapped({name: getattr(numpy, name) for name in numpy.__all__})
_names |= {name: getattr(wrapping, name) for name in wrapping.__all__}
globals().update(_names)
__version__ = numpy.__version__
__all__ = list(_names)
