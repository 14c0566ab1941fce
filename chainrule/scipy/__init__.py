"""SciPy's solvers, with the derivatives that they ask for filled in.

``minimize``, ``least_squares``, ``root``, ``solve_ivp`` and ``solve_bvp`` have the parameters and results of SciPy's functions.
What is solved for can be an array, a tensor, or a container of them; derivatives are computed, and are sparse where they are
large, most of them is zero, and SciPy's method can make use of it.
"""

import importlib

from chainrule.scipy.least_squares import least_squares
from chainrule.scipy.minimize import minimize
from chainrule.scipy.root import root
from chainrule.scipy.solve_bvp import solve_bvp
from chainrule.scipy.solve_ivp import solve_ivp

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

# These load when they are used.
_MODULES = frozenset({"integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "special"})


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
