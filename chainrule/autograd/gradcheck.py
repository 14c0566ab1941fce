"""Compare gradients with central differences: ``gradcheck`` and ``gradgradcheck``.

A central difference with ε = 10⁻⁶ has about nine correct digits in float64 and none in float32. Inputs of other dtypes
than float64 raise a warning for this reason.
"""

from chainrule._src.api.public_modules import show
from chainrule._src.transforms.gradcheck import (
    GradcheckError,
    gradcheck,
    gradgradcheck,
)

__all__ = [
    "GradcheckError",
    "gradcheck",
    "gradgradcheck",
]

show(globals())
