"""Settings from the environment, read once when this module is imported. All packages read them; it imports nothing else.

``THREADS`` is the number of threads, which ``set_num_threads`` changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["CHECK_ROWS", "KEEP_MEMORY", "NATIVE", "STRICT_ARRAYS"]


def _is_on(name: str, default: str = "0") -> bool:
    return (os.environ.get(name) or default) not in ("0", "no", "false", "off")


#: Keep freed array memory in the process instead of giving it back to the kernel (glibc only). See docs/performance.md.
KEEP_MEMORY = _is_on("CHAINRULE_KEEP_MEMORY", "1")

#: Check every op definition of ``chainrule.primitive`` with ``rulecheck`` when it is declared.
CHECK_ROWS = _is_on("CHAINRULE_CHECK_ROWS")

#: Copy every plain NumPy array that the tape saves, whatever its size. See docs/guide/numerics.md.
STRICT_ARRAYS = _is_on("CHAINRULE_STRICT_ARRAYS")

#: Use the extension, if it was built. See ``chainrule._src.native``.
NATIVE = _is_on("CHAINRULE_NATIVE", "1")


class Threads:
    """The number of threads that share a large step: the user's choice, or the number of processors of this process."""

    def __init__(self, chosen: int) -> None:
        self._chosen = chosen
        self._followers: list[Callable[[int], object]] = []

    @property
    def count(self) -> int:
        return self._chosen or processors()

    def choose(self, count: int) -> None:
        """Set the number, and call the registered functions with it."""
        self._chosen = count
        for follower in self._followers:
            follower(count)

    def follow(self, follower: Callable[[int], object]) -> None:
        """Call ``follower`` with the number, and register it for later changes."""
        self._followers.append(follower)
        follower(self.count)


def processors() -> int:
    """Return how many processors this process may use: the processors it may run on, limited by the quota of its container."""
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
