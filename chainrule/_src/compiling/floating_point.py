"""Floating-point exceptions of a replayed function: looked at once per call, and treated as ``np.errstate`` says."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from chainrule._src.messages.errors import warn
from chainrule._src.tape.warned import modes

_WORDS = {
    "divide": "divide by zero",
    "over": "overflow",
    "under": "underflow",
    "invalid": "invalid value",
}


class Handled(Exception):
    """A floating-point exception that more may come of than a warning: the call is to be made as it is."""


class Reporter:
    """What a plan calls with the kinds of exceptions that were met.

    Attributes:
        name: of the function.
        ignored: the kinds that it ignores somewhere itself.
        handled: the kinds that it may go another way for; it is told of them in any case.
    """

    __slots__ = ("handled", "ignored", "name")

    def __init__(self, name: str, ignored: frozenset[str], handled: frozenset[str]) -> None:
        self.name, self.ignored, self.handled = name, ignored, handled

    def __call__(self, kinds: Iterable[str]) -> None:
        """Warn.

        Raises:
            Handled: what comes of an exception is the function's, or its caller's, to say.
        """
        met = {*kinds}
        how = modes()
        if met & self.handled or any([how[kind] not in ("warn", "ignore") for kind in met]):
            raise Handled
        for kind in sorted(met - self.ignored):
            if how[kind] == "warn":
                warn(f"{_WORDS[kind]} encountered in compiled {self.name}", RuntimeWarning)


@functools.lru_cache(maxsize=256)
def reporter(name: str, ignored: frozenset[str] = frozenset(), handled: frozenset[str] = frozenset()) -> Reporter:
    """The reporter of a function."""
    return Reporter(name, ignored, handled)
