"""Forward mode on tensors, with the names of ``torch.autograd.forward_ad``.

Inside ``dual_level``, ``make_dual`` gives a tensor a tangent. Operations propagate tangents: the tangent of a result is its
directional derivative. A dual tensor's data is a :class:`~chainrule._src.interpreters.dual.Dual`. A primal or tangent
that is on the tape stays a tensor inside the Dual, so reverse mode can differentiate both.
"""

from chainrule._src.api.public_modules import show
from chainrule._src.messages.kinds import NoForwardMode
from chainrule._src.transforms.forward_ad import (  # noqa: F401 -- PyTorch's two names with an underscore
    UnpackedDualTensor,
    _is_fwd_grad_enabled,
    _set_fwd_grad_enabled,
    dual_level,
    enter_dual_level,
    exit_dual_level,
    make_dual,
    unpack_dual,
)

__all__ = [
    "NoForwardMode",
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

show(globals())
