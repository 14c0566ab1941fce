"""NumPy's names, with functions that accept Arrays anywhere in their arguments."""

import numpy

from chainrule.compat.autograd.numpy import wrapping

# excludes modules such as `testing` and `f2py`, which NumPy loads on first use
_names = wrapping.wrap_names({name: x for name, x in vars(numpy).items() if name in numpy.__all__})
_names |= {name: getattr(wrapping, name) for name in wrapping.__all__}
globals().update(_names)
__version__ = numpy.__version__
__all__ = list(_names)
