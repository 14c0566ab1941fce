"""Structured Jacobians: only the nonzero entries are computed and stored."""

from chainrule._src.api.public_modules import show
from chainrule._src.jacobians.api import hessian, jacobian, jacobian_plan
from chainrule._src.jacobians.operator import JacobianOperator
from chainrule._src.jacobians.prepared import PreparedJacobian, prepare_hessian, prepare_jacobian
from chainrule._src.jacobians.result import Jacobian
from chainrule._src.jacobians.strategy import Plan

__all__ = [
    "Jacobian",
    "JacobianOperator",
    "Plan",
    "PreparedJacobian",
    "hessian",
    "jacobian",
    "jacobian_plan",
    "prepare_hessian",
    "prepare_jacobian",
]

show(globals())
