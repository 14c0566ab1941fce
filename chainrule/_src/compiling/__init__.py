"""``compile``: trace a function once, and replay the trace as a plan of NumPy's loops."""

from __future__ import annotations

from chainrule._src.compiling.compiled import Compiled, compile
from chainrule._src.ops.deferred import import_all

__all__ = ["Compiled", "compile"]

import_all()
