"""``torch._C``: types, the error of singular matrices, and whether a transformation is active."""

from chainrule.compat.torch import _functorch
from chainrule.core.levels import STACK
from chainrule.core.overriding import DisableTorchFunctionSubclass
from chainrule.core.overriding import refused as _disabled_torch_function_impl  # noqa: F401
from chainrule.core.tensor import Tensor
from chainrule.linalg import LinAlgError
from chainrule.random import Generator
from chainrule.types.device import device
from chainrule.types.dtype import dtype
from chainrule.types.size import Size

TensorBase = _TensorBase = Tensor
_LinAlgError = LinAlgError

__all__ = [
    "DisableTorchFunctionSubclass",
    "Generator",
    "LinAlgError",
    "Size",
    "Tensor",
    "TensorBase",
    "_functorch",
    "device",
    "dtype",
]


def _are_functorch_transforms_active() -> bool:
    """Whether the call comes from inside of ``vmap``, ``jvp`` or a recording. (``grad`` and ``vjp`` have no levels here.)"""
    return bool(STACK.levels)


def _log_api_usage_once(event: str) -> None:
    """Nothing is counted here."""
