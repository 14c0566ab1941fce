"""``autograd.numpy.fft``: functions of ``numpy.fft`` that accept Arrays."""

import numpy

from chainrule.compat.autograd.numpy.wrapping import wrap_names

globals().update(wrap_names(vars(numpy.fft)))
