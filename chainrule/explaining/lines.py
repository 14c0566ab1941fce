"""Remembering which line of the program called an operation.

Without this, graphs and explanations find lines by reading the source (``errors.source``), which costs nothing while the
program runs, but leaves out what can have been computed on several lines (``errors.statements``). A recorded line is
exact, also inside functions that have returned.
"""

from __future__ import annotations

from typing import Any

from chainrule import errors
from chainrule.core.modes import LOCAL, set_watched
from chainrule.core.watch import Watch
from chainrule.errors.source import SourceLine, line_at


class _Lines(Watch):
    """Notes the user's line in the metadata of every node."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, int], SourceLine] = {}

    def recorded(self, node: Any) -> None:
        super().recorded(node)
        frame = errors.calling_frame()
        if frame is None:
            return
        file, line = frame.f_code.co_filename, frame.f_lineno
        noted = self.known.get((file, line))
        if noted is None:
            noted = self.known[file, line] = line_at(file, line, frame.f_globals)
        node.metadata.setdefault("line", noted)


def _watching() -> Watch | None:
    watch = LOCAL.watch
    while watch is not None and type(watch) is not _Lines:
        watch = watch.inner
    return watch  # type: ignore[no-any-return]


def _set(mode: bool) -> None:
    watch = _watching()
    if mode and watch is None:
        _Lines().__enter__()
    elif not mode and watch is not None:
        if watch is type(LOCAL).watch:  # other threads go on
            set_watched()
        watch.__exit__()


class record_lines:
    """Note for every operation the line of your program that called it: at once, or for a ``with`` block.

    The line is then in ``tensor.grad_fn.metadata["line"]``, and graphs, explanations and ``why()`` quote it. Each
    recorded operation costs about a microsecond more. The mode is the thread's; with CHAINRULE_LINES=1 in the environment
    it is on from the start, in all threads.

    Args:
        mode: whether it is on; it stays so until switched off, or until the end of the ``with`` block.

    Raises:
        TypeError: ``mode`` is not a bool.

    >>> import chainrule as cr
    >>> x = cr.tensor(2., requires_grad=True)
    >>> with cr.record_lines():
    ...     y = cr.sin(x) * x
    >>> y.grad_fn.metadata["line"].text
    'y = cr.sin(x) * x'
    """

    def __init__(self, mode: bool = True) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"record_lines(): argument 'mode' must be bool, not {type(mode).__name__}")
        self.mode = mode
        self.previous = _watching() is not None
        _set(mode)

    def __enter__(self) -> record_lines:
        _set(self.mode)
        return self

    def __exit__(self, *exc: object) -> None:
        _set(self.previous)


def record_everywhere() -> None:
    """Switch it on for all threads, those that are to come as well."""
    if type(LOCAL).watch is None:
        type(LOCAL).watch = _Lines()
        set_watched()
