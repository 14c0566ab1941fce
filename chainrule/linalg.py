"""Linear solvers, decompositions and norms, like ``torch.linalg``.

Arrays of shape (..., m, n) are batches of matrices: the last two axes are the matrix axes.
"""

from __future__ import annotations

from chainrule._src.api.public_modules import show
from chainrule._src.messages.kinds import LinAlgError  # noqa: F401
from chainrule._src.ops.deferred import namespace

globals().update(_public := namespace("linalg."))
__all__ = sorted(["LinAlgError", *_public])

show(globals())
