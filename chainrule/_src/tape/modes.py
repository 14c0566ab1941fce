"""Which operations are recorded: thread-local modes, behind one flag that the hot path can afford to read.

Almost always every thread records. ``SPECIAL`` has an entry for every thread (and context) in which that is not so; while
it is empty the hot path needs no thread-local look-up. It is a list because adding and removing an entry needs no lock.
"""

from __future__ import annotations

import threading
from typing import Any

from chainrule._src.arrays.types import AnyFunction, Params


class Mode:
    """What a thread does with its operations. There is one record for each combination, in ``MODES``.

    Attributes:
        grad: gradient mode is on.
        inference: in inference mode.
        silent: inside a custom Function, where it is no mistake that something is not recorded.
        records: operations are recorded.
    """

    __slots__ = ("grad", "inference", "records", "silent")

    def __init__(self, grad: bool, inference: bool, silent: bool) -> None:
        self.grad, self.inference, self.silent = grad, inference, silent
        self.records = grad and not inference

    def with_grad(self, grad: bool) -> Mode:
        return MODES[grad, self.inference, self.silent]


_BOTH = (False, True)
#: all modes, by (grad, inference, silent)
MODES = {
    (grad, inference, silent): Mode(grad, inference, silent)
    for grad in _BOTH
    for inference in _BOTH
    for silent in _BOTH
}  # fmt: skip
_USUAL = MODES[True, False, False]
SPECIAL: list[None] = []
WATCHES: list[None] = []  # an entry for every watch that is on, in whatever thread


class _End:
    """Takes back the entries of a thread that ended in a mode. It is in a cycle with the thread's state: the garbage
    collector finds both, and the state is still whole then.
    """

    __slots__ = ("local", "state")

    def __init__(self, local: type[_Local], state: Params) -> None:
        self.local = local
        self.state = state

    def __del__(self, special: list[None] = SPECIAL, watches: list[None] = WATCHES) -> None:
        entries = len(self.state.get("saved_hooks", ()))
        if not self.state.get("mode", _USUAL).records:
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
    saved_hooks: tuple[tuple[AnyFunction, AnyFunction], ...] = ()  # see ``saved``
    saved_disabled: str | None = None
    watch: Any = None  # see ``watch``
    sweep: Any = None  # the backward pass that is running, see ``engine``
    overriding = True  # operands are asked for ``__torch_function__``, see ``overriding``
    recorder: Any = None  # what ``compile`` records this thread's operations with, see ``interpreters.recorder``

    def __init__(self) -> None:
        self.end = _End(type(self), self.__dict__)


LOCAL = _Local()


def recording() -> bool:
    """Whether operations of this thread go on the tape."""
    return not SPECIAL or LOCAL.mode.records


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
    if before.records and not mode.records:
        _one_more()
    LOCAL.mode = mode
    if mode.records and not before.records:
        SPECIAL.pop()
    return before


class grad_mode:
    """Gradient mode as asked for, for the duration of a ``with`` block."""

    __slots__ = ("before", "grad")

    def __init__(self, grad: bool) -> None:
        self.grad = grad

    def __enter__(self) -> None:
        self.before = LOCAL.mode.grad
        switch(LOCAL.mode.with_grad(self.grad))

    def __exit__(self, *exc: object) -> None:
        switch(LOCAL.mode.with_grad(self.before))
