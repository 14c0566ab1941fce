"""``scipy.special``: its ufuncs answer to Arrays themselves, and its other functions do in ``chainrule.scipy.special``."""

from __future__ import annotations

from chainrule.scipy import special

globals().update({name: getattr(special, name) for name in dir(special)})
