"""Utilities: gradient checkpointing (:mod:`~chainrule.utils.checkpoint`), data loaders, and a benchmark timer."""

import importlib

from chainrule._src.messages import errors
from chainrule.utils import checkpoint

__all__ = ["benchmark", "checkpoint", "data"]


def __getattr__(name: str) -> object:
    if name in ("benchmark", "data"):
        return importlib.import_module(f"chainrule.utils.{name}")
    raise errors.unknown_name(name, __all__, __name__)
