"""Where the user's program is: its frames, the names in them, and places in its code.

A place is a code object and an instruction in it: two references, which cost next to nothing to note. The line and the
expression are worked out when a message asks for them.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import re
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

import numpy as np

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep  # Python's own
_INSTALLED = rf"{re.escape(PACKAGE)}|{re.escape(_LIBRARY)}|<frozen |.*[\\/](site|dist)-packages[\\/]"
_INTERNAL = (PACKAGE, os.path.dirname(os.path.abspath(np.__file__)) + os.sep)
USER_FILES: set[str] = set()  # the files of the user's that were met
UNREAD: set[int] = set()  # the threads that make a message without looking at the user's program
_new = object.__new__
_INTERNAL_FILES: set[str] = set()  # those of this package and NumPy


@functools.cache
def _is_installed(file: str) -> bool:
    """Whether a file is not the user's: this package's, Python's own, or another library's."""
    return re.match(_INSTALLED, file) is not None


# -- places -------------------------------------------------------------------------------------------------------------


def note_frame(noting: Any, frame: FrameType | None) -> None:
    """Note the innermost frame of the user's, from ``frame`` outward, in the ``code`` and ``lasti`` of an object."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file in _INTERNAL_FILES:  # most are
            frame = frame.f_back
        elif file in USER_FILES:
            noting.code = frame.f_code
            noting.lasti = frame.f_lasti
            return
        else:
            (_INTERNAL_FILES if file.startswith(_INTERNAL) else USER_FILES).add(file)
    noting.code, noting.lasti = None, 0


def is_internal(file: str) -> bool:
    """Whether a file is one of this package, or NumPy's."""
    return file.startswith(_INTERNAL)


class Where:
    """A place in the user's program, worked out only when it is printed.

    It is false where nobody could look it up: in a doctest, or in code that was typed or made up and is not kept.
    """

    __slots__ = ("code", "lasti")

    code: CodeType | None
    lasti: int

    def __init__(self, code: CodeType | None, lasti: int) -> None:
        self.code, self.lasti = code, lasti

    @property
    def file(self) -> str:
        return "" if self.code is None else self.code.co_filename

    @property
    def span(self) -> tuple[int, int, int, int]:
        """The first and last line of the expression, and where it begins and ends in them (in bytes); zeros if unknown."""
        if self.code is None:
            return 0, 0, 0, 0
        found = self._positions(self.code)
        return (0, 0, 0, 0) if None in found else found  # type: ignore[return-value]

    @property
    def line(self) -> int:
        if self.code is None:
            return 0
        return self._positions(self.code)[0] or self.code.co_firstlineno

    def _positions(self, code: CodeType) -> tuple[int | None, ...]:
        return next(islice(code.co_positions(), self.lasti // 2, None), (None,))

    @property
    def expression(self) -> str:
        """The source of the expression; '' if it is not known."""
        first, last, begin, end = self.span
        lines = [linecache.getline(self.file, n).encode() for n in range(first, last + 1)] if first else [b""]
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][begin:]
        return b"".join(lines).decode(errors="replace")

    def __str__(self) -> str:
        return line_name(self.file, self.line)

    def __bool__(self) -> bool:
        if self.file.startswith("<"):
            return bool(linecache.getline(self.file, self.line)) and not self.file.startswith("<doctest ")
        return self.code is not None

    def same_line(self, other: Where) -> bool:
        return self.code is other.code and self.line == other.line

    @property
    def text(self) -> str:
        """The code on the line, where it is short enough to be quoted; else ''."""
        text = linecache.getline(self.file, self.line).split("  #")[0].strip()
        return text if len(text) <= 70 else ""

    @property
    def quoted(self) -> str:
        """The code and the place of it: `y += 1` (t.py:4)."""
        return " ".join([*([f"`{self.text}`"] if self.text else []), *([f"({self})"] if self else [])])


def line_name(file: str, line: int) -> str:
    """A line in few words: ``t.py:4``, or ``In[4]:2`` for the second line of a notebook's fourth cell."""
    cell: Any = re.match(r"<ipython-input-(\d+)-", file)
    number = cell[1] if cell else None
    if os.sep + "ipykernel_" in file:
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return f"{os.path.basename(file) if number is None else f'In[{number}]'}:{line}"


def bracketed(where: Where | None) -> str:
    """A place behind what is said of it: `` (t.py:4)``; '' where it is not known."""
    return f" ({where})" if where else ""


def user_line() -> Where | None:
    """The place of the user's program that is running."""
    if UNREAD and get_ident() in UNREAD:
        return None
    where = _new(Where)
    note_frame(where, sys._getframe(1))
    return None if where.code is None else where


def program_line() -> Where | None:
    """The innermost place of the program that somebody writes."""
    frame = user_frame()
    return None if frame is None else Where(frame.f_code, frame.f_lasti)


def writer(op: str, where: Where | None) -> str:
    """An operation that wrote in place: its code and line, as far as they are known."""
    if where is not None and where.text:
        return where.quoted
    return f"{op}{bracketed(where)}"


# -- frames -------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def without_source() -> Iterator[None]:
    """Messages that this thread makes say nothing of the user's lines and names."""
    thread = get_ident()
    UNREAD.add(thread)
    try:
        yield
    finally:
        UNREAD.discard(thread)


def calling_frame() -> Any:
    """The innermost frame that is not this package's."""
    if UNREAD and get_ident() in UNREAD:
        return None
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def user_frame() -> Any:
    """The innermost frame of the program that somebody writes; of installed code, where there is nothing else."""
    first = frame = calling_frame()
    while frame is not None and _is_installed(frame.f_code.co_filename):
        frame = frame.f_back
    return first if frame is None else frame


def program_frames(stop: FrameType) -> list[Any]:
    """The frames of the program that somebody writes, innermost first, as far as a frame."""
    frame, found = calling_frame(), []
    while frame is not None and frame is not stop:
        if not frame.f_code.co_filename.startswith(PACKAGE) and not _is_installed(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back
    return found


def raising_frame(error: BaseException) -> tuple[Any, int | None]:
    """The innermost frame, of the program that somebody writes, that an error passed, and the instruction it came from."""
    found: tuple[Any, int | None] = (user_frame(), None)
    entry = error.__traceback__ if found[0] is not None else None
    while entry is not None:
        if not _is_installed(entry.tb_frame.f_code.co_filename):
            found = (entry.tb_frame, entry.tb_lasti)
        entry = entry.tb_next
    return found


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning about the innermost line of the call stack that is not this package's."""
    frame: Any = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
