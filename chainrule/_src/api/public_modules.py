"""Set the ``__module__`` of public functions to the public module that exports them, for ``help`` and pickling.

Classes set it themselves, in their first line (``__module__ = "chainrule.jacobians"``): instances may exist before the
public module is loaded.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any


def shown(x: object, home: str) -> Any:
    """Return a public object; set a function's ``__module__`` unless another public module has exported it before."""
    if type(x) is FunctionType and x.__module__.startswith("chainrule._src."):
        x.__module__ = home
    return x


def show(face: dict[str, Any]) -> None:
    """Set the ``__module__`` of the functions in a public module's ``__all__``."""
    for name in face["__all__"]:
        shown(face.get(name), face["__name__"])
