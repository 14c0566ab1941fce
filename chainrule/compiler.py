"""``torch.compiler``: what programs ask of PyTorch's compiler. Functions run as they are written while they are recorded.

>>> import chainrule as torch
>>> torch.compile(lambda x: -x if torch.compiler.is_compiling() else x)(torch.ones(1))
tensor([1.])
"""

from __future__ import annotations

from typing import TypeVar

from chainrule._src.api.faces import show
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.compiling import compile
from chainrule._src.compiling.compiled import Compiled  # noqa: F401 -- as it is pickled
from chainrule._src.messages import errors

__all__ = [
    "allow_in_graph",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "reset",
]

show(globals())

T = TypeVar("T")


def is_compiling() -> bool:
    """Return whether code is to be other than when it runs as it is: no, a compiled function computes what it does without."""
    return False


def is_dynamo_compiling() -> bool:
    """Return whether PyTorch's compiler reads this code: no."""
    return False


def is_exporting() -> bool:
    """Return whether a program is being exported: no."""
    return False


def disable(fn: T = None, recursive: bool = True, *, reason: str | None = None) -> AnyFunction:  # type: ignore[assignment]
    """Return the function itself, with options only the decorator: compiled functions may call it, and compute what it does."""
    return fn if callable(fn) else lambda function: function


def allow_in_graph(fn: T) -> T:
    """Return the function itself: whatever can be recorded may be in a recording."""
    return fn


def reset() -> None:
    """Forget what was compiled: nothing is kept but by the compiled functions themselves."""


def cudagraph_mark_step_begin() -> None:
    """Say that a step begins: nothing asks for it."""


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
