"""Tools around autograd: :mod:`~chainrule.utils.checkpoint`, which trades time for memory, and a timer."""

import importlib

from chainrule import errors
from chainrule.utils import checkpoint

__all__ = ["benchmark", "checkpoint"]


def __getattr__(name: str) -> object:
    if name == "benchmark":
        return importlib.import_module("chainrule.utils.benchmark")
    raise errors.unknown_name(name, __all__, __name__)
