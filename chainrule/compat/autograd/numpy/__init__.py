"""``autograd.numpy``: NumPy's names."""

from typing import Any

import numpy

from chainrule.compat.autograd.numpy import fft, linalg, numpy_boxes, numpy_vjps, numpy_wrapper, random

__all__ = [name for name in numpy_wrapper.__all__ if name not in ("fft", "linalg", "random")]
globals().update({name: getattr(numpy_wrapper, name) for name in __all__})
__version__ = numpy_wrapper.__version__
__all__ += ["fft", "linalg", "numpy_boxes", "numpy_vjps", "random"]


def __getattr__(name: str) -> Any:
    return getattr(numpy, name)
