"""Settings read once, from the environment, before anything else is imported."""

from __future__ import annotations

import os
from collections.abc import Callable


def _is_on(name: str, default: str = "0") -> bool:
    return (os.environ.get(name) or default) not in ("0", "no", "false", "off")


#: Keep freed array memory in the process instead of giving it back to the kernel (glibc only). See docs/performance.md.
KEEP_MEMORY = _is_on("CHAINRULE_KEEP_MEMORY", "1")

#: Check every row that ``chainrule.primitive`` declares with ``rulecheck``, at once.
CHECK_ROWS = _is_on("CHAINRULE_CHECK_ROWS")

#: Copy every plain NumPy array that the tape saves, whatever its size. See docs/guide/numerics.md.
STRICT_ARRAYS = _is_on("CHAINRULE_STRICT_ARRAYS")

#: Use the extension, if it was built. See ``chainrule.native``.
NATIVE = _is_on("CHAINRULE_NATIVE", "1")


class Threads:
    """How many threads share a large step: what the user chose, 0 for as many as this process may use."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._followers: list[Callable[[int], object]] = []

    def choose(self, count: int) -> None:
        """Take a number, and tell those who follow it."""
        self.count = count
        for follower in self._followers:
            follower(count)

    def follow(self, follower: Callable[[int], object]) -> None:
        """Call ``follower`` with the number, now and whenever it changes."""
        self._followers.append(follower)
        follower(self.count)


def _whole_number(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0


THREADS = Threads(_whole_number("CHAINRULE_THREADS"))
