"""Settings read once, from the environment, before anything else is imported."""

from __future__ import annotations

import os


def _is_on(name: str, default: str = "0") -> bool:
    return (os.environ.get(name) or default) not in ("0", "no", "false", "off")


#: Keep freed array memory in the process instead of giving it back to the kernel (glibc only). See docs/performance.md.
KEEP_MEMORY = _is_on("CHAINRULE_KEEP_MEMORY", "1")

#: Check every row that ``chainrule.primitive`` declares with ``rulecheck``, at once.
CHECK_ROWS = _is_on("CHAINRULE_CHECK_ROWS")

#: Copy every plain NumPy array that the tape saves, whatever its size. See docs/guide/numerics.md.
STRICT_ARRAYS = _is_on("CHAINRULE_STRICT_ARRAYS")
