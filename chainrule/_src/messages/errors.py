"""All error messages and warnings, by name: ``raise errors.matmul_shapes("matmul", x, y)``.

All other packages use this module. A message has PyTorch's exception type and starts with PyTorch's wording, so that a web
search finds it. Then it names the user's variables, operations, shapes and lines, and suggests a fix.

The messages are functions in the modules of this package. Editors and type checkers read the imports below. At run time a module
is imported at the first use of one of its messages, because importing all of them would slow down the import of chainrule.
"""

# ruff: noqa: F403

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable
from opcode import opmap
from types import FunctionType
from typing import TYPE_CHECKING

from chainrule._src.messages.checks import *
from chainrule._src.messages.kinds import *
from chainrule._src.messages.message_parts import *
from chainrule._src.messages.message_parts import UnknownName, with_fallback
from chainrule._src.messages.source_locations import *

if TYPE_CHECKING:
    from chainrule._src.messages.arguments import *
    from chainrule._src.messages.compilation import *
    from chainrule._src.messages.custom_functions import *
    from chainrule._src.messages.diagnosis import *
    from chainrule._src.messages.explanations import *
    from chainrule._src.messages.files import *
    from chainrule._src.messages.foreign import *
    from chainrule._src.messages.gradients import *
    from chainrule._src.messages.hints import *
    from chainrule._src.messages.jacobians import *
    from chainrule._src.messages.libraries import *
    from chainrule._src.messages.shapes import *
    from chainrule._src.messages.tensors import *
    from chainrule._src.messages.transformations import *
    from chainrule._src.messages.values import *
else:
    #: the same modules, in the order in which they are searched
    MODULES = (
        "shapes", "arguments", "values", "tensors", "hints", "gradients", "transformations", "custom_functions",
        "jacobians", "compilation", "explanations", "files", "foreign", "libraries", "diagnosis",
    )  # fmt: skip

    def __getattr__(name):
        if not name.startswith("__"):
            for module in MODULES:
                found = getattr(importlib.import_module(f"chainrule._src.messages.{module}"), name, None)
                if found is not None:
                    if type(found) is FunctionType:
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
    return str(importlib.import_module("chainrule._src.messages.hints").name_hint(name, known, module))
