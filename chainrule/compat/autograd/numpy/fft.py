"""``autograd.numpy.fft``: functions of ``numpy.fft`` that accept Arrays."""

import numpy

from chainrule._src.api.public_modules import show
from chainrule.compat.autograd.numpy.wrapping import wrap_names

globals().update(wrap_names(vars(numpy.fft)))
__all__ = [*numpy.fft.__all__]

show(globals())
