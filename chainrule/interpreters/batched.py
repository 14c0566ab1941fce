"""Vectorization: an array-like that hides one axis.

``Batched(payload, level)`` looks like one example while its payload holds all of them along axis 0. An operation on it
runs once, on the payload, by the row's batching rule. The payload may be an array, a tensor or another array-like of
a lower level.
"""

from __future__ import annotations

from typing import Any

from chainrule.core.dispatch import INTERPRETERS, rank
from chainrule.core.primitive import Primitive
from chainrule.core.protocol import ArrayLike, detached
from chainrule.core.shapes import shape_of


class Batched(ArrayLike):
    """An array-like with the payload's shape and dtype, less the leading axis."""

    __slots__ = ("dtype", "level", "payload", "shape")

    def __init__(self, payload: Any, level: int) -> None:
        self.payload = payload
        self.level = level
        self.shape = tuple(shape_of(payload))[1:]
        self.dtype = payload.dtype

    def detached(self) -> Batched:
        return Batched(detached(self.payload), self.level)

    def __repr__(self) -> str:
        return f"Batched(level {self.level}, {self.payload!r})"


def _handle(prim: Primitive, operands: Any, params: dict[str, Any], level: int) -> Any:
    payloads = []
    batched = []
    size = 0
    for x in operands:
        if type(x) is Batched and x.level == level:
            payloads.append(x.payload)
            batched.append(True)
            size = shape_of(x.payload)[0]
        else:
            payloads.append(x)
            batched.append(False)
    out = prim.batch(prim, payloads, batched, size, params)  # type: ignore[misc]
    if isinstance(out, tuple):
        return tuple(Batched(o, level) for o in out)
    return Batched(out, level)


INTERPRETERS[Batched] = _handle
__all__ = ["Batched", "rank"]
