"""``compile``: trace a function once, and replay the trace as a plan of NumPy's loops.

``compiled`` returns the callable. ``function_trace`` records a trace of its function, and ``guards`` the Python state that the trace
depends on. ``tree`` keeps traces. ``plan`` turns a recorded program into steps: ``simplify`` drops calls, ``lowering`` and ``steps``
choose loops and buffers, and ``native_executor`` or ``python_executor`` runs them. ``control_flow`` has ``scan`` and the other loops.
"""

from __future__ import annotations

from chainrule._src.compiling.compiled import Compiled, compile
from chainrule._src.ops.deferred import import_all

__all__ = ["Compiled", "compile"]

import_all()
