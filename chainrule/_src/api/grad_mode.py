"""Gradient mode and inference mode, as context managers and decorators.

``chainrule`` and ``chainrule.autograd`` export them. The transformations use them around the functions that they call.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Self, TypeVar, overload

from chainrule._src.arrays.types import AnyFunction
from chainrule._src.messages import errors
from chainrule._src.tape.modes import LOCAL, MODES, Mode, switch_mode

F = TypeVar("F", bound=AnyFunction)


def is_grad_enabled() -> bool:
    """Return whether gradient mode is on in this thread.

    >>> import chainrule as cr
    >>> with cr.no_grad():
    ...     cr.is_grad_enabled()
    False
    """
    return LOCAL.mode.grad


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is inside :class:`inference_mode`."""
    return LOCAL.mode.inference


def _set_grad(grad: bool) -> None:
    switch_mode(LOCAL.mode.with_grad(grad))


class ModeContext:
    """A context manager that is also a decorator, for functions and for generator functions."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def clone(self) -> ModeContext:
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            errors.warn(
                "Decorating classes is deprecated and will be disabled in future versions: it makes the class a function, and "
                "affects only __init__. Decorate the methods.",
                FutureWarning,
            )
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def stepped(*args: object, **kwargs: object) -> Any:
                # The mode applies to the generator's own code, not to its consumer's.
                steps = function(*args, **kwargs)
                send, value = steps.send, None
                try:
                    while True:
                        with self.clone():
                            try:
                                item = send(value)
                            except StopIteration as stop:
                                return stop.value
                        try:
                            value = yield item
                            send = steps.send
                        except GeneratorExit:
                            raise
                        except BaseException as error:
                            value, send = error, steps.throw
                finally:
                    with self.clone():
                        steps.close()

            return stepped  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: object, **kwargs: object) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


class no_grad(ModeContext):
    """Disable recording: results of operations inside do not require grad.

    Use it as a context manager or as a decorator, with or without parentheses.

    >>> import chainrule as cr
    >>> x = cr.tensor([1.0], requires_grad=True)
    >>> with cr.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    __module__ = "chainrule"
    enabled = False

    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: AnyFunction | None = None) -> Any:
        self = super().__new__(cls)
        if function is None:
            return self
        if not callable(function):
            raise TypeError(f"{cls.__name__}() takes no argument, or the function to decorate; got {function!r}")
        return self(function)

    def __enter__(self) -> None:
        self.previous = LOCAL.mode.grad
        _set_grad(self.enabled)

    def __exit__(self, *exc: object) -> None:
        _set_grad(self.previous)


class enable_grad(no_grad):
    """Enable recording, also within :class:`no_grad`."""

    __module__ = "chainrule"
    enabled = True


class set_grad_enabled(ModeContext):
    """Switch gradient mode to ``mode`` at once; as a context manager, restore the previous mode at the end."""

    __module__ = "chainrule"

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'mode' must be bool, not {type(mode).__name__}")
        self.mode = mode
        self.previous = LOCAL.mode.grad
        _set_grad(mode)

    def clone(self) -> ModeContext:
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        _set_grad(self.previous)
        return super().__call__(function)

    def __enter__(self) -> None:
        _set_grad(self.mode)

    def __exit__(self, *exc: object) -> None:
        _set_grad(self.previous)


class inference_mode(ModeContext):
    """Disable recording like :class:`no_grad`, for results that are never used with autograd. ``inference_mode(False)`` records."""

    __module__ = "chainrule"

    mode: bool
    previous: Mode

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if callable(mode):
            self.mode = True
            return self(mode)
        self.mode = bool(mode)
        return self

    def clone(self) -> ModeContext:
        copy: ModeContext = inference_mode(self.mode)
        return copy

    def __enter__(self) -> None:
        self.previous = switch_mode(MODES[not self.mode, self.mode, LOCAL.mode.silent])

    def __exit__(self, *exc: object) -> None:
        before = self.previous
        switch_mode(MODES[before.grad, before.inference, LOCAL.mode.silent])
