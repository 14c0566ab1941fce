"""Queries about compilation, like ``torch.compiler``. While a function is recorded, its Python code runs unchanged.

>>> import chainrule as torch
>>> torch.compile(lambda x: -x if torch.compiler.is_compiling() else x)(torch.ones(1))
tensor([1.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from chainrule._src.api.public_modules import show
from chainrule._src.compiling import compile
from chainrule._src.compiling.compiled import Compiled

__all__ = [
    "Compiled",
    "allow_in_graph",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "reset",
]


T = TypeVar("T")


def is_compiling() -> bool:
    """Return False: a compiled function runs the same code as without compilation."""
    return False


def is_dynamo_compiling() -> bool:
    """Return whether PyTorch's compiler traces this code: always False."""
    return False


def is_exporting() -> bool:
    """Return whether a program is being exported: always False."""
    return False


@overload
def disable(fn: None = None, recursive: bool = True, *, reason: str | None = None) -> Callable[[T], T]: ...
@overload
def disable(fn: T, recursive: bool = True, *, reason: str | None = None) -> T: ...
def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function unchanged; with options only, return a decorator: compiled functions may call it."""
    return fn if callable(fn) else lambda function: function


def allow_in_graph(fn: T) -> T:
    """Return the function unchanged: it is recorded like any other."""
    return fn


def reset() -> None:
    """Do nothing: only the compiled functions themselves cache compiled code."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing; PyTorch programs mark the start of a step with it."""


show(globals())
