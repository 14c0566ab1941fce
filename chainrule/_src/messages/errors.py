"""Look up error messages and warnings by name: ``raise errors.matmul_shapes("matmul", x, y)``.

All other packages use this module. A message has PyTorch's exception type and starts with PyTorch's wording, so that a web
search finds it. Then it names the user's variables, operations, shapes and lines, and suggests a fix.

The modules that hold the messages (``LATER``) are imported on first use. Messages that read the tape are in
``explaining/diagnosis``, which imports the tape, and are looked up by the same attribute access.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable
from opcode import opmap
from types import FunctionType
from typing import Any

from chainrule._src.messages.message_parts import (
    DATA,
    GRADIENT,
    LINEAR,
    Cut,
    UnknownName,
    dtype_word,
    tensor_type,
    with_fallback,
)
from chainrule._src.messages.source_locations import PACKAGE, Where, calling_frame, user_frame, user_line, warn

#: modules in which messages are looked up; ``chainrule/__init__.py`` appends ``explaining.diagnosis``
LATER = [
    f"chainrule._src.messages.{name}"
    for name in ("shapes", "values", "features", "hints", "kinds", "libraries", "foreign")
]


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        tables = importlib.import_module("chainrule._src.messages.table")
        for module in (None, *LATER):
            found = tables.message(name) if module is None else getattr(importlib.import_module(module), name, None)
            if found is not None:
                if type(found) is FunctionType and not name.startswith("check_"):
                    found = with_fallback(found)
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def unknown_name(name: str, known: Iterable[str], module: str) -> Exception:
    """Return the exception that a module's ``__getattr__`` raises for a missing name.

    It is an ImportError in ``from module import name``, where Python would replace an AttributeError with an ImportError
    without its message. The import system itself looks up dunder names such as ``__path__``: these get no hint.
    """
    if name.startswith("__"):
        return AttributeError(name)
    hint = functools.partial(_hint, name, known, module)
    frame = sys._getframe(2)
    if frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import name {name!r} from {module!r}{with_fallback(hint)(None)}", name=name)
    return UnknownName(f"module {module!r} has no attribute {name!r}", hint)


def _hint(name: str, known: Iterable[str], module: str, error: object) -> str:
    return str(__getattr__("name_hint")(name, known, module))


__all__ = [
    "DATA", "GRADIENT", "LINEAR", "PACKAGE", "Cut", "UnknownName", "Where", "calling_frame", "dtype_word", "tensor_type",
    "unknown_name", "user_frame", "user_line", "warn",
]  # fmt: skip
