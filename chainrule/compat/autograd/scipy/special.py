"""``autograd.scipy.special``: SciPy's ufuncs, which accept Arrays, and the functions of ``chainrule.scipy.special``."""

from __future__ import annotations

from chainrule._src.api.public_modules import show
from chainrule.scipy import special

globals().update({name: getattr(special, name) for name in special.__all__})
__all__ = [*special.__all__]

show(globals())
