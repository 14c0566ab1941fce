"""NumPy's names, whose functions take Arrays wherever they are among the arguments."""

import numpy

from chainrule.compat.autograd.numpy import wrapping

# not `testing`, `f2py` and their like, which NumPy loads when they are asked for
_names = wrapping.wrapped({name: x for name, x in vars(numpy).items() if name in numpy.__all__})
_names |= {name: getattr(wrapping, name) for name in wrapping.__all__}
globals().update(_names)
__version__ = numpy.__version__
__all__ = list(_names)
