"""Reverse mode on tensors, with the names of ``torch.autograd``."""

import importlib
from typing import Any

from chainrule.autograd import functional
from chainrule.autograd.backward import GradientEdge, backward, grad
from chainrule.core.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from chainrule.ops.creation import Variable

__all__ = [
    "GradientEdge",
    "Variable",
    "backward",
    "enable_grad",
    "functional",
    "grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]


def __getattr__(name: str) -> Any:
    """``gradcheck`` and ``gradgradcheck``, which live on a floor above and load when first used."""
    if name in ("gradcheck", "gradgradcheck"):
        return getattr(importlib.import_module("chainrule.testing"), name)
    raise AttributeError(f"module 'chainrule.autograd' has no attribute {name!r}")
