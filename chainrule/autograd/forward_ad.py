"""Forward mode on tensors, with the names of ``torch.autograd.forward_ad``.

Inside ``dual_level`` a tensor can be given a tangent; operations carry it along, and what they return has the
directional derivative as its tangent. A dual tensor's data is a :class:`~chainrule._src.interpreters.dual.Dual`. Where primal
or tangent are on the tape they are tensors inside it, so that both can be differentiated backward, too.
"""

from chainrule._src.api.faces import show
from chainrule._src.messages.kinds import NoForwardMode
from chainrule._src.transforms.forward_ad import (  # noqa: F401 -- PyTorch has the two with a line in front
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
