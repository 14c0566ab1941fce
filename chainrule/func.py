"""Function transformations, like ``torch.func``."""

from typing import TYPE_CHECKING

from chainrule._src.api.public_modules import show

if TYPE_CHECKING:
    from chainrule._src.transforms.debug import debug_unwrap
    from chainrule._src.transforms.functional_call import functional_call, stack_module_state
    from chainrule._src.transforms.grad import grad, grad_and_value, value_and_grad, vjp
    from chainrule._src.transforms.jacrev import hessian, hvp, jacfwd, jacrev
    from chainrule._src.transforms.jvp import jvp
    from chainrule._src.transforms.linearize import linear_transpose, linearize
    from chainrule._src.transforms.rearrange import rearrange
    from chainrule._src.transforms.vmap import vmap

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

_MODULES = {
    "debug": "debug_unwrap",
    "functional_call": "functional_call stack_module_state",
    "grad": "grad grad_and_value value_and_grad vjp",
    "jacrev": "hessian hvp jacfwd jacrev",
    "jvp": "jvp",
    "linearize": "linear_transpose linearize",
    "rearrange": "rearrange",
    "vmap": "vmap",
}
show(
    globals(),
    {name: f"chainrule._src.transforms.{module}" for module, names in _MODULES.items() for name in names.split()},
)
