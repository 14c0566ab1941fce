"""Reverse mode on tensors, with the names of ``torch.autograd``."""

import importlib
from typing import TYPE_CHECKING, Any

from chainrule._src.api.array import takes_arrays
from chainrule._src.api.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from chainrule._src.api.public_modules import show
from chainrule._src.messages import errors
from chainrule._src.ops.creation import Variable
from chainrule._src.transforms.backward import GradientEdge, backward, grad
from chainrule.autograd.gradcheck import gradcheck, gradgradcheck

if TYPE_CHECKING:
    from chainrule.autograd import forward_ad, functional

__all__ = [
    "GradientEdge",
    "Variable",
    "backward",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]


backward, grad = takes_arrays(backward), takes_arrays(grad)
show(globals())

#: Names that load on first use, and the modules that hold them.
_LAZY = {
    "Function": "chainrule.autograd.function",
    "anomaly_mode": "chainrule.autograd.anomaly_mode",
    "detect_anomaly": "chainrule.autograd.anomaly_mode",
    "forward_ad": "chainrule.autograd.forward_ad",
    "function": "chainrule.autograd.function",
    "functional": "chainrule.autograd.functional",
    "grad_mode": "chainrule.autograd.grad_mode",
    "graph": "chainrule.autograd.graph",
    "profiler": "chainrule.autograd.profiler",
    "set_detect_anomaly": "chainrule.autograd.anomaly_mode",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise errors.unknown_name(name, [*__all__, *_LAZY], __name__)
    module = importlib.import_module(_LAZY[name])
    return module if module.__name__.endswith("autograd." + name) else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
