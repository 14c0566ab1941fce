"""SciPy's solvers with automatic derivatives, and differentiable versions of SciPy's functions.

``minimize``, ``least_squares``, ``root``, ``solve_ivp`` and ``solve_bvp`` have the parameters and results of SciPy's functions.
The unknowns can be an array, a tensor, or a container of them. Gradients, Jacobians and Hessians are computed automatically.
Large matrices of mostly zeros are sparse, if SciPy's method accepts them.
"""

from typing import TYPE_CHECKING

from chainrule._src.api.public_modules import show
from chainrule.scipy.least_squares import least_squares
from chainrule.scipy.minimize import minimize
from chainrule.scipy.root import root
from chainrule.scipy.solve_bvp import solve_bvp
from chainrule.scipy.solve_ivp import solve_ivp

if TYPE_CHECKING:
    from chainrule.scipy import integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special

__all__ = [
    "integrate",
    "interpolate",
    "least_squares",
    "linalg",
    "minimize",
    "ndimage",
    "optimize",
    "root",
    "signal",
    "solve_bvp",
    "solve_ivp",
    "sparse",
    "special",
]

_MODULES = ("integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "special")

show(globals(), {name: f"{__name__}.{name}" for name in _MODULES})
