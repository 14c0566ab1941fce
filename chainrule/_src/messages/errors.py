"""What is said when something goes wrong.

Each message starts with PyTorch's exception type and key words, so that searching the web still works; then it says what is
wrong in terms of the user's own variables, operations, shapes and lines; then what to do.

Messages load when one is first needed, which in most programs is never. Those that read the tape stand above the core,
in ``diagnosis``, and are reached by the same names.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable
from opcode import opmap
from types import FunctionType
from typing import Any

from chainrule._src.messages.places import PACKAGE, Where, calling_frame, user_frame, user_line, warn
from chainrule._src.messages.words import DATA, GRADIENT, LINEAR, Cut, UnknownName, dtype_word, or_plain, tensor_type

#: where messages are looked for; ``chainrule`` adds the place above the core
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
                    found = or_plain(found)
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def unknown_name(name: str, known: Iterable[str], module: str) -> Exception:
    """What a module's ``__getattr__`` raises for a name that it lacks. In ``from module import name`` an ImportError.

    (Python turns an AttributeError there into an ImportError without its words. Names like ``__path__`` the import system
    asks for, and nobody reads the answer.)
    """
    if name.startswith("__"):
        return AttributeError(name)
    hint = functools.partial(_hint, name, known, module)
    frame = sys._getframe(2)
    if frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import name {name!r} from {module!r}{or_plain(hint)(None)}", name=name)
    return UnknownName(f"module {module!r} has no attribute {name!r}", hint)


def _hint(name: str, known: Iterable[str], module: str, error: object) -> str:
    return str(__getattr__("name_hint")(name, known, module))


__all__ = [
    "DATA", "GRADIENT", "LINEAR", "PACKAGE", "Cut", "UnknownName", "Where", "calling_frame", "dtype_word", "tensor_type",
    "unknown_name", "user_frame", "user_line", "warn",
]  # fmt: skip
