"""Differentiable ``scipy.sparse.linalg``. (Matrices with differentiable entries are in ``chainrule.sparse``.)"""

from chainrule._src.api.public_modules import show
from chainrule.scipy.sparse import linalg

__all__ = ["linalg"]

show(globals())
