"""Other libraries' names over chainrule: their programs run as they are.

>>> import chainrule.compat
>>> chainrule.compat.install("autograd")
>>> import autograd.numpy as np
>>> from autograd import grad
>>> float(grad(lambda x: np.sin(x) * x)(0.5))
0.9182168195493894
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["install"]


class _Finder:
    """Finds ``autograd.x`` in ``chainrule.compat.autograd.x``: the same module under another name, loaded when imported."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != self.name:
            return None
        try:
            module = importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":  # SciPy, for autograd.scipy
                raise
            return None
        loader: Any = self
        spec = ModuleSpec(name, loader, is_package=hasattr(module, "__path__"))
        spec.loader_state = module, getattr(module, "__spec__", None)
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return spec.loader_state[0]  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        if spec is not None and spec.loader is self:
            module.__spec__ = spec.loader_state[1]  # the module goes by its own name


def install(name: str) -> None:
    """Let ``import name`` and ``from name.… import …`` find chainrule's module of that library's names.

    Args:
        name: ``"autograd"``, for programs that are written for HIPS autograd.

    Raises:
        ValueError: there is no such module.
        RuntimeError: the library itself is imported already.
    """
    if importlib.util.find_spec(f"{__name__}.{name}") is None:
        raise ValueError(f"chainrule.compat has no names of {name!r}; it has those of 'autograd'")
    if any(isinstance(finder, _Finder) and finder.name == name for finder in sys.meta_path):
        return
    if name in sys.modules:
        raise RuntimeError(
            f"{name} is imported already, from {getattr(sys.modules[name], '__file__', 'elsewhere')}: call "
            f"chainrule.compat.install({name!r}) before the program imports it"
        )
    sys.meta_path.insert(0, _Finder(name))
