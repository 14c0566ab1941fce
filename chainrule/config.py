"""Settings read once, from the environment, before anything else is imported."""

from __future__ import annotations

import os

#: Keep freed array memory in the process instead of giving it back to the kernel (glibc only). See docs/performance.md.
KEEP_MEMORY: bool = os.environ.get("CHAINRULE_KEEP_MEMORY", "1") not in ("0", "no", "false", "off")

#: Check every row that ``chainrule.primitive`` declares with ``rulecheck``, at once.
CHECK_ROWS: bool = os.environ.get("CHAINRULE_CHECK_ROWS", "0") not in ("", "0", "no", "false", "off")

#: Note for every operation the line of the program that called it (``record_lines``), in all threads.
RECORD_LINES: bool = os.environ.get("CHAINRULE_LINES", "0") not in ("", "0", "no", "false", "off")

#: Copy every plain NumPy array that the tape saves, whatever its size. See docs/guide/numerics.md.
STRICT_ARRAYS: bool = os.environ.get("CHAINRULE_STRICT_ARRAYS", "0") not in ("", "0", "no", "false", "off")
