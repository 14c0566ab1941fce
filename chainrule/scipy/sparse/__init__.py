"""Differentiable ``scipy.sparse.linalg``. (Matrices with differentiable entries are in ``chainrule.sparse``.)"""

from chainrule.scipy.sparse import linalg

__all__ = ["linalg"]
