"""Ourselves: the same plan, walked by Python."""

import os

os.environ["CHAINRULE_NATIVE"] = "0"

from callers.compiled import VERSION as NATIVE
from callers.compiled import WORKS

VERSION = f"{NATIVE} without the extension"
__all__ = ["VERSION", "WORKS"]
