"""Which operations are recorded: thread-local modes, behind one flag that the hot path can afford to read.

Almost always every thread records. ``SPECIAL`` has an entry for every thread (and context) in which that is not so; while
it is empty the hot path needs no thread-local look-up. It is a list because adding and removing an entry needs no lock.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from chainrule import errors

F = TypeVar("F", bound=Callable[..., Any])


class Mode:
    """What a thread does with its operations. There is one record for each combination; records know their neighbours.

    Attributes:
        grad: operations are recorded.
        asked: they would be, were it not for inference mode.
        inference: in inference mode.
        bare: neither: results are just data.
        quiet: inside a custom Function: what is not recorded there is no mistake, and needs no note of where.
        on, off: the same, but asked or not.
        hushed, muted: the same, but quiet; quiet and not asked.
    """

    __slots__ = ("asked", "bare", "grad", "hushed", "inference", "muted", "off", "on", "quiet")

    asked: bool
    grad: bool
    inference: bool
    bare: bool
    quiet: bool
    on: Mode
    off: Mode
    hushed: Mode
    muted: Mode


def _modes() -> dict[tuple[bool, bool, bool], Mode]:
    """All modes, by (asked, inference, quiet)."""
    both = (False, True)
    modes = {(asked, inference, quiet): Mode() for asked in both for inference in both for quiet in both}
    for (asked, inference, quiet), mode in modes.items():
        mode.asked, mode.inference, mode.quiet = asked, inference, quiet
        mode.grad = asked and not inference
        mode.bare = not asked and not inference
        mode.on, mode.off = modes[True, inference, quiet], modes[False, inference, quiet]
        mode.hushed, mode.muted = modes[asked, inference, True], modes[False, inference, True]
    return modes


MODES = _modes()


_USUAL = MODES[True, False, False]
SPECIAL: list[None] = []
WATCHES: list[None] = []  # an entry for every watch that is on, in whatever thread


class _End:
    """Takes back the entries of a thread that ended in a mode. It is in a cycle with the thread's state: the garbage
    collector finds both, and the state is still whole then.
    """

    __slots__ = ("local", "state")

    def __init__(self, local: Any, state: dict[str, Any]) -> None:
        self.local = local
        self.state = state

    def __del__(self, special: list[None] = SPECIAL, watches: list[None] = WATCHES) -> None:
        entries = len(self.state.get("saved_hooks", ()))
        if not self.state.get("mode", _USUAL).grad:
            entries += 1
        watch = self.state.get("watch")
        while watch is not None and watch is not self.local.watch:  # which all threads share
            watches.pop()
            entries += 1
            watch = watch.inner
        for _ in range(entries):
            special.pop()


class _Local(threading.local):
    mode = _USUAL
    traced = False  # inside grad or vjp that was called in inference mode: what is made there may be saved
    saved_hooks: tuple[Any, ...] = ()  # see ``saved``
    saved_disabled: str | None = None
    watch: Any = None  # see ``watch``
    sweep: Any = None  # the backward pass that is running, see ``engine``

    def __init__(self) -> None:
        self.end = _End(type(self), self.__dict__)


LOCAL = _Local()


def recording() -> bool:
    """Whether operations of this thread go on the tape."""
    return not SPECIAL or LOCAL.mode.grad


def is_grad_enabled() -> bool:
    """Whether gradient mode is on in this thread.

    >>> import chainrule as cr
    >>> with cr.no_grad():
    ...     cr.is_grad_enabled()
    False
    """
    return LOCAL.mode.asked


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside :class:`inference_mode`."""
    return LOCAL.mode.inference


def _one_more() -> None:
    """An entry of ``SPECIAL``, or none if Ctrl-C comes."""
    try:
        SPECIAL.append(None)
    except BaseException:
        SPECIAL.pop()
        raise


def set_special() -> None:
    """Have operations take the path that looks at the thread's modes, until ``leave_special``."""
    _one_more()


def leave_special() -> None:
    SPECIAL.pop()


def set_watched() -> None:
    """``set_special``, for a watch."""
    WATCHES.append(None)
    set_special()


def leave_watched() -> None:
    WATCHES.pop()
    leave_special()


def switch(mode: Mode) -> Mode:
    """Put this thread in a mode; returns the one it was in.

    Python looks for Ctrl-C when a function is called and when one that is written in C returns. Whoever has to get back
    whatever happens therefore does not call this in ``finally``, but assigns ``LOCAL.mode`` there, and then puts the entries
    of ``SPECIAL`` right.
    """
    before = LOCAL.mode
    if before.grad and not mode.grad:
        _one_more()
    LOCAL.mode = mode
    if mode.grad and not before.grad:
        SPECIAL.pop()
    return before


def _set_grad(asked: bool) -> None:
    mode = LOCAL.mode
    switch(mode.on if asked else mode.off)


class _Context:
    """A context manager that is also a decorator, for functions and for generator functions."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def clone(self) -> _Context:
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            errors.warn(
                "Decorating classes is deprecated and will be disabled in future versions: it makes the class a function, and "
                "reaches __init__ alone. Decorate the methods.",
                FutureWarning,
            )
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def stepped(*args: Any, **kwargs: Any) -> Any:
                # The mode holds while the generator's own code runs, not while its consumer's does.
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
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


class no_grad(_Context):
    """Operations inside are not recorded; their results do not require grad.

    Works as a context manager and as a decorator, with or without parentheses.

    >>> import chainrule as cr
    >>> x = cr.tensor([1.0], requires_grad=True)
    >>> with cr.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    enabled = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        self = super().__new__(cls)
        if function is None:
            return self
        if not callable(function):
            raise TypeError(f"{cls.__name__}() takes no argument, or the function to decorate; got {function!r}")
        return self(function)

    def __enter__(self) -> None:
        self.previous = LOCAL.mode.asked
        _set_grad(self.enabled)

    def __exit__(self, *exc: object) -> None:
        _set_grad(self.previous)


class enable_grad(no_grad):
    """Operations inside are recorded, also within :class:`no_grad`."""

    enabled = True


class set_grad_enabled(_Context):
    """Switch gradient mode to ``mode``: at once when called, and back at the end when used with ``with``."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'mode' must be bool, not {type(mode).__name__}")
        self.mode = mode
        self.previous = LOCAL.mode.asked
        _set_grad(mode)

    def clone(self) -> _Context:
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        _set_grad(self.previous)
        return super().__call__(function)

    def __enter__(self) -> None:
        _set_grad(self.mode)

    def __exit__(self, *exc: object) -> None:
        _set_grad(self.previous)


class inference_mode(_Context):
    """As :class:`no_grad`, for code whose results never meet autograd. ``inference_mode(False)`` records."""

    mode: bool
    previous: Mode

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if callable(mode):
            self.mode = True
            return self(mode)
        self.mode = bool(mode)
        return self

    def clone(self) -> _Context:
        copy: _Context = inference_mode(self.mode)
        return copy

    def __enter__(self) -> None:
        self.previous = switch(MODES[not self.mode, self.mode, LOCAL.mode.quiet])

    def __exit__(self, *exc: object) -> None:
        before = self.previous
        switch(MODES[before.asked, before.inference, LOCAL.mode.quiet])
