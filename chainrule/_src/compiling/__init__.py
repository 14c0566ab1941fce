"""``compile``: trace a function once, then replay the trace as a plan of NumPy's own inner loops."""

from __future__ import annotations

from chainrule._src.compiling.compiled import Compiled, compile

__all__ = ["Compiled", "compile"]
