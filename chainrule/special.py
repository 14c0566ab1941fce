"""Error, gamma, Bessel and other special functions, like ``torch.special``.

Error functions, products with a logarithm, I₀ and I₁ need only NumPy. The others need SciPy, which is loaded at the first
call of one of them; without SciPy they raise an ImportError with the package to install.
"""

from __future__ import annotations

from chainrule._src.api.public_modules import show
from chainrule._src.ops.deferred import namespace

globals().update(_public := namespace("special."))
__all__ = sorted(_public)

show(globals())
