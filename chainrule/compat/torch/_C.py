"""``torch._C``: types, ``LinAlgError``, and whether a transformation is active."""

import numpy as np

from chainrule._src.arrays.device import device
from chainrule._src.arrays.dtype import dtype
from chainrule._src.arrays.size import Size
from chainrule._src.ops.random import Generator
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.overriding import DisableTorchFunctionSubclass
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.tensor import no_torch_function as _disabled_torch_function_impl  # noqa: F401
from chainrule.compat.torch import _functorch
from chainrule.linalg import LinAlgError

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
    """Return whether ``vmap``, ``jvp`` or a trace is active. (``grad`` and ``vjp`` have no levels here.)"""
    return bool(STACK.levels)


def _log_api_usage_once(event: str) -> None:
    """Do nothing: API usage is not logged."""


def _get_tracing_state() -> None:
    """Return None: ``jit.trace`` records no graph."""


def _infer_size(a: tuple[int, ...], b: tuple[int, ...]) -> Size:
    """Return the shape to which two shapes broadcast."""
    return Size(np.broadcast_shapes(a, b))
