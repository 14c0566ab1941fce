"""``torch.special``: error, gamma and Bessel functions, and the special names of functions that are elsewhere, too.

Error functions, products with a logarithm, I₀ and I₁ need NumPy alone. SciPy computes the others, and is loaded when one
of them is first called; without it they raise an ImportError that says what to install.
"""

from __future__ import annotations

from chainrule._src.api.declare import namespace
from chainrule._src.messages import errors
from chainrule._src.ops import polynomials, special  # noqa: F401 -- they declare what is here

globals().update(_public := namespace("special.", __name__))
__all__ = sorted(_public)


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
