"""Every message a user can meet, in one place.

Each starts with PyTorch's exception type and key words, so that searching the web still works; then it says what is
wrong in terms of the user's own variables, operations, shapes and lines; then what to do.

There is a module for each area. They load when something of theirs is first needed, which in most programs is never.
"""

# ruff: noqa: F403

from __future__ import annotations

import importlib
from types import FunctionType
from typing import TYPE_CHECKING

from chainrule.errors.words import *
from chainrule.errors.words import or_plain

if TYPE_CHECKING:
    from chainrule.errors.algebra import *
    from chainrule.errors.arrays import *
    from chainrule.errors.backward import *
    from chainrule.errors.checkpoints import *
    from chainrule.errors.debugging import *
    from chainrule.errors.files import *
    from chainrule.errors.functions import *
    from chainrule.errors.hooks import *
    from chainrule.errors.making import *
    from chainrule.errors.operations import *
    from chainrule.errors.spatial import *
    from chainrule.errors.tensors import *
    from chainrule.errors.transforms import *
    from chainrule.errors.writing import *

_AREAS = (
    "operations", "backward", "tensors", "writing", "making", "transforms", "hooks", "functions", "algebra", "debugging",
    "checkpoints", "files", "spatial", "arrays",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if not name.startswith("__"):
        for area in _AREAS:
            module = importlib.import_module(f"{__name__}.{area}")
            if hasattr(module, name):
                found = getattr(module, name)
                if type(found) is FunctionType and not name.startswith("check_"):
                    found = or_plain(found)
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
