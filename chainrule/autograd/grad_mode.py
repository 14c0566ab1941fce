"""Context managers that switch recording on and off, with the names of ``torch.autograd.grad_mode``."""

from chainrule._src.api.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
