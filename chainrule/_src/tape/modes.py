"""Thread-local modes, which decide whether operations are recorded, and one global flag for the fast path.

By default every thread records, without hooks, watches and traces. ``ACTIVE_MODES`` has an entry for each thread and context
that deviates from the default. While it is empty, the fast path needs no thread-local look-up. It is a list because
adding and removing an entry needs no lock.
"""

from __future__ import annotations

import threading
from typing import Any

from chainrule._src.arrays.types import AnyFunction, Params


class Mode:
    """The mode of a thread. ``MODES`` has the one instance of each combination.

    Attributes:
        grad: gradient mode is on.
        inference: inference mode is on.
        silent: the thread is inside a custom Function, where unrecorded results do not store the source line that cut their path.
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
ACTIVE_MODES: list[None] = []
WATCHES: list[None] = []  # an entry for each active watch of any thread


class _Cleanup:
    """Remove a thread's entries from ``ACTIVE_MODES`` and ``WATCHES`` if the thread ends in a mode.

    The object and the thread's state form a reference cycle, so that the state still exists when ``__del__`` runs.
    """

    __slots__ = ("local", "state")

    def __init__(self, local: type[_Local], state: Params) -> None:
        self.local = local
        self.state = state

    def __del__(self, special: list[None] = ACTIVE_MODES, watches: list[None] = WATCHES) -> None:
        entries = len(self.state.get("saved_hooks", ()))
        if not self.state.get("mode", _USUAL).records:
            entries += 1
        watch = self.state.get("watch")
        while watch is not None and watch is not self.local.watch:  # the class attribute, which all threads share
            watches.pop()
            entries += 1
            watch = watch.inner
        for _ in range(entries):
            special.pop()


class _Local(threading.local):
    mode = _USUAL
    traced = False  # inside grad or vjp called in inference mode: inference tensors made there can be saved
    saved_hooks: tuple[tuple[AnyFunction, AnyFunction], ...] = ()  # see ``saved``
    saved_disabled: str | None = None
    watch: Any = None  # see ``watch``
    sweep: Any = None  # the running backward pass, see ``engine``
    overriding = True  # operations call ``__torch_function__`` of their operands, see the module ``overriding``
    recorder: Any = None  # the recorder with which ``compile`` traces this thread, see ``interpreters.recorder``

    def __init__(self) -> None:
        self.cleanup = _Cleanup(type(self), self.__dict__)


LOCAL = _Local()


def is_recording() -> bool:
    """Return whether operations of this thread are recorded on the tape."""
    return not ACTIVE_MODES or LOCAL.mode.records


def _add_active_mode() -> None:
    """Add an entry to ``ACTIVE_MODES``, or none if an exception such as KeyboardInterrupt is raised."""
    try:
        ACTIVE_MODES.append(None)
    except BaseException:
        ACTIVE_MODES.pop()
        raise


def enter_active_mode() -> None:
    """Make operations read the thread's modes until ``leave_active_mode``."""
    _add_active_mode()


def leave_active_mode() -> None:
    ACTIVE_MODES.pop()


def set_watched() -> None:
    """Do the same as ``enter_active_mode``, for a watch."""
    WATCHES.append(None)
    enter_active_mode()


def leave_watched() -> None:
    WATCHES.pop()
    leave_active_mode()


def switch_mode(mode: Mode) -> Mode:
    """Set the mode of this thread and return the previous one.

    Do not call this in ``finally``: Python handles Ctrl-C at calls of functions and at returns of C functions, so the call
    can be interrupted. Assign ``LOCAL.mode`` there, and then correct the entries of ``ACTIVE_MODES``.
    """
    before = LOCAL.mode
    if before.records and not mode.records:
        _add_active_mode()
    LOCAL.mode = mode
    if mode.records and not before.records:
        ACTIVE_MODES.pop()
    return before


class grad_mode:
    """A context that turns gradient mode on or off."""

    __slots__ = ("before", "grad")

    def __init__(self, grad: bool) -> None:
        self.grad = grad

    def __enter__(self) -> None:
        self.before = LOCAL.mode.grad
        switch_mode(LOCAL.mode.with_grad(self.grad))

    def __exit__(self, *exc: object) -> None:
        switch_mode(LOCAL.mode.with_grad(self.before))
