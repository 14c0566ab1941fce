"""``autograd.numpy.random``: the names of ``numpy.random``."""

import numpy

globals().update({name: getattr(numpy.random, name) for name in numpy.random.__all__})
