"""``torch.jit``'s decorators, which leave functions and modules as they are; :func:`chainrule.compile` makes them fast."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, TypeVar

from chainrule import errors
from chainrule.core.tensor import Tensor

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


#: whether a function is run on example inputs
_TRACING: ContextVar[bool] = ContextVar("tracing", default=False)


def trace(func: T, example_inputs: Any = None, *, example_kwarg_inputs: Any = None, **options: Any) -> T:
    """The function or module itself, which was run once: a trace computes what it does, for inputs that go its way.

    Args:
        func: what is run, and returned.
        example_inputs: its arguments: a tuple, or one tensor or dictionary.
        example_kwarg_inputs: its arguments by name.
        **options: what PyTorch's checks of traces take; nothing is checked.
    """
    if example_inputs is None:
        arguments: tuple[Any, ...] = ()
    else:
        arguments = (example_inputs,) if isinstance(example_inputs, (Tensor, dict)) else tuple(example_inputs)
    token = _TRACING.set(True)
    try:
        func(*arguments, **(example_kwarg_inputs or {}))  # type: ignore[operator]
    finally:
        _TRACING.reset(token)
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
    """Whether :func:`trace` is running a function on its example inputs."""
    return _TRACING.get()


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
