"""Floating-point exceptions of a replayed function: looked at once per call, and treated as ``np.errstate`` says."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from chainrule.errors import warn

_WORDS = {
    "divide": "divide by zero",
    "over": "overflow",
    "under": "underflow",
    "invalid": "invalid value",
}


@functools.lru_cache(maxsize=256)
def reporter(name: str, ignored: frozenset[str] = frozenset()) -> Callable[[Iterable[str]], None]:
    """What a plan is to call with the kinds of exceptions that were met; ``ignored`` the function ignores somewhere itself."""

    def report(kinds: Iterable[str]) -> None:
        wanted: dict[str, Any] = dict(np.geterr())
        for kind in sorted({*kinds} - ignored):
            _treat(wanted[kind], kind, f"{_WORDS[kind]} encountered in compiled {name}")

    return report


def _treat(how: str, kind: str, text: str) -> None:
    if how == "warn":
        warn(text, RuntimeWarning)
    elif how == "raise":
        raise FloatingPointError(text)
    elif how == "print":
        print(f"Warning: {text}")
    elif how in ("call", "log"):
        target: Any = np.geterrcall()
        if how == "log":
            target.write(f"Warning: {text}\n")
        elif target is not None:
            target(_WORDS[kind], 0)
