"""Transformations of functions, with the names of ``torch.func``."""

from chainrule.func.transforms import grad, grad_and_value, jvp, value_and_grad, vjp, vmap

__all__ = ["grad", "grad_and_value", "jvp", "value_and_grad", "vjp", "vmap"]
