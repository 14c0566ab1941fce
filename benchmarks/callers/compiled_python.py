"""chainrule, compiled: the same plan, executed by Python."""

import os

os.environ["CHAINRULE_NATIVE"] = "0"

from callers.compiled import VERSION as NATIVE
from callers.compiled import WORKS

VERSION = f"{NATIVE} without the extension"
__all__ = ["VERSION", "WORKS"]
