"""Reverse mode on tensors, with the names of ``torch.autograd``."""

from chainrule.autograd import functional
from chainrule.autograd.backward import GradientEdge, backward, grad
from chainrule.core.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from chainrule.ops.creation import Variable

__all__ = [
    "GradientEdge", "Variable", "backward", "enable_grad", "functional", "grad", "inference_mode", "no_grad",
    "set_grad_enabled",
]
