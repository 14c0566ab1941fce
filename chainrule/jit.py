"""``torch.jit``'s decorators, which leave functions and modules as they are; :func:`chainrule.compile` makes them fast."""

from __future__ import annotations

from typing import Any, TypeVar

from chainrule import errors

__all__ = [
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "export",
    "ignore",
    "is_scripting",
    "is_tracing",
    "script",
    "trace",
    "unused",
]

T = TypeVar("T")


class ScriptFunction:
    """What PyTorch's scripts are; nothing is one here."""


class ScriptModule:
    """What PyTorch's scripts of modules are; nothing is one here."""


def script(obj: T, **options: Any) -> T:
    """The function or module itself: a script computes what it does.

    >>> import chainrule as torch
    >>> @torch.jit.script
    ... def f(x):
    ...     return 2 * x
    >>> f(torch.ones(2))
    tensor([2., 2.])
    """
    return obj


class TracerWarning(Warning):
    """What PyTorch warns of where a trace does not see all that a function does; nothing warns of it here."""


def trace(func: T, example_inputs: Any = None, **options: Any) -> T:
    """The function or module itself: a trace computes what it does, for inputs that go its way."""
    return func


def ignore(drop: T = None, **options: Any) -> Any:  # type: ignore[assignment]
    """The function itself; with options only, the decorator."""
    return drop if callable(drop) else lambda function: function


def unused(fn: T) -> T:
    """The function itself."""
    return fn


def export(fn: T) -> T:
    """The function itself."""
    return fn


def is_scripting() -> bool:
    """Whether this is a script: no."""
    return False


def is_tracing() -> bool:
    """Whether this is a trace: no."""
    return False


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
