"""``torch.linalg``: solutions, decompositions and norms of matrices and stacks of matrices.

A stack has shape (..., m, n): the last two axes are a matrix, the others a batch.
"""

from __future__ import annotations

from chainrule._src.api.declare import namespace
from chainrule._src.messages import errors
from chainrule._src.messages.kinds import LinAlgError  # noqa: F401
from chainrule._src.ops.linalg import decompositions, factors, norms, solving  # noqa: F401 -- they declare what is here

globals().update(_public := namespace("linalg.", __name__))
__all__ = sorted(["LinAlgError", *_public])


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
