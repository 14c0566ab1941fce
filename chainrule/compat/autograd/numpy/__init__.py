"""``autograd.numpy``: NumPy's names, with functions that accept Arrays."""

import sys
from types import ModuleType
from typing import Any

import numpy

from chainrule.compat.autograd import builtins
from chainrule.compat.autograd.numpy import fft, linalg, numpy_boxes, numpy_vjps, numpy_vspaces, numpy_wrapper, random

__all__ = [name for name in numpy_wrapper.__all__ if name not in ("fft", "linalg", "random")]
globals().update({name: getattr(numpy_wrapper, name) for name in __all__})
__version__ = numpy_wrapper.__version__
__all__ += ["builtins", "fft", "linalg", "numpy_boxes", "numpy_vjps", "numpy_vspaces", "random"]


class _Names(ModuleType):
    """A module that looks up other names in NumPy. (A module ``__getattr__`` would be copied with its names.)"""

    def __getattr__(self, name: str) -> Any:
        return getattr(numpy, name)

    def __dir__(self) -> list[str]:
        return sorted({*__all__, *[name for name in vars(self) if name.startswith("__")]})


sys.modules[__name__].__class__ = _Names
