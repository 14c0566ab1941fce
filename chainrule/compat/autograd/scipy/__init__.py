"""``autograd.scipy``: differentiable functions of SciPy."""

from chainrule._src.api.public_modules import show
from chainrule.compat.autograd.scipy import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]

show(globals())
