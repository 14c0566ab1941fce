"""``numpy.fft``."""

import numpy

from chainrule.compat.autograd.numpy.wrapping import wrapped

globals().update(wrapped(vars(numpy.fft)))
