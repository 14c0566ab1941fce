"""``autograd.numpy.random``: the names of ``numpy.random``."""

import numpy

from chainrule._src.api.public_modules import show

globals().update({name: getattr(numpy.random, name) for name in numpy.random.__all__})
__all__ = [*numpy.random.__all__]

show(globals())
