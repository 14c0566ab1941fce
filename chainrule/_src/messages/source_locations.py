"""Source locations in the user's program, and the frames that are running in it.

A location (``Where``) is a code object and an instruction offset, which are cheap to record. The line and the source of the
expression are computed when a message is printed. The tape records a location for each node (``note_frame``); messages call
``user_line`` or ``program_line``.
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
_LIBRARY = os.path.dirname(os.__file__) + os.sep  # Python's standard library
_INSTALLED = rf"{re.escape(PACKAGE)}|{re.escape(_LIBRARY)}|<frozen |.*[\\/](site|dist)-packages[\\/]"
_INTERNAL = (PACKAGE, os.path.dirname(os.path.abspath(np.__file__)) + os.sep)
USER_FILES: set[str] = set()  # cache of files outside this package and NumPy
UNREAD: set[int] = set()  # threads whose messages must not read the user's program
_new = object.__new__
_INTERNAL_FILES: set[str] = set()  # cache of files of this package and NumPy


@functools.cache
def _is_installed(file: str) -> bool:
    """Return whether a file is installed: part of this package, of Python or of another library."""
    return re.match(_INSTALLED, file) is not None


# -- source locations ---------------------------------------------------------------------------------------------------


def note_frame(noting: Any, frame: FrameType | None) -> None:
    """Store the innermost user frame, from ``frame`` outward, in the attributes ``code`` and ``lasti`` of ``noting``."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file in _INTERNAL_FILES:  # true for most frames
            frame = frame.f_back
        elif file in USER_FILES:
            noting.code = frame.f_code
            noting.lasti = frame.f_lasti
            return
        else:
            (_INTERNAL_FILES if file.startswith(_INTERNAL) else USER_FILES).add(file)
    noting.code, noting.lasti = None, 0


def is_internal(file: str) -> bool:
    """Return whether a file belongs to this package or to NumPy."""
    return file.startswith(_INTERNAL)


class Where:
    """A source location in the user's program; the line is computed when it is printed.

    A location is false if its source cannot be looked up: in a doctest, or in typed or generated code.
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
        """First and last line of the expression, and its begin and end column there (in bytes); zeros if unknown."""
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
        """The source of the expression; '' if unknown."""
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
        """The code on the line if it is short enough to quote; else ''."""
        text = linecache.getline(self.file, self.line).split("  #")[0].strip()
        return text if len(text) <= 70 else ""

    @property
    def quoted(self) -> str:
        """The code and its location: `y += 1` (t.py:4)."""
        return " ".join([*([f"`{self.text}`"] if self.text else []), *([f"({self})"] if self else [])])


def line_name(file: str, line: int) -> str:
    """Return the short name of a line: ``t.py:4``, or ``In[4]:2`` for the second line of a notebook's fourth cell."""
    cell: Any = re.match(r"<ipython-input-(\d+)-", file)
    number = cell[1] if cell else None
    if os.sep + "ipykernel_" in file:
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return f"{os.path.basename(file) if number is None else f'In[{number}]'}:{line}"


def bracketed(where: Where | None) -> str:
    """Return a location as a suffix in brackets: `` (t.py:4)``; '' if unknown."""
    return f" ({where})" if where else ""


def bracketed_code(where: Where | None) -> str:
    """Return the code and its location as a suffix in brackets: `` (`y += 1` (t.py:4))``; '' if unknown."""
    if not where:
        return ""
    return f" ({where.quoted})" if where.text else f" ({where})"


def user_line() -> Where | None:
    """Return the innermost running location outside this package and NumPy."""
    if UNREAD and get_ident() in UNREAD:
        return None
    where = _new(Where)
    note_frame(where, sys._getframe(1))
    return None if where.code is None else where


def program_line() -> Where | None:
    """Return the innermost running location outside all installed packages."""
    frame = user_frame()
    return None if frame is None else Where(frame.f_code, frame.f_lasti)


def writer(op: str, where: Where | None) -> str:
    """Describe an operation that wrote in place: its code and line if known, else its name."""
    if where is not None and where.text:
        return where.quoted
    return f"{op}{bracketed(where)}"


# -- frames -------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def without_source() -> Iterator[None]:
    """Make messages of this thread without lines and names of the user's program."""
    thread = get_ident()
    UNREAD.add(thread)
    try:
        yield
    finally:
        UNREAD.discard(thread)


def calling_frame() -> Any:
    """Return the innermost frame outside this package."""
    if UNREAD and get_ident() in UNREAD:
        return None
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def user_frame() -> Any:
    """Return the innermost frame outside all installed packages; if there is none, the innermost outside this package."""
    first = frame = calling_frame()
    while frame is not None and _is_installed(frame.f_code.co_filename):
        frame = frame.f_back
    return first if frame is None else frame


def program_frames(stop: FrameType) -> list[Any]:
    """Return the frames outside all installed packages, innermost first, up to the frame ``stop``."""
    frame, found = calling_frame(), []
    while frame is not None and frame is not stop:
        if not frame.f_code.co_filename.startswith(PACKAGE) and not _is_installed(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back
    return found


def raising_frame(error: BaseException) -> tuple[Any, int | None]:
    """Return the innermost frame outside installed packages in an error's traceback, and the instruction there."""
    found: tuple[Any, int | None] = (user_frame(), None)
    entry = error.__traceback__ if found[0] is not None else None
    while entry is not None:
        if not _is_installed(entry.tb_frame.f_code.co_filename):
            found = (entry.tb_frame, entry.tb_lasti)
        entry = entry.tb_next
    return found


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn, with the innermost line outside this package as the location."""
    frame: Any = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
