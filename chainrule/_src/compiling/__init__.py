"""``compile``: trace a function once, and replay the trace as a plan of NumPy's loops."""

from __future__ import annotations

from chainrule._src.compiling.compiled import Compiled, compile

__all__ = ["Compiled", "compile"]
