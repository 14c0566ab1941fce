"""The array-likes of transformations: dual numbers, batches, traced values, Jacobian values.

``transforms``, ``jacobians`` and ``compiling`` open a level and wrap the arguments of a function in the array-like of the level.
``tape.dispatch`` calls the handler of the array-like for each operation on it.
"""

from __future__ import annotations

import functools

from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape.eager import LOOPS, RECORDED
from chainrule._src.tape.levels import Level


def _run_in_c() -> None:
    """Have the extension run operations on Dual and Batched values (``native/levels.c``)."""
    LOOPS.connect_levels(Dual, Batched, Level, tuple([TABLE[name] for name in ("add", "mul", "div", "expand")]))
    for kind in (Dual, Batched):
        protocol = LOOPS.Operation(kind.__array_ufunc__, LOOPS.ARRAY_UFUNC, table=RECORDED)
        kind.__array_ufunc__ = functools.update_wrapper(protocol, kind.__array_ufunc__)  # type: ignore[method-assign]


if LOOPS is not None:
    _run_in_c()
