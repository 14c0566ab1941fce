"""Reverse mode on tensors, with the names of ``torch.autograd``."""

from typing import TYPE_CHECKING

from chainrule._src.api.array import takes_arrays
from chainrule._src.api.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from chainrule._src.api.public_modules import show
from chainrule._src.ops.creation import Variable
from chainrule._src.transforms.backward import GradientEdge, backward, grad
from chainrule.autograd.gradcheck import gradcheck, gradgradcheck

if TYPE_CHECKING:
    from chainrule.autograd import anomaly_mode, forward_ad, function, functional, grad_mode, graph, profiler
    from chainrule.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
    from chainrule.autograd.function import Function

__all__ = [
    "Function",
    "GradientEdge",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
]

backward, grad = takes_arrays(backward), takes_arrays(grad)

show(
    globals(),
    {
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
    },
)
