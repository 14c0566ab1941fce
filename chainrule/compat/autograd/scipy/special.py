"""``autograd.scipy.special``: SciPy's ufuncs, which accept Arrays, and the functions of ``chainrule.scipy.special``."""

from __future__ import annotations

from chainrule.scipy import special

globals().update({name: getattr(special, name) for name in dir(special)})
