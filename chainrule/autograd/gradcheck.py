"""``gradcheck`` and ``gradgradcheck``: is the gradient of a function what its values say?

A central difference with ε = 10⁻⁶ in float64 is good to about nine digits; in float32 it is good to none, which is why
inputs of other dtypes are warned about.
"""

from chainrule._src.api.faces import show
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
