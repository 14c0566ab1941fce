"""``torch.jit``'s decorators, which leave functions and modules as they are; :func:`chainrule.compile` makes them fast."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from types import FunctionType, MethodType
from typing import Any, TypeVar

from chainrule._src.arrays.types import AnyFunction
from chainrule._src.messages import errors
from chainrule._src.tape.tensor import Tensor

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


def script(obj: T, **options: object) -> T:
    """Return the function or module itself: a script computes what it does.

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


def trace(
    func: Any,
    example_inputs: Any = None,
    *,
    example_kwarg_inputs: Any = None,
    **options: object,
) -> Any:
    """Return a function that does what another does while it is traced, which it is run for once; a module as it is.

    Args:
        func: a function or module, run on the example inputs. :func:`is_tracing` is true meanwhile, and for a function in all
            calls of the result, which go the way that a trace went.
        example_inputs: its arguments: a tuple, or one tensor or dictionary.
        example_kwarg_inputs: its arguments by name.
        **options: what PyTorch's checks of traces take; nothing is checked.
    """
    if example_inputs is None:
        arguments: tuple[Any, ...] = ()
    else:
        arguments = (example_inputs,) if isinstance(example_inputs, (Tensor, dict)) else tuple(example_inputs)

    @functools.wraps(func, updated=())
    def traced(*args: object, **kwargs: Any) -> Any:
        token = _TRACING.set(True)
        try:
            return func(*args, **kwargs)
        finally:
            _TRACING.reset(token)

    traced(*arguments, **(example_kwarg_inputs or {}))
    return traced if isinstance(func, (FunctionType, MethodType)) else func


def ignore(drop: T = None, **options: object) -> AnyFunction:  # type: ignore[assignment]
    """Return the function itself; with options only, the decorator."""
    return drop if callable(drop) else lambda function: function


def unused(fn: T) -> T:
    """Return the function itself."""
    return fn


def export(fn: T) -> T:
    """Return the function itself."""
    return fn


def is_scripting() -> bool:
    """Return whether this is a script: no."""
    return False


def is_tracing() -> bool:
    """Return whether :func:`trace`, or a function that it gave, is running another."""
    return _TRACING.get()


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
