"""``scipy.sparse.linalg`` with derivatives. (Matrices whose entries can be differentiated are in ``chainrule.sparse``.)"""

from chainrule.scipy.sparse import linalg

__all__ = ["linalg"]
