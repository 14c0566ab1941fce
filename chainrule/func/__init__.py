"""Transformations of functions, with the names of ``torch.func``."""

from chainrule import errors
from chainrule.func.debug import debug_unwrap
from chainrule.func.forward import jvp
from chainrule.func.jacobians import hessian, hvp, jacfwd, jacrev
from chainrule.func.linear import linear_transpose, linearize
from chainrule.func.modules import functional_call, stack_module_state
from chainrule.func.rearrange import rearrange
from chainrule.func.reverse import grad, grad_and_value, value_and_grad, vjp
from chainrule.func.vectorize import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "rearrange",
    "stack_module_state",
    "value_and_grad",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
