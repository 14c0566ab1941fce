"""The decorators of ``torch.jit``, which return functions and modules unchanged. See :func:`chainrule.compile`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextvars import ContextVar
from types import FunctionType, MethodType, ModuleType
from typing import Any, Never, TypeVar, overload

from chainrule._src.api.public_modules import show
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
    "script_if_tracing",
    "trace",
    "trace_module",
    "unused",
]

T = TypeVar("T")


class _Uncallable(ModuleType):
    """The class of this module, whose call names the function to use: ``jax.jit`` is a function."""

    def __call__(self, *args: object, **options: object) -> Never:
        raise errors.jit_called()


sys.modules[__name__].__class__ = _Uncallable


class ScriptFunction:
    """The type of PyTorch's scripted functions, for ``isinstance`` checks; it has no instances."""


class ScriptModule:
    """The type of PyTorch's scripted modules, for ``isinstance`` checks; it has no instances."""


def script(obj: T, **options: object) -> T:
    """Return the function or module unchanged.

    >>> import chainrule as torch
    >>> @torch.jit.script
    ... def f(x):
    ...     return 2 * x
    >>> f(torch.ones(2))
    tensor([2., 2.])
    """
    return obj


class TracerWarning(Warning):
    """The warning of PyTorch about incomplete traces; it is never raised."""


#: whether a traced function is running
_TRACING: ContextVar[bool] = ContextVar("tracing", default=False)


def trace(
    func: Any,
    example_inputs: Any = None,
    *,
    example_kwarg_inputs: Any = None,
    **options: object,
) -> Any:
    """Call a function or module once on example inputs; return the wrapped function or the module.

    Args:
        func: a function or module. :func:`is_tracing` is true during this call, and for a function during all calls of
            the result, so that they take the same branches.
        example_inputs: its arguments: a tuple, or one tensor or dictionary.
        example_kwarg_inputs: its keyword arguments.
        **options: PyTorch's options for checking traces, ignored.
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


def trace_module(mod: T, inputs: dict[str, Any], **options: object) -> T:
    """Call methods of a module once, each with example inputs; return the module.

    Args:
        mod: the module.
        inputs: the example inputs of each method: a tuple, or one tensor or dictionary.
        **options: PyTorch's options for checking traces, ignored.
    """
    for name, example_inputs in inputs.items():
        trace(getattr(mod, name), example_inputs)
    return mod


def script_if_tracing(fn: T) -> T:
    """Return the function unchanged."""
    return fn


@overload
def ignore(drop: bool = False, **options: object) -> Callable[[T], T]: ...
@overload
def ignore(drop: T, **options: object) -> T: ...
def ignore(drop: Any = False, **options: object) -> Any:
    """Return the function unchanged; with options only, return a decorator."""
    return drop if callable(drop) else lambda function: function


def unused(fn: T) -> T:
    """Return the function unchanged."""
    return fn


def export(fn: T) -> T:
    """Return the function unchanged."""
    return fn


def is_scripting() -> bool:
    """Return whether the code runs in a script: always False."""
    return False


def is_tracing() -> bool:
    """Return whether :func:`trace` or a function returned by it is running."""
    return _TRACING.get()


show(globals())
