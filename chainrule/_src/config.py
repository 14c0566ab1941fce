"""Settings read once, from the environment, before anything else is imported."""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["CHECK_ROWS", "KEEP_MEMORY", "NATIVE", "STRICT_ARRAYS"]


def _is_on(name: str, default: str = "0") -> bool:
    return (os.environ.get(name) or default) not in ("0", "no", "false", "off")


#: Keep freed array memory in the process instead of giving it back to the kernel (glibc only). See docs/performance.md.
KEEP_MEMORY = _is_on("CHAINRULE_KEEP_MEMORY", "1")

#: Check every row that ``chainrule.primitive`` declares with ``rulecheck``, at once.
CHECK_ROWS = _is_on("CHAINRULE_CHECK_ROWS")

#: Copy every plain NumPy array that the tape saves, whatever its size. See docs/guide/numerics.md.
STRICT_ARRAYS = _is_on("CHAINRULE_STRICT_ARRAYS")

#: Use the extension, if it was built. See ``chainrule._src.native``.
NATIVE = _is_on("CHAINRULE_NATIVE", "1")


class Threads:
    """How many threads share a large step: what the user chose, or as many as there are processors for this process."""

    def __init__(self, chosen: int) -> None:
        self._chosen = chosen
        self._followers: list[Callable[[int], object]] = []

    @property
    def count(self) -> int:
        return self._chosen or processors()

    def choose(self, count: int) -> None:
        """Take a number, and tell those who follow it."""
        self._chosen = count
        for follower in self._followers:
            follower(count)

    def follow(self, follower: Callable[[int], object]) -> None:
        """Call ``follower`` with the number, now and whenever it changes."""
        self._followers.append(follower)
        follower(self.count)


def processors() -> int:
    """How many processors this process may use: those it may run on, and what its container has of them."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as limits:
            quota, period = limits.read().split()
        return max(1, min(count, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or "max": there is no quota
        return count


def _whole_number(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0


THREADS = Threads(_whole_number("CHAINRULE_THREADS"))
