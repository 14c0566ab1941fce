"""``compile``: functions recorded once and replayed as plans of NumPy's own loops."""

from __future__ import annotations

from chainrule._src.compiling.compiled import Compiled, compile

__all__ = ["Compiled", "compile"]
