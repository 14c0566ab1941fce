"""``autograd.gradcheck``: PyTorch has a function and a module of this name, and so does this package.

``testing.gradcheck`` lives on a floor above. Once this module is imported it stands for the function as well: it can be
called.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any

_testing: Any = importlib.import_module("chainrule.testing.gradcheck")
GradcheckError = _testing.GradcheckError
gradcheck = _testing.gradcheck
gradgradcheck = _testing.gradgradcheck
__signature__ = inspect.signature(gradcheck)


class _Callable(ModuleType):
    """This module, when it is called."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return bool(gradcheck(*args, **kwargs))


sys.modules[__name__].__class__ = _Callable
