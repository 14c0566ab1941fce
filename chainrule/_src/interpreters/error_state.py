"""Exception handling of a traced program: the floating-point error state (``np.errstate``), and ``try`` blocks.

``Recorder`` makes an ``ErrorState`` at the start of a trace, and compares it with the state at each NumPy call.
"""

from __future__ import annotations

import dis
import warnings
import weakref
from types import CodeType
from typing import Any

from chainrule._src.tape import fp_warnings

#: NumPy's name of a floating-point exception for error callbacks -> its name for ``np.errstate``
FLOATING_POINT = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}


class ErrorState:
    """The floating-point error state at the start of a trace, to compare with the current one.

    Attributes:
        exceptions_handled: whether the program may detect floating-point exceptions of the current call.
    """

    __slots__ = ("_errors", "_filters", "_modes", "_show_function", "_unchanged_value", "exceptions_handled")

    def __init__(self) -> None:
        self.exceptions_handled = False
        self._errors = fp_warnings.users_error_state()
        self._unchanged_value: object = (
            None  # a value of NumPy's context variable for which the error state is unchanged
        )
        self._modes = fp_warnings.user_error_modes()
        self._filters = warnings.filters
        self._show_function = _show_function()

    def changed(self) -> bool:
        """Return whether the error state or the warning filters differ from those at the start."""
        if warnings.filters is not self._filters or _show_function() is not self._show_function:
            return True
        current = None if fp_warnings.VARIABLE is None else fp_warnings.VARIABLE.get()
        if current is not None and current is self._unchanged_value:
            return False
        if fp_warnings.users_error_state() is not self._errors:
            return True
        self._unchanged_value = current
        return False

    def differences(self) -> tuple[set[str], set[str]]:
        """Return two sets of kinds of exceptions: those ignored now, and those handled differently than at the start."""
        if warnings.filters is not self._filters or _show_function() is not self._show_function:
            return set(), set(self._modes)
        modes = fp_warnings.user_error_modes()
        if fp_warnings.users_error_state() is self._errors:
            return set(), set()
        ignored = {kind for kind, mode in modes.items() if mode == "ignore"}
        initial = self._modes
        return ignored, {
            kind
            for kind, mode in modes.items()
            if mode not in ("ignore", "warn") or (mode != initial[kind] and mode != "ignore")
        }


def is_in_try_block(code: CodeType, lasti: int) -> bool:
    """Return whether the instruction at index ``lasti`` of the user's code is inside a ``try`` or ``with`` block."""
    if code is None or not code.co_exceptiontable:
        return False
    ranges = _TRY_RANGES.get(code)
    if ranges is None:
        ranges = _TRY_RANGES[code] = [(entry.start, entry.end) for entry in dis._parse_exception_table(code)]  # type: ignore[attr-defined]
    return any([start <= lasti < end for start, end in ranges])


#: by code object: the ranges of instructions inside of such blocks
_TRY_RANGES: weakref.WeakKeyDictionary[Any, list[tuple[int, int]]] = weakref.WeakKeyDictionary()


def _show_function() -> Any:
    """Return the function that shows warnings. ``warnings.catch_warnings`` replaces it."""
    return warnings._showwarnmsg_impl  # type: ignore[attr-defined]
