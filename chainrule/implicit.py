"""Implicit differentiation of roots, fixed points, minima and solutions of linear systems."""

from chainrule._src.api.public_modules import show
from chainrule._src.jacobians.implicit import (
    custom_fixed_point,
    custom_root,
    fixed_point,
    least_squares,
    linear_solve,
    minimum,
    root,
)

__all__ = ["custom_fixed_point", "custom_root", "fixed_point", "least_squares", "linear_solve", "minimum", "root"]

show(globals())
