"""``autograd.scipy``: SciPy's names that have derivatives."""

from chainrule.compat.autograd.scipy import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]
