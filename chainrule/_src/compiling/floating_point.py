"""Report floating-point exceptions of a replayed call, once per call, as the error state (``np.errstate``) says.

Plans call a ``Reporter`` with the FP exception flags of a run.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from chainrule._src.messages.errors import warn
from chainrule._src.tape.fp_warnings import user_error_modes

_TEXTS = {
    "divide": "divide by zero",
    "over": "overflow",
    "under": "underflow",
    "invalid": "invalid value",
}


class NeedsEagerRun(Exception):
    """Raised for a floating-point exception that needs more than a warning: the call has to run eagerly."""


class Reporter:
    """A callable that a plan calls with the kinds of floating-point exceptions of a run.

    Attributes:
        name: the name of the function.
        ignored: the kinds that a part of the function ignores (``with np.errstate(...)``).
        handled: the kinds that the function may handle itself (``try``, ``np.errstate(over="raise")``). Plans report these even if
            they are ignored.
    """

    __slots__ = ("handled", "ignored", "name")

    def __init__(self, name: str, ignored: frozenset[str], handled: frozenset[str]) -> None:
        self.name, self.ignored, self.handled = name, ignored, handled

    def __call__(self, kinds: Iterable[str]) -> None:
        """Warn about exceptions that are not ignored.

        Raises:
            NeedsEagerRun: the function or its caller handles one of the exceptions.
        """
        met = {*kinds}
        modes = user_error_modes()
        if met & self.handled or any([modes[kind] not in ("warn", "ignore") for kind in met]):
            raise NeedsEagerRun
        for kind in sorted(met - self.ignored):
            if modes[kind] == "warn":
                warn(f"{_TEXTS[kind]} encountered in compiled {self.name}", RuntimeWarning)


@functools.lru_cache(maxsize=256)
def exception_reporter(
    name: str, ignored: frozenset[str] = frozenset(), handled: frozenset[str] = frozenset()
) -> Reporter:
    """Return the cached reporter of a function."""
    return Reporter(name, ignored, handled)
