"""Forward mode: a value together with its tangent.

``Dual(primal, tangent, level)`` follows NumPy code and carries the derivative along, with each row's JVP. Primal and
tangent may be arrays, tensors or other array-likes of lower levels. The tangent is None where it is known to be zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.core.dispatch import INTERPRETERS, bind
from chainrule.core.modes import LOCAL, STATE
from chainrule.core.primitive import Primitive
from chainrule.core.protocol import ArrayLike, detached
from chainrule.core.shapes import shape_of


class Dual(ArrayLike):
    """An array-like of the primal's shape and dtype that carries a tangent of the same shape."""

    __slots__ = ("dtype", "level", "primal", "shape", "tangent")

    def __init__(self, primal: Any, tangent: Any, level: int) -> None:
        self.primal = primal
        self.tangent = tangent
        self.level = level
        self.shape = tuple(shape_of(primal))
        self.dtype = primal.dtype

    def detached(self) -> Dual:
        return Dual(detached(self.primal), None, self.level)

    def __repr__(self) -> str:
        return f"Dual(level {self.level}, primal={self.primal!r}, tangent={self.tangent!r})"


def _handle(prim: Primitive, operands: Any, params: dict[str, Any], level: int) -> Any:
    primals = []
    tangents = []
    for x in operands:
        if type(x) is Dual and x.level == level:
            primals.append(x.primal)
            tangents.append(x.tangent)
        else:
            primals.append(x)
            tangents.append(None)
    out = bind(prim, primals, params)
    if not prim.differentiable or all(t is None for t in tangents):
        return _dual(out, None, level)
    if STATE.special and LOCAL.watch is not None:
        tangent = LOCAL.watch.tangent(prim, primals, tangents, out, params)
    else:
        tangent = prim.jvp(primals, tangents, out, params)  # type: ignore[misc]
    return _dual(out, tangent, level)


def _dual(out: Any, tangent: Any, level: int) -> Any:
    if isinstance(out, tuple):
        tangents = (None,) * len(out) if tangent is None else tangent
        return tuple(_dual(o, t, level) for o, t in zip(out, tangents, strict=True))
    if isinstance(out, np.generic):
        out = np.asarray(out)
    if tangent is not None:
        if isinstance(tangent, np.generic):
            tangent = np.asarray(tangent)
        if tangent.dtype != out.dtype and out.dtype.kind != "c":
            tangent = np.real(tangent) if tangent.dtype.kind == "c" else tangent
            tangent = tangent.astype(out.dtype)
    return Dual(out, tangent if out.dtype.kind in "fc" else None, level)


INTERPRETERS[Dual] = _handle
