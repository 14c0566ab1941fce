"""What a face shows is the face's: help and pickles name where users find a function, not the room that it is made in.

A class says so itself, in its first line (``__module__ = "chainrule.jacobians"``): there are objects of it before its face is loaded.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any


def shown(x: object, home: str) -> Any:
    """Return a public object; a function is from then on its home's, if no other module has shown it before."""
    if type(x) is FunctionType and x.__module__.startswith("chainrule._src."):
        x.__module__ = home
    return x


def show(face: dict[str, Any]) -> None:
    """Say where users find the functions that a module shows."""
    for name in face["__all__"]:
        shown(face.get(name), face["__name__"])
