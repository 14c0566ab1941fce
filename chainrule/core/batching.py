"""Batching rules that whole kinds share. A payload has its batch axis first; the other operands have none.

A rule is ``(prim, payloads, batched, size, params) -> payload``: ``batched`` says which operands carry the axis and
``size`` how long it is. Because axes are counted from the end in every row's parameters, most rows need nothing
special: their value works with an extra leading axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.core.shapes import shape_of

if TYPE_CHECKING:
    from chainrule.core.primitive import Primitive


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape) if type(x) is np.ndarray else np.reshape(x, shape)


def aligned(prim: Primitive, payloads: Any, batched: Any, size: int, params: dict[str, Any]) -> Any:
    """Elementwise: give the batched operands one rank, so that their batch axes meet under broadcasting."""
    ranks = [len(shape_of(p)) - b for p, b in zip(payloads, batched, strict=True)]
    most = max(ranks)
    fitted = []
    for p, b, r in zip(payloads, batched, ranks, strict=True):
        if b and r < most:
            shape = shape_of(p)
            p = reshape(p, (shape[0], *(1,) * (most - r), *shape[1:]))
        fitted.append(p)
    return prim(*fitted, **params)


def leading(prim: Primitive, payloads: Any, batched: Any, size: int, params: dict[str, Any]) -> Any:
    """Operations that treat extra leading axes alike in every operand: give the axis to the operands without it."""
    if len(payloads) > 1:
        payloads = [p if b else spread(p, size) for p, b in zip(payloads, batched, strict=True)]
    return prim(*payloads, **params)


def spread(x: Any, size: int) -> Any:
    """An unbatched operand, repeated (without copying) along a new leading axis."""
    return np.broadcast_to(x, (size, *shape_of(x)))
