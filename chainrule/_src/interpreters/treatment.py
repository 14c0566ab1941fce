"""How a recorded program treats exceptions: NumPy's floating-point ones, and those that it may catch."""

from __future__ import annotations

import dis
import warnings
import weakref
from types import CodeType
from typing import Any

from chainrule._src.tape import warned

#: NumPy's names of floating-point exceptions for those that handle them, and for ``np.errstate``
FLOATING_POINT = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}


class Treatment:
    """How floating-point exceptions are treated where a recording begins, and whether that is so still.

    Attributes:
        looked_at: whether the program may look at those of the call that is being made.
    """

    __slots__ = ("_errors", "_filters", "_how", "_known", "_shown", "looked_at")

    def __init__(self) -> None:
        self.looked_at = False
        self._errors = warned.given()
        self._known: object = None  # what stood in NumPy's variable when all was as it was at the beginning
        self._how = warned.modes()
        self._filters = warnings.filters
        self._shown = _shown()

    def changed(self) -> bool:
        if warnings.filters is not self._filters or _shown() is not self._shown:
            return True
        now = None if warned.VARIABLE is None else warned.VARIABLE.get()
        if now is not None and now is self._known:
            return False
        if warned.given() is not self._errors:
            return True
        self._known = now
        return False

    def differences(self) -> tuple[set[str], set[str]]:
        """The kinds of exceptions that are ignored, and those that are treated in another way than at the beginning."""
        if warnings.filters is not self._filters or _shown() is not self._shown:
            return set(), set(self._how)
        how = warned.modes()
        if warned.given() is self._errors:
            return set(), set()
        ignored = {kind for kind, way in how.items() if way == "ignore"}
        ours = self._how
        return ignored, {
            kind
            for kind, way in how.items()
            if way not in ("ignore", "warn") or (way != ours[kind] and way != "ignore")
        }


def is_tried(code: CodeType, lasti: int) -> bool:
    """Whether a place in the user's program is in a ``try`` (or ``with``)."""
    if code is None or not code.co_exceptiontable:
        return False
    ranges = _TRIED.get(code)
    if ranges is None:
        ranges = _TRIED[code] = [(entry.start, entry.end) for entry in dis._parse_exception_table(code)]  # type: ignore[attr-defined]
    return any([start <= lasti < end for start, end in ranges])


_TRIED: weakref.WeakKeyDictionary[Any, list[tuple[int, int]]] = weakref.WeakKeyDictionary()


def _shown() -> Any:
    return warnings._showwarnmsg_impl  # type: ignore[attr-defined]
